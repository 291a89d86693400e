/** Lists that are fetched page by page. */

import type { Api, Request, RequestOptions } from "./api.js";

/** How a list continues: with a cursor, after the last event, with an offset, or not at all. */
export type Paging = "cursor" | "after" | "offset" | "none";

interface Body<T> {
  data: T[];
  next_cursor?: string | null;
  pagination?: { offset: number; total: number };
}

/** A page of a list. Iterating over it also fetches the following pages. */
export class Page<T> implements AsyncIterable<T> {
  /** The items of this page. */
  readonly data: T[];
  /** Cursor of the next page; null on the last page, or if the list has no cursors. */
  readonly nextCursor: string | null;

  private readonly next: object | undefined;

  constructor(
    private readonly api: Api,
    private readonly request: Request,
    private readonly options: RequestOptions,
    private readonly paging: Paging,
    body: Body<T>,
  ) {
    this.data = body.data;
    this.nextCursor = body.next_cursor ?? null;
    const { data, next_cursor: cursor, pagination } = body;
    if (paging === "cursor" && cursor) this.next = { cursor };
    // The cursor of events is never null; an empty page is the last one for now.
    if (paging === "after" && data.length > 0) this.next = { after: cursor };
    if (paging === "offset" && pagination && data.length > 0) {
      const offset = pagination.offset + data.length;
      if (offset < pagination.total) this.next = { offset };
    }
  }

  /** True if there is a further page. */
  hasNextPage(): boolean {
    return this.next !== undefined;
  }

  /** Fetches the next page; null on the last one. */
  async nextPage(): Promise<Page<T> | null> {
    if (!this.next) return null;
    const request = { ...this.request, query: { ...this.request.query, ...this.next } };
    return fetchPage(this.api, request, this.options, this.paging);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (let page: Page<T> | null = this; page; page = await page.nextPage()) yield* page.data;
  }
}

async function fetchPage<T>(api: Api, request: Request, options: RequestOptions, paging: Paging): Promise<Page<T>> {
  return new Page(api, request, options, paging, await api.call<Body<T>>(request, options));
}

/** A list that is requested when it is awaited, which gives its first page, or iterated over, which gives all items. */
export class PagePromise<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  private first: Promise<Page<T>> | undefined;

  constructor(
    private readonly api: Api,
    private readonly request: Request,
    private readonly options: RequestOptions,
    private readonly paging: Paging,
  ) {}

  private page(): Promise<Page<T>> {
    return (this.first ??= fetchPage<T>(this.api, this.request, this.options, this.paging));
  }

  then<Result = Page<T>, Failure = never>(
    fulfilled?: ((page: Page<T>) => Result | PromiseLike<Result>) | null,
    rejected?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.page().then(fulfilled, rejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    yield* await this.page();
  }
}
