"""Generated from api/openapi.json by clients/generator/generate. Do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TypeAlias
from urllib.parse import quote

from typing_extensions import Unpack

from .._api import Api, AsyncApi, new_key
from .._pages import AsyncPaginator, Page
from . import models, params

WebhookEvent: TypeAlias = (
    models.AccountConnectedEvent
    | models.AccountDisconnectedEvent
    | models.AccountReauthRequiredEvent
    | models.AccountTokenExpiredEvent
    | models.AccountTokenExpiringEvent
    | models.ImportCompletedEvent
    | models.ImportFailedEvent
    | models.MediaFailedEvent
    | models.MediaReadyEvent
    | models.PostErrorEvent
    | models.PostPublishedEvent
    | models.PostRetriedEvent
    | models.PostTargetFailedEvent
    | models.PostTargetIncompleteEvent
    | models.PostTargetPublishedEvent
    | models.WebhookFailingEvent
    | models.WebhookTestEvent
)
"""An event that a webhook delivers; `event` tells which."""

EVENTS: dict[str, type[WebhookEvent]] = {
    "account.connected": models.AccountConnectedEvent,
    "account.disconnected": models.AccountDisconnectedEvent,
    "account.reauth_required": models.AccountReauthRequiredEvent,
    "account.token_expired": models.AccountTokenExpiredEvent,
    "account.token_expiring": models.AccountTokenExpiringEvent,
    "import.completed": models.ImportCompletedEvent,
    "import.failed": models.ImportFailedEvent,
    "media.failed": models.MediaFailedEvent,
    "media.ready": models.MediaReadyEvent,
    "post.error": models.PostErrorEvent,
    "post.published": models.PostPublishedEvent,
    "post.retried": models.PostRetriedEvent,
    "post.target.failed": models.PostTargetFailedEvent,
    "post.target.incomplete": models.PostTargetIncompleteEvent,
    "post.target.published": models.PostTargetPublishedEvent,
    "webhook.failing": models.WebhookFailingEvent,
    "webhook.test": models.WebhookTestEvent,
}
"""The models of the events, by name."""


class AccountOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list_audit_entries(
        self,
        *,
        action: params.AuditAction | None = None,
        cursor: str | None = None,
        key_id: str | None = None,
        limit: int | None = None,
        member_id: str | None = None,
        object_id: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        timeout: float | None = None,
    ) -> Page[models.AuditEntry]:
        """List audit entries.

        Lists who changed what concerns the organization's security, newest first: API keys, client tokens, sessions
        of the dashboard, the team, webhook endpoints and their secrets, OAuth apps, profiles, accounts that are
        connected, moved to another tenant or profile and disconnected, and the branding. Contains the changes in the mode of the caller's key and those of what both modes share. Entries
        are kept for 400 days. Scope `team:read`.
        """
        return self._api.list(
            "GET",
            "/account/audit",
            query={
                "action": action,
                "cursor": cursor,
                "key_id": key_id,
                "limit": limit,
                "member_id": member_id,
                "object_id": object_id,
                "since": since,
                "until": until,
            },
            timeout=timeout,
            paging="cursor",
            item=models.AuditEntry,
        )

    def list_requests(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        min_status: int | None = None,
        path: str | None = None,
        timeout: float | None = None,
    ) -> Page[models.LoggedRequest]:
        """List requests.

        Lists the requests that API keys of the organization made in the mode of the caller's key, newest first:
        those of the last seven days, at most 10,000. A request is listed a moment after its response; in rare
        cases, such as the end of a server, one is missing. Scope `usage:read`.
        """
        return self._api.list(
            "GET",
            "/account/requests",
            query={"cursor": cursor, "limit": limit, "min_status": min_status, "path": path},
            timeout=timeout,
            paging="cursor",
            item=models.LoggedRequest,
        )

    def get_usage(self, *, timeout: float | None = None) -> models.Report:
        """Get usage.

        Returns the usage of the current calendar month (UTC): requests and posts (published targets), and what the
        plan limits at any time, such as accounts, endpoints and storage; of the key's mode. Each mode has the whole
        plan. This call does not count as a request and works
        when the quota is used up. Scope `usage:read`.
        """
        return self._api.call("GET", "/account/usage", timeout=timeout, model=models.Report)


class ApiKeysOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.Key]:
        """List keys.

        Lists the keys of the calling key's mode, newest first, without revoked ones. A page of keys that are limited to many
        accounts may have fewer keys than `limit`, while `next_cursor` leads to more. Scope `keys:write`.
        """
        return self._api.list(
            "GET",
            "/api-keys",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Key,
        )

    def create(self, *, timeout: float | None = None, **body: Unpack[params.NewKey]) -> models.Key:
        """Create a key.

        Grants only scopes that the calling key has. A test key can't create a live key. Only this response
        contains `key`. With `tenant_id`, `profile_id` or `account_ids` the key sees and changes only what belongs to
        it: accounts, posts all of whose accounts do, their analytics and events, profiles, slots, connect flows and
        media that were uploaded with such a key. What concerns the whole organization fails with 403. Scope
        `keys:write`.
        """
        return self._api.call("POST", "/api-keys", timeout=timeout, body=body, model=models.Key)

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Revoke a key.

        Takes effect immediately. The calling key must have all scopes of the revoked key. Scope `keys:write`.
        """
        return self._api.call("DELETE", f"/api-keys/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def rotate(self, id: str, *, timeout: float | None = None, **body: Unpack[params.Rotation]) -> models.Key:
        """Rotate a key.

        Creates a key with the same name, scopes, bound and expiry; the old key stays valid for `grace_seconds`. The
        calling key must have all scopes of the rotated key. Scope `keys:write`.
        """
        return self._api.call(
            "POST", f"/api-keys/{quote(id, safe='')}/rotate", timeout=timeout, body=body, model=models.Key
        )


class ClientTokensOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def create(self, *, timeout: float | None = None, **body: Unpack[params.NewClientToken]) -> models.ClientToken:
        """Create a client token.

        Returns a token for a page of yours that connects accounts for one `tenant_id`. The page sends it as
        `Authorization: Bearer`, also from another origin, to list platforms and the tenant's accounts, create
        authorization URLs, connect a Bluesky account and finalize pending logins; anything else fails with 403. Logins
        end at the token's `redirect_uri` and are finalized there with a token of the same tenant (as with
        `confirm`); without it they are `hosted`. The calling key must have the token's scopes, `accounts:read` and
        `accounts:write`. Scope `accounts:write`.
        """
        return self._api.call("POST", "/client-tokens", timeout=timeout, body=body, model=models.ClientToken)

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Revoke a client token.

        Takes effect immediately. Scope `accounts:write`.
        """
        return self._api.call("DELETE", f"/client-tokens/{quote(id, safe='')}", timeout=timeout, model=models.Removed)


class ConnectOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def get_branding(self, *, timeout: float | None = None) -> models.ConnectBranding:
        """Get the branding.

        Returns how the connect pages of the organization look; null stands for the default. A test key sees the preview
        that a test key has set, if there is one. Scope `networks:read`.
        """
        return self._api.call("GET", "/connect/branding", timeout=timeout, model=models.ConnectBranding)

    def set_branding(
        self, *, timeout: float | None = None, **body: Unpack[params.NewConnectBranding]
    ) -> models.ConnectBranding:
        """Set the branding.

        Replaces the branding of the pages that this service shows to people who connect an account; what is not sent
        becomes the default. A test key sets a preview, which the pages of test mode show until a live key sets the
        branding. The pages always say who asks for the access and what went wrong. Scope `networks:write`.
        """
        return self._api.call("PUT", "/connect/branding", timeout=timeout, body=body, model=models.ConnectBranding)

    def list_platforms(self, *, timeout: float | None = None) -> Page[models.ConnectPlatform]:
        """List platforms.

        Lists the platforms whose accounts the caller can connect, and how. Scope `accounts:read`.
        """
        return self._api.list("GET", "/connect/platforms", timeout=timeout, paging="none", item=models.ConnectPlatform)


class EventsOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        types: str | None = None,
        timeout: float | None = None,
    ) -> Page[models.Event]:
        """List events.

        Lists every event of the last 30 days, oldest first, also those that no webhook is subscribed to. To follow
        them, pass `next_cursor` as `after`: it is never null, and an empty page means that there is no further
        event yet. An event is listed once its change is committed, so one may follow another with a later
        `timestamp`, but none is skipped or repeated. Scope `webhooks:read`.
        """
        return self._api.list(
            "GET",
            "/events",
            query={"after": after, "limit": limit, "types": types},
            timeout=timeout,
            paging="after",
            item=models.Event,
        )


class MediaOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self,
        *,
        kind: params.MediaKind | None = None,
        limit: int | None = None,
        offset: int | None = None,
        status: params.MediaStatus | None = None,
        timeout: float | None = None,
    ) -> Page[models.Media]:
        """List media.

        Lists media assets, newest first. Scope `media:read`.
        """
        return self._api.list(
            "GET",
            "/media",
            query={"kind": kind, "limit": limit, "offset": offset, "status": status},
            timeout=timeout,
            paging="offset",
            item=models.Media,
        )

    def import_url(self, *, timeout: float | None = None, **body: Unpack[params.NewMediaImport]) -> models.Media:
        """Import a file.

        Fetches a file from a public URL in the background; afterwards the asset is `ready` or `failed`. Scope
        `media:write`.
        """
        return self._api.call("POST", "/media/import", timeout=timeout, body=body, model=models.Media)

    def get_settings(self, *, timeout: float | None = None) -> models.MediaSettings:
        """Get the media settings.

        Live and test keys see the same settings. Scope `media:read`.
        """
        return self._api.call("GET", "/media/settings", timeout=timeout, model=models.MediaSettings)

    def update_settings(
        self, *, timeout: float | None = None, **body: Unpack[params.MediaSettingsPatch]
    ) -> models.MediaSettings:
        """Update the media settings.

        Applies to what is published from now on, in both modes; only live keys can change it. Scope `media:write`.
        """
        return self._api.call("PATCH", "/media/settings", timeout=timeout, body=body, model=models.MediaSettings)

    def create_upload(self, *, timeout: float | None = None, **body: Unpack[params.NewUpload]) -> models.MediaUpload:
        """Create an upload.

        Returns a URL that takes the file by one PUT request, with the headers in `upload_headers` and without
        an API key. The PUT can be repeated until the upload is confirmed. The file must match the declared
        properties. Scope `media:write`.
        """
        return self._api.call("POST", "/media/upload", timeout=timeout, body=body, model=models.MediaUpload)

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Delete a media asset.

        Also deletes the file. Fails with 409 while an unfinished post uses the asset. Scope `media:write`.
        """
        return self._api.call("DELETE", f"/media/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def get(self, id: str, *, wait: int | None = None, timeout: float | None = None) -> models.Media:
        """Get a media asset.

        With `wait`, returns as soon as the asset is `ready` or `failed`, or as it is when that many seconds are
        over. The events `media.ready` and `media.failed` tell the same. Scope `media:read`.
        """
        return self._api.call(
            "GET", f"/media/{quote(id, safe='')}", query={"wait": wait}, timeout=timeout, model=models.Media
        )

    def update(self, id: str, *, timeout: float | None = None, **body: Unpack[params.MediaPatch]) -> models.Media:
        """Update a media asset.

        Changes the alt text. A post that names no alt text for the asset is published with the one that the asset has
        then, also if it was created before; a published post keeps the text that it was sent with. Fails with 409 while
        a post with the asset is being published or retried. Scope `media:write`.
        """
        return self._api.call("PATCH", f"/media/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Media)

    def confirm(self, id: str, *, timeout: float | None = None) -> models.Media:
        """Confirm an upload.

        Inspects the uploaded bytes and sets the asset's type and status. Small files become `ready`; larger
        ones, and pictures that no platform takes as they are (HEIC, AVIF, TIFF), are `uploaded` until they are fully read
        and decoded. Posts can use both. Repeating the call has no effect.
        Fails with 409 while nothing is uploaded, and as the PUT did if that was refused; a rejected file is `failed`
        permanently. Scope `media:write`.
        """
        return self._api.call(
            "POST", f"/media/{quote(id, safe='')}/confirm", is_repeatable=True, timeout=timeout, model=models.Media
        )


class PostsOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self,
        *,
        created_after: str | datetime | None = None,
        created_before: str | datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        metadata: Mapping[str, str] | None = None,
        platform: params.Platform | None = None,
        profile_id: str | None = None,
        q: str | None = None,
        scheduled_after: str | datetime | None = None,
        scheduled_before: str | datetime | None = None,
        social_account_id: str | None = None,
        status: params.PostStatus | None = None,
        tenant_id: str | None = None,
        timeout: float | None = None,
    ) -> Page[models.PostSummary]:
        """List posts.

        Lists posts, newest first, without deleted ones. With `q`, a page looks through 1,000 posts that match the
        other filters, or fewer with long texts: it may have fewer posts than `limit`, or none, while `next_cursor`
        leads to more. Scope `posts:read`.
        """
        return self._api.list(
            "GET",
            "/posts",
            query={
                "created_after": created_after,
                "created_before": created_before,
                "cursor": cursor,
                "limit": limit,
                "metadata": metadata,
                "platform": platform,
                "profile_id": profile_id,
                "q": q,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "social_account_id": social_account_id,
                "status": status,
                "tenant_id": tenant_id,
            },
            timeout=timeout,
            paging="cursor",
            item=models.PostSummary,
        )

    def create(
        self, *, idempotency_key: str | None = None, timeout: float | None = None, **body: Unpack[params.NewPost]
    ) -> models.Post:
        """Create a post.

        Publishes to every account in `accounts`: immediately, at `scheduled_at`, at the next open posting
        slot of `queued_from_account`, or, if `is_draft` is true, after release. Publishing happens after the
        response; the targets show the result. A repeated idempotency key returns the first post with 200. With
        `reply_to` the post is published below another one that is live, as a comment or the next part of its thread.
        Scope `posts:write`.
        """
        return self._api.call(
            "POST", "/posts", key=idempotency_key or new_key(), timeout=timeout, body=body, model=models.Post
        )

    def create_batch(self, *, timeout: float | None = None, **body: Unpack[params.NewPosts]) -> models.CreatedPosts:
        """Create several posts.

        Handles each item as a creation of its own, in order; a failing item does not affect the others. The
        header `Idempotency-Key` is ignored; use each item's `external_ref`. Scope `posts:write`.
        """
        return self._api.call("POST", "/posts/batch", timeout=timeout, body=body, model=models.CreatedPosts)

    def validate(self, *, timeout: float | None = None, **body: Unpack[params.PostProposal]) -> models.Verdict:
        """Validate a post.

        Takes the body of a creation and returns what each platform would report; nothing is stored. An issue
        of severity `error` would fail the creation. The warning `duplicate_text` tells that the account
        published the same text within 24 hours of the post's time, or is to publish it then; `account_exhausted`
        that the platform throttles it then, or takes no more posts; `app_refused` that the platform refuses the app of the
        account at present, so that the post waits; `reply_to_incomplete` that the post to reply to is live there without
        some of its parts; `unknown_member` that a member of the body has no
        meaning.

        With `look_up`, platforms are asked for what only they know, within ten seconds, with the grants of the accounts
        that have no error of their own: `reference_not_found` tells that a board, section, flair, subreddit, category,
        playlist or quoted post does not exist, `reference_not_allowed` that the account or this post can't use it, and
        `setting_required` that the platform requires a setting. A platform that is not asked or does not answer is
        the warning `look_up_failed`. Scope `posts:write`.
        """
        return self._api.call(
            "POST", "/posts/validate", is_repeatable=True, timeout=timeout, body=body, model=models.Verdict
        )

    def delete(self, id: str, *, timeout: float | None = None) -> models.CanceledPost:
        """Delete a post.

        Cancels pending targets. Targets in progress finish, and published posts stay live. Scope
        `posts:write`.
        """
        return self._api.call("DELETE", f"/posts/{quote(id, safe='')}", timeout=timeout, model=models.CanceledPost)

    def get(self, id: str, *, timeout: float | None = None) -> models.Post:
        """Get a post.

        Scope `posts:read`.
        """
        return self._api.call("GET", f"/posts/{quote(id, safe='')}", timeout=timeout, model=models.Post)

    def update(self, id: str, *, timeout: float | None = None, **body: Unpack[params.EditPost]) -> models.Post:
        """Update a post.

        Updates the fields sent. `is_draft: false` releases a draft. Fails with 409 `publishing_started` once
        publishing has begun or the post has ended. Scope `posts:write`.
        """
        return self._api.call("PATCH", f"/posts/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Post)

    def get_analytics(
        self, id: str, *, history: bool | None = None, timeout: float | None = None
    ) -> models.PostAnalytics:
        """Get a post's analytics.

        Fetches the metrics of each published target from its platform and returns the latest of each, and
        totals. If a platform fails, the target's previous metrics are returned with their time, or the target
        is omitted. Of an unpublished target the last metrics are returned. Metrics are also collected on a
        schedule, hourly at first and for a month. Scope
        `analytics:read`.
        """
        return self._api.call(
            "GET",
            f"/posts/{quote(id, safe='')}/analytics",
            query={"history": history},
            timeout=timeout,
            model=models.PostAnalytics,
        )

    def retry(self, id: str, *, timeout: float | None = None, **body: Unpack[params.RetryPost]) -> models.Post:
        """Retry a post.

        Starts the `dead` targets of a post over, or those of them in `targets`: they are `queued` again, with a
        new budget of attempts. A `published` target that is `missing` a part which failed is retried as well: it stays
        `published`, and only its missing parts are published, below those that are live; edit the target first if the
        text was refused. Their events carry the `round` of the retry; `post.published` and `post.error` are
        not sent again, and one `post.retried` tells how the post ends. A target that may be live is looked up first,
        and published only when its platform says that it is not. A `canceled` target is not retried. Fails with 409 if there is no target to retry, or the
        accounts of all that are were disconnected. Scope `posts:write`.
        """
        return self._api.call(
            "POST", f"/posts/{quote(id, safe='')}/retry", timeout=timeout, body=body, model=models.Post
        )

    def edit_target(
        self, id: str, target_id: str, *, timeout: float | None = None, **body: Unpack[params.EditTarget]
    ) -> models.Target:
        """Edit a target.

        Changes a published target's posts on their platform: the text of the main post, texts of replies, and the
        settings that the account's capabilities list under `editing`. Replies that are `missing` can be changed on every
        platform, in a call of their own: nothing is published, and `POST /posts/{id}/retry` publishes the new texts. The new values are checked as on creation
        first. The target shows them in `edits`, with the time in `edited_at`; the post's containers and the other
        targets stay as they are. An edit can be repeated. Fails with 409 if the target is not live, or another edit
        of it is being made, with 422 `editing_unsupported` if the platform lets no app change such a post (X,
        Instagram, TikTok, Threads and Bluesky: none), with 422 `reconnect_required` if the account was connected
        without the scope for it, and with 503 if the platform does not answer: repeat the call after `Retry-After`.
        Scope `posts:write`.
        """
        return self._api.call(
            "PATCH",
            f"/posts/{quote(id, safe='')}/targets/{quote(target_id, safe='')}",
            timeout=timeout,
            body=body,
            model=models.Target,
        )

    def retry_target(self, id: str, target_id: str, *, timeout: float | None = None) -> models.Target:
        """Retry a target.

        Starts the next attempt of a target now that is `failed`, or `queued` with an `error_code`: the platform
        throttled another post of its account. One that is `frozen` waits on. Fails with 409 for any other target; `POST /posts/{id}/retry` starts
        a `dead` one over, and publishes what is `missing` of a published one.
        Scope `posts:write`.
        """
        return self._api.call(
            "POST",
            f"/posts/{quote(id, safe='')}/targets/{quote(target_id, safe='')}/retry",
            timeout=timeout,
            model=models.Target,
        )

    def unpublish_target(self, id: str, target_id: str, *, timeout: float | None = None) -> models.Target:
        """Unpublish a target.

        Deletes a published target's posts from their platform: the replies, last to first, and then the main
        post. What was still to follow the main post is given up when it is deleted. The target stays `published`, and
        `unpublished_at` tells when it was deleted. Repeating the call returns the same, and a post that the
        platform doesn't have any more counts as deleted. Fails with 409 if the target is not live, with 422
        `deletion_unsupported` if the platform lets no app delete posts (Instagram, TikTok), with 422
        `reconnect_required` if the account was connected without the scope for it, and with 503 if the platform
        does not answer: repeat the call after `Retry-After`. Scope `posts:write`.
        """
        return self._api.call(
            "POST",
            f"/posts/{quote(id, safe='')}/targets/{quote(target_id, safe='')}/unpublish",
            timeout=timeout,
            model=models.Target,
        )

    def get_timeline(
        self, id: str, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> models.Timeline:
        """Get a post's timeline.

        Returns past events, oldest first, and upcoming steps. What a request caused has its `request_id` in `detail`.
        Past events are kept for a year after the post has ended. Scope `posts:read`.
        """
        return self._api.call(
            "GET",
            f"/posts/{quote(id, safe='')}/timeline",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            model=models.Timeline,
        )


class ProfilesOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.Profile]:
        """List profiles.

        Lists profiles, newest first. A page may have fewer profiles than `limit`, if their settings are large, or none,
        with a limited key, while `next_cursor` leads to more. Scope `profiles:read`.
        """
        return self._api.list(
            "GET",
            "/profiles",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Profile,
        )

    def create(self, *, timeout: float | None = None, **body: Unpack[params.NewProfile]) -> models.Profile:
        """Create a profile.

        Accounts listed are removed from their previous profiles. Scope `profiles:write`.
        """
        return self._api.call("POST", "/profiles", timeout=timeout, body=body, model=models.Profile)

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Delete a profile.

        The profile's accounts stay connected, without a profile. Scope `profiles:write`.
        """
        return self._api.call("DELETE", f"/profiles/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def get(self, id: str, *, timeout: float | None = None) -> models.Profile:
        """Get a profile.

        Scope `profiles:read`.
        """
        return self._api.call("GET", f"/profiles/{quote(id, safe='')}", timeout=timeout, model=models.Profile)

    def update(self, id: str, *, timeout: float | None = None, **body: Unpack[params.ProfilePatch]) -> models.Profile:
        """Update a profile.

        Updates the fields sent; null clears a nullable field. Scope `profiles:write`.
        """
        return self._api.call(
            "PATCH", f"/profiles/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Profile
        )


class SchedulingOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def find_slot(
        self,
        *,
        account: str,
        after: str | datetime | None = None,
        count: int | None = None,
        timezone: str | None = None,
        timeout: float | None = None,
    ) -> models.OpenSlots:
        """Find open slots.

        Returns the next slots of an account that no post holds, up to 365 days ahead. This reserves nothing;
        creating a post with `queued_from_account` does. Scope `scheduling:read`.
        """
        return self._api.call(
            "GET",
            "/scheduling/find-slot",
            query={"account": account, "after": after, "count": count, "timezone": timezone},
            timeout=timeout,
            model=models.OpenSlots,
        )

    def list_slots(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.SlotSet]:
        """List posting slots.

        Lists the organization's slots first, then those of each account. A page has up to some 5,000 slots, so that it may
        have fewer sets than `limit`, with a limited key none, while `next_cursor` leads to more. Scope
        `scheduling:read`.
        """
        return self._api.list(
            "GET",
            "/scheduling/slots",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.SlotSet,
        )

    def set_slots(self, *, timeout: float | None = None, **body: Unpack[params.NewSlotSet]) -> models.SlotSet:
        """Set posting slots.

        Replaces all slots of an account or of the organization. An account without slots of its own, or with
        an empty list, uses the organization's. Posts that hold a slot keep their time. Scope
        `scheduling:write`.
        """
        return self._api.call("PUT", "/scheduling/slots", timeout=timeout, body=body, model=models.SlotSet)


class SocialAccountsOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self,
        *,
        cursor: str | None = None,
        id: str | None = None,
        limit: int | None = None,
        network_unique_id: str | None = None,
        platform: params.Platform | None = None,
        profile_id: str | None = None,
        tenant_id: str | None = None,
        username: str | None = None,
        timeout: float | None = None,
    ) -> Page[models.SocialAccount]:
        """List accounts.

        Lists accounts, newest first, without disconnected ones. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            "/social-accounts",
            query={
                "cursor": cursor,
                "id": id,
                "limit": limit,
                "network_unique_id": network_unique_id,
                "platform": platform,
                "profile_id": profile_id,
                "tenant_id": tenant_id,
                "username": username,
            },
            timeout=timeout,
            paging="cursor",
            item=models.SocialAccount,
        )

    def connect_bluesky(
        self, *, timeout: float | None = None, **body: Unpack[params.BlueskyLogin]
    ) -> models.SocialAccount:
        """Connect a Bluesky account.

        Takes an app password, which users create and revoke in Bluesky's settings. The account's DID and
        handle must resolve to the server that accepts the password, otherwise the call fails with 422.
        Reconnecting keeps the account's id and tenant; naming another tenant fails with 422, unless the account was
        disconnected: then it is a new account of that tenant. Scope `accounts:write`.
        """
        return self._api.call(
            "POST", "/social-accounts/bluesky/connect", timeout=timeout, body=body, model=models.SocialAccount
        )

    def get_pending_login(self, token: str, *, timeout: float | None = None) -> models.PendingLogin:
        """Get a pending login.

        Takes the token that the connect flow sent with `status=pending`, which is valid for 30 minutes. Needs
        no API key.
        """
        return self._api.call(
            "GET", f"/social-accounts/pending/{quote(token, safe='')}", timeout=timeout, model=models.PendingLogin
        )

    def finalize_pending_login(
        self, token: str, *, timeout: float | None = None, **body: Unpack[params.PendingChoice]
    ) -> models.ConnectedAccounts:
        """Finalize a pending login.

        Connects all selected accounts, or none. Repeating the same selection returns the same result; a
        different selection fails with 409. Needs no API key, unless the login was begun with `confirm`: then a key
        with the scope `accounts:write`.
        """
        return self._api.call(
            "POST",
            f"/social-accounts/pending/{quote(token, safe='')}/finalize",
            timeout=timeout,
            body=body,
            model=models.ConnectedAccounts,
        )

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Disconnect an account.

        Cancels the account's pending targets; published posts stay live. Revokes the grant on platforms that
        support it and erases the tokens. Connecting the account again for the same tenant restores its id; for another
        tenant it is a new account. Scope `accounts:write`.
        """
        return self._api.call("DELETE", f"/social-accounts/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def get(self, id: str, *, timeout: float | None = None) -> models.SocialAccount:
        """Get an account.

        Scope `accounts:read`.
        """
        return self._api.call(
            "GET", f"/social-accounts/{quote(id, safe='')}", timeout=timeout, model=models.SocialAccount
        )

    def update(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.SocialAccountPatch]
    ) -> models.SocialAccount:
        """Update an account.

        Updates the fields sent; null clears a nullable field. An account that changes its `tenant_id` leaves its profile,
        unless `profile_id` names one, and the keys that are limited to a list of accounts. Scope `accounts:write`.
        """
        return self._api.call(
            "PATCH", f"/social-accounts/{quote(id, safe='')}", timeout=timeout, body=body, model=models.SocialAccount
        )

    def get_capabilities(self, id: str, *, timeout: float | None = None) -> models.SocialAccountCapabilities:
        """Get an account's capabilities.

        Returns limits for texts, media and replies, and the JSON Schema of the platform's settings in
        `config`. Scope `accounts:read`.
        """
        return self._api.call(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/capabilities",
            timeout=timeout,
            model=models.SocialAccountCapabilities,
        )

    def get_health(self, id: str, *, timeout: float | None = None) -> models.SocialAccountHealth:
        """Check an account.

        Calls the platform once as the account, refreshing an expired token, and updates the account's status
        from the response. Scope `accounts:read`.
        """
        return self._api.call(
            "GET", f"/social-accounts/{quote(id, safe='')}/health", timeout=timeout, model=models.SocialAccountHealth
        )

    def list_imported_posts(
        self, id: str, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.ImportedPost]:
        """List imported posts.

        Lists an account's imported posts, latest publication first. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/imported-posts",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.ImportedPost,
        )

    def list_imports(
        self, id: str, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.Import]:
        """List imports.

        Lists an account's imports, newest first. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/imports",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Import,
        )

    def create_import(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.NewImport]
    ) -> models.Import:
        """Import earlier posts.

        Imports the newest posts of an account within the range, including posts not published through this
        service. Posts that an earlier import brought are skipped and counted. The import runs in the
        background, respects the platform's rate limits, and ends with `import.completed` or `import.failed`.
        One import at a time per account. Scope `accounts:write`.
        """
        return self._api.call(
            "POST", f"/social-accounts/{quote(id, safe='')}/imports", timeout=timeout, body=body, model=models.Import
        )

    def get_import(self, id: str, import_id: str, *, timeout: float | None = None) -> models.Import:
        """Get an import.

        Returns the import's progress or result. Scope `accounts:read`.
        """
        return self._api.call(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/imports/{quote(import_id, safe='')}",
            timeout=timeout,
            model=models.Import,
        )

    def get_limits(self, id: str, *, timeout: float | None = None) -> models.AccountLimits:
        """Get an account's limits.

        Returns how much of each limit of the platform the account has used, and when it can take the next post.
        Asks the platform where it tells; other documented limits are counted from what was published here. Scope
        `accounts:read`.
        """
        return self._api.call(
            "GET", f"/social-accounts/{quote(id, safe='')}/limits", timeout=timeout, model=models.AccountLimits
        )

    def list_options(
        self, id: str, kind: str, *, parent: str | None = None, timeout: float | None = None
    ) -> Page[models.SocialAccountOption]:
        """List options for a setting.

        Asks the platform for the options of a kind, for example `boards` or `flairs`; `capabilities` lists
        the kinds that an account has. `mentions` (LinkedIn) looks up the organizations and members that a
        text can mention. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/options/{quote(kind, safe='')}",
            query={"parent": parent},
            timeout=timeout,
            paging="none",
            item=models.SocialAccountOption,
        )

    def retry_failed_targets(self, id: str, *, timeout: float | None = None) -> models.RetriedTargets:
        """Retry what an account lost.

        Starts the targets of an account over that ended `dead` with `token_expired` in the last seven days, once
        the account is connected again: at most 500 in a call, the latest first. Returns their number. Fails with
        409 while the account is not `active`. Scope `posts:write`.
        """
        return self._api.call(
            "POST", f"/social-accounts/{quote(id, safe='')}/retry-failed", timeout=timeout, model=models.RetriedTargets
        )


class SocialNetworksOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(self, *, timeout: float | None = None) -> Page[models.SocialNetwork]:
        """List apps.

        Ordered by platform. Scope `networks:read`.
        """
        return self._api.list("GET", "/social-networks", timeout=timeout, paging="none", item=models.SocialNetwork)

    def create(self, *, timeout: float | None = None, **body: Unpack[params.NewSocialNetwork]) -> models.SocialNetwork:
        """Register an app.

        Registers one app per platform. If the platform has one, the fields sent replace its fields. The
        client secret is stored encrypted and is in no response. Scope `networks:write`.
        """
        return self._api.call("POST", "/social-networks", timeout=timeout, body=body, model=models.SocialNetwork)

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Remove an app.

        Accounts connected through the app stay connected; no further accounts can be connected until an app
        is registered again. Scope `networks:write`.
        """
        return self._api.call("DELETE", f"/social-networks/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def get(self, id: str, *, timeout: float | None = None) -> models.SocialNetwork:
        """Get an app.

        Scope `networks:read`.
        """
        return self._api.call(
            "GET", f"/social-networks/{quote(id, safe='')}", timeout=timeout, model=models.SocialNetwork
        )

    def update(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.SocialNetworkPatch]
    ) -> models.SocialNetwork:
        """Update an app.

        Updates the fields sent; null clears a nullable field. Scope `networks:write`.
        """
        return self._api.call(
            "PATCH", f"/social-networks/{quote(id, safe='')}", timeout=timeout, body=body, model=models.SocialNetwork
        )

    def create_auth_url(
        self, platform: str, *, timeout: float | None = None, **body: Unpack[params.NewAuthorization]
    ) -> models.AuthUrl:
        """Create an authorization URL.

        Returns the URL to send the user to: the platform's, or with `hosted` our page before it. It is valid once
        and for 15 minutes. The organization's own
        enabled app is used, or else a shared one. The path takes a platform, not an app's id. Scope
        `accounts:write`.
        """
        return self._api.call(
            "POST",
            f"/social-networks/{quote(platform, safe='')}/auth-url",
            timeout=timeout,
            body=body,
            model=models.AuthUrl,
        )


class TeamOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.TeamMember]:
        """List the team.

        Lists the members in the order they were invited. Live and test keys see the same team. Scope
        `team:read`.
        """
        return self._api.list(
            "GET",
            "/team",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.TeamMember,
        )

    def invite_member(self, *, timeout: float | None = None, **body: Unpack[params.NewTeamMember]) -> models.TeamMember:
        """Invite a person.

        Only this response contains `invite_url`; send it to the person, who creates a passkey there and signs in to the
        dashboard with it. The invitation can be accepted for seven days; after that the person can be invited again.
        The calling key must have all scopes of the role. A person who is invited with a test key gets access to test
        data only. Scope `team:write`.
        """
        return self._api.call("POST", "/team", timeout=timeout, body=body, model=models.TeamMember)

    def remove_member(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Remove a person.

        Ends the person's sessions; also revokes an invitation that was not accepted. The last owner can't be removed.
        The calling key must have all scopes of the person's role. A test key removes only members with access to test
        data only. Scope `team:write`.
        """
        return self._api.call("DELETE", f"/team/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def update_member(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.TeamMemberPatch]
    ) -> models.TeamMember:
        """Change a role.

        Takes effect with the person's next request. The last owner stays one. The calling key must have all scopes of
        both roles. A test key changes only members with access to test data only. Scope `team:write`.
        """
        return self._api.call(
            "PATCH", f"/team/{quote(id, safe='')}", timeout=timeout, body=body, model=models.TeamMember
        )


