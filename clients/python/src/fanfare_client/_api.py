"""Requests to the API: authentication, timeouts, retries and errors, the same for every operation.

A request is repeated when it was not executed (429) or when repeating it is harmless: it is safe or idempotent by its
method, or carries an idempotency key that makes the service return the first result.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

import httpx
from pydantic import ValidationError
from pydantic_core import to_json

from ._errors import FanfareConnectionError, FanfareError
from ._model import Model
from .generated.models import Problem

if TYPE_CHECKING:
    from ._pages import AsyncPaginator, Page

M = TypeVar("M", bound=Model)
Paging = Literal["cursor", "after", "offset", "none"]
"""How a list continues: with a cursor, after the last event, with an offset, or not at all."""

TIMEOUT = 60.0
MAX_RETRIES = 4
FIRST_DELAY = 0.5
"""First delay between two attempts in seconds; doubled for each further one."""
LONGEST_DELAY = 8.0
LONGEST_RETRY_AFTER = 120.0
"""A longer `Retry-After` is left to the caller."""


def new_key() -> str:
    """Returns an idempotency key."""
    return str(uuid4())


@dataclass(frozen=True)
class Request:
    """A request and how it may be repeated."""

    method: str
    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    content: Any
    is_repeatable: bool
    timeout: float


class Settings:
    """What the clients with and without asyncio have in common."""

    def __init__(
        self, api_key: str, base_url: str, timeout: float, max_retries: int, headers: Mapping[str, str] | None
    ) -> None:
        if not api_key:
            raise ValueError("api_key is missing")
        if not base_url:
            raise ValueError("base_url is missing")
        self.base_url = base_url.rstrip("/")
        self.timeout = timeout
        self.max_retries = max_retries
        self._headers = {**(headers or {}), "Authorization": f"Bearer {api_key}", "Accept": "application/json"}

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        key: str | None,
        is_repeatable: bool,
        timeout: float | None,
    ) -> Request:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        return Request(
            method=method,
            url=self.base_url + path,
            headers=headers,
            query=encoded(query or {}),
            content=None if body is None else to_json(body),
            is_repeatable=is_repeatable or method != "POST" or key is not None,
            timeout=timeout or self.timeout,
        )

    def delay(self, request: Request, error: FanfareError, attempt: int) -> float:
        """Returns the delay before the next attempt in seconds; raises the error if there is none."""
        if attempt >= self.max_retries or not can_repeat(error, request.is_repeatable):
            raise error
        if error.retry_after is None:
            # Between half and the whole of the delay, so that clients don't repeat at the same time.
            return min(LONGEST_DELAY, FIRST_DELAY * 2.0**attempt) * random.uniform(0.5, 1.0)
        if error.retry_after > LONGEST_RETRY_AFTER:
            raise error
        return error.retry_after


class Api:
    """Sends requests."""

    def __init__(self, settings: Settings, http: httpx.Client) -> None:
        self.settings = settings
        self.http = http

    def call(
        self,
        method: str,
        path: str,
        *,
        model: type[M],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        is_repeatable: bool = False,
        timeout: float | None = None,
    ) -> M:
        """Sends a request of an operation, and returns the body of its response."""
        request = self.settings.request(
            method, path, query=query, body=body, key=key, is_repeatable=is_repeatable, timeout=timeout
        )
        return model.model_validate_json(self.send(request).content)

    def list(
        self, method: str, path: str, *, item: type[M], paging: Paging, query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Page[M]:  # fmt: skip
        """Lists the items of an operation, page by page."""
        from ._pages import fetch

        return fetch(self, method, path, item=item, paging=paging, query=query or {}, timeout=timeout)

    def send(self, request: Request) -> httpx.Response:
        """Sends a request to any URL, with the client's retries; fails unless the response is successful."""
        attempt = 0
        while True:
            try:
                response = self.http.request(
                    request.method,
                    request.url,
                    params=request.query or None,
                    headers=request.headers,
                    content=replay(request.content),
                    timeout=request.timeout,
                )
                return checked(response)
            except httpx.TransportError as error:
                failure: FanfareError = disconnected(error)
                failure.__cause__ = error
            except FanfareError as error:
                failure = error
            time.sleep(self.settings.delay(request, failure, attempt))
            attempt += 1


