"""Load and Store by a list: its bounds, its words, faults in its middle, its cycles, and aborts."""

import random
from itertools import product

import pytest
from dma_bench import COMPONENTS, EDGE, MEMORY, NANO, REFUSALS, UNITS, FaultCase, abort, check, check_faults

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import Space
from sley.abi.timing import LIST_LATENCY
from sley.hw.testing.dma.bench import DmaBench
from sley.hw.testing.dma.program import WORD, Program
from sley.hw.testing.dma.reference import DmaState
from sley.hw.testing.streams import compiled

CONFIGS = pytest.mark.parametrize("config", [NANO.replace(gather=True), EDGE], ids=["nano", "edge"])
FIRST_RUN = {Unit.LOAD: LIST_LATENCY + 1, Unit.STORE: LIST_LATENCY + 2}
"""Cycles from a command to its first run."""


def with_list(config: ChipConfig, unit: Unit, row: int, words: list[int]) -> Program:
    program = Program(unit)
    program.lists = {row * config.array + k: word for k, word in enumerate(words)}
    return program


@CONFIGS
@UNITS
def test_lists_at_every_bound(config: ChipConfig, unit: Unit) -> None:
    """Of one word and of all the accumulators, from the first row and the last, whole rows, one more, one less."""
    n, rows = config.array, config.accumulator_rows
    rng = random.Random(config.name)
    program = with_list(config, unit, 0, [rng.randrange(MEMORY // 2) for _ in range(n * rows)])
    program.sets(run_bytes=3, local_stride=0)
    expected = []
    for row, runs in product((0, 1, rows - 2, rows - 1, rows, 0x8000, 0xFFFF), (1, n - 1, n, n + 1, 2 * n, n * rows)):
        program.sets(list_row=row)
        if row + -(-runs // n) > rows:
            expected.append((FaultCode.BAD_PARAMETER, len(program.commands), row))
        program.move(rng.randrange(1000), 1, runs, signal=rng.getrandbits(16), by_list=1)
    program.sets(list_row=0)
    expected.append((FaultCode.BAD_PARAMETER, len(program.commands), 0))
    program.move(0, 1, 0xFFFF, by_list=1)
    bench, _, _ = check(config, program, stress=0.2)
    assert bench.faults == expected
    assert len(set(expected)) > 20


@CONFIGS
@UNITS
def test_offsets_are_taken_modulo_the_word(config: ChipConfig, unit: Unit) -> None:
    """From anywhere to anywhere, up, down and around, from slab to slab, too; MEM_STRIDE plays no part."""
    rng, runs = random.Random(1), 3
    program, expected = Program(unit), []
    program.sets(run_bytes=config.row_bytes, mem_stride=config.row_bytes, count2=3, local_stride2=runs)
    for row, base in enumerate((0, 1, WORD, 1 << 31, (1 << 31) - 1, rng.getrandbits(32), rng.getrandbits(32))):
        targets = [rng.randrange(1000, 3000) for _ in range(runs)]
        program.lists |= {row * config.array + k: target - base for k, target in enumerate(targets)}
        stride = rng.randint(-400, 400)
        program.sets(list_row=row, mem_stride2=stride)
        program.move(base, 0, runs, signal=1, by_list=1)
        expected += [target + slab * stride for slab in range(3) for target in targets]
    bench, _, _ = check(config, program)
    assert [address for _, address, _ in bench.runs] == expected


@CONFIGS
@UNITS
def test_nothing_to_move_needs_no_list(config: ChipConfig, unit: Unit) -> None:
    program = Program(unit)
    program.sets(list_row=0xFFFF, run_bytes=4, count2=0)
    program.move(0, 0, 3, signal=1, by_list=1)
    program.sets(count2=1)
    program.move(0, 0, 0, signal=2, by_list=1)
    program.sets(run_bytes=0)
    program.move(0, 0, 3, signal=3, by_list=1)
    bench, _, _ = check(config, program)
    assert not bench.faults
    assert not bench.list_grants
    assert not bench.runs


@pytest.mark.some(2)
@CONFIGS
@UNITS
def test_faults(config: ChipConfig, unit: Unit) -> None:
    """Each kind in the middle of a list, in the first slab or the second, at its address; what is around runs."""
    bus, rows, limit = config.row_bytes, config.scratchpad_rows, 1 << config.addr_bits
    scratchpad = Space.SCRATCHPAD
    n = config.array
    lists = {0: [0, 9, 40, 3] * 3, n: [40, 9, limit - bus + 2, 7], 2 * n: [0, 5]}
    for k, place in enumerate(REFUSALS.values()):
        lists[(3 + k) * n] = [7, 60, place, 1]
    cases: list[FaultCase] = [
        (
            {"list_row": config.accumulator_rows},
            (0, 0, 1, scratchpad),
            FaultCode.BAD_PARAMETER,
            config.accumulator_rows,
        ),
        ({"list_row": 0}, (0, 0, 0x10000, scratchpad), FaultCode.BAD_PARAMETER, 0x10000),
        ({"list_row": 0}, (0, rows - 2, 4, scratchpad), FaultCode.LOCAL_ADDRESS, rows),
        ({"list_row": 0}, (2, WORD, 4, scratchpad), FaultCode.LOCAL_ADDRESS, WORD),
        ({"list_row": 1}, (0, 0, 4, scratchpad), FaultCode.BAD_ADDRESS, limit - bus + 2),
        ({"list_row": 1}, (0, rows - 2, 4, scratchpad), FaultCode.BAD_ADDRESS, limit - bus + 2),
        ({"list_row": 1}, (5, rows - 1, 4, scratchpad), FaultCode.LOCAL_ADDRESS, rows),
        ({"list_row": 0, "count2": 3, "mem_stride2": MEMORY}, (5, 1, 3, scratchpad), FaultCode.BUS_ERROR, MEMORY + 5),
        *(
            ({"list_row": 3 + k}, (0, 1, 4, scratchpad), FaultCode[code], place if unit is Unit.LOAD else 0)
            for k, (code, place) in enumerate(REFUSALS.items())
        ),
    ]
    if unit is Unit.STORE:  # names where the command began
        cases = [(v, o, code, o[0] if code is FaultCode.BUS_ERROR else address) for v, o, code, address in cases]
    words = {place + k: word for place, given in lists.items() for k, word in enumerate(given)}
    good = {"run_bytes": 2 * bus, "list_row": 2, "local_stride": 2}
    good |= {"chunks": 2} if unit is Unit.LOAD else {}
    behind: list[tuple[tuple[int, int, int], dict[str, int]]] = [((37, 1, 2), {"by_list": 1}), ((37, 1, 2), {})]
    check_faults(
        config, unit, cases, base={"run_bytes": bus}, good=good, behind=behind, flags={"by_list": 1}, lists=words
    )


@pytest.mark.parametrize(("interleave", "transpose"), [(1, 0), (0, 1), (1, 1)])
def test_permuted(interleave: int, transpose: int) -> None:
    """Units of runs from a list, filled up at their end; a fault in a unit keeps all of its rows."""
    config, flags = EDGE, {"interleave": interleave, "transpose": transpose, "by_list": 1}
    n = config.array
    rng = random.Random(3)
    runs = 2 * n + 3
    words = [rng.randrange(2000) for _ in range(runs)]
    for bad in (None, 0, n + 1, 2 * n + 2):
        program = with_list(config, Unit.LOAD, 5, words)
        if bad is not None:
            program.lists[5 * n + bad] = MEMORY
        program.sets(run_bytes=2 * config.row_bytes - 3, chunks=2, chunk_stride=20, list_row=5, fill=0x11223344)
        program.sets(local_stride=n if transpose else 1)
        program.move(11, 0, runs, signal=1, **flags)
        program.move(12, 60, n, signal=2, **flags | {"by_list": 0})
        bench, _, _ = check(config, program, stress=0.1)
        assert [fault[::2] for fault in bench.faults] == ([] if bad is None else [(FaultCode.BUS_ERROR, MEMORY + 11)])


@CONFIGS
@UNITS
@pytest.mark.parametrize("slabs", [1, 7])
def test_a_run_a_cycle(config: ChipConfig, unit: Unit, slabs: int) -> None:
    """From the first on, from slab to slab, too; runs that continue each other are not joined."""
    bus, runs = config.row_bytes, 28 // slabs
    program = with_list(config, unit, 0, [bus * k for k in range(runs)])
    program.sets(run_bytes=bus, mem_stride=bus, count2=slabs, mem_stride2=4, list_row=0)
    program.move(0, 0, runs, signal=1, by_list=1)
    bench, commands, _ = check(config, program)
    cycles = [cycle for cycle, _, _ in bench.runs]
    assert cycles[0] - commands.cycles[-1] == FIRST_RUN[unit]
    if unit is Unit.LOAD:
        assert cycles == list(range(cycles[0], cycles[0] + runs * slabs))
    assert bench.grants[-1] - bench.grants[0] == runs * slabs - 1
    assert not bench.joined


@pytest.mark.some(20)
@CONFIGS
@UNITS
@pytest.mark.parametrize("when", range(4, 44, 4))
def test_abort_at_any_time(config: ChipConfig, unit: Unit, when: int) -> None:
    """Between the read of a word and its run, too: nothing of the list is left for the next one."""
    rng = random.Random(when)
    state = DmaState.random(config, unit, rng, MEMORY)
    first = with_list(config, unit, 0, [rng.randrange(900) for _ in range(4 * config.array)])
    first.sets(run_bytes=config.row_bytes, local_stride=0)
    for _ in range(3):
        first.move(0, 1, 4 * config.array, signal=3, by_list=1)
    second = Program(unit)
    second.sets(run_bytes=config.row_bytes - 1, list_row=1, count2=2, mem_stride2=100, local_stride2=config.array)
    second.move(7, 0, config.array + 1, signal=9, by_list=1)
    state.place_lists(first)
    bench = DmaBench(compiled(COMPONENTS[unit], config), state, seed=when)
    bench.play_memory((10, 30), 0.2)
    bench.play_local(0.3 * (when % 8 == 0))
    abort(bench, first, second, when)
