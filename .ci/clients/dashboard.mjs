// Uses the dashboard in a real browser: signs in, watches a post fail and recover, redelivers, rotates a
// secret, connects, writes a post; checks every page in light and dark, wide and narrow; works without scripts.
// Usage: dashboard DEV.JSON CHROMIUM [DIRECTORY FOR SCREENSHOTS]

import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, inspect, launch, paint } from "./browser.mjs";

const [manifest, chromium, shots] = process.argv.slice(2);
const dev = JSON.parse(readFileSync(manifest, "utf8"));
const { origin } = new URL(dev.dashboard_url);
const sandbox = new URL(dev.sandbox_url).origin;
const PATIENCE = 60_000;
const ZONE = "Europe/Berlin";
/** Greatest height of a row: about twenty fit on a screen. */
const ROW_HEIGHT = 40;
let looks = 0;

async function call(method, place, body) {
  const headers = { Authorization: `Bearer ${dev.test_key}`, "Content-Type": "application/json" };
  const answer = await fetch(dev.base_url + place, { method, headers, body: body && JSON.stringify(body) });
  const value = await answer.json();
  check(answer.ok, { method, place, value });
  return value;
}

/** Starts a webhook receiver. */
async function receiver() {
  const arrived = [];
  let wake = () => {};
  const server = createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      arrived.push({ signature: request.headers["x-fanfare-signature"], body: Buffer.concat(pieces) });
      response.end("ok");
      wake();
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  /** Waits for a delivery after the first `count`. */
  const after = async (count) => {
    const deadline = setTimeout(() => {
      throw new Error("timed out waiting for a delivery");
    }, PATIENCE);
    while (arrived.length <= count) await new Promise((resolve) => (wake = resolve));
    clearTimeout(deadline);
    return arrived[count];
  };
  const url = `http://127.0.0.1:${server.address().port}/hook`;
  const close = () => {
    server.close();
    // The sender keeps its connection open.
    server.closeAllConnections();
  };
  return { url, after, count: () => arrived.length, close };
}

function signs(secret, { signature, body }) {
  const at = /^t=(\d+)/.exec(signature)[1];
  const sum = createHmac("sha256", secret).update(`${at}.`).update(body).digest("hex");
  return signature === `t=${at},v1=${sum}`;
}

async function open(page, place, status = 200) {
  const answer = await page.goto(place.startsWith("http") ? place : dev.dashboard_url + place);
  check(answer.status() === status, `${place}: ${answer.status()}`);
}

/** Waits until the page contains a text, without reloading it. */
async function says(page, words) {
  const holds = (text) => document.body.innerText.includes(text);
  await page.waitForFunction(holds, { timeout: PATIENCE }, words).catch(async () => {
    throw new Error(`${page.url()} never contains “${words}”: ${await page.evaluate(() => document.body.innerText)}`);
  });
}

/** Marks the page, to check later that it was not reloaded. */
const mark = (page) => page.evaluate(() => void (globalThis.isMarked = true));
const stayed = async (page) => check(await page.evaluate(() => globalThis.isMarked), "the page was reloaded");

