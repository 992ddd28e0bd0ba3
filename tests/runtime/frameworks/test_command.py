"""``sley compile`` and ``sley run``, on a file of a network and on a model of ONNX."""

from pathlib import Path

import numpy as np
import pytest
from small_network import random, small_network
from typer.testing import CliRunner

from sley.runtime.cli import app
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
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
