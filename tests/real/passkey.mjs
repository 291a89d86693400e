// Joins and signs in with a passkey in a real browser, with its virtual authenticator.
//
//   node passkey.mjs CHROMIUM
//
// Reads a line of JSON for each step from stdin, and prints a line with what the page shows then, or with the error:
// `{"open": URL}` opens a page, `{"fill": SELECTOR, "with": TEXT}` fills a field, `{"press": SELECTOR}` clicks,
// `{"verify": BOOLEAN}` makes the authenticator verify its user or not, and `{"until": WORDS}` waits for what the page then
// says. Ends with stdin.

import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";

const [executablePath] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const page = await browser.newPage();
const client = await page.createCDPSession();
await client.send("WebAuthn.enable");
const { authenticatorId } = await client.send("WebAuthn.addVirtualAuthenticator", {
  options: {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  },
});

/** Asks the page, again if another page came meanwhile. */
async function ask(question, ...args) {
  for (;;) {
    try {
      return await page.evaluate(question, ...args);
    } catch (error) {
      if (!/context|detached|navigat/i.test(error.message)) throw error;
    }
  }
}

/** Waits until the page has some words. */
async function says(words) {
  const has = (words) => Boolean(document.body?.innerText.includes(words));
  const deadline = Date.now() + 120_000;
  while (!(await ask(has, words))) {
    if (Date.now() > deadline) throw new Error(`the page does not say ${words}`);
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

async function step(order) {
  if (order.open) await page.goto(order.open);
  if (order.fill) await page.type(order.fill, order.with);
  if ("verify" in order) {
    await client.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: order.verify });
  }
  // Also what a closed menu has.
  if (order.press) await page.$eval(order.press, (button) => button.click());
  if (order.until) await says(order.until);
  return { url: page.url(), text: await ask(() => document.body.innerText) };
}

console.log("ready");
for await (const line of createInterface(process.stdin)) {
  try {
    console.log(JSON.stringify(await step(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
await browser.close();
process.exit(0);
