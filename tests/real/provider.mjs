// Runs an OpenID provider on loopback, at which anybody signs in with any password.
//
//   node provider.mjs PORT REDIRECT_URI
//
// Prints a line when it listens, and ends with stdin, so that it never outlives the tests. What it remembers ends with
// it, as with a provider that lost its sessions.

import Provider from "oidc-provider";

process.stdin.resume().on("end", () => process.exit(0));

const [port, redirect] = process.argv.slice(2);
const claims = (id) => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: id });
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "fanfare", client_secret: "of the client, 32 characters long", redirect_uris: [redirect] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  // The claims are in the id token, not only at the endpoint for them.
  conformIdTokenClaims: false,
  cookies: { keys: ["of these tests"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => claims(id) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
