"""``triton.language.extra.libdevice`` on Sley: functions of ``nn``, under the names that they have there."""

from __future__ import annotations

from typing import Any

from triton.language import core

from sley.runtime.frameworks.from_triton.external import FLOATS, OF_TWO, TESTS


def _of_one(name: str, to: str) -> Any:
    def function(arg0: Any, _semantic: Any = None) -> Any:
        forms = {(core.dtype("fp32"),): (f"sley_{name}", core.dtype(to))}
        return core.extern_elementwise("", "", [arg0], forms, is_pure=True, _semantic=_semantic)

    return core.extern(function)


def _of_two(name: str) -> Any:
    def function(arg0: Any, arg1: Any, _semantic: Any = None) -> Any:
        fp32 = core.dtype("fp32")
        forms = {(fp32, fp32): (f"sley_{name}", fp32)}
        return core.extern_elementwise("", "", [arg0, arg1], forms, is_pure=True, _semantic=_semantic)

    return core.extern(function)


globals().update({name: _of_one(name, "fp32") for name in FLOATS})
globals().update({name: _of_one(name, "int32") for name in TESTS})
globals().update({name: _of_two(name) for name in OF_TWO})
