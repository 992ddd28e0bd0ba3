"""The RTLIL of memories, against Amaranth's own simulator: random dimensions, ports and contents, every cycle."""

import random
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from amaranth.utils import ceil_log2

from sley.hw.elaboration.rtlil_platform import RtlilPlatform
from sley.hw.rtlil import component_rtlil
from sley.sim.fast.run.simulation import Simulation

CYCLES = 200


class Memories(wiring.Component):
    """A memory with random dimensions and ports, all of which are ports of the component."""

    def __init__(self, seed: int) -> None:
        dice = self.dice = random.Random(seed)
        granularity = dice.choice((None, 1, 3, 8))
        self.width = dice.choice((1, 5, 31, 64, 65, 130)) if granularity is None else granularity * dice.randrange(1, 6)
        self.depth = dice.choice((1, 2, 3, 7, 8, 33))
        self.rows = [dice.getrandbits(self.width) for _ in range(dice.choice((0, self.depth // 2, self.depth)))]
        self.granularity = granularity
        self.writers, self.readers = dice.choice((0, 1, 1, 1)), dice.randrange(1, 4)
        self.clocked = [dice.random() < 0.6 for _ in range(self.readers)]
        self.transparent = [clocked and dice.random() < 0.5 for clocked in self.clocked]
        lanes = self.width // granularity if granularity else 1
        address = ceil_log2(self.depth)
        ports: dict[str, Any] = {}
        for k in range(self.writers):
            ports |= {f"w{k}_addr": In(address), f"w{k}_data": In(self.width), f"w{k}_en": In(lanes)}
        for k in range(self.readers):
            ports |= {f"r{k}_addr": In(address), f"r{k}_en": In(1), f"r{k}_data": Out(self.width)}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rows = rows = Memory(shape=self.width, depth=self.depth, init=self.rows)
        alive = Signal()
        m.d.sync += alive.eq(~alive)  # there is a clock, whatever the ports are
        writers = []
        for k in range(self.writers):
            port = rows.write_port(granularity=self.granularity)
            writers.append(port)
            for name in ("addr", "data", "en"):
                m.d.comb += getattr(port, name).eq(getattr(self, f"w{k}_{name}"))
        for k, (clocked, transparent) in enumerate(zip(self.clocked, self.transparent, strict=True)):
            port = rows.read_port(domain="sync" if clocked else "comb", transparent_for=writers if transparent else ())
            m.d.comb += [port.addr.eq(getattr(self, f"r{k}_addr")), getattr(self, f"r{k}_data").eq(port.data)]
            if clocked:
                m.d.comb += port.en.eq(getattr(self, f"r{k}_en"))
        return m

    def stimulus(self) -> list[dict[str, int]]:
        """Inputs of every cycle; enables are off now and then, and addresses meet."""
        widths = {
            name: len(getattr(self, name)) for name, member in self.signature.members.items() if member.flow == In
        }
        return [
            {name: self.dice.getrandbits(width) if width else 0 for name, width in widths.items()}
            for _ in range(CYCLES)
        ]


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_memories(seed: int) -> None:
    design = Memories(seed)
    text = component_rtlil(design, platform=RtlilPlatform())
    assert text.count("\nmodule \\sley_memory_") == 1
    fast = Simulation(text)
    outputs = [name for name in design.signature.members if name.endswith("_data") and name[0] == "r"]
    expected: list[list[int]] = []
    stimulus = design.stimulus()

    async def bench(ctx: Any) -> None:
        for inputs in stimulus:
            for name, value in inputs.items():
                ctx.set(getattr(design, name), value)
            expected.append([ctx.get(getattr(design, name)) for name in outputs])
            await ctx.tick()

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    for cycle, (inputs, values) in enumerate(zip(stimulus, expected, strict=True)):
        for name, value in inputs.items():
            fast.poke(name, value)
        assert [fast.peek(name) for name in outputs] == values, f"cycle {cycle}"
        fast.tick()


def test_rows_with_a_shape() -> None:
    """Rows of a structure begin as their shape says, signed ones as their bits."""
    layout = data.StructLayout({"low": 4, "high": 7})

    class Rows(wiring.Component):
        addr: In(2)
        pair: Out(11)
        number: Out(5)

        def elaborate(self, platform: object) -> Module:
            from amaranth import signed

            m = Module()
            m.submodules.pairs = pairs = Memory(shape=layout, depth=4, init=[{"low": 3, "high": 77}, {"low": 15}])
            m.submodules.numbers = numbers = Memory(shape=signed(5), depth=4, init=[-1, 7, -16])
            for memory, target in ((pairs, self.pair), (numbers, self.number)):
                port = memory.read_port(domain="comb")
                m.d.comb += [port.addr.eq(self.addr), target.eq(port.data)]
            return m

    fast = Simulation(component_rtlil(Rows(), platform=RtlilPlatform()))
    found = []
    for address in range(4):
        fast.poke("addr", address)
        found.append((fast.peek("pair"), fast.peek("number")))
    assert found == [(3 | 77 << 4, 31), (15, 7), (0, 16), (0, 0)]


def test_equal_memories_are_one_module() -> None:
    class Two(wiring.Component):
        o: Out(8)

        def elaborate(self, platform: object) -> Module:
            m = Module()
            value = Signal(8)
            for k, depth in enumerate((4, 4, 8)):
                m.submodules[f"memory{k}"] = memory = Memory(shape=8, depth=depth, init=[])
                port = memory.read_port()
                value = value ^ port.data
            m.d.comb += self.o.eq(value)
            return m

    assert component_rtlil(Two(), platform=RtlilPlatform()).count("\nmodule \\sley_memory_") == 2
