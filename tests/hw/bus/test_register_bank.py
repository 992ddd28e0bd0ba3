"""The register bank against the register map: every register of every preset, by access kind."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

from sley.abi.config import ChipConfig, preset
from sley.abi.registers import Access, PlacedRegister, RegisterMap
from sley.hw.bus.register_bank import RegisterBank, bank_members
from sley.hw.testing.coverage import Coverage

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

    def __init__(self, config: ChipConfig, read_strobes: tuple[str, ...] = ()):
        self.map = RegisterMap(config)
        self.dut = RegisterBank(self.map, read_strobes)
        self.rng = random.Random(1)

    def run(self, test: Any) -> None:
        sim = Simulator(self.dut)
        sim.add_clock(1e-6)
        sim.add_testbench(test)
        sim.run()

    def of(self, access: Access) -> list[PlacedRegister]:
        return [r for r in self.map if r.register.access is access]

    def port(self, placed: PlacedRegister, suffix: str = "") -> Any:
        block = getattr(self.dut, placed.block.name.lower())
        if placed.block.name != "CHIP":
            block = block[placed.index]
        port = getattr(block, placed.register.name.lower() + suffix)
        return Value.cast(port)

    def cover(self, way: str, address: int) -> None:
        placed = self.map.by_address.get(address)
        COVERAGE.hit("access", (way, placed.register.access.name if placed else "none"))

    async def read(self, ctx: Any, address: int) -> tuple[int, int]:
        self.cover("read", address)
        bus = self.dut.bus
        ctx.set(bus.read, 1)
        ctx.set(bus.read_address, address)
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


@pytest.mark.parametrize("name", ["nano", "edge", "base", "quad"])
def test_const_and_reset_values(name: str) -> None:
    bench = Bench(preset(name))

    async def test(ctx: Any) -> None:
        for r in bench.map:
            assert await bench.read(ctx, r.address) == (r.layout.reset, 0), r.name
        for r in bench.of(Access.CONST):
            assert await bench.write(ctx, r.address, ~r.layout.reset & WORD) == 0
            assert await bench.read(ctx, r.address) == (r.layout.reset, 0), r.name

    bench.run(test)


def test_ro() -> None:
    bench = Bench(preset("nano").replace(queues=3))

    async def test(ctx: Any) -> None:
        for r in bench.of(Access.RO):
            value = bench.rng.getrandbits(32)
            ctx.set(bench.port(r), value)
            assert await bench.write(ctx, r.address, ~value & WORD) == 0
            assert await bench.read(ctx, r.address) == (value & r.layout.mask, 0), r.name

    bench.run(test)


def test_rw_stores_its_fields_alone() -> None:
    bench = Bench(preset("nano").replace(queues=8))

    async def test(ctx: Any) -> None:
        values = {}
        for r in bench.of(Access.RW):
            values[r.name] = bench.rng.getrandbits(32)
            assert await bench.write(ctx, r.address, values[r.name]) == 0
        for r in bench.of(Access.RW):
            expected = values[r.name] & r.layout.mask
            assert await bench.read(ctx, r.address) == (expected, 0), r.name
            assert ctx.get(bench.port(r)) == expected

    bench.run(test)


def test_w1c() -> None:
    bench = Bench(preset("nano"))

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


def test_wo_is_a_strobe_of_one_cycle() -> None:
    bench = Bench(preset("nano").replace(queues=2))

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


def test_read_strobe() -> None:
    bench = Bench(preset("nano"), read_strobes=("CHIP.TIME_LO",))
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


def test_unknown_read_strobe() -> None:
    with pytest.raises(ValueError, match=r"CHIP\.NOPE; the map has no such register"):
        bank_members(RegisterMap(preset("nano")), ("CHIP.NOPE",))


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
