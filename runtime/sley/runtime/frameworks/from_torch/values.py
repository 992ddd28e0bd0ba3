"""Constants in translations to ONNX, whose types the checker need not know."""

from __future__ import annotations

from typing import Any

from onnxscript import opset23 as op


def constant(**value: Any) -> Any:
    """By the attribute of ONNX's Constant: ``value_int=3``, ``value_floats=[1.0, 2.0]``."""
    return op.Constant(**value)


def like(x: Any, number: float) -> Any:
    """A number of the type of x."""
    return op.CastLike(constant(value_float=number), x)
