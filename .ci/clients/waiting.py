"""Polls until a condition holds, up to a time limit."""

import time


def until(look, seconds=60):
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.1)
    return found
