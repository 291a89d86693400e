// Generated from api/openapi.json by clients/generator/generate. Do not edit.

import type { Api, CreateOptions, RequestOptions } from "../api.js";
import type { PagePromise } from "../pages.js";
import type * as schema from "./schema.js";

/** Query parameters of an operation. */
type Query<Id extends keyof schema.operations> = NonNullable<schema.operations[Id]["parameters"]["query"]>;

/** An event that a webhook delivers; `event` tells which. */
export type WebhookEvent =
  | schema.AccountConnectedEvent
  | schema.AccountDisconnectedEvent
  | schema.AccountReauthRequiredEvent
  | schema.AccountTokenExpiredEvent
  | schema.AccountTokenExpiringEvent
  | schema.ImportCompletedEvent
  | schema.ImportFailedEvent
  | schema.MediaFailedEvent
  | schema.MediaReadyEvent
  | schema.PostErrorEvent
  | schema.PostPublishedEvent
  | schema.PostRetriedEvent
  | schema.PostTargetFailedEvent
  | schema.PostTargetIncompleteEvent
  | schema.PostTargetPublishedEvent
  | schema.WebhookFailingEvent
  | schema.WebhookTestEvent;

export class AccountOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List audit entries.
   *
   * Lists who changed what concerns the organization's security, newest first: API keys, client tokens, sessions
   * of the dashboard, the team, webhook endpoints and their secrets, OAuth apps, profiles, accounts that are
   * connected, moved to another tenant or profile and disconnected, and the branding. Contains the changes in the mode of the caller's key and those of what both modes share. Entries
   * are kept for 400 days. Scope `team:read`.
   */
  listAuditEntries(query?: Query<"listAuditEntries">, options?: RequestOptions): PagePromise<schema.AuditEntry> {
    return this.api.list({ method: "GET", path: "/account/audit", query }, options, "cursor");
  }

  /**
   * List requests.
   *
   * Lists the requests that API keys of the organization made in the mode of the caller's key, newest first:
   * those of the last seven days, at most 10,000. A request is listed a moment after its response; in rare
   * cases, such as the end of a server, one is missing. Scope `usage:read`.
   */
  listRequests(query?: Query<"listRequests">, options?: RequestOptions): PagePromise<schema.LoggedRequest> {
    return this.api.list({ method: "GET", path: "/account/requests", query }, options, "cursor");
  }

  /**
   * Get usage.
   *
   * Returns the usage of the current calendar month (UTC): requests and posts (published targets), and what the
   * plan limits at any time, such as accounts, endpoints and storage; of the key's mode. Each mode has the whole
   * plan. This call does not count as a request and works
   * when the quota is used up. Scope `usage:read`.
   */
  getUsage(options?: RequestOptions): Promise<schema.Report> {
    return this.api.call({ method: "GET", path: "/account/usage" }, options);
  }
}

export class ApiKeysOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List keys.
   *
   * Lists the keys of the calling key's mode, newest first, without revoked ones. A page of keys that are limited to many
   * accounts may have fewer keys than `limit`, while `next_cursor` leads to more. Scope `keys:write`.
   */
  list(query?: Query<"listApiKeys">, options?: RequestOptions): PagePromise<schema.Key> {
    return this.api.list({ method: "GET", path: "/api-keys", query }, options, "cursor");
  }

  /**
   * Create a key.
   *
   * Grants only scopes that the calling key has. A test key can't create a live key. Only this response
   * contains `key`. With `tenant_id`, `profile_id` or `account_ids` the key sees and changes only what belongs to
   * it: accounts, posts all of whose accounts do, their analytics and events, profiles, slots, connect flows and
   * media that were uploaded with such a key. What concerns the whole organization fails with 403. Scope
   * `keys:write`.
   */
  create(body: schema.NewKey, options?: RequestOptions): Promise<schema.Key> {
    return this.api.call({ method: "POST", path: "/api-keys", body }, options);
  }

  /**
   * Revoke a key.
   *
   * Takes effect immediately. The calling key must have all scopes of the revoked key. Scope `keys:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/api-keys/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Rotate a key.
   *
   * Creates a key with the same name, scopes, bound and expiry; the old key stays valid for `grace_seconds`. The
   * calling key must have all scopes of the rotated key. Scope `keys:write`.
   */
  rotate(id: string, body?: schema.Rotation, options?: RequestOptions): Promise<schema.Key> {
    return this.api.call({ method: "POST", path: `/api-keys/${encodeURIComponent(id)}/rotate`, body }, options);
  }
}

export class ClientTokensOperations {
  constructor(protected readonly api: Api) {}

