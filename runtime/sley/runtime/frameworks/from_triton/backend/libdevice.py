"""``triton.language.extra.libdevice`` on Sley: functions that the vector unit has and Triton's language does not."""

from __future__ import annotations

from typing import Any

from triton.language import core

FUNCTIONS = {"tanh": "sley_tanh", "rint": "sley_round"}
"""Their symbols in TTIR."""


def _function(symbol: str) -> Any:
    def function(arg0: Any, _semantic: Any = None) -> Any:
        fp32 = core.dtype("fp32")
        return core.extern_elementwise("", "", [arg0], {(fp32,): (symbol, fp32)}, is_pure=True, _semantic=_semantic)

    return core.extern(function)


tanh = _function(FUNCTIONS["tanh"])
rint = _function(FUNCTIONS["rint"])
