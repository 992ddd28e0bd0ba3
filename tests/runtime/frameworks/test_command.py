"""``sley compile`` and ``sley run``, on a file of a network and on a model of ONNX."""

from pathlib import Path

import numpy as np
import pytest
from small_network import random, small_network
from typer.testing import CliRunner

from sley.runtime import Device, energy
from sley.runtime.cli import app
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.file import load_network, save_network
from sley.runtime.networks.passes.unused import leave_out_unused

ENGINE = "model:base?memory=32M"


def test_compile_and_run(tmp_path: Path) -> None:
    save_network(leave_out_unused(small_network()), tmp_path / "plain.sley")
    np.save(tmp_path / "x.npy", random(3, 2, 3, 5, 7))
    run = CliRunner()
    made = run.invoke(app, ["compile", str(tmp_path / "plain.sley"), "-o", str(tmp_path / "fused.sley"), "-e", ENGINE])
    assert made.exit_code == 0, made.output
    assert [node.operator for node in load_network(tmp_path / "fused.sley").nodes] == ["Conv", "Conv", "Region"]
    found = []
    for name in ("plain", "fused"):
        arguments = ["run", str(tmp_path / f"{name}.sley"), "-i", f"x={tmp_path / 'x.npy'}", "-o", str(tmp_path / name)]
        result = run.invoke(app, [*arguments, "-e", ENGINE, "-p", "highest"])
        assert result.exit_code == 0, result.output
        assert "no cycles on this engine" in " ".join(result.output.split())
        found.append(np.load(tmp_path / name / "y.npy"))
    np.testing.assert_array_equal(*found)


def test_energy(tmp_path: Path) -> None:
    """By unit and by operator, which take together what the network takes."""
    network = leave_out_unused(small_network())
    save_network(network, tmp_path / "plain.sley")
    arguments = ["run", str(tmp_path / "plain.sley"), "-e", f"{ENGINE}&cycles=on", "--energy"]
    result = CliRunner().invoke(app, [*arguments, "7nm"])
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "by the table 7nm" in text
    assert "3 of 3 operators" in text
    refused = CliRunner().invoke(app, [*arguments, "3nm"])
    assert refused.exit_code == 1
    assert "no node '3nm'" in " ".join(refused.output.split())
    with Device.open(f"{ENGINE}&cycles=on") as device:
        compiled = compile_network(network, device, _fold)
        compiled.launch()
        layers = energy.by_layer(compiled)
        assert [layer.operator.split()[0] for layer in layers] == ["Conv", "Conv", "Region"]
        assert [layer.macs > 0 for layer in layers] == [True, True, False]
        assert sum(layer.launches for layer in layers) == len(compiled.graph.launches)
        assert min(layer.energy.by_unit["matrix"] for layer in layers[:2]) > layers[2].energy.by_unit["matrix"]
        whole = energy.by_launch(compiled.graph, device.stream)
        for unit in ("matrix", "vector", "accumulators"):
            taken = sum(layer.energy.by_unit[unit] for layer in layers)
            assert taken == pytest.approx(sum(each.by_unit[unit] for each in whole))


def _fold(*_: object) -> list[np.ndarray]:
    raise AssertionError("nothing of it is constant")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--energy", "45nm"], "use its option cycles=on"),
        (["-i", "x"], "give a name and what it is, such as data=image.npy"),
        (["-s", "x=2,three"], "a shape is integers with commas between"),
        (["-s", "x=1,3,5,7"], "x has shape"),
        (["-p", "low"], "precision is 'low'"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, tmp_path: Path) -> None:
    save_network(leave_out_unused(small_network()), tmp_path / "plain.sley")
    result = CliRunner().invoke(app, ["run", str(tmp_path / "plain.sley"), "-e", ENGINE, *arguments])
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
