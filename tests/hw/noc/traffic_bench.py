"""Random packets through one router: each leaves by all of its sides, whole, and in order with those it came behind."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from sley.hw.noc.direction import Direction
from sley.hw.testing.streams import StreamBench, Traffic


class Packets:
    """What was sent into a router, and what must come out of it.

    The payload of each flit is a number of its own, from which its packet is known again.
    """

    def __init__(self) -> None:
        self._expected: defaultdict[tuple[Direction, Direction], list[int]] = defaultdict(list)
        self._origin: list[tuple[Direction, int]] = []

    def add(self, source: Direction, leaves: Iterable[Direction], length: int) -> int:
        """The number of the first flit of the next packet from ``source``."""
        first = len(self._origin)
        self._origin += [(source, first)] * length
        for to in leaves:
            self._expected[source, to] += range(first, first + length)
        return first

    def run(self, bench: StreamBench, pause: float) -> None:
        """Runs the bench, with every side of the router taking flits, and compares."""
        outs: dict[Direction, Traffic] = {}
        for side in Direction:
            count = sum(len(flits) for (_, to), flits in self._expected.items() if to is side)
            outs[side] = bench.receive(bench.dut.side_o(side), count, pause=pause)
        bench.run()
        for (source, to), numbers in self._expected.items():
            assert [x.payload for x in outs[to].items if self._origin[x.payload][0] is source] == numbers
        for out in outs.values():
            for a, b in pairwise(out.items):
                assert a.last or self._origin[a.payload] == self._origin[b.payload], "packets interleaved"
