"""Keeps what PyTorch's compiler leaves behind to the file that it is from."""

import gc
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def left_behind(monkeypatch_module: pytest.MonkeyPatch) -> Iterator[None]:
    """Guards of graphs die here: those of functions that are gone raise errors in a callback, where nobody minds."""
    yield
    if "torch._dynamo" in sys.modules:
        monkeypatch_module.setattr(sys, "unraisablehook", lambda unraisable: None)
        sys.modules["torch._dynamo"].reset()
        gc.collect()


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch
