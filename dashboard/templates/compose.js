// The form of a post: a preview that follows the text, with each platform's own count, settings of the chosen platforms
// only, an order of files, and a copy of what is written, which is kept in this tab until it is published.
// Without this script the form has a preview page of its own.
"use strict";
(() => {
  const form = document.querySelector("[data-compose]");
  if (!form) return;
  const KEPT = `fanfare-compose ${form.dataset.who}`;
  const PAUSE = 400;
  const ASKING_PAUSE = 1500;
  const chosen = document.getElementById("chosen-media");
  let timer;
  let turn = 0;
  let asking;
  let answered = "";

  for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;

  /** Shows the settings of platforms of which an account is chosen. */
  function narrow() {
    const platforms = new Set([...form.querySelectorAll("[data-platform]:checked")].map((box) => box.dataset.platform));
    for (const part of form.querySelectorAll("[data-of]")) part.hidden = !platforms.has(part.dataset.of);
  }

  const written = () => [...new FormData(form)].filter(([name, value]) => name !== "key" && typeof value === "string");

  /** What platforms are asked about: all but the texts, so that they are not asked with every pause. */
  const question = () => JSON.stringify(written().filter(([name]) => !/^(text|alt)/.test(name)));

  /** Keeps what the platforms said about the same question. */
  function keepAnswers(shown, fresh) {
    const cards = [...fresh.querySelectorAll(".card")];
    for (const said of [...shown.querySelectorAll("[data-looked-up]")].reverse()) {
      const to = said.closest(".card").querySelector(".to").textContent;
      const card = cards.find((one) => one.querySelector(".to").textContent === to);
      card?.querySelector(".to").after(said);
      if (card && said.classList.contains("bad")) fresh.querySelector(".note.good")?.remove();
    }
  }

  /** Draws the preview again; asks the platforms for what only they know, if `asks`. */
  async function show(asks) {
    const now = (turn += 1);
    const about = question();
    const body = new URLSearchParams([...written(), ["key", form.elements.key.value], ["look_up", asks]]);
    try {
      const answer = await fetch("/dashboard/compose/preview", { method: "POST", body, redirect: "error" });
      if (now !== turn || !answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("preview");
      if (!fresh) return;
      const shown = document.getElementById("preview");
      if (asks) answered = about;
      else if (answered === about) keepAnswers(shown, fresh);
      shown.replaceWith(fresh);
      const counts = [...fresh.querySelectorAll(".card:has(.count)")].map((card) => {
        const count = card.querySelector(".count");
        const item = fanfare.make("span", {
          title: `${card.querySelector(".to").innerText.trim()}: ${count.innerText}`,
        });
        if (count.classList.contains("over")) item.className = "over";
        item.append(card.querySelector(".to .icon").cloneNode(true), ` ${count.dataset.short}`);
        return item;
      });
      form.querySelector("[data-counts]").replaceChildren(...counts);
    } catch {
      // The next change tries again.
    }
  }

  function ask() {
    clearTimeout(asking);
    asking = setTimeout(() => {
      if (question() !== answered) show(true);
    }, ASKING_PAUSE);
  }

  function changed() {
    document.getElementById("kept").hidden = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      keep(false);
      show(false);
    }, PAUSE);
    ask();
  }

  /** Keeps what is written, in this tab only: others may use the same browser later. */
  function keep(isSent) {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify({ isSent, fields: written() }));
    } catch {
      // The storage is full or closed; the form works without it.
    }
  }

  const isUntouched = () => [...form.querySelectorAll("textarea")].every((field) => field.value.trim() === "");

  /** Offers what was kept. The form is drawn again with it, so that its files are there, too. */
  function offer() {
    let kept;
    try {
      kept = JSON.parse(sessionStorage.getItem(KEPT));
      if (kept?.isSent) sessionStorage.removeItem(KEPT);
    } catch {}
    const isText = ([name, value]) => /^(text|media|alt|settings)/.test(name) && value.trim() !== "";
    if (!kept || kept.isSent || !kept.fields.some(isText)) return;
    const restoring = document.getElementById("kept");
    for (const [name, value] of kept.fields) {
      restoring.append(fanfare.make("input", { type: "hidden", name, value }));
    }
    restoring.hidden = false;
    document.getElementById("discard").addEventListener("click", () => {
      sessionStorage.removeItem(KEPT);
      restoring.hidden = true;
    });
  }

  form.addEventListener("input", changed);
  form.addEventListener("change", () => {
    narrow();
    changed();
  });
  form.addEventListener("uploaded", changed);
  form.addEventListener("submit", (event) => keep(event.submitter?.hasAttribute("data-sends") ?? false));
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move], [data-remove]");
    const item = button?.closest("[data-chosen]");
    if (!item) return;
    event.preventDefault();
    if (button.hasAttribute("data-remove")) {
      const next = item.nextElementSibling ?? item.previousElementSibling;
      item.remove();
      (next?.querySelector("[data-remove]") ?? form.querySelector("#files"))?.focus();
    } else if (button.dataset.move === "-1") item.previousElementSibling?.before(item);
    else item.nextElementSibling?.after(item);
    if (item.isConnected) button.focus();
    changed();
  });
  if (isUntouched()) offer();
  else keep(false);
  narrow();
  show(false);
  ask();
})();
