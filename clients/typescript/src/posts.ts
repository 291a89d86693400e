import { type RequestOptions, sleep } from "./api.js";
import { WaitTimeoutError } from "./errors.js";
import { PostsOperations } from "./generated/resources.js";
import type { CreatedPosts, NewPosts, Post, PostStatus } from "./generated/schema.js";

/** Settings of {@link Posts.wait}. */
export interface WaitOptions {
  /** Maximum time in milliseconds; 300,000 by default. */
  timeout?: number;
  /** Aborts the wait. */
  signal?: AbortSignal;
}

const WAIT_TIMEOUT = 300_000;
const FIRST_DELAY = 200;
const LONGEST_DELAY = 5_000;
/** A draft ends as well: nothing happens before it is released. */
const ENDED: ReadonlySet<PostStatus> = new Set<PostStatus>(["published", "partial", "failed", "canceled", "draft"]);

export class Posts extends PostsOperations {
  /**
   * Waits until a post has ended: `published`, `partial` or `failed`. `targets` tells the result of each account.
   *
   * Reads the post at growing intervals. A service that publishes many posts is better told by a webhook or by
   * `events.stream`.
   */
  async wait(id: string, options: WaitOptions = {}): Promise<Post> {
    const deadline = Date.now() + (options.timeout ?? WAIT_TIMEOUT);
    const request: RequestOptions = options.signal ? { signal: options.signal } : {};
    for (let delay = FIRST_DELAY; ; delay = Math.min(LONGEST_DELAY, delay * 1.5)) {
      const post = await this.get(id, request);
      if (ENDED.has(post.status)) return post;
      const left = deadline - Date.now();
      if (left <= 0) throw new WaitTimeoutError(`the post ${id} is still ${post.status}`);
      await sleep(Math.min(delay, left), options.signal);
    }
  }

  /** Creates up to 20 posts. A post without `external_ref` gets one, so that a repetition creates it once. */
  override createBatch(body: NewPosts, options?: RequestOptions): Promise<CreatedPosts> {
    const posts = body.posts.map((post) => ({ ...post, external_ref: post.external_ref ?? crypto.randomUUID() }));
    const request = { method: "POST", path: "/posts/batch", body: { ...body, posts }, isRepeatable: true } as const;
    return this.api.call(request, options);
  }
}
