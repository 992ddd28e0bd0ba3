"""``sley bench networks``: what it refuses, and, slow, that ResNet-50 keeps its promise."""

import pytest
from typer.testing import CliRunner

from sley.bench.networks import networks_command
from sley.bench.networks.resnet import NetworkCycles
from sley.runtime.cli import app

pytest.importorskip("onnx", reason="the extra onnx is not installed")


def test_an_engine_without_cycles_is_refused() -> None:
    result = CliRunner().invoke(app, ["bench", "networks", "--engine", "model:base?memory=8M"])
    assert result.exit_code != 0
    assert "no cycles were counted: the engine model has none" in f"{result.output}{result.exception}"


@pytest.mark.parametrize(("cycles", "code"), [(1_000, 0), (1_100, 1)])
def test_the_promise(monkeypatch: pytest.MonkeyPatch, cycles: int, code: int) -> None:
    found = NetworkCycles("resnet50", 59, 62, 512_000, 1.0, cycles, 1_000)
    monkeypatch.setattr("sley.bench.networks.resnet.measure_resnet", lambda device: found)
    engine = "model:base?memory=8M&cycles=on&values=off"
    result = CliRunner().invoke(app, ["bench", "networks", "--engine", engine])
    assert result.exit_code == code
    assert ("90.9% of its bound, promised 92%" in result.output) == bool(code)


@pytest.mark.slow
def test_resnet() -> None:
    result = CliRunner().invoke(app, ["bench", "networks"])
    assert result.exit_code == 0, result.output
    assert networks_command.PROMISED == 0.92
