"""Lets the tests of this folder import their helpers, and keeps what they leave behind to themselves."""

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def left_behind() -> Iterator[None]:
    """Modules of the packages that were made and never elaborated die here, where nobody minds Amaranth's warning: with
    the search for garbage off until then, all are among the youngest objects."""
    gc.disable()
    yield
    gc.enable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect(0)
