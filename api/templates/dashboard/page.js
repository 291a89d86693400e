// What makes every page quicker to use where scripts run: the browser's time zone, notices that go away by themselves,
// dialogs for what can't be undone, and buttons that copy. Without this script the same pages do the same.
"use strict";
(() => {
  // The server shows and reads times in this zone, unless a person has chosen another.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const secure = location.protocol === "https:" ? "; secure" : "";
  if (zone) document.cookie = `fanfare-zone=${zone}; path=/dashboard; max-age=34560000; samesite=lax${secure}`;

  const NOTICE_TIME = 8000;

  /** Shows a notice at the edge of the window, until it was there for a while and nobody points at it. */
  function toast(notice) {
    notice.classList.add("toast");
    const close = document.createElement("button");
    close.type = "button";
    close.className = "plain";
    close.textContent = "Dismiss";
    close.addEventListener("click", () => notice.remove());
    notice.append(" ", close);
    const expire = () => {
      if (notice.matches(":hover, :focus-within")) setTimeout(expire, NOTICE_TIME);
      else notice.remove();
    };
    setTimeout(expire, NOTICE_TIME);
  }

  /** Says something, also to screen readers, which read what is added to an element with this role. */
  function say(message) {
    document.getElementById("notice")?.remove();
    const notice = document.createElement("p");
    notice.id = "notice";
    notice.className = "note good";
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

  /** Moves what a fold holds into a dialog, for as long as that is open. */
  function ask(fold, summary) {
    const content = [...fold.children].filter((child) => child !== summary);
    const dialog = document.createElement("dialog");
    const title = document.createElement("h2");
    const cancel = document.createElement("button");
    title.id = "dialog-title";
    title.textContent = (summary.ariaLabel ?? summary.textContent).replace(/…$/, "");
    cancel.type = "button";
    cancel.textContent = "Cancel";
    dialog.setAttribute("aria-labelledby", title.id);
    dialog.append(title, ...content, cancel);
    const end = () => {
      if (!dialog.isConnected) return;
      dialog.close();
      fold.append(...content);
      delete fold.dataset.asked;
      dialog.remove();
      summary.focus();
    };
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) end();
    });
    // At once: the event of the end comes later, when the summary may have been pressed again.
    cancel.addEventListener("click", end);
    dialog.addEventListener("close", end);
    // Tells live.js to leave it alone.
    fold.dataset.asked = "";
    document.body.append(dialog);
    dialog.showModal();
  }

  document.addEventListener("click", async (event) => {
    const summary = event.target.closest("summary");
    if (summary?.parentElement.matches("details:has(button.bad)")) {
      event.preventDefault();
      ask(summary.parentElement, summary);
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
})();
