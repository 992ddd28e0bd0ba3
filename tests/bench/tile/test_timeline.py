"""Timelines: what they say of a unit's time, and that those of the tutorial are current."""

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner

from sley.abi.counters import CounterGroup
from sley.bench.tile.kernels import matmul
from sley.bench.tile.timeline import Timeline, timeline
from sley.driver import NoCycleCounts
from sley.runtime import Device
from sley.runtime.cli import app

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "fused-kernel.md"
ENGINE = "model:base?cycles=on&values=off&memory=16M"
BF16 = ml_dtypes.bfloat16


def test_shares_are_those_of_the_counters() -> None:
    with Device.open(ENGINE) as device:
        a, c = device.zeros((64, 64), BF16), device.zeros((64, 64), BF16)

        def work() -> None:
            matmul[2, 2](a, a, c, rows=32, columns=32, depth=32)

        found = timeline(device, work, 8)
        with device.stream.counted() as count:
            work()
    assert abs(found.cycles - count.cycles) <= 64
    rows = 4 * 2 * 2 * 2 * 32  # blocks, depths, folds and columns of the array, rows
    for group, shares in found.shares.items():
        assert len(shares) == 8
        assert all(0 <= share <= 1 for share in shares), group
    assert abs(sum(found.shares[CounterGroup.MATRIX]) / 8 * found.cycles - rows) <= 0.02 * rows
    assert found.shares[CounterGroup.LOAD][0] > found.shares[CounterGroup.MATRIX][0]
    assert found.shares[CounterGroup.STORE][-1] > found.shares[CounterGroup.MATRIX][-1] == 0


def test_text() -> None:
    text = Timeline(1234, {CounterGroup.LOAD: [0.0, 0.02, 0.3, 0.6, 1.0]}).text()
    assert text.splitlines()[0].startswith("1,234 cycles, 247 each; at work: ░ a little")
    assert text.splitlines()[1] == "load   | ░▒▓█|  38%"


def test_command() -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["bench", "timeline", *arguments])
        return result.exit_code, result.output + (result.stderr or "")

    code, text = run("nn:exp", "bf16[16,64]", "--columns", "4", "-e", ENGINE)
    assert (code, len(text.splitlines())) == (0, 5), text
    for arguments, problem in (
        (("sley.bench.tile.kernels:softmax", "bf16[16,64]", "-e", ENGINE), "say how many blocks"),
        (("nn:exp", "bf16[16,64]", "--core", "4", "-e", ENGINE), "core is 4; the chip base has 1"),
        (("nn:exp", "bf16[16,64]", "-e", "model:base?memory=1M"), "no cycles were counted"),
    ):
        code, text = run(*arguments)
        assert (code, problem in text) == (1, True), text
    with Device.open("model:nano?memory=1M") as device, pytest.raises(NoCycleCounts):
        timeline(device, lambda: None, 2)


@pytest.mark.slow
def test_those_of_the_tutorial_are_current(tmp_path: Path) -> None:
    text = PAGE.read_text()
    names: dict[str, Any] = {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = tmp_path / "page.py"  # kernels read their source
    code.write_text("\n".join(block for block in blocks if "Device.open" not in block))
    exec(compile(code.read_text(), str(code), "exec"), names)
    m, n, k = (names[size] for size in "MNK")
    shapes = (((m, k), BF16), ((n, k), BF16), ((1, n), np.float32), ((m, n), np.float32), ((m, n), BF16))
    with Device.open(ENGINE) as device:
        arrays = [device.zeros(shape, kind) for shape, kind in shapes]
        for step in ("loop", "overlapped", "fused", "chosen"):
            drawn = timeline(device, lambda step=step: names[step](*arrays)).text()  # type: ignore[misc]
            assert drawn in text, f"{step}, in {PAGE.name}, is now:\n{drawn}"
