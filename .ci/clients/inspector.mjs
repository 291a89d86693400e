// Lists and uses tools, resources and prompts through the command line of the official MCP inspector.
// Usage: inspector BASE_URL KEY, in a directory where the inspector is installed

import { execFileSync } from "node:child_process";

const [baseUrl, key] = process.argv.slice(2);
const server = baseUrl.replace(/\/v1$/, "/mcp");

function check(holds, what) {
  if (!holds) throw new Error(JSON.stringify(what));
}

function ask(method, ...options) {
  const header = ["--header", `Authorization: Bearer ${key}`];
  const args = ["--cli", server, "--transport", "http", "--method", method, ...options, ...header];
  return JSON.parse(execFileSync("node_modules/.bin/mcp-inspector", args, { encoding: "utf8" }));
}

const { tools } = ask("tools/list");
for (const tool of tools) {
  const hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
  check(tool.title && hints.every((hint) => typeof tool.annotations[hint] === "boolean"), tool);
}
const called = ask("tools/call", "--tool-name", "list_accounts");
check(!called.isError, called);
const account = called.structuredContent.data.find((one) => one.username === "fanfare");
check(account, called);
const told = ask("tools/call", "--tool-name", "get_account_limits", "--tool-arg", `id=${account.id}`);
check(Array.isArray(told.structuredContent?.limits), told);

const { resources } = ask("resources/list");
check(resources.length === 11, resources);
const { resourceTemplates } = ask("resources/templates/list");
const accepted = resourceTemplates.find((one) => one.name === "account_capabilities");
const uri = accepted.uriTemplate.replace("{id}", account.id);
for (const address of [resources[0].uri, uri]) {
  const { contents } = ask("resources/read", "--uri", address);
  check(JSON.parse(contents[0].text).config_schema, contents);
}

const { prompts } = ask("prompts/list");
check(prompts.some((prompt) => prompt.name === "publish_picture"), prompts);
const filled = ask("prompts/get", "--prompt-name", "explain_stuck_post", "--prompt-args", `id=${account.id}`);
check(filled.messages[0].content.text.includes(account.id), filled);
console.log("the MCP inspector used", tools.length, "tools,", resources.length, "resources,", prompts.length, "prompts");
