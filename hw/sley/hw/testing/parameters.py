"""Checks that a block rejects parameters it cannot have."""

import gc
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from amaranth.hdl import UnusedElaboratable


@contextmanager
def rejects(match: str, error: type[Exception] = ValueError) -> Iterator[None]:
    """Like ``pytest.raises(error, match=match)``, for constructors of components.

    A component whose constructor raised was never elaborated, which Amaranth warns about whenever it is collected,
    usually in the middle of another test. Here it is collected at once, in silence, with what else is young: all that
    a run of tests has in memory takes a second.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(error, match=match) as caught:
            yield
        traceback.clear_frames(caught.tb)
        del caught
        gc.collect(1)
