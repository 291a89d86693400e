import { type Api, sleep } from "./api.js";
import { EventsOperations, type WebhookEvent } from "./generated/resources.js";
import type { DeliveredEvent } from "./generated/schema.js";

/** Settings of {@link Events.stream}. */
export interface StreamOptions {
  /** Cursor of a stream, to continue where it ended; by default, the stream begins 30 days ago. */
  after?: string;
  /** Names of events; all by default. */
  types?: readonly DeliveredEvent[];
  /** Time between two requests while there are no events, in milliseconds; 2,000 by default. */
  interval?: number;
  /** Ends the stream. */
  signal?: AbortSignal;
}

const INTERVAL = 2_000;
const PAGE_SIZE = 100;

/** A stream of events, oldest first, that waits for further ones. */
export class EventStream implements AsyncIterable<WebhookEvent> {
  private position: string | undefined;

  constructor(
    private readonly api: Api,
    private readonly options: StreamOptions,
  ) {
    this.position = options.after;
  }

  /**
   * Position of the stream: every event before it was handled. Store it, and pass it as `after` to continue. It moves
   * at the end of a page, so that up to 100 events are repeated after an interruption; each has its `id` again.
   */
  get cursor(): string | undefined {
    return this.position;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WebhookEvent, void, undefined> {
    const { signal, types, interval = INTERVAL } = this.options;
    while (!signal?.aborted) {
      const query = { after: this.position, types: types?.join(","), limit: PAGE_SIZE };
      try {
        const page = await this.api.call<{ data: WebhookEvent[]; next_cursor: string }>(
          { method: "GET", path: "/events", query },
          signal ? { signal } : {},
        );
        yield* page.data;
        this.position = page.next_cursor;
        if (page.data.length === 0) await sleep(interval, signal);
      } catch (error) {
        // The consumer's own errors end the generator without this handler.
        if (signal?.aborted) return;
        throw error;
      }
    }
  }
}

export class Events extends EventsOperations {
  /** Follows the events of the organization. */
  stream(options: StreamOptions = {}): EventStream {
    return new EventStream(this.api, options);
  }
}
