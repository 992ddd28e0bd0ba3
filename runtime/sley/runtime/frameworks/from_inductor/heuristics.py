"""Decorators of Inductor's kernels: they keep what a launch needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Source:
    """A kernel as Inductor wrote it. ``function``: of Triton. ``sizes``: powers of two, of each axis. ``grid``: the
    name of how programs are counted."""

    function: Any
    sizes: dict[str, int]
    grid: str
    fixed: dict[str, int]


def _kept(
    size_hints: dict[str, int] | None = None,
    *,
    inductor_meta: dict[str, Any],
    config: dict[str, int] | None = None,
    **_: Any,
) -> Callable[[Any], Source]:
    return lambda function: Source(function, size_hints or {}, inductor_meta["grid_type"], config or {})


pointwise = reduction = persistent_reduction = fixed_config = _kept