  /**
   * Create a client token.
   *
   * Returns a token for a page of yours that connects accounts for one `tenant_id`. The page sends it as
   * `Authorization: Bearer`, also from another origin, to list platforms and the tenant's accounts, create
   * authorization URLs, connect a Bluesky account and finalize pending logins; anything else fails with 403. Logins
   * end at the token's `redirect_uri` and are finalized there with a token of the same tenant (as with
   * `confirm`); without it they are `hosted`. The calling key must have the token's scopes, `accounts:read` and
   * `accounts:write`. Scope `accounts:write`.
   */
  create(body: schema.NewClientToken, options?: RequestOptions): Promise<schema.ClientToken> {
    return this.api.call({ method: "POST", path: "/client-tokens", body }, options);
  }

  /**
   * Revoke a client token.
   *
   * Takes effect immediately. Scope `accounts:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/client-tokens/${encodeURIComponent(id)}` }, options);
  }
}

export class ConnectOperations {
  constructor(protected readonly api: Api) {}

  /**
   * Get the branding.
   *
   * Returns how the connect pages of the organization look; null stands for the default. A test key sees the preview
   * that a test key has set, if there is one. Scope `networks:read`.
   */
  getBranding(options?: RequestOptions): Promise<schema.ConnectBranding> {
    return this.api.call({ method: "GET", path: "/connect/branding" }, options);
  }

  /**
   * Set the branding.
   *
   * Replaces the branding of the pages that this service shows to people who connect an account; what is not sent
   * becomes the default. A test key sets a preview, which the pages of test mode show until a live key sets the
   * branding. The pages always say who asks for the access and what went wrong. Scope `networks:write`.
   */
  setBranding(body: schema.NewConnectBranding, options?: RequestOptions): Promise<schema.ConnectBranding> {
    return this.api.call({ method: "PUT", path: "/connect/branding", body }, options);
  }

  /**
   * List platforms.
   *
   * Lists the platforms whose accounts the caller can connect, and how. Scope `accounts:read`.
   */
  listPlatforms(options?: RequestOptions): PagePromise<schema.ConnectPlatform> {
    return this.api.list({ method: "GET", path: "/connect/platforms" }, options, "none");
  }
}

export class EventsOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List events.
   *
   * Lists every event of the last 30 days, oldest first, also those that no webhook is subscribed to. To follow
   * them, pass `next_cursor` as `after`: it is never null, and an empty page means that there is no further
   * event yet. An event is listed once its change is committed, so one may follow another with a later
   * `timestamp`, but none is skipped or repeated. Scope `webhooks:read`.
   */
  list(query?: Query<"listEvents">, options?: RequestOptions): PagePromise<schema.Event> {
    return this.api.list({ method: "GET", path: "/events", query }, options, "after");
  }
}

export class MediaOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List media.
   *
   * Lists media assets, newest first. Scope `media:read`.
   */
  list(query?: Query<"listMedia">, options?: RequestOptions): PagePromise<schema.Media> {
    return this.api.list({ method: "GET", path: "/media", query }, options, "offset");
  }

  /**
   * Import a file.
   *
   * Fetches a file from a public URL in the background; afterwards the asset is `ready` or `failed`. Scope
   * `media:write`.
   */
  importUrl(body: schema.NewMediaImport, options?: RequestOptions): Promise<schema.Media> {
    return this.api.call({ method: "POST", path: "/media/import", body }, options);
  }

  /**
   * Get the media settings.
   *
   * Live and test keys see the same settings. Scope `media:read`.
   */
  getSettings(options?: RequestOptions): Promise<schema.MediaSettings> {
    return this.api.call({ method: "GET", path: "/media/settings" }, options);
  }

  /**
   * Update the media settings.
   *
   * Applies to what is published from now on, in both modes; only live keys can change it. Scope `media:write`.
   */
  updateSettings(body: schema.MediaSettingsPatch, options?: RequestOptions): Promise<schema.MediaSettings> {
    return this.api.call({ method: "PATCH", path: "/media/settings", body }, options);
  }

  /**
   * Create an upload.
   *
   * Returns a URL that takes the file by one PUT request, with the headers in `upload_headers` and without
   * an API key. The PUT can be repeated until the upload is confirmed. The file must match the declared
   * properties. Scope `media:write`.
   */
  createUpload(body: schema.NewUpload, options?: RequestOptions): Promise<schema.MediaUpload> {
    return this.api.call({ method: "POST", path: "/media/upload", body }, options);
  }

  /**
   * Delete a media asset.
   *
   * Also deletes the file. Fails with 409 while an unfinished post uses the asset. Scope `media:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/media/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Get a media asset.
   *
   * With `wait`, returns as soon as the asset is `ready` or `failed`, or as it is when that many seconds are
   * over. The events `media.ready` and `media.failed` tell the same. Scope `media:read`.
   */
  get(id: string, query?: Query<"getMedia">, options?: RequestOptions): Promise<schema.Media> {
    return this.api.call({ method: "GET", path: `/media/${encodeURIComponent(id)}`, query }, options);
  }

  /**
   * Update a media asset.
   *
   * Changes the alt text. A post that names no alt text for the asset is published with the one that the asset has
   * then, also if it was created before; a published post keeps the text that it was sent with. Fails with 409 while
   * a post with the asset is being published or retried. Scope `media:write`.
   */
  update(id: string, body: schema.MediaPatch, options?: RequestOptions): Promise<schema.Media> {
    return this.api.call({ method: "PATCH", path: `/media/${encodeURIComponent(id)}`, body }, options);
  }

  /**
   * Confirm an upload.
   *
   * Inspects the uploaded bytes and sets the asset's type and status. Small files become `ready`; larger
   * ones, and pictures that no platform takes as they are (HEIC, AVIF, TIFF), are `uploaded` until they are fully read
   * and decoded. Posts can use both. Repeating the call has no effect.
   * Fails with 409 while nothing is uploaded, and as the PUT did if that was refused; a rejected file is `failed`
   * permanently. Scope `media:write`.
   */
  confirm(id: string, options?: RequestOptions): Promise<schema.Media> {
    return this.api.call({ method: "POST", path: `/media/${encodeURIComponent(id)}/confirm`, isRepeatable: true }, options);
  }
}

