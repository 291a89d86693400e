// Uploads files that are chosen or dropped, with progress: each is announced, sent to its upload URL as by clients of
// the API, and confirmed; the response to that is markup for the page's list. A file that can't be sent to a bucket goes
// through the dashboard. Without this script the form sends the files.
"use strict";
(() => {
  const zone = document.querySelector("[data-upload]");
  if (!zone) return;
  const into = document.getElementById(zone.dataset.into);
  const input = zone.querySelector("input[type=file]");
  const list = zone.querySelector("[data-uploads]");
  const status = zone.querySelector("[data-say]");
  const AT_ONCE = 3;
  // Pause after a 429 that names none, and pauses between looks at a file that is still inspected, in milliseconds.
  const PAUSE = 5000;
  const LOOKS = [1000, 2000, 4000, 8000, 15000, 30000];
  // Answers after which the same request may succeed.
  const PASSING = [0, 401, 408, 409, 429];
  const waiting = [];
  const running = new Set();
  let count = 0;
  // True once the bucket was out of reach: the next files are not tried there.
  let isCutOff = false;

  zone.hidden = false;
  for (const element of zone.querySelectorAll("[data-script]")) element.hidden = false;
  for (const element of zone.querySelectorAll("[data-no-script]")) element.hidden = true;
  input.required = false;

  const { make } = fanfare;
  const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
  const isBusy = () => running.size + waiting.length > 0;

  /** An upload that failed; `code` is the HTTP status, 0 without an answer. */
  class Failure extends Error {
    constructor(message, code = 0) {
      super(message);
      this.code = code;
      this.canRetry = PASSING.includes(code) || code >= 500;
    }
  }
  const lost = () => new Failure("The connection was lost.");

  function size(bytes) {
    const units = ["B", "kB", "MB", "GB"];
    const place = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 3);
    const number = bytes / 1000 ** place;
    return `${number.toFixed(number < 10 && place > 0 ? 1 : 0)} ${units[place]}`;
  }

  async function post(path, fields, { signal, show } = {}) {
    for (;;) {
      const body = new URLSearchParams(fields);
      const answer = await fetch(path, { method: "POST", body, redirect: "error", signal }).catch((error) => {
        throw error.name === "AbortError" ? error : lost();
      });
      const text = await answer.text().catch(() => "");
      if (answer.ok) return text;
      if (answer.status === 429) {
        show?.("Waiting: many files in a short time");
        await sleep(Number(answer.headers.get("Retry-After")) * 1000 || PAUSE);
        signal?.throwIfAborted();
        continue;
      }
      const isText = answer.headers.get("Content-Type")?.startsWith("text/plain");
      const signedOut = "You are not signed in any more. Sign in in another tab, then retry.";
      throw new Failure(
        answer.status === 401 ? signedOut : isText ? text : `The upload failed (${answer.status}).`,
        answer.status,
      );
    }
  }

  /** Sends a file. Only XMLHttpRequest tells how much of a body was sent. */
  const put = (job, { method, url, headers }) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const abort = () => request.abort();
      let sent = 0;
      request.open(method, url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded, total }) => {
        sent = loaded;
        job.progress.value = total ? loaded / total : 0;
        job.show(`${size(loaded)} of ${size(total)}`);
      };
      request.onload = () => {
        if (request.status < 300) return resolve();
        const text = request.responseText;
        let detail = request.getResponseHeader("Content-Type")?.startsWith("text/plain") ? text : null;
        try {
          detail ??= JSON.parse(text).detail;
        } catch {}
        // A bucket answers in XML.
        const code = /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? "";
        reject(new Failure(detail || `The storage refused the file (${request.status} ${code}).`, request.status));
      };
      request.onerror = () => reject(Object.assign(lost(), { isUnsent: sent === 0 }));
      request.onabort = () => reject(job.abort.signal.reason);
      request.onloadend = () => job.abort.signal.removeEventListener("abort", abort);
      job.abort.signal.addEventListener("abort", abort);
      request.send(job.file);
    });

  async function send(job) {
    const { url, method, headers, fallback } = job.announced;
    const isElsewhere = new URL(url, location.href).origin !== location.origin;
    const through = () => put(job, { url: fallback, method: "POST", headers });
    if (isElsewhere && isCutOff) return through();
    try {
      await put(job, { url, method, headers });
    } catch (error) {
      // Browsers do not tell a bucket without CORS rules from one that they can't reach.
      if (!isElsewhere || !error.isUnsent) throw error;
      await through();
      if (isCutOff) return;
      isCutOff = true;
      const words = "This browser can’t send files to the storage itself, so they go through Fanfare, which is slower. ";
      const help = "An administrator can allow it: see “CORS rule of the bucket” in Fanfare’s guide to deployment.";
      list.after(make("p", { className: "hint", textContent: words + help }));
    }
  }

  /** Replaces the markup of a file that is still inspected, until it is not. */
  async function settle(item) {
    let shown = item;
    for (const pause of LOOKS) {
      await sleep(pause);
      if (!shown.isConnected || shown.contains(document.activeElement)) return;
      const markup = await post(`/dashboard/media/${item.dataset.unsettled}/confirm`, {}).catch(() => null);
      const fresh = markup && new DOMParser().parseFromString(markup, "text/html").querySelector("li");
      if (!fresh) return;
      shown.replaceWith(fresh);
      shown = fresh;
      if (!("unsettled" in fresh.dataset)) return;
    }
  }

  function insert(markup, order) {
    const fresh = new DOMParser().parseFromString(markup, "text/html").querySelector("li");
    fresh.classList.add("fresh");
    if (zone.dataset.as) {
      // Files arrive in any order, and stand in the chosen one.
      fresh.dataset.order = order;
      const later = [...into.children].find((other) => Number(other.dataset.order) > order);
      into.insertBefore(fresh, later ?? null);
    } else into.prepend(fresh);
    if ("unsettled" in fresh.dataset) settle(fresh);
  }

  async function upload(job) {
    const { file, item, progress, abort } = job;
    const options = { signal: abort.signal, show: job.show };
    try {
      if (file.size === 0) throw new Failure("The file is empty.", 422);
      if (!job.announced) {
        const fields = { filename: file.name, size: file.size };
        // Not aborted: an announced file is deleted by the id in the answer.
        job.announced = JSON.parse(await post("/dashboard/media/uploads", fields, { show: job.show }));
        abort.signal.throwIfAborted();
      }
      // A file that was sent before a connection was lost is not sent again.
      if (!job.isSent) await send(job);
      job.isSent = true;
      progress.removeAttribute("value");
      job.show("Checking");
      const path = `/dashboard/media/${job.announced.id}/confirm`;
      insert(await post(path, { as: zone.dataset.as ?? "" }, options), job.order);
      item.remove();
      // A count that the new file makes wrong.
      for (const stale of document.querySelectorAll("[data-stale]")) stale.remove();
      status.textContent = `${file.name} was uploaded.`;
      zone.dispatchEvent(new CustomEvent("uploaded", { bubbles: true }));
    } catch (error) {
      // The storage has lost it.
      if (error.code === 409) job.isSent = false;
      if (abort.signal.aborted) abandon(job);
      else fail(job, error);
    }
  }

  /** Deletes an announced file that will not be uploaded. If that fails, the service deletes it after a day. */
  function abandon({ announced, isSent }) {
    if (announced && !isSent) post(`/dashboard/media/${announced.id}/abandon`, {}).catch(() => {});
  }

  function fail(job, error) {
    job.progress.remove();
    job.state.remove();
    job.cancel.remove();
    const canRetry = error.canRetry ?? false;
    const message = make("span", { className: "over", textContent: error.message });
    message.setAttribute("role", "alert");
    const { name } = job.file;
    const giveUp = () => {
      leave(job.item);
      abandon(job);
    };
    job.item.append(message);
    if (canRetry) {
      job.item.append(button("Retry", `Retry: ${name}`, () => retry(job)));
      job.item.append(button("Cancel", `Cancel the upload of ${name}`, giveUp));
    } else {
      abandon(job);
      job.item.append(button("Dismiss", `Dismiss: ${name}`, () => leave(job.item)));
    }
  }

  const button = (text, ariaLabel, press) => fanfare.button(text, press, { className: "small", ariaLabel });

  function retry({ file, order, item, announced, isSent }) {
    const fresh = row(file, order);
    item.replaceWith(fresh.item);
    fresh.cancel.focus();
    waiting.push({ ...fresh, announced, isSent });
    next();
  }

  /** Removes a row, and keeps the focus near. */
  function leave(item) {
    const near = item.nextElementSibling ?? item.previousElementSibling;
    const hasFocus = item.contains(document.activeElement);
    item.remove();
    if (hasFocus) (near?.querySelector("button") ?? input).focus();
  }

  function row(file, order) {
    const item = make("li");
    const name = make("span", { textContent: file.name, dir: "auto" });
    const progress = make("progress", { value: 0, ariaLabel: `Upload of ${file.name}` });
    const state = make("span", { className: "soft small", textContent: `${size(file.size)}, waiting` });
    const abort = new AbortController();
    const cancel = button("Cancel", `Cancel the upload of ${file.name}`, () => {
      leave(item);
      abort.abort();
      const place = waiting.findIndex((other) => other.item === item);
      if (place >= 0) abandon(waiting.splice(place, 1)[0]);
      next();
    });
    item.append(name, progress, state, cancel);
    return { file, order, item, progress, state, cancel, abort, show: (text) => (state.textContent = text) };
  }

  let isHeld = null;

  function next() {
    while (running.size < AT_ONCE && waiting.length > 0) {
      const job = waiting.shift();
      running.add(job);
      upload(job).finally(() => {
        running.delete(job);
        next();
      });
    }
    if (!isBusy()) {
      isHeld?.remove();
      isHeld = null;
    }
  }

  function take(files) {
    for (const file of files) {
      const job = row(file, (count += 1));
      list.append(job.item);
      waiting.push(job);
    }
    next();
  }

  input.addEventListener("change", () => {
    take(input.files);
    input.value = "";
  });
  // Before other scripts learn of it: a form that goes now would go without the files.
  const form = zone.closest("form");
  const hold = (event) => {
    if (event.target !== form || (form !== zone && !isBusy())) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (form === zone || isHeld) return;
    isHeld = make("p", { className: "over", textContent: "Files are still being uploaded. Wait for them, or cancel them." });
    isHeld.setAttribute("role", "alert");
    zone.append(isHeld);
    zone.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("submit", hold, true);
  addEventListener("beforeunload", (event) => {
    if (isBusy()) event.preventDefault();
  });
  for (const item of into.querySelectorAll("[data-unsettled]")) settle(item);

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
    // A folder arrives as a file that can't be read.
    const isFolder = (item) => item.webkitGetAsEntry?.()?.isDirectory;
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file" && !isFolder(item));
    take(items.map((item) => item.getAsFile()).filter(Boolean));
  });
})();
