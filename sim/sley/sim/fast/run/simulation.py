"""Simulates any Amaranth design that has its clocks as inputs: signals and memories by name, cycle by cycle."""

import ctypes
from collections.abc import Mapping
from typing import Any

from sley.sim.errors import FastError
from sley.sim.fast.run.build import build_library
from sley.sim.fast.run.c_api import HOOK
from sley.sim.fast.run.condition import Condition
from sley.sim.fast.run.instance import Instance
from sley.sim.fast.run.tier import AUTO


class Simulation(Instance):
    """One instance of a design.

    ``rtlil`` is the design as ``amaranth.back.rtlil.convert`` writes it, ``top`` its top module (the first one if not
    named). Values are unsigned numbers. Building takes seconds once for a design; the result is kept in the cache.
    Calls release the interpreter's lock: several simulations run beside each other in threads.
    """

    def __init__(self, rtlil: str, top: str | None = None, tier: str = AUTO) -> None:
        self._made: int | None = None
        self._constants: dict[str, int] = {}
        library = ctypes.CDLL(str(build_library(rtlil, top, tier=tier)))
        handle, u64 = ctypes.c_void_p, ctypes.c_uint64
        library.fast_create.restype, library.fast_create.argtypes = handle, [HOOK]
        library.fast_destroy.restype, library.fast_destroy.argtypes = None, [handle]
        library.fast_tick.argtypes = [handle, u64, u64, u64]
        library.fast_run_until.argtypes = [handle, handle, u64, u64, u64]
        self._made = library.fast_create(HOOK())
        if not self._made:
            raise FastError(f"there is no memory for a state of {library.fast_state_bytes()} bytes")
        self._attach(library, self._made, rtlil, top)
        self._settled = False

    @classmethod
    def of(cls, design: Any, ports: Mapping[str, Any] | None = None, name: str = "top") -> "Simulation":
        """Simulates an elaboratable. ``ports``: inputs and outputs by name; a component's own members by default.

        Clocks and resets of domains that the design does not create are further inputs: ``clk``, ``rst`` and
        ``NAME_clk``, ``NAME_rst``. Inputs begin with their ``init``; a port that is constant (``ready`` of a stream
        that is always ready) can be peeked. Raises ``FastError`` for what the engine, or RTLIL, does not have.
        """
        from sley.sim.fast.run import convert  # Amaranth is needed here alone

        pins = convert.design_ports(design, ports)
        simulation = cls(convert.design_rtlil(design, pins, name))
        simulation._constants = convert.constants(pins)
        for pin, value in convert.initial(pins).items():
            if pin in simulation.manifest.inputs:
                simulation.poke(pin, value)
        return simulation

    def close(self) -> None:
        """Gives the memory of the state back."""
        if self._made:
            made, self._made = self._made, None
            self._detach()
            self._library.fast_destroy(made)

    def __del__(self) -> None:
        if getattr(self, "_made", None):
            self.close()

    def peek(self, name: str) -> int:
        constant = self._constants.get(self._port(name))
        return super().peek(name) if constant is None else constant

    def poke(self, name: str, value: int) -> None:
        if (port := self._port(name)) in self._constants:
            raise FastError(f"{name} is always {self._constants[port]}; only other ports can be poked")
        super().poke(name, value)
        self._settled = False

    def poke_memory(self, name: str, row: int, value: int) -> None:
        super().poke_memory(name, row, value)
        self._settled = False

    def settle(self) -> None:
        if not self._settled:
            super().settle()
            self._settled = True

    def tick(self, *clocks: str, count: int = 1) -> None:
        """``count`` times the rising edge of these clock inputs, all at once, then their falling edge.

        Without a name it is all clocks.
        """
        first, second = self._edges(clocks)
        self._settled = False
        self._check(self._library.fast_tick(self._handle, first, second, count))
        self._settled = True

    def _run(self, condition: Condition, limit: int, clocks: tuple[str, ...]) -> int:
        first, second = self._edges(clocks)
        self._settled = False
        return int(self._library.fast_run_until(self._handle, condition.pointer, first, second, limit))

    def _edges(self, clocks: tuple[str, ...]) -> tuple[int, int]:
        """Rising and falling edges of these clocks as bits."""
        known = self.manifest.clocks
        names = {clock.name for clock in known}
        for clock in clocks:
            if clock not in names and clock not in self.manifest.inputs:
                raise FastError(f"there is no clock {clock!r}; there are {', '.join(sorted(names)) or 'none'}")
        edges = [0, 0]
        for number, edge in enumerate(known):
            if not clocks or edge.name in clocks:
                edges[not edge.rising] |= 1 << number
        return edges[0], edges[1]

    def _changed(self) -> None:
        self._settled = False
