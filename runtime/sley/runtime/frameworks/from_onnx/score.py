"""The score on the tests of onnx itself: each operator with all its cases on types that the device has."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from sley.driver import SleyError
from sley.runtime.errors import UnsupportedType
from sley.runtime.frameworks.from_onnx.backend import SleyBackend

TYPES = ("bool", "int8", "int32", "int64", "float32")
"""Types of cases that count: those that the device has, and int64, which it keeps in int32."""
EVERY: Any = None
"""Of onnx's ``collect_testcases``: the cases of all operators."""


@dataclass(frozen=True)
class Case:
    """A case of onnx: ``outcome`` "pass", "wrong", "refused" or "type"; ``reason``: what was said."""

    name: str
    operators: tuple[str, ...]
    outcome: str
    reason: str = ""


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
    try:
        arrays = [array for pair in data for side in pair for array in side]
        if any(not isinstance(array, np.ndarray | np.generic) for array in arrays):
            return Case(case.name, operators, "type", "sequences, maps or options")
        kinds = {str(np.asarray(array).dtype) for array in arrays}
        if kinds - set(TYPES):
            return Case(case.name, operators, "type", ", ".join(sorted(kinds - set(TYPES))))
        prepared = SleyBackend.prepare(model, device)
        for inputs, expected in data:
            found = prepared.run([np.asarray(value) for value in inputs])
            for wanted, value in zip(expected, found, strict=True):
                problem = difference(np.asarray(wanted), np.asarray(value), case.rtol, case.atol)
                if problem:
                    return Case(case.name, operators, "wrong", problem)
    except UnsupportedType as error:
        return Case(case.name, operators, "type", str(error).splitlines()[0])
    except SleyError as error:
        return Case(case.name, operators, "refused", str(error).strip().splitlines()[-1].strip())
    return Case(case.name, operators, "pass")


def difference(wanted: np.ndarray[Any, Any], found: np.ndarray[Any, Any], rtol: float, atol: float) -> str:
    """How a result differs from what is wanted; nothing if it does not."""
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"{found.dtype} of shape {found.shape}, wanted {wanted.dtype} of {wanted.shape}"
    if np.issubdtype(wanted.dtype, np.floating):
        close = np.isclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True)
        return "" if close.all() else f"differs by up to {np.nanmax(np.abs(found - wanted)):.3g}"
    return "" if (wanted == found).all() else f"{(wanted != found).sum()} of {wanted.size} elements differ"
