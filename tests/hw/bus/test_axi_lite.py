"""The AXI4-Lite target against a register bus that remembers what it was asked."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from amaranth.sim import Simulator

from sley.hw.bus.axi_lite import AxiLite, AxiLiteTarget, AxiResponse
from sley.hw.testing.coverage import STREAM_STATES, Coverage
from sley.hw.testing.streams import watching

OKAY, SLVERR = AxiResponse.OKAY, AxiResponse.SLVERR
ADDRESSES = 64


CHANNELS = ["aw", "w", "b", "ar", "r"]
COVERAGE = Coverage(
    "AXI4-Lite target",
    {
        "channel": [(name, state) for name in CHANNELS for state in STREAM_STATES],
        "write": ["address first", "data first", "together"],
        "strobes": ["all", "some", "none"],
        "answer": [(kind, answer.name) for kind in ("write", "read") for answer in (OKAY, SLVERR)],
    },
)


@dataclass
class Bench:
    """Drives the five channels independently, each with its own gaps."""

    gap: float
    seed: int
    memory: dict[int, int] = field(default_factory=dict)
    writes: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.dut = AxiLiteTarget(address_bits=16)
        self.sim = Simulator(self.dut)
        self.sim.add_clock(1e-6)
        for part in (self._registers, *watching(self.dut)):
            self.sim.add_testbench(part, background=True)
        self.memory.update({4 * i: 0x1000 + i for i in range(ADDRESSES)})

    async def _registers(self, ctx: Any) -> None:
        r = self.dut.registers
        while True:
            *_, read, ra, write, wa, wd = await ctx.tick().sample(
                r.read, r.read_address, r.write, r.write_address, r.write_data
            )
            if read:
                ctx.set(r.read_error, ra not in self.memory)
                ctx.set(r.read_data, self.memory.get(ra, 0))
            if write:
                ctx.set(r.write_error, wa not in self.memory)
                self.writes.append((wa, wd))
                if wa in self.memory:
                    self.memory[wa] = wd

    async def watch(self, ctx: Any) -> None:
        """What the channels do, and which of a write's two comes first."""
        bits = [getattr(self.dut.bus, name + bit) for name in CHANNELS for bit in ("valid", "ready")]
        ahead = 0  # addresses, of the data
        while True:
            values = (await ctx.tick().sample(*bits))[2:]
            passes = {}
            for name, valid, ready in zip(CHANNELS, values[::2], values[1::2], strict=True):
                COVERAGE.hit("channel", (name, STREAM_STATES[0 if not valid else 1 if ready else 2]))
                passes[name] = valid & ready
            if passes["aw"] and passes["w"] and not ahead:
                COVERAGE.hit("write", "together")
            elif passes["w"] and ahead > 0:
                COVERAGE.hit("write", "address first")
            elif passes["aw"] and ahead < 0:
                COVERAGE.hit("write", "data first")
            ahead += passes["aw"] - passes["w"]

    async def idle(self, ctx: Any) -> None:
        while self.rng.random() < self.gap:
            await ctx.tick()

    def sender(self, valid: Any, ready: Any, items: list[list[tuple[Any, int]]]) -> None:
        async def process(ctx: Any) -> None:
            for item in items:
                await self.idle(ctx)
                for port, value in item:
                    ctx.set(port, value)
                ctx.set(valid, 1)
                while not (await ctx.tick().sample(ready))[-1]:
                    pass
                ctx.set(valid, 0)
                for port, _ in item:
                    ctx.set(port, self.rng.getrandbits(len(port)))

        self.sim.add_testbench(process)

    def receiver(self, valid: Any, ready: Any, fields: list[Any], count: int) -> list[tuple[int, ...]]:
        got: list[tuple[int, ...]] = []

        async def process(ctx: Any) -> None:
            held: tuple[int, ...] | None = None
            while len(got) < count:
                accept = self.rng.random() >= self.gap
                ctx.set(ready, accept)
                _, _, is_valid, *values = await ctx.tick().sample(valid, *fields)
                if held is not None:
                    assert is_valid
                    assert held == tuple(values)
                held = tuple(values) if is_valid and not accept else None
                if is_valid and accept:
                    got.append(tuple(values))
            ctx.set(ready, 0)

        self.sim.add_testbench(process)
        return got


