"""What Dynamo leaves out of the graphs of a model is named: nothing runs beside them in silence.

Dynamo has no call for a backend when it skips a function, so its callback for the end of a compilation looks at whose
it was, and at what ended it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch._dynamo import callback_handler, convert_frame, graph_break_reasons
from torch._dynamo.exc import Unsupported


class GraphBreak(UserWarning):
    """A model that is compiled in parts, or not at all: the rest runs operator by operator, where its tensors are."""


def name_breaks(backend: Callable[..., Any]) -> None:
    """From now on a warning ``GraphBreak`` says where graphs for a backend end, which functions have none, and why.
    Also lets Dynamo trace recurrent layers, which it skips by default."""
    torch._dynamo.config.allow_rnn = True
    before = 0

    def start(_: Any) -> None:
        nonlocal before
        before = len(graph_break_reasons)

    def end(_: Any) -> None:
        compilation = _compilation()
        if compilation is None or _backend(compilation["compiler_fn"]) is not backend:
            return
        found = [
            f"a graph ends{_place(one.user_stack)}: {_first_line(one.reason)}; what follows it is another one"
            for one in graph_break_reasons[before:]
            if one.graph_break
        ]
        error = sys.exc_info()[1]
        if isinstance(error, Unsupported) and not compilation["one_graph"]:
            name = compilation["code"].co_name
            found.append(
                f"{name} has no graph, and runs operator by operator{_place(error.real_stack)}: {_first_line(error)}"
            )
        for text in dict.fromkeys(found):
            warnings.warn(text, GraphBreak, stacklevel=2)

    forget = callback_handler.clear

    def register() -> None:
        callback_handler.register_start_callback(start)
        callback_handler.register_end_callback(end)

    def clear() -> None:
        """As ``torch._dynamo.reset`` calls it; these two stay."""
        forget()
        register()

    callback_handler.clear = clear
    register()


def _compilation() -> dict[str, Any] | None:
    """What Dynamo knows of the function that it compiles now: the variables of its ``_compile``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_name, frame.f_code.co_filename) != (
        "_compile",
        convert_frame.__file__,
    ):
        frame = frame.f_back
    return None if frame is None else frame.f_locals


def _backend(wrapped: Any) -> Any:
    """The backend itself, below what Dynamo and ``torch.compile`` put around it."""
    for name in ("_torchdynamo_orig_backend", "compiler_fn"):
        wrapped = getattr(wrapped, name, wrapped)
    return wrapped


def _place(stack: Any) -> str:
    return "".join(f" at {frame.filename}:{frame.lineno}" for frame in list(stack or ())[-1:])


def _first_line(reason: Any) -> str:
    return (str(reason).strip().splitlines() or [type(reason).__name__])[0]
