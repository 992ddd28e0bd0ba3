"""Tilings measured with time alone: as long as on the gateware, and the fastest is never slower than the planner's."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sley.abi.config import PRESETS
from sley.abi.transport import computes
from sley.bench.gemm.measure import WrongResultError, bench_problem, measure_gemm
from sley.bench.gemm.tilings import Tilings, measure_tilings
from sley.runtime import Device
from sley.runtime.cli import app
from sley.runtime.kernels.gemm.plan import candidates
from sley.runtime.kernels.gemm.tuned import tuned
from sley.sim.engines.options import default_engine

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

TIME_ALONE = "model:nano?memory=1M&cycles=on&values=off"
SIZES = [(9, 8, 12), (40, 13, 31), (1, 64, 64), (64, 1, 9)]
SHAPES = "family,layer,M,N,K,count\n" + "".join(f"mine,{k},{m},{n},{d},1\n" for k, (m, n, d) in enumerate(SIZES))


def test_time_alone_takes_the_cycles_of_the_gateware() -> None:
    found = []
    for url in (TIME_ALONE, "fast:nano?memory=1M"):
        with Device.open(url) as device:
            assert computes(device.driver.transport) == (url != TIME_ALONE)
            problems = [bench_problem(size, trans_b=True) for size in SIZES[:2]]
            found.append([measure_tilings(device, problem, 4, lambda text: None) for problem in problems])
    assert found[0] == found[1]


def test_the_fastest() -> None:
    plans = candidates(PRESETS["nano"], bench_problem((40, 13, 31)), 3)
    assert Tilings(plans, [90, 80, 80]).best == 1
    assert Tilings(plans, [90, 80, 80]).saved == pytest.approx(1 / 9)
    assert Tilings(plans, [80, 80, 90]).best == 0


def test_a_device_that_computes_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sley.bench.gemm.measure.computes", lambda transport: True)
    with Device.open(TIME_ALONE) as device, pytest.raises(WrongResultError):
        measure_gemm(device, bench_problem((9, 8, 12)))


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sley.runtime.kernels.gemm.tuned.cache_folder", lambda: tmp_path)
    shapes = tmp_path / "shapes.csv"
    shapes.write_text(SHAPES + "mine,again,9,8,12,1\n")
    result = CliRunner().invoke(app, ["bench", "plans", "-e", TIME_ALONE, "--shapes", str(shapes), "-c", "3", "--keep"])
    assert result.exit_code == 0, result.output
    assert "4 products: the planner's choice is the fastest of " in result.output
    with Device.open(TIME_ALONE) as device:
        kept = tuned(device.config)
        assert set(kept) == {bench_problem(size) for size in SIZES}
        for problem, plan in kept.items():
            planned = candidates(device.config, problem, 1)[0]
            assert measure_gemm(device, problem, plan).cycles <= measure_gemm(device, problem, planned).cycles
