// Calls the MCP tools through the official client, which validates each result against the tool's schema.
// Usage: tools BASE_URL KEY

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [baseUrl, key] = process.argv.slice(2);

function check(holds, what) {
  if (!holds) throw new Error(JSON.stringify(what));
}

function connect(token) {
  const client = new Client({ name: "contract", version: "1.0.0" });
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  const transport = new StreamableHTTPClientTransport(new URL(baseUrl.replace(/\/v1$/, "/mcp")), { requestInit });
  return client.connect(transport).then(() => client);
}

const client = await connect(key);
check(client.getServerVersion()?.name === "fanfare", client.getServerVersion());
const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
for (const tool of tools) {
  check(tool.annotations && tool.inputSchema && tool.outputSchema, tool);
}

// Makes a call that must succeed. The client throws if the result does not match the tool's schema.
async function call(name, args = {}) {
  check(names.includes(name), names);
  const result = await client.callTool({ name, arguments: args });
  check(!result.isError, result);
  return result.structuredContent;
}

const accounts = await call("list_accounts");
check(accounts.data.some((account) => account.username === "fanfare"), accounts);
const body = { content: "From the MCP client", accounts: ["fanfare"] };
check((await call("validate_post", body)).valid, body);
const { id } = await call("create_post", body);
const deadline = Date.now() + 60_000;
let post = await call("get_post", { id });
while (!["published", "partial", "failed"].includes(post.status)) {
  check(Date.now() < deadline, post);
  await new Promise((wake) => setTimeout(wake, 100));
  post = await call("get_post", { id });
}
check(post.status === "published" && post.targets[0].platform_post_url, post);
check((await call("get_post_analytics", { id })).metrics_by_account.length === 1, id);
check((await call("list_posts", { limit: 5 })).data.length > 0, "no posts");

const draft = await call("create_post", { ...body, is_draft: true });
check((await call("update_post", { id: draft.id, content: "Edited" })).containers[0].content === "Edited", draft);
check((await call("delete_post", { id: draft.id })).canceled, draft);
check((await call("create_auth_url", { platform: "x" })).auth_url, "no address");
// `fanfare dev` allows loopback addresses in test mode.
const webhook = await call("create_webhook", { url: "http://127.0.0.1:9/hook", events: ["*"] });
check((await call("list_webhooks")).data.some((one) => one.id === webhook.id), webhook);
check((await call("get_usage")).usage.plan.key, "no plan");

const refused = await client.callTool({ name: "create_post", arguments: { content: "", accounts: [] } });
const problem = JSON.parse(refused.content[0].text);
const paths = problem.errors.map((issue) => issue.path.join(".")).sort();
check(refused.isError && problem.status === 400 && paths.join() === "accounts,content", refused);
await client.callTool({ name: "launch_rocket" }).then(
  (answer) => check(false, answer),
  (error) => check(error.code === -32602, error.message),
);
await client.close();
await connect("sk_test_wrong").then(
  () => check(false, "a wrong key was accepted"),
  (error) => check(/401|unauthorized/i.test(String(error)), String(error)),
);
console.log("the MCP client published", post.targets[0].platform_post_url);
