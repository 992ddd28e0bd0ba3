"""More memory ports: what reads everything once gains, what reuses it does not, and the parts are the whole."""

import pytest

from sley.bench.ports.ports import PARTS, QUAD, cycles, workloads
from sley.sim.engines.options import default_engine
from sley.sim.memory.dram import DramTiming

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
WORKS = {size: {work.name.split()[0]: work for work in workloads(size)} for size in (128, 256)}


def test_the_parts_are_the_chip() -> None:
    for ports, config in PARTS.items():
        assert ports * config.cores == QUAD.cores
        assert config.replace(name="quad", cores_x=2, cores_y=2) == QUAD


@pytest.mark.slow
def test_who_gains() -> None:
    def found(size: int, name: str, bandwidth: int = 0) -> list[int]:
        return [cycles(c, WORKS[size][name], n, DramTiming(bandwidth=bandwidth)) for n, c in PARTS.items()]

    one, two, four = found(256, "sum")
    assert 1.6 < one / two <= 2.05
    assert one / four > 2.5
    one, two, _ = found(128, "product")
    assert one / two < 1.5
    narrow = found(128, "product", bandwidth=8)
    assert narrow[0] / narrow[1] > one / two
