"""Checks that a block rejects parameters it cannot have."""

import gc
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from amaranth.hdl import UnusedElaboratable

from sley.hw.elaboration.emission import no_garbage_collection


@contextmanager
def rejects(match: str, error: type[Exception] = ValueError) -> Iterator[None]:
    """Like ``pytest.raises(error, match=match)``, for constructors of components.

    A component whose constructor raised was never elaborated, which Amaranth warns about whenever it is collected,
    usually in the middle of another test. Here it is collected at once, in silence, among the youngest objects: the
    search for garbage is off in between, so that all of it is among them, and a search of what a run of tests has in
    memory takes seconds.
    """
    with warnings.catch_warnings(), no_garbage_collection():
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(error, match=match) as caught:
            yield
        traceback.clear_frames(caught.tb)
        del caught
        gc.collect(0)
