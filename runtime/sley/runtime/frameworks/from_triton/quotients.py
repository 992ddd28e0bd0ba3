"""Quotients and remainders: by the host of what it knows, forms where a tile stays between two multiples of the
divisor, and of loaded elements on the chip."""

from __future__ import annotations

import numpy as np

from sley.runtime.frameworks.from_triton.conversion import Conversion, Unrolled, lowers
from sley.runtime.frameworks.from_triton.elements import result, tiles_of
from sley.runtime.frameworks.from_triton.forms import Form, divided, least, number, remaining
from sley.runtime.frameworks.from_triton.integers import NUMBERS, computed
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Data, Known
from sley.runtime.nn.quotients import whole_trunc


@lowers("arith.divsi", "arith.remsi", "arith.divui", "arith.remui", note="by the host where it is known, else int32")
def lower_divide(conversion: Conversion, operation: Operation) -> Known:
    """Elements that wrap around are right as long as they do not."""
    a, b = (conversion.form(value) for value in operation.operands)
    quotient = operation.name in ("arith.divsi", "arith.divui")
    if b.scalar and np.equal(b.base, 0).any():
        raise refuse(operation, "the divisor is 0")
    unsigned = operation.name.endswith("ui")
    if unsigned and (a.data or b.data or min(least(a.low()), least(b.low())) < 0):
        raise refuse(operation, "a division without signs of what may be negative")
    if a.scalar and b.scalar and not a.valid:
        part = NUMBERS["arith.divsi"](a.base, b.base)
        made = part if quotient else np.subtract(a.base, np.multiply(part, b.base))
        return computed(conversion, operation, number(made))
    if a.data or b.data:
        return _of_elements(conversion, operation, quotient)
    if a.loops and not any(a.coords) and a.data is None:
        raise Unrolled(a.loops[0][0])
    divisor = b.constant
    if divisor is None or divisor < 1 or least(a.low()) < 0:
        raise refuse(
            operation,
            "a quotient or remainder of coordinates; it is known where a tile stays between two multiples of the "
            "divisor",
        )
    whole = divided(a, divisor)
    if whole is not None:
        return whole if quotient else a.plus(whole, -divisor)
    inside = remaining(a, divisor)
    if quotient or least(inside.low()) < 0 or a.valid or len([f for f in inside.coords if f]) != 1:
        raise refuse(operation, "the tile is not between two multiples of the divisor: choose a block size that is")
    return inside.replaced(
        valid=(Form(number(np.subtract(inside.base, divisor)), inside.loops, inside.coords, a.shape),)
    )


def _of_elements(conversion: Conversion, operation: Operation, quotient: bool) -> Data:
    """Towards 0, in int32; of 0 as divisor nothing that means something."""
    type = operation.result.type
    if type.bits > 32:
        raise refuse(operation, f"elements of {type.element}; the device computes in int32")
    operands, (x, y) = tiles_of(conversion, operation)
    whole = whole_trunc(x, y)
    return result(operands, whole if quotient else x - whole * y, type)
