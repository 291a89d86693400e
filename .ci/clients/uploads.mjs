// Uploads files from the dashboard in a real browser, with a bucket that enforces CORS rules: straight to the bucket with
// the rule of the guide to deployment, through the dashboard without it; several at once, canceled, refused, and again
// after the connection was lost. Usage: uploads PROGRAM GUIDE CHROMIUM

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "@20minutes/s3rver";
import { check, inspect, launch } from "./browser.mjs";

const [program, guide, chromium] = process.argv.slice(2);
const PATIENCE = 60_000;
const dir = mkdtempSync(join(tmpdir(), "fanfare-uploads-"));
const GIF = Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64");
const clip = new URL("clip.webm", import.meta.url).pathname;

/** Returns the CORS rule of the guide for an origin, as the XML of S3. */
function corsOf(origin) {
  const [, json] = /## CORS rule of the bucket[^]*?```json\n([^]*?)```/.exec(readFileSync(guide, "utf8"));
  const [rule] = JSON.parse(json).CORSRules;
  const tag = (name, value) => `<${name}>${value}</${name}>`;
  // Lists have a name in the plural, of which XML has an element for each value.
  const elements = Object.entries({ ...rule, AllowedOrigins: [origin] }).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((one) => tag(name.slice(0, -1), one)) : tag(name, value),
  );
  return tag("CORSConfiguration", tag("CORSRule", elements.join("")));
}

/** Writes a file to upload. */
function file(name, bytes) {
  writeFileSync(join(dir, name), bytes);
  return join(dir, name);
}

/** Returns the bytes of a WAV file with so many bytes of silence. */
function tone(length) {
  const head = Buffer.from("RIFF....WAVEfmt ....\x01\0\x01\0........\x02\0\x10\0data....", "latin1");
  for (const [at, value] of [[4, length + 36], [16, 16], [24, 8000], [28, 16000], [40, length]]) {
    head.writeUInt32LE(value, at);
  }
  return Buffer.concat([head, Buffer.alloc(length)]);
}

/** A bucket, at first without a CORS rule. */
async function bucket() {
  const port = await new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
  const configureBuckets = [{ name: "media", configs: [] }];
  const options = { port, address: "127.0.0.1", directory: join(dir, "bucket"), silent: true, vhostBuckets: false };
  const server = new S3rver({ ...options, configureBuckets });
  await server.run();
  const allow = async (origin) => {
    server._configureBuckets = [{ name: "media", configs: [corsOf(origin)] }];
    await server.configureBuckets();
  };
  return { origin: `http://127.0.0.1:${port}`, allow, cut: () => server.httpServer.closeAllConnections() };
}

/** Starts the program with the bucket, and returns its manifest. */
async function service(storage) {
  const settings = {
    FANFARE_MEDIA: "s3://media/files",
    AWS_ENDPOINT: storage.origin,
    AWS_ALLOW_HTTP: "true",
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "S3RVER",
    AWS_SECRET_ACCESS_KEY: "S3RVER",
  };
  const log = openSync(join(dir, "log"), "w");
  const process_ = spawn(program, ["dev", "--port", "0", "--data-dir", join(dir, "data")], {
    env: { ...process.env, ...settings },
    stdio: ["ignore", log, log],
  });
  const ended = new Promise((done) => process_.on("exit", done));
  const manifest = join(dir, "data", "dev.json");
  const deadline = Date.now() + 3 * PATIENCE;
  while (!existsSync(manifest)) {
    check(process_.exitCode === null && Date.now() < deadline, readFileSync(join(dir, "log"), "utf8"));
    await new Promise((later) => setTimeout(later, 200));
  }
  const stop = async () => {
    process_.kill("SIGINT");
    await ended;
  };
  return { ...JSON.parse(readFileSync(manifest, "utf8")), stop };
}

const names = (page) => page.$$eval("#media-list h2", (all) => all.map((heading) => heading.textContent));

/** Chooses files in the form of a page. */
async function choose(page, ...files) {
  await (await page.$("#files")).uploadFile(...files);
}

async function shows(page, name) {
  const holds = (name) => [...document.querySelectorAll("#media-list h2")].some((shown) => shown.textContent === name);
  await page.waitForFunction(holds, { timeout: PATIENCE }, name).catch(async () => {
    throw new Error(`${name} never appears: ${await page.evaluate(() => document.body.innerText)}`);
  });
}

async function says(page, words) {
  const holds = (words) => document.querySelector("[data-upload]").innerText.includes(words);
  await page.waitForFunction(holds, { timeout: PATIENCE }, words).catch(async () => {
    throw new Error(`never says “${words}”: ${await page.$eval("[data-upload]", (zone) => zone.innerText)}`);
  });
}

const press = (page, label) => page.click(`[data-uploads] button[aria-label="${label}"]`);

