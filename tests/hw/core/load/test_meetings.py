"""What meets in the load unit: each kind of command behind each kind that is still inside, and rows at every bound."""

import random
from collections.abc import Callable

import pytest
from dma_bench import CONFIGS, EDGE, MEMORY, REFUSALS, rows_of
from dma_meetings import BY_LIST, check_ends_in_memory, check_last_rows, check_meetings, dma_coverage

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.hw.testing.dma.program import Program

PERMUTED = {"interleaved": (1, 0), "transposed": (0, 1), "both": (1, 1)}
KINDS = [
    "rows",
    "wide rows",
    *PERMUTED,
    "none",
    "set",
    "outside",
    "outside, transposed",
    "refused",
    "illegal",
    *BY_LIST,
]
BRIEF = ("none", "set", "illegal", "no list")
SMALL = [kind for kind in KINDS if kind not in ("interleaved", "both", *BY_LIST)]
"""Of a chip without bf16 and lists."""
COVERAGE = dma_coverage(Unit.LOAD, KINDS)


def add(rng: random.Random, config: ChipConfig, program: Program, kind: str) -> None:
    """A LOAD of this kind, or a SET after which the kinds are what they are."""
    if kind == "set":
        choices = {
            "run_bytes": [1, config.row_bytes - 1, config.row_bytes],
            "chunks": [1, 2],
            "pad_runs": [0, 0, 1, 2],
            "count2": [1, 1, 2],
            "mem_stride": [-3, 0, 1, config.row_bytes],
            "mem_stride2": [-5, 7],
            "chunk_stride": [-1, 0, 1, 2],
            "local_stride": [-1, 0, 1],
            "local_stride2": [-1, 1],
            "fill": [0, 0x01234567, 0xFEDCBA98],
        }
        if config.gather:
            choices["list_row"] = [0, 1]
        name = rng.choice(list(choices))
        program.sets(**{name: rng.choice(choices[name])})
        return
    interleave, transpose = PERMUTED.get(kind, (0, kind == "outside, transposed"))
    space = Space.ACCUMULATOR if kind in ("wide rows", "illegal") else Space.SCRATCHPAD
    rows, runs = rows_of(config, space), rng.choice([1, 2, 3, config.array + 1])
    address, row = rng.randrange(100, MEMORY - 400), rng.randrange(rows)
    if not kind.startswith("outside"):
        # Not too far from the middle: where it begins, every one of the values above keeps it inside.
        row, runs = rows // 2 + rng.randrange(-2, 2), min(runs, 2 if space is Space.ACCUMULATOR else 5)
    else:
        row = rng.choice([-1, rows, 1 << 31])
    if kind == "none":
        runs = 0
    if kind == "no list":
        runs = config.accumulator_rows * config.array + 1
    if kind.endswith("refused"):
        address = rng.choice([*REFUSALS.values()]) + rng.randrange(50)
    if kind == "illegal":
        transpose = 1
    signal = rng.getrandbits(16)
    flags = {"interleave": interleave, "transpose": int(transpose), "by_list": int(kind in BY_LIST)}
    program.move(address, row, runs, space, signal=signal, **flags)


@CONFIGS
@pytest.mark.parametrize(
    ("gaps", "stress", "latency"), [((0,), 0.0, (3, 3)), ((1, 2, 5, 11), 0.0, (12, 12)), ((0, 0, 1, 9), 0.4, (1, 30))]
)
def test_meetings(config: ChipConfig, gaps: tuple[int, ...], stress: float, latency: tuple[int, int]) -> None:
    rates = {"gaps": gaps, "stress": stress, "latency": latency}
    check_meetings(config, Unit.LOAD, COVERAGE, KINDS if config is EDGE else SMALL, add, brief=BRIEF, **rates)


@CONFIGS
def test_last_rows(config: ChipConfig) -> None:
    check_last_rows(config, Unit.LOAD, COVERAGE)


@CONFIGS
def test_ends_in_memory(config: ChipConfig) -> None:
    check_ends_in_memory(config, Unit.LOAD, COVERAGE)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
