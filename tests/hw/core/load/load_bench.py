"""Random loads, and the load unit beside a loop-by-loop reference."""

import random
from collections.abc import Mapping
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op, Space
from sley.hw.core.load.unit import LoadUnit
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.dma import DmaBench, DmaState, Program
from sley.hw.testing.streams import compiled

MEMORY = 4096


SPACES = [space.name.lower() for space in Space]
KINDS = ["plain", "interleave", "transpose", "both"]
FAULTS = ["LOCAL_ADDRESS", "BUS_ERROR", "BAD_ADDRESS", "BAD_PARAMETER", "ILLEGAL_INSTRUCTION"]
COVERAGE = Coverage(
    "Load",
    {
        "rows go to": [*((space, "plain") for space in SPACES), *(("scratchpad", kind) for kind in KINDS[1:])],
        "bytes of a run": ["none", "one", "less than a row", "a row", "rows and a rest", "whole rows"],
        "runs": ["one", "some"],
        "slabs": ["one", "some"],
        "padding": ["none", "some"],
        **{f"stride of {what}": ["up", "none", "down"] for what in ("chunks", "runs", "slabs", "memory")},
        "fault": [(code, space) for code in FAULTS for space in SPACES],
    },
)


def sign(value: int) -> str:
    return "none" if not value else "up" if value > 0 else "down"


def rows_of(config: ChipConfig, space: Space) -> int:
    return config.scratchpad_rows if space is Space.SCRATCHPAD else config.accumulator_rows


def row_bytes_of(config: ChipConfig, space: Space) -> int:
    return config.row_bytes if space is Space.SCRATCHPAD else config.accumulator_row_bytes


def place(rng: random.Random, counts: list[int], reach: int, limit: int) -> tuple[int, list[int]]:
    """A base and strides, up or down, whose walk stays in [0, limit)."""
    while True:
        strides = [rng.choice([0, *[rng.randint(-reach, reach)] * 7]) for _ in counts]
        ends = [(n - 1) * s for n, s in zip(counts, strides, strict=True)]
        low, high = sum(min(0, e) for e in ends), sum(max(0, e) for e in ends)
        if high - low < limit:
            return rng.randrange(-low, limit - high), strides


def random_load(rng: random.Random, config: ChipConfig, program: Program, permuted: float = 0.3) -> None:
    space, flags = rng.choice(list(Space)), {"interleave": 0, "transpose": 0}
    if rng.random() < permuted:
        space = Space.SCRATCHPAD
        kinds = [(0, 1), (1, 0), (1, 1)] if config.lane_elements() == 2 else [(0, 1)]
        flags["interleave"], flags["transpose"] = rng.choice(kinds)
    pair, block = 1 + flags["interleave"], config.array if flags["transpose"] else 1
    row_bytes = row_bytes_of(config, space)
    runs, slabs, chunks, pads = (rng.choice(n) for n in ([1, 2, 3, 5], [1, 1, 2, 3], [1, 1, 2, 3, 4], [0, 0, 1, 2]))
    if any(flags.values()):
        runs = rng.choice([1, 2, 3, pair * block, pair * block + 1])
    length = rng.choice([0, 1, row_bytes - 1, row_bytes, row_bytes * chunks, rng.randint(1, row_bytes * chunks)])
    units = -(-(runs + pads) // (pair * block))
    limit = rows_of(config, space) - (block - 1)
    row, strides = place(rng, [chunks * pair, units, slabs], 8, limit)
    address, (mem_stride, mem_stride2) = place(rng, [runs, slabs], 200, MEMORY - length)
    values = {
        "run_bytes": length,
        "chunks": chunks,
        "chunk_stride": strides[0],
        "mem_stride": mem_stride,
        "local_stride": strides[1],
        "pad_runs": pads,
        "count2": slabs,
        "mem_stride2": mem_stride2,
        "local_stride2": strides[2],
    }
    names = list(values)
    rng.shuffle(names)
    program.sets(**{name: values[name] for name in names})
    COVERAGE.hit("rows go to", (space.name.lower(), KINDS[flags["interleave"] + 2 * flags["transpose"]]))
    whole, rest = divmod(length, row_bytes)
    size = {0: "none", 1: "one"}.get(length, "rows and a rest" if rest else "a row" if whole == 1 else "whole rows")
    COVERAGE.hit("bytes of a run", "less than a row" if 1 < length < row_bytes else size)
    for name, count in (("runs", runs), ("slabs", slabs)):
        COVERAGE.hit(name, "one" if count == 1 else "some")
    COVERAGE.hit("padding", "some" if pads else "none")
    for name, stride in zip(("chunks", "runs", "slabs", "memory"), (*strides, mem_stride), strict=True):
        COVERAGE.hit(f"stride of {name}", sign(stride))
    program.move(address, row, runs, space, signal=rng.getrandbits(16), **flags)


def check(
    config: ChipConfig,
    program: Program,
    *,
    seed: int = 0,
    stress: float = 0.0,
    gaps: Mapping[int, int] | None = None,
    latency: tuple[int, int] = (3, 3),
    memory: int = MEMORY,
) -> tuple[DmaBench, Any, Any]:
    """Runs the program on the unit and on the reference, and compares everything. ``gaps``: cycles without a command in
    front of some of them."""
    state = DmaState.random(config, Unit.LOAD, random.Random(seed), memory)
    expected = state.copy()
    expected.execute(program)
    bench = DmaBench(compiled(LoadUnit, config), state, seed=seed)
    bench.play_reader(latency, stress / 2, stress / 2)
    bench.play_local_writes(stress)
    items: list[Any] = []
    for pc, payload in enumerate(program.payloads()):
        items += [*[None] * (gaps or {}).get(pc, 0), payload]
    commands = bench.send(bench.dut.command, items, idle=stress / 2)
    signals = bench.receive(bench.dut.signal[0], len(program.commands), pause=stress)
    bench.run()
    assert bench.faults == expected.faults
    assert state.local == expected.local
    assert signals.items == program.signals()
    assert bench.retired == signals.cycles
    for code, pc, _ in bench.faults:
        if program.commands[pc].op is Op.LOAD:
            COVERAGE.hit("fault", (FaultCode(code).name, program.commands[pc].space.name.lower()))
    return bench, commands, signals
