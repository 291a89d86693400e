import type { Problem, ProblemCode } from "./generated/schema.js";

/** What an error tells besides its message. */
export interface ErrorDetails {
  status?: number | undefined;
  code: string;
  problem?: Problem | undefined;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** A call that failed. Errors without a response are {@link FanfareConnectionError}s. */
export class FanfareError extends Error {
  override readonly name: string = "FanfareError";
  /** HTTP status; undefined without a response. */
  readonly status: number | undefined;
  /** Machine-readable code of the problem, for example `rate_limited`. */
  readonly code: ProblemCode | (string & {});
  /** Problem document of the response. `problem.errors` names the fields that are invalid. */
  readonly problem: Problem | undefined;
  /** Id of the request. Quote it when asking for help. */
  readonly requestId: string | undefined;
  /** Seconds after which the call can be repeated, if the service named them. */
  readonly retryAfter: number | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message, { cause: details.cause });
    this.status = details.status;
    this.code = details.code;
    this.problem = details.problem;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
  }
}

/** No response arrived. The request may have been executed, unless `wasNotSent`. */
export class FanfareConnectionError extends FanfareError {
  override readonly name = "FanfareConnectionError";

  constructor(
    message: string,
    code: "connection_error" | "timeout",
    /** True if no connection was made. */
    readonly wasNotSent: boolean,
    cause: unknown,
  ) {
    super(message, { code, cause });
  }
}

/** The wait for a post or an asset was longer than its timeout. */
export class WaitTimeoutError extends FanfareError {
  override readonly name = "WaitTimeoutError";

  constructor(message: string) {
    super(message, { code: "wait_timeout" });
  }
}

/** A media asset that can't be used; `message` tells why. */
export class MediaFailedError extends FanfareError {
  override readonly name = "MediaFailedError";

  constructor(message: string) {
    super(message, { code: "media_failed" });
  }
}

/** A webhook that must not be trusted: its signature is missing, wrong or too old. */
export class WebhookVerificationError extends FanfareError {
  override readonly name = "WebhookVerificationError";

  constructor(message: string, code: "missing_signature" | "invalid_signature" | "stale_signature" | "invalid_payload") {
    super(message, { code });
  }
}
