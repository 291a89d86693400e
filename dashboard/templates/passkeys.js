// Creates passkeys and signs in with them: asks for a challenge when a form is sent, has the browser answer it, and
// sends the answer with the form. Without this script an API key signs in.
"use strict";
(() => {
  const bytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");

  // https://www.w3.org/TR/webauthn-3/#dictdef-publickeycredentialcreationoptionsjson
  async function create(options) {
    const credential = await navigator.credentials.create({
      publicKey: {
        ...options,
        challenge: bytes(options.challenge),
        user: { ...options.user, id: bytes(options.user.id) },
        excludeCredentials: (options.excludeCredentials || []).map(({ id, type }) => ({ id: bytes(id), type })),
      },
    });
    const { attestationObject, clientDataJSON } = credential.response;
    return answer(credential, {
      attestationObject: text(attestationObject),
      clientDataJSON: text(clientDataJSON),
      transports: credential.response.getTransports ? credential.response.getTransports() : [],
    });
  }

  // https://www.w3.org/TR/webauthn-3/#dictdef-publickeycredentialrequestoptionsjson
  async function get(options) {
    const credential = await navigator.credentials.get({
      publicKey: { ...options, challenge: bytes(options.challenge), allowCredentials: [] },
    });
    const { authenticatorData, clientDataJSON, signature, userHandle } = credential.response;
    return answer(credential, {
      authenticatorData: text(authenticatorData),
      clientDataJSON: text(clientDataJSON),
      signature: text(signature),
      userHandle: userHandle && text(userHandle),
    });
  }

  const answer = (credential, response) =>
    JSON.stringify({
      id: credential.id,
      rawId: text(credential.rawId),
      type: credential.type,
      authenticatorAttachment: credential.authenticatorAttachment,
      clientExtensionResults: {},
      response,
    });

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const state = form.querySelector("[data-passkey-state]");
    const button = form.querySelector("button");
    const say = (message) => {
      if (state) state.textContent = message;
    };
    if (!window.PublicKeyCredential) {
      say("This browser has no passkeys.");
      button.disabled = true;
      continue;
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      say("Waiting for your passkey…");
      try {
        const asked = await fetch(form.dataset.passkey, { cache: "no-store", redirect: "error" }).catch(() => {
          // The browser's own words are for developers.
          throw new Error("Fanfare did not answer. Try again in a moment.");
        });
        if (!asked.ok) throw new Error(`Fanfare answered ${asked.status}. Reload the page and try again.`);
        const challenge = await asked.json();
        const isNew = form.dataset.passkeyKind === "create";
        form.elements.credential.value = await (isNew ? create : get)(challenge.options);
        form.elements.state.value = challenge.state;
        form.submit();
      } catch (error) {
        const isCanceled = error.name === "NotAllowedError";
        const isKnown = error.name === "InvalidStateError";
        say(
          isCanceled
            ? "No passkey was used. Try again."
            : isKnown
              ? "This device has a passkey for you already."
              : error.message,
        );
        button.disabled = false;
      }
    });
  }
})();
