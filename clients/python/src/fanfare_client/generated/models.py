# Generated from api/openapi.json by clients/generator/generate. Do not edit.

from __future__ import annotations

from typing import Annotated, Any, Dict, Literal

from pydantic import AwareDatetime, ConfigDict, Field
from typing_extensions import TypeAliasType

from fanfare_client._model import Model


class AccountConnectedEvent(Model):
    """
    An account was connected, or connected again
    """

    data: AccountConnectedEventData
    event: Literal["account.connected"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class AccountConnectedEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    tenant_id: Annotated[str | None, Field(alias="tenantId")]
    """
    The caller's id for the owner of the account
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class AccountDisconnectedEvent(Model):
    """
    An account was removed
    """

    data: AccountDisconnectedEventData
    event: Literal["account.disconnected"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class AccountDisconnectedEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    tenant_id: Annotated[str | None, Field(alias="tenantId")]
    """
    The caller's id for the owner of the account
    """
    username: str
    """
    Handle on the platform, without `@`
    """


AccountFeature = TypeAliasType(
    "AccountFeature", Literal["publishing", "replies", "analytics", "import", "deletion", "editing"] | str
)


class AccountLimit(Model):
    """
    Usage of one limit.
    """

    as_of: AwareDatetime
    """
    When this was so.
    """
    limit: int
    """
    Number allowed in the window.
    """
    name: str
    """
    Name, for example `posts`.
    """
    remaining: int
    """
    Number left in the window.
    """
    resets_at: AwareDatetime | None
    """
    When the window ends; of a rolling window, when its oldest post leaves it. Null if that is unknown.
    """
    source: LimitSource
    """
    `platform`: the platform was asked. `observed`: from the rate-limit headers of its answer. `counted`: from
    what was published through this service.
    """
    used: int
    """
    Number used in the window.
    """
    window_seconds: int
    """
    Length of the window in seconds.
    """


class AccountLimits(Model):
    """
    The limits of an account.
    """

    limits: list[AccountLimit]
    """
    The limits; empty if the platform documents none that can be counted.
    """
    next_possible_at: AwareDatetime | None
    """
    When the account can take the next post, at the latest; null if it can take one now. Limits of some posts only,
    such as `reels`, are left out.
    """
    rests_until: AwareDatetime | None
    """
    Until when no post of the account is attempted because its platform throttled one; null if it did not.
    """


class AccountReauthRequiredEvent(Model):
    """
    An account's grant was revoked; connect it again
    """

    data: AccountReauthRequiredEventData
    event: Literal["account.reauth_required"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class AccountReauthRequiredEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    tenant_id: Annotated[str | None, Field(alias="tenantId")]
    """
    The caller's id for the owner of the account
    """
    username: str
    """
    Handle on the platform, without `@`
    """


AccountStatus = TypeAliasType(
    "AccountStatus", Literal["active", "token_expired", "reauth_required", "disconnected"] | str
)


class AccountTokenExpiredEvent(Model):
    """
    An account's token could not be refreshed
    """

    data: AccountTokenExpiredEventData
    event: Literal["account.token_expired"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class AccountTokenExpiredEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    tenant_id: Annotated[str | None, Field(alias="tenantId")]
    """
    The caller's id for the owner of the account
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class AccountTokenExpiringEvent(Model):
    """
    An account's grant ends within a week, and no refresh extends it: connect it again; sent once for each grant
    """

    data: AccountTokenExpiringEventData
    event: Literal["account.token_expiring"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class AccountTokenExpiringEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    grant_expires_at: Annotated[AwareDatetime, Field(alias="grantExpiresAt")]
    """
    Time until which the account has to be connected again
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    tenant_id: Annotated[str | None, Field(alias="tenantId")]
    """
    The caller's id for the owner of the account
    """
    username: str
    """
    Handle on the platform, without `@`
    """


AuditAction = TypeAliasType(
    "AuditAction",
    Literal[
        "api_key.created",
        "api_key.rotated",
        "api_key.revoked",
        "client_token.created",
        "client_token.revoked",
        "session.started",
        "session.refused",
        "session.ended",
        "member.invited",
        "member.joined",
        "member.removed",
        "member.role_changed",
        "passkey.added",
        "passkey.removed",
        "identity.linked",
        "identity.unlinked",
        "webhook.created",
        "webhook.updated",
        "webhook.deleted",
        "webhook.secret_revealed",
        "webhook.secret_prepared",
        "webhook.secret_rotated",
        "social_network.created",
        "social_network.updated",
        "social_network.deleted",
        "social_account.connected",
        "social_account.reconnected",
        "social_account.moved",
        "social_account.profile_changed",
        "social_account.disconnected",
        "profile.created",
        "profile.updated",
        "profile.deleted",
        "connect_branding.updated",
        "media_settings.updated",
        "target.retried",
        "target.stopped",
        "delivery.repeated",
        "publishing.frozen",
        "publishing.released",
        "sessions.ended",
        "installation.reconciled",
        "installation.restored",
        "operator.signed_in",
    ]
    | str,
)


AuditActor = TypeAliasType("AuditActor", Literal["api_key", "session", "invitation", "login", "operator"] | str)


class AuditEntry(Model):
    """
    A change that concerns the organization's security.
    """

    action: AuditAction
    """
    Action that was done.
    """
    actor: AuditActor
    """
    How the one who made the change was authorized. `operator` is a command of the service's operator.
    """
    address: str | None
    """
    The client's IP address; null if it is not known.
    """
    at: AwareDatetime
    """
    Time of the change.
    """
    details: Any
    """
    Further details, depending on the action. Of changed members only the names.
    """
    id: str
    """
    The entry's id.
    """
    key_id: str | None
    """
    Id of the API key or client token of the call, or of the key that the session was started with.
    """
    last_four: str | None
    """
    Last four characters of that key.
    """
    member: str | None
    """
    E-mail address of that member at that time.
    """
    member_id: str | None
    """
    Id of the team member who was signed in.
    """
    object_id: str
    """
    Id of what was changed; for a session its key or member, for a sign-in by a passkey that was refused the
    person, for the branding the organization.
    """
    request_id: str | None
    """
    Id of the request, as in the response's `X-Request-Id`.
    """
    user_agent: str | None
    """
    The client's `User-Agent`, at most 200 characters; null if it sent none.
    """


class AuditPage(Model):
    """
    A page of audit entries.
    """

    data: list[AuditEntry]
    """
    The entries, newest first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


class AuthUrl(Model):
    """
    An authorization URL.
    """

    auth_url: str
    """
    The URL to send the user to.
    """


class BatchFailure(Model):
    """
    A batch item that failed, with the problem that a single creation would return.
    """

    code: ProblemCode
    """
    Machine-readable problem code.
    """
    detail: str
    """
    Human-readable explanation; may change.
    """
    errors: list[Issue] | None = None
    """
    Errors of single fields of the item.
    """
    index: int
    """
    Index of the item, from 0.
    """
    status: int
    """
    The HTTP status.
    """
    title: str
    """
    The name of the status.
    """


class BatchSuccess(Model):
    """
    A batch item that succeeded.
    """

    index: int
    """
    Index of the item, from 0.
    """
    post: PostReference
    """
    The post.
    """
    status: int
    """
    201 for a new post, 200 for one that was created with the same `external_ref` before.
    """


class CanceledPost(Model):
    """
    A deleted post.
    """

    canceled: bool
    """
    Always true.
    """
    id: str
    """
    The post's id.
    """


class ClientToken(Model):
    """
    A client token.
    """

    expires_at: AwareDatetime
    """
    Expiry time.
    """
    id: str
    """
    The token's id, to revoke it.
    """
    platforms: list[Platform] | None
    """
    Platforms that can be connected; null for all.
    """
    redirect_uri: str | None
    """
    URI at which logins end.
    """
    tenant_id: str
    """
    End tenant that accounts are connected for.
    """
    token: str
    """
    The token's text. Only in this response.
    """


class ConnectBranding(Model):
    """
    The branding of the connect pages.
    """

    accent_color: str | None
    """
    Color of buttons.
    """
    imprint_url: str | None
    """
    URL of the imprint.
    """
    logo_url: str | None
    """
    URL of the logo.
    """
    name: str | None
    """
    Name of the product.
    """
    pages: ConnectPages
    """
    Texts of the pages.
    """
    support_url: str | None
    """
    URL of a page with help.
    """


class ConnectFormTexts(Model):
    """
    Texts of a page with a button.
    """

    button: str | None
    """
    Words on the button.
    """
    description: str | None
    """
    Text below the heading.
    """
    heading: str | None
    """
    Heading.
    """


class ConnectPages(Model):
    """
    Texts, by page.
    """

    begin: ConnectFormTexts
    """
    The page on which a `hosted` login begins.
    """
    choice: ConnectFormTexts
    """
    The page on which accounts are selected.
    """
    confirm: ConnectTexts
    """
    The page of a login with `confirm`.
    """
    expired: ConnectTexts
    """
    The page of a login or a selection that took too long.
    """
    failure: ConnectTexts
    """
    The page after a login that failed.
    """
    success: ConnectTexts
    """
    The page after a login that connected accounts.
    """


class ConnectPlatform(Model):
    """
    A platform that can be connected.
    """

    name: str
    """
    Name, for people.
    """
    platform: Platform
    """
    Platform id.
    """
    takes_password: bool
    """
    True if an account is connected with an app password, and not by an authorization URL.
    """


class ConnectPlatforms(Model):
    """
    Platforms that can be connected.
    """

    data: list[ConnectPlatform]
    """
    The platforms.
    """


class ConnectTexts(Model):
    """
    Texts of a page.
    """

    description: str | None
    """
    Text on the page.
    """
    heading: str | None
    """
    Heading.
    """


class ConnectedAccounts(Model):
    """
    Accounts connected by a login.
    """

    account_ids: list[str]
    """
    Account ids, in the order of the selection.
    """
    data: list[SocialAccount]
    """
    The accounts, without disconnected ones.
    """


class Container(Model):
    """
    A text with media: the main post or a reply.
    """

    content: str
    """
    Text.
    """
    id: str
    """
    The container's id.
    """
    media: list[ContainerMedia]
    """
    Media published with the text, in order.
    """
    position: int
    """
    Position in the post, from 0.
    """
    role: Role
    """
    Role by the position: `main`, then `first_comment`, then `thread`; in a post with `reply_to` as well.
    """


class ContainerMedia(Model):
    """
    A media asset of a container.
    """

    alt_text: str | None
    """
    Alt text given with the post; null if the media asset's own is used.
    """
    id: str
    """
    Id of the media asset.
    """


ContentCapability = TypeAliasType("ContentCapability", Literal["text_or_media", "text", "media"] | str)
"""
Required content of a container.
"""


class CreatedPosts(Model):
    """
    Results of a batch.
    """

    data: list[BatchSuccess]
    """
    Items that succeeded.
    """
    errors: list[BatchFailure]
    """
    Items that failed.
    """


DeliveredEvent = TypeAliasType(
    "DeliveredEvent",
    Literal[
        "post.published",
        "post.error",
        "post.retried",
        "post.target.published",
        "post.target.failed",
        "post.target.incomplete",
        "account.token_expired",
        "account.token_expiring",
        "account.reauth_required",
        "account.connected",
        "account.disconnected",
        "import.completed",
        "import.failed",
        "media.ready",
        "media.failed",
        "webhook.failing",
    ]
    | str,
)


DeliveryStatus = TypeAliasType("DeliveryStatus", Literal["pending", "delivering", "delivered", "failed"] | str)


class EditedContainer(Model):
    """
    A container with another text on one platform.
    """

    content: str
    """
    The text that the platform shows, or, of a part that is missing, the one that a retry publishes.
    """
    position: int
    """
    Position in the post, from 0.
    """


class EditingCapability(Model):
    """
    Changes of published posts.
    """

    is_supported: bool
    """
    True if the text of a published post can be changed.
    """
    reason: str | None
    """
    Reason why nothing can be changed; null if something can.
    """
    settings: list[str]
    """
    Settings that can be changed as well.
    """


ErrorSource = TypeAliasType("ErrorSource", Literal["user", "platform", "service"] | str)


class Event(Model):
    """
    An event, with the members that its webhooks carry.
    """

    data: dict[str, Any]
    """
    Members that depend on the event.
    """
    event: DeliveredEvent
    """
    Name.
    """
    id: str
    """
    Id, the same as in `X-Fanfare-Event-Id` of its webhooks.
    """
    timestamp: AwareDatetime
    """
    Time of the event.
    """


EventName = TypeAliasType(
    "EventName",
    Literal[
        "post.published",
        "post.error",
        "post.retried",
        "post.target.published",
        "post.target.failed",
        "post.target.incomplete",
        "account.token_expired",
        "account.token_expiring",
        "account.reauth_required",
        "account.connected",
        "account.disconnected",
        "import.completed",
        "import.failed",
        "media.ready",
        "media.failed",
        "webhook.failing",
        "*",
    ]
    | str,
)


class EventPage(Model):
    """
    A page of events.
    """

    data: list[Event]
    """
    The events, oldest first.
    """
    next_cursor: str
    """
    Cursor of the next page, also if there are no further events yet.
    """


class Figures(Model):
    """
    Engagement metrics. Metrics that the platform does not report are 0.
    """

    clicks: int
    """
    Clicks on links.
    """
    comments: int
    """
    Comments and replies.
    """
    impressions: int
    """
    Impressions.
    """
    likes: int
    """
    Likes and other reactions.
    """
    reach: int
    """
    Reach.
    """
    saves: int
    """
    Saves and bookmarks.
    """
    shares: int
    """
    Shares, reposts and quotes.
    """
    video_views: int
    """
    Video views.
    """


class Import(Model):
    """
    An import of an account's earlier posts.
    """

    created_at: AwareDatetime
    """
    Creation time.
    """
    error_message: str | None
    """
    Error of a failed import.
    """
    finished_at: AwareDatetime | None
    """
    End time.
    """
    from_date: AwareDatetime | None
    """
    Skip posts published before this time.
    """
    id: str
    """
    The import's id.
    """
    imported_count: int
    """
    Number of posts imported so far.
    """
    skipped_count: int
    """
    Number of posts skipped because they were imported before.
    """
    social_account_id: str
    """
    Id of the account.
    """
    started_at: AwareDatetime | None
    """
    Start time.
    """
    status: ImportStatus
    """
    Status. Posts that a `failed` import brought are kept.
    """
    to_date: AwareDatetime | None
    """
    Skip posts published at or after this time.
    """


class ImportCompletedEvent(Model):
    """
    An import of earlier posts finished
    """

    data: ImportCompletedEventData
    event: Literal["import.completed"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class ImportCompletedEventData(Model):
    error: str | None = None
    """
    Reason
    """
    import_id: str
    """
    Id of the import
    """
    imported: int
    """
    Number of imported posts
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    social_account_id: str
    """
    Id of the account
    """
    status: Literal["completed", "failed"] | str
    """
    Status of the import
    """


class ImportFailedEvent(Model):
    """
    An import of earlier posts failed
    """

    data: ImportFailedEventData
    event: Literal["import.failed"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class ImportFailedEventData(Model):
    error: str | None = None
    """
    Reason
    """
    import_id: str
    """
    Id of the import
    """
    imported: int
    """
    Number of imported posts
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    social_account_id: str
    """
    Id of the account
    """
    status: Literal["completed", "failed"] | str
    """
    Status of the import
    """


class ImportPage(Model):
    """
    A page of imports.
    """

    data: list[Import]
    """
    The imports, newest first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


ImportStatus = TypeAliasType("ImportStatus", Literal["pending", "running", "completed", "failed"] | str)


class ImportedMedium(Model):
    """
    A media file of an imported post.
    """

    url: str
    """
    The platform's URL of the file, which may expire.
    """


class ImportedPost(Model):
    """
    A post imported from a platform.
    """

    content: str
    """
    Text of the post.
    """
    id: str
    """
    The imported post's id.
    """
    media: list[ImportedMedium]
    """
    Media of the post.
    """
    metrics: Figures
    """
    Engagement at the time of import, as far as the platform lists it.
    """
    platform_post_id: str
    """
    The platform's id of the post.
    """
    platform_post_url: str
    """
    Public URL.
    """
    published_at: AwareDatetime
    """
    Publication time.
    """


class ImportedPostPage(Model):
    """
    A page of imported posts.
    """

    data: list[ImportedPost]
    """
    The posts, latest publication first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


class Included(Model):
    """
    Usage of a resource that is billed above an included amount.
    """

    current: int
    """
    Amount used.
    """
    included: int | None
    """
    Included amount; null if unlimited.
    """
    overage: int
    """
    Amount used above the included amount.
    """


class Issue(Model):
    """
    An error of one field. Depending on `code` it has more members: `expected` and `received`; `minimum` or
    `maximum` with `type` and `inclusive`; `validation`; `options`; `keys`.
    """

    model_config = ConfigDict(
        extra="allow",
    )
    __annotations__ = {
        "__pydantic_extra__": Dict[str, Any],
    }
    code: str
    """
    Machine-readable code of the error.
    """
    message: str
    """
    Human-readable error.
    """
    path: list[Segment]
    """
    Path of the field: keys and 0-based indices.
    """


class Key(Model):
    """
    An API key.
    """

    account_ids: list[str] | None
    """
    The accounts that the key is limited to.
    """
    created_at: AwareDatetime
    """
    Creation time.
    """
    created_by: str | None
    """
    E-mail address of the member who created the key on the dashboard; null if it was created by other means.
    """
    expires_at: AwareDatetime | None
    """
    Expiry time; for a rotated key, the end of its grace period. Null if the key does not expire.
    """
    id: str
    """
    The key's id.
    """
    key: str | None = None
    """
    The key's text. Only in the response that created the key.
    """
    last_four: str
    """
    The key's last four characters, for telling keys apart.
    """
    last_used_at: AwareDatetime | None
    """
    Time of last use, to the minute.
    """
    mode: Mode
    """
    Mode of the data that the key can access.
    """
    name: str
    """
    Display name.
    """
    profile_id: str | None
    """
    The profile that the key is limited to.
    """
    scopes: list[Scope]
    """
    Granted scopes.
    """
    tenant_id: str | None
    """
    The end tenant that the key is limited to.
    """


class KeyList(Model):
    """
    API keys.
    """

    data: list[Key]
    """
    The keys, newest first.
    """
    next_cursor: str | None = None
    """
    Cursor of the next page; absent on the last page.
    """


LimitSource = TypeAliasType("LimitSource", Literal["platform", "observed", "counted"] | str)


class LoggedRequest(Model):
    """
    A request and its response.
    """

    at: AwareDatetime
    """
    Time of the request.
    """
    duration_ms: int
    """
    Time until the response, in milliseconds.
    """
    last_four: str
    """
    Last four characters of the API key.
    """
    method: str
    """
    HTTP method.
    """
    path: str
    """
    Pattern of the path, without ids: `/api/v1/posts/{id}`.
    """
    request_id: str
    """
    Id, as in the response's `X-Request-Id`.
    """
    status: int
    """
    HTTP status of the response.
    """


class Media(Model):
    """
    A media asset.
    """

    alt_text: str | None
    """
    Alt text; a post can override it.
    """
    content_type: str | None
    """
    Content type; before inspection, as declared.
    """
    created_at: AwareDatetime
    """
    Creation time.
    """
    duration_ms: int | None
    """
    Duration in milliseconds.
    """
    error: str | None
    """
    Human-readable error of a failed asset.
    """
    expires_at: AwareDatetime | None
    """
    When the asset is deleted unless a post needs it until then; null while an unfinished post uses it, or if
    the operator keeps files without limit.
    """
    facts: MediaFacts | None
    """
    Encoding of a file; null until the file is inspected.
    """
    filename: str
    """
    File name.
    """
    has_location: bool | None
    """
    True if the file says where it was taken; removed before it is published unless the organization's media settings
    say otherwise. Null until the file is `ready`, and for files that are neither a picture nor a video.
    """
    height: int | None
    """
    Height in pixels.
    """
    id: str
    """
    The media asset's id.
    """
    kind: MediaKind
    """
    Kind of media, determined from the bytes; before inspection, from the declared type. Files of kind `audio` are kept,
    and no platform takes them.
    """
    sha256: str | None
    """
    SHA-256 in lower-case hex.
    """
    size: int | None
    """
    Size in bytes; before inspection, as declared.
    """
    status: MediaStatus
    """
    Status. `uploaded` and `ready` assets can be posted; `failed` is permanent.
    """
    url: str | None
    """
    Download URL, valid for one hour; only if `ready`.
    """
    width: int | None
    """
    Width in pixels.
    """


class MediaCapability(Model):
    """
    Limits for one kind of media in a container.
    """

    content_types: list[str]
    """
    Accepted content types.
    """
    kind: MediaKind
    """
    Kind of media.
    """
    max_aspect_ratio: float | None
    """
    Maximum aspect ratio (width / height).
    """
    max_bytes: int
    """
    Maximum file size, in bytes.
    """
    max_count: int
    """
    Maximum number of files.
    """
    max_duration_ms: int | None
    """
    Maximum duration that every account may publish, in milliseconds. Where the platform decides by account, a
    longer one is a warning.
    """
    max_height: int | None
    """
    Maximum height, in pixels.
    """
    max_pixels: int | None
    """
    Maximum width times height.
    """
    max_width: int | None
    """
    Maximum width, in pixels.
    """
    min_aspect_ratio: float | None
    """
    Minimum aspect ratio (width / height).
    """
    min_bytes: int | None
    """
    Minimum file size, in bytes; null where the platform names none.
    """
    min_count: int
    """
    Minimum number of files, if there are any.
    """
    min_duration_ms: int | None
    """
    Minimum duration, in milliseconds.
    """
    min_height: int | None
    """
    Minimum height, in pixels.
    """
    min_width: int | None
    """
    Minimum width, in pixels.
    """


class MediaFacts(Model):
    """
    Encoding of a file; a member that it does not state is null.
    """

    audio_codec: str | None
    """
    Codec of its sound, such as `aac`, `mp3` or `opus`; null also if it is silent.
    """
    bit_depth: int | None
    """
    Bits per color.
    """
    chroma: str | None
    """
    Chroma subsampling of a video: `4:2:0`, `4:2:2`, `4:4:4`, or `4:0:0` without colors.
    """
    frame_rate: float | None
    """
    Average number of frames per second.
    """
    has_edits: bool | None
    """
    True if an edit list of an MP4 or MOV file leaves out, repeats or delays some of its pictures. One that only begins
    with the first picture does not count.
    """
    index_first: bool | None
    """
    True if the index of an MP4 or MOV file precedes the samples (`faststart`).
    """
    is_fragmented: bool | None
    """
    True if an MP4 or MOV file consists of fragments.
    """
    is_locked: bool | None
    """
    True if a PDF is encrypted.
    """
    is_truncated: bool | None
    """
    True if a GIF ends before its last frame does; what is missing is not published.
    """
    uncleanable: str | None
    """
    Reason why the metadata of a picture or video can't be removed: it is published only if the organization's media
    settings leave them, or as a rendition, which has none.
    """
    undecodable: str | None
    """
    Reason why a picture can't be decoded: it has no thumbnail, and can't be scaled or converted for a platform. Found
    soon after the asset is `ready`.
    """
    video_codec: str | None
    """
    Codec of the pictures of a video, such as `h264`, `hevc`, `vp9` or `av1`.
    """


class MediaFailedEvent(Model):
    """
    A media asset was rejected, or could not be fetched
    """

    data: MediaFailedEventData
    event: Literal["media.failed"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class MediaFailedEventData(Model):
    error: str | None = None
    """
    Reason
    """
    filename: str
    """
    Name of the file
    """
    kind: str
    """
    Kind of the file: image, gif, video, audio or document
    """
    media_id: Annotated[str, Field(alias="mediaId")]
    """
    Id of the media asset
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """


MediaKind = TypeAliasType("MediaKind", Literal["image", "video", "gif", "document", "audio"] | str)


class MediaPage(Model):
    """
    A page of media assets.
    """

    data: list[Media]
    """
    The assets, newest first.
    """
    pagination: Pagination
    """
    Position of the page in the list.
    """


class MediaReadyEvent(Model):
    """
    A media asset was inspected and can be published
    """

    data: MediaReadyEventData
    event: Literal["media.ready"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class MediaReadyEventData(Model):
    error: str | None = None
    """
    Reason
    """
    filename: str
    """
    Name of the file
    """
    kind: str
    """
    Kind of the file: image, gif, video, audio or document
    """
    media_id: Annotated[str, Field(alias="mediaId")]
    """
    Id of the media asset
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """


class MediaSettings(Model):
    """
    Settings for media.
    """

    strip_metadata: bool
    """
    True if the position, the device and other metadata are removed from pictures and videos before they are
    published, without encoding them again; the color profile and the orientation are kept. True by default.
    """


MediaStatus = TypeAliasType("MediaStatus", Literal["pending_upload", "uploaded", "ready", "failed"] | str)


class MediaUpload(Model):
    """
    An upload that waits for its file.
    """

    alt_text: str | None
    """
    Alt text; a post can override it.
    """
    content_type: str | None
    """
    Content type; before inspection, as declared.
    """
    created_at: AwareDatetime
    """
    Creation time.
    """
    duration_ms: int | None
    """
    Duration in milliseconds.
    """
    error: str | None
    """
    Human-readable error of a failed asset.
    """
    expires_at: AwareDatetime
    """
    Expiry time of the URL. Of an asset, `expires_at` is when it is deleted.
    """
    facts: MediaFacts | None
    """
    Encoding of a file; null until the file is inspected.
    """
    filename: str
    """
    File name.
    """
    has_location: bool | None
    """
    True if the file says where it was taken; removed before it is published unless the organization's media settings
    say otherwise. Null until the file is `ready`, and for files that are neither a picture nor a video.
    """
    height: int | None
    """
    Height in pixels.
    """
    id: str
    """
    The media asset's id.
    """
    kind: MediaKind
    """
    Kind of media, determined from the bytes; before inspection, from the declared type. Files of kind `audio` are kept,
    and no platform takes them.
    """
    sha256: str | None
    """
    SHA-256 in lower-case hex.
    """
    size: int | None
    """
    Size in bytes; before inspection, as declared.
    """
    status: MediaStatus
    """
    Status. `uploaded` and `ready` assets can be posted; `failed` is permanent.
    """
    upload_headers: dict[str, str]
    """
    Headers to send.
    """
    upload_method: str
    """
    HTTP method: `PUT`.
    """
    upload_url: str
    """
    URL to send the file to.
    """
    url: str | None
    """
    Download URL, valid for one hour; only if `ready`.
    """
    width: int | None
    """
    Width in pixels.
    """


class Metered(Model):
    """
    Usage of a limited resource.
    """

    current: int
    """
    Amount used.
    """
    limit: int | None
    """
    Limit; null if unlimited.
    """


class MissingPart(Model):
    """
    A part of a live post that is not published.
    """

    error_code: str | None
    """
    Code of its failure. Null for a part that was not tried: it follows one that failed, the platform has no place for
    it, or it was given up.
    """
    error_message: str
    """
    Why it is not published; may change.
    """
    position: int
    """
    Position of its container in the post, from 0.
    """


Mode = TypeAliasType("Mode", Literal["live", "test"] | str)


class NewContainer(Model):
    """
    A text with media: the main post or a reply.
    """

    content: str
    """
    Text; may be empty if there are media.
    """
    media: Annotated[list[NewContainerMedia] | None, Field(validate_default=True)] = []
    """
    Media published with the text, in order.
    """


class NewContainerMedia(Model):
    """
    A media asset of a container: one that exists, by its id, or a file to fetch, by its address.
    """

    alt_text: str | None = None
    """
    Alt text.
    """
    id: str | None = None
    """
    Id of a media asset.
    """
    url: str | None = None
    """
    `https` URL on the public internet, of a file that becomes a media asset of its own. Targets wait until it has
    been fetched.
    """


class OpenSlots(Model):
    """
    Open slots.
    """

    slot: AwareDatetime
    """
    The next open slot.
    """
    slots: list[AwareDatetime]
    """
    The open slots found, earliest first.
    """
    timezone: str
    """
    IANA time zone of the slots.
    """


class Pagination(Model):
    """
    Position of a page in a list.
    """

    limit: int
    """
    Requested page size.
    """
    offset: int
    """
    Number of skipped items.
    """
    total: int
    """
    Total number of matching items.
    """


class PendingAccount(Model):
    """
    A page, board, channel, organization or location that can be connected.
    """

    account_type: str
    """
    Type of account, for example `page` or `location`.
    """
    already_connected: bool
    """
    True if the account is already connected; selecting it reconnects it.
    """
    id: str
    """
    The platform's id, used for the selection.
    """
    name: str
    """
    Display name.
    """
    profile_image_url: str | None
    """
    URL of the picture.
    """
    username: str
    """
    Username.
    """


class PendingLogin(Model):
    """
    A login that covers several accounts.
    """

    confirm: bool
    """
    True if finalizing the login takes an API key.
    """
    data: list[PendingAccount]
    """
    Accounts that can be connected.
    """
    expires_at: AwareDatetime
    """
    Expiry time of the login.
    """
    platform: Platform
    """
    Platform id.
    """
    tenant_id: str | None
    """
    End tenant to assign the accounts to.
    """


class Period(Model):
    """
    A period of time.
    """

    end: AwareDatetime
    """
    End (exclusive).
    """
    start: AwareDatetime
    """
    Start (inclusive).
    """


class Plan(Model):
    """
    Key and name of a plan.
    """

    key: str
    """
    The plan's key.
    """
    name: str
    """
    Display name.
    """


Platform = TypeAliasType(
    "Platform",
    Literal[
        "x",
        "linkedin",
        "instagram",
        "tiktok",
        "youtube",
        "facebook",
        "threads",
        "bluesky",
        "pinterest",
        "google_business",
        "reddit",
    ]
    | str,
)


class Post(Model):
    """
    A post with its containers and targets.
    """

    containers: list[Container]
    """
    Main post and replies, in order.
    """
    created_at: AwareDatetime
    """
    Creation time.
    """
    default_config: dict[str, Any]
    """
    Settings by platform.
    """
    external_ref: str | None
    """
    Idempotency key.
    """
    id: str
    """
    The post's id.
    """
    is_draft: bool
    """
    True if the post is a draft.
    """
    metadata: dict[str, str]
    """
    Your own data on the post.
    """
    published_at: AwareDatetime | None
    """
    Time when the first target was published.
    """
    reply_to: str | None
    """
    Id of the post that it replies to; null for a post of its own.
    """
    scheduled_at: AwareDatetime | None
    """
    Scheduled time; null for immediately.
    """
    status: PostStatus
    """
    Status.
    """
    targets: list[Target]
    """
    Targets, one per account.
    """
    updated_at: AwareDatetime
    """
    Time of the last update.
    """
    variants: list[PostVariant]
    """
    Content that replaces `containers` for some of the targets, by overrides in `config`.
    """


class PostAnalytics(Model):
    """
    Engagement of a post.
    """

    aggregated_metrics: TotalMetrics
    """
    Totals of all targets.
    """
    history: list[TargetMetrics] | None = None
    """
    With `history=true`: snapshots of each target, oldest first. Snapshots older than a day are thinned to
    one per hour, those older than a month to one per day.
    """
    metrics_by_account: list[TargetMetrics]
    """
    Latest metrics of each target.
    """
    post_id: str
    """
    Id of the post.
    """


class PostErrorEvent(Model):
    """
    A post failed on every account
    """

    data: PostErrorEventData
    event: Literal["post.error"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class PostErrorEventData(Model):
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    post_id: Annotated[str, Field(alias="postId")]
    """
    Id of the post
    """
    social_accounts: Annotated[list[PostErrorEventDataSocialAccount], Field(alias="socialAccounts")]
    """
    Every target of the post
    """


class PostErrorEventDataSocialAccount(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason, if it failed; neither this nor an id while it is under way
    """
    network: str
    """
    Platform id
    """
    platform_post_id: Annotated[str | None, Field(alias="platformPostId")] = None
    """
    The platform's id of the post, if it is live
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class PostPage(Model):
    """
    A page of posts.
    """

    data: list[PostSummary]
    """
    The posts, newest first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


class PostPublishedEvent(Model):
    """
    A post reached its first account
    """

    data: PostPublishedEventData
    event: Literal["post.published"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class PostPublishedEventData(Model):
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    post_id: Annotated[str, Field(alias="postId")]
    """
    Id of the post
    """
    social_accounts: Annotated[list[PostPublishedEventDataSocialAccount], Field(alias="socialAccounts")]
    """
    Every target of the post
    """


class PostPublishedEventDataSocialAccount(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason, if it failed; neither this nor an id while it is under way
    """
    network: str
    """
    Platform id
    """
    platform_post_id: Annotated[str | None, Field(alias="platformPostId")] = None
    """
    The platform's id of the post, if it is live
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class PostReference(Model):
    """
    The id and state of a post.
    """

    id: str
    """
    The post's id.
    """
    status: PostStatus
    """
    The post's state.
    """


class PostRetriedEvent(Model):
    """
    A post of which targets were retried has ended again; its `post.published` or `post.error` is not repeated
    """

    data: PostRetriedEventData
    event: Literal["post.retried"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class PostRetriedEventData(Model):
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    outcome: Literal["published", "partial", "failed"] | str
    """
    Status of the post
    """
    post_id: Annotated[str, Field(alias="postId")]
    """
    Id of the post
    """
    round: int
    """
    Number of the retry, from 1
    """
    social_accounts: Annotated[list[PostRetriedEventDataSocialAccount], Field(alias="socialAccounts")]
    """
    Every target of the post
    """


class PostRetriedEventDataSocialAccount(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str | None = None
    """
    Reason, if it failed; neither this nor an id while it is under way
    """
    network: str
    """
    Platform id
    """
    platform_post_id: Annotated[str | None, Field(alias="platformPostId")] = None
    """
    The platform's id of the post, if it is live
    """
    username: str
    """
    Handle on the platform, without `@`
    """


PostStatus = TypeAliasType(
    "PostStatus",
    Literal["draft", "scheduled", "queued", "publishing", "published", "partial", "failed", "canceled"] | str,
)


class PostSummary(Model):
    """
    A post in a list: the contract's six members and no other.
    """

    created_at: AwareDatetime
    """
    Creation time.
    """
    id: str
    """
    The post's id.
    """
    is_draft: bool
    """
    True if the post is a draft.
    """
    published_at: AwareDatetime | None
    """
    Time when the first target was published.
    """
    scheduled_at: AwareDatetime | None
    """
    Scheduled time; null for immediately.
    """
    status: PostStatus
    """
    Status.
    """


class PostTargetFailedEvent(Model):
    """
    A post failed for good on one account
    """

    data: PostTargetFailedEventData
    event: Literal["post.target.failed"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class PostTargetFailedEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    error: str
    """
    Reason
    """
    error_code: Annotated[str, Field(alias="errorCode")]
    """
    Error code of the target
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    post_id: Annotated[str, Field(alias="postId")]
    """
    Id of the post
    """
    round: int | None = None
    """
    Number of the retry that the target was published in; absent from the first publication
    """
    target_id: Annotated[str, Field(alias="targetId")]
    """
    Id of the target
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class PostTargetIncompleteEvent(Model):
    """
    Parts of a post that is live on one account will not follow
    """

    data: PostTargetIncompleteEventData
    event: Literal["post.target.incomplete"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class PostTargetIncompleteEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    missing: list[PostTargetIncompleteEventDataMissingItem]
    """
    Parts of the post that are not published and not tried any more
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    platform_post_id: Annotated[str, Field(alias="platformPostId")]
    """
    The platform's id of the post
    """
    platform_post_url: Annotated[str | None, Field(alias="platformPostUrl")]
    """
    Public address of the post; null if the platform did not return one
    """
    post_id: Annotated[str, Field(alias="postId")]
    """
    Id of the post
    """
    round: int | None = None
    """
    Number of the retry that the target was published in; absent from the first publication
    """
    target_id: Annotated[str, Field(alias="targetId")]
    """
    Id of the target
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class PostTargetIncompleteEventDataMissingItem(Model):
    error_code: str | None
    """
    Error code of its failure; null if it was not tried
    """
    error_message: str
    """
    Reason
    """
    position: int
    """
    Position of its container in the post, from 0
    """


class PostTargetPublishedEvent(Model):
    """
    A post is live on one account
    """

    data: PostTargetPublishedEventData
    event: Literal["post.target.published"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class PostTargetPublishedEventData(Model):
    account_id: Annotated[str, Field(alias="accountId")]
    """
    Id of the account
    """
    missing: list[PostTargetPublishedEventDataMissingItem] | None = None
    """
    Parts of the post that are not published and not tried any more
    """
    network: str
    """
    Platform id
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    platform_post_id: Annotated[str, Field(alias="platformPostId")]
    """
    The platform's id of the post
    """
    platform_post_url: Annotated[str | None, Field(alias="platformPostUrl")]
    """
    Public address of the post; null if the platform did not return one
    """
    post_id: Annotated[str, Field(alias="postId")]
    """
    Id of the post
    """
    round: int | None = None
    """
    Number of the retry that the target was published in; absent from the first publication
    """
    target_id: Annotated[str, Field(alias="targetId")]
    """
    Id of the target
    """
    username: str
    """
    Handle on the platform, without `@`
    """


class PostTargetPublishedEventDataMissingItem(Model):
    error_code: str | None
    """
    Error code of its failure; null if it was not tried
    """
    error_message: str
    """
    Reason
    """
    position: int
    """
    Position of its container in the post, from 0
    """


class PostVariant(Model):
    """
    The content of the targets that name this variant.
    """

    containers: list[Container]
    """
    Main post and replies, in order.
    """
    variant: int
    """
    Number of the variant in its post, from 1.
    """


class Problem(Model):
    """
    A problem document (RFC 9457).
    """

    code: ProblemCode
    """
    Machine-readable problem code.
    """
    detail: str
    """
    Human-readable explanation; may change.
    """
    errors: list[Issue] | None = None
    """
    Errors of single fields.
    """
    limit: int | None = None
    """
    With `quota_exceeded`: the plan's limit.
    """
    reason: ProblemCode | None = None
    """
    With `quota_exceeded`: the same as `code`.
    """
    request_id: str | None = None
    """
    Id of the request, as in the header `X-Request-Id`. Quote it when asking for help.
    """
    status: int
    """
    HTTP status.
    """
    title: str
    """
    Reason phrase of the HTTP status.
    """
    type: str
    """
    Always `about:blank`; `code` identifies the problem.
    """
    upgrade_url: Annotated[str | None, Field(alias="upgradeUrl")] = None
    """
    With `quota_exceeded`: URL for upgrading; null if none is configured.
    """
    used: int | None = None
    """
    With `quota_exceeded`: the amount used.
    """


ProblemCode = TypeAliasType(
    "ProblemCode",
    Literal[
        "invalid_request",
        "invalid_cursor",
        "no_app_available",
        "unauthorized",
        "quota_exceeded",
        "insufficient_scope",
        "forbidden",
        "not_found",
        "method_not_allowed",
        "request_timeout",
        "conflict",
        "publishing_started",
        "payload_too_large",
        "unprocessable",
        "media_not_ready",
        "account_not_found",
        "invalid_credentials",
        "ambiguous_account",
        "no_open_slot",
        "content_rejected",
        "deletion_unsupported",
        "editing_unsupported",
        "reconnect_required",
        "rate_limited",
        "internal_error",
        "unavailable",
    ]
    | str,
)


class Profile(Model):
    """
    A group of accounts.
    """

    created_at: AwareDatetime
    """
    Creation time.
    """
    default_config: dict[str, Any]
    """
    Settings by platform.
    """
    description: str | None
    """
    Description.
    """
    id: str
    """
    The profile's id.
    """
    name: str
    """
    Display name.
    """
    social_account_ids: list[str]
    """
    Ids of the profile's accounts, oldest first, without disconnected ones.
    """
    tenant_id: str | None
    """
    End tenant that it belongs to.
    """
    timezone: str
    """
    IANA time zone.
    """
    updated_at: AwareDatetime
    """
    Time of the last update.
    """


class ProfileList(Model):
    """
    A page of profiles.
    """

    data: list[Profile]
    """
    The profiles, newest first.
    """
    next_cursor: str | None = None
    """
    Cursor of the next page; absent on the last page.
    """


class PublishingCapability(Model):
    """
    Publishing behavior of a platform.
    """

    is_asynchronous: bool
    """
    True if the platform continues processing after it accepts a post.
    """
    window_seconds: int | None
    """
    Maximum processing time in seconds; after that the target is `dead`.
    """


class Removed(Model):
    """
    A deleted resource.
    """

    deleted: bool
    """
    Always true.
    """
    id: str
    """
    The resource's id.
    """


ReplyCapability = TypeAliasType("ReplyCapability", Literal["none", "first_comment", "thread"] | str)
"""
Replies that can follow the main container.
"""


class Report(Model):
    """
    The response to a usage request.
    """

    usage: Usage
    """
    Usage of the plan.
    """


class RequestPage(Model):
    """
    A page of requests.
    """

    data: list[LoggedRequest]
    """
    The requests, newest first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


class RetriedTargets(Model):
    """
    Targets that start over.
    """

    retried: int
    """
    Number of targets that start over.
    """


Role = TypeAliasType("Role", Literal["main", "first_comment", "thread"] | str)


Scope = TypeAliasType(
    "Scope",
    Literal[
        "posts:read",
        "posts:write",
        "accounts:read",
        "accounts:write",
        "networks:read",
        "networks:write",
        "media:read",
        "media:write",
        "webhooks:read",
        "webhooks:write",
        "scheduling:read",
        "scheduling:write",
        "analytics:read",
        "team:read",
        "team:write",
        "profiles:read",
        "profiles:write",
        "usage:read",
        "keys:write",
        "*",
    ]
    | str,
)


Segment = TypeAliasType("Segment", str | int)
"""
Part of a path: a key of an object or an index of an array.
"""


Severity = TypeAliasType("Severity", Literal["error", "warning"] | str)


class Slot(Model):
    """
    A weekly recurring time.
    """

    time: str
    """
    Local time of day, from `00:00` to `23:59`. A time skipped by a clock change moves forward by the gap;
    of a time that occurs twice, the first counts.
    """
    weekday: Weekday
    """
    Day of the week.
    """


class SlotSet(Model):
    """
    The slots of an account or of the organization.
    """

    created_at: AwareDatetime
    """
    Creation time.
    """
    id: str
    """
    The slot set's id.
    """
    next_slots: list[AwareDatetime]
    """
    The next five times in UTC, whether a post holds them or not.
    """
    slots: list[Slot]
    """
    The slots.
    """
    social_account_id: str | None
    """
    Account id; null for the organization.
    """
    updated_at: AwareDatetime
    """
    Time of the last update.
    """


class SlotSets(Model):
    """
    A page of the slots of an organization.
    """

    data: list[SlotSet]
    """
    The slot sets; the organization's first.
    """
    next_cursor: str | None = None
    """
    Cursor of the next page; absent on the last page.
    """


class SocialAccount(Model):
    """
    A connected account. No response contains its tokens.
    """

    account_type: str
    """
    Type of account on the platform, for example `profile` or `page`.
    """
    created_at: AwareDatetime
    """
    Time of the first connection.
    """
    display_name: str
    """
    Display name.
    """
    grant_expires_at: AwareDatetime | None
    """
    Time at which the platform ends the whole grant, if it tells one: the account has to be connected again until then.
    """
    id: str
    """
    The account's id.
    """
    last_error_code: str | None
    """
    Error code of an account that is not active.
    """
    last_synced_at: AwareDatetime | None
    """
    Time of the last successful call to the platform.
    """
    network_unique_id: str
    """
    The platform's id of the account.
    """
    platform: Platform
    """
    Platform id.
    """
    profile_id: str | None
    """
    Id of the account's profile.
    """
    profile_image_url: str | None
    """
    URL of the profile picture.
    """
    profile_url: str | None
    """
    URL of the public profile.
    """
    scopes: list[str]
    """
    Permissions granted by the platform.
    """
    social_network_id: str | None
    """
    Id of the OAuth app that the account was connected through; null for a shared app.
    """
    status: AccountStatus
    """
    Connection status.
    """
    tenant_id: str | None
    """
    End tenant that it belongs to.
    """
    token_expires_at: AwareDatetime | None
    """
    Expiry time of the access token, which is refreshed before.
    """
    unavailable: list[UnavailableFeature]
    """
    Features that are off because the platform granted too few scopes. Connecting the account again with these
    scopes turns them on.
    """
    updated_at: AwareDatetime
    """
    Time of the last update.
    """
    username: str
    """
    Username on the platform.
    """


class SocialAccountCapabilities(Model):
    """
    Limits and features of an account.
    """

    analytics: bool
    """
    True if engagement metrics are available.
    """
    config_schema: dict[str, Any]
    """
    JSON Schema of the platform's settings in `config`.
    """
    content: ContentCapability
    """
    Required content of a container.
    """
    deletion: bool
    """
    True if published posts can be deleted from the platform.
    """
    editing: EditingCapability
    """
    Changes of published posts.
    """
    history: bool
    """
    True if earlier posts can be imported.
    """
    max_alt_text_length: int | None
    """
    Maximum length of alt text, in characters; null if not supported.
    """
    media: list[MediaCapability]
    """
    Media limits of a container, by kind; kinds that are not listed are not accepted.
    """
    mixed_media: bool
    """
    True if one container can have media of different kinds.
    """
    options: list[str]
    """
    Kinds that `options/{kind}` can list.
    """
    platform: Platform
    """
    Platform of the account.
    """
    publishing: PublishingCapability
    """
    Publishing behavior.
    """
    replies: ReplyCapability
    """
    Replies that can follow the main container.
    """
    text: TextCapability
    """
    Text limits of a container.
    """


class SocialAccountHealth(Model):
    """
    Result of checking an account.
    """

    checked_at: AwareDatetime
    """
    Time of the check.
    """
    detail: str | None
    """
    Human-readable error.
    """
    error_code: str | None
    """
    Error code, for example `token_expired` or `upstream_503`.
    """
    healthy: bool
    """
    True if the account's access works.
    """
    status: AccountStatus
    """
    Account status after the check.
    """


class SocialAccountOption(Model):
    """
    An option of a setting.
    """

    id: str
    """
    Value for the setting. For `mentions`, the text that mentions it, to be put into a post:
    `@[Devtestco](urn:li:organization:2414183)`.
    """
    name: str
    """
    Display name.
    """


class SocialAccountOptionList(Model):
    """
    Options of a setting.
    """

    data: list[SocialAccountOption]
    """
    The options, in the platform's order.
    """


class SocialAccountPage(Model):
    """
    A page of accounts.
    """

    data: list[SocialAccount]
    """
    The accounts, newest first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


class SocialNetwork(Model):
    """
    An organization's own OAuth app on a platform. The client secret is in no response.
    """

    client_id: str | None
    """
    Client id.
    """
    created_at: AwareDatetime
    """
    Registration time.
    """
    display_name: str | None
    """
    Display label.
    """
    extra_config: dict[str, Any]
    """
    Additional configuration.
    """
    id: str
    """
    The app's id.
    """
    is_enabled: bool
    """
    True if accounts can be connected through the app.
    """
    platform: Platform
    """
    Platform id.
    """
    redirect_uri: str | None
    """
    Redirect URI registered with the platform.
    """
    scopes: list[str]
    """
    OAuth scopes that are requested; empty for the default ones.
    """
    updated_at: AwareDatetime
    """
    Time of the last update.
    """


class SocialNetworkList(Model):
    """
    Lists all apps.
    """

    data: list[SocialNetwork]
    """
    The apps, ordered by platform.
    """


class Target(Model):
    """
    Publication of a post to one account.
    """

    attempts: int
    """
    Publish attempts begun, since the last retry of a dead target. Those that the platform throttled don't count
    towards the limit of ten.
    """
    edited_at: AwareDatetime | None
    """
    Time when the published post was last changed on the platform, or the text of a part that is missing; null if
    neither ever was.
    """
    edits: TargetEdits | None
    """
    Changes since it was published; null if there are none.
    """
    error_code: str | None
    """
    Machine-readable code of the last failure, for example `rate_limited` or `rejected_400`. `stopped` if an
    operator of the service ended the target, `frozen` while one has paused publishing, `app_refused` while the platform
    refuses the app that it is published with, whose owner has to act: these two cost no attempt. Null if a target was published without parts that the platform does not support, or is `canceled`: `error_message`
    says which and why.
    """
    error_message: str | None
    """
    Human-readable error of the platform, or why the target was canceled; may change. That of a published target
    begins with the part of the post that failed, such as `part 3 of 4`.
    """
    error_source: ErrorSource | None
    """
    Who can fix it: `user`, `platform` or `service`.
    """
    id: str
    """
    The target's id.
    """
    missing: list[MissingPart]
    """
    Parts of a live post that are not published and not tried any more, each with the reason, in order. Empty while a
    part is still awaited.
    """
    next_attempt_at: AwareDatetime | None
    """
    Time of the next attempt. Null if none is scheduled, also while publishing is `frozen`.
    """
    platform: Platform
    """
    The account's platform.
    """
    platform_post_id: str | None
    """
    The platform's id of the published post.
    """
    platform_post_url: str | None
    """
    URL of the published post.
    """
    published_at: AwareDatetime | None
    """
    Time of publication.
    """
    reply_to_platform_post_id: str | None
    """
    The platform's id of the post that it replies to, from the first attempt on; null if its post has no `reply_to`.
    """
    scheduled_at: AwareDatetime | None
    """
    Its own time to publish; null for the post's.
    """
    social_account_id: str
    """
    Id of the account.
    """
    status: TargetStatus
    """
    Status. `failed` is retried, `dead` is final unless the post is retried.
    """
    unpublished_at: AwareDatetime | None
    """
    Time when the published post was deleted from the platform; null while it is live.
    """
    variant: int | None
    """
    Number of the variant of the post that it publishes; null for the post's `containers`.
    """


class TargetEdits(Model):
    """
    Changes to a target's posts since they were published.
    """

    config: dict[str, Any]
    """
    Settings of the platform that were changed.
    """
    containers: list[EditedContainer]
    """
    Containers with another text, by position.
    """


class TargetMetrics(Model):
    """
    Metrics of a target. Metrics that the platform does not report are 0.
    """

    captured_at: AwareDatetime
    """
    Time of the snapshot.
    """
    clicks: int
    """
    Clicks on links.
    """
    comments: int
    """
    Comments and replies.
    """
    engagement_rate: float
    """
    Likes, comments, shares, saves and clicks per impression, or per reach or view if the platform reports
    no impressions; 0 if it reports none of these.
    """
    impressions: int
    """
    Impressions.
    """
    likes: int
    """
    Likes and other reactions.
    """
    platform: Platform
    """
    Platform id.
    """
    reach: int
    """
    Reach.
    """
    saves: int
    """
    Saves and bookmarks.
    """
    shares: int
    """
    Shares, reposts and quotes.
    """
    stale: bool | None = None
    """
    True if the platform returned no metrics now, so that these are the latest that it returned before. Absent
    in the history.
    """
    target_id: str
    """
    Id of the target.
    """
    video_views: int
    """
    Video views.
    """


TargetStatus = TypeAliasType(
    "TargetStatus", Literal["pending", "queued", "published", "failed", "dead", "canceled"] | str
)


class Team(Model):
    """
    A page of the team.
    """

    data: list[TeamMember]
    """
    The members, in the order they were invited.
    """
    next_cursor: str | None = None
    """
    Cursor of the next page; absent on the last page.
    """


class TeamMember(Model):
    """
    A team member.
    """

    email: str
    """
    E-mail address.
    """
    id: str
    """
    The member's id.
    """
    invite_url: str | None = None
    """
    URL for accepting the invitation within seven days. Only in the response that created it.
    """
    invited_at: AwareDatetime
    """
    Time of the invitation.
    """
    is_test_only: bool
    """
    True if the person was invited with a test key and has access to test data only.
    """
    joined_at: AwareDatetime | None
    """
    Time the invitation was accepted.
    """
    name: str | None
    """
    Name, given when accepting the invitation.
    """
    role: TeamRole
    """
    Role.
    """
    status: TeamStatus
    """
    `invited` until the invitation is accepted, then `active`.
    """


TeamRole = TypeAliasType("TeamRole", Literal["owner", "admin", "publisher", "viewer"] | str)


TeamStatus = TypeAliasType("TeamStatus", Literal["invited", "active"] | str)


class TextCapability(Model):
    """
    A text limit.
    """

    max_bytes: int | None
    """
    Additional limit in UTF-8 bytes, if any.
    """
    max_length: int
    """
    Maximum length that every account may have, in `unit`. Where it is not known whether an account may have more,
    a longer text is a warning.
    """
    unit: str
    """
    Unit of `max_length`, for example `graphemes`.
    """


class Timeline(Model):
    """
    Timeline of a post.
    """

    data: list[TimelineEntry]
    """
    Past events, oldest first.
    """
    next: list[TimelineStep]
    """
    Upcoming steps, soonest first: those of all targets, and of the deliveries on this page.
    """
    next_cursor: str | None = None
    """
    Cursor of the next page; absent on the last page.
    """


class TimelineEntry(Model):
    """
    A past event.
    """

    at: AwareDatetime
    """
    Time of the event.
    """
    detail: dict[str, Any]
    """
    Further details.
    """
    kind: str
    """
    Machine-readable event type, for example `attempt`.
    """
    message: str
    """
    Human-readable description.
    """
    target_id: str | None
    """
    Id of the target; null for the whole post.
    """


class TimelineStep(Model):
    """
    An upcoming step.
    """

    action: str
    """
    Action: `publish`, `retry` or `deliver`.
    """
    at: AwareDatetime | None
    """
    Time of the step; null for immediately, and for a target whose publishing is `frozen`.
    """
    target_id: str | None
    """
    Id of the target; null for the whole post.
    """


class TotalMetrics(Model):
    """
    Sums over all targets returned.
    """

    total_clicks: int
    """
    Clicks on links.
    """
    total_comments: int
    """
    Comments and replies.
    """
    total_impressions: int
    """
    Impressions.
    """
    total_likes: int
    """
    Likes and other reactions.
    """
    total_reach: int
    """
    Reach; a person reached on two accounts counts twice.
    """
    total_saves: int
    """
    Saves and bookmarks.
    """
    total_shares: int
    """
    Shares, reposts and quotes.
    """
    total_video_views: int
    """
    Video views.
    """


class UnavailableFeature(Model):
    """
    A feature that is off because the account's grant lacks scopes.
    """

    feature: AccountFeature
    """
    The feature.
    """
    missing_scopes: list[str]
    """
    Scopes that it needs and that were not granted.
    """


class Usage(Model):
    """
    Usage of a plan.
    """

    api_keys: Metered
    """
    Valid API keys now.
    """
    api_requests: Metered
    """
    API requests in the period.
    """
    billing_period: Period
    """
    The calendar month.
    """
    mode: Mode
    """
    The mode whose usage this is: that of the key.
    """
    plan: Plan
    """
    The plan.
    """
    posts: Included
    """
    Published targets in the period.
    """
    profiles: Metered
    """
    Profiles now.
    """
    slots: Metered
    """
    Posting slots now, of the organization and all its accounts.
    """
    social_accounts: Metered
    """
    Accounts connected now.
    """
    storage_bytes: Metered
    """
    Size of all media files now, in bytes, announced and running uploads included.
    """
    team_members: Metered
    """
    Team members now, invited ones included. They belong to both modes.
    """
    webhook_endpoints: Metered
    """
    Webhook endpoints now.
    """


class Verdict(Model):
    """
    Result of validating a post.
    """

    issues: list[VerdictIssue]
    """
    Issues, grouped by account; at most 1000.
    """
    targets: list[VerdictTarget]
    """
    Posts that the accounts would get.
    """
    valid: bool
    """
    True if there are no errors; there may be warnings.
    """
    variants: list[VerdictVariant]
    """
    Content that replaces the post's own for some of the targets, by overrides in `config`.
    """


class VerdictIssue(Model):
    """
    An error or warning for one account.
    """

    account: str
    """
    Id of the account.
    """
    code: str
    """
    Machine-readable code, for example `text_too_long`.
    """
    message: str
    """
    Human-readable message.
    """
    path: list[Segment]
    """
    Keys and 0-based indices that lead to the field.
    """
    platform: Platform
    """
    Platform id.
    """
    severity: Severity
    """
    `error`: the post would be refused. `warning`: it would go out, but not as meant.
    """


class VerdictTarget(Model):
    """
    Post that some of the accounts would get: all those of a platform, but for the ones with overrides of their own.
    """

    accounts: list[str]
    """
    Ids of the accounts.
    """
    platform: Platform
    """
    Platform id.
    """
    scheduled_at: AwareDatetime | None
    """
    Time to publish; null for immediately, or for the next open slot.
    """
    settings: dict[str, Any]
    """
    The platform's settings.
    """
    variant: int
    """
    Number of the variant that they get, from 1; 0 for the post's own content.
    """


class VerdictVariant(Model):
    """
    The content of the targets that name this variant.
    """

    containers: list[NewContainer]
    """
    Main post and replies, in order.
    """
    variant: int
    """
    Number of the variant in the post, from 1.
    """


class Webhook(Model):
    """
    A webhook endpoint.
    """

    created_at: AwareDatetime
    """
    Registration time.
    """
    description: str | None = None
    """
    Display label. Absent if there is none.
    """
    events: list[EventName]
    """
    Subscribed events; `*` for all.
    """
    failing_since: AwareDatetime | None
    """
    Since when the endpoint has accepted nothing, if ten attempts in a row failed; null otherwise. Each delivery is
    attempted at its own times. After more than two hours, and while more than 100 deliveries wait, single attempts
    are made every 5 minutes until one succeeds, and after a day deliveries that waited as long fail.
    """
    id: str
    """
    The endpoint's id.
    """
    is_active: bool
    """
    True if events are delivered.
    """
    signing_secret: str | None = None
    """
    Secret that signs deliveries. Only in the response that registered the endpoint.
    """
    updated_at: AwareDatetime
    """
    Time of the last update.
    """
    url: str
    """
    URL that events are sent to.
    """


class WebhookDelivery(Model):
    """
    The delivery of one event to one endpoint.
    """

    attempts: int
    """
    Attempts begun since the delivery was created or redelivered.
    """
    created_at: AwareDatetime
    """
    Time of the event.
    """
    delivered_at: AwareDatetime | None
    """
    Time of successful delivery.
    """
    error: str | None
    """
    Last error.
    """
    event: DeliveredEvent
    """
    The event.
    """
    event_id: str
    """
    The event's id, the same as in `X-Fanfare-Event-Id`.
    """
    id: str
    """
    The delivery's id.
    """
    next_attempt_at: AwareDatetime | None
    """
    Time of the next attempt; null if it is due now or there is none.
    """
    response_status: int | None
    """
    HTTP status of the last response; null if there was none.
    """
    status: DeliveryStatus
    """
    Status. `failed` is final.
    """


class WebhookDeliveryDetails(Model):
    """
    A delivery with what was sent and answered.
    """

    attempts: int
    """
    Attempts begun since the delivery was created or redelivered.
    """
    created_at: AwareDatetime
    """
    Time of the event.
    """
    delivered_at: AwareDatetime | None
    """
    Time of successful delivery.
    """
    error: str | None
    """
    Last error.
    """
    event: DeliveredEvent
    """
    The event.
    """
    event_id: str
    """
    The event's id, the same as in `X-Fanfare-Event-Id`.
    """
    id: str
    """
    The delivery's id.
    """
    next_attempt_at: AwareDatetime | None
    """
    Time of the next attempt; null if it is due now or there is none.
    """
    payload: dict[str, Any]
    """
    Body of each attempt.
    """
    post_id: str | None
    """
    Id of the post that the event is about; null if it is about none.
    """
    response_status: int | None
    """
    HTTP status of the last response; null if there was none.
    """
    responses: list[WebhookDeliveryResponse]
    """
    Answers to its attempts, oldest first: the last 20, of earlier rounds too.
    """
    status: DeliveryStatus
    """
    Status. `failed` is final.
    """


class WebhookDeliveryPage(Model):
    """
    A page of deliveries.
    """

    data: list[WebhookDelivery]
    """
    The deliveries, newest first.
    """
    next_cursor: str | None
    """
    Cursor of the next page; null on the last page.
    """


class WebhookDeliveryResponse(Model):
    """
    Answer of an endpoint to an attempt.
    """

    at: AwareDatetime | None
    """
    Time of the answer; null if it is unknown.
    """
    body: str | None
    """
    First 512 bytes of the body; null if it was empty.
    """
    duration_ms: int | None
    """
    Time until the answer, in milliseconds.
    """
    error: str | None
    """
    Why the attempt failed; null if it succeeded.
    """
    status: int | None
    """
    HTTP status; null if there was no response.
    """


class WebhookFailingEvent(Model):
    """
    An endpoint accepts nothing; sent to the organization's other endpoints
    """

    data: WebhookFailingEventData
    event: Literal["webhook.failing"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class WebhookFailingEventData(Model):
    error: str
    """
    Reason of the last failed attempt
    """
    failing_since: Annotated[AwareDatetime, Field(alias="failingSince")]
    """
    Time of the first failed attempt
    """
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    webhook_id: Annotated[str, Field(alias="webhookId")]
    """
    Id of the endpoint that accepts nothing
    """


class WebhookList(Model):
    """
    A page of webhook endpoints.
    """

    data: list[Webhook]
    """
    The endpoints, newest first.
    """
    next_cursor: str | None = None
    """
    Cursor of the next page; absent on the last page.
    """


class WebhookReplay(Model):
    """
    Result of starting a replay.
    """

    has_more: bool
    """
    True if there may be more to repeat.
    """
    queued: int
    """
    Number of deliveries that were queued.
    """
    until: AwareDatetime
    """
    Time before which the events happened, to be sent with the next call.
    """


class WebhookTest(Model):
    """
    Result of a test event.
    """

    delivered: bool
    """
    True if the endpoint answered with a 2xx status in time.
    """
    event: str
    """
    Always `webhook.test`.
    """
    response_status: int
    """
    HTTP status of the response; 0 if there was none.
    """
    signed: bool
    """
    True if the test event was signed.
    """


class WebhookTestEvent(Model):
    """
    A test that was requested with `POST /webhooks/{id}/test`
    """

    data: WebhookTestEventData
    event: Literal["webhook.test"]
    """
    Name of the event
    """
    id: str
    """
    Id of the event, the same in every attempt
    """
    timestamp: AwareDatetime
    """
    Time of the event
    """


class WebhookTestEventData(Model):
    org_id: Annotated[str, Field(alias="orgId")]
    """
    Id of the organization
    """
    webhook_id: Annotated[str, Field(alias="webhookId")]
    """
    Id of the endpoint
    """


Weekday = TypeAliasType(
    "Weekday", Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] | str
)
