"""What a loop carries in lists, tuples and dicts: the values in them that are traced, in their order.

Arrays are none of them: which one a name stands for is known when the kernel is compiled, as numbers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sley.runtime.tile.ir import Value
from sley.runtime.tile.trace import Array, Traced


def traced_in(value: Any) -> list[Value]:
    """All that are traced, of a value, or of the elements of lists, tuples and dicts."""
    if _carried(value):
        return [value.value]
    return [each for element in _elements(value) for each in traced_in(element)]


def with_traced(value: Any, values: Iterator[Value]) -> Any:
    """The same with other traced values, in new lists, tuples and dicts."""
    if _carried(value):
        return type(value)(next(values))
    if isinstance(value, dict):
        return {key: with_traced(each, values) for key, each in value.items()}
    if not isinstance(value, list | tuple):
        return value
    made = [with_traced(each, values) for each in value]
    return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)


def form_of(value: Any) -> Any:
    """The same with types in the place of what is traced: what must not change from round to round, nor the order in a
    dict."""
    if _carried(value):
        return value.value.type
    if isinstance(value, dict):
        return dict, [(key, form_of(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [form_of(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def described(value: Any) -> str:
    """For an error: types of what is traced, names of arrays."""
    if isinstance(value, Traced):
        return str(value.value.type) if _carried(value) else value.value.name
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {described(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        inside = ", ".join(map(described, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


def _carried(value: Any) -> bool:
    return isinstance(value, Traced) and not isinstance(value, Array)


def _elements(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
