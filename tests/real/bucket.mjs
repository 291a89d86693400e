// Runs an S3 server on loopback, with a bucket called `media` that outlives it.
//
//   node bucket.mjs PORT DATA
//
// Prints a line when it listens, and ends with stdin, so that it never outlives the tests.

import S3rver from "@20minutes/s3rver";

process.stdin.resume().on("end", () => process.exit(0));

const [port, directory] = process.argv.slice(2);
const server = new S3rver({
  address: "127.0.0.1",
  port: Number(port),
  silent: true,
  directory,
  configureBuckets: [{ name: "media" }],
});
await server.run();
console.log("ready");
