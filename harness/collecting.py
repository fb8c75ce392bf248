"""Reading and analysing a large run makes millions of small objects that all stay: looking for garbage among them is
most of the time, and finds none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """Leave cyclic garbage alone until the end of the block."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            # What stays becomes old at once; being young, it would all be looked at with the next object made.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
