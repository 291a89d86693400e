// Starts a browser, and checks the requirements of every page of Fanfare.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

export function check(holds, what) {
  if (!holds) throw new Error(typeof what === "string" ? what : JSON.stringify(what, null, 1));
}

/**
 * Starts a browser, without its sandbox, which containers lack: all pages are our own. A call to it fails after three
 * minutes; on a busy machine a call took more than one minute.
 */
export function launch(chromium) {
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"];
  return puppeteer.launch({ executablePath: chromium, args, protocolTimeout: 180_000 });
}

export const paint = (page, scheme) =>
  page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: scheme },
    // Contrast is measured after transitions.
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);

/** Checks a page's width, language and accessibility. Scripts must be enabled. */
export async function inspect(page, name) {
  const { wide, language } = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    language: document.documentElement.lang,
  }));
  check(wide <= 0 && language === "en", `${name} is ${wide} pixels too wide, or its language is ${language}`);
  for (const scheme of ["light", "dark"]) {
    await paint(page, scheme);
    // Injected with the debugger, to which the page's content security policy does not apply.
    await page.evaluate(axe);
    const found = await page.evaluate(
      (tags) => globalThis.axe.run(document, { runOnly: tags, resultTypes: ["violations"] }),
      TAGS,
    );
    const faults = found.violations.map((fault) => [
      fault.id,
      fault.nodes.map((node) => [node.html, node.failureSummary]),
    ]);
    check(faults.length === 0, { page: name, scheme, faults });
    check(found.passes.some((rule) => rule.id === "color-contrast"), `${name}: contrast was not checked`);
  }
}