@pytest.mark.parametrize("gap", [0.0, 0.3, 0.8])
def test_random_traffic(gap: float) -> None:
    bench = Bench(gap, seed=int(gap * 10))
    rng, bus = bench.rng, bench.dut.bus
    writes = []
    for _ in range(80):
        address = rng.choice([4 * rng.randrange(ADDRESSES), 4 * rng.randrange(ADDRESSES), rng.getrandbits(16)])
        writes.append((address, rng.getrandbits(32), rng.choice([15, 15, 15, rng.randrange(16)])))
    # Reads go to a half that is never written, so that their values do not depend on the order.
    reads = [rng.choice([0x8000 + 4 * rng.randrange(8), rng.getrandbits(15)]) for _ in range(80)]
    fixed = {0x8000 + 4 * i: rng.getrandbits(32) for i in range(8)}
    bench.memory.update(fixed)
    reads = [a if a in fixed else 0x4001 | a for a in reads]
    writes = [(a & 0x7FFF, d, s) for a, d, s in writes]
    known = set(bench.memory)

    bench.sender(bus.awvalid, bus.awready, [[(bus.awaddr, a)] for a, _, _ in writes])
    bench.sender(bus.wvalid, bus.wready, [[(bus.wdata, d), (bus.wstrb, s)] for _, d, s in writes])
    bench.sender(bus.arvalid, bus.arready, [[(bus.araddr, a)] for a in reads])
    answers = bench.receiver(bus.bvalid, bus.bready, [bus.bresp], len(writes))
    data = bench.receiver(bus.rvalid, bus.rready, [bus.rresp, bus.rdata], len(reads))
    bench.sim.add_testbench(bench.watch, background=True)
    bench.sim.run()
    for _, _, strobe in writes:
        COVERAGE.hit("strobes", {15: "all", 0: "none"}.get(strobe, "some"))
    for kind, found in (("write", answers), ("read", data)):
        for response, *_ in found:
            COVERAGE.hit("answer", (kind, AxiResponse(response).name))

    assert bench.writes == [(a, d) for a, d, s in writes if s == 15]
    assert answers == [(OKAY if s == 15 and a in known else SLVERR,) for a, _, s in writes]
    assert data == [(OKAY, fixed[a]) if a in fixed else (SLVERR, 0) for a in reads]


@pytest.mark.parametrize("distance", [-7, -1, 0, 1, 7])
def test_address_and_data_at_any_distance(distance: int) -> None:
    bench = Bench(0.0, seed=1)
    bus = bench.dut.bus
    edges: list[int] = []

    async def process(ctx: Any) -> None:
        ctx.set(bus.bready, 1)
        for cycle in range(20):
            ctx.set(bus.awvalid, cycle == max(0, -distance))
            ctx.set(bus.wvalid, cycle == max(0, distance))
            ctx.set(bus.awaddr, 8)
            ctx.set(bus.wdata, 99)
            ctx.set(bus.wstrb, 15)
            _, _, valid, resp = await ctx.tick().sample(bus.bvalid, bus.bresp)
            if valid:
                edges.append(cycle)
                assert resp == OKAY

    bench.sim.add_testbench(process)
    bench.sim.run()
    assert bench.writes == [(8, 99)]
    assert edges == [abs(distance) + 2]


def test_read_latency() -> None:
    bench = Bench(0.0, seed=2)
    bus = bench.dut.bus
    edges: list[int] = []

    async def process(ctx: Any) -> None:
        ctx.set(bus.rready, 1)
        for cycle in range(6):
            ctx.set(bus.arvalid, cycle == 0)
            ctx.set(bus.araddr, 12)
            _, _, valid, value = await ctx.tick().sample(bus.rvalid, bus.rdata)
            if valid:
                edges.append(cycle)
                assert value == 0x1003

    bench.sim.add_testbench(process)
    bench.sim.run()
    assert edges == [2]


def test_address_bits_are_checked() -> None:
    with pytest.raises(ValueError, match=r"address_bits is 2; it must be in 3\.\.64"):
        AxiLite(2)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
