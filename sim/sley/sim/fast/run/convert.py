"""An Amaranth design as RTLIL, and its ports by name."""

from collections.abc import Mapping
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Const, IOPort, ResetSignal, Signal, ValueCastable
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring

from sley.sim.errors import FastError

Ports = dict[str, tuple[Any, Any]]
"""Signals, constants and IO ports by name, each with its direction, or None to have it found out."""


def design_ports(design: Any, given: Mapping[str, Any] | None) -> Ports:
    """Ports of an elaboratable: those of a component, or those given by name. Raises ``FastError`` for what is none."""
    if given is not None:
        found: Ports = {name: (value, None) for name, value in given.items()}
    elif isinstance(getattr(design, "signature", None), wiring.Signature):
        directions = {wiring.In: PortDirection.Input, wiring.Out: PortDirection.Output}
        flat = design.signature.flatten(design)
        found = {"__".join(map(str, path)): (value, directions[member.flow]) for path, member, value in flat}
    else:
        raise FastError(f"{type(design).__name__} is no component: name its inputs and outputs with ports={{...}}")
    for name, (value, direction) in found.items():
        port = value.as_value() if isinstance(value, ValueCastable) else value
        if not isinstance(port, Signal | Const | IOPort | ClockSignal | ResetSignal):
            raise FastError(f"port {name} is {port!r}; a port is a whole signal: assign it to one and pass that")
        found[name] = port, direction
    return found


def design_rtlil(design: Any, ports: Ports, name: str) -> str:
    """RTLIL of the elaboratable as module ``name``, without constant ports. Raises ``FastError`` if there is none."""
    pins = {pin: port for pin, port in ports.items() if not isinstance(port[0], Const)}
    try:
        text: str = rtlil.convert(design, name=name, ports=pins)
    except (OverflowError, NotImplementedError, AssertionError) as error:
        reason = str(error) or "is a signal, or a cell's result, of more than 65,536 bits in it? split it"
        raise FastError(f"Amaranth makes no RTLIL, which this engine starts from: {reason}") from error
    return text


def constants(ports: Ports) -> dict[str, int]:
    """Ports that always have one value."""
    return {name: _unsigned(port, port.value) for name, (port, _) in ports.items() if isinstance(port, Const)}


def initial(ports: Ports) -> dict[str, int]:
    """What ports that are signals begin with."""
    return {name: _unsigned(port, port.init) for name, (port, _) in ports.items() if isinstance(port, Signal)}


def _unsigned(port: Any, value: int) -> int:
    return value & ((1 << len(port)) - 1)
