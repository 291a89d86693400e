// Reloads the page every two seconds in the background and lets idiomorph update what changed in place, so that focus,
// scroll position and screen reader keep theirs. Without this script a reload shows the same.
"use strict";
(() => {
  const place = document.body.dataset.live;
  if (!place) return;
  const INTERVAL = 2000;
  const MAX_INTERVAL = 30000;
  const state = document.getElementById("live-state");
  const lost = document.getElementById("lost");
  let pause = INTERVAL;
  let timer;
  let isLooking = false;

  // A region with an open menu or dialog or a focused field is not updated.
  const busy = (region) =>
    region.querySelector("details[open], [data-asked]") !== null ||
    (region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  function tell(isLost) {
    lost.hidden = !isLost;
    const message = isLost ? "" : "This page updates automatically.";
    if (state.textContent !== message) state.textContent = message;
  }

  function renew(region, fresh) {
    const focus = region.contains(document.activeElement) ? document.activeElement : null;
    Idiomorph.morph(region, fresh, {
      callbacks: {
        afterNodeAdded: (node) => {
          if (node.matches?.(".card, tr, li")) node.classList.add("fresh");
        },
      },
    });
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
    if (isLooking) return;
    isLooking = true;
    clearTimeout(timer);
    if (!document.hidden) {
      try {
        await look();
        pause = INTERVAL;
        tell(false);
      } catch {
        pause = Math.min(pause * 2, MAX_INTERVAL);
        tell(true);
      }
    }
    isLooking = false;
    timer = setTimeout(turn, pause);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) pause = INTERVAL;
  });
  addEventListener("offline", () => tell(true));
  addEventListener("online", () => {
    pause = INTERVAL;
    turn();
  });
  timer = setTimeout(turn, INTERVAL);
})();
