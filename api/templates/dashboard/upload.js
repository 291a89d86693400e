// Uploads files that are chosen or dropped, with progress: each is announced, sent to its upload URL as by clients of
// the API, and confirmed; the response to that is markup for the page's list. Without this script the form sends them.
"use strict";
(() => {
  const zone = document.querySelector("[data-upload]");
  if (!zone) return;
  const into = document.getElementById(zone.dataset.into);
  const input = zone.querySelector("input[type=file]");
  const list = zone.querySelector("[data-uploads]");
  const status = zone.querySelector("[data-say]");
  const AT_ONCE = 3;
  const waiting = [];
  let running = 0;
  let count = 0;

  for (const element of zone.querySelectorAll("[data-script]")) element.hidden = false;
  for (const element of zone.querySelectorAll("[data-no-script]")) element.hidden = true;
  input.required = false;

  const post = async (path, fields) => {
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams(fields), redirect: "error" });
    const text = await answer.text();
    if (answer.ok) return text;
    const isText = answer.headers.get("Content-Type")?.startsWith("text/plain");
    throw new Error(answer.status === 401 ? "You are not signed in any more." : isText ? text : "The upload failed.");
  };

  // Only XMLHttpRequest tells how much of a body was sent.
  const send = ({ url, method, headers }, file, progress) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded, total }) => (progress.value = total ? loaded / total : 0);
      request.onload = () => {
        if (request.status < 300) return resolve();
        let detail;
        try {
          detail = JSON.parse(request.responseText).detail;
        } catch {}
        reject(new Error(detail ?? `The upload failed (${request.status}).`));
      };
      request.onerror = () => reject(new Error("The connection was lost. Try again."));
      request.send(file);
    });

  function row(file) {
    const item = document.createElement("li");
    const name = document.createElement("span");
    name.textContent = file.name;
    name.dir = "auto";
    const progress = document.createElement("progress");
    progress.setAttribute("aria-label", `Upload of ${file.name}`);
    progress.value = 0;
    item.append(name, progress);
    list.append(item);
    return { item, progress };
  }

  async function upload({ file, order, item, progress }) {
    try {
      const announced = JSON.parse(
        await post("/dashboard/media/uploads", { filename: file.name, type: file.type, size: file.size }),
      );
      await send(announced, file, progress);
      progress.removeAttribute("value");
      const markup = await post(`/dashboard/media/${announced.id}/confirm`, { as: zone.dataset.as ?? "" });
      const fresh = new DOMParser().parseFromString(markup, "text/html").querySelector("li");
      fresh.classList.add("fresh");
      if (zone.dataset.as === "choice") {
        // Files arrive in any order, and stand in the chosen one.
        fresh.dataset.order = order;
        const later = [...into.children].find((other) => Number(other.dataset.order) > order);
        into.insertBefore(fresh, later ?? null);
      } else into.prepend(fresh);
      item.remove();
      // A count that the new file makes wrong.
      for (const stale of document.querySelectorAll("[data-stale]")) stale.remove();
      status.textContent = `${file.name} was uploaded.`;
      zone.dispatchEvent(new CustomEvent("uploaded", { bubbles: true }));
    } catch (error) {
      progress.remove();
      const message = document.createElement("span");
      message.className = "over";
      message.setAttribute("role", "alert");
      message.textContent = error.message;
      item.append(message);
    }
  }

  function next() {
    while (running < AT_ONCE && waiting.length > 0) {
      running += 1;
      upload(waiting.shift()).finally(() => {
        running -= 1;
        next();
      });
    }
  }

  const take = (files) => {
    waiting.push(...[...files].map((file) => ({ file, order: (count += 1), ...row(file) })));
    next();
  };

  input.addEventListener("change", () => {
    take(input.files);
    input.value = "";
  });
  zone.addEventListener("submit", (event) => {
    if (zone.localName === "form") event.preventDefault();
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    zone.classList.add("over-it");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) zone.classList.remove("over-it");
  });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    zone.classList.remove("over-it");
    take(event.dataTransfer.files);
  });
})();
