"""Waiting for posts, and batches that are created once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from typing_extensions import Unpack

from ._api import new_key
from ._errors import WaitTimeoutError
from .generated import params
from .generated.models import CreatedPosts, Post
from .generated.resources import AsyncPostsOperations, PostsOperations

WAIT_TIMEOUT = 300.0
FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0
ENDED = frozenset({"published", "partial", "failed", "canceled", "draft"})
"""A draft ends as well: nothing happens before it is released."""


def _delays() -> Iterator[float]:
    delay = FIRST_DELAY
    while True:
        yield delay
        delay = min(LONGEST_DELAY, delay * 1.5)


def _left(post: Post, deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise WaitTimeoutError(f"the post {post.id} is still {post.status}")
    return left


def _with_references(body: params.NewPosts) -> params.NewPosts:
    posts = [{**post, "external_ref": post.get("external_ref") or new_key()} for post in body["posts"]]
    return {**body, "posts": posts}  # type: ignore[typeddict-item]


class Posts(PostsOperations):
    def wait(self, id: str, *, timeout: float = WAIT_TIMEOUT) -> Post:
        """Waits until a post has ended: `published`, `partial` or `failed`; `targets` tells each account's result.

        Reads the post at growing intervals. A service that publishes many posts is better told by a webhook or by
        `events.stream`.
        """
        deadline = time.monotonic() + timeout
        for delay in _delays():
            post = self.get(id)
            if post.status in ENDED:
                return post
            time.sleep(min(delay, _left(post, deadline)))
        raise AssertionError("the delays never end")

    def create_batch(self, *, timeout: float | None = None, **body: Unpack[params.NewPosts]) -> CreatedPosts:
        """Creates up to 20 posts. A post without `external_ref` gets one, so that a repetition creates it once."""
        return self._api.call(
            "POST", "/posts/batch", timeout=timeout, body=_with_references(body), is_repeatable=True, model=CreatedPosts
        )


class AsyncPosts(AsyncPostsOperations):
    async def wait(self, id: str, *, timeout: float = WAIT_TIMEOUT) -> Post:
        """Waits until a post has ended: `published`, `partial` or `failed`; `targets` tells each account's result.

        Reads the post at growing intervals. A service that publishes many posts is better told by a webhook or by
        `events.stream`.
        """
        deadline = time.monotonic() + timeout
        for delay in _delays():
            post = await self.get(id)
            if post.status in ENDED:
                return post
            await asyncio.sleep(min(delay, _left(post, deadline)))
        raise AssertionError("the delays never end")

    async def create_batch(self, *, timeout: float | None = None, **body: Unpack[params.NewPosts]) -> CreatedPosts:
        """Creates up to 20 posts. A post without `external_ref` gets one, so that a repetition creates it once."""
        return await self._api.call(
            "POST", "/posts/batch", timeout=timeout, body=_with_references(body), is_repeatable=True, model=CreatedPosts
        )
