"""``sley tune`` of kernels and operators: what is measured is kept, and what is wrong is said."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sley.runtime import Device, nn
from sley.runtime.cli import app
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.gemm.plan import plan, planned_products
from sley.runtime.kernels.gemm.tuned import tuned

ENGINE = "model:base?cycles=on&values=off&memory=4M"
GRID = "(cdiv(64, columns), cdiv(32, rows))"
KERNEL = """
from sley.runtime import tile

@tile.kernel
def doubled(x, out, factor=2.0, rows=tile.choice(8, 16), columns=tile.choice(16, 64)):
    place = tile.block_id(1) * rows, tile.block_id(0) * columns
    tile.store(out, place, (tile.load(x, place, (rows, columns)) * factor).to(out.dtype))

@tile.kernel
def plain(x, out):
    tile.store(out, (0, 0), tile.load(x, (0, 0), x.shape))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a module with kernels is, and what is measured is kept."""
    (tmp_path / "kernels_at_hand.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    for module in (sys.modules["sley.runtime.kernels.gemm.tuned"], sys.modules["sley.runtime.tile.programs"]):
        monkeypatch.setattr(module, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["tune", *arguments, "-e", ENGINE])
    return result.exit_code, " ".join((result.output + (result.stderr or "")).replace("│", " ").split())


def test_a_kernel(folder: Path) -> None:
    code, text = run("kernels_at_hand:doubled", "bf16[32,64]", "out=bf16[32,64]", "factor=3.0", "--grid", GRID)
    assert code == 0, text
    assert all(name in text for name in ("rows", "columns", "predicted", "measured", "planned", "kept"))
    kept = [json.loads(path.read_text().partition("\n")[2]) for path in (folder / "cache/tile/choices").rglob("*.json")]
    assert [one["measured"] is not None for one in kept] == [True]


@pytest.mark.usefixtures("folder")
def test_products_of_an_operator() -> None:
    code, text = run("nn:matmul", "int8[33,40]", "int8[40,17]", "--candidates", "2")
    assert code == 0, text
    assert "gemm 33 x 17 x 40, int8" in text
    with Device.open(ENGINE) as device:
        (problem,) = tuned(device.config)
        with planned_products() as products:
            nn.matmul(device.zeros((33, 40), "int8"), device.zeros((40, 17), "int8"))
        assert products == [problem]
        assert plan(device.config, problem) == tuned(device.config)[problem]
        nn.matmul(device.zeros((3, 4), BF16), device.zeros((4, 7), BF16))
        assert len(products) == 1  # of the calls inside alone


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("4", "4"), "give M N K, each 1 or more"),
        (("4", "0", "4"), "give M N K, each 1 or more"),
        (("nn:nothing", "int8[4]"), "there is no nn:nothing"),
        (("absent_module:nothing", "int8[4]"), "there is no absent_module:nothing: No module named"),
        (("nn:exp", "fp32[4,4]"), "nn:exp makes no product that could be tuned"),
        (("nn:exp", "fp64[4,4]"), "fp64[4,4] has no type 'fp64'; there are int8, int32, bool, bf16, fp32"),
        (("nn:exp", "hello"), "hello is neither an array, as bf16[512,256], nor a constant of Python"),
        (("kernels_at_hand:doubled", "bf16[32,64]", "bf16[32,64]"), "say how many blocks, as --grid"),
        (("kernels_at_hand:plain", "bf16[8,16]", "bf16[8,16]", "--grid", "1"), "plain has no choice"),
        (("kernels_at_hand:doubled", "bf16[8,16]", "bf16[8,16]", "--grid", "cdiv("), "it is an expression, as cdiv"),
        (("kernels_at_hand:doubled", "bf16[8,16]", "bf16[8,16]", "--grid", "lines"), "the grid of doubled takes lines"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes(arguments: tuple[str, ...], problem: str) -> None:
    code, text = run(*arguments)
    assert code != 0
    assert problem in text, text
