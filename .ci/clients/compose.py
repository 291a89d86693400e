"""Publishes posts through the services of the compose file, from outside: connects accounts by the platforms' logins,
as a person's browser does, and uploads a picture that a platform fetches from the API.

Usage: compose.py KEY publish, and after a restart: compose.py KEY again
"""

import http.client
import json
import struct
import sys
import time
import zlib
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

BASE = "http://fanfare.localhost:8080/api/v1"
BACK = "http://localhost:3000/done"
# Longest time until a post has ended, in seconds.
PATIENCE = 90


def request(method, url, body=None, headers=None):
    """Returns status, headers and body. As in a browser, each name below localhost is this machine."""
    parts = urlsplit(url)
    assert parts.hostname.endswith(".localhost"), url
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    connection.request(method, path, body, {"Host": parts.netloc, **(headers or {})})
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def call(key, method, path, body=None):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    status, _, answer = request(method, BASE + path, json.dumps(body) if body is not None else None, headers)
    assert 200 <= status < 300, f"{method} {path}: {status} {answer.decode()}"
    return json.loads(answer)


def connect(key, platform, username):
    """Connects an account by the platform's login, and returns the account's id."""
    asked = call(key, "POST", f"/social-networks/{platform}/auth-url", {"redirect_uri": BACK})["auth_url"]
    status, _, page = request("GET", asked)
    assert status == 200 and b"<form" in page, (asked, status)
    form = parse_qsl(urlsplit(asked).query) + [("username", username), ("decision", "allow")]
    status, headers, page = request(
        "POST", asked, urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert status == 302, (asked, status, page)
    status, headers, page = request("GET", headers["Location"])
    assert status == 302 and headers["Location"].startswith(BACK), (status, headers["Location"], page)
    reported = parse_qs(urlsplit(headers["Location"]).query)
    assert reported["status"] == ["connected"], reported
    return reported["account_ids"][0]


def picture():
    """Returns a PNG of 640 by 640 pixels."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + bytes((row % 256, 90, 160)) * 640 for row in range(640))
    header = struct.pack(">IIBBBBB", 640, 640, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def published(key, post):
    """Waits until a post is published, and returns the URLs of its pages."""
    deadline = time.monotonic() + PATIENCE
    while post["status"] not in ("published", "partial", "failed"):
        assert time.monotonic() < deadline, post
        time.sleep(0.2)
        post = call(key, "GET", f"/posts/{post['id']}")
    assert post["status"] == "published", json.dumps(post, indent=2)
    return [target["platform_post_url"] for target in post["targets"]]


def publish(key):
    accounts = [connect(key, platform, "ada") for platform in ("x", "threads")]
    upload = call(key, "POST", "/media/upload", {"filename": "square.png", "alt_text": "A square"})
    status, _, answer = request("PUT", upload["upload_url"], picture())
    assert status == 200, answer
    call(key, "POST", f"/media/{upload['id']}/confirm")
    containers = [{"content": "From the containers", "media": [{"id": upload["id"]}]}]
    urls = published(key, call(key, "POST", "/posts", {"containers": containers, "accounts": accounts}))
    assert len(urls) == 2, urls
    for url in urls:
        status, _, page = request("GET", url)
        assert status == 200 and b"From the containers" in page, (url, status)
        print("published", url)


def again(key):
    """Publishes to an account of before, whose earlier post is still there."""
    [listed] = call(key, "GET", "/posts")["data"]
    earlier = call(key, "GET", f"/posts/{listed['id']}")
    assert earlier["status"] == "published", earlier
    accounts = [target["social_account_id"] for target in earlier["targets"]]
    for url in published(key, call(key, "POST", "/posts", {"content": "After a restart", "accounts": accounts[:1]})):
        status, _, page = request("GET", url)
        assert status == 200 and b"After a restart" in page, (url, status)
        print("published", url)


if __name__ == "__main__":
    _, key, step = sys.argv
    {"publish": publish, "again": again}[step](key)
