"""A stand-in for SCALE-Sim, a package of that name with the numbers of the formula; cycles for an engine without."""

import sys
from pathlib import Path

import pytest

from sley.bench.gemm import scalesim
from sley.driver import Driver

STAND_IN = """
import configparser, csv, pathlib

class scalesim:
    def __init__(self, save_disk_space, verbose, config, topology, layout, input_type_gemm):
        assert save_disk_space and input_type_gemm and pathlib.Path(layout).exists()
        self.config = configparser.ConfigParser()
        self.config.read(config)
        self.layers = [line.split(",")[:-1] for line in pathlib.Path(topology).read_text().splitlines()[1:]]

    def run_scale(self, top_path):
        assert self.config["run_presets"]["InterfaceBandwidth"] == "CALC"
        array = self.config["architecture_presets"]
        assert array["Dataflow"] == "ws"
        rows, columns = int(array["ArrayHeight"]), int(array["ArrayWidth"])
        lines = ["LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles,"]
        for index, (name, m, n, k) in enumerate(self.layers):
            assert int(n) != 666, "no such layer"
            folds = -(-int(k) // rows) * -(-int(n) // columns)
            lines.append(f"{index}, 0, {folds * (int(m) + 2 * rows + columns - 2) - 1}, 0,")
        folder = pathlib.Path(top_path) / self.config["general"]["run_name"]
        folder.mkdir()
        (folder / "COMPUTE_REPORT.csv").write_text("\\n".join(lines) + "\\n")
"""


@pytest.fixture
def scalesim_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python that has the stand-in; what is kept of it is in a folder of the test."""
    site = tmp_path / "site"
    (site / "scalesim").mkdir(parents=True)
    (site / "scalesim" / "scale_sim.py").write_text(STAND_IN)
    information = site / "scalesim-3.0.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: scalesim\nVersion: 3.0.0\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setattr(scalesim, "_folder", lambda: tmp_path / "kept")
    return Path(sys.executable)


@pytest.fixture
def cycles_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model, which has none, is quick enough for tests of everything else: its steps stand for them."""
    monkeypatch.setattr(Driver, "has_cycles", True)
