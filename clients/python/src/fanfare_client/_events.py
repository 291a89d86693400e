"""The stream of events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from ._api import Api, AsyncApi
from ._pages import Body
from ._webhooks import parse_event
from .generated.models import Event
from .generated.params import DeliveredEvent
from .generated.resources import AsyncEventsOperations, EventsOperations, WebhookEvent

INTERVAL = 2.0
PAGE_SIZE = 100


class _Position:
    def __init__(self, after: str | None, types: Sequence[DeliveredEvent] | None, interval: float) -> None:
        self._cursor = after
        self._types = None if types is None else ",".join(types)
        self._interval = interval

    @property
    def cursor(self) -> str | None:
        """Position of the stream: every event before it was handled. Store it, and pass it as `after` to continue.

        It moves at the end of a page, so that up to 100 events are repeated after an interruption; each has its `id`
        again.
        """
        return self._cursor

    def _query(self) -> dict[str, Any]:
        return {"after": self._cursor, "types": self._types, "limit": PAGE_SIZE}


class EventStream(_Position):
    """A stream of events, oldest first, that waits for further ones."""

    def __init__(self, api: Api, after: str | None, types: Sequence[DeliveredEvent] | None, interval: float) -> None:
        super().__init__(after, types, interval)
        self._api = api

    def __iter__(self) -> Iterator[WebhookEvent | Event]:
        while True:
            page = self._api.call("GET", "/events", model=Body, query=self._query())
            for event in page.data:
                yield parse_event(event)
            self._cursor = page.next_cursor
            if not page.data:
                time.sleep(self._interval)


class AsyncEventStream(_Position):
    """A stream of events, oldest first, that waits for further ones."""

    def __init__(
        self, api: AsyncApi, after: str | None, types: Sequence[DeliveredEvent] | None, interval: float
    ) -> None:
        super().__init__(after, types, interval)
        self._api = api

    async def __aiter__(self) -> AsyncIterator[WebhookEvent | Event]:
        while True:
            page = await self._api.call("GET", "/events", model=Body, query=self._query())
            for event in page.data:
                yield parse_event(event)
            self._cursor = page.next_cursor
            if not page.data:
                await asyncio.sleep(self._interval)


class Events(EventsOperations):
    def stream(
        self, *, after: str | None = None, types: Sequence[DeliveredEvent] | None = None, interval: float = INTERVAL
    ) -> EventStream:
        """Follows the events of the organization, from the cursor `after`, or from those of 30 days ago.

        `interval` is the time between two requests while there are no events, in seconds.
        """
        return EventStream(self._api, after, types, interval)


class AsyncEvents(AsyncEventsOperations):
    def stream(
        self, *, after: str | None = None, types: Sequence[DeliveredEvent] | None = None, interval: float = INTERVAL
    ) -> AsyncEventStream:
        """Follows the events of the organization, from the cursor `after`, or from those of 30 days ago.

        `interval` is the time between two requests while there are no events, in seconds.
        """
        return AsyncEventStream(self._api, after, types, interval)
