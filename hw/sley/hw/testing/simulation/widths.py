"""Widths of layouts and enumerations, computed once.

Amaranth computes the width of a structure from those of all its fields, and of an enumeration from all its members,
each time that it is asked for one: a third of the time of a bench whose streams have structures as payload.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib.data import ArrayLayout, Field, StructLayout, UnionLayout

NAME = "_sley_width"


def remember_widths() -> None:
    """Layouts, fields and enumerations, none of which ever changes, keep their width from now on."""
    for kind, name in ((Field, "width"), (StructLayout, "size"), (UnionLayout, "size"), (ArrayLayout, "size")):
        setattr(kind, name, property(_once(getattr(kind, name).fget)))
    Shape._cast_plain_enum = staticmethod(lru_cache(maxsize=None)(Shape._cast_plain_enum))


def _once(compute: Callable[[Any], int]) -> Callable[[Any], int]:
    def width(one: Any) -> int:
        known: int | None = one.__dict__.get(NAME)
        if known is None:
            known = one.__dict__[NAME] = compute(one)
        return known

    return width
