"""Widths of layouts, enumerations and expressions, computed once.

Amaranth computes the width of a structure from those of all its fields, of an enumeration from all its members, and of
an expression from all that it is made of, each time that it is asked for one: a third of the time of a bench whose
streams have structures as payload, a quarter of that to translate a block, an eighth of that to make RTLIL of a chip.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from amaranth.hdl import Shape
from amaranth.hdl._ast import Concat, Operator, SwitchValue
from amaranth.lib.data import ArrayLayout, Field, StructLayout, UnionLayout

NAME = "_sley_width"


def remember_widths() -> None:
    """Layouts, fields, enumerations and expressions, none of which ever changes, keep their width from now on."""
    for kind, name in ((Field, "width"), (StructLayout, "size"), (UnionLayout, "size"), (ArrayLayout, "size")):
        setattr(kind, name, property(_once(getattr(kind, name).fget)))
    for expression in (Operator, Concat, SwitchValue):
        expression.shape = _once(expression.shape)
    Shape._cast_plain_enum = staticmethod(lru_cache(maxsize=None)(Shape._cast_plain_enum))


def _once(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def width(one: Any) -> Any:
        known = one.__dict__.get(NAME)
        if known is None:
            known = one.__dict__[NAME] = compute(one)
        return known

    return width
