"""Emission of a component as text: its own module, and one for each component that it shares."""

import gc
from collections.abc import Iterator

from amaranth.hdl import Value
from amaranth.lib import wiring

from sley.hw.elaboration.shared import EmissionPlatform, flat_ports

TOP = "sley"

EmittedModule = tuple[str, wiring.Component, dict[str, tuple[Value, None]], EmissionPlatform]
"""Name, component, ports by name, and the platform to convert it with."""


def emitted_modules(component: wiring.Component, name: str) -> Iterator[EmittedModule]:
    """Modules to convert, in order; converting one finds what it shares."""
    platform = EmissionPlatform()
    platform.share(name, component)
    collecting = gc.isenabled()
    gc.disable()  # a quarter of the time goes into the search for garbage among the netlist's millions of objects
    try:
        while platform.pending:
            module, part = platform.pending.pop(0)
            yield module, part, {port: (value, None) for port, (value, _) in flat_ports(part).items()}, platform
    finally:
        if collecting:
            gc.enable()
