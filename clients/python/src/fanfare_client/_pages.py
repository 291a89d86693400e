"""Lists that are fetched page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import Any, Generic, TypeVar

from ._api import Api, AsyncApi, Paging
from ._model import Model

M = TypeVar("M", bound=Model)


class Position(Model):
    """Position of a page that was requested with an offset."""

    offset: int
    total: int


class Body(Model):
    """The body of a page."""

    data: list[Any]
    next_cursor: str | None = None
    pagination: Position | None = None

    def next_query(self, paging: Paging) -> dict[str, Any] | None:
        """Returns the parameters of the next page; None on the last one."""
        if paging == "cursor" and self.next_cursor:
            return {"cursor": self.next_cursor}
        # The cursor of events is never null; an empty page is the last one for now.
        if paging == "after" and self.data:
            return {"after": self.next_cursor}
        if paging == "offset" and self.pagination and self.data:
            offset = self.pagination.offset + len(self.data)
            return {"offset": offset} if offset < self.pagination.total else None
        return None


class Page(Generic[M]):
    """A page of a list. Iterating over it also fetches the following pages."""

    def __init__(self, data: list[M], next_cursor: str | None, following: _Following[M] | None) -> None:
        self.data = data
        """The items of this page."""
        self.next_cursor = next_cursor
        """Cursor of the next page; None on the last page, or if the list has no cursors."""
        self._following = following

    def has_next_page(self) -> bool:
        """Returns True if there is a further page."""
        return self._following is not None

    def next_page(self) -> Page[M] | None:
        """Fetches the next page; None on the last one."""
        return self._following.fetch() if self._following else None

    def __iter__(self) -> Iterator[M]:
        page: Page[M] | None = self
        while page is not None:
            yield from page.data
            page = page.next_page()


class _Following(Generic[M]):
    def __init__(self, api: Api, method: str, path: str, query: Mapping[str, Any], arguments: dict[str, Any]) -> None:
        self._api, self._method, self._path, self._query, self._arguments = api, method, path, query, arguments

    def fetch(self) -> Page[M]:
        return fetch(self._api, self._method, self._path, query=self._query, **self._arguments)


def fetch(
    api: Api, method: str, path: str, *, item: type[M], paging: Paging, query: Mapping[str, Any], timeout: float | None
) -> Page[M]:
    """Fetches a page."""
    body = api.call(method, path, model=Body, query=query, timeout=timeout)
    following: _Following[M] | None = None
    if further := body.next_query(paging):
        arguments = {"item": item, "paging": paging, "timeout": timeout}
        following = _Following(api, method, path, {**query, **further}, arguments)
    return Page(items(item, body), body.next_cursor, following)


class AsyncPage(Generic[M]):
    """A page of a list. Iterating over it also fetches the following pages."""

    def __init__(self, data: list[M], next_cursor: str | None, following: AsyncPaginator[M] | None) -> None:
        self.data = data
        """The items of this page."""
        self.next_cursor = next_cursor
        """Cursor of the next page; None on the last page, or if the list has no cursors."""
        self._following = following

    def has_next_page(self) -> bool:
        """Returns True if there is a further page."""
        return self._following is not None

    async def next_page(self) -> AsyncPage[M] | None:
        """Fetches the next page; None on the last one."""
        return await self._following if self._following else None

    async def __aiter__(self) -> AsyncIterator[M]:
        page: AsyncPage[M] | None = self
        while page is not None:
            for item in page.data:
                yield item
            page = await page.next_page()


class AsyncPaginator(Generic[M]):
    """A list that is requested when it is awaited, which gives its first page, or iterated over."""

    def __init__(
        self, api: AsyncApi, method: str, path: str, *, item: type[M], paging: Paging, query: Mapping[str, Any],
        timeout: float | None,
    ) -> None:  # fmt: skip
        self._api, self._method, self._path, self._query = api, method, path, query
        self._item, self._paging, self._timeout = item, paging, timeout

    def __await__(self) -> Generator[Any, None, AsyncPage[M]]:
        return self._fetch().__await__()

    async def __aiter__(self) -> AsyncIterator[M]:
        async for item in await self._fetch():
            yield item

    async def _fetch(self) -> AsyncPage[M]:
        body = await self._api.call(self._method, self._path, model=Body, query=self._query, timeout=self._timeout)
        following: AsyncPaginator[M] | None = None
        if further := body.next_query(self._paging):
            following = AsyncPaginator(
                self._api, self._method, self._path, item=self._item, paging=self._paging,
                query={**self._query, **further}, timeout=self._timeout,
            )  # fmt: skip
        return AsyncPage(items(self._item, body), body.next_cursor, following)


def items(item: type[M], body: Body) -> list[M]:
    """Returns the items of a page."""
    return [item.model_validate(row) for row in body.data]
