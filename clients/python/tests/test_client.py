"""Tests of the installed package against a dev service, started by `.ci/packages`."""

from __future__ import annotations

import hashlib
import hmac
import inspect
import io
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from conftest import DEV, DOCUMENT, PNG, LossyProxy, Receiver, connected

from fanfare_client import (
    AsyncFanfare,
    Fanfare,
    FanfareConnectionError,
    FanfareError,
    MediaFailedError,
    WaitTimeoutError,
    WebhookVerificationError,
    models,
    verify_webhook,
)

HELPERS = {"upload", "wait", "stream"}


def documented() -> list[str]:
    return sorted(
        f"{method.upper()} {re.sub(r'{[^}]*}', '~', path)}"
        for path, item in DOCUMENT["paths"].items()
        for method in item
    )


class Recorder:
    def __init__(self) -> None:
        self.called: list[str] = []

    def respond(self, request: httpx.Request) -> httpx.Response:
        self.called.append(f"{request.method} {request.url.path}")
        # A response with no member of the operation's: enough to know that it was called.
        return httpx.Response(400, json={})


def calls(client: object) -> list[Any]:
    """Returns a call of each method of each resource."""
    names = [name for name in dir(client) if not name.startswith("_") and name not in ("close",)]
    methods = [
        method
        for name in names
        for key, method in inspect.getmembers(getattr(client, name), inspect.ismethod)
        if not key.startswith("_") and key not in HELPERS
    ]
    found = []
    for method in methods:
        parameters = inspect.signature(method).parameters.values()
        path = ["~" for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        needed = {
            one.name: "~"
            for one in parameters
            if one.kind is inspect.Parameter.KEYWORD_ONLY and one.default is inspect.Parameter.empty
        }
        if method.__name__ == "create_batch":
            needed["posts"] = []  # type: ignore[assignment]
        found.append(lambda method=method, path=path, needed=needed: method(*path, **needed))
    return found


def test_every_operation_of_the_document_is_a_method() -> None:
    recorder = Recorder()
    with httpx.Client(transport=httpx.MockTransport(recorder.respond)) as http:
        for call in calls(Fanfare(api_key="key", base_url="http://service.test", http_client=http)):
            with pytest.raises(FanfareError):
                call()
    assert sorted(recorder.called) == documented()


async def test_every_operation_of_the_document_is_a_method_with_asyncio() -> None:
    recorder = Recorder()
    async with httpx.AsyncClient(transport=httpx.MockTransport(recorder.respond)) as http:
        for call in calls(AsyncFanfare(api_key="key", base_url="http://service.test", http_client=http)):
            with pytest.raises(FanfareError):
                await call()
    assert sorted(recorder.called) == documented()


def test_a_post_is_created_and_waited_for_and_its_events_follow(client: Fanfare) -> None:
    start = client.events.list(limit=1).next_cursor
    created = client.posts.create(content="From the package, in Python", accounts=["fanfare", "fanfare.bsky.social"])
    post = client.posts.wait(created.id)
    assert post.status == "published"
    assert len(post.targets) == 2
    assert all(target.platform_post_url for target in post.targets)
    assert any(entry.kind == "published" for entry in client.posts.get_timeline(post.id).data)

    stream = client.events.stream(after=start, types=["post.target.published"], interval=0.05)
    targets = set()
    for event in stream:
        if isinstance(event, models.PostTargetPublishedEvent) and event.data.post_id == post.id:
            targets.add(event.data.target_id)
        if len(targets) == 2:
            break
    assert targets == {target.id for target in post.targets}


async def test_asyncio() -> None:
    async with AsyncFanfare(api_key=DEV["test_key"], base_url=DEV["base_url"]) as client:
        asset = await client.media.upload(PNG, filename="dot.png")
        created = await client.posts.create(
            containers=[{"content": "With asyncio", "media": [{"id": asset.id}]}], accounts=["fanfare"]
        )
        assert (await client.posts.wait(created.id)).status == "published"
        stream = client.events.stream(types=["post.published"], interval=0.05)
        async for event in stream:
            if isinstance(event, models.PostPublishedEvent) and event.data.post_id == created.id:
                break
        page = await client.posts.list(limit=1)
        assert len(page.data) == 1
        ids = [post.id async for post in client.posts.list(limit=100)]
        assert created.id in ids and len(set(ids)) == len(ids)
        uploaded = await client.media.upload(io.BytesIO(PNG), filename="file.png")
        assert uploaded.width == 1


def test_a_stream_waits_for_new_events_and_continues_at_its_cursor(client: Fanfare) -> None:
    stream = client.events.stream(types=["post.published", "post.error"], interval=0.05)
    marker = client.posts.create(content="For the stream, in Python", accounts=["fanfare"])
    seen = False
    for event in stream:
        assert isinstance(event, models.PostPublishedEvent), event
        if event.data.post_id == marker.id:
            break
        # Ends when the position of the page before the marker's is stored.
        seen = True
    assert seen or stream.cursor is None
    following = client.posts.create(content="After the cursor, in Python", accounts=["fanfare"])
    for event in client.events.stream(after=stream.cursor, types=["post.published"], interval=0.05):
        assert event.id
        if isinstance(event, models.PostPublishedEvent) and event.data.post_id == following.id:
            break


def test_lists_of_more_than_one_page_are_iterated_to_their_end(client: Fanfare) -> None:
    run = str(uuid4())
    created = {
        client.posts.create(content=f"Draft {index}", accounts=["fanfare"], is_draft=True, metadata={"run": run}).id
        for index in range(5)
    }
    listed = [post.id for post in client.posts.list(metadata={"run": run}, limit=2)]
    assert len(listed) == 5 and set(listed) == created

    first = client.posts.list(metadata={"run": run}, limit=2)
    assert len(first.data) == 2 and first.has_next_page()
    second = first.next_page()
    assert second is not None and len(second.data) == 2
    last = second.next_page()
    assert last is not None and len(last.data) == 1 and last.next_page() is None
    assert any(account.platform == "x" for account in client.social_accounts.list())


def test_a_file_is_uploaded_from_a_path_a_file_bytes_and_a_stream(client: Fanfare, tmp_path: Path) -> None:
    path = tmp_path / "dot.png"
    path.write_bytes(PNG)
    asset = client.media.upload(path, alt_text="A dot")
    assert asset.status == "ready" and asset.filename == "dot.png"
    assert asset.sha256 == hashlib.sha256(PNG).hexdigest()
    post = client.posts.create(
        containers=[{"content": "With a picture", "media": [{"id": asset.id}]}], accounts=["fanfare"]
    )
    assert client.posts.wait(post.id).status == "published"
    with path.open("rb") as file:
        uploads = [
            client.media.upload(str(path)),
            client.media.upload(file),
            client.media.upload(PNG, filename="bytes.png"),
            client.media.upload(iter([PNG[:10], PNG[10:]]), filename="stream.png", size=len(PNG)),
            client.media.upload(iter([PNG]), filename="endless.png"),
        ]
    assert [upload.width for upload in uploads] == [1] * 5
    # The list of media has pages with offsets.
    listed = {media.id for media in client.media.list(limit=2)}
    assert listed.issuperset(upload.id for upload in uploads)


def test_a_file_that_is_not_what_it_claims_is_refused_with_a_reason(client: Fanfare) -> None:
    with pytest.raises(FanfareError) as error:
        client.media.upload(b"no picture", filename="a.png", content_type="image/png")
    assert len(error.value.message) > 10


def test_an_import_that_fails_is_told_by_the_wait(client: Fanfare) -> None:
    asset = client.media.import_url(url="https://fanfare.invalid/dawn.jpg")
    with pytest.raises((MediaFailedError, WaitTimeoutError)):
        client.media.wait(asset.id, timeout=1)


def test_a_real_webhook_is_verified_and_a_forged_or_old_one_is_refused(client: Fanfare, receiver: Receiver) -> None:
    webhook = client.webhooks.create(url=receiver.url, events=["post.published"])
    secret = webhook.signing_secret
    assert secret is not None
    post = client.posts.create(content="For the webhook, in Python", accounts=["fanfare"])
    while True:
        body, headers = receiver.next()
        event = verify_webhook(body, headers, secret)
        assert isinstance(event, models.PostPublishedEvent)
        if event.data.post_id == post.id:
            break
    client.webhooks.delete(webhook.id)
    assert event.data.social_accounts[0].network == "x"

    def refusal(payload: bytes, headers: dict[str, str], secret: str, now: float | None = None) -> str:
        with pytest.raises(WebhookVerificationError) as error:
            verify_webhook(payload, headers, secret, now=now)
        return error.value.code

    # Both secrets are accepted while one replaces the other.
    verify_webhook(body, headers, ["another", secret])
    assert refusal(body, headers, "another") == "invalid_signature"
    assert refusal(body + b" ", headers, secret) == "invalid_signature"
    assert refusal(body, {}, secret) == "missing_signature"
    # The signature covers the id in the body.
    assert refusal(body, {**headers, "X-Fanfare-Event-Id": "another"}, secret) == "invalid_signature"
    # Compared with the signature's own time, not with this machine's: any time may have passed since.
    found = re.search(r"t=(\d+)", headers["x-fanfare-signature"])
    assert found is not None
    signed = int(found[1])
    for late in (301, -301):
        assert refusal(body, headers, secret, signed + late) == "stale_signature"
        verify_webhook(body, headers, secret, now=signed + late, tolerance=400)


def test_one_of_several_signatures_is_enough_and_unknown_events_are_kept() -> None:
    body = b'{"event":"post.applauded","timestamp":"2026-01-02T03:04:05Z","data":{"by":7}}'
    signature = hmac.new(b"whsec_a", b"1700000000." + body, hashlib.sha256).hexdigest()
    headers = {"X-Fanfare-Signature": f"t=1700000000,v1={'0' * 64},v1={signature}", "X-Fanfare-Event-Id": "1"}
    event = verify_webhook(body, headers, "whsec_a", now=1_700_000_000)
    assert isinstance(event, models.Event) and event.event == "post.applauded" and event.id == "1"
    with pytest.raises(WebhookVerificationError):
        verify_webhook(body, headers, "whsec_b", now=1_700_000_000)


def test_a_lost_response_creates_a_post_once(client: Fanfare, lossy_proxy: LossyProxy) -> None:
    run = str(uuid4())
    with connected(lossy_proxy.base_url) as lossy:
        post = lossy.posts.create(content="Once", accounts=["fanfare"], is_draft=True, metadata={"run": run})
    assert lossy_proxy.connections == 2
    assert [one.id for one in client.posts.list(metadata={"run": run})] == [post.id]


def test_a_batch_whose_response_is_lost_creates_its_posts_once(client: Fanfare, lossy_proxy: LossyProxy) -> None:
    run = str(uuid4())
    with connected(lossy_proxy.base_url) as lossy:
        batch = lossy.posts.create_batch(
            posts=[
                {"content": "Once each", "accounts": ["fanfare"], "is_draft": True, "metadata": {"run": run}},
                {"content": "Once each", "accounts": ["fanfare"], "is_draft": True, "metadata": {"run": run}},
            ]
        )
    assert lossy_proxy.connections == 2
    assert [one.status for one in batch.data] == [200, 200]
    assert len(client.posts.list(metadata={"run": run}).data) == 2


def test_what_cannot_be_repeated_safely_is_not_repeated(lossy_proxy: LossyProxy) -> None:
    with connected(lossy_proxy.base_url) as lossy, pytest.raises(FanfareConnectionError) as error:
        lossy.profiles.create(name=f"Lost {uuid4()}")
    assert not error.value.was_not_sent
    assert lossy_proxy.connections == 1


class Gateway(httpx.HTTPTransport):
    """A gateway before the service that fails at first."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.keys: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers.get("Idempotency-Key"))
        if len(self.keys) <= self.failures:
            return httpx.Response(503, headers={"Retry-After": "0"}, text="no upstream")
        return super().handle_request(request)


def test_a_gateways_503_is_repeated_with_the_same_key_and_only_if_that_creates_nothing_twice() -> None:
    def behind(gateway: Gateway) -> Fanfare:
        http = httpx.Client(transport=gateway)
        return Fanfare(api_key=DEV["test_key"], base_url=DEV["base_url"], http_client=http)

    gateway = Gateway(2)
    behind(gateway).posts.create(content="Late", accounts=["fanfare"], is_draft=True)
    assert len(gateway.keys) == 3 and gateway.keys[0] and len(set(gateway.keys)) == 1
    gateway = Gateway(1)
    with pytest.raises(FanfareError) as error:
        behind(gateway).profiles.create(name=f"Late {uuid4()}")
    assert (error.value.status, error.value.code, len(gateway.keys)) == (503, "unknown", 1)
    gateway = Gateway(9)
    with pytest.raises(FanfareError):
        behind(gateway).profiles.list()
    assert len(gateway.keys) == 5


def test_errors_have_the_members_of_the_problem(client: Fanfare) -> None:
    with pytest.raises(FanfareError) as invalid:
        client.posts.create(content="", accounts=[])
    error = invalid.value
    assert (error.status, error.code) == (400, "invalid_request")
    assert error.request_id and error.problem and error.problem.errors
    assert sorted(issue.path[0] for issue in error.problem.errors) == ["accounts", "content"]
    with pytest.raises(FanfareError) as unknown:
        client.posts.get(str(uuid4()))
    assert unknown.value.code == "not_found"
    with connected(api_key="sk_test_wrong") as stranger, pytest.raises(FanfareError) as unauthorized:
        stranger.posts.list()
    assert unauthorized.value.status == 401
    with connected("http://127.0.0.1:1", max_retries=0) as nobody, pytest.raises(FanfareConnectionError) as refused:
        nobody.team.list()
    assert refused.value.was_not_sent


def test_a_request_that_exceeds_the_rate_limit_is_repeated_after_retry_after(client: Fanfare) -> None:
    # The service was started with a limit of 3 changes of the team in 2 seconds.
    def invite(client: Fanfare) -> FanfareError:
        with pytest.raises(FanfareError) as error:
            client.team.invite_member(email="", role="viewer")
        return error.value

    with connected(max_retries=0) as once:
        error = invite(once)
        while error.status != 429:
            error = invite(once)
    assert error.code == "rate_limited" and error.retry_after
    # Repeated until it is admitted: there is no such address.
    assert invite(client).code == "invalid_request"


def test_calls_and_waits_have_timeouts(client: Fanfare) -> None:
    asset = client.media.create_upload(filename="never.png")
    with connected(max_retries=0) as once, pytest.raises(FanfareConnectionError) as error:
        once.media.get(asset.id, wait=30, timeout=0.05)
    assert error.value.code == "timeout"
    with pytest.raises(WaitTimeoutError):
        client.media.wait(asset.id, timeout=1)
