// What makes every page quicker to use where scripts run: the browser's time zone, notices that go away by themselves,
// dialogs for actions that need an answer, selections, and buttons that copy. Without this script the same pages do the same.
"use strict";
(() => {
  // The server shows and reads times in this zone, unless a person has chosen another.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; secure" : "";
  if (zone) document.cookie = `fanfare-zone=${zone}; path=/dashboard; max-age=34560000; samesite=lax${secure}`;

  // `fanfare dev` prints a link with a key in its fragment, which is sent nowhere. Only a server on this machine takes
  // it: no link may sign anybody in to somebody else's organization.
  const key = document.getElementById("key");
  if (key && location.hash.startsWith("#key=") && location.hostname === "localhost") {
    key.value = location.hash.slice("#key=".length);
    history.replaceState(null, "", location.pathname + location.search);
    key.form.requestSubmit();
  }

  const NOTICE_TIME = 8000;

  /** Creates an element with properties and content. */
  function make(name, properties = {}, ...content) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...content);
    return element;
  }

  const button = (text, act, properties = {}) => {
    const made = make("button", { type: "button", ...properties }, text);
    made.addEventListener("click", act);
    return made;
  };

  /** Shows a notice at the edge of the window, until it was there for a while and nobody points at it. */
  function toast(notice) {
    notice.classList.add("toast");
    notice.append(" ", button("Dismiss", () => notice.remove(), { className: "plain" }));
    const expire = () => {
      if (notice.matches(":hover, :focus-within")) setTimeout(expire, NOTICE_TIME);
      else notice.remove();
    };
    setTimeout(expire, NOTICE_TIME);
  }

  /** Says something, also to screen readers, which read what is added to an element with this role. */
  function say(message) {
    document.getElementById("notice")?.remove();
    const notice = make("p", { id: "notice", className: "note good" });
    notice.setAttribute("role", "status");
    document.getElementById("main").prepend(notice);
    notice.append(message);
    toast(notice);
  }

  const notice = document.getElementById("notice");
  if (notice) {
    toast(notice);
    // It is said once, not after each reload.
    const here = new URL(location.href);
    here.searchParams.delete("done");
    history.replaceState(history.state, "", here);
  }

  /** Opens a dialog with a title, content and a button that closes it, in the last form if there is one. */
  function ask(title, content, closing, ended = () => {}) {
    const dialog = make("dialog", {}, make("h2", { id: "dialog-title" }, title), ...content);
    dialog.setAttribute("aria-labelledby", "dialog-title");
    const end = () => {
      if (!dialog.isConnected) return;
      dialog.close();
      close.remove();
      ended();
      dialog.remove();
    };
    // At once: the event of the end comes later, when the dialog may have been opened again.
    const close = button(closing, end);
    ([...dialog.querySelectorAll("form")].at(-1) ?? dialog).append(close);
    // Enter must not do what can't be undone.
    close.autofocus = dialog.querySelector("input:not([type=hidden]), textarea, select") === null;
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) end();
    });
    dialog.addEventListener("close", end);
    document.body.append(dialog);
    dialog.showModal();
  }

  /** Moves what a fold holds into a dialog, for as long as that is open. */
  function unfold(fold, summary) {
    const content = [...fold.children].filter((child) => child !== summary);
    // Tells live.js to leave it alone.
    fold.dataset.asked = "";
    const title = (summary.ariaLabel ?? summary.textContent).replace(/…$/, "");
    // “Cancel” would say two things where a post is canceled.
    ask(title, content, title.startsWith("Cancel") ? "Go back" : "Cancel", () => {
      fold.append(...content);
      delete fold.dataset.asked;
      summary.focus();
    });
  }

  document.addEventListener("click", async (event) => {
    const summary = event.target.closest("summary");
    if (summary?.parentElement.matches(":is(.acts, .bulk) > details, details:has(button.bad)")) {
      event.preventDefault();
      unfold(summary.parentElement, summary);
    }
    const link = event.target.closest("a[data-play]");
    const video = link?.querySelector("video");
    // A video that the browser can't play here, or that is to open elsewhere, is left to the link.
    if (video && !video.error && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      video.controls = true;
      video.muted = false;
      link.replaceWith(...link.childNodes);
      video.focus();
      video.play().catch(() => {});
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      try {
        await navigator.clipboard.writeText(copy.dataset.copy);
        say("Copied.");
      } catch {
        say("The browser does not allow copying: select the text instead.");
      }
    }
  });
  // Browsers have no clipboard over plain http, except on this machine.
  if (navigator.clipboard) document.documentElement.classList.add("can-copy");

  // Where the navigation scrolls sideways, it begins at the page that is open.
  const current = document.querySelector(".side nav a[aria-current]");
  const nav = current?.closest("nav");
  if (nav) nav.scrollLeft = current.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;

  // Selects all rows of a table, and tells how many are selected.
  for (const all of document.querySelectorAll("[data-select-all]")) {
    const boxes = [...document.querySelectorAll(`input[type=checkbox][name="${all.dataset.selectAll}"]`)];
    const state = document.getElementById("selected");
    const tell = () => {
      const count = boxes.filter((box) => box.checked).length;
      all.checked = count > 0 && count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
      if (state) state.textContent = count > 0 ? `${count} selected` : "";
    };
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
      tell();
    });
    for (const box of boxes) box.addEventListener("change", tell);
    tell();
  }

  // For the scripts of single pages, which come after this one.
  globalThis.fanfare = { ask, button, make };
})();
