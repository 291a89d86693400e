"""Errors."""

from __future__ import annotations

from typing import Literal

from .generated.models import Problem


class FanfareError(Exception):
    """A call that failed. Errors without a response are `FanfareConnectionError`."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        problem: Problem | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """Machine-readable code of the problem, for example `rate_limited`."""
        self.status = status
        """HTTP status; None without a response."""
        self.problem = problem
        """Problem document of the response. `problem.errors` names the fields that are invalid."""
        self.request_id = request_id
        """Id of the request. Quote it when asking for help."""
        self.retry_after = retry_after
        """Seconds after which the call can be repeated, if the service named them."""


class FanfareConnectionError(FanfareError):
    """No response arrived. The request may have been executed, unless `was_not_sent`."""

    def __init__(self, message: str, *, code: Literal["connection_error", "timeout"], was_not_sent: bool) -> None:
        super().__init__(message, code=code)
        self.was_not_sent = was_not_sent
        """True if no connection was made."""


class WaitTimeoutError(FanfareError):
    """The wait for a post or an asset was longer than its timeout."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="wait_timeout")


class MediaFailedError(FanfareError):
    """A media asset that can't be used; the message tells why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="media_failed")


class WebhookVerificationError(FanfareError):
    """A webhook that must not be trusted: its signature is missing, wrong or too old."""

    def __init__(
        self,
        message: str,
        *,
        code: Literal["missing_signature", "invalid_signature", "stale_signature", "invalid_payload"],
    ) -> None:
        super().__init__(message, code=code)