/** Clicks the element with this text, or the one that a selector matches; returns false if there is none. */
async function tap(page, words) {
  const pressing = page.evaluate((words) => {
    const all = [...document.querySelectorAll("button, a, summary")];
    const named = all.find((element) => element.innerText.trim() === words && element.checkVisibility());
    const found = named ?? (/^[#[]/.test(words) ? document.querySelector(words) : null);
    found?.click();
    return found?.localName ?? null;
  }, words);
  // A summary only opens, and a dialog closes; any other element navigates.
  const leaves = words.endsWith("…") || words === "Cancel" ? null : page.waitForNavigation({ timeout: PATIENCE });
  leaves?.catch(() => {});
  const pressed = await pressing.catch((error) => {
    if (!/context was destroyed/.test(error.message)) throw error;
  });
  if (pressed === null) return false;
  await leaves?.catch(async () => {
    const text = await page.evaluate(() => document.body.innerText);
    throw new Error(`${words} at ${page.url()} does not navigate: ${text}`);
  });
  return true;
}

async function press(page, words) {
  check(await tap(page, words), `there is no ${words} at ${page.url()}`);
}

async function look(page, name) {
  // A heading keeps the line of its label: no margin of its own moves it.
  const moved = await page.$$eval(".head > *", (all) =>
    all.filter((element) => getComputedStyle(element).marginTop !== "0px").map((element) => element.outerHTML),
  );
  check(moved.length === 0, { page: name, moved });
  const flaws = await page.evaluate(layoutFlaws, ROW_HEIGHT);
  check(flaws.length === 0, { page: name, flaws });
  for (const width of [1280, 360]) {
    await page.setViewport({ width, height: 900 });
    await inspect(page, `${name}, ${width} pixels wide`);
    looks += 1;
  }
  await page.setViewport({ width: 1280, height: 900 });
  await paint(page, "light");
}

/** Returns what is out of shape: rows that are too high, cards without padding, and fields that stick to their labels. */
function layoutFlaws(rowHeight) {
  const flaws = [];
  const say = (flaw, element) => flaws.push(`${flaw}: ${element.outerHTML.slice(0, 300)}`);
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
  // Rows with a code block or a note are as high as what they show; accounts of the sandbox have controls in two lines.
  for (const row of shown("tbody tr:not(.more, .calendar tr, .panel tr):not(:has(pre, details[open]))"))
    if (row.getBoundingClientRect().height > rowHeight) say(`${row.getBoundingClientRect().height} px high`, row);
  for (const card of shown(".card:not(.tile)")) if (parseFloat(getComputedStyle(card).paddingLeft) < 8) say("no padding", card);
  const brand = getComputedStyle(document.querySelector("button.main, .button.main, h1")).getPropertyValue("--brand");
  const paint = (color) => Object.assign(new Option().style, { color }).color;
  for (const box of shown("label > input[type=checkbox]")) {
    const label = box.closest("label");
    const text = document.createRange();
    text.selectNodeContents(label);
    const lines = [...text.getClientRects()].filter((line) => line.width > 0 && line.left >= box.getBoundingClientRect().right);
    const { top, bottom } = box.getBoundingClientRect();
    if (!lines.some((line) => line.top < bottom && line.bottom > top)) say("its label is on another line", box);
    if (paint(getComputedStyle(box).accentColor) !== paint(brand)) say(getComputedStyle(box).accentColor, box);
  }
  for (const label of shown(".field > label:not(.hidden, .choice)")) {
    const field = label.parentElement.querySelector("input:not([type=hidden]), select, textarea")?.getBoundingClientRect();
    const { right, bottom } = label.getBoundingClientRect();
    if (field && field.left < right && field.top - bottom < 1) say("sticks to its field", label);
  }
  return flaws;
}

/** On a phone, the header takes at most a tenth of the screen, and the filter of posts is a button. */
async function phone(page) {
  await page.setViewport({ width: 390, height: 844, isMobile: true, hasTouch: true });
  for (const place of ["/posts?status=published", "/operators/stuck"]) {
    await open(page, place);
    const { header, filter, words } = await page.evaluate(() => ({
      header: document.querySelector("header.side").getBoundingClientRect().height,
      filter: document.querySelector(".fold").getBoundingClientRect().height,
      words: document.querySelector(".fold > summary").innerText,
    }));
    check(header <= 84 && filter <= 60, { place, header, filter });
    check(words.startsWith("Filter"), words);
    check(!place.includes("status") || words === "Filter · Published", words);
    await page.click(".fold > summary");
    check(await page.$eval(".fold form", (form) => form.checkVisibility()), "the filter does not open");
  }
  await page.setViewport({ width: 1280, height: 900 });
}

/** A text from right to left is laid out so: in lists, on its page, and where it is written and previewed. */
async function rightToLeft(page, accounts) {
  const text = "שלום, העונה מתחילה.";
  const post = await call("POST", "/posts", { content: text, accounts: [accounts.x.id, accounts.bluesky.id] });
  const isRtl = async (selector) => {
    const found = await page.$$eval(
      selector,
      (all, text) =>
        all
          .filter((element) => element.children.length === 0 && (element.value ?? element.textContent).includes(text))
          .map((element) => getComputedStyle(element).direction),
      text,
    );
    check(found.length > 0 && found.every((one) => one === "rtl"), { selector, at: page.url(), found });
  };
  await open(page, "/posts");
  await isRtl(`#post-${post.id} a`);
  await open(page, `/posts/${post.id}`);
  await isRtl("h1");
  await isRtl(".text");
  await open(page, `/compose?from=${post.id}`);
  await isRtl("textarea");
  await page.waitForSelector("#preview .mock-text");
  await isRtl("#preview .mock-text");
  await press(page, "Preview");
  await isRtl(".cards .mock-text");
  await open(page, `/posts/${post.id}`);
  await says(page, "View on X");
  await Promise.all([page.waitForNavigation(), page.click("a[href*='//'].button")]);
  await isRtl(".mock-text");
}

/** Without a connection, a page that updates itself says at its top that it may be old, for as long as that lasts. */
async function connectionLost(page) {
  await open(page, "");
  await mark(page);
  check(await page.$eval("#lost", (banner) => !banner.checkVisibility()), "the banner is there from the start");
  await page.setOfflineMode(true);
  await page.waitForFunction(() => document.getElementById("lost").checkVisibility(), { timeout: PATIENCE });
  const top = await page.$eval("#lost", (banner) => banner.getBoundingClientRect().top);
  check(top >= 0 && top < 60, `the banner is ${top} pixels from the top`);
  await look(page, "a lost connection");
  await page.setOfflineMode(false);
  await page.waitForFunction(() => !document.getElementById("lost").checkVisibility(), { timeout: PATIENCE });
  await stayed(page);
}

/** Takes a screenshot of the top of a page. */
async function shoot(page, name, height, { scheme = "light", width = 1200 } = {}) {
  if (!shots) return;
  await page.setViewport({ width, height });
  await paint(page, scheme);
  await page.evaluate(() => {
    document.activeElement.blur();
    scrollTo(0, 0);
  });
  await page.screenshot({ path: `${shots}/${name}.png` });
  await page.setViewport({ width: 1280, height: 900 });
  await paint(page, "light");
}

const secret = (page) => page.$eval("#secret", (element) => element.innerText);

async function signIn(page) {
  await look(page, "signing in");
  await page.type("#key", "sk_test_wrong");
  await press(page, "Sign in with an API key");
  await says(page, "This key is unknown, was revoked, or has expired.");
  await look(page, "signing in with a wrong key");
  await page.type("#key", dev.test_key);
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await says(page, "Test mode");
  check((await page.evaluate(() => document.cookie)) === `fanfare-zone=${ZONE}`, "a script can read the session’s cookie");
  await says(page, `Times are in ${ZONE}.`);
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement.innerText);
  check(first === "Skip to content", first);
  await page.keyboard.press("Enter");
  check((await page.evaluate(() => document.activeElement.id)) === "main", "the link does not skip to the content");
}

/** Arms a fault of the platform for an account's next tries. */
async function spoil(account, word, tries) {
  const body = new URLSearchParams({ platform: account.platform, username: account.username, word, tries });
  const answer = await fetch(`${dev.sandbox_url}/_panel/faults`, { method: "POST", body });
  // A body that is not read keeps this process alive.
  await answer.text();
  check(answer.ok, `${word}: ${answer.status}`);
}

/** Fills the dashboard: what was published, and what comes next. */
async function furnish(page, accounts) {
  const both = [accounts.x.id, accounts.bluesky.id];
  const published = ["Thank you, Hamburg. What a night!", "Rehearsal photos from last night", "Now hiring: a stage manager"];
  const posts = [];
  for (const content of published) posts.push(await call("POST", "/posts", { content, accounts: both }));
  for (const { id } of posts) {
    await open(page, `/posts/${id}`);
    await says(page, "View on X");
    await says(page, "View on Bluesky");
  }
  const upcoming = ["Spring menu: asparagus, morels and rhubarb", "Two tickets left for Saturday", "We are open on Monday as well"];
  for (const [days, content] of upcoming.entries()) {
    const due = new Date(Date.now() + (days + 1) * 30 * 3_600_000).toISOString();
    await call("POST", "/posts", { content, accounts: both, scheduled_at: due });
  }
}

async function failAndRecover(page, accounts) {
  for (const account of Object.values(accounts)) await spoil(account, "503", 99);
  const due = new Date(Date.now() + 8000).toISOString();
  const post = await call("POST", "/posts", {
    content: "The new season begins on Friday: doors open at eight.",
    accounts: [accounts.x.id, accounts.bluesky.id],
    scheduled_at: due,
  });
  await open(page, `/posts/${post.id}`);
  await mark(page);
  await says(page, "Scheduled");
  // Updates of the page must not move the keyboard focus.
  await page.focus("#cancel > summary");
  await says(page, "X had a server error (503)");
  await says(page, "Bluesky had a server error (503)");
  check(await page.evaluate(() => document.activeElement.localName === "summary"), "the focus was lost");
  await page.waitForFunction(() => !document.getElementById("reschedule"), { timeout: PATIENCE });
  await stayed(page);
  await look(page, "a post that fails");
  await shoot(page, "post", 720);

  await open(page, "");
  for (const { id } of post.targets) await page.waitForSelector(`#stuck-${id}`, { timeout: PATIENCE });
  await look(page, "an overview of trouble");
  await shoot(page, "overview", 720);
  await connectionLost(page);
  for (const account of Object.values(accounts)) await spoil(account, "503", 0);
  for (const { id } of post.targets) {
    // Unless it was retried automatically in the meantime.
    if (await tap(page, `#retry-${id}`)) await says(page, "The next attempt starts now.");
    await mark(page);
    await page.waitForFunction((id) => !document.getElementById(`stuck-${id}`), { timeout: PATIENCE }, id);
    await stayed(page);
  }

  await open(page, `/posts/${post.id}`);
  await says(page, "View on X");
  await says(page, "View on Bluesky");
  const workflow = await page.$eval("a[href*='/namespaces/']", (link) => link.href);
  check(workflow.startsWith(dev.temporal_ui_url), workflow);
  const shown = await fetch(workflow);
  await shown.text();
  check(shown.ok, `${workflow}: ${shown.status}`);
  await look(page, "a published post");
}

/** A part of a thread is refused: its text and files are changed on a page of its own, and it is published. */
async function tornThread(page, { x }) {
  const boat = { id: await upload("boat.png", "image/png", await paintedPicture(page)), alt_text: "A boat" };
  const containers = [{ content: "One of two." }, { content: "Two of two #sandbox-400", media: [boat] }];
  const post = await call("POST", "/posts", { containers, accounts: [x.id] });
  await open(page, `/posts/${post.id}`);
  await says(page, "Part 2 of 2: X rejected the post (400).");
  await look(page, "a torn thread");
  const part = `/posts/${post.id}/targets/${post.targets[0].id}/parts/1`;
  check(await page.$(`a[href='/dashboard${part}']`), "the part has no link");
  await open(page, part);
  await look(page, "a part that is missing");
  await page.$eval("#text-1", (field) => (field.value = "Two of two."));
  await page.$eval(`#alt-${boat.id}`, (field) => (field.value = "A boat at dusk"));
  const file = join(mkdtempSync(join(tmpdir(), "fanfare-part-")), "lamp.png");
  writeFileSync(file, await paintedPicture(page));
  await (await page.$("#files")).uploadFile(file);
  await page.waitForFunction(() => document.querySelectorAll("[data-chosen]").length === 2, { timeout: PATIENCE });
  await look(page, "a part that is missing, with another file");
  await press(page, "Keep it");
  await says(page, "The part is kept.");
  await press(page, "Publish what is missing");
  await page.waitForFunction(() => !document.body.innerText.includes("Incomplete"), { timeout: PATIENCE });
  const { variants, targets } = await call("GET", `/posts/${post.id}`);
  check(targets[0].missing.length === 0, targets);
  const { media } = variants[0].containers[1];
  check(media.length === 2 && media[0].alt_text === "A boat at dusk", media);
}

async function redeliverAndRotate(page, hook, old) {
  const { id } = (await call("GET", "/webhooks")).data.find((webhook) => webhook.url === hook.url);
  check(signs(old, await hook.after(0)), "the first delivery is not signed with the secret that was shown");
  await open(page, `/webhooks/${id}?status=delivered`);
  await says(page, "Redeliver");
  const again = hook.after(hook.count());
  await press(page, "Redeliver");
  await says(page, "The delivery was queued again.");
  check(signs(old, await again), "the redelivery is not signed");
  await says(page, "Delivered");
  await look(page, "an endpoint with deliveries");
  await press(page, "#deliveries tbody a");
  await says(page, "Payload");
  await look(page, "a delivery");
  await page.browserContext().overridePermissions(origin, ["clipboard-sanitized-write"]);
  await page.click("[aria-label='Copy the event id']");
  await says(page, "Copied.");
  await open(page, `/webhooks/${id}`);

  await press(page, "Reveal");
  check((await secret(page)) === old, "the revealed secret is wrong");
  await press(page, "Rotate…");
  check(await page.$("dialog[open]"), "no dialog asks");
  await look(page, "a dialog");
  await press(page, "Cancel");
  await press(page, "Rotate…");
  await press(page, "Rotate the secret");
  const fresh = await secret(page);
  check(fresh !== old, "the secret did not change");
  await look(page, "a rotated secret");
  await open(page, `/webhooks/${id}`);
  await says(page, "Redeliver");
  const rotated = hook.after(hook.count());
  await press(page, "Redeliver");
  const sent = await rotated;
  check(signs(fresh, sent) && !signs(old, sent), "the old secret still signs");

  await press(page, "Send a test");
  await says(page, "The endpoint took the sample: it answered 200.");
  await press(page, "Pause");
  await says(page, "Nothing is delivered to this endpoint until it is resumed.");
  await press(page, "Resume");
  await says(page, "Events are delivered to this endpoint again.");
  return `/webhooks/${id}`;
}

async function write(page, accounts) {
  await open(page, "/compose");
  await look(page, "the composer");
  await page.type("#text-1", "Hello from the dashboard. ".repeat(13));
  await press(page, "Add a first comment");
  await page.type("#text-2", "Tickets at the door.");
  for (const platform of ["x", "bluesky"]) await page.click(`input[name=account][value='${accounts[platform].id}']`);
  // The preview beside the form follows the text, and counts as each platform does.
  await page.waitForFunction(() => document.querySelector("[data-counts]").innerText.includes("338 / 300"));
  await page.waitForSelector("#preview .mock.bluesky");
  await look(page, "the composer with a preview");
  await press(page, "Preview");
  await says(page, "Not every platform would accept it");
  await says(page, "338 of 300");
  await look(page, "a preview with findings");
  await shoot(page, "preview", 640, { scheme: "dark" });
  await press(page, "Back to the text");
  await page.$eval("#text-1", (text) => (text.value = "Hello from the dashboard: we play on Friday."));
  await press(page, "Preview");
  await says(page, "Every platform would accept it.");
  await look(page, "a preview");
  await press(page, "Publish now");
  await says(page, "View on X");
  await says(page, "View on Bluesky");
}

/** Consents in the sandbox as a user. */
async function consent(page, username) {
  await page.setViewport({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(wide <= 0, `the platform’s consent page is ${wide} pixels too wide for a phone`);
  await page.setViewport({ width: 1280, height: 900 });
  await page.$eval("input[name=username]", (input, name) => (input.value = name), username);
  await Promise.all([page.waitForNavigation(), page.click("button[value=allow]")]);
}

async function connect(page, accounts) {
  await open(page, "/accounts");
  await look(page, "accounts");
  await press(page, "Check now");
  await says(page, "It works: the platform answered just now.");
  await open(page, "/accounts");
  await page.select("#connect-platform", "facebook");
  await press(page, "[action$='/accounts/connect'] button");
  await look(page, "a consent page");
  await consent(page, "hallepage,barpage");
  await page.waitForSelector("input[type=checkbox]");
  await page.click("input[type=checkbox]");
  await page.click("button[type=submit], main button");
  await says(page, "The account of Facebook is connected.");
  await says(page, "hallepage on Facebook");

  // The platform revokes the grant: the page shows it, and reconnecting fixes it.
  const revoke = `${dev.sandbox_url}/_accounts/x/${accounts.x.username}/tokens/revoke`;
  await (await fetch(revoke, { method: "POST" })).text();
  await press(page, `#account-${accounts.x.id} form[action$=check] button`);
  await says(page, "It does not work. The platform says:");
  await look(page, "accounts, one of which is refused");
  await press(page, `#account-${accounts.x.id} form[action$=reconnect] button`);
  await consent(page, accounts.x.username);
  await says(page, "The account of X is connected.");
  await press(page, `#account-${accounts.x.id} form[action$=check] button`);
  await says(page, "It works: the platform answered just now.");

  const body = JSON.stringify({ platform: "bluesky", username: "halle.bsky.social" });
  const headers = { "Content-Type": "application/json" };
  const made = await (await fetch(`${dev.sandbox_url}/_accounts`, { method: "POST", headers, body })).json();
  await page.type("#identifier", "halle.bsky.social");
  await page.type("#app_password", "wrong");
  await press(page, "[aria-labelledby=bluesky-title] button");
  await says(page, "The service does not know this login");
  await page.type("#app_password", made.grant.extra.app_password);
  await press(page, "[aria-labelledby=bluesky-title] button");
  await says(page, "The account is connected.");
  await says(page, "halle.bsky.social on Bluesky");
  const { data } = await call("GET", "/social-accounts?platform=bluesky");
  const halle = data.find((account) => account.username === "halle.bsky.social");
  await press(page, `#account-${halle.id} [action$=disconnect] button`);
  await says(page, "The account was disconnected.");
}

async function others(page) {
  await open(page, "/posts");
  await look(page, "posts");
  await page.select("#platform", "bluesky");
  await press(page, "Filter");
  check(/platform=bluesky/.test(page.url()), page.url());
  await says(page, "we play on Friday");
  await page.keyboard.press("/");
  await page.keyboard.type("friday");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await says(page, "we play on Friday");
  await look(page, "a search");
  await shortcuts(page);
  await calendar(page);
  await analytics(page);
  await open(page, "/events");
  await says(page, "post.published");
  await look(page, "events");
  await press(page, "#events tbody a");
  await says(page, "Payload");
  await look(page, "an event");
  await open(page, "/requests");
  await says(page, "POST /api/v1/posts");
  await look(page, "requests");
  await open(page, "/audit");
  await look(page, "the audit trail");
  await open(page, "/media");
  const picture = join(mkdtempSync(join(tmpdir(), "fanfare-")), "dot.gif");
  writeFileSync(picture, Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64"));
  await (await page.$("#files")).uploadFile(picture);
  await page.waitForSelector("#media-list > li", { timeout: PATIENCE });
  await look(page, "an uploaded file");
  await press(page, "Import from URL…");
  await page.type("#url", `${sandbox}/nothing-there.png`);
  await press(page, "Import");
  await says(page, "The file is being fetched");
  await look(page, "media");
  await open(page, "/keys");
  await page.type("#name", "Robot");
  await page.click("input[value='posts:read']");
  await press(page, "Create");
  await says(page, "never again");
  await look(page, "keys");
  await open(page, "/usage");
  await look(page, "usage");
  await open(page, "/team");
  await page.type("#email", "grace@example.com");
  await press(page, "Invite");
  const invitation = await page.$eval("#invite-url", (element) => element.innerText);
  await look(page, "the team");
  await open(page, invitation);
  await look(page, "an invitation");
  await passkeys(page.browser(), invitation);
  await open(page, "/nowhere", 404);
  await look(page, "a page that is not there");
}

/** Goes by keyboard, and turns that off and on. */
async function shortcuts(page) {
  const helps = () => page.$("dialog[open] .shortcuts");
  await open(page, "/posts");
  await page.click("[data-select-all]");
  await says(page, "selected");
  await look(page, "posts, all selected");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  check(await helps(), "the shortcuts are not shown");
  await look(page, "the shortcuts");
  await page.keyboard.press("Escape");
  // Until it is gone, the keys may still go to it.
  await page.waitForFunction(() => !document.querySelector("dialog"), { timeout: PATIENCE });
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForFunction(() => location.pathname.endsWith("/team"), { timeout: PATIENCE });
  for (const isOn of [false, true]) {
    await open(page, "/me");
    await page.click("#shortcuts");
    await look(page, "the own page of a key");
    await open(page, "/posts");
    await page.keyboard.press("?");
    check(Boolean(await helps()) === isOn, `shortcuts are ${isOn ? "off" : "on"}`);
  }
}

/** Reads the figures of a post from the sandbox, and looks at the charts. */
async function analytics(page) {
  const [post] = (await call("GET", "/posts?status=published&limit=1")).data;
  await open(page, `/posts/${post.id}`);
  await press(page, `[href='/dashboard/analytics/posts/${post.id}']`);
  await press(page, "Refresh");
  await says(page, "The platforms were asked for the latest figures.");
  await page.waitForSelector(".chart canvas");
  await look(page, "the analytics of a post");
  await open(page, "/analytics?days=7");
  await page.waitForSelector(".chart canvas");
  await page.click(".chart summary");
  await look(page, "analytics");
}

/** Moves a scheduled post to another day, by its form and by dragging it. */
async function calendar(page) {
  const accounts = (await call("GET", "/social-accounts?platform=x")).data;
  const body = { content: "שלום, in a while", accounts: [accounts[0].id], scheduled_at: "2031-03-04T18:30:00Z" };
  const post = await call("POST", "/posts", body);
  await open(page, "/calendar?month=2031-03");
  await says(page, "19:30");
  await says(page, "שלום, in a while");
  const direction = await page.$eval(`#post-${post.id} [dir=auto]`, (text) => getComputedStyle(text).direction);
  check(direction === "rtl", `Hebrew is written ${direction}`);
  await look(page, "the calendar");
  await page.evaluate((id) => {
    const transfer = new DataTransfer();
    const send = (element, name) =>
      element.dispatchEvent(new DragEvent(name, { bubbles: true, dataTransfer: transfer }));
    send(document.getElementById(`post-${id}`), "dragstart");
    send(document.querySelector("[data-day='2031-03-20']"), "drop");
  }, post.id);
  await says(page, "The post was moved.");
  check((await call("GET", `/posts/${post.id}`)).scheduled_at === "2031-03-20T18:30:00.000Z", "it was not moved");
  await open(page, "/calendar?week=2031-03-20");
  await page.focus(`#post-${post.id} a`);
  await page.keyboard.down("Shift");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("ArrowRight")]);
  await page.keyboard.up("Shift");
  check((await call("GET", `/posts/${post.id}`)).scheduled_at.startsWith("2031-03-21"), "the key did not move it");
  await page.click(`#post-${post.id} summary`);
  await look(page, "a week of the calendar");
  await open(page, `/posts/${post.id}`);
  await look(page, "a scheduled post");
  // An open page of a deleted post goes to what is there then, which would end the next step's navigation.
  await open(page, "/team");
  await call("DELETE", `/posts/${post.id}`);
}

/** Joins with a passkey, and signs out and in again with it, in a browser of its own, by the name of this machine. */
async function passkeys(browser, invitation) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const client = await page.createCDPSession();
  await client.send("WebAuthn.enable");
  await client.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  const answer = async () =>
    Promise.all([page.waitForNavigation(), page.click("form[data-passkey] button")]);
  await page.goto(invitation);
  await look(page, "an invitation");
  await page.type("#name", "Grace");
  await answer();
  await says(page, "Grace, viewer");
  await page.goto(`${origin}/dashboard/me`);
  await look(page, "the own page");
  await page.type("#passkey-name", "Another");
  await page.click("form[data-passkey] button");
  await says(page, "This device has a passkey for you already.");
  await press(page, "Sign out");
  await look(page, "signing in with a passkey");
  await answer();
  await says(page, "Grace, viewer");
  await page.goto(`${origin}/dashboard/keys`);
  await says(page, "Your role, viewer, does not include the scope keys:write.");
  await look(page, "a page that a role does not open");
  await context.close();
}

async function armAndRecover(page, { x }) {
  await open(page, dev.sandbox_url);
  await look(page, "the sandbox");
  await press(page, `[id='x-${x.username}'] button[value='429']`);
  await says(page, "Next attempt: 429");
  await look(page, "the sandbox with an armed fault");
  await shoot(page, "sandbox", 840, { width: 1280 });
  const post = await call("POST", "/posts", { content: "A bit too fast", accounts: [x.id] });
  await open(page, `/posts/${post.id}`);
  // The timeline keeps the failure even after the next attempt.
  await says(page, "X is limiting how often it may be called. Too Many Requests");
  await tap(page, `#retry-${post.targets[0].id}`);
  await says(page, "View on X");
  await open(page, `${dev.sandbox_url}/x/${x.username}`);
  await press(page, "[id] .mock-time a");
  await says(page, "A bit too fast");
  await look(page, "a post in the sandbox");
  await press(page, "Control panel");
  await says(page, "POST api.x.com/2/tweets");
  await open(page, `${dev.sandbox_url}/x/nobody`, 404);
  await look(page, "a page that is not in the sandbox");
}

/** Uploads a file by the API, and returns its id. */
async function upload(filename, type, body) {
  const file = { filename, content_type: type, size: body.length };
  const { id, upload_url: place, upload_headers: headers } = await call("POST", "/media/upload", file);
  const sent = await fetch(place, { method: "PUT", headers, body });
  await sent.text();
  check(sent.ok, `${filename} was not taken: ${sent.status}`);
  await call("POST", `/media/${id}/confirm`);
  return id;
}

/** Draws a picture. */
async function paintedPicture(page) {
  const drawn = await page.evaluate(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 640 });
    const context = canvas.getContext("2d");
    const sky = context.createLinearGradient(0, 0, 640, 640);
    sky.addColorStop(0, "#6d2ee0");
    sky.addColorStop(1, "#f2a65a");
    context.fillStyle = sky;
    context.fillRect(0, 0, 640, 640);
    return canvas.toDataURL("image/png").split(",")[1];
  });
  return Buffer.from(drawn, "base64");
}

