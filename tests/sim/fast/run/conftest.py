"""Small designs, of which each is compiled once: the start of a process for each would take half of the time."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from sley.sim.fast.run import build


@pytest.fixture(autouse=True)
def translated_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs are translated to C in this process; those of whole chips, in other tests, in one of their own."""

    def called(function: Callable[..., Any], *arguments: Any) -> Any:
        gc.disable()  # as there
        try:
            return function(*arguments)
        finally:
            gc.enable()

    monkeypatch.setattr(build, "in_new_process", called)
