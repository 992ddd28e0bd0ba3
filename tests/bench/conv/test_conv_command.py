"""``sley bench conv``: its layers, what it refuses, and that it notices a wrong result."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from sley.bench.conv import measure
from sley.bench.conv.conv_command import PROMISED
from sley.bench.conv.layers import ConvLayer, layers
from sley.bench.gemm.measure import WrongResultError
from sley.runtime import Device
from sley.runtime.cli import app
from sley.sim.engines.options import default_engine

SMALL = ConvLayer("own", "small", 7, 6, 5, 3, 2, 1, 1, 1)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", "conv", *arguments])


def test_layers_are_those_of_the_networks() -> None:
    counts = {name: sum(a.count for a in layers() if a.network == name) for name in PROMISED}
    assert counts == {"resnet50": 53, "mobilenetv1": 13}
    macs = sum(a.count * a.macs for a in layers() if a.network == "resnet50")
    assert macs == 512 * 7_982_688  # the bound that the promise is made of


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-n vgg", "no network 'vgg'; there are resnet50, mobilenetv1"),
        ("-n mobilenetv1 -l conv1", "no layer 'conv1'; there are dw1, dw2"),
        ("-n resnet50 -l conv1 -e model:base?memory=8M", "no cycles were counted: the engine model has none"),
    ],
)
def test_what_is_refused(options: str, message: str) -> None:
    result = run(*options.split())
    assert result.exit_code == 1
    assert message in result.output


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    result = run("--csv", str(tmp_path / "absent" / "numbers.csv"))
    assert result.exit_code != 0
    assert "1 of" not in result.output  # before any layer is measured


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_a_layer_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Device.open("fast:nano?memory=1M") as device:
        found = measure.measure_conv(device, SMALL)
        assert found.cycles > found.bound == -(-4 * 4 * 5 * 9 * 6 // 16)
        monkeypatch.setattr(measure, "_expected", lambda *given: np.zeros((1, 4, 4, 5), np.int8))
        with pytest.raises(WrongResultError, match="conv small differs from numpy in"):
            measure.measure_conv(device, SMALL)