class AsyncApi:
    """Sends requests with asyncio."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self.settings = settings
        self.http = http

    async def call(
        self,
        method: str,
        path: str,
        *,
        model: type[M],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        is_repeatable: bool = False,
        timeout: float | None = None,
    ) -> M:
        """Sends a request of an operation, and returns the body of its response."""
        request = self.settings.request(
            method, path, query=query, body=body, key=key, is_repeatable=is_repeatable, timeout=timeout
        )
        return model.model_validate_json((await self.send(request)).content)

    def list(
        self, method: str, path: str, *, item: type[M], paging: Paging, query: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> AsyncPaginator[M]:  # fmt: skip
        """Lists the items of an operation, page by page."""
        from ._pages import AsyncPaginator

        return AsyncPaginator(self, method, path, item=item, paging=paging, query=query or {}, timeout=timeout)

    async def send(self, request: Request) -> httpx.Response:
        """Sends a request to any URL, with the client's retries; fails unless the response is successful."""
        attempt = 0
        while True:
            try:
                response = await self.http.request(
                    request.method,
                    request.url,
                    params=request.query or None,
                    headers=request.headers,
                    content=replay_async(request.content),
                    timeout=request.timeout,
                )
                return checked(response)
            except httpx.TransportError as error:
                failure: FanfareError = disconnected(error)
                failure.__cause__ = error
            except FanfareError as error:
                failure = error
            await asyncio.sleep(self.settings.delay(request, failure, attempt))
            attempt += 1


def replay(content: Any) -> Any:
    """Returns the content of one attempt: a function makes it again for each."""
    return content() if callable(content) else content


def replay_async(content: Any) -> Any:
    content = replay(content)
    if content is None or isinstance(content, bytes):
        return content

    async def chunks() -> Any:
        # Reading a file blocks, so it happens in a thread.
        iterator = iter(content)
        while (chunk := await asyncio.to_thread(next, iterator, None)) is not None:
            yield chunk

    return chunks()


def encoded(query: Mapping[str, Any]) -> dict[str, str]:
    """Returns query parameters as texts; a mapping becomes `name[key]=value`."""
    pairs: dict[str, str] = {}
    for name, value in query.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            pairs.update({f"{name}[{key}]": str(entry) for key, entry in value.items()})
        elif isinstance(value, datetime):
            pairs[name] = value.isoformat()
        elif isinstance(value, bool):
            pairs[name] = str(value).lower()
        elif isinstance(value, (str, int)):
            pairs[name] = str(value)
        else:
            pairs[name] = ",".join(value)
    return pairs


def can_repeat(error: FanfareError, is_repeatable: bool) -> bool:
    if isinstance(error, FanfareConnectionError):
        return is_repeatable or error.was_not_sent
    if error.status == 429:
        return True
    return is_repeatable and error.status in (502, 503, 504)


def disconnected(error: httpx.TransportError) -> FanfareConnectionError:
    was_not_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
    if isinstance(error, httpx.TimeoutException):
        return FanfareConnectionError("the request timed out", code="timeout", was_not_sent=was_not_sent)
    return FanfareConnectionError(f"the request failed: {error}", code="connection_error", was_not_sent=was_not_sent)


def checked(response: httpx.Response) -> httpx.Response:
    """Returns a successful response; raises the error of any other."""
    if response.is_success:
        return response
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        # A proxy's page, for example. The status says enough.
        problem = None
    raise FanfareError(
        problem.detail if problem else f"the response has status {response.status_code}",
        status=response.status_code,
        code=problem.code if problem else "unknown",
        problem=problem,
        request_id=response.headers.get("X-Request-Id"),
        retry_after=retry_after(response.headers.get("Retry-After")),
    )


def retry_after(value: str | None) -> float | None:
    """`Retry-After` in seconds, which is a number or a date."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())
