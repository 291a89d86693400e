// Connects accounts in a real browser, on Fanfare's own pages: by keyboard, on a phone's screen, without
// scripts, in light and dark, without external resources but a logo, and without violations reported by axe.
// Usage: choice BASE_URL KEY CHROMIUM

import { createServer } from "node:http";
import { check, inspect as hold, launch } from "./browser.mjs";

const [baseUrl, key, chromium] = process.argv.slice(2);

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const answer = await fetch(baseUrl + path, { method, headers, body: body && JSON.stringify(body) });
  check(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json();
}

/** Opens a platform's consent page, decides, and follows the redirects. */
async function login(page, platform, username, decision, body = {}) {
  const { auth_url } = await call("POST", `/social-networks/${platform}/auth-url`, body);
  await page.goto(auth_url);
  await page.$eval("input[name=username]", (input, name) => (input.value = name), username);
  await page.focus(`button[value=${decision}]`);
  await submit(page);
}

/** Checks one of our pages. */
async function inspect(page, name) {
  // Only for axe: the pages are used with scripts disabled.
  await page.setJavaScriptEnabled(true);
  await hold(page, name);
  await page.setJavaScriptEnabled(false);
}

/** Returns the focused element: its kind, its label, whether the focus is visible, and its height for touch. */
const focus = (page) =>
  page.evaluate(() => {
    const it = document.activeElement;
    const box = it.closest("label") ?? it;
    const style = getComputedStyle(box);
    return {
      kind: it.type ?? it.localName,
      label: box.textContent.trim(),
      seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
      height: box.getBoundingClientRect().height,
    };
  });

async function submit(page) {
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
}

/** Selects the first and third of three options, by keyboard only. */
async function choose(page) {
  await page.keyboard.press("Tab");
  for (let line = 0; line < 3; line += 1) {
    const at = await focus(page);
    check(at.kind === "checkbox" && at.label && at.seen && at.height >= 44, at);
    if (line !== 1) await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
  }
  const at = await focus(page);
  check(at.kind === "submit" && at.seen && at.height >= 44, at);
  await submit(page);
}

async function connected() {
  const { data } = await call("GET", "/social-accounts?platform=facebook");
  return data.map((account) => account.username).sort();
}

const client = createServer((_, response) => response.end("<title>Back</title>"));
await new Promise((listening) => client.listen(0, "127.0.0.1", listening));
const browser = await launch(chromium);
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 360, height: 740, isMobile: true, hasTouch: true });
  await page.setJavaScriptEnabled(false);
  const { origin } = new URL(baseUrl);
  const refused = [];
  let ours = false;
  page.on("request", (request) => {
    if (request.isNavigationRequest()) ours = new URL(request.url()).origin === origin;
    // A browser requests an icon on its own.
    else if (ours && !request.url().endsWith("/favicon.ico")) refused.push(request.url());
  });
  // Violations of the content security policy are logged to the console; so are expected error statuses.
  page.on("console", (message) => {
    const isStatus = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && ours && !isStatus) refused.push(message.text());
  });

  await login(page, "facebook", "adaspage,bobspage,evespage", "allow");
  check(new URL(page.url()).pathname.includes("/connect/choose/"), page.url());
  // It looks like the dashboard: its logo, and its color.
  check(await page.$("header svg"), "no logo");
  const color = await page.$eval("button", (button) => getComputedStyle(button).backgroundColor);
  check(color === "rgb(122, 46, 142)", color);
  await inspect(page, "the choice");
  // Without a selection, the same page shows an error, also to screen readers.
  for (let press = 0; press < 4; press += 1) await page.keyboard.press("Tab");
  await submit(page);
  check((await page.title()).startsWith("Error: "), await page.title());
  check(await page.$eval("[role=alert]", (alert) => alert.textContent.includes("at least one")), "no alert");
  await inspect(page, "the choice that was not made");
  await choose(page);
  check((await page.title()).startsWith("Connected"), await page.title());
  await inspect(page, "the end");
  const names = await connected();
  check(names.includes("adaspage") && names.includes("evespage") && !names.includes("bobspage"), names);

  // With a redirect URI, our page redirects there: its content security policy must allow the form.
  const redirect_uri = `http://127.0.0.1:${client.address().port}/done`;
  await login(page, "facebook", "adaspage,bobspage,evespage", "allow", { redirect_uri });
  const token = new URL(page.url()).searchParams.get("token");
  check(token, page.url());
  await page.goto(`${baseUrl}/connect/choose/${token}`);
  await inspect(page, "the choice with some connected already");
  await choose(page);
  const back = new URL(page.url());
  check(back.href.startsWith(redirect_uri) && back.searchParams.get("status") === "connected", back.href);
  check(back.searchParams.get("account_ids").split(",").length === 2, back.href);

  await login(page, "x", "ada", "deny");
  check((await page.content()).includes("access_denied"), await page.content());
  await inspect(page, "the refusal");
  await login(page, "google_business", "ada", "deny");
  check((await page.$eval("main", (main) => main.textContent)).includes("Google Business Profile"), "no name");
  await page.goto(`${baseUrl}/connect/callback?state=made-up`);
  await inspect(page, "the invalid link");
  check(refused.length === 0, refused);

  // With a branding: its logo is loaded, without a referrer, and nothing else; each color is readable.
  const logo = "https://cdn.acme.example/logo.svg";
  const headers = [];
  await page.setRequestInterception(true);
  page.on("request", (request) => {
    if (request.url() !== logo) return request.continue();
    headers.push(request.headers());
    const body = '<svg xmlns="http://www.w3.org/2000/svg" width="96" height="48"><rect width="96" height="48"/></svg>';
    request.respond({ contentType: "image/svg+xml", body });
  });
  const texts = { heading: "Dein Kanal", description: "Acme veröffentlicht, was du freigibst." };
  const pages = { choice: { ...texts, button: "Verbinden" }, failure: texts };
  for (const accent_color of ["#ffffff", "#000000", "#ffcc00", "#15171b", "#808080"]) {
    const links = { support_url: "https://acme.example/help", imprint_url: "https://acme.example/imprint" };
    const branding = { name: "Acme", logo_url: logo, accent_color, ...links, pages };
    await call("PUT", "/connect/branding", branding);
    headers.length = 0;
    await login(page, "facebook", "adaspage,bobspage", "allow");
    check((await page.title()) === "Dein Kanal · Acme", await page.title());
    check(await page.$eval("img", (image) => image.naturalWidth === 96 && image.alt === "Acme"), "no logo");
    await inspect(page, `the choice in ${accent_color}`);
    await login(page, "x", "ada", "deny");
    check((await page.content()).includes("access_denied"), await page.content());
    await inspect(page, `the refusal in ${accent_color}`);
    check(headers.length > 0 && headers.every((sent) => !sent.referer), headers);
  }
  check(refused.every((url) => url === logo), refused);
  await call("PUT", "/connect/branding", {});
  console.log("the connect pages work by keyboard, on a phone and with a screen reader");
} finally {
  await browser.close();
  client.close();
}
