"""A client of the Fanfare API: publish one post to many social accounts with one call."""

from ._client import AsyncFanfare, Fanfare
from ._errors import (
    FanfareConnectionError,
    FanfareError,
    MediaFailedError,
    WaitTimeoutError,
    WebhookVerificationError,
)
from ._events import AsyncEventStream, EventStream
from ._pages import AsyncPage, AsyncPaginator, Page
from ._webhooks import verify_webhook
from .generated import models, params
from .generated.resources import WebhookEvent

__all__ = [
    "AsyncEventStream",
    "AsyncFanfare",
    "AsyncPage",
    "AsyncPaginator",
    "EventStream",
    "Fanfare",
    "FanfareConnectionError",
    "FanfareError",
    "MediaFailedError",
    "Page",
    "WaitTimeoutError",
    "WebhookEvent",
    "WebhookVerificationError",
    "models",
    "params",
    "verify_webhook",
]
