"""``sley bench inductor``: what it runs agrees with the host."""

import re
from pathlib import Path

import pytest

from sley.abi.install import extra
from sley.bench.networks.inductor_command import row

pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("triton", reason=f"Triton is not installed: {extra('triton')}")
pytest.importorskip("sley.runtime.frameworks.torch")
models = pytest.importorskip("sley.bench.networks.inductor_models")
run = pytest.importorskip("sley.bench.networks.inductor_run").run
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
PAGE = Path(__file__).parents[3] / "docs/reference/inductor.md"
BY_NAME = {model.name: model for model in models.MODELS}


def test_one_line() -> None:
    outcome = run(BY_NAME["layer norm"], ("inductor",))
    assert outcome.error < 1e-6
    assert (outcome.kernels, outcome.operators) == (1, 0)
    assert not outcome.cycles, "the engine has none"
    outcome.cycles = {"eager": 18086, "sley": 12715, "inductor": 3325}
    assert row(outcome) == f"| layer norm | 1 | 0 | {outcome.error:.1e} | 18,086 | 12,715 | 3,325 |\n"


LONG = ("training: attention, SGD", "training: convolution, batch norm, pooling, SGD")
"""Models whose kernels take half a minute to choose blocks for."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.campaign] if name in LONG else []) for name in BY_NAME]
)
def test_models(name: str) -> None:
    """A step of training too."""
    outcome = run(BY_NAME[name], ("eager", "inductor"))
    assert outcome.error < 2e-4
    assert outcome.kernels or outcome.operators


def test_kept_cycles() -> None:
    """No model of the page takes more than 1.4 times the cycles of operators one by one."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| \w.*\d \|$", line)]
    assert [row[1].strip() for row in rows] == list(BY_NAME)
    for cells in rows:
        eager, _, inductor = (int(cell.replace(",", "")) for cell in cells[5:8])
        assert inductor <= 1.4 * eager, cells[1]
