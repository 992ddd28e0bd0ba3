"""What a loop carries in lists, tuples and dicts: the values in them that are traced, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sley.runtime.tile.ir import Value
from sley.runtime.tile.trace import Traced


def traced_in(value: Any) -> list[Traced]:
    """All that are traced, of a value, or of the elements of lists, tuples and dicts."""
    if isinstance(value, Traced):
        return [value]
    return [each for element in _elements(value) for each in traced_in(element)]


def with_traced(value: Any, values: Iterator[Value]) -> Any:
    """The same with other traced values, in new lists, tuples and dicts."""
    if isinstance(value, Traced):
        return type(value)(next(values))
    if isinstance(value, dict):
        return {key: with_traced(each, values) for key, each in value.items()}
    return type(value)([with_traced(each, values) for each in value]) if isinstance(value, list | tuple) else value


def form_of(value: Any) -> Any:
    """The same with types in the place of what is traced: what must not change from round to round."""
    if isinstance(value, Traced):
        return value.value.type
    if isinstance(value, dict):
        return {key: form_of(each) for key, each in value.items()}
    return type(value)([form_of(each) for each in value]) if isinstance(value, list | tuple) else value


def described(value: Any) -> str:
    """For an error: types of what is traced."""
    if isinstance(value, Traced):
        return str(value.value.type)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {described(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(described, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


def _elements(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
