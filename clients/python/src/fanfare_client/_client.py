"""The clients."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import httpx
from typing_extensions import Self

from ._api import MAX_RETRIES, TIMEOUT, Api, AsyncApi, Settings
from ._events import AsyncEvents, Events
from ._media import AsyncMedia, Media
from ._posts import AsyncPosts, Posts
from .generated.resources import AsyncResources, Resources


class Fanfare(Resources):
    """A client of the Fanfare API. Each property has the operations of a resource.

    `timeout` is the maximum pause of one attempt in seconds, `max_retries` the number of repetitions of a request.
    `http_client` replaces the HTTP client, for example to use a proxy; close it yourself.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        headers: Mapping[str, str] | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._is_own = http_client is None
        self._http = http_client or httpx.Client()
        self._api = Api(Settings(api_key, base_url, timeout, max_retries, headers), self._http)
        self.events = Events(self._api)
        self.media = Media(self._api)
        self.posts = Posts(self._api)

    def close(self) -> None:
        """Closes the connections."""
        if self._is_own:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncFanfare(AsyncResources):
    """A client of the Fanfare API for asyncio; otherwise as `Fanfare`."""

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        headers: Mapping[str, str] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._is_own = http_client is None
        self._http = http_client or httpx.AsyncClient()
        self._api = AsyncApi(Settings(api_key, base_url, timeout, max_retries, headers), self._http)
        self.events = AsyncEvents(self._api)
        self.media = AsyncMedia(self._api)
        self.posts = AsyncPosts(self._api)

    async def close(self) -> None:
        """Closes the connections."""
        if self._is_own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
