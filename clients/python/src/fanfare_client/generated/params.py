# Generated from api/openapi.json by clients/generator/generate. Do not edit.

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict

AuditAction: TypeAlias = Literal[
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


class BlueskyLogin(TypedDict):
    """
    A Bluesky login.
    """

    app_password: str
    """
    App password. Stored encrypted, never shown.
    """
    identifier: str
    """
    Handle, e-mail address or DID.
    """
    service: NotRequired[str | None]
    """
    The account's server (PDS), if it is not Bluesky's own: `https` and a public host name, without a
    path.
    """
    tenant_id: NotRequired[str | None]
    """
    End tenant to assign a new account to. An account that belongs to another tenant is not moved.
    """


class BlueskySettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    allow_replies_from: NotRequired[list[Literal["mentioned", "followers", "following"]] | None]
    """
    Who may reply, in addition to the author: accounts that the post mentions (`mentioned`), that follow the author (`followers`), or that the author follows (`following`). Nobody if the list is empty, everybody without it.
    """
    captions: NotRequired[list[BlueskySettingsCaption] | None]
    """
    Captions of the first post's video, one file for each language. Only for posts of kind video; not used for others.
    """
    disable_quotes: NotRequired[bool | None]
    """
    Prevents quotes of the post.
    """
    labels: NotRequired[list[Literal["sexual", "nudity", "porn", "graphic-media"]] | None]
    """
    Content warnings.
    """
    languages: NotRequired[list[str] | None]
    """
    Languages of the text (BCP 47).
    """
    link: NotRequired[BlueskySettingsLink | None]
    """
    A link card below the text of the first post. The post's only image, if there is one, is the card's picture.
    """
    quote: NotRequired[str | None]
    """
    The post to quote: its at:// URI or its bsky.app URL.
    """
    shorten_links: NotRequired[bool | None]
    """
    Shows links as Bluesky's own app does: without their scheme, and with a long path cut. They lead to the whole address, and the text's length is that of what is shown.
    """
    tags: NotRequired[list[str] | None]
    """
    Additional tags, without #.
    """


class BlueskySettingsCaption(TypedDict):
    content: str
    """
    The captions as the text of a WebVTT (.vtt), SubRip (.srt) or SubViewer (.sbv) file. Bluesky gets WebVTT, of at most 20,000 bytes.
    """
    language: str
    """
    Language of the captions (BCP 47).
    """


class BlueskySettingsLink(TypedDict):
    """
    A link card below the text of the first post. The post's only image, if there is one, is the card's picture.
    """

    description: NotRequired[str | None]
    title: NotRequired[str | None]
    url: str


DeliveredEvent: TypeAlias = Literal[
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


DeliveryStatus: TypeAlias = Literal["pending", "delivering", "delivered", "failed"]


class EditPost(TypedDict):
    """
    Changes to a post; missing fields keep their value. Publishing must not have begun.
    """

    accounts: NotRequired[list[str]]
    """
    Accounts to publish to: ids, usernames or platform-side ids; replaces all accounts.
    """
    bluesky: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    config: NotRequired[PlatformConfig]
    """
    Settings by platform; replaces the settings of all platforms.
    """
    containers: NotRequired[list[NewContainer]]
    """
    The main post, its first comment and further replies, in order; replaces all containers and their
    media.
    """
    content: NotRequired[str]
    """
    Text of a post with a single container. A post with one container keeps its media; several containers
    are replaced.
    """
    external_ref: NotRequired[str | None]
    """
    Idempotency key; can't be changed.
    """
    facebook: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    google_business: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    instagram: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    is_draft: NotRequired[bool]
    """
    False releases a draft, true makes the post a draft. Platform limits are checked on release.
    """
    linkedin: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    metadata: NotRequired[dict[str, Any] | None]
    """
    Changes of your own data: a text sets its key, null removes it, and other keys stay. Null instead of an
    object removes all.
    """
    pinterest: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    queue_timezone: NotRequired[str]
    """
    The IANA time zone that the slots are read in; `UTC` by default.
    """
    queued_from_account: NotRequired[str]
    """
    Publish at the next open posting slot of this account, which must be one of `accounts`. The post's own
    slot counts as open; it is released when the post moves to another time.
    """
    reddit: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    reply_to: NotRequired[str | None]
    """
    The post to reply to; can't be changed.
    """
    scheduled_at: NotRequired[str | None]
    """
    Time to publish, in ISO 8601, UTC without an offset; null for immediately.
    """
    threads: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    tiktok: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    x: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    youtube: NotRequired[dict[str, Any]]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """


class EditReply(TypedDict):
    """
    New text of a reply, and new media of one that is missing.
    """

    content: str
    """
    The new text.
    """
    media: NotRequired[list[EditReplyMedia] | None]
    """
    New media of a reply that is missing, in order; without, it keeps those it has. The target then names a variant of
    the post that is its own.
    """
    position: int
    """
    Position of the reply's container in the post, from 1.
    """


class EditReplyMedia(TypedDict):
    """
    A media asset of a reply.
    """

    alt_text: NotRequired[str | None]
    """
    Alt text.
    """
    id: str
    """
    Id of the media asset.
    """


class EditTarget(TypedDict):
    """
    New text and settings of a published post.
    """

    config: NotRequired[dict[str, Any]]
    """
    New values of settings of the target's platform, which the account's capabilities list under `editing`.
    """
    content: NotRequired[str]
    """
    New text of the main post.
    """
    replies: NotRequired[list[EditReply]]
    """
    New texts of replies that are live, or of replies that are missing.
    """


EventName: TypeAlias = Literal[
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


class FacebookSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    child_attachments: NotRequired[list[FacebookSettingsChildAttachment] | None]
    """
    Cards with links beside each other. Facebook shows the first five. Not together with media. Only for posts of kind text; refused for others.
    """
    collaborators: NotRequired[list[str] | None]
    """
    Ids of the Pages to invite to publish a reel as well. Facebook takes ten invitations a day.
    """
    countries: NotRequired[list[str] | None]
    """
    Codes of the only countries in which the post is shown. A story can't be limited. Only for posts of kind text, photos, video, reel; refused for others.
    """
    cover: NotRequired[str | None]
    """
    Id of the container's image to use as the cover of its video or reel; the container has this image and one video.
    """
    draft: NotRequired[bool | None]
    """
    Keeps a text, a link or photos as a draft of the Page, which somebody finishes and publishes in Meta Business Suite. Refused for a reply, which does not use it.
    """
    is_ai_generated: NotRequired[bool | None]
    """
    Labels the video as made with AI. Only for posts of kind video, reel; refused for others.
    """
    link: NotRequired[str | None]
    """
    The link to show as a preview, or behind the last of the cards in child_attachments. Not together with media.
    """
    media_type: NotRequired[Literal["FEED", "REELS", "STORIES"] | None]
    """
    Place where the post is shown. Defaults to the feed.
    """
    place: NotRequired[str | None]
    """
    Id of the Page of the place to tag. Only for posts of kind text, photos, reel; not used for others.
    """
    text_format_preset_id: NotRequired[str | None]
    """
    Id of the colored background of a text of at most 130 characters, one of those that Facebook's own composer has. Not together with media, link, child_attachments. Only for posts of kind text; not used for others.
    """
    title: NotRequired[str | None]
    """
    Title of a video or a reel. Only for posts of kind video, reel; not used for others.
    """


class FacebookSettingsChildAttachment(TypedDict):
    """
    A card of a carousel of links.
    """

    description: NotRequired[str | None]
    """
    A price, a discount or a site's name; by default taken from the linked page. Facebook shows about 30 characters.
    """
    link: str
    """
    Address that the card leads to.
    """
    name: NotRequired[str | None]
    """
    Title; by default that of the linked page. Facebook shows about 35 characters.
    """
    picture: str
    """
    Address of the card's picture, a square of at least 458 pixels.
    """


class GoogleBusinessSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    alertType: NotRequired[Literal["COVID_19"] | None]
    """
    Topic of an alert. Only for posts of kind ALERT; not used for others.
    """
    callToAction: NotRequired[GoogleBusinessSettingsCallToAction | None]
    """
    The button below the post; an offer has its own. Only for posts of kind STANDARD, EVENT, ALERT; not used for others.
    """
    event: NotRequired[GoogleBusinessSettingsEvent | None]
    """
    The event with its times in the location's time zone. Required for an offer as well. Only for posts of kind EVENT, OFFER; not used for others.
    """
    fit: NotRequired[Literal["crop", "pad"] | None]
    """
    How a picture of less than 250 pixels, which is enlarged, is made to fit where it is too long as well: `crop` keeps its middle, `pad` lays it on a white ground. Without, a small picture is refused.
    """
    languageCode: NotRequired[str | None]
    """
    Language of the text (BCP 47).
    """
    offer: NotRequired[GoogleBusinessSettingsOffer | None]
    """
    Only for posts of kind OFFER; not used for others.
    """
    photo: NotRequired[GoogleBusinessSettingsPhoto | None]
    """
    Adds the image to the location's photos instead of creating a post. The text becomes its description. Not together with topicType, languageCode, callToAction, event, offer, alertType, scheduledTime.
    """
    scheduledTime: NotRequired[str | None]
    """
    Time at which Google shows the post.
    """
    topicType: NotRequired[Literal["STANDARD", "EVENT", "OFFER", "ALERT"] | None]
    """
    Topic of the post. Defaults to what the other settings imply.
    """
    video: NotRequired[GoogleBusinessSettingsVideo | None]
    """
    Adds the video to the location's videos instead of creating a post, which takes none. The text becomes its description. Not together with topicType, languageCode, callToAction, event, offer, alertType, scheduledTime, photo.
    """


class GoogleBusinessSettingsCallToAction(TypedDict):
    """
    The button below the post; an offer has its own. Only for posts of kind STANDARD, EVENT, ALERT; not used for others.
    """

    actionType: Literal["BOOK", "ORDER", "SHOP", "LEARN_MORE", "SIGN_UP", "CALL"]
    url: NotRequired[str | None]
    """
    URL that the button links to; CALL has none.
    """


class GoogleBusinessSettingsEvent(TypedDict):
    """
    The event with its times in the location's time zone. Required for an offer as well. Only for posts of kind EVENT, OFFER; not used for others.
    """

    end: NotRequired[str | None]
    """
    A date, or a date and a time.
    """
    recurrenceInfo: NotRequired[dict[str, Any] | None]
    """
    Recurrence of the event, as in Google's API.
    """
    schedule: NotRequired[dict[str, Any] | None]
    """
    Google's `TimeInterval`, in place of start and end.
    """
    start: NotRequired[str | None]
    """
    A date, or a date and a time.
    """
    title: str


class GoogleBusinessSettingsOffer(TypedDict):
    """
    Only for posts of kind OFFER; not used for others.
    """

    couponCode: NotRequired[str | None]
    redeemOnlineUrl: NotRequired[str | None]
    termsConditions: NotRequired[str | None]


class GoogleBusinessSettingsPhoto(TypedDict):
    """
    Adds the image to the location's photos instead of creating a post. The text becomes its description. Not together with topicType, languageCode, callToAction, event, offer, alertType, scheduledTime.
    """

    category: Literal[
        "EXTERIOR",
        "INTERIOR",
        "PRODUCT",
        "AT_WORK",
        "FOOD_AND_DRINK",
        "MENU",
        "COMMON_AREA",
        "ROOMS",
        "TEAMS",
        "ADDITIONAL",
    ]
    """
    Category of the photo or video.
    """


class GoogleBusinessSettingsVideo(TypedDict):
    """
    Adds the video to the location's videos instead of creating a post, which takes none. The text becomes its description. Not together with topicType, languageCode, callToAction, event, offer, alertType, scheduledTime, photo.
    """

    category: Literal[
        "EXTERIOR",
        "INTERIOR",
        "PRODUCT",
        "AT_WORK",
        "FOOD_AND_DRINK",
        "MENU",
        "COMMON_AREA",
        "ROOMS",
        "TEAMS",
        "ADDITIONAL",
    ]
    """
    Category of the photo or video.
    """


class InstagramSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    audio_name: NotRequired[str | None]
    """
    Name of a reel's original audio. Only for posts of kind reel; not used for others.
    """
    collaborators: NotRequired[list[str] | None]
    """
    Usernames of accounts to invite as co-authors. Only for posts of kind image, carousel, reel; not used for others.
    """
    comment_enabled: NotRequired[bool | None]
    """
    False turns comments off as soon as the post is live; needs the scope instagram_business_manage_comments. A post without comments has no first comment either. Defaults to true. Only for posts of kind image, carousel, reel; not used for others.
    """
    cover: NotRequired[str | None]
    """
    Id of the container's image to use as a reel's cover; the container has this image and one video. Not together with cover_url.
    """
    cover_url: NotRequired[str | None]
    """
    URL of a reel's cover image, a JPEG. Only for posts of kind reel; not used for others.
    """
    fit: NotRequired[Literal["crop", "pad"] | None]
    """
    How a picture that is taller than 3:4 or wider than 1.91:1 is made to fit in the feed, and one that is taller than 1:10 or wider than 1.91:1 elsewhere: `crop` keeps its middle, `pad` lays it on a white ground.
    """
    is_ai_generated: NotRequired[bool | None]
    """
    Labels the post as made with AI. Refused for a reply, which does not use it.
    """
    location_id: NotRequired[str | None]
    """
    Id of the Facebook Page of the place to tag. Only for posts of kind image, carousel, reel; not used for others.
    """
    media_type: NotRequired[Literal["FEED", "REELS", "STORIES"] | None]
    """
    Place where the post is shown. By default a single video is a reel, and everything else goes to the feed. With STORIES each container of the post is a story of its own, with one medium, and none is a comment.
    """
    share_to_feed: NotRequired[bool | None]
    """
    Also shows a reel in the feed. Defaults to true. Only for posts of kind reel; not used for others.
    """
    thumb_offset: NotRequired[int | None]
    """
    Moment of a reel to use as its cover, in milliseconds. Ignored with cover and cover_url. Only for posts of kind reel; not used for others.
    """
    trial_params: NotRequired[InstagramSettingsTrialParams | None]
    """
    Shows a reel first to people who do not follow the account. Only for posts of kind reel; refused for others.
    """
    user_tags: NotRequired[list[InstagramSettingsUserTag] | None]
    """
    Accounts to tag in an image, each with its position, in a video, or in one medium of a carousel.
    """


class InstagramSettingsTrialParams(TypedDict):
    """
    Shows a reel first to people who do not follow the account. Only for posts of kind reel; refused for others.
    """

    graduation_strategy: Literal["MANUAL", "SS_PERFORMANCE"]


class InstagramSettingsUserTag(TypedDict):
    media_index: NotRequired[int | None]
    """
    Index of the medium in a carousel, or of the story of several, from 0. Defaults to the first.
    """
    username: str
    x: NotRequired[float | None]
    """
    Share of the width, from the left. Required in an image, optional in a story, and not used in a video.
    """
    y: NotRequired[float | None]
    """
    Share of the height, from the top, as x.
    """


class LinkedinSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    document: NotRequired[LinkedinSettingsDocument | None]
    """
    Publishes the pictures as the pages of a PDF, which LinkedIn shows as a carousel. A page shows no alt text. Not together with link, poll, reshare. Only for posts of kind image, images; not used for others.
    """
    isReshareDisabledByAuthor: NotRequired[bool | None]
    """
    Prevents others from sharing the post.
    """
    link: NotRequired[LinkedinSettingsLink | None]
    """
    A link with a card. LinkedIn reads nothing from the page; the post's image becomes the card's. Not together with poll, reshare.
    """
    organization_id: NotRequired[str | None]
    """
    The page to post for, instead of the member.
    """
    poll: NotRequired[LinkedinSettingsPoll | None]
    """
    A poll. Lasts three days by default. Not together with media, link, reshare.
    """
    reshare: NotRequired[str | None]
    """
    The post to share with this text. Not together with media, poll, link.
    """
    title: NotRequired[str | None]
    """
    Title of the video or document. Defaults to the file name for a document. Only for posts of kind video, document; not used for others.
    """
    visibility: NotRequired[Literal["PUBLIC", "CONNECTIONS", "LOGGED_IN"] | None]
    """
    Who can see the post. A page's posts are always public: anything else is refused for them. Refused for a reply, which does not use it.
    """


class LinkedinSettingsDocument(TypedDict):
    """
    Publishes the pictures as the pages of a PDF, which LinkedIn shows as a carousel. A page shows no alt text. Not together with link, poll, reshare. Only for posts of kind image, images; not used for others.
    """

    title: str


class LinkedinSettingsLink(TypedDict):
    """
    A link with a card. LinkedIn reads nothing from the page; the post's image becomes the card's. Not together with poll, reshare.
    """

    description: NotRequired[str | None]
    title: str
    url: str


class LinkedinSettingsPoll(TypedDict):
    """
    A poll. Lasts three days by default. Not together with media, link, reshare.
    """

    duration: NotRequired[Literal["ONE_DAY", "THREE_DAYS", "SEVEN_DAYS", "FOURTEEN_DAYS"] | None]
    options: list[str]
    question: str


MediaKind: TypeAlias = Literal["image", "video", "gif", "document", "audio"]


class MediaPatch(TypedDict):
    """
    A change of a media asset. Omitted members stay unchanged.
    """

    alt_text: NotRequired[str | None]
    """
    Alt text; null removes it.
    """


class MediaSettingsPatch(TypedDict):
    """
    Changes of the settings for media.
    """

    strip_metadata: NotRequired[bool]
    """
    False publishes pictures that need no fitting, and videos, with their metadata: for who needs credits in IPTC
    fields.
    """


MediaStatus: TypeAlias = Literal["pending_upload", "uploaded", "ready", "failed"]


Mode: TypeAlias = Literal["live", "test"]


class NewAuthorization(TypedDict):
    """
    Options for connecting an account.
    """

    confirm: NotRequired[bool | None]
    """
    True to connect nothing until a call with an API key finalizes the login: it always ends with
    `status=pending` at `redirect_uri`, which is required then. Before you finalize it, compare the `tenant_id` of
    the redirect with the user's session. Without it, somebody who sends their authorization URL to another person
    connects that person's account for themselves. False by default.
    """
    expected_network_unique_id: NotRequired[str | None]
    """
    The platform's id of the account that must be connected.
    """
    force_reauth: NotRequired[bool | None]
    """
    True to force a new login on platforms that support it, even if the user is logged in.
    """
    hosted: NotRequired[bool | None]
    """
    True to begin on a page of this service: it names the organization and the tenant, and binds the login to the
    browser, so that it can't be finished in another one. False by default.
    """
    reconnect_account_id: NotRequired[str | None]
    """
    Id of the account to reconnect. A login to any other account fails.
    """
    redirect_uri: NotRequired[str | None]
    """
    URI to redirect the user to afterwards; this service's own pages by default. Must be `https`; in test
    mode `http` to localhost is allowed too.
    """
    scopes: NotRequired[list[str] | None]
    """
    OAuth scopes to request, instead of the app's.
    """
    tenant_id: NotRequired[str | None]
    """
    End tenant to assign the account to. An account of another tenant is moved only if
    `reconnect_account_id` names it; otherwise the login fails with `wrong_account`.
    """


class NewClientToken(TypedDict):
    """
    A client token to create.
    """

    expires_in: NotRequired[int | None]
    """
    Lifetime in seconds, 15 to 60 minutes; 15 by default.
    """
    platforms: NotRequired[list[Platform] | None]
    """
    Platforms that can be connected; all by default.
    """
    redirect_uri: NotRequired[str | None]
    """
    URI of your page at which logins end; this service's own pages by default.
    """
    tenant_id: str
    """
    End tenant that accounts are connected for.
    """


class NewConnectBranding(TypedDict):
    """
    A branding to set. Texts without a visible character are the same as none.
    """

    accent_color: NotRequired[str | None]
    """
    Color of buttons, `#rrggbb`. Their text is black or white, and links and outlines take the color as far as
    they are readable.
    """
    imprint_url: NotRequired[str | None]
    """
    https URL of your imprint, linked below each page.
    """
    logo_url: NotRequired[str | None]
    """
    https URL of your logo, shown in place of the name, 48 pixels high.
    """
    name: NotRequired[str | None]
    """
    Name of your product, shown above each page and as the one that asks for the access; the organization's name by
    default.
    """
    pages: NotRequired[NewConnectPages | None]
    """
    Texts of the pages.
    """
    support_url: NotRequired[str | None]
    """
    https URL of a page with help, linked below each page.
    """


class NewConnectFormTexts(TypedDict):
    """
    Texts to set for a page with a button.
    """

    button: NotRequired[str | None]
    """
    Words on the button.
    """
    description: NotRequired[str | None]
    """
    Text below the heading.
    """
    heading: NotRequired[str | None]
    """
    Heading.
    """


class NewConnectPages(TypedDict):
    """
    Texts to set, by page.
    """

    begin: NotRequired[NewConnectFormTexts | None]
    """
    The page on which a `hosted` login begins. It also says who asks for the access and for which tenant, and warns
    of links that somebody else sent.
    """
    choice: NotRequired[NewConnectFormTexts | None]
    """
    The page on which accounts are selected.
    """
    confirm: NotRequired[NewConnectTexts | None]
    """
    The page of a login with `confirm`, whose accounts are selected on your own page.
    """
    expired: NotRequired[NewConnectTexts | None]
    """
    The page of a login or a selection that took too long.
    """
    failure: NotRequired[NewConnectTexts | None]
    """
    The page after a login that failed. It also says what went wrong; the description follows that.
    """
    success: NotRequired[NewConnectTexts | None]
    """
    The page after a login that connected accounts, which are listed.
    """


class NewConnectTexts(TypedDict):
    """
    Texts to set for a page.
    """

    description: NotRequired[str | None]
    """
    Text on the page.
    """
    heading: NotRequired[str | None]
    """
    Heading.
    """


class NewContainer(TypedDict):
    """
    A text with media: the main post or a reply.
    """

    content: str
    """
    Text; may be empty if there are media.
    """
    media: NotRequired[list[NewContainerMedia] | None]
    """
    Media published with the text, in order.
    """


class NewContainerMedia(TypedDict):
    """
    A media asset of a container: one that exists, by its id, or a file to fetch, by its address.
    """

    alt_text: NotRequired[str | None]
    """
    Alt text.
    """
    id: NotRequired[str | None]
    """
    Id of a media asset.
    """
    url: NotRequired[str | None]
    """
    `https` URL on the public internet, of a file that becomes a media asset of its own. Targets wait until it has
    been fetched.
    """


class NewImport(TypedDict):
    """
    An import to start.
    """

    from_date: NotRequired[str | None]
    """
    Skip posts published before this time, or before this date in UTC.
    """
    limit: NotRequired[int | None]
    """
    Maximum number of posts to read, newest first, including skipped ones. 100 by default.
    """
    to_date: NotRequired[str | None]
    """
    Skip posts published at or after this time, or on this date in UTC or later.
    """


class NewKey(TypedDict):
    """
    An API key to create.
    """

    account_ids: NotRequired[list[str] | None]
    """
    Limits the key to these accounts.
    """
    expires_at: NotRequired[str | None]
    """
    Expiry time. Without it the key does not expire.
    """
    mode: NotRequired[Mode | None]
    """
    Mode of the data that the key can access; the calling key's mode by default.
    """
    name: str
    """
    Display name.
    """
    profile_id: NotRequired[str | None]
    """
    Limits the key to this profile.
    """
    scopes: list[Scope]
    """
    Scopes to grant; `*` grants all.
    """
    tenant_id: NotRequired[str | None]
    """
    Limits the key to this end tenant. At most one of `tenant_id`, `profile_id` and `account_ids`.
    """


class NewMediaImport(TypedDict):
    """
    A file to fetch.
    """

    alt_text: NotRequired[str | None]
    """
    Alt text.
    """
    url: str
    """
    `https` URL on the public internet.
    """


class NewPost(TypedDict):
    """
    A post to create, with either `content` or `containers`. Platform settings are under `config` or in a
    top-level member named after the platform; `config` takes precedence.
    """

    accounts: NotRequired[list[str] | None]
    """
    Accounts to publish to: ids, usernames or platform-side ids. Required, except with `reply_to`.
    """
    bluesky: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    config: NotRequired[PlatformConfig | None]
    """
    Settings by platform.
    """
    containers: NotRequired[list[NewContainer] | None]
    """
    The main post, its first comment and further replies, in order. A platform that supports fewer replies
    publishes as many as it can; the target's `error_message` mentions omitted ones.
    """
    content: NotRequired[str | None]
    """
    Text of a post with a single container.
    """
    external_ref: NotRequired[str | None]
    """
    Idempotency key; takes precedence over the header `Idempotency-Key`.
    """
    facebook: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    google_business: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    instagram: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    is_draft: NotRequired[bool | None]
    """
    Keep the post as a draft until it is released. Platform limits are checked on release.
    """
    linkedin: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    metadata: NotRequired[dict[str, Any] | None]
    """
    Your own data on the post: up to 50 texts of at most 500 characters, by keys of 1 to 40 of the characters
    `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`. It is returned with the post and published nowhere.
    """
    pinterest: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    queue_timezone: NotRequired[str | None]
    """
    The IANA time zone that the slots are read in; `UTC` by default.
    """
    queued_from_account: NotRequired[str | None]
    """
    Publish at the next open posting slot of this account, which must be one of `accounts`.
    """
    reddit: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    reply_to: NotRequired[str | None]
    """
    Id of a post to reply to: on each account, this one is published below the last part of that one's thread, or as
    a comment on platforms that have no threads, where it has one container. `accounts` defaults to the accounts on
    which that post is live or still to be published; each must be one of its accounts. Targets wait until it is
    live, and end `dead` if it has failed, was deleted or was unpublished by then. Settings for a post of its own are
    not used, and refused where the public would be told or shown something else without them.
    """
    scheduled_at: NotRequired[str | None]
    """
    Time to publish, in ISO 8601, UTC without an offset; immediately by default.
    """
    threads: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    tiktok: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    x: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    youtube: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """


class NewPosts(TypedDict):
    """
    Posts to create.
    """

    posts: list[NewPost]
    """
    The posts, each as for creating a single post.
    """


class NewProfile(TypedDict):
    """
    A profile to create.
    """

    default_config: NotRequired[PlatformDefaults | None]
    """
    Default settings by platform for posts to the profile's accounts. A post's own settings override them,
    key by key. Each account of a post gets those of its own profile; a reply those that concern replies. They are
    copied when a post is created: later changes of the profile do not affect it.
    """
    description: NotRequired[str | None]
    """
    Description.
    """
    name: str
    """
    Display name.
    """
    social_account_ids: NotRequired[list[str] | None]
    """
    Ids of the profile's accounts.
    """
    tenant_id: NotRequired[str | None]
    """
    End tenant that it belongs to.
    """
    timezone: NotRequired[str | None]
    """
    IANA time zone; `UTC` by default.
    """


class NewSlotSet(TypedDict):
    """
    Posting slots to set.
    """

    slots: list[Slot]
    """
    The slots; replaces all existing ones.
    """
    social_account_id: str | None
    """
    Account id; null for the organization. Required, so that a misspelled member does not replace the
    organization's slots.
    """


class NewSocialNetwork(TypedDict):
    """
    An OAuth app to register.
    """

    client_id: NotRequired[str | None]
    """
    Client id.
    """
    client_secret: NotRequired[str | None]
    """
    Client secret. Never shown; if not sent, the stored one is kept.
    """
    display_name: NotRequired[str | None]
    """
    Display label.
    """
    extra_config: NotRequired[dict[str, Any] | None]
    """
    Additional configuration; members that are not listed here are kept and ignored. `redirect_uris`, an array
    of strings, lists the URIs that users may be redirected to after connecting; without it any https
    or loopback URI is allowed. An app's own scheme (`com.example.app:/connected`) must be listed. `preset` names the scopes to request: for LinkedIn `self_service` (the default),
    `community_management`, `community_management_feed` or `advertising`, after the app's products; for
    Facebook, Instagram, Reddit, Threads, TikTok and YouTube `publishing` for the scopes that publishing
    needs and no others.
    `authorize_parameters`, an object of strings, is added to authorization URLs, for example `config_id` of
    Facebook Login for Business, which takes the scopes' place. `access` is `trial` for a Pinterest app with
    trial access, which publishes to Pinterest's API sandbox, and otherwise `full`, the default.
    """
    is_enabled: NotRequired[bool | None]
    """
    True, the default, to let accounts be connected through the app.
    """
    platform: Platform
    """
    Platform id.
    """
    redirect_uri: NotRequired[str | None]
    """
    Redirect URI registered with the platform; this service's callback by default. Must be `https`; in
    test mode `http` to localhost is allowed too.
    """
    scopes: NotRequired[list[str] | None]
    """
    OAuth scopes to request. By default those of `extra_config.preset`, or those that most apps of the
    platform have. Publishing needs some of them; a feature whose scopes are missing is off
    (`unavailable` of the account).
    """


class NewTeamMember(TypedDict):
    """
    A person to invite.
    """

    email: str
    """
    E-mail address, compared without case.
    """
    role: TeamRole
    """
    Role.
    """


class NewUpload(TypedDict):
    """
    An upload to create.
    """

    alt_text: NotRequired[str | None]
    """
    Alt text.
    """
    content_type: NotRequired[str | None]
    """
    Declared content type, a hint: a file of another kind, such as a video declared as a picture, is rejected; within
    a kind the type of the bytes is stored. Not needed.
    """
    filename: str
    """
    File name.
    """
    sha256: NotRequired[str | None]
    """
    Declared SHA-256, in hex.
    """
    size: NotRequired[int | None]
    """
    Declared size in bytes. Required on a plan that limits the storage, where files are uploaded to a bucket.
    """


class NewWebhook(TypedDict):
    """
    A webhook endpoint to register.
    """

    description: NotRequired[str | None]
    """
    Display label.
    """
    events: list[EventName]
    """
    Subscribed events; `*` for all.
    """
    signing_secret: NotRequired[str | None]
    """
    Secret that signs deliveries; generated by default. Anybody who has a delivery can try out secrets, so take a
    random one.
    """
    url: str
    """
    URL that events are sent to.
    """


class NewWebhookReplay(TypedDict):
    """
    Events to deliver again.
    """

    include: NotRequired[WebhookReplayInclude | None]
    """
    Deliveries to repeat; `failed` by default.
    """
    since: str
    """
    Time of the first event.
    """
    until: NotRequired[str | None]
    """
    Time before which the events happened; now by default. Of `all`, only what was delivered before is repeated.
    """


class Overrides(TypedDict):
    """
    Overrides of the post's content, media and time, for a platform or for one account.
    """

    containers: NotRequired[list[NewContainer] | None]
    """
    The main post and its replies, in order; replaces all containers and their media.
    """
    content: NotRequired[str | None]
    """
    Text of the main container; replies stay.
    """
    media: NotRequired[list[NewContainerMedia] | None]
    """
    Media of the main container, in order; an empty list for none.
    """
    scheduled_at: NotRequired[str | None]
    """
    Time to publish, in ISO 8601, UTC without an offset; not before the post's.
    """


class BlueskyAccountConfig(BlueskySettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class BlueskyConfig(BlueskySettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class FacebookAccountConfig(FacebookSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class FacebookConfig(FacebookSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class GoogleBusinessAccountConfig(GoogleBusinessSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class GoogleBusinessConfig(GoogleBusinessSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class InstagramAccountConfig(InstagramSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class InstagramConfig(InstagramSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class LinkedinAccountConfig(LinkedinSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class LinkedinConfig(LinkedinSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class PendingChoice(TypedDict):
    """
    A selection of accounts.
    """

    page_ids: list[str]
    """
    Ids of the offers to connect.
    """


class PinterestSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    ai_disclosures: NotRequired[list[Literal["AI_MODIFIED", "SYNTHETIC_PERFORMER"]] | None]
    """
    Declarations of the pin about AI in it, which Pinterest shows with the pin. Only for posts of kind image, images, video; refused for others.
    """
    board_id: NotRequired[str | None]
    """
    Id of the board to save the pin to. Defaults to the account's only board.
    """
    board_section_id: NotRequired[str | None]
    """
    Id of the board's section to save the pin to.
    """
    carousel_slots: NotRequired[list[PinterestSettingsCarouselSlot] | None]
    """
    Titles, descriptions and links of several pictures, in the order of the pictures. A pin of one picture has its own. Only for posts of kind images; not used for others.
    """
    cover_image_key_frame_time: NotRequired[int | None]
    """
    Second of a video to use as its cover, if no image is beside the video. Defaults to 0. Only for posts of kind video; not used for others.
    """
    cover_image_url: NotRequired[str | None]
    """
    URL of a video's cover image, if no image is beside the video. Not together with cover_image_key_frame_time. Only for posts of kind video; not used for others.
    """
    dominant_color: NotRequired[str | None]
    """
    Color to show until the image has loaded.
    """
    fit: NotRequired[Literal["crop", "pad"] | None]
    """
    How several pictures of different shapes get the first one's size: `crop` keeps the middle of each, `pad` lays it on a white ground. Without, they are refused. Only for posts of kind images; not used for others.
    """
    link: NotRequired[str | None]
    """
    URL that the pin links to.
    """
    title: NotRequired[str | None]
    """
    Title of the pin.
    """


class PinterestAccountConfig(PinterestSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class PinterestConfig(PinterestSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class PinterestSettingsCarouselSlot(TypedDict):
    """
    Properties of one of several pictures.
    """

    description: NotRequired[str | None]
    link: NotRequired[str | None]
    title: NotRequired[str | None]


Platform: TypeAlias = Literal[
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


class PlatformConfig(TypedDict, closed=True):
    """
    Settings by platform
    """

    bluesky: NotRequired[BlueskyConfig | None]
    facebook: NotRequired[FacebookConfig | None]
    google_business: NotRequired[GoogleBusinessConfig | None]
    instagram: NotRequired[InstagramConfig | None]
    linkedin: NotRequired[LinkedinConfig | None]
    pinterest: NotRequired[PinterestConfig | None]
    reddit: NotRequired[RedditConfig | None]
    threads: NotRequired[ThreadsConfig | None]
    tiktok: NotRequired[TiktokConfig | None]
    x: NotRequired[XConfig | None]
    youtube: NotRequired[YoutubeConfig | None]


class PlatformDefaults(TypedDict, closed=True):
    """
    Settings by platform
    """

    bluesky: NotRequired[BlueskySettings | None]
    facebook: NotRequired[FacebookSettings | None]
    google_business: NotRequired[GoogleBusinessSettings | None]
    instagram: NotRequired[InstagramSettings | None]
    linkedin: NotRequired[LinkedinSettings | None]
    pinterest: NotRequired[PinterestSettings | None]
    reddit: NotRequired[RedditSettings | None]
    threads: NotRequired[ThreadsSettings | None]
    tiktok: NotRequired[TiktokSettings | None]
    x: NotRequired[XSettings | None]
    youtube: NotRequired[YoutubeSettings | None]


class PostProposal(TypedDict):
    """
    A post to validate: the body of a creation, and whether platforms are asked.
    """

    accounts: NotRequired[list[str] | None]
    """
    Accounts to publish to: ids, usernames or platform-side ids. Required, except with `reply_to`.
    """
    bluesky: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    config: NotRequired[PlatformConfig | None]
    """
    Settings by platform.
    """
    containers: NotRequired[list[NewContainer] | None]
    """
    The main post, its first comment and further replies, in order. A platform that supports fewer replies
    publishes as many as it can; the target's `error_message` mentions omitted ones.
    """
    content: NotRequired[str | None]
    """
    Text of a post with a single container.
    """
    external_ref: NotRequired[str | None]
    """
    Idempotency key; takes precedence over the header `Idempotency-Key`.
    """
    facebook: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    google_business: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    instagram: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    is_draft: NotRequired[bool | None]
    """
    Keep the post as a draft until it is released. Platform limits are checked on release.
    """
    linkedin: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    look_up: NotRequired[bool | None]
    """
    Ask the platforms for what only they know, such as whether a board, a flair or a quoted post exists.
    """
    metadata: NotRequired[dict[str, Any] | None]
    """
    Your own data on the post: up to 50 texts of at most 500 characters, by keys of 1 to 40 of the characters
    `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`. It is returned with the post and published nowhere.
    """
    pinterest: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    queue_timezone: NotRequired[str | None]
    """
    The IANA time zone that the slots are read in; `UTC` by default.
    """
    queued_from_account: NotRequired[str | None]
    """
    Publish at the next open posting slot of this account, which must be one of `accounts`.
    """
    reddit: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    reply_to: NotRequired[str | None]
    """
    Id of a post to reply to: on each account, this one is published below the last part of that one's thread, or as
    a comment on platforms that have no threads, where it has one container. `accounts` defaults to the accounts on
    which that post is live or still to be published; each must be one of its accounts. Targets wait until it is
    live, and end `dead` if it has failed, was deleted or was unpublished by then. Settings for a post of its own are
    not used, and refused where the public would be told or shown something else without them.
    """
    scheduled_at: NotRequired[str | None]
    """
    Time to publish, in ISO 8601, UTC without an offset; immediately by default.
    """
    threads: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    tiktok: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    x: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """
    youtube: NotRequired[dict[str, Any] | None]
    """
    Settings of this platform; `GET /social-accounts/{id}/capabilities` has their schema
    """


PostStatus: TypeAlias = Literal[
    "draft", "scheduled", "queued", "publishing", "published", "partial", "failed", "canceled"
]


class ProfilePatch(TypedDict):
    """
    Changes to a profile.
    """

    default_config: NotRequired[PlatformDefaults]
    """
    Default settings by platform; replaces all of them.
    """
    description: NotRequired[str | None]
    """
    Description.
    """
    name: NotRequired[str]
    """
    Display name.
    """
    social_account_ids: NotRequired[list[str]]
    """
    Ids of the profile's accounts; replaces the list.
    """
    tenant_id: NotRequired[str | None]
    """
    End tenant that it belongs to.
    """
    timezone: NotRequired[str]
    """
    IANA time zone.
    """


class RedditSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    captions: NotRequired[list[str] | None]
    """
    Captions of a gallery's images, in order. Only for posts of kind gallery; not used for others.
    """
    crosspost: NotRequired[str | None]
    """
    Id or URL of a post on Reddit to crosspost into the subreddit. The crosspost has a title, and no text of its own. Not together with media, url, poll. Only for posts of kind crosspost; not used for others.
    """
    crosspost_to: NotRequired[list[str] | None]
    """
    Further subreddits that the post is crossposted to, with the same title, once it is live. What one of them refuses is told in the post's timeline. A crosspost of another post is crossposted as that one is.
    """
    flair: NotRequired[str | None]
    """
    Id or text of the post's flair; options/flairs lists those of a subreddit.
    """
    flair_text: NotRequired[str | None]
    """
    Text of a flair that the author may edit. Only together with flair.
    """
    kind: NotRequired[Literal["self", "link", "crosspost", "image", "gallery", "poll", "video", "videogif"] | None]
    """
    Kind of post. Defaults to what media and url imply. A videogif is a video without sound that repeats.
    """
    nsfw: NotRequired[bool | None]
    """
    Marks the post as for adults only.
    """
    poll: NotRequired[RedditSettingsPoll | None]
    """
    A poll, for a post without media. Not together with media, url. Only for posts of kind poll; not used for others.
    """
    resubmit: NotRequired[bool | None]
    """
    Allows a link that the subreddit has already. Only for posts of kind link; not used for others.
    """
    sendreplies: NotRequired[bool | None]
    """
    Notifies the author of comments.
    """
    spoiler: NotRequired[bool | None]
    """
    Marks the post as a spoiler.
    """
    subreddit: NotRequired[str | None]
    """
    Name of the subreddit; options/subreddits lists them. Defaults to the account's own profile.
    """
    text_format: NotRequired[Literal["plain", "markdown"] | None]
    """
    Format of the text, and of comments. `plain` shows a text as it is written; `markdown` lets Reddit read its Markdown, where single line breaks are none and `#` begins a heading. The title is plain in both.
    """
    title: NotRequired[str | None]
    """
    Title of the post. Defaults to the text's first line, which then is not repeated below, or to the file name.
    """
    url: NotRequired[str | None]
    """
    URL of a link post. Defaults to the first link of the text. Only for posts of kind link; not used for others.
    """


class RedditAccountConfig(RedditSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class RedditConfig(RedditSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class RedditSettingsPoll(TypedDict):
    """
    A poll, for a post without media. Not together with media, url. Only for posts of kind poll; not used for others.
    """

    duration_days: NotRequired[int | None]
    """
    Time to vote, in days; 3 without it.
    """
    options: list[str]


class RetryPost(TypedDict):
    """
    Which targets to retry.
    """

    targets: NotRequired[list[str] | None]
    """
    Ids of targets; those of them are retried that are `dead`, or `published` and `missing` a part that failed. All of
    the post's by default.
    """


class Rotation(TypedDict):
    """
    Options for rotating a key.
    """

    grace_seconds: NotRequired[int | None]
    """
    Seconds for which the old key stays valid.
    """


Scope: TypeAlias = Literal[
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


class Slot(TypedDict):
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


class SocialAccountPatch(TypedDict):
    """
    Changes to an account.
    """

    display_name: NotRequired[str]
    """
    Display name; reconnecting the account keeps it.
    """
    profile_id: NotRequired[str | None]
    """
    Id of the account's profile.
    """
    tenant_id: NotRequired[str | None]
    """
    End tenant that it belongs to.
    """


class SocialNetworkPatch(TypedDict):
    """
    Changes to an OAuth app.
    """

    client_id: NotRequired[str | None]
    """
    Client id.
    """
    client_secret: NotRequired[str | None]
    """
    Client secret. Never shown.
    """
    display_name: NotRequired[str | None]
    """
    Display label.
    """
    extra_config: NotRequired[dict[str, Any]]
    """
    Additional configuration; replaces the stored object.
    """
    is_enabled: NotRequired[bool]
    """
    True if accounts can be connected through the app.
    """
    redirect_uri: NotRequired[str | None]
    """
    Redirect URI registered with the platform; null for this service's callback.
    """
    scopes: NotRequired[list[str]]
    """
    OAuth scopes to request; empty for the default ones.
    """


class TeamMemberPatch(TypedDict):
    """
    A change of a team member.
    """

    role: TeamRole
    """
    Role.
    """


TeamRole: TypeAlias = Literal["owner", "admin", "publisher", "viewer"]


class ThreadsSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    allowlisted_country_codes: NotRequired[list[str] | None]
    """
    Codes of the only countries in which the post is shown.
    """
    crossreshare_to_ig: NotRequired[bool | None]
    """
    Also shares the post to the Instagram story. Needs the permission `threads_share_to_instagram`.
    """
    enable_reply_approvals: NotRequired[bool | None]
    """
    Shows replies only after approval.
    """
    fit: NotRequired[Literal["crop", "pad"] | None]
    """
    How a picture that is more than ten times as wide as high, or as high as wide, is made to fit: `crop` keeps its middle, `pad` lays it on a white ground. Without, it is refused.
    """
    gif_attachment: NotRequired[ThreadsSettingsGifAttachment | None]
    """
    A GIF of a provider's collection. Not together with media.
    """
    is_ghost_post: NotRequired[bool | None]
    """
    Makes the post disappear after 24 hours. Such a post has a text, with spoilers, and nothing else. Not together with media, poll_attachment, gif_attachment, text_attachment, link_attachment, topic_tag, quote_post_id, reply_control, enable_reply_approvals, location_id, crossreshare_to_ig. Refused for a reply, which does not use it.
    """
    is_spoiler_media: NotRequired[bool | None]
    """
    Marks the media as a spoiler. Only for posts of kind image, images, video, gif; not used for others.
    """
    link_attachment: NotRequired[str | None]
    """
    The link to show as a preview. Not together with media, poll_attachment, gif_attachment.
    """
    location_id: NotRequired[str | None]
    """
    Id of the place to tag. Needs the permission `threads_location_tagging`.
    """
    poll_attachment: NotRequired[ThreadsSettingsPollAttachment | None]
    """
    A poll of two to four options. Not together with media, gif_attachment.
    """
    quote_post_id: NotRequired[str | None]
    """
    The post to quote.
    """
    reply_control: NotRequired[
        Literal["everyone", "accounts_you_follow", "mentioned_only", "parent_post_author_only", "followers_only"] | None
    ]
    """
    Who can reply.
    """
    text_attachment: NotRequired[ThreadsSettingsTextAttachment | None]
    """
    A longer text below the post. Not together with media, poll_attachment.
    """
    text_entities: NotRequired[list[dict[str, Any]] | None]
    """
    Parts of the text that are spoilers.
    """
    topic_tag: NotRequired[str | None]
    """
    The post's topic, without #. Defaults to the text's first hashtag.
    """


class ThreadsAccountConfig(ThreadsSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class ThreadsConfig(ThreadsSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class ThreadsSettingsGifAttachment(TypedDict):
    """
    A GIF of a provider's collection. Not together with media.
    """

    gif_id: str
    provider: NotRequired[Literal["GIPHY"] | None]


class ThreadsSettingsPollAttachment(TypedDict):
    """
    A poll of two to four options. Not together with media, gif_attachment.
    """

    option_a: str
    option_b: str
    option_c: NotRequired[str | None]
    option_d: NotRequired[str | None]


class ThreadsSettingsTextAttachment(TypedDict):
    """
    A longer text below the post. Not together with media, poll_attachment.
    """

    link_attachment_url: NotRequired[str | None]
    plaintext: str
    text_with_styling_info: NotRequired[list[dict[str, Any]] | None]


class TiktokSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    auto_add_music: NotRequired[bool | None]
    """
    Lets TikTok add music to photos. Only for posts of kind photos; not used for others.
    """
    brand_content_toggle: NotRequired[bool | None]
    """
    Labels the post as a paid partnership. Only for posts of kind video, photos; refused for others.
    """
    brand_organic_toggle: NotRequired[bool | None]
    """
    Labels the post as promoting the creator's own business. Only for posts of kind video, photos; refused for others.
    """
    disable_comment: NotRequired[bool | None]
    """
    Disables comments. Only for posts of kind video, photos; not used for others.
    """
    disable_duet: NotRequired[bool | None]
    """
    Disables duets with the video. Only for posts of kind video; not used for others.
    """
    disable_stitch: NotRequired[bool | None]
    """
    Disables stitches of the video. Only for posts of kind video; not used for others.
    """
    is_aigc: NotRequired[bool | None]
    """
    Labels the post as made with AI. Only for posts of kind video, photos, inbox photos; refused for others.
    """
    photo_cover_index: NotRequired[int | None]
    """
    Index of the photo to use as the cover, from 0. Only for posts of kind photos, inbox photos; not used for others.
    """
    post_mode: NotRequired[Literal["DIRECT_POST", "MEDIA_UPLOAD"] | None]
    """
    DIRECT_POST publishes the post. MEDIA_UPLOAD sends it to the inbox of TikTok's app, where the creator finishes and publishes it; this needs the scope video.upload. The inbox takes photos with their text, title, photo_cover_index and is_aigc, and a video with nothing else.
    """
    privacy_level: NotRequired[
        Literal["PUBLIC_TO_EVERYONE", "FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"] | None
    ]
    """
    Who can see the post; options/privacy_levels lists the levels that the creator may choose. TikTok requires that the creator chooses one. Defaults to the widest of them, and to SELF_ONLY for an app that TikTok has not audited. Only for posts of kind video, photos; refused for others.
    """
    title: NotRequired[str | None]
    """
    Title of a photo post; the text is its description. Only for posts of kind photos, inbox photos; not used for others.
    """
    video_cover_timestamp_ms: NotRequired[int | None]
    """
    Moment of the video to use as its cover, in milliseconds. TikTok takes the first frame instead of one that the video does not have. Only for posts of kind video; not used for others.
    """


class TiktokAccountConfig(TiktokSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class TiktokConfig(TiktokSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class WebhookPatch(TypedDict):
    """
    Changes to a webhook endpoint. Fields that are not sent keep their value.
    """

    description: NotRequired[str | None]
    """
    Display label; null removes it.
    """
    events: NotRequired[list[EventName]]
    """
    Subscribed events; `*` for all.
    """
    is_active: NotRequired[bool]
    """
    True if events are delivered.
    """
    url: NotRequired[str]
    """
    URL that events are sent to.
    """


WebhookReplayInclude: TypeAlias = Literal["failed", "all"]
"""
Deliveries that a replay repeats.
"""


Weekday: TypeAlias = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class XSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    captions: NotRequired[list[XSettingsCaption] | None]
    """
    Captions of the first post's video, one file for each language. Only for posts of kind video; not used for others.
    """
    community_id: NotRequired[str | None]
    """
    The community to post to. Refused for a reply, which does not use it.
    """
    made_with_ai: NotRequired[bool | None]
    """
    Labels the media as made with AI.
    """
    paid_partnership: NotRequired[bool | None]
    """
    Labels the post as a paid partnership.
    """
    poll: NotRequired[XSettingsPoll | None]
    """
    Not together with media.
    """
    quote_tweet_id: NotRequired[str | None]
    """
    The post to quote. Not together with media, poll.
    """
    reply_settings: NotRequired[Literal["everyone", "following", "mentionedUsers", "subscribers", "verified"] | None]
    """
    Who can reply.
    """
    sensitive_media_warning: NotRequired[list[Literal["adult_content", "graphic_violence", "other"]] | None]
    """
    Content of the media. X covers them with a warning, in each post of a thread. Only for posts of kind image, images, gif, video; not used for others.
    """
    share_with_followers: NotRequired[bool | None]
    """
    Also shows a community post to the author's followers. Only together with community_id.
    """
    tagged_users: NotRequired[list[str] | None]
    """
    People to tag in the first post's media: usernames, or ids. A username of digits only begins with @. X leaves out who does not let others tag them. Only for posts of kind image, images, gif, video; not used for others.
    """


class XAccountConfig(XSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class XConfig(XSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class XSettingsCaption(TypedDict):
    content: str
    """
    The captions as the text of a SubRip (.srt), SubViewer (.sbv) or WebVTT (.vtt) file.
    """
    language: str
    """
    Language of the captions, in two letters (ISO 639-1).
    """
    name: NotRequired[str | None]
    """
    Name of the language, which viewers see. Defaults to its two letters.
    """


class XSettingsPoll(TypedDict):
    """
    Not together with media.
    """

    duration_minutes: int
    options: list[str]


class YoutubeSettings(TypedDict):
    """
    Settings of this platform; other members are stored and ignored
    """

    captions: NotRequired[list[YoutubeSettingsCaption] | None]
    """
    Caption tracks, which are uploaded once the video is live. Each costs 400 units of the project's quota.
    """
    category: NotRequired[str | None]
    """
    Id of the category; options/categories lists them.
    """
    containsSyntheticMedia: NotRequired[bool | None]
    """
    Declares realistic content that was made or changed with AI. Refused for a reply, which does not use it.
    """
    defaultAudioLanguage: NotRequired[str | None]
    """
    Language spoken in the video (BCP 47).
    """
    defaultLanguage: NotRequired[str | None]
    """
    Language of title and text (BCP 47).
    """
    embeddable: NotRequired[bool | None]
    """
    Allows other sites to embed the video.
    """
    isShort: NotRequired[bool | None]
    """
    Requires the video to be fit for a Short: square or upright, and at most three minutes long.
    """
    license: NotRequired[Literal["youtube", "creativeCommon"] | None]
    """
    License of the video.
    """
    localizations: NotRequired[list[YoutubeSettingsLocalization] | None]
    """
    Title and description in other languages, which YouTube shows to viewers of these; needs defaultLanguage.
    """
    madeForKids: NotRequired[bool | None]
    """
    Declares the video as made for children.
    """
    notifySubscribers: NotRequired[bool | None]
    """
    Notifies subscribers.
    """
    paidPromotion: NotRequired[bool | None]
    """
    Declares paid product placement, sponsorship or endorsement in the video; YouTube tells its viewers. Refused for a reply, which does not use it.
    """
    playlist: NotRequired[str | None]
    """
    Id of the playlist to add the video to; options/playlists lists them.
    """
    playlists: NotRequired[list[str] | None]
    """
    Ids of further playlists to add the video to, each once.
    """
    privacyStatus: NotRequired[Literal["public", "unlisted", "private"] | None]
    """
    Who can watch the video. Refused for a reply, which does not use it.
    """
    publicStatsViewable: NotRequired[bool | None]
    """
    Makes the video's statistics public.
    """
    publishAt: NotRequired[str | None]
    """
    Time at which YouTube makes the video public; it is private until then.
    """
    recordingDate: NotRequired[str | None]
    """
    Day on which the video was recorded, or its time.
    """
    tags: NotRequired[list[str] | None]
    """
    Keywords, with at most 500 characters together.
    """
    thumbnail: NotRequired[str | None]
    """
    Id of the container's medium to use as the thumbnail. Defaults to its image.
    """
    title: NotRequired[str | None]
    """
    Title of the video. Defaults to the text's first line, or to the file name.
    """


class YoutubeAccountConfig(YoutubeSettings, Overrides):
    """
    Settings of an account, and what replaces the post's content and time on it
    """


class YoutubeConfig(YoutubeSettings, Overrides):
    """
    Settings of this platform, and what replaces the post's content and time on it
    """

    accounts: NotRequired[dict[str, Any] | None]
    """
    The same for single accounts, by id, username or platform-side id; takes precedence
    """


class YoutubeSettingsCaption(TypedDict):
    content: str
    """
    The captions as the text of a SubRip (.srt), SubViewer (.sbv) or WebVTT (.vtt) file.
    """
    language: str
    """
    Language of the captions (BCP 47).
    """
    name: NotRequired[str | None]
    """
    Name of the track, which viewers see beside its language. Tracks in the same language need different names.
    """


class YoutubeSettingsLocalization(TypedDict):
    description: NotRequired[str | None]
    """
    Description in this language, of at most 5000 bytes.
    """
    language: str
    """
    Language of this title and description (BCP 47); not defaultLanguage.
    """
    title: str
    """
    Title in this language.
    """
