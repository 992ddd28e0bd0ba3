"""Energy against toggles: the fit, and a small run on the gateware."""

import numpy as np
import pytest

from sley.bench.energy.toggles import INSTANCES, Run, fits, loop, measure_toggles, product
from sley.driver import BadRequest
from sley.sim.engines.options import default_engine

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


def run(name: str, joules: float, toggles: int) -> Run:
    return Run(name, 1, dict.fromkeys(INSTANCES, joules), dict.fromkeys(INSTANCES, toggles))


def test_a_straight_line_is_found() -> None:
    runs = [run(str(x), 1e-9 + 2e-12 * x, x) for x in (5, 1, 9, 4)]
    for fit in fits(runs):
        assert fit.picojoules == pytest.approx(2)
        assert fit.explained == pytest.approx(1)
        assert fit.rank == pytest.approx(1)
        assert abs(fit.worst[1]) < 1e-9


def test_what_is_off_the_line_is_named() -> None:
    runs = [run(str(x), 1e-12 * x, x) for x in range(1, 9)] + [run("off", 20e-12, 4)]
    fit = fits(runs)[0]
    assert fit.worst[0] == "off"
    assert 0.3 < fit.worst[1] < 1
    assert fit.explained < 0.5


def test_ranks_share_places() -> None:
    measured = enumerate([(1, 1.0), (2, 3.0), (2, 5.0), (3, 2.0)])
    fit = fits([run(str(number), joules, toggles) for number, (toggles, joules) in measured])[0]
    ranks = np.corrcoef([0, 1.5, 1.5, 3], [0, 2, 3, 1])[0, 1]
    assert fit.rank == pytest.approx(ranks)


@needs_compiler
def test_gateware() -> None:
    """Counters are the same for all data, toggles are not; a loop leaves all units but the sequencer alone."""
    programs = {"random": product(9, 7, 11), "zeros": product(9, 7, 11, value=0), "loop": loop(50)}
    random, zeros, alone = measure_toggles(programs=programs)
    assert random.joules == zeros.joules
    assert random.cycles == zeros.cycles
    assert random.toggles["matrix"] > 5 * zeros.toggles["matrix"] > 0
    assert random.toggles["vector"] == random.joules["vector"] == 0
    for unit in ("matrix", "scratchpad", "accumulators"):
        assert random.joules[unit] > 0
        assert alone.joules[unit] == alone.toggles[unit] == 0
    assert alone.toggles["sequencer"] > 0


@needs_compiler
def test_too_long_a_program() -> None:
    with pytest.raises(BadRequest, match="at most 30000 are recorded"):
        measure_toggles(programs={"long": loop(20_000)})
