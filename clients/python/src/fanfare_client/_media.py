"""Uploads of files."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from ._api import Request
from ._errors import MediaFailedError, WaitTimeoutError
from .generated.models import Media as Asset
from .generated.models import MediaUpload
from .generated.params import NewUpload
from .generated.resources import AsyncMediaOperations, MediaOperations

Upload: TypeAlias = "str | os.PathLike[str] | bytes | BinaryIO | Iterable[bytes]"
"""What `upload` sends: the path of a file, its content, an open file, or a stream of chunks."""

WAIT_TIMEOUT = 300.0
LONGEST_WAIT = 30
"""Longest wait of one request in seconds."""
SEND_TIMEOUT = 300.0
"""Longest pause of a transfer in seconds."""
CHUNK = 256 * 1024


class _Content:
    """A file to send, and what is known of it."""

    def __init__(self, file: Upload, size: int | None) -> None:
        self.name: str | None = None
        self.size = size
        self.is_repeatable = True
        self.body: bytes | Callable[[], Iterator[bytes]] | Iterable[bytes]
        if isinstance(file, (str, os.PathLike)):
            path = Path(file)
            self.name, self.size = path.name, path.stat().st_size
            self.body = lambda: _chunks(path.open("rb"), closes=True)
        elif isinstance(file, bytes):
            self.body, self.size = file, len(file)
        elif _is_file(file):
            opened: Any = file
            self.name = Path(opened.name).name if isinstance(getattr(opened, "name", None), str) else None
            if opened.seekable():
                start = opened.tell()
                self.size = opened.seek(0, os.SEEK_END) - start

                def again() -> Iterator[bytes]:
                    opened.seek(start)
                    return _chunks(opened, closes=False)

                self.body = again
            else:
                self.body, self.is_repeatable = _chunks(opened, closes=False), False
        else:
            self.body, self.is_repeatable = file, False

    def declared(
        self, filename: str | None, content_type: str | None, alt_text: str | None, sha256: str | None
    ) -> NewUpload:
        name = filename or self.name
        if not name:
            raise ValueError("filename is missing")
        upload: NewUpload = {"filename": name}
        if self.size:
            upload["size"] = self.size
        if content_type is not None:
            upload["content_type"] = content_type
        if alt_text is not None:
            upload["alt_text"] = alt_text
        if sha256 is not None:
            upload["sha256"] = sha256
        return upload

    def request(self, upload: MediaUpload) -> Request:
        headers: Mapping[str, str] = upload.upload_headers
        if self.size is not None:
            # Storage in a bucket takes no chunked bodies.
            headers = {**headers, "Content-Length": str(self.size)}
        return Request(
            method=upload.upload_method,
            url=upload.upload_url,
            headers=headers,
            query={},
            content=self.body,
            is_repeatable=self.is_repeatable,
            timeout=SEND_TIMEOUT,
        )


def _is_file(file: object) -> bool:
    return hasattr(file, "read")


def _chunks(file: BinaryIO, *, closes: bool) -> Iterator[bytes]:
    try:
        while chunk := file.read(CHUNK):
            yield chunk
    finally:
        if closes:
            file.close()


def _wait(deadline: float) -> int:
    return min(LONGEST_WAIT, math.ceil(max(0.0, deadline - time.monotonic())))


def _is_ready(asset: Asset, deadline: float) -> bool:
    if asset.status == "failed":
        raise MediaFailedError(asset.error or "the asset failed")
    if asset.status != "ready" and time.monotonic() >= deadline:
        raise WaitTimeoutError(f"the asset {asset.id} is still {asset.status}")
    return asset.status == "ready"


class Media(MediaOperations):
    def upload(
        self,
        file: Upload,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        alt_text: str | None = None,
        sha256: str | None = None,
        size: int | None = None,
        wait_timeout: float = WAIT_TIMEOUT,
    ) -> Asset:
        """Uploads a file and waits until it can be posted.

        The file is sent again if the connection breaks, unless it is a stream. `size` is the size of a stream, which
        storage in a bucket requires. Raises `MediaFailedError` if the service rejects the file.
        """
        content = _Content(file, size)
        created = self.create_upload(**content.declared(filename, content_type, alt_text, sha256))
        self._api.send(content.request(created))
        confirmed = self.confirm(created.id)
        return confirmed if confirmed.status == "ready" else self.wait(created.id, timeout=wait_timeout)

    def wait(self, id: str, *, timeout: float = WAIT_TIMEOUT) -> Asset:
        """Waits until an asset is ready. Raises `MediaFailedError` if it can't be used."""
        deadline = time.monotonic() + timeout
        while True:
            asset = self.get(id, wait=_wait(deadline))
            if _is_ready(asset, deadline):
                return asset


class AsyncMedia(AsyncMediaOperations):
    async def upload(
        self,
        file: Upload,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        alt_text: str | None = None,
        sha256: str | None = None,
        size: int | None = None,
        wait_timeout: float = WAIT_TIMEOUT,
    ) -> Asset:
        """Uploads a file and waits until it can be posted.

        The file is sent again if the connection breaks, unless it is a stream. `size` is the size of a stream, which
        storage in a bucket requires. Raises `MediaFailedError` if the service rejects the file.
        """
        content = await asyncio.to_thread(_Content, file, size)
        created = await self.create_upload(**content.declared(filename, content_type, alt_text, sha256))
        await self._api.send(content.request(created))
        confirmed = await self.confirm(created.id)
        return confirmed if confirmed.status == "ready" else await self.wait(created.id, timeout=wait_timeout)

    async def wait(self, id: str, *, timeout: float = WAIT_TIMEOUT) -> Asset:
        """Waits until an asset is ready. Raises `MediaFailedError` if it can't be used."""
        deadline = time.monotonic() + timeout
        while True:
            asset = await self.get(id, wait=_wait(deadline))
            if _is_ready(asset, deadline):
                return asset
