"""Asking until something is so, for as long as anyone would wait."""

import time


def until(look, seconds=60):
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return found
