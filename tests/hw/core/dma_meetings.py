"""What meets in the load and the store unit, and rows and addresses at their bounds: programs, and what they hit."""

import random
from collections.abc import Callable, Sequence
from itertools import product

from dma_bench import check, rows_of

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op, Space
from sley.hw.testing.bounds import REACHES, high_bits, reach, reached
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.dma.program import Program
from sley.hw.testing.meetings import count_meetings, every_pair, meetings

AXES = ("chunks", "runs", "slabs")
BY_LIST = ("by list", "by list, refused", "no list")
"""Kinds that only chips with lists have."""
LIST_ROWS = 3
"""The first rows of the accumulators hold the list."""


def dma_coverage(unit: Unit, kinds: Sequence[str]) -> Coverage:
    """Bins that the checks below hit."""
    rows = [(space.name.lower(), axis, *how) for space in Space for axis in AXES for how in REACHES]
    ends = [how for how in REACHES if how[0] == "above"]
    return Coverage(
        f"{unit.name.capitalize()}: what meets",
        {"meets": meetings(kinds), "last row": rows, "end in memory": ends},
    )


def check_meetings(
    config: ChipConfig,
    unit: Unit,
    coverage: Coverage,
    kinds: Sequence[str],
    add: Callable[[random.Random, ChipConfig, Program, str], None],
    *,
    brief: Sequence[str],
    gaps: Sequence[int],
    stress: float,
    latency: tuple[int, int],
) -> None:
    """Commands of each kind right behind those of each kind, as ``add`` adds one.

    ``gaps``: cycles without a command that are chosen from; behind ``brief`` kinds, which soon leave, the first.
    """
    rng, program, pauses = random.Random(len(gaps)), Program(unit), {}
    program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes)
    program.lists = {k: rng.randrange(150) for k in range(LIST_ROWS * config.array)}
    order = ["set"] * len(program.commands)
    for kind in every_pair(kinds, rng):
        pauses[len(order)] = gaps[0] if order[-1] in brief else rng.choice(gaps)
        add(rng, config, program, kind)
        order.append(kind)
    _, commands, signals = check(config, program, seed=1, stress=stress, gaps=pauses, latency=latency)
    count_meetings(coverage, "meets", order, pauses, commands.cycles, signals.cycles)


def check_last_rows(config: ChipConfig, unit: Unit, coverage: Coverage) -> None:
    """Rows just inside of their memory, and outside by every distance, along each loop alone; rows of one high bit."""
    rng, program = random.Random(config.name), Program(unit)
    sizes = {Space.SCRATCHPAD: config.row_bytes, Space.ACCUMULATOR: config.accumulator_row_bytes}
    for space, (at, axis), how in product(Space, enumerate(AXES), REACHES):
        rows, steps, counts = rows_of(config, space), rng.choice([1, 1, 2, 3]), [1, 1, 1]
        counts[at] += steps
        last = reached(rng, *how, rows, 1 << 14)
        first = next(row for row in rng.sample(range(rows), rows) if (last - row) % steps == 0)
        strides = [rng.choice([-1, 1, 99]) for _ in AXES]
        strides[at] = (last - first) // steps
        program.sets(
            run_bytes=(counts[0] - 1) * sizes[space] + rng.randint(1, sizes[space]),
            count2=counts[2],
            chunk_stride=strides[0],
            local_stride=strides[1],
            local_stride2=strides[2],
            **({"chunks": counts[0]} if unit is Unit.LOAD else {}),
        )
        program.move(rng.randrange(100), first, counts[1], space, signal=rng.getrandbits(16))
        coverage.hit("last row", (space.name.lower(), axis, *(reach(last, rows) or ())))
    outside = len(Space) * len(AXES) * sum(how != "just inside" for _, how in REACHES)
    for space in Space:
        for row in high_bits(rows_of(config, space)):
            program.move(0, row, 1, space, signal=rng.getrandbits(16))
            outside += 1
    bench, _, _ = check(config, program)
    assert len(bench.faults) == outside


def check_ends_in_memory(config: ChipConfig, unit: Unit, coverage: Coverage) -> None:
    """Runs that end just inside of the address space, and behind it by every distance."""
    config, size = config.replace(addr_bits=20), 1 << 20
    rng, program, inside = random.Random(config.name), Program(unit), 0
    for runs, how in product((1, 3), coverage.hits["end in memory"]):
        length, stride = rng.choice([1, config.row_bytes]), rng.choice([-7, 0, 5]) if runs > 1 else 0
        last = reached(rng, "above", how[1], size, 1 << 31)
        program.sets(run_bytes=length, mem_stride=stride)
        program.move(last + 1 - length - (runs - 1) * max(stride, 0), 1, runs, signal=rng.getrandbits(16))
        coverage.hit("end in memory", reach(last, size) or ())
        inside += how[1] == "just inside"
    bench, _, _ = check(config, program, memory=size)
    assert len(bench.faults) == sum(command.op is not Op.SET for command in program.commands) - inside