class WebhooksOperations:
    def __init__(self, api: Api) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> Page[models.Webhook]:
        """List endpoints.

        Lists endpoints, newest first. Scope `webhooks:read`.
        """
        return self._api.list(
            "GET",
            "/webhooks",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Webhook,
        )

    def create(self, *, timeout: float | None = None, **body: Unpack[params.NewWebhook]) -> models.Webhook:
        """Register an endpoint.

        Takes `https` URLs whose host is on the public internet. Only this response contains `signing_secret`.
        Scope `webhooks:write`.
        """
        return self._api.call("POST", "/webhooks", timeout=timeout, body=body, model=models.Webhook)

    def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Delete an endpoint.

        Pending deliveries are dropped. Scope `webhooks:write`.
        """
        return self._api.call("DELETE", f"/webhooks/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    def get(self, id: str, *, timeout: float | None = None) -> models.Webhook:
        """Get an endpoint.

        Scope `webhooks:read`.
        """
        return self._api.call("GET", f"/webhooks/{quote(id, safe='')}", timeout=timeout, model=models.Webhook)

    def update(self, id: str, *, timeout: float | None = None, **body: Unpack[params.WebhookPatch]) -> models.Webhook:
        """Update an endpoint.

        Updates the fields sent. While `is_active` is false nothing is delivered; events of that time are kept
        as failed deliveries, which can be requested again. The signing secret can be rotated on the dashboard. Scope `webhooks:write`.
        """
        return self._api.call(
            "PATCH", f"/webhooks/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Webhook
        )

    def list_deliveries(
        self,
        id: str,
        *,
        cursor: str | None = None,
        event: params.DeliveredEvent | None = None,
        limit: int | None = None,
        status: params.DeliveryStatus | None = None,
        timeout: float | None = None,
    ) -> Page[models.WebhookDelivery]:
        """List deliveries.

        Lists completed and pending deliveries to an endpoint, newest first. Scope `webhooks:read`.
        """
        return self._api.list(
            "GET",
            f"/webhooks/{quote(id, safe='')}/deliveries",
            query={"cursor": cursor, "event": event, "limit": limit, "status": status},
            timeout=timeout,
            paging="cursor",
            item=models.WebhookDelivery,
        )

    def get_delivery(self, id: str, delivery_id: str, *, timeout: float | None = None) -> models.WebhookDeliveryDetails:
        """Get a delivery.

        Returns a delivery with what was sent and what the endpoint answered. Scope `webhooks:read`.
        """
        return self._api.call(
            "GET",
            f"/webhooks/{quote(id, safe='')}/deliveries/{quote(delivery_id, safe='')}",
            timeout=timeout,
            model=models.WebhookDeliveryDetails,
        )

    def redeliver(self, id: str, delivery_id: str, *, timeout: float | None = None) -> models.WebhookDelivery:
        """Redeliver an event.

        Repeats a delivery that succeeded or failed: the same body and event id, with a new retry budget. One that
        waits for its next attempt is attempted now. Scope `webhooks:write`.
        """
        return self._api.call(
            "POST",
            f"/webhooks/{quote(id, safe='')}/deliveries/{quote(delivery_id, safe='')}/redeliver",
            timeout=timeout,
            model=models.WebhookDelivery,
        )

    def replay(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.NewWebhookReplay]
    ) -> models.WebhookReplay:
        """Replay events.

        Repeats the deliveries of events since a time, oldest first: the same bodies and event ids, with a new retry
        budget. They are sent at the rate at which the endpoint accepts them. Up to 10,000 are queued at once; if
        `has_more` is true, call again with the same times. A call that is repeated with the same times does not repeat
        what it has queued. Scope `webhooks:write`.
        """
        return self._api.call(
            "POST", f"/webhooks/{quote(id, safe='')}/replay", timeout=timeout, body=body, model=models.WebhookReplay
        )

    def test(self, id: str, *, timeout: float | None = None) -> models.WebhookTest:
        """Test an endpoint.

        Sends one signed test event, `webhook.test`, with the headers of a real delivery, and returns the
        endpoint's response. Works while the endpoint is paused. Scope `webhooks:write`.
        """
        return self._api.call("POST", f"/webhooks/{quote(id, safe='')}/test", timeout=timeout, model=models.WebhookTest)


class Resources:
    """The resources that have no methods besides the operations of the document."""

    _api: Api

    @cached_property
    def account(self) -> AccountOperations:
        return AccountOperations(self._api)

    @cached_property
    def api_keys(self) -> ApiKeysOperations:
        return ApiKeysOperations(self._api)

    @cached_property
    def client_tokens(self) -> ClientTokensOperations:
        return ClientTokensOperations(self._api)

    @cached_property
    def connect(self) -> ConnectOperations:
        return ConnectOperations(self._api)

    @cached_property
    def profiles(self) -> ProfilesOperations:
        return ProfilesOperations(self._api)

    @cached_property
    def scheduling(self) -> SchedulingOperations:
        return SchedulingOperations(self._api)

    @cached_property
    def social_accounts(self) -> SocialAccountsOperations:
        return SocialAccountsOperations(self._api)

    @cached_property
    def social_networks(self) -> SocialNetworksOperations:
        return SocialNetworksOperations(self._api)

    @cached_property
    def team(self) -> TeamOperations:
        return TeamOperations(self._api)

    @cached_property
    def webhooks(self) -> WebhooksOperations:
        return WebhooksOperations(self._api)


class AsyncAccountOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list_audit_entries(
        self,
        *,
        action: params.AuditAction | None = None,
        cursor: str | None = None,
        key_id: str | None = None,
        limit: int | None = None,
        member_id: str | None = None,
        object_id: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.AuditEntry]:
        """List audit entries.

        Lists who changed what concerns the organization's security, newest first: API keys, client tokens, sessions
        of the dashboard, the team, webhook endpoints and their secrets, OAuth apps, profiles, accounts that are
        connected, moved to another tenant or profile and disconnected, and the branding. Contains the changes in the mode of the caller's key and those of what both modes share. Entries
        are kept for 400 days. Scope `team:read`.
        """
        return self._api.list(
            "GET",
            "/account/audit",
            query={
                "action": action,
                "cursor": cursor,
                "key_id": key_id,
                "limit": limit,
                "member_id": member_id,
                "object_id": object_id,
                "since": since,
                "until": until,
            },
            timeout=timeout,
            paging="cursor",
            item=models.AuditEntry,
        )

    def list_requests(
        self,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        min_status: int | None = None,
        path: str | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.LoggedRequest]:
        """List requests.

        Lists the requests that API keys of the organization made in the mode of the caller's key, newest first:
        those of the last seven days, at most 10,000. A request is listed a moment after its response; in rare
        cases, such as the end of a server, one is missing. Scope `usage:read`.
        """
        return self._api.list(
            "GET",
            "/account/requests",
            query={"cursor": cursor, "limit": limit, "min_status": min_status, "path": path},
            timeout=timeout,
            paging="cursor",
            item=models.LoggedRequest,
        )

    async def get_usage(self, *, timeout: float | None = None) -> models.Report:
        """Get usage.

        Returns the usage of the current calendar month (UTC): requests and posts (published targets), and what the
        plan limits at any time, such as accounts, endpoints and storage; of the key's mode. Each mode has the whole
        plan. This call does not count as a request and works
        when the quota is used up. Scope `usage:read`.
        """
        return await self._api.call("GET", "/account/usage", timeout=timeout, model=models.Report)


class AsyncApiKeysOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.Key]:
        """List keys.

        Lists the keys of the calling key's mode, newest first, without revoked ones. A page of keys that are limited to many
        accounts may have fewer keys than `limit`, while `next_cursor` leads to more. Scope `keys:write`.
        """
        return self._api.list(
            "GET",
            "/api-keys",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Key,
        )

    async def create(self, *, timeout: float | None = None, **body: Unpack[params.NewKey]) -> models.Key:
        """Create a key.

        Grants only scopes that the calling key has. A test key can't create a live key. Only this response
        contains `key`. With `tenant_id`, `profile_id` or `account_ids` the key sees and changes only what belongs to
        it: accounts, posts all of whose accounts do, their analytics and events, profiles, slots, connect flows and
        media that were uploaded with such a key. What concerns the whole organization fails with 403. Scope
        `keys:write`.
        """
        return await self._api.call("POST", "/api-keys", timeout=timeout, body=body, model=models.Key)

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Revoke a key.

        Takes effect immediately. The calling key must have all scopes of the revoked key. Scope `keys:write`.
        """
        return await self._api.call("DELETE", f"/api-keys/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    async def rotate(self, id: str, *, timeout: float | None = None, **body: Unpack[params.Rotation]) -> models.Key:
        """Rotate a key.

        Creates a key with the same name, scopes, bound and expiry; the old key stays valid for `grace_seconds`. The
        calling key must have all scopes of the rotated key. Scope `keys:write`.
        """
        return await self._api.call(
            "POST", f"/api-keys/{quote(id, safe='')}/rotate", timeout=timeout, body=body, model=models.Key
        )


class AsyncClientTokensOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    async def create(
        self, *, timeout: float | None = None, **body: Unpack[params.NewClientToken]
    ) -> models.ClientToken:
        """Create a client token.

        Returns a token for a page of yours that connects accounts for one `tenant_id`. The page sends it as
        `Authorization: Bearer`, also from another origin, to list platforms and the tenant's accounts, create
        authorization URLs, connect a Bluesky account and finalize pending logins; anything else fails with 403. Logins
        end at the token's `redirect_uri` and are finalized there with a token of the same tenant (as with
        `confirm`); without it they are `hosted`. The calling key must have the token's scopes, `accounts:read` and
        `accounts:write`. Scope `accounts:write`.
        """
        return await self._api.call("POST", "/client-tokens", timeout=timeout, body=body, model=models.ClientToken)

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Revoke a client token.

        Takes effect immediately. Scope `accounts:write`.
        """
        return await self._api.call(
            "DELETE", f"/client-tokens/{quote(id, safe='')}", timeout=timeout, model=models.Removed
        )


class AsyncConnectOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    async def get_branding(self, *, timeout: float | None = None) -> models.ConnectBranding:
        """Get the branding.

        Returns how the connect pages of the organization look; null stands for the default. A test key sees the preview
        that a test key has set, if there is one. Scope `networks:read`.
        """
        return await self._api.call("GET", "/connect/branding", timeout=timeout, model=models.ConnectBranding)

    async def set_branding(
        self, *, timeout: float | None = None, **body: Unpack[params.NewConnectBranding]
    ) -> models.ConnectBranding:
        """Set the branding.

        Replaces the branding of the pages that this service shows to people who connect an account; what is not sent
        becomes the default. A test key sets a preview, which the pages of test mode show until a live key sets the
        branding. The pages always say who asks for the access and what went wrong. Scope `networks:write`.
        """
        return await self._api.call(
            "PUT", "/connect/branding", timeout=timeout, body=body, model=models.ConnectBranding
        )

    def list_platforms(self, *, timeout: float | None = None) -> AsyncPaginator[models.ConnectPlatform]:
        """List platforms.

        Lists the platforms whose accounts the caller can connect, and how. Scope `accounts:read`.
        """
        return self._api.list("GET", "/connect/platforms", timeout=timeout, paging="none", item=models.ConnectPlatform)


class AsyncEventsOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self,
        *,
        after: str | None = None,
        limit: int | None = None,
        types: str | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.Event]:
        """List events.

        Lists every event of the last 30 days, oldest first, also those that no webhook is subscribed to. To follow
        them, pass `next_cursor` as `after`: it is never null, and an empty page means that there is no further
        event yet. An event is listed once its change is committed, so one may follow another with a later
        `timestamp`, but none is skipped or repeated. Scope `webhooks:read`.
        """
        return self._api.list(
            "GET",
            "/events",
            query={"after": after, "limit": limit, "types": types},
            timeout=timeout,
            paging="after",
            item=models.Event,
        )


class AsyncMediaOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self,
        *,
        kind: params.MediaKind | None = None,
        limit: int | None = None,
        offset: int | None = None,
        status: params.MediaStatus | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.Media]:
        """List media.

        Lists media assets, newest first. Scope `media:read`.
        """
        return self._api.list(
            "GET",
            "/media",
            query={"kind": kind, "limit": limit, "offset": offset, "status": status},
            timeout=timeout,
            paging="offset",
            item=models.Media,
        )

    async def import_url(self, *, timeout: float | None = None, **body: Unpack[params.NewMediaImport]) -> models.Media:
        """Import a file.

        Fetches a file from a public URL in the background; afterwards the asset is `ready` or `failed`. Scope
        `media:write`.
        """
        return await self._api.call("POST", "/media/import", timeout=timeout, body=body, model=models.Media)

    async def get_settings(self, *, timeout: float | None = None) -> models.MediaSettings:
        """Get the media settings.

        Live and test keys see the same settings. Scope `media:read`.
        """
        return await self._api.call("GET", "/media/settings", timeout=timeout, model=models.MediaSettings)

    async def update_settings(
        self, *, timeout: float | None = None, **body: Unpack[params.MediaSettingsPatch]
    ) -> models.MediaSettings:
        """Update the media settings.

        Applies to what is published from now on, in both modes; only live keys can change it. Scope `media:write`.
        """
        return await self._api.call("PATCH", "/media/settings", timeout=timeout, body=body, model=models.MediaSettings)

    async def create_upload(
        self, *, timeout: float | None = None, **body: Unpack[params.NewUpload]
    ) -> models.MediaUpload:
        """Create an upload.

        Returns a URL that takes the file by one PUT request, with the headers in `upload_headers` and without
        an API key. The PUT can be repeated until the upload is confirmed. The file must match the declared
        properties. Scope `media:write`.
        """
        return await self._api.call("POST", "/media/upload", timeout=timeout, body=body, model=models.MediaUpload)

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Delete a media asset.

        Also deletes the file. Fails with 409 while an unfinished post uses the asset. Scope `media:write`.
        """
        return await self._api.call("DELETE", f"/media/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    async def get(self, id: str, *, wait: int | None = None, timeout: float | None = None) -> models.Media:
        """Get a media asset.

        With `wait`, returns as soon as the asset is `ready` or `failed`, or as it is when that many seconds are
        over. The events `media.ready` and `media.failed` tell the same. Scope `media:read`.
        """
        return await self._api.call(
            "GET", f"/media/{quote(id, safe='')}", query={"wait": wait}, timeout=timeout, model=models.Media
        )

    async def update(self, id: str, *, timeout: float | None = None, **body: Unpack[params.MediaPatch]) -> models.Media:
        """Update a media asset.

        Changes the alt text. A post that names no alt text for the asset is published with the one that the asset has
        then, also if it was created before; a published post keeps the text that it was sent with. Fails with 409 while
        a post with the asset is being published or retried. Scope `media:write`.
        """
        return await self._api.call(
            "PATCH", f"/media/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Media
        )

    async def confirm(self, id: str, *, timeout: float | None = None) -> models.Media:
        """Confirm an upload.

        Inspects the uploaded bytes and sets the asset's type and status. Small files become `ready`; larger
        ones, and pictures that no platform takes as they are (HEIC, AVIF, TIFF), are `uploaded` until they are fully read
        and decoded. Posts can use both. Repeating the call has no effect.
        Fails with 409 while nothing is uploaded, and as the PUT did if that was refused; a rejected file is `failed`
        permanently. Scope `media:write`.
        """
        return await self._api.call(
            "POST", f"/media/{quote(id, safe='')}/confirm", is_repeatable=True, timeout=timeout, model=models.Media
        )


class AsyncPostsOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self,
        *,
        created_after: str | datetime | None = None,
        created_before: str | datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        metadata: Mapping[str, str] | None = None,
        platform: params.Platform | None = None,
        profile_id: str | None = None,
        q: str | None = None,
        scheduled_after: str | datetime | None = None,
        scheduled_before: str | datetime | None = None,
        social_account_id: str | None = None,
        status: params.PostStatus | None = None,
        tenant_id: str | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.PostSummary]:
        """List posts.

        Lists posts, newest first, without deleted ones. With `q`, a page looks through 1,000 posts that match the
        other filters, or fewer with long texts: it may have fewer posts than `limit`, or none, while `next_cursor`
        leads to more. Scope `posts:read`.
        """
        return self._api.list(
            "GET",
            "/posts",
            query={
                "created_after": created_after,
                "created_before": created_before,
                "cursor": cursor,
                "limit": limit,
                "metadata": metadata,
                "platform": platform,
                "profile_id": profile_id,
                "q": q,
                "scheduled_after": scheduled_after,
                "scheduled_before": scheduled_before,
                "social_account_id": social_account_id,
                "status": status,
                "tenant_id": tenant_id,
            },
            timeout=timeout,
            paging="cursor",
            item=models.PostSummary,
        )

    async def create(
        self, *, idempotency_key: str | None = None, timeout: float | None = None, **body: Unpack[params.NewPost]
    ) -> models.Post:
        """Create a post.

        Publishes to every account in `accounts`: immediately, at `scheduled_at`, at the next open posting
        slot of `queued_from_account`, or, if `is_draft` is true, after release. Publishing happens after the
        response; the targets show the result. A repeated idempotency key returns the first post with 200. With
        `reply_to` the post is published below another one that is live, as a comment or the next part of its thread.
        Scope `posts:write`.
        """
        return await self._api.call(
            "POST", "/posts", key=idempotency_key or new_key(), timeout=timeout, body=body, model=models.Post
        )

    async def create_batch(
        self, *, timeout: float | None = None, **body: Unpack[params.NewPosts]
    ) -> models.CreatedPosts:
        """Create several posts.

        Handles each item as a creation of its own, in order; a failing item does not affect the others. The
        header `Idempotency-Key` is ignored; use each item's `external_ref`. Scope `posts:write`.
        """
        return await self._api.call("POST", "/posts/batch", timeout=timeout, body=body, model=models.CreatedPosts)

    async def validate(self, *, timeout: float | None = None, **body: Unpack[params.PostProposal]) -> models.Verdict:
        """Validate a post.

        Takes the body of a creation and returns what each platform would report; nothing is stored. An issue
        of severity `error` would fail the creation. The warning `duplicate_text` tells that the account
        published the same text within 24 hours of the post's time, or is to publish it then; `account_exhausted`
        that the platform throttles it then, or takes no more posts; `app_refused` that the platform refuses the app of the
        account at present, so that the post waits; `reply_to_incomplete` that the post to reply to is live there without
        some of its parts; `unknown_member` that a member of the body has no
        meaning.

        With `look_up`, platforms are asked for what only they know, within ten seconds, with the grants of the accounts
        that have no error of their own: `reference_not_found` tells that a board, section, flair, subreddit, category,
        playlist or quoted post does not exist, `reference_not_allowed` that the account or this post can't use it, and
        `setting_required` that the platform requires a setting. A platform that is not asked or does not answer is
        the warning `look_up_failed`. Scope `posts:write`.
        """
        return await self._api.call(
            "POST", "/posts/validate", is_repeatable=True, timeout=timeout, body=body, model=models.Verdict
        )

    async def delete(self, id: str, *, timeout: float | None = None) -> models.CanceledPost:
        """Delete a post.

        Cancels pending targets. Targets in progress finish, and published posts stay live. Scope
        `posts:write`.
        """
        return await self._api.call(
            "DELETE", f"/posts/{quote(id, safe='')}", timeout=timeout, model=models.CanceledPost
        )

    async def get(self, id: str, *, timeout: float | None = None) -> models.Post:
        """Get a post.

        Scope `posts:read`.
        """
        return await self._api.call("GET", f"/posts/{quote(id, safe='')}", timeout=timeout, model=models.Post)

    async def update(self, id: str, *, timeout: float | None = None, **body: Unpack[params.EditPost]) -> models.Post:
        """Update a post.

        Updates the fields sent. `is_draft: false` releases a draft. Fails with 409 `publishing_started` once
        publishing has begun or the post has ended. Scope `posts:write`.
        """
        return await self._api.call(
            "PATCH", f"/posts/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Post
        )

    async def get_analytics(
        self, id: str, *, history: bool | None = None, timeout: float | None = None
    ) -> models.PostAnalytics:
        """Get a post's analytics.

        Fetches the metrics of each published target from its platform and returns the latest of each, and
        totals. If a platform fails, the target's previous metrics are returned with their time, or the target
        is omitted. Of an unpublished target the last metrics are returned. Metrics are also collected on a
        schedule, hourly at first and for a month. Scope
        `analytics:read`.
        """
        return await self._api.call(
            "GET",
            f"/posts/{quote(id, safe='')}/analytics",
            query={"history": history},
            timeout=timeout,
            model=models.PostAnalytics,
        )

    async def retry(self, id: str, *, timeout: float | None = None, **body: Unpack[params.RetryPost]) -> models.Post:
        """Retry a post.

        Starts the `dead` targets of a post over, or those of them in `targets`: they are `queued` again, with a
        new budget of attempts. A `published` target that is `missing` a part which failed is retried as well: it stays
        `published`, and only its missing parts are published, below those that are live; edit the target first if the
        text was refused. Their events carry the `round` of the retry; `post.published` and `post.error` are
        not sent again, and one `post.retried` tells how the post ends. A target that may be live is looked up first,
        and published only when its platform says that it is not. A `canceled` target is not retried. Fails with 409 if there is no target to retry, or the
        accounts of all that are were disconnected. Scope `posts:write`.
        """
        return await self._api.call(
            "POST", f"/posts/{quote(id, safe='')}/retry", timeout=timeout, body=body, model=models.Post
        )

    async def edit_target(
        self, id: str, target_id: str, *, timeout: float | None = None, **body: Unpack[params.EditTarget]
    ) -> models.Target:
        """Edit a target.

        Changes a published target's posts on their platform: the text of the main post, texts of replies, and the
        settings that the account's capabilities list under `editing`. Replies that are `missing` can be changed on every
        platform, in a call of their own: nothing is published, and `POST /posts/{id}/retry` publishes the new texts. The new values are checked as on creation
        first. The target shows them in `edits`, with the time in `edited_at`; the post's containers and the other
        targets stay as they are. An edit can be repeated. Fails with 409 if the target is not live, or another edit
        of it is being made, with 422 `editing_unsupported` if the platform lets no app change such a post (X,
        Instagram, TikTok, Threads and Bluesky: none), with 422 `reconnect_required` if the account was connected
        without the scope for it, and with 503 if the platform does not answer: repeat the call after `Retry-After`.
        Scope `posts:write`.
        """
        return await self._api.call(
            "PATCH",
            f"/posts/{quote(id, safe='')}/targets/{quote(target_id, safe='')}",
            timeout=timeout,
            body=body,
            model=models.Target,
        )

    async def retry_target(self, id: str, target_id: str, *, timeout: float | None = None) -> models.Target:
        """Retry a target.

        Starts the next attempt of a target now that is `failed`, or `queued` with an `error_code`: the platform
        throttled another post of its account. One that is `frozen` waits on. Fails with 409 for any other target; `POST /posts/{id}/retry` starts
        a `dead` one over, and publishes what is `missing` of a published one.
        Scope `posts:write`.
        """
        return await self._api.call(
            "POST",
            f"/posts/{quote(id, safe='')}/targets/{quote(target_id, safe='')}/retry",
            timeout=timeout,
            model=models.Target,
        )

    async def unpublish_target(self, id: str, target_id: str, *, timeout: float | None = None) -> models.Target:
        """Unpublish a target.

        Deletes a published target's posts from their platform: the replies, last to first, and then the main
        post. What was still to follow the main post is given up when it is deleted. The target stays `published`, and
        `unpublished_at` tells when it was deleted. Repeating the call returns the same, and a post that the
        platform doesn't have any more counts as deleted. Fails with 409 if the target is not live, with 422
        `deletion_unsupported` if the platform lets no app delete posts (Instagram, TikTok), with 422
        `reconnect_required` if the account was connected without the scope for it, and with 503 if the platform
        does not answer: repeat the call after `Retry-After`. Scope `posts:write`.
        """
        return await self._api.call(
            "POST",
            f"/posts/{quote(id, safe='')}/targets/{quote(target_id, safe='')}/unpublish",
            timeout=timeout,
            model=models.Target,
        )

    async def get_timeline(
        self, id: str, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> models.Timeline:
        """Get a post's timeline.

        Returns past events, oldest first, and upcoming steps. What a request caused has its `request_id` in `detail`.
        Past events are kept for a year after the post has ended. Scope `posts:read`.
        """
        return await self._api.call(
            "GET",
            f"/posts/{quote(id, safe='')}/timeline",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            model=models.Timeline,
        )


class AsyncProfilesOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.Profile]:
        """List profiles.

        Lists profiles, newest first. A page may have fewer profiles than `limit`, if their settings are large, or none,
        with a limited key, while `next_cursor` leads to more. Scope `profiles:read`.
        """
        return self._api.list(
            "GET",
            "/profiles",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Profile,
        )

    async def create(self, *, timeout: float | None = None, **body: Unpack[params.NewProfile]) -> models.Profile:
        """Create a profile.

        Accounts listed are removed from their previous profiles. Scope `profiles:write`.
        """
        return await self._api.call("POST", "/profiles", timeout=timeout, body=body, model=models.Profile)

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Delete a profile.

        The profile's accounts stay connected, without a profile. Scope `profiles:write`.
        """
        return await self._api.call("DELETE", f"/profiles/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    async def get(self, id: str, *, timeout: float | None = None) -> models.Profile:
        """Get a profile.

        Scope `profiles:read`.
        """
        return await self._api.call("GET", f"/profiles/{quote(id, safe='')}", timeout=timeout, model=models.Profile)

    async def update(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.ProfilePatch]
    ) -> models.Profile:
        """Update a profile.

        Updates the fields sent; null clears a nullable field. Scope `profiles:write`.
        """
        return await self._api.call(
            "PATCH", f"/profiles/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Profile
        )


class AsyncSchedulingOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    async def find_slot(
        self,
        *,
        account: str,
        after: str | datetime | None = None,
        count: int | None = None,
        timezone: str | None = None,
        timeout: float | None = None,
    ) -> models.OpenSlots:
        """Find open slots.

        Returns the next slots of an account that no post holds, up to 365 days ahead. This reserves nothing;
        creating a post with `queued_from_account` does. Scope `scheduling:read`.
        """
        return await self._api.call(
            "GET",
            "/scheduling/find-slot",
            query={"account": account, "after": after, "count": count, "timezone": timezone},
            timeout=timeout,
            model=models.OpenSlots,
        )

    def list_slots(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.SlotSet]:
        """List posting slots.

        Lists the organization's slots first, then those of each account. A page has up to some 5,000 slots, so that it may
        have fewer sets than `limit`, with a limited key none, while `next_cursor` leads to more. Scope
        `scheduling:read`.
        """
        return self._api.list(
            "GET",
            "/scheduling/slots",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.SlotSet,
        )

    async def set_slots(self, *, timeout: float | None = None, **body: Unpack[params.NewSlotSet]) -> models.SlotSet:
        """Set posting slots.

        Replaces all slots of an account or of the organization. An account without slots of its own, or with
        an empty list, uses the organization's. Posts that hold a slot keep their time. Scope
        `scheduling:write`.
        """
        return await self._api.call("PUT", "/scheduling/slots", timeout=timeout, body=body, model=models.SlotSet)


class AsyncSocialAccountsOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self,
        *,
        cursor: str | None = None,
        id: str | None = None,
        limit: int | None = None,
        network_unique_id: str | None = None,
        platform: params.Platform | None = None,
        profile_id: str | None = None,
        tenant_id: str | None = None,
        username: str | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.SocialAccount]:
        """List accounts.

        Lists accounts, newest first, without disconnected ones. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            "/social-accounts",
            query={
                "cursor": cursor,
                "id": id,
                "limit": limit,
                "network_unique_id": network_unique_id,
                "platform": platform,
                "profile_id": profile_id,
                "tenant_id": tenant_id,
                "username": username,
            },
            timeout=timeout,
            paging="cursor",
            item=models.SocialAccount,
        )

    async def connect_bluesky(
        self, *, timeout: float | None = None, **body: Unpack[params.BlueskyLogin]
    ) -> models.SocialAccount:
        """Connect a Bluesky account.

        Takes an app password, which users create and revoke in Bluesky's settings. The account's DID and
        handle must resolve to the server that accepts the password, otherwise the call fails with 422.
        Reconnecting keeps the account's id and tenant; naming another tenant fails with 422, unless the account was
        disconnected: then it is a new account of that tenant. Scope `accounts:write`.
        """
        return await self._api.call(
            "POST", "/social-accounts/bluesky/connect", timeout=timeout, body=body, model=models.SocialAccount
        )

    async def get_pending_login(self, token: str, *, timeout: float | None = None) -> models.PendingLogin:
        """Get a pending login.

        Takes the token that the connect flow sent with `status=pending`, which is valid for 30 minutes. Needs
        no API key.
        """
        return await self._api.call(
            "GET", f"/social-accounts/pending/{quote(token, safe='')}", timeout=timeout, model=models.PendingLogin
        )

    async def finalize_pending_login(
        self, token: str, *, timeout: float | None = None, **body: Unpack[params.PendingChoice]
    ) -> models.ConnectedAccounts:
        """Finalize a pending login.

        Connects all selected accounts, or none. Repeating the same selection returns the same result; a
        different selection fails with 409. Needs no API key, unless the login was begun with `confirm`: then a key
        with the scope `accounts:write`.
        """
        return await self._api.call(
            "POST",
            f"/social-accounts/pending/{quote(token, safe='')}/finalize",
            timeout=timeout,
            body=body,
            model=models.ConnectedAccounts,
        )

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Disconnect an account.

        Cancels the account's pending targets; published posts stay live. Revokes the grant on platforms that
        support it and erases the tokens. Connecting the account again for the same tenant restores its id; for another
        tenant it is a new account. Scope `accounts:write`.
        """
        return await self._api.call(
            "DELETE", f"/social-accounts/{quote(id, safe='')}", timeout=timeout, model=models.Removed
        )

    async def get(self, id: str, *, timeout: float | None = None) -> models.SocialAccount:
        """Get an account.

        Scope `accounts:read`.
        """
        return await self._api.call(
            "GET", f"/social-accounts/{quote(id, safe='')}", timeout=timeout, model=models.SocialAccount
        )

    async def update(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.SocialAccountPatch]
    ) -> models.SocialAccount:
        """Update an account.

        Updates the fields sent; null clears a nullable field. An account that changes its `tenant_id` leaves its profile,
        unless `profile_id` names one, and the keys that are limited to a list of accounts. Scope `accounts:write`.
        """
        return await self._api.call(
            "PATCH", f"/social-accounts/{quote(id, safe='')}", timeout=timeout, body=body, model=models.SocialAccount
        )

    async def get_capabilities(self, id: str, *, timeout: float | None = None) -> models.SocialAccountCapabilities:
        """Get an account's capabilities.

        Returns limits for texts, media and replies, and the JSON Schema of the platform's settings in
        `config`. Scope `accounts:read`.
        """
        return await self._api.call(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/capabilities",
            timeout=timeout,
            model=models.SocialAccountCapabilities,
        )

    async def get_health(self, id: str, *, timeout: float | None = None) -> models.SocialAccountHealth:
        """Check an account.

        Calls the platform once as the account, refreshing an expired token, and updates the account's status
        from the response. Scope `accounts:read`.
        """
        return await self._api.call(
            "GET", f"/social-accounts/{quote(id, safe='')}/health", timeout=timeout, model=models.SocialAccountHealth
        )

    def list_imported_posts(
        self, id: str, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.ImportedPost]:
        """List imported posts.

        Lists an account's imported posts, latest publication first. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/imported-posts",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.ImportedPost,
        )

    def list_imports(
        self, id: str, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.Import]:
        """List imports.

        Lists an account's imports, newest first. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/imports",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Import,
        )

    async def create_import(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.NewImport]
    ) -> models.Import:
        """Import earlier posts.

        Imports the newest posts of an account within the range, including posts not published through this
        service. Posts that an earlier import brought are skipped and counted. The import runs in the
        background, respects the platform's rate limits, and ends with `import.completed` or `import.failed`.
        One import at a time per account. Scope `accounts:write`.
        """
        return await self._api.call(
            "POST", f"/social-accounts/{quote(id, safe='')}/imports", timeout=timeout, body=body, model=models.Import
        )

    async def get_import(self, id: str, import_id: str, *, timeout: float | None = None) -> models.Import:
        """Get an import.

        Returns the import's progress or result. Scope `accounts:read`.
        """
        return await self._api.call(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/imports/{quote(import_id, safe='')}",
            timeout=timeout,
            model=models.Import,
        )

    async def get_limits(self, id: str, *, timeout: float | None = None) -> models.AccountLimits:
        """Get an account's limits.

        Returns how much of each limit of the platform the account has used, and when it can take the next post.
        Asks the platform where it tells; other documented limits are counted from what was published here. Scope
        `accounts:read`.
        """
        return await self._api.call(
            "GET", f"/social-accounts/{quote(id, safe='')}/limits", timeout=timeout, model=models.AccountLimits
        )

    def list_options(
        self, id: str, kind: str, *, parent: str | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.SocialAccountOption]:
        """List options for a setting.

        Asks the platform for the options of a kind, for example `boards` or `flairs`; `capabilities` lists
        the kinds that an account has. `mentions` (LinkedIn) looks up the organizations and members that a
        text can mention. Scope `accounts:read`.
        """
        return self._api.list(
            "GET",
            f"/social-accounts/{quote(id, safe='')}/options/{quote(kind, safe='')}",
            query={"parent": parent},
            timeout=timeout,
            paging="none",
            item=models.SocialAccountOption,
        )

    async def retry_failed_targets(self, id: str, *, timeout: float | None = None) -> models.RetriedTargets:
        """Retry what an account lost.

        Starts the targets of an account over that ended `dead` with `token_expired` in the last seven days, once
        the account is connected again: at most 500 in a call, the latest first. Returns their number. Fails with
        409 while the account is not `active`. Scope `posts:write`.
        """
        return await self._api.call(
            "POST", f"/social-accounts/{quote(id, safe='')}/retry-failed", timeout=timeout, model=models.RetriedTargets
        )


class AsyncSocialNetworksOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(self, *, timeout: float | None = None) -> AsyncPaginator[models.SocialNetwork]:
        """List apps.

        Ordered by platform. Scope `networks:read`.
        """
        return self._api.list("GET", "/social-networks", timeout=timeout, paging="none", item=models.SocialNetwork)

    async def create(
        self, *, timeout: float | None = None, **body: Unpack[params.NewSocialNetwork]
    ) -> models.SocialNetwork:
        """Register an app.

        Registers one app per platform. If the platform has one, the fields sent replace its fields. The
        client secret is stored encrypted and is in no response. Scope `networks:write`.
        """
        return await self._api.call("POST", "/social-networks", timeout=timeout, body=body, model=models.SocialNetwork)

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Remove an app.

        Accounts connected through the app stay connected; no further accounts can be connected until an app
        is registered again. Scope `networks:write`.
        """
        return await self._api.call(
            "DELETE", f"/social-networks/{quote(id, safe='')}", timeout=timeout, model=models.Removed
        )

    async def get(self, id: str, *, timeout: float | None = None) -> models.SocialNetwork:
        """Get an app.

        Scope `networks:read`.
        """
        return await self._api.call(
            "GET", f"/social-networks/{quote(id, safe='')}", timeout=timeout, model=models.SocialNetwork
        )

    async def update(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.SocialNetworkPatch]
    ) -> models.SocialNetwork:
        """Update an app.

        Updates the fields sent; null clears a nullable field. Scope `networks:write`.
        """
        return await self._api.call(
            "PATCH", f"/social-networks/{quote(id, safe='')}", timeout=timeout, body=body, model=models.SocialNetwork
        )

    async def create_auth_url(
        self, platform: str, *, timeout: float | None = None, **body: Unpack[params.NewAuthorization]
    ) -> models.AuthUrl:
        """Create an authorization URL.

        Returns the URL to send the user to: the platform's, or with `hosted` our page before it. It is valid once
        and for 15 minutes. The organization's own
        enabled app is used, or else a shared one. The path takes a platform, not an app's id. Scope
        `accounts:write`.
        """
        return await self._api.call(
            "POST",
            f"/social-networks/{quote(platform, safe='')}/auth-url",
            timeout=timeout,
            body=body,
            model=models.AuthUrl,
        )


class AsyncTeamOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.TeamMember]:
        """List the team.

        Lists the members in the order they were invited. Live and test keys see the same team. Scope
        `team:read`.
        """
        return self._api.list(
            "GET",
            "/team",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.TeamMember,
        )

    async def invite_member(
        self, *, timeout: float | None = None, **body: Unpack[params.NewTeamMember]
    ) -> models.TeamMember:
        """Invite a person.

        Only this response contains `invite_url`; send it to the person, who creates a passkey there and signs in to the
        dashboard with it. The invitation can be accepted for seven days; after that the person can be invited again.
        The calling key must have all scopes of the role. A person who is invited with a test key gets access to test
        data only. Scope `team:write`.
        """
        return await self._api.call("POST", "/team", timeout=timeout, body=body, model=models.TeamMember)

    async def remove_member(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Remove a person.

        Ends the person's sessions; also revokes an invitation that was not accepted. The last owner can't be removed.
        The calling key must have all scopes of the person's role. A test key removes only members with access to test
        data only. Scope `team:write`.
        """
        return await self._api.call("DELETE", f"/team/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    async def update_member(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.TeamMemberPatch]
    ) -> models.TeamMember:
        """Change a role.

        Takes effect with the person's next request. The last owner stays one. The calling key must have all scopes of
        both roles. A test key changes only members with access to test data only. Scope `team:write`.
        """
        return await self._api.call(
            "PATCH", f"/team/{quote(id, safe='')}", timeout=timeout, body=body, model=models.TeamMember
        )


class AsyncWebhooksOperations:
    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    def list(
        self, *, cursor: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> AsyncPaginator[models.Webhook]:
        """List endpoints.

        Lists endpoints, newest first. Scope `webhooks:read`.
        """
        return self._api.list(
            "GET",
            "/webhooks",
            query={"cursor": cursor, "limit": limit},
            timeout=timeout,
            paging="cursor",
            item=models.Webhook,
        )

    async def create(self, *, timeout: float | None = None, **body: Unpack[params.NewWebhook]) -> models.Webhook:
        """Register an endpoint.

        Takes `https` URLs whose host is on the public internet. Only this response contains `signing_secret`.
        Scope `webhooks:write`.
        """
        return await self._api.call("POST", "/webhooks", timeout=timeout, body=body, model=models.Webhook)

    async def delete(self, id: str, *, timeout: float | None = None) -> models.Removed:
        """Delete an endpoint.

        Pending deliveries are dropped. Scope `webhooks:write`.
        """
        return await self._api.call("DELETE", f"/webhooks/{quote(id, safe='')}", timeout=timeout, model=models.Removed)

    async def get(self, id: str, *, timeout: float | None = None) -> models.Webhook:
        """Get an endpoint.

        Scope `webhooks:read`.
        """
        return await self._api.call("GET", f"/webhooks/{quote(id, safe='')}", timeout=timeout, model=models.Webhook)

    async def update(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.WebhookPatch]
    ) -> models.Webhook:
        """Update an endpoint.

        Updates the fields sent. While `is_active` is false nothing is delivered; events of that time are kept
        as failed deliveries, which can be requested again. The signing secret can be rotated on the dashboard. Scope `webhooks:write`.
        """
        return await self._api.call(
            "PATCH", f"/webhooks/{quote(id, safe='')}", timeout=timeout, body=body, model=models.Webhook
        )

    def list_deliveries(
        self,
        id: str,
        *,
        cursor: str | None = None,
        event: params.DeliveredEvent | None = None,
        limit: int | None = None,
        status: params.DeliveryStatus | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[models.WebhookDelivery]:
        """List deliveries.

        Lists completed and pending deliveries to an endpoint, newest first. Scope `webhooks:read`.
        """
        return self._api.list(
            "GET",
            f"/webhooks/{quote(id, safe='')}/deliveries",
            query={"cursor": cursor, "event": event, "limit": limit, "status": status},
            timeout=timeout,
            paging="cursor",
            item=models.WebhookDelivery,
        )

    async def get_delivery(
        self, id: str, delivery_id: str, *, timeout: float | None = None
    ) -> models.WebhookDeliveryDetails:
        """Get a delivery.

        Returns a delivery with what was sent and what the endpoint answered. Scope `webhooks:read`.
        """
        return await self._api.call(
            "GET",
            f"/webhooks/{quote(id, safe='')}/deliveries/{quote(delivery_id, safe='')}",
            timeout=timeout,
            model=models.WebhookDeliveryDetails,
        )

    async def redeliver(self, id: str, delivery_id: str, *, timeout: float | None = None) -> models.WebhookDelivery:
        """Redeliver an event.

        Repeats a delivery that succeeded or failed: the same body and event id, with a new retry budget. One that
        waits for its next attempt is attempted now. Scope `webhooks:write`.
        """
        return await self._api.call(
            "POST",
            f"/webhooks/{quote(id, safe='')}/deliveries/{quote(delivery_id, safe='')}/redeliver",
            timeout=timeout,
            model=models.WebhookDelivery,
        )

    async def replay(
        self, id: str, *, timeout: float | None = None, **body: Unpack[params.NewWebhookReplay]
    ) -> models.WebhookReplay:
        """Replay events.

        Repeats the deliveries of events since a time, oldest first: the same bodies and event ids, with a new retry
        budget. They are sent at the rate at which the endpoint accepts them. Up to 10,000 are queued at once; if
        `has_more` is true, call again with the same times. A call that is repeated with the same times does not repeat
        what it has queued. Scope `webhooks:write`.
        """
        return await self._api.call(
            "POST", f"/webhooks/{quote(id, safe='')}/replay", timeout=timeout, body=body, model=models.WebhookReplay
        )

    async def test(self, id: str, *, timeout: float | None = None) -> models.WebhookTest:
        """Test an endpoint.

        Sends one signed test event, `webhook.test`, with the headers of a real delivery, and returns the
        endpoint's response. Works while the endpoint is paused. Scope `webhooks:write`.
        """
        return await self._api.call(
            "POST", f"/webhooks/{quote(id, safe='')}/test", timeout=timeout, model=models.WebhookTest
        )


class AsyncResources:
    """The resources that have no methods besides the operations of the document."""

    _api: AsyncApi

    @cached_property
    def account(self) -> AsyncAccountOperations:
        return AsyncAccountOperations(self._api)

    @cached_property
    def api_keys(self) -> AsyncApiKeysOperations:
        return AsyncApiKeysOperations(self._api)

    @cached_property
    def client_tokens(self) -> AsyncClientTokensOperations:
        return AsyncClientTokensOperations(self._api)

    @cached_property
    def connect(self) -> AsyncConnectOperations:
        return AsyncConnectOperations(self._api)

    @cached_property
    def profiles(self) -> AsyncProfilesOperations:
        return AsyncProfilesOperations(self._api)

    @cached_property
    def scheduling(self) -> AsyncSchedulingOperations:
        return AsyncSchedulingOperations(self._api)

    @cached_property
    def social_accounts(self) -> AsyncSocialAccountsOperations:
        return AsyncSocialAccountsOperations(self._api)

    @cached_property
    def social_networks(self) -> AsyncSocialNetworksOperations:
        return AsyncSocialNetworksOperations(self._api)

    @cached_property
    def team(self) -> AsyncTeamOperations:
        return AsyncTeamOperations(self._api)

    @cached_property
    def webhooks(self) -> AsyncWebhooksOperations:
        return AsyncWebhooksOperations(self._api)
