"""The dev service that the tests use, and programs around it."""

from __future__ import annotations

import base64
import json
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from fanfare_client import Fanfare

DEV: dict[str, Any] = json.loads(Path(os.environ["FANFARE_DEV"]).read_text())
DOCUMENT: dict[str, Any] = json.loads(Path(os.environ["FANFARE_DOCUMENT"]).read_text())

# A picture of one pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def client() -> Iterator[Fanfare]:
    with connected() as fanfare:
        yield fanfare


def connected(base_url: str = DEV["base_url"], api_key: str = DEV["test_key"], max_retries: int = 4) -> Fanfare:
    return Fanfare(api_key=api_key, base_url=base_url, max_retries=max_retries)


@dataclass
class Receiver:
    """A webhook receiver; `next` waits for a request that was not returned yet."""

    url: str
    next: Callable[[], tuple[bytes, dict[str, str]]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    received: queue.Queue[tuple[bytes, dict[str, str]]] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.put((body, dict(self.headers.items())))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Receiver(f"http://127.0.0.1:{server.server_port}/hook", lambda: received.get(timeout=30))
    server.shutdown()
    server.server_close()


class LossyProxy:
    """A TCP proxy to the service that closes its first connection instead of passing on the response."""

    def __init__(self) -> None:
        self._service = urlsplit(DEV["base_url"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{self._service.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                inbound, _ = self._listener.accept()
            except OSError:
                # The test is over.
                return
            self.connections += 1
            outbound = socket.create_connection((self._service.hostname, self._service.port))
            is_lossy = self.connections == 1
            threading.Thread(target=_pass_on, args=(inbound, outbound, False), daemon=True).start()
            threading.Thread(target=_pass_on, args=(outbound, inbound, is_lossy), daemon=True).start()

    def close(self) -> None:
        self._listener.close()


def _pass_on(source: socket.socket, sink: socket.socket, drops: bool) -> None:
    """Passes on bytes until either side closes; with `drops`, closes both at the first bytes."""
    try:
        while chunk := source.recv(65_536):
            if drops:
                break
            sink.sendall(chunk)
    except OSError:
        # The other direction closed the connection.
        pass
    for side in (source, sink):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            # Already closed.
            pass
        side.close()


@pytest.fixture
def lossy_proxy() -> Iterator[LossyProxy]:
    proxy = LossyProxy()
    yield proxy
    proxy.close()
