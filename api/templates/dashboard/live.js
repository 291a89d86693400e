// Looks again every two seconds and puts what has changed in the place of what was there. Without it
// the pages say the same after a reload.
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

  function put(region, fresh) {
    if (region.innerHTML === fresh.innerHTML) return;
    const focus = region.contains(document.activeElement) ? document.activeElement.id : "";
    region.replaceChildren(...fresh.childNodes);
    if (focus) document.getElementById(focus)?.focus();
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
      if (fresh && !busy(region)) put(region, fresh);
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
