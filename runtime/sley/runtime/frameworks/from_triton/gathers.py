"""Loads whose addresses are computed from loaded numbers: rows by their numbers, and single elements."""

from __future__ import annotations

from sley.runtime.frameworks.from_triton.conversion import Conversion
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import TritonType
from sley.runtime.frameworks.from_triton.values import Condition, Data, Known, Pointer


def gathered(
    conversion: Conversion, pointer: Pointer, mask: Condition | Data, other: Known, type: TritonType
) -> Known:
    """What the load gives."""
    raise refuse(conversion.operation, "the addresses are computed from loaded numbers")
