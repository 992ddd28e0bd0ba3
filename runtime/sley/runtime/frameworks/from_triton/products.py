"""Products of matrices: on the matrix unit, int8 to int32 and bf16 to fp32."""

from __future__ import annotations

from sley.runtime.frameworks.from_triton.conversion import Conversion, lowers
from sley.runtime.frameworks.from_triton.forms import merged
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Constant, Data, Known
from sley.runtime.tile.language import dot

SUMS = {"i8": "i32", "bf16": "f32"}
"""Types that are multiplied, and those of their sums."""


@lowers("tt.dot", note="int8 to int32 and bf16 to fp32, added along K one after the other")
def lower_dot(conversion: Conversion, operation: Operation) -> Known:
    a, b, sums = operation.operands
    if a.type.element != b.type.element or SUMS.get(a.type.element) != sums.type.element:
        raise refuse(
            operation,
            f"{a.type.element} times {b.type.element} to {sums.type.element}; the array multiplies int8 to int32 and "
            "bf16 to fp32: convert with .to(tl.bfloat16)",
        )
    if len(a.type.shape) != 2:
        raise refuse(operation, "of tensors with three axes; tiles have two")
    first, second = (conversion.data(conversion.known(value), value.type) for value in (a, b))
    if any(test.coords[1] for test in first.valid) or any(test.coords[0] for test in second.valid):
        raise refuse(operation, "elements that % wrapped around would be added up; mask them")
    begin = conversion.known(sums)
    shape = operation.result.type.shape
    valid = merged(
        () if isinstance(begin, Constant) else conversion.data(begin, sums.type).valid,
        tuple(test.shaped(shape, [0, None]) for test in first.valid),
    )
    valid = merged(valid, tuple(test.shaped(shape, [None, 1]) for test in second.valid))
    made = dot(conversion.stored(first, a.type), conversion.stored(second, b.type), conversion.stored(begin, sums.type))
    return Data(made, operation.result.type, False, valid)
