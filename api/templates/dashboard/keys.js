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
    const dialog = document.createElement("dialog");
    dialog.setAttribute("aria-labelledby", "shortcuts-title");
    const title = document.createElement("h2");
    title.id = "shortcuts-title";
    title.textContent = "Keyboard shortcuts";
    const list = document.createElement("dl");
    list.className = "shortcuts";
    const row = (keys, text) => {
      const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
      for (const key of keys) {
        const cap = document.createElement("kbd");
        cap.textContent = key;
        term.append(cap, " ");
      }
      meaning.textContent = text;
      list.append(term, meaning);
    };
    if (search) row(["/"], "Search");
    for (const [letter, path] of pages) {
      const link = linkTo(path);
      if (link) row(["g", letter], link.textContent.trim());
    }
    row(["?"], "These shortcuts");
    row(["Esc"], "Close");
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.append(title, list);
    if (!isOperator) {
      const hint = document.createElement("p");
      const setting = document.createElement("a");
      setting.href = "/dashboard/me#shortcuts-title";
      setting.textContent = "Turn them off";
      hint.append(setting);
      dialog.append(hint);
    }
    dialog.append(close);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
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
})();

// A post of the calendar is moved by dragging it to another day, where it keeps its time, or to an open slot; by
// keyboard, Shift and an arrow key move it by a day or a week.
(() => {
  const form = document.getElementById("move");
  if (!form) return;
  function move(item, at) {
    form.action = item.dataset.move;
    form.elements.at.value = at;
    form.submit();
  }
  for (const item of document.querySelectorAll("[data-move]")) {
    item.draggable = true;
    item.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", item.id));
  }
  for (const day of document.querySelectorAll("[data-day]")) {
    day.addEventListener("dragover", (event) => event.preventDefault());
    day.addEventListener("drop", (event) => {
      event.preventDefault();
      const item = document.getElementById(event.dataTransfer.getData("text/plain"));
      if (!item?.dataset.move) return;
      const slot = event.target.closest("[data-slot]");
      move(item, slot ? slot.dataset.slot : `${day.dataset.day}T${item.dataset.time}`);
    });
    // A click beside everything else begins a post.
    day.addEventListener("click", (event) => {
      if (event.target === day) day.querySelector(".add")?.click();
    });
  }
  const DAYS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };
  document.addEventListener("keydown", (event) => {
    const item = event.target.closest("[data-move]");
    if (!event.shiftKey || !(event.key in DAYS) || !item || event.target.matches("input")) return;
    event.preventDefault();
    const day = new Date(`${item.closest("[data-day]").dataset.day}T00:00:00Z`);
    day.setUTCDate(day.getUTCDate() + DAYS[event.key]);
    move(item, `${day.toISOString().slice(0, 10)}T${item.dataset.time}`);
  });
})();
