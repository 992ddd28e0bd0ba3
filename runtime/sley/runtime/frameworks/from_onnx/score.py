"""The score on the tests of onnx itself: each operator with all its cases on types that the device has."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from sley.driver import SleyError
from sley.runtime.errors import UnsupportedType
from sley.runtime.frameworks.from_onnx.backend import SleyBackend

TYPES = ("bool", "int8", "int32", "int64", "bfloat16", "float32")
"""Types of cases that count: those that the device has, and int64, which it keeps in int32."""
OF_INTEGERS = (
    "ConvInteger",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "MatMulInteger",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
)
"""Operators whose uint8 stands for reals or is less a zero point: the device keeps it 128 less, and it counts, too."""
EVERY: Any = None
"""Of onnx's ``collect_testcases``: the cases of all operators."""
EXPANDED = "_expanded"
"""In names of cases in which an operator is replaced by those that its specification makes it of."""
_RANDOM = (
    "test_bernoulli_seed",
    "test_bernoulli_seed_expanded",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
)
KNOWN = {
    "test_adam_multiple": "expects epsilon 0.01, which its node does not carry",
    "test_scan_sum": "has a batch, of opset 8, which the conversion of onnx takes from the model and not from its data",
    "test_dft_inverse": "wants zeros within 1e-7, which are sums of 45 that cancel out in float32",
    "test_dft_inverse_opset19": "wants zeros within 1e-7, which are sums of 45 that cancel out in float32",
    "test_dynamicquantizelinear": "has a quotient on a tie, and x · (1 / scale) is beside it",
    "test_qlinearmatmul_2D_int8_float32": "wraps what is beyond int8, where the specification saturates",
    "test_qlinearmatmul_3D_int8_float32": "wraps what is beyond int8, where the specification saturates",
    **dict.fromkeys(_RANDOM, "wants the numbers that onnx draws, which the specification does not say"),
}
"""Cases that do not pass, and why: they contradict the specification or themselves, or ask for more than fp32 gives or
than the specification says."""


@dataclass(frozen=True)
class Case:
    """A case of onnx: ``outcome`` "pass", "wrong", "refused" or "type"; ``reason``: what was said; ``folded``: whether
    it passed without the device, since all results depend on constants and shapes alone."""

    name: str
    operators: tuple[str, ...]
    outcome: str
    reason: str = ""
    folded: bool = False


@dataclass(frozen=True)
class OperatorScore:
    """Of all cases of an operator: how many passed, how many are on types that the device has, how many passed without
    the device; and why the others failed, if some did.
    """

    name: str
    passed: int
    on_types: int
    cases: int
    folded: int
    reason: str

    @property
    def whole(self) -> bool:
        """Whether it counts: some cases are on types of the device, and all of them pass."""
        return 0 < self.on_types == self.passed

    @property
    def all_folded(self) -> bool:
        """Whether it counts without any work of the device."""
        return self.whole and self.folded == self.passed


def cases() -> Iterator[TestCase]:
    """All cases of nodes in the onnx that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[TestCase] = [case for case in collect_testcases(EVERY) if case.model is not None]
    yield from found


def run_case(case: TestCase, device: str) -> Case:
    """Runs one case on a device, in the tolerance that onnx has for it."""
    model, data = case.model, case.data_sets or []
    assert model is not None
    operators = tuple(dict.fromkeys(node.op_type for node in model.graph.node))
    folded = True
    try:
        data = [([_read(value) for value in inputs], [_read(value) for value in wanted]) for inputs, wanted in data]
        arrays = [array for pair in data for side in pair for array in side]
        if any(not isinstance(array, np.ndarray | np.generic) for array in arrays):
            return Case(case.name, operators, "type", "sequences, maps or options")
        kinds = {str(np.asarray(array).dtype) for array in arrays}
        own = {"uint8"} if len(operators) == 1 and operators[0] in OF_INTEGERS else set()
        if kinds - {*TYPES, *own}:
            return Case(case.name, operators, "type", ", ".join(sorted(kinds - {*TYPES, *own})))
        prepared = SleyBackend.prepare(model, device)
        for inputs, expected in data:
            found = prepared.run([np.asarray(value) for value in inputs])
            folded = folded and prepared.folded
            for wanted, value in zip(expected, found, strict=True):
                problem = difference(np.asarray(wanted), np.asarray(value), case.rtol, case.atol)
                if problem:
                    return Case(case.name, operators, "wrong", problem)
    except UnsupportedType as error:
        return Case(case.name, operators, "type", str(error).splitlines()[0])
    except SleyError as error:
        return Case(case.name, operators, "refused", str(error).strip().splitlines()[-1].strip())
    return Case(case.name, operators, "pass", folded=folded)


def _read(value: Any) -> Any:
    """What numpy has no type for is kept as onnx stores it."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def difference(wanted: np.ndarray[Any, Any], found: np.ndarray[Any, Any], rtol: float, atol: float) -> str:
    """How a result differs from what is wanted; nothing if it does not."""
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"{found.dtype} of shape {found.shape}, wanted {wanted.dtype} of {wanted.shape}"
    if wanted.dtype.kind in "fV":
        wanted, found = wanted.astype(np.float64), found.astype(np.float64)
        close = np.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True)
        return "" if close.all() else f"differs by up to {np.nanmax(np.abs(found - wanted)):.3g}"
    return "" if (wanted == found).all() else f"{(wanted != found).sum()} of {wanted.size} elements differ"


def operator_scores(results: Iterable[Case]) -> list[OperatorScore]:
    """By operator, in alphabetical order. Cases of several operators, and expanded ones, are left out."""
    own: dict[str, list[Case]] = {}
    for result in results:
        if EXPANDED not in result.name and len(result.operators) == 1:
            own.setdefault(result.operators[0], []).append(result)
    return [_score(name, own[name]) for name in sorted(own)]


def _score(name: str, results: list[Case]) -> OperatorScore:
    on_types = [result for result in results if result.outcome != "type"]
    passed = [result for result in on_types if result.outcome == "pass"]
    failed = [result for result in on_types if result.outcome != "pass"]
    reasons = Counter(reason_of(result) for result in failed)
    if not on_types:
        types = sorted({part for result in results for part in result.reason.split(", ")})
        reasons = Counter({f"no case on types of the device: {', '.join(types)}": 1})
    folded = sum(result.folded for result in passed)
    return OperatorScore(name, len(passed), len(on_types), len(results), folded, "; ".join(reasons))


def reason_of(result: Case) -> str:
    """Why a case failed, without the node that it was said of."""
    if result.name in KNOWN:
        return f"`{result.name}` {KNOWN[result.name]}"
    if result.outcome == "wrong":
        return f"`{result.name}` {result.reason}"
    text = result.reason.partition(": ")[2] if result.reason.startswith(result.operators) else result.reason
    return text or result.reason
