// Looks again every two seconds and changes what has changed, in its place: whoever reads, listens or is
// on his way by keyboard stays where he is. Without it the pages say the same after a reload.
"use strict";
(() => {
  const place = document.body.dataset.live;
  if (!place) return;
  const EVERY = 2000;
  const LONGEST = 30000;
  const state = document.getElementById("live-state");
  let pause = EVERY;

  // Nothing is taken away from under somebody who is about to decide or to write.
  const busy = (region) =>
    region.querySelector("details[open]") !== null ||
    (region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  const say = (words) => {
    if (state && state.textContent !== words) state.textContent = words;
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

  // What has an id is known by it, the rest by its place.
  function put(old, fresh) {
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const known = next.id
        ? [...old.children].find((child) => child.id === next.id)
        : at && !at.id && at.nodeName === next.nodeName && at;
      if (!known) {
        old.insertBefore(next, at);
        if (next.classList?.contains("card")) next.classList.add("fresh");
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
    // The button that was pressed may have had its day.
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
        pause = EVERY;
        say("Updates by itself.");
      } catch {
        pause = Math.min(pause * 2, LONGEST);
        say("Fanfare does not answer: what is shown may be old. Trying again.");
      }
    }
    setTimeout(turn, pause);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) pause = EVERY;
  });
  setTimeout(turn, EVERY);
})();
