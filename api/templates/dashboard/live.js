// Reloads the page every two seconds in the background and updates changed elements in place, so that focus,
// scroll position and screen reader keep theirs. Without this script a reload shows the same.
"use strict";
(() => {
  const place = document.body.dataset.live;
  if (!place) return;
  const INTERVAL = 2000;
  const MAX_INTERVAL = 30000;
  const state = document.getElementById("live-state");
  let pause = INTERVAL;

  // A region with an open menu or a focused field is not updated.
  const busy = (region) =>
    region.querySelector("details[open]") !== null ||
    (region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  const say = (message) => {
    if (state && state.textContent !== message) state.textContent = message;
  };

  function amend(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    put(old, fresh);
  }

  // Matches elements by id, others by position.
  function put(old, fresh) {
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const known = next.id
        ? [...old.children].find((child) => child.id === next.id)
        : at && !at.id && at.nodeName === next.nodeName && at;
      if (!known) {
        old.insertBefore(next, at);
        if (next.matches?.(".card, tr, li")) next.classList.add("fresh");
        continue;
      }
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      amend(known, next);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  function renew(region, fresh) {
    const focus = region.contains(document.activeElement) ? document.activeElement : null;
    put(region, fresh);
    // The focused element may have been removed.
    if (focus && !focus.isConnected) {
      region.tabIndex = -1;
      region.focus();
    }
  }

  async function look() {
    const answer = await fetch(place, { cache: "no-store", redirect: "error" });
    if (answer.status === 401 || answer.status === 404) {
      location.assign(place);
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of document.querySelectorAll("[data-region]")) {
      const fresh = page.getElementById(region.id);
      if (fresh && !busy(region)) renew(region, fresh);
    }
  }

  async function turn() {
    if (!document.hidden) {
      try {
        await look();
        pause = INTERVAL;
        say("Updates by itself.");
      } catch {
        pause = Math.min(pause * 2, MAX_INTERVAL);
        say("Fanfare does not answer: what is shown may be old. Trying again.");
      }
    }
    setTimeout(turn, pause);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) pause = INTERVAL;
  });
  setTimeout(turn, INTERVAL);
})();