/** Returns the headers of an MP4 video of five seconds, which platforms read, without pictures. */
function film() {
  const words = (...all) => Buffer.concat(all.map((word) => Buffer.from(word.toString(16).padStart(8, "0"), "hex")));
  const box = (kind, ...parts) => {
    const content = Buffer.concat(parts);
    return Buffer.concat([words(content.length + 8), Buffer.from(kind), content]);
  };
  const times = (head, tail) => [Buffer.alloc(head), words(1000, 5000), Buffer.alloc(tail)];
  const unity = words(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000);
  const track = box("tkhd", Buffer.alloc(40), unity, words(640 * 0x10000, 360 * 0x10000));
  const kind = box("hdlr", Buffer.alloc(8), Buffer.from("vide"), Buffer.alloc(13));
  const media = box("mdia", box("mdhd", ...times(12, 4)), kind);
  const movie = box("moov", box("mvhd", ...times(12, 80)), box("trak", track, media));
  return Buffer.concat([box("ftyp", Buffer.from("isom\0\0\x02\0isommp42")), movie, box("mdat", Buffer.alloc(64))]);
}

/** Publishes a picture on every platform, on YouTube a video, and looks at how the sandbox shows it. */
async function everywhere(page) {
  const picture = { id: await upload("sunset.png", "image/png", await paintedPicture(page)), alt_text: "A sunset" };
  const video = { id: await upload("sunset.mp4", "video/mp4", film()) };
  const { data } = await call("GET", "/social-accounts?limit=100");
  const post = await call("POST", "/posts", {
    containers: [{ content: "שלום, we play on Friday.", media: [picture] }],
    config: { youtube: { media: [video], title: "שלום" } },
    accounts: data.map((account) => account.id),
  });
  await open(page, `/posts/${post.id}`);
  const isLive = (count) => [...document.links].filter((link) => /^View on /.test(link.innerText)).length >= count;
  await page.waitForFunction(isLive, { timeout: PATIENCE }, data.length);
  // Each platform's page is laid out as the platform's.
  for (const { platform, username, profile_url: profile } of data) {
    check(!profile || profile.startsWith(sandbox), `the profile of ${platform} is not in the sandbox: ${profile}`);
    await open(page, `${dev.sandbox_url}/${platform}/${username}`);
    check(await page.$(`main.wall.${platform} .mock-file :is(img, video)`), `this is no page of ${platform}`);
    const side = await page.$eval(".mock-title, .mock-text", (text) => getComputedStyle(text).direction);
    check(side === "rtl", `Hebrew is written ${side} on ${platform}`);
    await look(page, `a profile on ${platform}`);
  }
}

