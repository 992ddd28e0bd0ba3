"""More memory ports: what reads everything once gains, what reuses it does not, and the parts are the whole."""

import pytest

from sley.bench.ports.ports import PARTS, QUAD, cycles, workloads
from sley.sim.engines.options import default_engine
from sley.sim.memory.dram import DramTiming

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
WORKS = {work.name.split()[0]: work for work in workloads(256)}


def test_the_parts_are_the_chip() -> None:
    for ports, config in PARTS.items():
        assert ports * config.cores == QUAD.cores
        assert config.replace(name="quad", cores_x=2, cores_y=2) == QUAD


@pytest.mark.slow
def test_who_gains() -> None:
    found = {name: [cycles(c, WORKS[name], n, DramTiming()) for n, c in PARTS.items()] for name in ("sum", "product")}
    one, two, four = found["sum"]
    assert 1.6 < one / two <= 2.05
    assert one / four > 2.5
    one, two, _ = found["product"]
    assert one / two < 1.5
    narrow = [cycles(config, WORKS["product"], n, DramTiming(bandwidth=8)) for n, config in PARTS.items()]
    assert narrow[0] / narrow[1] > one / two
