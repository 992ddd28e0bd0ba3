"""The register bank against the register map: every register of every preset, by access kind."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import ResetInserter, Signal, Value
from amaranth.sim import Simulator

from sley.abi.command import READ_STROBES, SHARED
from sley.abi.config import ChipConfig, preset
from sley.abi.registers import Access, PlacedRegister, RegisterMap
from sley.hw.bus.register_bank import RegisterBank, bank_members
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import watching

WORD = 0xFFFF_FFFF

COVERAGE = Coverage(
    "register bank",
    {
        "access": [(way, kind) for way in ("read", "write") for kind in (*(access.name for access in Access), "none")],
        "reserved bits written": [access.name for access in (Access.RW, Access.W1C, Access.WO)],
        "bit of W1C": [(before, what) for before in (0, 1) for what in ("kept", "set", "cleared", "set and cleared")],
    },
)


class Bench:
    """One bank, with blocking accesses on its software side."""

    def __init__(self, config: ChipConfig, read_strobes: tuple[str, ...] = (), shared: tuple[str, ...] = ()):
        self.map = RegisterMap(config)
        self.dut = RegisterBank(self.map, read_strobes, shared)
        self.rng = random.Random(1)

    def run(self, test: Any, design: Any = None) -> None:
        """``design``: what has the bank in it."""
        sim = Simulator(design or self.dut)
        sim.add_clock(1e-6)
        sim.add_testbench(test)
        for part in [] if design else watching(self.dut):
            sim.add_testbench(part, background=True)
        sim.run()

    def of(self, access: Access) -> list[PlacedRegister]:
        return [r for r in self.map if r.register.access is access]

    def is_shared(self, placed: PlacedRegister) -> bool:
        return self.dut.is_shared(placed.block, placed.register)

    def block(self, placed: PlacedRegister) -> Any:
        """The member of the bank that has the register."""
        name = placed.block.name.lower()
        if self.is_shared(placed):
            return getattr(self.dut, f"{name}_shared")
        block = getattr(self.dut, name)
        return block if placed.block.name == "CHIP" else block[placed.index]

    def port(self, placed: PlacedRegister, suffix: str = "") -> Any:
        port = Value.cast(getattr(self.block(placed), placed.register.name.lower() + suffix))
        return port[placed.index] if self.is_shared(placed) and suffix == "_written" else port

    def look(self, ctx: Any, placed: PlacedRegister) -> None:
        """The chip does, at this copy of a register."""
        if self.is_shared(placed) and placed.register.access is Access.RW:
            ctx.set(self.block(placed).index, placed.index)

    def cover(self, way: str, address: int) -> None:
        placed = self.map.by_address.get(address)
        COVERAGE.hit("access", (way, placed.register.access.name if placed else "none"))

    async def read(self, ctx: Any, address: int) -> tuple[int, int]:
        self.cover("read", address)
        bus = self.dut.bus
        ctx.set(bus.read, 1)
        ctx.set(bus.read_address, address)
        placed = self.map.by_address.get(address)
        if placed and self.is_shared(placed) and placed.register.access is not Access.WO:
            assert ctx.get(self.block(placed).read_index) == placed.index
        await ctx.tick()
        ctx.set(bus.read, 0)
        return ctx.get(bus.read_data), ctx.get(bus.read_error)

    async def write(self, ctx: Any, address: int, value: int) -> int:
        self.cover("write", address)
        placed = self.map.by_address.get(address)
        if placed and placed.register.access in (Access.RW, Access.W1C, Access.WO) and value & ~placed.layout.mask:
            COVERAGE.hit("reserved bits written", placed.register.access.name)
        bus = self.dut.bus
        ctx.set(bus.write, 1)
        ctx.set(bus.write_address, address)
        ctx.set(bus.write_data, value)
        await ctx.tick()
        ctx.set(bus.write, 0)
        return int(ctx.get(bus.write_error))


SHARING = pytest.mark.parametrize("shared", [(), SHARED], ids=["own", "shared"])


@SHARING
@pytest.mark.parametrize("name", ["nano", "edge", "base", "quad"])
def test_const_and_reset_values(name: str, shared: tuple[str, ...]) -> None:
    bench = Bench(preset(name), shared=shared)

    async def test(ctx: Any) -> None:
        for r in bench.map:
            assert await bench.read(ctx, r.address) == (r.layout.reset, 0), r.name
        for r in bench.of(Access.CONST):
            assert await bench.write(ctx, r.address, ~r.layout.reset & WORD) == 0
            assert await bench.read(ctx, r.address) == (r.layout.reset, 0), r.name

    bench.run(test)


@SHARING
def test_ro(shared: tuple[str, ...]) -> None:
    bench = Bench(preset("nano").replace(queues=3), shared=shared)

    async def test(ctx: Any) -> None:
        for r in bench.of(Access.RO):
            value = bench.rng.getrandbits(32)
            ctx.set(bench.port(r), value)
            assert await bench.write(ctx, r.address, ~value & WORD) == 0
            assert await bench.read(ctx, r.address) == (value & r.layout.mask, 0), r.name

    bench.run(test)


@SHARING
@pytest.mark.parametrize("queues", [1, 3, 8])
def test_rw_stores_its_fields_alone(queues: int, shared: tuple[str, ...]) -> None:
    bench = Bench(preset("nano").replace(queues=queues), shared=shared)

    async def test(ctx: Any) -> None:
        values = {r.name: r.layout.reset for r in bench.of(Access.RW)}
        for r in bench.of(Access.RW) + bench.rng.choices(bench.of(Access.RW), k=20):
            values[r.name] = bench.rng.getrandbits(32)
            assert await bench.write(ctx, r.address, values[r.name]) == 0
            for other in (r, *bench.rng.choices(bench.of(Access.RW), k=3)):
                bench.look(ctx, other)
                assert ctx.get(bench.port(other)) == values[other.name] & other.layout.mask, other.name
        for r in bench.of(Access.RW):
            assert await bench.read(ctx, r.address) == (values[r.name] & r.layout.mask, 0), r.name

    bench.run(test)


@SHARING
def test_w1c(shared: tuple[str, ...]) -> None:
    bench = Bench(preset("nano"), shared=shared)

    async def test(ctx: Any) -> None:
        for r in bench.of(Access.W1C):
            expected = 0
            for _ in range(50):
                bits, clear = (bench.rng.getrandbits(32) & bench.rng.getrandbits(32) for _ in range(2))
                for bit in (bit for bit in range(32) if r.layout.mask >> bit & 1):
                    what = ("kept", "set", "cleared", "set and cleared")[(bits >> bit & 1) + 2 * (clear >> bit & 1)]
                    COVERAGE.hit("bit of W1C", (expected >> bit & 1, what))
                ctx.set(bench.port(r, "_set"), bits)
                await bench.write(ctx, r.address, clear)
                ctx.set(bench.port(r, "_set"), 0)
                expected = ((expected & ~clear) | bits) & r.layout.mask
                assert ctx.get(bench.port(r)) == expected
                assert await bench.read(ctx, r.address) == (expected, 0)

    bench.run(test)


@SHARING
def test_wo_is_a_strobe_of_one_cycle(shared: tuple[str, ...]) -> None:
    bench = Bench(preset("nano").replace(queues=2), shared=shared)

    async def test(ctx: Any) -> None:
        for r in bench.of(Access.WO):
            value = bench.rng.getrandbits(32)
            assert ctx.get(bench.port(r, "_written")) == 0
            assert await bench.write(ctx, r.address, value) == 0
            assert ctx.get(bench.port(r, "_written")) == 1
            assert ctx.get(bench.port(r)) == value & r.layout.mask
            for other in bench.of(Access.WO):
                assert ctx.get(bench.port(other, "_written")) == (other is r)
            await ctx.tick()
            assert ctx.get(bench.port(r, "_written")) == 0
            assert await bench.read(ctx, r.address) == (0, 0)

    bench.run(test)


def test_addresses_without_a_register_are_errors() -> None:
    bench = Bench(preset("nano"))

    async def test(ctx: Any) -> None:
        candidates = [bench.rng.getrandbits(16) for _ in range(40)]
        candidates += [a + d for a in list(bench.map.by_address)[:20] for d in (1, 2, 3)]
        for address in candidates:
            if address not in bench.map.by_address:
                assert await bench.read(ctx, address) == (0, 1)
                assert await bench.write(ctx, address, WORD) == 1
        for r in bench.map:
            assert await bench.read(ctx, r.address) == (r.layout.reset, 0), r.name

    bench.run(test)


@SHARING
def test_read_strobe(shared: tuple[str, ...]) -> None:
    bench = Bench(preset("nano"), read_strobes=READ_STROBES, shared=shared)
    placed = bench.map["CHIP.TIME_LO"]
    bus, strobe = bench.dut.bus, bench.port(placed, "_read")

    async def test(ctx: Any) -> None:
        for r in bench.map:
            ctx.set(bus.read, 1)
            ctx.set(bus.read_address, r.address)
            assert ctx.get(strobe) == (r is placed)
            await ctx.tick()
        ctx.set(bus.read, 0)
        ctx.set(bus.read_address, placed.address)
        assert ctx.get(strobe) == 0

    bench.run(test)


def test_reset_of_shared_registers() -> None:
    """What was written before it reads as the reset value after it."""
    bench = Bench(preset("nano"), shared=SHARED)
    reset = Signal()

    async def test(ctx: Any) -> None:
        registers = [r for r in bench.of(Access.RW) if f"{r.block.name}.{r.register.name}" in SHARED]
        assert len(registers) == 2 * bench.map.config.queues
        for r in registers:
            await bench.write(ctx, r.address, WORD)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await bench.write(ctx, registers[0].address, 5)
        for r in registers:
            bench.look(ctx, r)
            expected = 5 if r is registers[0] else r.layout.reset
            assert await bench.read(ctx, r.address) == (expected, 0)
            assert ctx.get(bench.port(r)) == expected

    bench.run(test, ResetInserter(reset)(bench.dut))


@pytest.mark.parametrize(
    ("option", "names", "message"),
    [
        ("read_strobes", ("CHIP.NOPE",), r"read_strobes names CHIP\.NOPE; the map has no such register"),
        ("shared", ("QUEUE.NOPE", *SHARED), r"shared names QUEUE\.NOPE; the map has no such register"),
        ("shared", ("CHIP.IRQ_STATUS",), r"CHIP\.IRQ_STATUS; the map has no such register of kind RO/RW/WO"),
    ],
)
def test_unknown_names(option: str, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bank_members(RegisterMap(preset("nano")), **{option: names})


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