/** The operators' pages, without scripts, which they do not need: what is stuck is retried and ended. */
async function operators(page, { x, bluesky }) {
  const holds = async (words) => {
    const text = await page.evaluate(() => document.body.innerText);
    check(words instanceof RegExp ? words.test(text) : text.includes(words), `${page.url()}: no “${words}” in ${text}`);
  };
  await open(page, "/operators", 401);
  await look(page, "the operators’ sign-in page");
  const signIn = async (token) => {
    await page.$eval("#name", (input) => (input.value = "Ada Lovelace"));
    await page.type("#token", token);
    await press(page, "Sign in");
  };
  await signIn("wrong");
  await holds("This is not the operators’ token.");
  await look(page, "the operators’ sign-in page with an error");
  await signIn(dev.operator_token);
  await holds("All organizations");
  check((await page.evaluate(() => document.cookie)) === `fanfare-zone=${ZONE}`, "a script can read the session’s cookie");
  await look(page, "the operators’ overview");

  for (const account of [x, bluesky]) await spoil(account, "429", 99);
  const post = await call("POST", "/posts", { content: "Stuck on two platforms", accounts: [x.id, bluesky.id] });
  await open(page, `/posts/${post.id}`);
  await says(page, "X is limiting how often it may be called");
  await says(page, "Bluesky is limiting how often it may be called");
  await open(page, "/operators/stuck?after=0");
  await holds("2 targets match");
  await look(page, "the list of what is stuck");
  await phone(page);
  await open(page, "/operators/stuck?after=0");
  const [one, two] = post.targets;
  await press(page, `[aria-label='Story of target ${one.id}']`);
  await holds("Activity publish, attempt");
  await holds("All rows, as fanfare ops show prints them");
  await look(page, "the story of a post");
  const link = await page.$eval(`a[href*='/workflows/target-${one.id}']`, (link) => link.href);
  check(link.startsWith(dev.temporal_ui_url), link);

  await page.setJavaScriptEnabled(false);
  await open(page, "/operators/stuck?after=0");
  await page.click(`input[value='${one.id}']`);
  await page.click(`input[value='${two.id}']`);
  await page.type("#reason", "A walk through the pages");
  await press(page, "End");
  await holds("2 targets have ended.");
  await holds("0 targets match");
  await page.type("#reconcile-reason", "A walk through the pages");
  await press(page, "Reconcile");
  // On a slow machine a row is overdue.
  await holds(/\d messages? for (an )?overdue rows? w(as|ere) written\./);
  await open(page, `/operators/freezes?kind=account&subject=${x.id}`);
  await page.type("#reason", "A walk through the pages");
  await press(page, "Freeze");
  await holds("1 freeze is in force.");
  await page.setJavaScriptEnabled(true);
  await open(page, "/operators/freezes");
  await look(page, "freezes");
  await page.type("input[id^=rate-]", "60");
  await press(page, "Release");
  await holds("Nothing is frozen.");
  for (const account of [x, bluesky]) await spoil(account, "429", 0);

  await open(page, `/operators/posts/${post.id}`);
  await page.click(`#target-${one.id} summary`);
  await page.type(`#retry-${one.id}`, "A walk through the pages");
  await press(page, "[aria-labelledby=dialog-title] button[value=retry]");
  await holds("1 dead target starts over.");
  await holds("target.retried by Ada Lovelace");
  await open(page, "/operators/deliveries");
  await look(page, "repeating deliveries");
  await open(page, "/operators");
  await page.type("#id", dev.org_id);
  await press(page, "Open");
  await page.type("#name", "From an operator");
  await press(page, "Issue");
  check((await page.$eval("#made", (element) => element.innerText)).startsWith("sk_live_"), "no key was issued");
  await look(page, "an organization with a new key");
  await open(page, "/operators/organizations");
  await look(page, "organizations");
  await press(page, "Sign out");
  await open(page, "/operators/stuck", 401);
}

