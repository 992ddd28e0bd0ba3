"""Bits of a netlist, for a process that makes the text of a chip.

Amaranth looks at the type of each bit whenever it puts bits side by side, also where its assertions are off: a tenth
of the time to make RTLIL of a chip.
"""

from collections.abc import Iterable
from typing import Any

from amaranth.hdl._nir import Net, Netlist, Value


def trust_nets() -> None:
    """Values of a netlist are made of what they are given, from now on."""
    Value.__new__ = _value
    Netlist.resolve_value = _resolved


def _value(cls: type[Value], nets: Net | Iterable[Net] = ()) -> Any:
    return tuple.__new__(cls, (nets,) if isinstance(nets, Net) else nets)


def _resolved(netlist: Any, value: Value) -> Any:
    """The value with what drives it in place of bits that were not known when it was made."""
    nets, connections = [], netlist.connections
    for net in value:
        while net < 0:
            net = connections[net]
        nets.append(net)
    return tuple.__new__(Value, nets)