async function walk(page, dev, storage) {
  const { origin } = new URL(dev.dashboard_url);
  await page.goto(`${dev.dashboard_url}/sign-in`);
  await page.type("#key", dev.test_key);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  const sent = [];
  page.on("requestfinished", (request) => {
    if (request.method() !== "GET") sent.push(`${request.method()} ${new URL(request.url()).origin}`);
  });

  // A bucket without a rule: files go through the dashboard, and the page says why.
  await page.goto(`${dev.dashboard_url}/media`);
  await choose(page, file("first.gif", GIF), file("second.gif", GIF));
  await shows(page, "first.gif");
  await shows(page, "second.gif");
  await says(page, "can’t send files to the storage itself");
  check(!sent.includes(`PUT ${storage.origin}`), sent);
  const isThrough = (entry) => entry === `POST ${origin}`;
  check(sent.filter(isThrough).length === 6, { sent, why: "each is announced, sent and confirmed" });
  await inspect(page, "uploads through the dashboard");

  // With the rule of the guide they go to the bucket.
  await storage.allow(origin);
  await page.goto(`${dev.dashboard_url}/media`);
  sent.length = 0;
  await choose(page, clip, file("third.gif", GIF), file("x.exe", "MZ"), file("empty.gif", ""));
  await shows(page, "clip.webm");
  await shows(page, "third.gif");
  // What a file is, is told by its bytes, which arrive with it.
  await says(page, "file type is not supported");
  check(sent.filter((entry) => entry === `PUT ${storage.origin}`).length === 3, sent);
  await says(page, "The file is empty.");
  check(!(await page.$eval("[data-upload]", (zone) => zone.innerText)).includes("through Fanfare"), "a hint without need");
  await press(page, "Dismiss: x.exe");
  await press(page, "Dismiss: empty.gif");

  // A video is shown by its first frame, and plays in its place.
  await page.waitForFunction(() => document.querySelector(".thumb video")?.readyState >= 2, { timeout: PATIENCE });
  await inspect(page, "a video in the library");
  await page.click("[data-play]");
  await page.waitForFunction(() => document.querySelector(".thumb video[controls]")?.currentTime > 0.2, {
    timeout: PATIENCE,
  });

  // Without the script it is played in a page of its own.
  await page.goto(await page.$eval(".thumb video", (video) => video.src));
  // Asked by the debugger: the page runs no scripts.
  const isDrawn = () => page.$eval("video", (video) => video.readyState >= 2);
  for (const deadline = Date.now() + PATIENCE; !(await isDrawn()); ) check(Date.now() < deadline, "it does not play");

  // A lost connection: the upload is done once it is back, and nothing else is announced for it.
  await page.goto(`${dev.dashboard_url}/media`);
  await page.setOfflineMode(true);
  await choose(page, file("lost.gif", GIF), file("given-up.gif", GIF));
  await says(page, "The connection was lost.");
  await page.waitForSelector("[data-uploads] button[aria-label='Retry: given-up.gif']");
  await inspect(page, "uploads that were lost");
  await page.setOfflineMode(false);
  await press(page, "Cancel the upload of given-up.gif");
  await press(page, "Retry: lost.gif");
  await shows(page, "lost.gif");

  // Also in the middle of a file.
  const client = await page.createCDPSession();
  const limit = (uploadThroughput) =>
    client.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput,
    });
  const isUnderWay = () => document.querySelector("[data-uploads] progress")?.value > 0;
  await limit(1 << 20);
  sent.length = 0;
  await choose(page, file("tone.wav", tone(16 << 20)));
  await page.waitForFunction(isUnderWay, { timeout: PATIENCE });
  // Browsers send a file once more by themselves.
  const cutting = setInterval(storage.cut, 50);
  await says(page, "The connection was lost.").finally(() => clearInterval(cutting));
  await limit(-1);
  await press(page, "Retry: tone.wav");
  await shows(page, "tone.wav");
  check(sent.filter((entry) => entry === `POST ${origin}`).length === 2, { sent, why: "announced and confirmed once" });

  // Canceled while it is under way: nothing of it is left.
  const large = file("large.mp4", Buffer.alloc(64 << 20));
  await limit(1 << 20);
  await choose(page, large);
  await page.waitForFunction(isUnderWay, { timeout: PATIENCE });
  await inspect(page, "an upload under way");
  const abandoned = page.waitForResponse((answer) => answer.url().endsWith("/abandon"), { timeout: PATIENCE });
  await press(page, "Cancel the upload of large.mp4");
  check((await abandoned).status() === 204, "the file that was announced is not deleted");
  await limit(-1);
  await page.goto(`${dev.dashboard_url}/media`);
  const left = await names(page);
  // What arrived and was refused by its bytes stays, with the reason.
  const expected = ["tone.wav", "lost.gif", "third.gif", "x.exe", "clip.webm", "second.gif", "first.gif"];
  check(expected.every((name) => left.includes(name)) && left.length === expected.length, left);

  // A post does not go without the files that are still on their way.
  await page.goto(`${dev.dashboard_url}/compose`);
  await limit(1 << 20);
  await choose(page, large);
  await page.waitForFunction(isUnderWay, { timeout: PATIENCE });
  await page.click("[data-sends]");
  await says(page, "Files are still being uploaded.");
  check(page.url().endsWith("/compose"), page.url());
  await inspect(page, "a post that waits for its files");
  await press(page, "Cancel the upload of large.mp4");
  await limit(-1);
  await page.waitForFunction(() => !document.querySelector("[data-upload] .over"), { timeout: PATIENCE });
}

const storage = await bucket();
const dev = await service(storage);
const browser = await launch(chromium);
try {
  await walk(await browser.newPage(), dev, storage);
  console.log("Files go to a bucket with CORS rules, and through the dashboard without");
} finally {
  await browser.close();
  await dev.stop();
  rmSync(dir, { recursive: true, force: true });
}
process.exit();
