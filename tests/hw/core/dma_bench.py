"""One bench for the units that move rows between memory and local memories, each beside a loop-by-loop reference.

Load and Store take the same kind of program, walk rows and addresses alike, and fault alike; a table below says what
is behind each. A test makes a program and calls ``check``, which compares everything.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Op, Space
from sley.abi.parameters import PARAMS, unit_params
from sley.hw.core.load.unit import LoadUnit
from sley.hw.core.store.unit import StoreUnit
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.dma.bench import DmaBench
from sley.hw.testing.dma.program import Program
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.streams import Traffic, compiled

NANO = PRESETS["nano"].replace(scratchpad_rows=64, accumulator_rows=16)
EDGE = PRESETS["edge"].replace(scratchpad_rows=128, accumulator_rows=32)
CONFIGS = pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda config: config.name)
UNITS = pytest.mark.parametrize("unit", [Unit.LOAD, Unit.STORE], ids=["load", "store"])
MEMORY = 4096
COMPONENTS: Mapping[Unit, Callable[[ChipConfig], Any]] = {Unit.LOAD: LoadUnit, Unit.STORE: StoreUnit}

Values = dict[str, int]
SPACES = [space.name.lower() for space in Space]
STRIDES = ("chunks", "runs", "slabs", "memory")
PERMUTATIONS = ["plain", "interleave", "transpose", "both"]
REFUSALS = {"BUS_ERROR": MEMORY, "PAGE_FAULT": 2 * MEMORY, "PERMISSION": 3 * MEMORY}
"""Addresses that memory refuses, by what the fault is then."""
FAULTS = {
    Unit.LOAD: ["LOCAL_ADDRESS", *REFUSALS, "BAD_ADDRESS", "BAD_PARAMETER", "ILLEGAL_INSTRUCTION"],
    Unit.STORE: ["LOCAL_ADDRESS", *REFUSALS, "BAD_ADDRESS", "BAD_PARAMETER"],
}
OWN_BINS: Mapping[Unit, Mapping[str, Sequence[Any]]] = {
    Unit.LOAD: {
        "rows go to": [*((s, "plain") for s in SPACES), *(("scratchpad", kind) for kind in PERMUTATIONS[1:])],
        "bytes of a run": ["none", "one", "less than a row", "a row", "rows and a rest", "whole rows"],
        "padding": ["none", "some"],
        "fill value": ["zero", "some"],
    },
    Unit.STORE: {
        "rows come from": SPACES,
        "bytes of the last row": ["one", "some", "all but one", "all"],
        "rows of a run": ["one", "some"],
    },
}
COVERAGE = {
    unit: Coverage(
        unit.name.capitalize(),
        {
            **own,
            "runs": ["one", "some"],
            "slabs": ["one", "some"],
            "by a list": ["no", "one row", "rows"],
            **{f"stride of {what}": ["up", "none", "down"] for what in STRIDES},
            "fault": [(code, space) for code in FAULTS[unit] for space in SPACES],
        },
    )
    for unit, own in OWN_BINS.items()
}


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


LIST_ROWS = 4
"""Accumulator rows at the end that hold the lists of random programs, where nothing else is written."""
LIST_REACH = 300
"""Bytes up and down to which their words point."""


def random_list(rng: random.Random, config: ChipConfig, program: Program, runs: int, values: Values) -> dict[str, int]:
    """Makes the next command one by a list, or not; ``values`` are its parameters, in which ``runs`` fit."""
    if not config.gather or rng.random() < 0.6:
        COVERAGE[program.unit].hit("by a list", "no")
        return {}
    first = (config.accumulator_rows - LIST_ROWS) * config.array
    if not program.lists:
        program.lists = {
            first + k: rng.choice([0, rng.randint(-LIST_REACH, LIST_REACH)]) for k in range(LIST_ROWS * config.array)
        }
    values["list_row"] = config.accumulator_rows - rng.randint(-(-runs // config.array), LIST_ROWS)
    COVERAGE[program.unit].hit("by a list", "one row" if runs <= config.array else "rows")
    return {"by_list": 1}


def count_move(coverage: Coverage, counts: Mapping[str, int], strides: Mapping[str, int]) -> None:
    """Hits the bins that loads and stores have in common."""
    for name, count in counts.items():
        coverage.hit(name, "one" if count == 1 else "some")
    for name, stride in strides.items():
        coverage.hit(f"stride of {name}", "none" if not stride else "up" if stride > 0 else "down")


def check(
    config: ChipConfig,
    program: Program,
    *,
    seed: int = 0,
    stress: float = 0.0,
    gaps: Mapping[int, int] | None = None,
    latency: tuple[int, int] = (3, 3),
    memory: int = MEMORY,
) -> tuple[DmaBench, Traffic, Traffic]:
    """Runs a program on its unit, between memories that the bench plays, and compares with the reference.

    ``stress`` is the probability of back-pressure in a cycle, and half of it that of idle sources; ``gaps``: cycles
    without a command in front of some of them. Returns the bench, and the commands and signals as they passed.
    """
    state = DmaState.random(config, program.unit, random.Random(seed), memory)
    bench = DmaBench(compiled(COMPONENTS[program.unit], config), state, seed=seed)
    bench.play_memory(latency, stress / 2)
    commands, signals = run(bench, program, stress, idle=stress / 2, gaps=gaps or {})
    for code, pc, _ in bench.faults:
        if program.commands[pc].op is not Op.SET:
            COVERAGE[program.unit].hit("fault", (FaultCode(code).name, program.commands[pc].space.name.lower()))
    return bench, commands, signals


def run(
    bench: DmaBench, program: Program, pause: float, *, idle: float = 0.0, gaps: Mapping[int, int] | None = None
) -> tuple[Traffic, Traffic]:
    """Plays the local memories, gives the program, and compares all that it leaves with the reference."""
    bench.state.place_lists(program)
    expected = bench.state.copy()
    expected.execute(program)
    bench.play_local(pause)
    items: list[dict[str, int] | None] = []
    for pc, payload in enumerate(program.payloads()):
        items += [*[None] * (gaps or {}).get(pc, 0), payload]
    commands = bench.send(bench.dut.command, items, idle=idle)
    signals = bench.receive(bench.dut.signal[0], len(program.commands), pause=pause)
    bench.run()
    assert bench.faults == expected.faults
    assert bench.state.local == expected.local
    assert bench.state.memory == expected.memory
    assert signals.items == program.signals()
    return commands, signals


Operands = tuple[int, int, int] | tuple[int, int, int, Space]
FaultCase = tuple[Values, Operands, FaultCode, int]
"""What a bad command differs in from a good one, its operands, and the fault with its address."""


def resets(config: ChipConfig, unit: Unit) -> Values:
    return {param.name.lower(): PARAMS[param].reset for param in unit_params(unit, config)}


def check_faults(
    config: ChipConfig,
    unit: Unit,
    cases: Sequence[FaultCase],
    *,
    base: Values,
    good: Values,
    before: Operands | None = None,
    behind: Sequence[tuple[Operands, Values]] = (((37, 1, 3), {}),),
    flags: Values | None = None,
    lists: Mapping[int, int] | None = None,
) -> None:
    """Each fault comes once, in its turn and with its address, and what is around the bad command runs.

    ``base``, ``good``: what differs from its reset, for bad commands and, on top of it, for the good ones ``before``
    and ``behind`` each; ``flags``: those of the bad command and of the one before; ``behind`` has flags for each;
    ``lists``: as in ``Program``.
    """
    base, good = resets(config, unit) | base, resets(config, unit) | base | good
    program, expected = Program(unit, lists=dict(lists or {})), []

    def move(operands: Operands, signal: int, flags: Values) -> None:
        address, *rest = operands
        program.move(address + len(program.commands), *rest, signal=signal, **flags)

    for changes, operands, code, address in cases:
        if before is not None:
            program.sets(**good)
            move(before, 3, flags or {})
        program.sets(**(base | changes))
        expected.append((code, len(program.commands), address & 0xFFFFFFFF))
        program.move(*operands, signal=5, **(flags or {}))
        program.sets(**good)
        for good_operands, good_flags in behind:
            move(good_operands, 6, good_flags)
    for stress in (0.0, 0.3):
        bench, _, _ = check(config, program, seed=7, stress=stress, latency=(3, 20))
        assert bench.faults == expected


def abort(bench: DmaBench, first: Program, second: Program, when: int) -> DmaState:
    """Gives the first program, aborts ``when`` cycles later, and gives the second when all is quiet.

    The second one's signals must come, each once. Returns what memories held when the abort ended.
    """
    dut, state = bench.dut, bench.state
    ended: list[DmaState] = []
    accepted: list[int] = []

    async def commands(ctx: Any) -> None:
        await bench.give(ctx, first.payloads())
        while not ended:
            await ctx.tick()
        await bench.give(ctx, second.payloads())

    async def sequencer(ctx: Any) -> None:
        await ctx.tick().repeat(when)
        ctx.set(dut.abort, 1)
        await ctx.tick()
        quiet = 0
        while quiet < 3:
            _, _, busy, valid, command = await ctx.tick().sample(dut.busy, dut.signal[0].valid, dut.command.valid)
            assert not valid, "a signal later than in the first cycle of an abort (rule 5)"
            quiet = quiet + 1 if not (busy or command) else 0
        assert not ctx.get(dut.busy)
        ctx.set(dut.abort, 0)
        ended.append(state.copy())

    async def signals(ctx: Any) -> None:
        while len(accepted) < len(second.commands):
            ready = bench.rng.random() < 0.7
            ctx.set(dut.signal[0].ready, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.signal[0].valid, dut.signal[0].payload)
            if valid and ready and ended:
                accepted.append(payload)

    for process in (commands, sequencer, signals):
        bench.add(process, wait=True)
    bench.run()
    expected = ended[0].copy()
    expected.clear_params()
    expected.execute(second)
    assert accepted == second.signals()
    assert state.local == expected.local
    assert state.memory == expected.memory
    assert not bench.faults
    return ended[0]
