"""Designs with a planted bug, for tests that show that another test would find it."""

import inspect
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest


def mutated(component: type[Any], line: str, replacement: str) -> Any:
    """The class of that name in a copy of its module in which the text ``line``, found exactly once, is replaced."""
    module = sys.modules[component.__module__]
    source = inspect.getsource(module)
    if source.count(line) != 1:
        raise ValueError(f"{line!r} is {source.count(line)} times in {module.__name__}; it must be there once")
    return _executed(source.replace(line, replacement), f"{module.__name__} with a planted bug", component)


def copied(component: type[Any]) -> Any:
    """The class of that name in a copy of its module, whose constants may be changed."""
    module = sys.modules[component.__module__]
    return _executed(inspect.getsource(module), f"{module.__name__}, a copy", component)


def _executed(source: str, name: str, component: type[Any]) -> Any:
    copy = ModuleType(name)
    exec(compile(source, name, "exec"), copy.__dict__)
    return copy.__dict__[component.__name__]


def planted(bugs: Mapping[str, Sequence[Any]], names: Sequence[str] = ("line", "bug")) -> pytest.MarkDecorator:
    """Runs a test with each of the bugs, which ``names`` hands to it.

    The first is planted in each run, to show that the proof can fail at all; the others are slow.
    """
    params = [
        pytest.param(*bug, id=name, marks=[pytest.mark.slow] if place else [])
        for place, (name, bug) in enumerate(bugs.items())
    ]
    return pytest.mark.parametrize(names, params)
