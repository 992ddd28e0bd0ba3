"""Functional coverage: named bins that the tests of a block have to fill.

    COVERAGE = Coverage("router", {"turn": TURNS, "length": range(1, 6)})

    COVERAGE.hit("turn", (side, to))                             # in a test
    watch_streams(bench, COVERAGE, "ports", bench.dut.i, ...)    # or cycle by cycle

    def test_coverage(record_property):                          # the last test of the file
        COVERAGE.check(record_property)

Every bin is declared, so that a test which never comes to one is noticed; what is hit and was not declared is an error.
The bins of a file are filled by all of its tests: run it as a whole, in one process (``--dist loadfile``). The table of
all blocks is printed at the end of each test run.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import product
from typing import Any

from sley.hw.testing.streams import StreamBench

STREAM_STATES = ("idle", "moves", "waits")
"""Of a stream in a cycle: nothing is offered, an item passes, an item is offered and not taken."""


class CoverageError(AssertionError):
    """Bins are empty, or one was hit that was not declared."""


class Coverage:
    """Bins of one block. Parameters: ``block``: its name in the table; ``points``: coverage points and their bins."""

    def __init__(self, block: str, points: Mapping[str, Iterable[Hashable]]) -> None:
        self.block = block
        self.hits = {point: Counter(dict.fromkeys(bins, 0)) for point, bins in points.items()}

    def hit(self, point: str, which: Hashable) -> None:
        """Counts one hit of a bin."""
        if which not in self.hits[point]:
            raise CoverageError(f"{self.block}: {which!r} is no bin of {point}")
        self.hits[point][which] += 1

    def check(self, record_property: Callable[[str, object], None]) -> None:
        """Raises if a bin is empty; else hands the table's row to the report."""
        empty = [f"{point}: {which!r}" for point, bins in self.hits.items() for which, n in bins.items() if not n]
        if empty:
            raise CoverageError(f"{self.block}: {len(empty)} empty bins: {'; '.join(empty)}")
        bins = sum(len(bins) for bins in self.hits.values())
        least = min((n, f"{point}: {which}") for point, bins in self.hits.items() for which, n in bins.items())
        record_property("coverage", [self.block, bins, *least])


def stream_states(streams: int, *never: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The states of several streams in one cycle, without those that the block's data sheet excludes."""
    return [states for states in product(STREAM_STATES, repeat=streams) if states not in never]


def watch_streams(bench: StreamBench, coverage: Coverage, point: str, *streams: Any) -> None:
    """Hits, in every cycle, the bin of the states of these streams."""

    async def watch(ctx: Any) -> None:
        async for _, _, *values in ctx.tick().sample(*(bit for port in streams for bit in (port.valid, port.ready))):
            states = [
                STREAM_STATES[0 if not valid else 1 if ready else 2]
                for valid, ready in zip(values[::2], values[1::2], strict=True)
            ]
            coverage.hit(point, tuple(states))

    bench.add(watch)
