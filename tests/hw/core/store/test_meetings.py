"""What meets in the store unit: each kind of command behind each kind that is still inside, and rows at every bound."""

import random
from collections.abc import Callable

import pytest
from dma_bench import CONFIGS, MEMORY, REFUSALS, rows_of
from dma_meetings import BY_LIST, check_ends_in_memory, check_last_rows, check_meetings, dma_coverage

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.hw.testing.dma.program import Program

KINDS = ["rows", "wide rows", "one beat", "none", "set", "outside", "no address", "refused", "too many", *BY_LIST]
BRIEF = ("none", "set", "too many", "outside", "no address", "no list")
SMALL = [kind for kind in KINDS if kind not in BY_LIST]
"""Of a chip without lists."""
COVERAGE = dma_coverage(Unit.STORE, KINDS)


def add(rng: random.Random, config: ChipConfig, program: Program, kind: str) -> None:
    """A STORE of this kind, or a SET after which the kinds are what they are."""
    if kind == "set":
        choices = {
            "run_bytes": [1, config.row_bytes, 2 * config.row_bytes, 2 * config.accumulator_row_bytes - 1],
            "count2": [1, 1, 2],
            "mem_stride": [-3, 0, 1, config.row_bytes, 2 * config.row_bytes],
            "mem_stride2": [-50, 70],
            "chunk_stride": [-1, 0, 1, 2],
            "local_stride": [-1, 0, 1],
            "local_stride2": [-1, 1],
        }
        if config.gather:
            choices["list_row"] = [0, 1]
        name = rng.choice(list(choices))
        program.sets(**{name: rng.choice(choices[name])})
        return
    space = Space.ACCUMULATOR if kind in ("wide rows", "outside") else Space.SCRATCHPAD
    rows, runs = rows_of(config, space), 1 if kind == "one beat" else rng.choice([1, 2, 3])
    address, row = rng.randrange(200, MEMORY - 400), rows // 2
    if kind == "outside":
        row = rng.choice([-1, rows, 1 << 31])
    if kind == "none":
        runs = 0
    if kind == "no address":
        address, runs = (1 << config.addr_bits) - rng.randrange(1, 4), 1
    if kind == "no list":
        runs = config.accumulator_rows * config.array + 1
    if kind.endswith("refused"):
        address = rng.choice([*REFUSALS.values()]) + rng.randrange(50)
    if kind == "too many":
        runs = 0x10000
    program.move(address, row, runs, space, signal=rng.getrandbits(16), by_list=int(kind in BY_LIST))


@CONFIGS
@pytest.mark.parametrize(
    ("gaps", "stress", "latency"), [((0,), 0.0, (1, 1)), ((1, 2, 5, 11), 0.0, (12, 12)), ((0, 0, 1, 9), 0.4, (1, 30))]
)
def test_meetings(config: ChipConfig, gaps: tuple[int, ...], stress: float, latency: tuple[int, int]) -> None:
    rates = {"gaps": gaps, "stress": stress, "latency": latency}
    check_meetings(config, Unit.STORE, COVERAGE, KINDS if config.gather else SMALL, add, brief=BRIEF, **rates)


@CONFIGS
def test_last_rows(config: ChipConfig) -> None:
    check_last_rows(config, Unit.STORE, COVERAGE)


@CONFIGS
def test_ends_in_memory(config: ChipConfig) -> None:
    check_ends_in_memory(config, Unit.STORE, COVERAGE)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
