# amaranth: UnusedElaboratable=no
import random
from typing import Any

import pytest

from sley.abi.timing import SRAM_READ
from sley.hw.core.sram.sram import BankedSram
from sley.hw.testing.streams import Design


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("rows", "width", "banks", "granules", "readers", "writers", "zeros"),
    [
        (32, 24, 4, 3, (1,) * 5, 2, True),
        (16, 8, 1, 1, (1,), 1, False),
        (16, 8, 1, 2, (1, 1, 4), 2, True),
        (8, 64, 4, 4, (1, 16, 16, 4), 3, False),
        (64, 16, 2, 2, (1, 2), 3, True),
        (64, 16, 8, 1, (1, 4, 1), 2, False),
        (64, 8, 16, 1, (8, 1), 1, False),
        (16, 12, 2, 1, (2, 4), 1, False),
    ],
)
def test_random_traffic(
    rows: int, width: int, banks: int, granules: int, readers: tuple[int, ...], writers: int, zeros: bool
) -> None:
    dut = BankedSram(rows, width, banks, granules, readers, writers, zeros)
    rng = random.Random(rows * width)
    depth, granule = rows // banks, width // granules
    memory = [0] * rows
    expected: dict[tuple[int, int], int] = {}  # (cycle, reader): data

    def grants(wanted: list[tuple[bool, int]]) -> list[bool]:
        taken: set[int] = set()
        granted = []
        for valid, row in wanted:
            granted.append(row // depth not in taken)
            if valid:
                taken.add(row // depth)
        return granted

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        for cycle in range(600):
            density = rng.choice((0.1, 0.6, 1.0))
            reads = [(rng.random() < density, rng.randrange(rows)) for _ in readers]
            wanted = [rng.randrange(parts) for parts in readers]
            writes = [(rng.random() < density, rng.randrange(rows)) for _ in range(writers)]
            payloads = [(rng.getrandbits(width), rng.getrandbits(granules)) for _ in range(writers)]
            for port, (valid, row), part in zip(dut.read, reads, wanted, strict=True):
                ctx.set(port.valid, valid)
                ctx.set(port.row, row)
                ctx.set(port.part, part)
            for port, (valid, row), (value, enable) in zip(dut.write, writes, payloads, strict=True):
                ctx.set(port.valid, valid)
                ctx.set(port.row, row)
                ctx.set(port.data, value)
                ctx.set(port.enable, enable)
            assert [ctx.get(p.ready) for p in dut.read] == grants(reads)
            assert [ctx.get(p.ready) for p in dut.write] == grants(writes)
            for k, port in enumerate(dut.read):
                if (cycle, k) in expected:
                    assert ctx.get(port.data) == expected.pop((cycle, k))
                elif zeros and not k:
                    assert ctx.get(port.data) == 0 or cycle < SRAM_READ
            for k, ((valid, row), granted) in enumerate(zip(reads, grants(reads), strict=True)):
                if valid and granted:
                    size = width // readers[k]
                    expected[cycle + SRAM_READ, k] = memory[row] >> (wanted[k] * size) & ((1 << size) - 1)
            for (valid, row), granted, (value, enable) in zip(writes, grants(writes), payloads, strict=True):
                if valid and granted:
                    mask = sum(((1 << granule) - 1) << (granule * g) for g in range(granules) if enable >> g & 1)
                    memory[row] = memory[row] & ~mask | value & mask
            await ctx.tick()

    Design(dut).run([bench])


@pytest.mark.parametrize(("banks", "writers"), [(1, 1), (1, 3), (4, 2)])
def test_clear(banks: int, writers: int) -> None:
    """All rows are zero after as many cycles as a bank has rows, and writers find their rows again behind that."""
    rows = 16
    dut = BankedSram(rows, 8, banks, 1, (1,), writers)

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        async def write(port, row: int) -> None:  # type: ignore[no-untyped-def]
            ctx.set(port.row, row)
            ctx.set(port.data, 0x80 | row)
            ctx.set(port.enable, 1)
            ctx.set(port.valid, 1)
            await ctx.tick()
            ctx.set(port.valid, 0)

        async def read(row: int) -> int:
            ctx.set(dut.read[0].row, row)
            ctx.set(dut.read[0].valid, 1)
            await ctx.tick()
            ctx.set(dut.read[0].valid, 0)
            await ctx.tick().repeat(SRAM_READ - 1)
            return int(ctx.get(dut.read[0].data))

        for port in dut.write:
            for row in range(rows):
                await write(port, row)
            assert [await read(row) for row in range(rows)] == [0x80 | row for row in range(rows)]
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            for _ in range(rows // banks):
                assert ctx.get(dut.clearing)
                await ctx.tick()
            assert not ctx.get(dut.clearing)
            assert not any([await read(row) for row in range(rows)])

    Design(dut).run([bench])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((24, 8, 2, 1, (1,), 1), "rows is 24"),
        ((16, 8, 3, 1, (1,), 1), "banks is 3"),
        ((16, 8, 16, 1, (1,), 1), "at most 8"),
        ((16, 8, 2, 3, (1,), 1), "granules is 3"),
        ((16, 8, 2, 1, (), 1), "readers: 0"),
        ((16, 8, 2, 1, (1,), 0), "writers: 0"),
        ((16, 8, 2, 1, (1, 3), 1), "reader 1 are 3"),
        ((16, 8, 2, 1, (16,), 1), "reader 0 are 16"),
        ((16, 8, 2, 1, (0,), 1), "reader 0 are 0"),
        ((16, 8, 2, 1, (2, 1), 1, True), "one of 2 parts"),
    ],
)
def test_bad_parameters(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BankedSram(*args)
