"""Python's garbage collector, kept out of a run.

A collection stops the host, and once the GPU has used up what was enqueued ahead of it, the GPU too. A traced run
leaves many objects behind, so that a full collection walks through all of them: on an H200 (8B shape, 32 requests) one
of 456 ms was the whole idle time of 2000 asynchronous steps. Serving engines freeze or disable the collector for the
same reason.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No automatic collection within the block; objects are freed by their reference counts all the same.

    A collector that was off before stays off afterwards.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
