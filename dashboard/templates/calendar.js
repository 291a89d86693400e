// A post of the calendar is moved by dragging it to another day, where it keeps its time, or to an open slot; by
// keyboard, Shift and an arrow key move it by a day or a week. Without this script each post has a form for it.
"use strict";
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