async function withoutScripts(page, endpoint) {
  await page.setJavaScriptEnabled(false);
  const holds = async (words) => check((await page.content()).includes(words), `${page.url()}: no “${words}”`);
  await open(page, endpoint);
  await press(page, "Remove…");
  await press(page, "Remove the endpoint");
  await holds("The endpoint was removed.");
  await press(page, "Sign out");
  await page.type("#key", dev.test_key);
  await press(page, "Sign in with an API key");
  await holds("Latest posts");
  await page.setJavaScriptEnabled(true);
}

/** The link that `fanfare dev` prints. */
async function signInByLink(browser) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.goto(dev.sign_in_url);
  await says(page, "Test mode");
  check(!(await page.evaluate(() => location.href + document.referrer)).includes("key"), page.url());
  await context.close();
}

async function walk(page) {
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    // Violations of the content security policy are logged here; so are expected error statuses.
    const isStatus = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isStatus) faults.push(message.text());
  });
  page.on("request", (request) => {
    const { protocol, origin: from } = new URL(request.url());
    // The browser's own controls use data URLs.
    if (protocol !== "data:" && ![origin, sandbox].includes(from)) faults.push(`loads ${request.url()}`);
  });
  const { data } = await call("GET", "/social-accounts?limit=100");
  const of = (platform) => data.findLast((account) => account.platform === platform);
  const accounts = { x: of("x"), bluesky: of("bluesky") };

  await page.emulateTimezone(ZONE);
  await signInByLink(page.browser());
  await open(page, "", 401);
  await signIn(page);
  const hook = await receiver();
  await open(page, "/webhooks");
  await look(page, "webhooks");
  await page.type("#url", hook.url);
  await press(page, "Register");
  const old = await secret(page);
  check(old.startsWith("whsec_"), old);
  await look(page, "a new endpoint");
  await furnish(page, accounts);
  await failAndRecover(page, accounts);
  await tornThread(page, accounts);
  const endpoint = await redeliverAndRotate(page, hook, old);
  await write(page, accounts);
  await armAndRecover(page, accounts);
  await everywhere(page);
  await connect(page, accounts);
  await rightToLeft(page, accounts);
  await others(page);
  await operators(page, accounts);
  await withoutScripts(page, endpoint);
  hook.close();
  check(faults.length === 0, faults);
}

const browser = await launch(chromium);
try {
  await walk(await browser.newPage());
  console.log(`the dashboard works: ${looks} page checks, each in light and dark, without violations`);
} finally {
  await browser.close();
}
