// Tests of the installed package against a dev service, started by `.ci/packages`.

import assert from "node:assert/strict";
import { createHash, createHmac, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Fanfare, FanfareConnectionError, FanfareError, MediaFailedError, verifyWebhook, WaitTimeoutError, WebhookVerificationError } from "@fanfare/client";
import { client, lossyProxy, nobody, receiver } from "./service.js";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

test("every operation of the document is a method", async () => {
  const document = JSON.parse(readFileSync(process.env["FANFARE_DOCUMENT"]!, "utf8")) as { paths: Record<string, object> };
  const documented = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, "~")}`),
  );
  const called: string[] = [];
  const recording = new Fanfare({
    apiKey: "key",
    baseUrl: "http://service.test",
    fetch: async (input, init) => {
      called.push(`${init?.method} ${new URL(String(input)).pathname}`);
      return Response.json({ data: [], next_cursor: null });
    },
  });
  const helpers = ["constructor", "upload", "wait", "stream"];
  const resources = [
    ...Object.keys(recording),
    ...Object.keys(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(Fanfare.prototype))),
  ].filter((name) => name !== "constructor" && name !== "api");
  for (const name of resources) {
    const resource = (recording as unknown as Record<string, Record<string, (...args: unknown[]) => PromiseLike<unknown>>>)[name]!;
    const methods = new Set<string>();
    for (let type = Object.getPrototypeOf(resource) as object; type !== Object.prototype; type = Object.getPrototypeOf(type)) {
      for (const method of Object.getOwnPropertyNames(type)) if (!helpers.includes(method)) methods.add(method);
    }
    for (const method of methods) {
      // Path parameters come first; what follows is ignored here.
      const isBatch = method === "createBatch";
      await resource[method]!(...(isBatch ? [{ posts: [] }] : ["~", "~", "~"]));
    }
  }
  assert.deepEqual(called.sort(), documented.sort());
});

test("a post is created, waited for, and its events follow", async () => {
  const fanfare = client();
  const start = (await fanfare.events.list({ limit: 1 })).nextCursor!;
  const created = await fanfare.posts.create({ content: "From the package", accounts: ["fanfare", "fanfare.bsky.social"] });
  const post = await fanfare.posts.wait(created.id);
  assert.equal(post.status, "published");
  assert.equal(post.targets.length, 2);
  assert.ok(post.targets.every((target) => target.platform_post_url));
  const timeline = await fanfare.posts.getTimeline(post.id);
  assert.ok(timeline.data.some((entry) => entry.kind === "published"));

  const stream = fanfare.events.stream({ after: start, types: ["post.target.published"], interval: 50 });
  const targets = new Set<string>();
  for await (const event of stream) {
    if (event.event === "post.target.published" && event.data.postId === post.id) targets.add(event.data.targetId);
    if (targets.size === 2) break;
  }
  assert.deepEqual(targets, new Set(post.targets.map((target) => target.id)));
});

test("a stream waits for new events, and continues at its cursor", async () => {
  const fanfare = client();
  const abort = new AbortController();
  const stream = fanfare.events.stream({ types: ["post.published"], interval: 50, signal: abort.signal });
  const marker = fanfare.posts.create({ content: "For the stream", accounts: ["fanfare"] });
  for await (const event of stream) {
    if (event.event === "post.published" && event.data.postId === (await marker).id) abort.abort();
  }
  const next = await fanfare.posts.create({ content: "After the cursor", accounts: ["fanfare"] });
  const further = fanfare.events.stream({ after: stream.cursor!, types: ["post.published"], interval: 50 });
  for await (const event of further) {
    assert.ok(event.id);
    if (event.event === "post.published" && event.data.postId === next.id) break;
  }
});

test("lists of more than one page are iterated to their end", async () => {
  const fanfare = client();
  const run = randomUUID();
  const created = new Set<string>();
  for (let index = 0; index < 5; index++) {
    const post = await fanfare.posts.create({ content: `Draft ${index}`, accounts: ["fanfare"], is_draft: true, metadata: { run } });
    created.add(post.id);
  }
  const query = { metadata: { run }, limit: 2 };
  const listed: string[] = [];
  for await (const post of fanfare.posts.list(query)) listed.push(post.id);
  assert.equal(listed.length, 5);
  assert.deepEqual(new Set(listed), created);

  const first = await fanfare.posts.list(query);
  assert.equal(first.data.length, 2);
  assert.ok(first.hasNextPage());
  const second = await first.nextPage();
  assert.equal(second?.data.length, 2);
  const last = await second?.nextPage();
  assert.equal(last?.data.length, 1);
  assert.equal(await last?.nextPage(), null);

  const accounts = await fanfare.socialAccounts.list();
  assert.ok(accounts.data.some((account) => account.platform === "x"));
});

test("a file is uploaded from a path, a blob, bytes and a stream", async () => {
  const fanfare = client();
  const directory = mkdtempSync(join(tmpdir(), "fanfare-"));
  try {
    writeFileSync(join(directory, "dot.png"), PNG);
    const asset = await fanfare.media.upload(join(directory, "dot.png"), { altText: "A dot" });
    assert.equal(asset.status, "ready");
    assert.equal(asset.filename, "dot.png");
    assert.equal(asset.sha256, createHash("sha256").update(PNG).digest("hex"));
    const post = await fanfare.posts.create({
      containers: [{ content: "With a picture", media: [{ id: asset.id }] }],
      accounts: ["fanfare"],
    });
    assert.equal((await fanfare.posts.wait(post.id)).status, "published");
  } finally {
    rmSync(directory, { recursive: true });
  }
  const blob = new Blob([PNG], { type: "image/png" });
  const uploads = [
    await fanfare.media.upload(new File([PNG], "file.png")),
    await fanfare.media.upload(blob, { filename: "blob.png" }),
    await fanfare.media.upload(PNG, { filename: "bytes.png" }),
    await fanfare.media.upload(blob.stream(), { filename: "stream.png", size: PNG.length }),
    await fanfare.media.upload(blob.stream(), { filename: "endless.png" }),
  ];
  assert.deepEqual(uploads.map((asset) => asset.width), [1, 1, 1, 1, 1]);

  // The list of media has pages with offsets.
  const listed = new Set<string>();
  for await (const asset of fanfare.media.list({ limit: 2 })) listed.add(asset.id);
  assert.ok(uploads.every((asset) => listed.has(asset.id)));
});

test("a file that is not what it claims is refused with a reason", async () => {
  const upload = client().media.upload(Buffer.from("no picture"), { filename: "a.png", contentType: "image/png" });
  await assert.rejects(upload, (error: unknown) => error instanceof FanfareError && error.message.length > 10);
});

test("an import that fails is told by the wait", async () => {
  const fanfare = client();
  const asset = await fanfare.media.importUrl({ url: "https://fanfare.invalid/dawn.jpg" });
  const abort = AbortSignal.timeout(30_000);
  const outcome = await fanfare.media.wait(asset.id, { waitTimeout: 1, signal: abort }).catch((error: unknown) => error);
  assert.ok(outcome instanceof MediaFailedError || outcome instanceof WaitTimeoutError);
});

test("a real webhook is verified, and a forged or old one is refused", async () => {
  const fanfare = client();
  const server = await receiver();
  try {
    const webhook = await fanfare.webhooks.create({ url: server.url, events: ["post.published"] });
    const secret = webhook.signing_secret!;
    const post = await fanfare.posts.create({ content: "For the webhook", accounts: ["fanfare"] });
    for (;;) {
      const { body, headers } = await server.next();
      const event = await verifyWebhook(body, headers, secret);
      assert.equal(event.event, "post.published");
      if (event.event !== "post.published" || event.data.postId !== post.id) continue;
      assert.equal(event.id, headers["x-fanfare-event-id"]);
      assert.equal(event.data.socialAccounts[0]?.network, "x");

      const refused = (code: string) => (error: unknown) => error instanceof WebhookVerificationError && error.code === code;
      // Both secrets are accepted while one replaces the other.
      await verifyWebhook(body, new Headers(headers as Record<string, string>), ["another", secret]);
      await assert.rejects(verifyWebhook(body, headers, "another"), refused("invalid_signature"));
      const changed = Buffer.from(body.toString().replace("post.published", "post.publishes"));
      await assert.rejects(verifyWebhook(changed, headers, secret), refused("invalid_signature"));
      await assert.rejects(verifyWebhook(body, {}, secret), refused("missing_signature"));
      // The signature covers the id in the body.
      const renamed = { ...headers, "x-fanfare-event-id": "another" };
      await assert.rejects(verifyWebhook(body, renamed, secret), refused("invalid_signature"));
      // Compared with the signature's own time, not with this machine's: any time may have passed since.
      const signed = Number(/t=(\d+)/.exec(String(headers["x-fanfare-signature"]))![1]);
      for (const late of [301, -301]) {
        const now = new Date((signed + late) * 1000);
        await assert.rejects(verifyWebhook(body, headers, secret, { now }), refused("stale_signature"));
        await verifyWebhook(body, headers, secret, { now, tolerance: 400 });
      }
      break;
    }
    await fanfare.webhooks.delete(webhook.id);
  } finally {
    server.close();
  }
});

test("one of several signatures is enough", async () => {
  const body = JSON.stringify({ event: "webhook.test", timestamp: "2026-01-02T03:04:05Z", data: {} });
  const signature = createHmac("sha256", "whsec_a").update(`1700000000.${body}`).digest("hex");
  const headers = { "X-Fanfare-Signature": `t=1700000000,v1=${"0".repeat(64)},v1=${signature}`, "X-Fanfare-Event-Id": "1" };
  const now = new Date(1_700_000_000_000);
  const event = await verifyWebhook(body, headers, "whsec_a", { now });
  assert.equal(event.event, "webhook.test");
  await assert.rejects(verifyWebhook(body, headers, "whsec_b", { now }), WebhookVerificationError);
});

test("a lost response creates a post once", async () => {
  const proxy = await lossyProxy();
  try {
    const run = randomUUID();
    const post = await client({ baseUrl: proxy.baseUrl }).posts.create({
      content: "Once", accounts: ["fanfare"], is_draft: true, metadata: { run },
    });
    assert.equal(proxy.connections(), 2);
    const listed = await client().posts.list({ metadata: { run } });
    assert.deepEqual(listed.data.map((one) => one.id), [post.id]);
  } finally {
    proxy.close();
  }
});

test("a batch whose response is lost creates its posts once", async () => {
  const proxy = await lossyProxy();
  try {
    const run = randomUUID();
    const draft = { content: "Once each", accounts: ["fanfare"], is_draft: true, metadata: { run } };
    const batch = await client({ baseUrl: proxy.baseUrl }).posts.createBatch({ posts: [draft, draft] });
    assert.equal(proxy.connections(), 2);
    assert.deepEqual(batch.data.map((one) => one.status), [200, 200]);
    assert.equal((await client().posts.list({ metadata: { run } })).data.length, 2);
  } finally {
    proxy.close();
  }
});

test("what can't be repeated safely is not repeated", async () => {
  const proxy = await lossyProxy();
  try {
    const lost = client({ baseUrl: proxy.baseUrl }).profiles.create({ name: `Lost ${randomUUID()}` });
    await assert.rejects(lost, (error: unknown) => error instanceof FanfareConnectionError && !error.wasNotSent);
    assert.equal(proxy.connections(), 1);
  } finally {
    proxy.close();
  }
});

test("a gateway's 503 is repeated with the same key, and only if that creates nothing twice", async () => {
  const keys: (string | null)[] = [];
  // A gateway before the service that fails at first.
  const gateway = (failures: number): typeof fetch => async (input, init) => {
    keys.push(new Headers(init?.headers).get("Idempotency-Key"));
    return failures-- > 0 ? new Response("no upstream", { status: 503, headers: { "Retry-After": "0" } }) : fetch(input, init);
  };
  await client({ fetch: gateway(2) }).posts.create({ content: "Late", accounts: ["fanfare"], is_draft: true });
  assert.equal(keys.length, 3);
  assert.ok(keys[0]);
  assert.deepEqual(new Set(keys), new Set([keys[0]]));
  const profile = client({ fetch: gateway(1) }).profiles.create({ name: `Late ${randomUUID()}` });
  await assert.rejects(profile, (error: unknown) => error instanceof FanfareError && error.status === 503 && error.code === "unknown");
  const exhausted = client({ fetch: gateway(9), maxRetries: 2 }).profiles.list().then();
  await assert.rejects(exhausted, (error: unknown) => error instanceof FanfareError && error.status === 503);
});

test("errors have the problem's members", async () => {
  await assert.rejects(client().posts.create({ content: "", accounts: [] }), (error: unknown) => {
    assert.ok(error instanceof FanfareError);
    assert.equal(error.status, 400);
    assert.equal(error.code, "invalid_request");
    assert.match(error.requestId!, /./);
    assert.deepEqual(error.problem?.errors?.map((issue) => issue.path.join(".")).sort(), ["accounts", "content"]);
    return true;
  });
  const unknown = client().posts.get(randomUUID());
  await assert.rejects(unknown, (error: unknown) => error instanceof FanfareError && error.code === "not_found");
  const stranger = client({ apiKey: "sk_test_wrong" }).posts.list();
  await assert.rejects(async () => await stranger, (error: unknown) => error instanceof FanfareError && error.status === 401);
  const refused = client({ baseUrl: await nobody(), maxRetries: 0 }).team.inviteMember({ email: "a@b.example", role: "viewer" });
  await assert.rejects(refused, (error: unknown) => error instanceof FanfareConnectionError && error.wasNotSent);
});

test("a request that exceeds the rate limit is repeated after Retry-After", async () => {
  // The service was started with a limit of 3 changes of the team in 2 seconds.
  const invite = (maxRetries: number) =>
    client({ maxRetries }).team.inviteMember({ email: "", role: "viewer" }).then(() => assert.fail("invited"), (error: FanfareError) => error);
  let error = await invite(0);
  while (error.status !== 429) error = await invite(0);
  assert.equal(error.code, "rate_limited");
  assert.ok(error.retryAfter! > 0);
  // Repeated until it is admitted: there is no such address.
  assert.equal((await invite(4)).code, "invalid_request");
});

test("a call can be aborted, and has a timeout", async () => {
  await assert.rejects(client().posts.get(randomUUID(), { signal: AbortSignal.abort() }), { name: "AbortError" });
  const asset = await client().media.createUpload({ filename: "never.png" });
  const slow = client().media.get(asset.id, { wait: 30 }, { timeout: 50, maxRetries: 0 });
  await assert.rejects(slow, (error: unknown) => error instanceof FanfareConnectionError && error.code === "timeout");
  const waiting = client().media.wait(asset.id, { waitTimeout: 1 });
  await assert.rejects(waiting, WaitTimeoutError);
});

// Types: a wrong member does not compile.
// @ts-expect-error An account is text.
export const wrong = () => client().posts.create({ content: "To nobody", accounts: [1] });
