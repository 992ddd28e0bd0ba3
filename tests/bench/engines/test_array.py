"""``sley bench array`` and engine ``profile``, on the smallest chip."""

import csv
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sley.abi.config import preset
from sley.abi.transport import EngineError
from sley.bench.engines import array as array_module
from sley.bench.engines.array import measure_array
from sley.bench.engines.array_command import array
from sley.bench.engines.profile import _part, open_transport
from sley.bench.gemm.measure import bench_problem, measure_gemm
from sley.driver import Driver
from sley.runtime.device.device import Device
from sley.sim.build.toolchain import find_c_compiler, find_compiler, find_verilator

pytestmark = pytest.mark.skipif(
    not (find_c_compiler() and find_compiler() and find_verilator()), reason="needs a compiler and Verilator"
)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))


@pytest.mark.campaign
def test_array(tmp_path: Path, own_cache: None) -> None:
    app = typer.Typer()
    app.command()(array)
    path = tmp_path / "numbers.csv"
    arguments = ["nano", "--cycles", "500", "--rounds", "1", "--flags", "-O0", "--csv", str(path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "equal outputs in 500 cycles" in result.output
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["engine"] for row in rows if row["quantity"] == "ns a cycle"} == {"fast", "Verilator -O0"}
    assert not (tmp_path / "cache").exists()


@pytest.mark.campaign
def test_outputs_that_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: None) -> None:
    wrong = tmp_path / "wrong.c"
    text = array_module.FAST_HOST.read_text()
    wrong.write_text(text.replace("set_swap(model, swap);", "set_swap(model, 0);"))
    monkeypatch.setattr(array_module, "FAST_HOST", wrong)
    with pytest.raises(EngineError, match="disagree about the array of nano"):
        list(measure_array(preset("nano"), 500, 1, ("-O0",)))


@pytest.mark.campaign
def test_profile() -> None:
    transport = open_transport("nano", {"memory": "1M"})
    with Device(Driver(transport)) as device:
        before = {cost.name: cost for cost in transport.part_costs()}
        transport.start_profile()
        assert all(cost.runs == 0 for cost in transport.part_costs())
        measure_gemm(device, bench_problem((8, 8, 8)))
        after = {cost.name: cost for cost in transport.part_costs()}
    assert before.keys() == after.keys()
    assert after["processing element"].count == device.config.array**2
    assert after["vector lane"].count == device.config.array
    assert before["command processor"].runs > 0
    for cost in (after["processing element"], after["Load"]):  # routers of nano are in fragments of their neighbours
        assert cost.runs > 0
        assert cost.nanoseconds > 0


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("sley.core#.matrix.array", "processing element"),
        ("sley.core0.matrix.streamer.walk", "rest of a matrix unit"),
        ("sley.core3.load_reader.runs", "Load"),
        ("sley.mesh.request_#_#.west.buffer", "router"),
        ("sley.command.queue1", "command processor"),
        ("sley.bank", "registers and the rest"),
        ("sley", "registers and the rest"),
    ],
)
def test_parts(path: str, kind: str) -> None:
    assert _part(path)[0] == kind
