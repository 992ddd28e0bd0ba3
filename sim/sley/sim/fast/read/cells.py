"""What RTLIL's cells mean, in operators of the netlist."""

from sley.sim.fast.read.rtlil import Parameter
from sley.sim.fast.read.simplify import Builder

BITWISE = {"$not": ("A",), "$and": ("A", "B"), "$or": ("A", "B"), "$xor": ("A", "B"), "$mux": ("A", "B")}
"""Cells of which a bit of the result depends on the same bit of these ports alone."""

_COMPARE = {"$eq": "eq", "$ne": "ne", "$lt": "lt", "$le": "le", "$gt": "lt", "$ge": "le"}
_ARITHMETIC = {"$add": "add", "$sub": "sub", "$mul": "mul", "$divfloor": "div", "$modfloor": "mod"}
_LOGIC = {"$and": "and", "$or": "or", "$xor": "xor"}


def build_cell(net: Builder, kind: str, ports: list[int], parameters: dict[str, Parameter], width: int) -> int | None:
    """The result of a cell, ``width`` bits, from its ports S, A, B as far as it has them; None for an unknown kind.

    Source: Yosys manual, chapter "Internal cell library".
    """
    a_signed, b_signed = bool(parameters.get("A_SIGNED")), bool(parameters.get("B_SIGNED"))
    if kind == "$mux":
        return net.mux(*ports)
    if kind in _LOGIC:
        a, b = (net.extend(port, width, a_signed) for port in ports)
        return net.bitwise(_LOGIC[kind], a, b)
    if kind in _COMPARE:
        return _compare(net, kind, ports, a_signed and b_signed, width)
    if kind in _ARITHMETIC:
        op, both_signed = _ARITHMETIC[kind], a_signed and b_signed
        if op in ("div", "mod"):
            inner = max(width, *(net.width[port] for port in ports))
            a, b = (net.extend(port, inner, both_signed) for port in ports)
            return net.slice(net.arithmetic(op + ("s" if both_signed else "u"), a, b), 0, width)
        a, b = (net.extend(port, width, both_signed) for port in ports)
        return net.arithmetic(op, a, b)
    if kind in ("$shl", "$shr", "$sshr", "$shift"):
        return _shift(net, kind, ports, a_signed, b_signed, width)
    if kind == "$not":
        return net.not_(net.extend(ports[0], width, a_signed))
    if kind == "$neg":
        return net.arithmetic("sub", net.const(0, width), net.extend(ports[0], width, a_signed))
    return _reduce(net, kind, ports[0], width) if ports else None


def _compare(net: Builder, kind: str, ports: list[int], signed: bool, width: int) -> int:
    inner = max(net.width[port] for port in ports)
    a, b = (net.extend(port, inner, signed) for port in ports)
    if kind in ("$gt", "$ge"):
        a, b = b, a
    op = _COMPARE[kind]
    if op in ("lt", "le"):
        op += "s" if signed else "u"
    return net.extend(net.compare(op, a, b), width, False)


def _shift(net: Builder, kind: str, ports: list[int], a_signed: bool, b_signed: bool, width: int) -> int | None:
    value, amount = ports
    if b_signed:
        return None
    if kind == "$shl":
        return net.shift("shl", net.extend(value, width, a_signed), amount)
    inner = max(width, net.width[value])
    op = "sar" if a_signed and kind in ("$sshr", "$shift") else "shr"
    return net.slice(net.shift(op, net.extend(value, inner, a_signed), amount), 0, width)


def _reduce(net: Builder, kind: str, value: int, width: int) -> int | None:
    size = net.width[value]
    if kind in ("$reduce_or", "$reduce_bool"):
        bit = net.compare("ne", value, net.const(0, size))
    elif kind == "$reduce_and":
        bit = net.compare("eq", value, net.const(-1, size))
    elif kind == "$reduce_xor":
        bit = net.parity(value) if size else net.const(0, 1)
    else:
        return None
    return net.extend(bit, width, False)
