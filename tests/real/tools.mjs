// Calls MCP tools with the official client.
//
//   node tools.mjs URL KEY
//
// Reads a line of JSON for each call from stdin, `{"name": …, "arguments": …}`, and prints a line with its result, or
// with the error. Ends with stdin.

import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, key] = process.argv.slice(2);
const client = new Client({ name: "proof", version: "1.0.0" });
const requestInit = { headers: { Authorization: `Bearer ${key}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
console.log("ready");
for await (const line of createInterface(process.stdin)) {
  try {
    console.log(JSON.stringify(await client.callTool(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
process.exit(0);
