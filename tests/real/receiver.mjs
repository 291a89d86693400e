// Receives webhooks, verifies them with Stripe's library, whose scheme the signature has, and appends the id of each
// event to a file.
//
//   node receiver.mjs PORT SECRET FILE
//
// Prints a line when it listens, and ends with stdin, so that it never outlives the tests.

import { appendFileSync } from "node:fs";
import http from "node:http";
import Stripe from "stripe";

process.stdin.resume().on("end", () => process.exit(0));

const [port, secret, file] = process.argv.slice(2);
const { webhooks } = new Stripe("sk_of_nobody");
const server = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  try {
    webhooks.constructEvent(Buffer.concat(parts), request.headers["x-fanfare-signature"], secret);
    // Kept before it is acknowledged.
    appendFileSync(file, `${request.headers["x-fanfare-event-id"]}\n`);
    response.writeHead(200).end();
  } catch (error) {
    appendFileSync(file, `refused: ${error.message.split("\n")[0]}\n`);
    response.writeHead(400).end();
  }
});
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
