"""Small designs in Amaranth's own simulator and on the fast engine, side by side."""

import random
from collections.abc import Callable
from typing import Any

from amaranth.hdl import (
    Module,
    Signal,
    Value,
    signed,
)
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from sley.sim.fast.run.simulation import Simulation


class Kind(enum.Enum, shape=2):
    """An enumeration with a hole."""

    NONE = 0
    ONE = 1
    THREE = 3


class Design(wiring.Component):
    """Inputs ``a``, ``b``, ``s`` and output ``o``, unless a subclass says otherwise."""

    def __init__(self, build: Callable[["Design", Module], None], **members: Any) -> None:
        self.build = build
        super().__init__(wiring.Signature({"a": In(8), "b": In(8), "s": In(signed(6)), "o": Out(24), **members}))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if "reset" not in self.signature.members:
            beat = Signal(8)  # so that there is a clock
            m.d.sync += beat.eq(beat + 1)
        self.build(self, m)
        return m


CLOCKS = {"fast_clock": In(1), "slow_clock": In(1), "reset": In(1)}


def members(design: Design) -> dict[str, tuple[Any, Any]]:
    flat = design.signature.flatten(design)
    return {"__".join(map(str, path)): (member.flow, Value.cast(value)) for path, member, value in flat}


def differences(make: Callable[[], Design], clock: Callable[[int], str | None]) -> list[str]:
    """Runs both simulators side by side; ``clock`` names the clock of a step, or None for ``sync``."""
    reference, simulation = make(), Simulation.of(make())
    ports, found, source = members(reference), [], random.Random(0)
    inputs = [name for name, (flow, value) in ports.items() if flow is In and not name.endswith("_clock")]
    inputs = [name for name in inputs if isinstance(ports[name][1], Signal)]

    def compare(ctx: Any, step: int) -> None:
        for name, (_, value) in ports.items():
            expected, shown = ctx.get(value) & ((1 << len(value)) - 1), simulation.peek(name)
            if expected != shown:
                found.append(f"step {step}: {name} is {shown:#x}, Amaranth has {expected:#x}")

    async def bench(ctx: Any) -> None:
        compare(ctx, 0)
        for step in range(1, 40):
            for name in inputs:
                value = ports[name][1]
                bits = source.getrandbits(len(value)) if len(value) else 0
                ctx.set(value, bits)
                simulation.poke(name, bits)
            chosen = clock(step)
            if chosen is None:
                await ctx.tick()
                simulation.tick()
            else:
                ctx.set(ports[chosen][1], 1)
                ctx.set(ports[chosen][1], 0)
                simulation.tick(chosen)
            compare(ctx, step)

    simulator = Simulator(reference)
    if clock(0) is None:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found
