// Keyboard shortcuts: `/` searches, `?` lists them all, `g` and a letter opens a page. They are off while one types, and
// where a person has turned them off (WCAG 2.1.4). Without this script every page is reached by its link.
"use strict";
(() => {
  const OFF = "fanfare-shortcuts-off";
  const SECOND_KEY_TIME = 1500;
  /** Pages by letter, below the dashboard. */
  const PAGES = {
    h: "", p: "/posts", c: "/calendar", n: "/compose", m: "/media", a: "/accounts", i: "/analytics",
    w: "/webhooks", k: "/keys", e: "/events", r: "/requests", t: "/team", l: "/audit", u: "/usage",
  };
  const OPERATOR_PAGES = { h: "", s: "/stuck", f: "/freezes", w: "/deliveries", o: "/organizations" };
  const isOperator = location.pathname.startsWith("/dashboard/operators");
  const base = isOperator ? "/dashboard/operators" : "/dashboard";
  const pages = Object.entries(isOperator ? OPERATOR_PAGES : PAGES);
  /** The link of the navigation to a page; none if one may not open it. */
  const linkTo = (path) => document.querySelector(`.side nav a[href="${base}${path}"]`);
  const search = document.querySelector('[data-focus-key="/"]');

  function isOff() {
    try {
      return localStorage.getItem(OFF) !== null;
    } catch {
      return false;
    }
  }

  /** Shows all shortcuts. */
  function help() {
    const { ask, make } = fanfare;
    const list = make("dl", { className: "shortcuts" });
    const row = (keys, text) =>
      list.append(make("dt", {}, ...keys.flatMap((key) => [make("kbd", {}, key), " "])), make("dd", {}, text));
    if (search) row(["/"], "Search");
    for (const [letter, path] of pages) {
      const link = linkTo(path);
      if (link) row(["g", letter], link.textContent.trim());
    }
    row(["?"], "These shortcuts");
    row(["Esc"], "Close");
    const setting = make("a", { href: "/dashboard/me#shortcuts-title" }, "Turn them off");
    ask("Keyboard shortcuts", isOperator ? [list] : [list, make("p", {}, setting)], "Close");
  }

  let begun = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isOff()) return;
    if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
    const wasBegun = event.timeStamp - begun < SECOND_KEY_TIME;
    begun = -Infinity;
    if (wasBegun) {
      const link = pages.filter(([letter]) => letter === event.key).map(([, path]) => linkTo(path))[0];
      if (link) {
        event.preventDefault();
        link.click();
      }
    } else if (event.key === "g") {
      begun = event.timeStamp;
    } else if (event.key === "?") {
      event.preventDefault();
      help();
    } else if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
    }
  });

  // The setting, on the page about oneself.
  const setting = document.getElementById("shortcuts");
  if (setting) {
    setting.closest("[hidden]").hidden = false;
    setting.checked = !isOff();
    setting.addEventListener("change", () => {
      if (setting.checked) localStorage.removeItem(OFF);
      else localStorage.setItem(OFF, "");
    });
  }
})();
