"""``triton.language.extra.libdevice`` on Sley: functions of ``nn`` that Triton's language does not have, and those that it
has as they are here."""

from __future__ import annotations

from typing import Any

from triton.language import core

from sley.runtime.frameworks.from_triton.external import FLOATS, TESTS


def _function(name: str, to: str) -> Any:
    def function(arg0: Any, _semantic: Any = None) -> Any:
        forms = {(core.dtype("fp32"),): (f"sley_{name}", core.dtype(to))}
        return core.extern_elementwise("", "", [arg0], forms, is_pure=True, _semantic=_semantic)

    return core.extern(function)


globals().update({name: _function(name, "fp32") for name in FLOATS})
globals().update({name: _function(name, "int32") for name in TESTS})
