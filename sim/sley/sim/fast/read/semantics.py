"""What every operator computes, on Python's integers: the definition that all other passes must agree with."""

from collections.abc import Callable, Sequence


def signed(value: int, width: int) -> int:
    """The two's complement number that these bits mean."""
    return value - (1 << width) if width and value >> (width - 1) else value


def compute(op: str, width: int, parameter: int, operands: Sequence[int], widths: Sequence[int]) -> int:
    """Result of an operator that needs nothing but its operands (see the table in ``netlist``)."""
    mask = (1 << width) - 1
    a = operands[0]
    if op == "mux":
        return operands[2] if a else operands[1]
    if op == "slice":
        return a >> parameter & mask
    if op == "concat":
        result, low = 0, 0
        for value, part in zip(operands, widths, strict=True):
            result |= value << low
            low += part
        return result
    if op == "not":
        return ~a & mask
    if op == "sext":
        return signed(a, widths[0]) & mask
    if op == "parity":
        return a.bit_count() & 1
    b = operands[1]
    if op == "pick":
        return a >> parameter + min(b, widths[0]) & mask
    if op in _PLAIN:
        return _PLAIN[op](a, b) & mask
    if op in ("shl", "shr", "sar"):
        amount = min(b, width)
        return (a << amount if op == "shl" else (a if op == "shr" else signed(a, width)) >> amount) & mask
    if op[-1] == "s":
        a, b = signed(a, widths[0]), signed(b, widths[1])
    if op[:2] == "le":
        return int(a <= b)
    if op[:2] == "lt":
        return int(a < b)
    if not b:
        return 0
    return (a // b if op[:3] == "div" else a % b) & mask


_PLAIN: dict[str, Callable[[int, int], int]] = {
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
}
