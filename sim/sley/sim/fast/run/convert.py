"""An Amaranth design as RTLIL, and its ports by name."""

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import (
    ClockSignal,
    Const,
    Fragment,
    Instance,
    IOBufferInstance,
    IOPort,
    MemoryInstance,
    Module,
    ResetSignal,
    Signal,
    ValueCastable,
)
from amaranth.lib import wiring

from sley.sim.errors import FastError

Ports = dict[str, Any]
"""Signals, constants and IO ports by name. Which way they go is found out: what the design drives is an output."""


def design_ports(design: Any, given: Mapping[str, Any] | None) -> Ports:
    """Ports of an elaboratable: those of a component, or those given by name. Raises ``FastError`` for what is none.

    The directions of a component are not asked for: some drive their own inputs, for instance where the signature of a
    bus is flipped once too often, which works in Amaranth's simulator, and is a conflict in RTLIL.
    """
    if given is not None:
        found: Ports = dict(given)
    elif isinstance(getattr(design, "signature", None), wiring.Signature):
        found = {"__".join(map(str, path)): value for path, _, value in design.signature.flatten(design)}
    else:
        raise FastError(f"{type(design).__name__} is no component: name its inputs and outputs with ports={{...}}")
    for name, value in found.items():
        port = value.as_value() if isinstance(value, ValueCastable) else value
        if not isinstance(port, Signal | Const | IOPort | ClockSignal | ResetSignal):
            raise FastError(f"port {name} is {port!r}; a port is a whole signal: assign it to one and pass that")
        found[name] = port
    return found


def design_rtlil(design: Any, ports: Ports, name: str) -> str:
    """RTLIL of the elaboratable as module ``name``, without constant ports. Raises ``FastError`` if there is none."""
    pins = {pin: (port, None) for pin, port in ports.items() if not isinstance(port, Const)}
    top = Fragment.get(design, None)
    if isinstance(top, Instance | IOBufferInstance | MemoryInstance):  # of which Amaranth makes no module by themselves
        top, inner = Module(), top
        top.submodules.inner = inner
    try:
        text: str = rtlil.convert(top, name=name, ports=pins)
    except (OverflowError, NotImplementedError, AssertionError) as error:
        raise FastError(f"Amaranth makes no RTLIL, which this engine starts from: {_reason(error)}") from error
    return text


def _reason(error: Exception) -> str:
    """Assertions of Amaranth have no text: what they mean follows from where they are."""
    if str(error):
        return str(error)
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    file, inside = Path(frame.f_code.co_filename).name, frame.f_locals
    if file == "_nir.py":
        return "is a signal, or a cell's result, of more than 65,536 bits in it? split it"
    if file == "rtlil.py" and inside.get("name") in getattr(inside.get("self"), "modules", ()):
        return f"two modules are called {inside['name']}; name submodules without dots"
    return f"an assertion failed in {file}, line {line}"


def constants(ports: Ports) -> dict[str, int]:
    """Ports that always have one value."""
    return {name: _unsigned(port, port.value) for name, port in ports.items() if isinstance(port, Const)}


def initial(ports: Ports) -> dict[str, int]:
    """What ports that are signals begin with."""
    return {name: _unsigned(port, port.init) for name, port in ports.items() if isinstance(port, Signal)}


def _unsigned(port: Any, value: int) -> int:
    return value & ((1 << len(port)) - 1)
