"""Designs with a planted bug, for tests that show that another test would find it."""

import inspect
import sys
from types import ModuleType
from typing import Any


def mutated(component: type[Any], line: str, replacement: str) -> Any:
    """The class of that name in a copy of its module in which the text ``line``, found exactly once, is replaced."""
    module = sys.modules[component.__module__]
    source = inspect.getsource(module)
    if source.count(line) != 1:
        raise ValueError(f"{line!r} is {source.count(line)} times in {module.__name__}; it must be there once")
    mutant = ModuleType(f"{module.__name__} with a planted bug")
    exec(compile(source.replace(line, replacement), mutant.__name__, "exec"), mutant.__dict__)
    return mutant.__dict__[component.__name__]
