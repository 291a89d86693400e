// Keyboard shortcuts: a key focuses the field or follows the link that names it in `data-focus-key` or `data-key`.
"use strict";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.matches("input, textarea, select, [contenteditable]")) return;
  const key = CSS.escape(event.key);
  const field = document.querySelector(`[data-focus-key="${key}"]`);
  const link = document.querySelector(`a[data-key="${key}"]`);
  if (!field && !link) return;
  event.preventDefault();
  if (field) field.focus();
  else link.click();
});

// A post that is dragged to another day of the calendar keeps its time of day.
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
    const form = document.getElementById("move");
    form.action = item.dataset.move;
    form.elements.at.value = `${day.dataset.day}T${item.dataset.time}`;
    form.submit();
  });
}
