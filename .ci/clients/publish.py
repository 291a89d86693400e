"""Publishes a post through the generated Python client and waits until it is finished.

Usage: publish.py BASE_URL KEY, with the client's package on the path.
"""

import sys

from fanfare_api_client import AuthenticatedClient
from fanfare_api_client.api.posts import create_post, get_post
from fanfare_api_client.models import NewPost, Post, Problem
from waiting import until

base_url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=key, raise_on_unexpected_status=True)

created = create_post.sync_detailed(
    client=client,
    body=NewPost(content="From the Python client", accounts=["fanfare"]),
    idempotency_key="python-client",
)
assert created.status_code == 201 and isinstance(created.parsed, Post), created
replayed = create_post.sync_detailed(
    client=client,
    body=NewPost(content="Whatever", accounts=["fanfare"]),
    idempotency_key="python-client",
)
assert replayed.status_code == 200 and replayed.parsed.id == created.parsed.id, replayed


def published():
    post = get_post.sync(created.parsed.id, client=client)
    return post if post.status in ("published", "partial", "failed") else None


post = until(published)
assert post.status == "published" and post.targets[0].platform_post_url, post

refused = create_post.sync_detailed(client=client, body=NewPost(content="", accounts=[]))
problem = refused.parsed
assert refused.status_code == 400 and isinstance(problem, Problem), refused
assert {tuple(issue.path) for issue in problem.errors} == {("content",), ("accounts",)}, problem
print("the Python client published", post.targets[0].platform_post_url)
