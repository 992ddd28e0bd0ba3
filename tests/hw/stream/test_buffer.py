from collections.abc import Callable

import pytest

from sley.hw.stream.buffer import StreamBuffer
from sley.hw.testing.coverage import Coverage, stream_states, watch_streams
from sley.hw.testing.streams import StreamBench

COVERAGE = Coverage("stream buffer", {"input, output": stream_states(2, ("waits", "idle"))})


@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.4), (0.9, 0.1)])
def test_order(idle: float, pause: float) -> None:
    bench = StreamBench(StreamBuffer(16), seed=5)
    items = [bench.rng.getrandbits(16) for _ in range(150)]
    sent = bench.send(bench.dut.i, items, idle=idle)
    got = bench.receive(bench.dut.o, len(items), pause=pause)
    watch_streams(bench, COVERAGE, "input, output", bench.dut.i, bench.dut.o)
    bench.run()
    assert got.items == items
    assert all(b > a for a, b in zip(sent.cycles, got.cycles, strict=True))
    if idle == pause == 0:
        assert sent.cycles == list(range(1, 151))
        assert got.cycles == list(range(2, 152))


def test_holds_two() -> None:
    bench = StreamBench(StreamBuffer(8), timeout=50)
    sent = bench.send(bench.dut.i, range(5), name="in")
    bench.receive(bench.dut.o, 1, pause=1.0)
    with pytest.raises(AssertionError, match=r"50 cycles.*in: 2 of 5"):
        bench.run()
    assert sent.items == [0, 1]


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