export class PostsOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List posts.
   *
   * Lists posts, newest first, without deleted ones. With `q`, a page looks through 1,000 posts that match the
   * other filters, or fewer with long texts: it may have fewer posts than `limit`, or none, while `next_cursor`
   * leads to more. Scope `posts:read`.
   */
  list(query?: Query<"listPosts">, options?: RequestOptions): PagePromise<schema.PostSummary> {
    return this.api.list({ method: "GET", path: "/posts", query }, options, "cursor");
  }

  /**
   * Create a post.
   *
   * Publishes to every account in `accounts`: immediately, at `scheduled_at`, at the next open posting
   * slot of `queued_from_account`, or, if `is_draft` is true, after release. Publishing happens after the
   * response; the targets show the result. A repeated idempotency key returns the first post with 200. With
   * `reply_to` the post is published below another one that is live, as a comment or the next part of its thread.
   * Scope `posts:write`.
   */
  create(body: schema.NewPost, options?: CreateOptions): Promise<schema.Post> {
    return this.api.call({ method: "POST", path: "/posts", body, takesKey: true }, options);
  }

  /**
   * Create several posts.
   *
   * Handles each item as a creation of its own, in order; a failing item does not affect the others. The
   * header `Idempotency-Key` is ignored; use each item's `external_ref`. Scope `posts:write`.
   */
  createBatch(body: schema.NewPosts, options?: RequestOptions): Promise<schema.CreatedPosts> {
    return this.api.call({ method: "POST", path: "/posts/batch", body }, options);
  }

  /**
   * Validate a post.
   *
   * Takes the body of a creation and returns what each platform would report; nothing is stored. An issue
   * of severity `error` would fail the creation. The warning `duplicate_text` tells that the account
   * published the same text within 24 hours of the post's time, or is to publish it then; `account_exhausted`
   * that the platform throttles it then, or takes no more posts; `app_refused` that the platform refuses the app of the
   * account at present, so that the post waits; `reply_to_incomplete` that the post to reply to is live there without
   * some of its parts; `unknown_member` that a member of the body has no
   * meaning.
   *
   * With `look_up`, platforms are asked for what only they know, within ten seconds, with the grants of the accounts
   * that have no error of their own: `reference_not_found` tells that a board, section, flair, subreddit, category,
   * playlist or quoted post does not exist, `reference_not_allowed` that the account or this post can't use it, and
   * `setting_required` that the platform requires a setting. A platform that is not asked or does not answer is
   * the warning `look_up_failed`. Scope `posts:write`.
   */
  validate(body: schema.PostProposal, options?: RequestOptions): Promise<schema.Verdict> {
    return this.api.call({ method: "POST", path: "/posts/validate", body, isRepeatable: true }, options);
  }

  /**
   * Delete a post.
   *
   * Cancels pending targets. Targets in progress finish, and published posts stay live. Scope
   * `posts:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.CanceledPost> {
    return this.api.call({ method: "DELETE", path: `/posts/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Get a post.
   *
   * Scope `posts:read`.
   */
  get(id: string, options?: RequestOptions): Promise<schema.Post> {
    return this.api.call({ method: "GET", path: `/posts/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Update a post.
   *
   * Updates the fields sent. `is_draft: false` releases a draft. Fails with 409 `publishing_started` once
   * publishing has begun or the post has ended. Scope `posts:write`.
   */
  update(id: string, body: schema.EditPost, options?: RequestOptions): Promise<schema.Post> {
    return this.api.call({ method: "PATCH", path: `/posts/${encodeURIComponent(id)}`, body }, options);
  }

  /**
   * Get a post's analytics.
   *
   * Fetches the metrics of each published target from its platform and returns the latest of each, and
   * totals. If a platform fails, the target's previous metrics are returned with their time, or the target
   * is omitted. Of an unpublished target the last metrics are returned. Metrics are also collected on a
   * schedule, hourly at first and for a month. Scope
   * `analytics:read`.
   */
  getAnalytics(id: string, query?: Query<"getPostAnalytics">, options?: RequestOptions): Promise<schema.PostAnalytics> {
    return this.api.call({ method: "GET", path: `/posts/${encodeURIComponent(id)}/analytics`, query }, options);
  }

  /**
   * Retry a post.
   *
   * Starts the `dead` targets of a post over, or those of them in `targets`: they are `queued` again, with a
   * new budget of attempts. A `published` target that is `missing` a part which failed is retried as well: it stays
   * `published`, and only its missing parts are published, below those that are live; edit the target first if the
   * text was refused. Their events carry the `round` of the retry; `post.published` and `post.error` are
   * not sent again, and one `post.retried` tells how the post ends. A target that may be live is looked up first,
   * and published only when its platform says that it is not. A `canceled` target is not retried. Fails with 409 if there is no target to retry, or the
   * accounts of all that are were disconnected. Scope `posts:write`.
   */
  retry(id: string, body?: schema.RetryPost, options?: RequestOptions): Promise<schema.Post> {
    return this.api.call({ method: "POST", path: `/posts/${encodeURIComponent(id)}/retry`, body }, options);
  }

  /**
   * Edit a target.
   *
   * Changes a published target's posts on their platform: the text of the main post, texts of replies, and the
   * settings that the account's capabilities list under `editing`. Replies that are `missing` can be changed on every
   * platform, in a call of their own: nothing is published, and `POST /posts/{id}/retry` publishes the new texts. The new values are checked as on creation
   * first. The target shows them in `edits`, with the time in `edited_at`; the post's containers and the other
   * targets stay as they are. An edit can be repeated. Fails with 409 if the target is not live, or another edit
   * of it is being made, with 422 `editing_unsupported` if the platform lets no app change such a post (X,
   * Instagram, TikTok, Threads and Bluesky: none), with 422 `reconnect_required` if the account was connected
   * without the scope for it, and with 503 if the platform does not answer: repeat the call after `Retry-After`.
   * Scope `posts:write`.
   */
  editTarget(id: string, targetId: string, body: schema.EditTarget, options?: RequestOptions): Promise<schema.Target> {
    return this.api.call({ method: "PATCH", path: `/posts/${encodeURIComponent(id)}/targets/${encodeURIComponent(targetId)}`, body }, options);
  }

  /**
   * Retry a target.
   *
   * Starts the next attempt of a target now that is `failed`, or `queued` with an `error_code`: the platform
   * throttled another post of its account. One that is `frozen` waits on. Fails with 409 for any other target; `POST /posts/{id}/retry` starts
   * a `dead` one over, and publishes what is `missing` of a published one.
   * Scope `posts:write`.
   */
  retryTarget(id: string, targetId: string, options?: RequestOptions): Promise<schema.Target> {
    return this.api.call({ method: "POST", path: `/posts/${encodeURIComponent(id)}/targets/${encodeURIComponent(targetId)}/retry` }, options);
  }

  /**
   * Unpublish a target.
   *
   * Deletes a published target's posts from their platform: the replies, last to first, and then the main
   * post. What was still to follow the main post is given up when it is deleted. The target stays `published`, and
   * `unpublished_at` tells when it was deleted. Repeating the call returns the same, and a post that the
   * platform doesn't have any more counts as deleted. Fails with 409 if the target is not live, with 422
   * `deletion_unsupported` if the platform lets no app delete posts (Instagram, TikTok), with 422
   * `reconnect_required` if the account was connected without the scope for it, and with 503 if the platform
   * does not answer: repeat the call after `Retry-After`. Scope `posts:write`.
   */
  unpublishTarget(id: string, targetId: string, options?: RequestOptions): Promise<schema.Target> {
    return this.api.call({ method: "POST", path: `/posts/${encodeURIComponent(id)}/targets/${encodeURIComponent(targetId)}/unpublish` }, options);
  }

  /**
   * Get a post's timeline.
   *
   * Returns past events, oldest first, and upcoming steps. What a request caused has its `request_id` in `detail`.
   * Past events are kept for a year after the post has ended. Scope `posts:read`.
   */
  getTimeline(id: string, query?: Query<"getPostTimeline">, options?: RequestOptions): Promise<schema.Timeline> {
    return this.api.call({ method: "GET", path: `/posts/${encodeURIComponent(id)}/timeline`, query }, options);
  }
}

export class ProfilesOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List profiles.
   *
   * Lists profiles, newest first. A page may have fewer profiles than `limit`, if their settings are large, or none,
   * with a limited key, while `next_cursor` leads to more. Scope `profiles:read`.
   */
  list(query?: Query<"listProfiles">, options?: RequestOptions): PagePromise<schema.Profile> {
    return this.api.list({ method: "GET", path: "/profiles", query }, options, "cursor");
  }

  /**
   * Create a profile.
   *
   * Accounts listed are removed from their previous profiles. Scope `profiles:write`.
   */
  create(body: schema.NewProfile, options?: RequestOptions): Promise<schema.Profile> {
    return this.api.call({ method: "POST", path: "/profiles", body }, options);
  }

  /**
   * Delete a profile.
   *
   * The profile's accounts stay connected, without a profile. Scope `profiles:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/profiles/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Get a profile.
   *
   * Scope `profiles:read`.
   */
  get(id: string, options?: RequestOptions): Promise<schema.Profile> {
    return this.api.call({ method: "GET", path: `/profiles/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Update a profile.
   *
   * Updates the fields sent; null clears a nullable field. Scope `profiles:write`.
   */
  update(id: string, body: schema.ProfilePatch, options?: RequestOptions): Promise<schema.Profile> {
    return this.api.call({ method: "PATCH", path: `/profiles/${encodeURIComponent(id)}`, body }, options);
  }
}

export class SchedulingOperations {
  constructor(protected readonly api: Api) {}

  /**
   * Find open slots.
   *
   * Returns the next slots of an account that no post holds, up to 365 days ahead. This reserves nothing;
   * creating a post with `queued_from_account` does. Scope `scheduling:read`.
   */
  findSlot(query: Query<"findSlot">, options?: RequestOptions): Promise<schema.OpenSlots> {
    return this.api.call({ method: "GET", path: "/scheduling/find-slot", query }, options);
  }

  /**
   * List posting slots.
   *
   * Lists the organization's slots first, then those of each account. A page has up to some 5,000 slots, so that it may
   * have fewer sets than `limit`, with a limited key none, while `next_cursor` leads to more. Scope
   * `scheduling:read`.
   */
  listSlots(query?: Query<"listSlots">, options?: RequestOptions): PagePromise<schema.SlotSet> {
    return this.api.list({ method: "GET", path: "/scheduling/slots", query }, options, "cursor");
  }

  /**
   * Set posting slots.
   *
   * Replaces all slots of an account or of the organization. An account without slots of its own, or with
   * an empty list, uses the organization's. Posts that hold a slot keep their time. Scope
   * `scheduling:write`.
   */
  setSlots(body: schema.NewSlotSet, options?: RequestOptions): Promise<schema.SlotSet> {
    return this.api.call({ method: "PUT", path: "/scheduling/slots", body }, options);
  }
}

export class SocialAccountsOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List accounts.
   *
   * Lists accounts, newest first, without disconnected ones. Scope `accounts:read`.
   */
  list(query?: Query<"listSocialAccounts">, options?: RequestOptions): PagePromise<schema.SocialAccount> {
    return this.api.list({ method: "GET", path: "/social-accounts", query }, options, "cursor");
  }

  /**
   * Connect a Bluesky account.
   *
   * Takes an app password, which users create and revoke in Bluesky's settings. The account's DID and
   * handle must resolve to the server that accepts the password, otherwise the call fails with 422.
   * Reconnecting keeps the account's id and tenant; naming another tenant fails with 422, unless the account was
   * disconnected: then it is a new account of that tenant. Scope `accounts:write`.
   */
  connectBluesky(body: schema.BlueskyLogin, options?: RequestOptions): Promise<schema.SocialAccount> {
    return this.api.call({ method: "POST", path: "/social-accounts/bluesky/connect", body }, options);
  }

  /**
   * Get a pending login.
   *
   * Takes the token that the connect flow sent with `status=pending`, which is valid for 30 minutes. Needs
   * no API key.
   */
  getPendingLogin(token: string, options?: RequestOptions): Promise<schema.PendingLogin> {
    return this.api.call({ method: "GET", path: `/social-accounts/pending/${encodeURIComponent(token)}` }, options);
  }

  /**
   * Finalize a pending login.
   *
   * Connects all selected accounts, or none. Repeating the same selection returns the same result; a
   * different selection fails with 409. Needs no API key, unless the login was begun with `confirm`: then a key
   * with the scope `accounts:write`.
   */
  finalizePendingLogin(token: string, body: schema.PendingChoice, options?: RequestOptions): Promise<schema.ConnectedAccounts> {
    return this.api.call({ method: "POST", path: `/social-accounts/pending/${encodeURIComponent(token)}/finalize`, body }, options);
  }

  /**
   * Disconnect an account.
   *
   * Cancels the account's pending targets; published posts stay live. Revokes the grant on platforms that
   * support it and erases the tokens. Connecting the account again for the same tenant restores its id; for another
   * tenant it is a new account. Scope `accounts:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/social-accounts/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Get an account.
   *
   * Scope `accounts:read`.
   */
  get(id: string, options?: RequestOptions): Promise<schema.SocialAccount> {
    return this.api.call({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Update an account.
   *
   * Updates the fields sent; null clears a nullable field. An account that changes its `tenant_id` leaves its profile,
   * unless `profile_id` names one, and the keys that are limited to a list of accounts. Scope `accounts:write`.
   */
  update(id: string, body: schema.SocialAccountPatch, options?: RequestOptions): Promise<schema.SocialAccount> {
    return this.api.call({ method: "PATCH", path: `/social-accounts/${encodeURIComponent(id)}`, body }, options);
  }

  /**
   * Get an account's capabilities.
   *
   * Returns limits for texts, media and replies, and the JSON Schema of the platform's settings in
   * `config`. Scope `accounts:read`.
   */
  getCapabilities(id: string, options?: RequestOptions): Promise<schema.SocialAccountCapabilities> {
    return this.api.call({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/capabilities` }, options);
  }

  /**
   * Check an account.
   *
   * Calls the platform once as the account, refreshing an expired token, and updates the account's status
   * from the response. Scope `accounts:read`.
   */
  getHealth(id: string, options?: RequestOptions): Promise<schema.SocialAccountHealth> {
    return this.api.call({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/health` }, options);
  }

  /**
   * List imported posts.
   *
   * Lists an account's imported posts, latest publication first. Scope `accounts:read`.
   */
  listImportedPosts(id: string, query?: Query<"listImportedPosts">, options?: RequestOptions): PagePromise<schema.ImportedPost> {
    return this.api.list({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/imported-posts`, query }, options, "cursor");
  }

  /**
   * List imports.
   *
   * Lists an account's imports, newest first. Scope `accounts:read`.
   */
  listImports(id: string, query?: Query<"listImports">, options?: RequestOptions): PagePromise<schema.Import> {
    return this.api.list({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/imports`, query }, options, "cursor");
  }

  /**
   * Import earlier posts.
   *
   * Imports the newest posts of an account within the range, including posts not published through this
   * service. Posts that an earlier import brought are skipped and counted. The import runs in the
   * background, respects the platform's rate limits, and ends with `import.completed` or `import.failed`.
   * One import at a time per account. Scope `accounts:write`.
   */
  createImport(id: string, body?: schema.NewImport, options?: RequestOptions): Promise<schema.Import> {
    return this.api.call({ method: "POST", path: `/social-accounts/${encodeURIComponent(id)}/imports`, body }, options);
  }

  /**
   * Get an import.
   *
   * Returns the import's progress or result. Scope `accounts:read`.
   */
  getImport(id: string, importId: string, options?: RequestOptions): Promise<schema.Import> {
    return this.api.call({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/imports/${encodeURIComponent(importId)}` }, options);
  }

  /**
   * Get an account's limits.
   *
   * Returns how much of each limit of the platform the account has used, and when it can take the next post.
   * Asks the platform where it tells; other documented limits are counted from what was published here. Scope
   * `accounts:read`.
   */
  getLimits(id: string, options?: RequestOptions): Promise<schema.AccountLimits> {
    return this.api.call({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/limits` }, options);
  }

  /**
   * List options for a setting.
   *
   * Asks the platform for the options of a kind, for example `boards` or `flairs`; `capabilities` lists
   * the kinds that an account has. `mentions` (LinkedIn) looks up the organizations and members that a
   * text can mention. Scope `accounts:read`.
   */
  listOptions(id: string, kind: string, query?: Query<"listSocialAccountOptions">, options?: RequestOptions): PagePromise<schema.SocialAccountOption> {
    return this.api.list({ method: "GET", path: `/social-accounts/${encodeURIComponent(id)}/options/${encodeURIComponent(kind)}`, query }, options, "none");
  }

  /**
   * Retry what an account lost.
   *
   * Starts the targets of an account over that ended `dead` with `token_expired` in the last seven days, once
   * the account is connected again: at most 500 in a call, the latest first. Returns their number. Fails with
   * 409 while the account is not `active`. Scope `posts:write`.
   */
  retryFailedTargets(id: string, options?: RequestOptions): Promise<schema.RetriedTargets> {
    return this.api.call({ method: "POST", path: `/social-accounts/${encodeURIComponent(id)}/retry-failed` }, options);
  }
}

export class SocialNetworksOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List apps.
   *
   * Ordered by platform. Scope `networks:read`.
   */
  list(options?: RequestOptions): PagePromise<schema.SocialNetwork> {
    return this.api.list({ method: "GET", path: "/social-networks" }, options, "none");
  }

  /**
   * Register an app.
   *
   * Registers one app per platform. If the platform has one, the fields sent replace its fields. The
   * client secret is stored encrypted and is in no response. Scope `networks:write`.
   */
  create(body: schema.NewSocialNetwork, options?: RequestOptions): Promise<schema.SocialNetwork> {
    return this.api.call({ method: "POST", path: "/social-networks", body }, options);
  }

  /**
   * Remove an app.
   *
   * Accounts connected through the app stay connected; no further accounts can be connected until an app
   * is registered again. Scope `networks:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/social-networks/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Get an app.
   *
   * Scope `networks:read`.
   */
  get(id: string, options?: RequestOptions): Promise<schema.SocialNetwork> {
    return this.api.call({ method: "GET", path: `/social-networks/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Update an app.
   *
   * Updates the fields sent; null clears a nullable field. Scope `networks:write`.
   */
  update(id: string, body: schema.SocialNetworkPatch, options?: RequestOptions): Promise<schema.SocialNetwork> {
    return this.api.call({ method: "PATCH", path: `/social-networks/${encodeURIComponent(id)}`, body }, options);
  }

  /**
   * Create an authorization URL.
   *
   * Returns the URL to send the user to: the platform's, or with `hosted` our page before it. It is valid once
   * and for 15 minutes. The organization's own
   * enabled app is used, or else a shared one. The path takes a platform, not an app's id. Scope
   * `accounts:write`.
   */
  createAuthUrl(platform: string, body?: schema.NewAuthorization, options?: RequestOptions): Promise<schema.AuthUrl> {
    return this.api.call({ method: "POST", path: `/social-networks/${encodeURIComponent(platform)}/auth-url`, body }, options);
  }
}

export class TeamOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List the team.
   *
   * Lists the members in the order they were invited. Live and test keys see the same team. Scope
   * `team:read`.
   */
  list(query?: Query<"listTeam">, options?: RequestOptions): PagePromise<schema.TeamMember> {
    return this.api.list({ method: "GET", path: "/team", query }, options, "cursor");
  }

  /**
   * Invite a person.
   *
   * Only this response contains `invite_url`; send it to the person, who creates a passkey there and signs in to the
   * dashboard with it. The invitation can be accepted for seven days; after that the person can be invited again.
   * The calling key must have all scopes of the role. A person who is invited with a test key gets access to test
   * data only. Scope `team:write`.
   */
  inviteMember(body: schema.NewTeamMember, options?: RequestOptions): Promise<schema.TeamMember> {
    return this.api.call({ method: "POST", path: "/team", body }, options);
  }

  /**
   * Remove a person.
   *
   * Ends the person's sessions; also revokes an invitation that was not accepted. The last owner can't be removed.
   * The calling key must have all scopes of the person's role. A test key removes only members with access to test
   * data only. Scope `team:write`.
   */
  removeMember(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/team/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Change a role.
   *
   * Takes effect with the person's next request. The last owner stays one. The calling key must have all scopes of
   * both roles. A test key changes only members with access to test data only. Scope `team:write`.
   */
  updateMember(id: string, body: schema.TeamMemberPatch, options?: RequestOptions): Promise<schema.TeamMember> {
    return this.api.call({ method: "PATCH", path: `/team/${encodeURIComponent(id)}`, body }, options);
  }
}

export class WebhooksOperations {
  constructor(protected readonly api: Api) {}

  /**
   * List endpoints.
   *
   * Lists endpoints, newest first. Scope `webhooks:read`.
   */
  list(query?: Query<"listWebhooks">, options?: RequestOptions): PagePromise<schema.Webhook> {
    return this.api.list({ method: "GET", path: "/webhooks", query }, options, "cursor");
  }

  /**
   * Register an endpoint.
   *
   * Takes `https` URLs whose host is on the public internet. Only this response contains `signing_secret`.
   * Scope `webhooks:write`.
   */
  create(body: schema.NewWebhook, options?: RequestOptions): Promise<schema.Webhook> {
    return this.api.call({ method: "POST", path: "/webhooks", body }, options);
  }

  /**
   * Delete an endpoint.
   *
   * Pending deliveries are dropped. Scope `webhooks:write`.
   */
  delete(id: string, options?: RequestOptions): Promise<schema.Removed> {
    return this.api.call({ method: "DELETE", path: `/webhooks/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Get an endpoint.
   *
   * Scope `webhooks:read`.
   */
  get(id: string, options?: RequestOptions): Promise<schema.Webhook> {
    return this.api.call({ method: "GET", path: `/webhooks/${encodeURIComponent(id)}` }, options);
  }

  /**
   * Update an endpoint.
   *
   * Updates the fields sent. While `is_active` is false nothing is delivered; events of that time are kept
   * as failed deliveries, which can be requested again. The signing secret can be rotated on the dashboard. Scope `webhooks:write`.
   */
  update(id: string, body: schema.WebhookPatch, options?: RequestOptions): Promise<schema.Webhook> {
    return this.api.call({ method: "PATCH", path: `/webhooks/${encodeURIComponent(id)}`, body }, options);
  }

  /**
   * List deliveries.
   *
   * Lists completed and pending deliveries to an endpoint, newest first. Scope `webhooks:read`.
   */
  listDeliveries(id: string, query?: Query<"listWebhookDeliveries">, options?: RequestOptions): PagePromise<schema.WebhookDelivery> {
    return this.api.list({ method: "GET", path: `/webhooks/${encodeURIComponent(id)}/deliveries`, query }, options, "cursor");
  }

  /**
   * Get a delivery.
   *
   * Returns a delivery with what was sent and what the endpoint answered. Scope `webhooks:read`.
   */
  getDelivery(id: string, deliveryId: string, options?: RequestOptions): Promise<schema.WebhookDeliveryDetails> {
    return this.api.call({ method: "GET", path: `/webhooks/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(deliveryId)}` }, options);
  }

  /**
   * Redeliver an event.
   *
   * Repeats a delivery that succeeded or failed: the same body and event id, with a new retry budget. One that
   * waits for its next attempt is attempted now. Scope `webhooks:write`.
   */
  redeliver(id: string, deliveryId: string, options?: RequestOptions): Promise<schema.WebhookDelivery> {
    return this.api.call({ method: "POST", path: `/webhooks/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(deliveryId)}/redeliver` }, options);
  }

  /**
   * Replay events.
   *
   * Repeats the deliveries of events since a time, oldest first: the same bodies and event ids, with a new retry
   * budget. They are sent at the rate at which the endpoint accepts them. Up to 10,000 are queued at once; if
   * `has_more` is true, call again with the same times. A call that is repeated with the same times does not repeat
   * what it has queued. Scope `webhooks:write`.
   */
  replay(id: string, body: schema.NewWebhookReplay, options?: RequestOptions): Promise<schema.WebhookReplay> {
    return this.api.call({ method: "POST", path: `/webhooks/${encodeURIComponent(id)}/replay`, body }, options);
  }

  /**
   * Test an endpoint.
   *
   * Sends one signed test event, `webhook.test`, with the headers of a real delivery, and returns the
   * endpoint's response. Works while the endpoint is paused. Scope `webhooks:write`.
   */
  test(id: string, options?: RequestOptions): Promise<schema.WebhookTest> {
    return this.api.call({ method: "POST", path: `/webhooks/${encodeURIComponent(id)}/test` }, options);
  }
}

/** The resources that have no methods besides the operations of the document. */
export abstract class Resources {
  protected abstract readonly api: Api;
  get account(): AccountOperations {
    return new AccountOperations(this.api);
  }
  get apiKeys(): ApiKeysOperations {
    return new ApiKeysOperations(this.api);
  }
  get clientTokens(): ClientTokensOperations {
    return new ClientTokensOperations(this.api);
  }
  get connect(): ConnectOperations {
    return new ConnectOperations(this.api);
  }
  get profiles(): ProfilesOperations {
    return new ProfilesOperations(this.api);
  }
  get scheduling(): SchedulingOperations {
    return new SchedulingOperations(this.api);
  }
  get socialAccounts(): SocialAccountsOperations {
    return new SocialAccountsOperations(this.api);
  }
  get socialNetworks(): SocialNetworksOperations {
    return new SocialNetworksOperations(this.api);
  }
  get team(): TeamOperations {
    return new TeamOperations(this.api);
  }
  get webhooks(): WebhooksOperations {
    return new WebhooksOperations(this.api);
  }
}
