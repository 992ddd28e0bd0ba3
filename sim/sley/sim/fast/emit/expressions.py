"""C expressions for the operators of the netlist, on unsigned types of 8 to 64 bits."""

from collections.abc import Sequence

from sley.sim.fast.optimise.machine_types import BITS

_SYMBOLS = {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!="}
_SIGNED_TYPE = {"u8": "s32", "u16": "s32", "u32": "s32", "u64": "s64"}


def literal(value: int, width: int) -> str:
    return f"{value:#x}u" if width <= 32 else f"{value:#x}ull"


def mask(width: int) -> str:
    return literal((1 << width) - 1, width)


def narrow(op: str, width: int, parameter: int, operands: Sequence[str], widths: Sequence[int], kind: str) -> str:
    """Result of an operator whose operands all have at most 64 bits, as an expression of type ``kind``.

    ``kind`` has room for the result and the first operand, but for ``slice``, whose operand may be of another type.
    """
    bits = BITS[kind]
    a = operands[0]
    if op in ("and", "or", "xor"):
        return f"({a} {_SYMBOLS[op]} {operands[1]})"
    if op in ("add", "sub", "mul"):
        left = f"({kind}){a}" if op == "mul" and bits < 32 else a
        return _masked(f"({left} {_SYMBOLS[op]} {operands[1]})", width, bits)
    if op in ("eq", "ne"):
        return f"({kind})({a} {_SYMBOLS[op]} {operands[1]})"
    if op in ("ltu", "leu"):
        return f"({kind})({a} {'<' if op == 'ltu' else '<='} {operands[1]})"
    if op in ("lts", "les"):
        sign = literal(1 << (widths[0] - 1), widths[0])
        return f"({kind})(({a} ^ {sign}) {'<' if op == 'lts' else '<='} ({operands[1]} ^ {sign}))"
    if op == "not":
        return f"({a} ^ {mask(width)})"
    if op == "mux":
        return f"({a} ? {operands[2]} : {operands[1]})"
    if op == "slice":
        shifted = f"({a} >> {parameter})" if parameter else a
        cast = f"({kind}){shifted}"
        return f"({cast})" if parameter + width == widths[0] else f"({cast} & {mask(width)})"
    if op == "concat":
        return _concat(operands, widths, kind)
    if op == "sext":
        return _sext(a, width, widths[0], kind)
    if op in ("shl", "shr", "sar"):
        return _shift(op, width, a, operands[1], widths[1], kind)
    if op == "parity":
        return f"({kind})__builtin_parityll({a})"
    suffix = f", {width}" if op[-1] == "s" else ""
    return _masked(f"({kind})n_{op}({a}, {operands[1]}{suffix})", width, bits)


def _masked(expression: str, width: int, bits: int) -> str:
    return expression if width == bits and bits >= 32 else f"({expression} & {mask(width)})"


def _concat(operands: Sequence[str], widths: Sequence[int], kind: str) -> str:
    parts, low = [], 0
    for operand, width in zip(operands, widths, strict=True):
        if operand not in ("0x0u", "0x0ull"):
            parts.append(f"({kind}){operand} << {low}" if low else f"({kind}){operand}")
        low += width
    return "(" + " | ".join(parts or ["0"]) + ")"


def _sext(a: str, width: int, own: int, kind: str) -> str:
    if own == 1:
        return _masked(f"(0 - ({kind}){a})", width, BITS[kind])
    sign = literal(1 << (own - 1), width)
    return _masked(f"((({kind}){a} ^ {sign}) - {sign})", width, BITS[kind])


def _shift(op: str, width: int, a: str, amount: str, amount_width: int, kind: str) -> str:
    bits = BITS[kind]
    largest = (1 << amount_width) - 1
    if op == "sar":
        signed = _SIGNED_TYPE[kind]
        room = BITS["u" + signed[1:]]
        limited = amount if largest < room else f"({amount} < {room} ? {amount} : {room - 1})"
        value = f"(({signed})(({'u' + signed[1:]}){a} << {room - width}) >> {room - width})"
        return _masked(f"(({kind})({value} >> {limited}))", width, bits)
    room = max(bits, 32)
    symbol = "<<" if op == "shl" else ">>"
    if largest < room:
        return _masked(f"(({kind})({a} {symbol} {amount}))", width, bits) if op == "shl" else f"({a} >> {amount})"
    shifted = f"({kind})({a} {symbol} ({amount} & {room - 1}))"
    return (
        _masked(f"({amount} < {room} ? {shifted} : 0)", width, bits)
        if op == "shl"
        else (f"({amount} < {room} ? {shifted} : 0)")
    )
