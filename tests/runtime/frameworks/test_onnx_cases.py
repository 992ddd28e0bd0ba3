"""The tests of onnx for backends: some of them here, all of them slow; against the page of operators."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

import onnx

from sley.bench.networks.onnx_command import onnx_page
from sley.runtime.frameworks.from_onnx.backend import SleyBackend
from sley.runtime.frameworks.from_onnx.score import KNOWN, Case, cases, operator_scores, run_case
from sley.sim.engines.options import default_engine

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "onnx.md").read_text()
WHOLE = set(
    re.findall(r"(?m)^\| (?!operator)(\w+) \|", PAGE.partition("## Operators that count")[2].partition("## Others")[0])
)
ENGINE = "model:base?memory=64M"
STEP = 16
"""Each so-manieth case runs by default."""
BOTH = ("test_gather_elements_1", "test_qlinearmatmul_3D_int8_float32")
BOTH_SLOW = ("test_softmax_axis_1", "test_lstm_defaults")
"""Cases that run on the gateware too."""


def of_page(result: Case) -> bool:
    """Whether a case does what the page says."""
    if result.name in KNOWN:
        return result.outcome in ("wrong", "refused")
    own = len(result.operators) == 1 and result.operators[0] in WHOLE and "_expanded" not in result.name
    return result.outcome in (("pass", "type") if own else ("pass", "type", "refused"))


@pytest.mark.filterwarnings("ignore")
def test_some_cases() -> None:
    assert len(WHOLE) >= 125
    results = [run_case(case, ENGINE) for case in list(cases())[::STEP]]
    assert sum(result.outcome == "pass" for result in results) > 50
    assert not [result for result in results if not of_page(result)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_cases() -> None:
    """No operator fewer than on the page, and the page is what the command prints for this onnx."""
    results = [run_case(case, ENGINE) for case in cases()]
    assert not [result for result in results if not of_page(result)]
    assert {score.name for score in operator_scores(results) if score.whole} >= WHOLE
    if f"onnx {onnx.__version__} " in PAGE:
        assert onnx_page(results) == PAGE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(default_engine() != "fast", reason="no compiler for the fast engine")
@pytest.mark.parametrize("name", [*BOTH, *(pytest.param(name, marks=pytest.mark.slow) for name in BOTH_SLOW)])
def test_the_gateware_gives_the_same_bits(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    for inputs, _ in case.data_sets:
        results = [SleyBackend.prepare(case.model, engine).run(inputs) for engine in (ENGINE, "fast:base?memory=64M")]
        for left, right in zip(*results, strict=True):
            np.testing.assert_array_equal(left, right)
