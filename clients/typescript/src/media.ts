/** Uploads of files. */

import type { RequestOptions } from "./api.js";
import { MediaFailedError, WaitTimeoutError } from "./errors.js";
import { MediaOperations } from "./generated/resources.js";
import type { Media as Asset, NewUpload } from "./generated/schema.js";

/** What {@link Media.upload} sends: the path of a file (not in browsers), its content, or a stream of it. */
export type Upload = string | Blob | Uint8Array | ReadableStream<Uint8Array>;

/** Settings of {@link Media.upload}. */
export interface UploadOptions extends RequestOptions {
  /** File name; by default that of the path or `File`. */
  filename?: string;
  /** Declared content type; by default that of the `Blob`, or determined from the bytes. */
  contentType?: string;
  /** Alt text; a post can override it. */
  altText?: string;
  /** Declared SHA-256 in hex; the upload fails if the file arrives differently. */
  sha256?: string;
  /** Size of a stream in bytes. Storage in a bucket requires it. */
  size?: number;
  /** Maximum time until the asset is ready, in milliseconds; 300,000 by default. */
  waitTimeout?: number;
}

const WAIT_TIMEOUT = 300_000;
/** Longest wait of one request in seconds. */
const LONGEST_WAIT = 30;
/** A large file takes long to send: no attempt is stopped earlier. */
const SEND_TIMEOUT = 3_600_000;

export class Media extends MediaOperations {
  /**
   * Uploads a file and waits until it can be posted.
   *
   * The file is sent again if the connection breaks, unless it is a stream. Fails with a {@link MediaFailedError} if
   * the service rejects the file.
   */
  async upload(file: Upload, options: UploadOptions = {}): Promise<Asset> {
    const content = await open(file);
    const name = options.filename ?? content.name;
    if (!name) throw new TypeError("filename is missing");
    const size = options.size ?? content.size;
    const type = options.contentType ?? content.type;
    const upload: NewUpload = { filename: name };
    if (size) upload.size = size;
    if (type) upload.content_type = type;
    if (options.altText !== undefined) upload.alt_text = options.altText;
    if (options.sha256 !== undefined) upload.sha256 = options.sha256;
    const created = await this.createUpload(upload, options);

    const isStream = content.body instanceof ReadableStream;
    const headers = { ...created.upload_headers };
    if (isStream && size !== undefined) headers["Content-Length"] = String(size);
    // Fetch sends a stream only with `duplex`, which its type does not have yet.
    const init = { method: created.upload_method, headers, body: content.body, ...(isStream ? { duplex: "half" } : {}) };
    await this.api.send(created.upload_url, init as RequestInit, !isStream, {
      ...options,
      timeout: options.timeout ?? SEND_TIMEOUT,
      // A stream can be read once.
      ...(isStream ? { maxRetries: 0 } : {}),
    });
    const confirmed = await this.confirm(created.id, options);
    return confirmed.status === "ready" ? confirmed : this.wait(created.id, options);
  }

  /** Waits until an asset is ready. Fails with a {@link MediaFailedError} if it can't be used. */
  async wait(id: string, options: Pick<UploadOptions, "waitTimeout" | "signal"> = {}): Promise<Asset> {
    const deadline = Date.now() + (options.waitTimeout ?? WAIT_TIMEOUT);
    const request: RequestOptions = options.signal ? { signal: options.signal } : {};
    for (;;) {
      const wait = Math.min(LONGEST_WAIT, Math.ceil(Math.max(0, deadline - Date.now()) / 1000));
      const asset = await this.get(id, { wait }, request);
      if (asset.status === "ready") return asset;
      if (asset.status === "failed") throw new MediaFailedError(asset.error ?? "the asset failed");
      if (Date.now() >= deadline) throw new WaitTimeoutError(`the asset ${id} is still ${asset.status}`);
    }
  }
}

interface Content {
  body: Blob | ReadableStream<Uint8Array>;
  name?: string;
  size?: number;
  type?: string;
}

async function open(file: Upload): Promise<Content> {
  if (typeof file === "string") {
    // Loaded here, because browsers have neither. The blob reads the file while it is sent.
    const [{ openAsBlob }, { basename }] = await Promise.all([import("node:fs"), import("node:path")]);
    const body = (await openAsBlob(file)) as Blob;
    return { body, name: basename(file), size: body.size };
  }
  if (file instanceof ReadableStream) return { body: file };
  const body = file instanceof Blob ? file : new Blob([new Uint8Array(file)]);
  return { body, size: body.size, type: body.type, ...(file instanceof File ? { name: file.name } : {}) };
}
