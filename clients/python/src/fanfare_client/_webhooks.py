"""Verification of webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ._errors import WebhookVerificationError
from .generated.models import Event
from .generated.resources import EVENTS, WebhookEvent

TOLERANCE = 300.0


def verify_webhook(
    payload: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> WebhookEvent | Event:
    """Checks that a webhook was sent by Fanfare, and returns its event.

    `payload` is the raw body: parsing and printing JSON changes bytes, and with them the signature. With several
    secrets, one of them must match, so that a receiver can hold the old and the new one while a secret is rotated.
    `tolerance` is the maximum difference between the signature's time and `now`, both in seconds.

    Raises `WebhookVerificationError`; answer the request with 400 then. An event that this version of the package
    does not know is an `Event`.
    """
    body = payload.encode() if isinstance(payload, str) else payload
    found = {name.lower(): value for name, value in headers.items()}
    signature, event_id = found.get("x-fanfare-signature"), found.get("x-fanfare-event-id")
    if not signature or not event_id:
        raise WebhookVerificationError("a header of the webhook is missing", code="missing_signature")
    fields = [field.strip() for field in signature.split(",")]
    times = [field[2:] for field in fields if re.fullmatch(r"t=[0-9]{1,15}", field)]
    signatures = [field[3:] for field in fields if re.fullmatch(r"v1=[0-9a-f]{64}", field)]
    if not times or not signatures:
        raise WebhookVerificationError("the signature is malformed", code="invalid_signature")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets or not all(secrets):
        raise ValueError("the signing secret is empty")
    signed = times[0].encode() + b"." + body
    is_valid = False
    for one in secrets:
        expected = hmac.new(one.encode(), signed, hashlib.sha256).hexdigest()
        for given in signatures:
            # All are compared, each in constant time.
            is_valid |= hmac.compare_digest(expected, given)
    if not is_valid:
        raise WebhookVerificationError("the signature does not match", code="invalid_signature")
    if abs((time.time() if now is None else now) - int(times[0])) > tolerance:
        raise WebhookVerificationError("the signature is too old, or the clock is wrong", code="stale_signature")
    try:
        values = json.loads(body)
        # The header is not signed; the id in the body is.
        if values.get("id", event_id) != event_id:
            raise WebhookVerificationError("the header has another event id than the body", code="invalid_signature")
        return parse_event({**values, "id": event_id})
    except (ValueError, TypeError, AttributeError, ValidationError) as error:
        raise WebhookVerificationError("the body is no event", code="invalid_payload") from error


def parse_event(body: Mapping[str, Any]) -> WebhookEvent | Event:
    """Returns an event with the type of its name."""
    return EVENTS.get(str(body.get("event")), Event).model_validate(body)
