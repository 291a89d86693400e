/** Verification of webhooks. */

import { WebhookVerificationError } from "./errors.js";
import type { WebhookEvent } from "./generated/resources.js";

/** Headers of a request: of the fetch API, of Node, or an object. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

/** Settings of {@link verifyWebhook}. */
export interface VerifyOptions {
  /** Maximum difference between the signature's time and now, in seconds; 300 by default. */
  tolerance?: number;
  /** Current time; of the system by default. */
  now?: Date;
}

const TOLERANCE = 300;

/**
 * Checks that a webhook was sent by Fanfare, and returns its event.
 *
 * `payload` is the raw body: parsing and printing JSON changes bytes, and with them the signature. With several
 * secrets, one of them must match, so that a receiver can hold the old and the new one while a secret is rotated.
 *
 * Fails with a {@link WebhookVerificationError}; answer the request with 400 then.
 */
export async function verifyWebhook(
  payload: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const body = typeof payload === "string" ? new TextEncoder().encode(payload) : new Uint8Array(payload);
  const signature = header(headers, "x-fanfare-signature");
  const id = header(headers, "x-fanfare-event-id");
  if (!signature || !id) {
    throw new WebhookVerificationError("a header of the webhook is missing", "missing_signature");
  }
  const fields = signature.split(",").map((field) => field.trim());
  const time = fields.find((field) => /^t=\d{1,15}$/.test(field))?.slice(2);
  const signatures = fields.filter((field) => /^v1=[0-9a-f]{64}$/.test(field)).map((field) => field.slice(3));
  if (time === undefined || signatures.length === 0) {
    throw new WebhookVerificationError("the signature is malformed", "invalid_signature");
  }
  const prefix = new TextEncoder().encode(`${time}.`);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (secrets.length === 0 || secrets.some((one) => one === "")) throw new TypeError("the signing secret is empty");
  let isValid = false;
  for (const one of secrets) {
    const encoded = new TextEncoder().encode(one);
    const key = await crypto.subtle.importKey("raw", encoded, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const hex of signatures) {
      // `verify` compares in constant time.
      if (await crypto.subtle.verify("HMAC", key, bytes(hex), signed)) isValid = true;
    }
  }
  if (!isValid) throw new WebhookVerificationError("the signature does not match", "invalid_signature");
  const now = (options.now ?? new Date()).getTime() / 1000;
  if (Math.abs(now - Number(time)) > (options.tolerance ?? TOLERANCE)) {
    throw new WebhookVerificationError("the signature is too old, or the clock is wrong", "stale_signature");
  }
  let event: Omit<WebhookEvent, "id"> & { id?: string };
  try {
    event = JSON.parse(new TextDecoder().decode(body)) as typeof event;
  } catch {
    throw new WebhookVerificationError("the body is not JSON", "invalid_payload");
  }
  // The header is not signed; the id in the body is.
  if (event.id !== undefined && event.id !== id) {
    throw new WebhookVerificationError("the header has another event id than the body", "invalid_signature");
  }
  return { ...event, id } as WebhookEvent;
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof value === "string" ? value : value?.join(",");
}

function bytes(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
