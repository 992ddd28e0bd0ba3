"""A call on the command line: what is called, arrays by their types, and constants."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime import Buffer, Device, tile
from sley.runtime.device.types import numpy_type

TYPES: dict[str, Any] = {
    "int8": np.int8,
    "int32": np.int32,
    "bool": np.bool_,
    "bf16": numpy_type(ElementType.BF16),
    "fp32": np.float32,
}
_ARRAY = re.compile(r"(\w+)\[([\d, ]+)\]")
_NAMED = re.compile(r"(\w+)=(.*)", re.DOTALL)


def found(name: str) -> Any:
    """What ``module:name`` is; ``nn:name`` is an operator. Modules of the folder at hand are found, too. Raises
    ``BadRequest``."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise BadRequest(f"{name!r} is neither three sizes of a product nor module:name, as in nn:linear")
    if module == "nn":
        module = "sley.runtime.nn.operators"
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BadRequest(f"there is no {name}: {error}") from None
    finally:
        sys.path.pop(0)


@dataclass(frozen=True)
class Arguments:
    """What a call is made with."""

    positional: list[Any]
    named: dict[str, Any]

    @classmethod
    def of(cls, device: Device, texts: Sequence[str]) -> Arguments:
        """Each ``type[sizes]``, an array of zeros, or a constant of Python; by name if it is ``name=...``. Raises
        ``BadRequest``."""
        positional, named = [], {}
        for text in texts:
            name = _NAMED.fullmatch(text)
            if name:
                named[name[1]] = _value(device, name[2])
            else:
                positional.append(_value(device, text))
        return cls(positional, named)


def _value(device: Device, text: str) -> Buffer | Any:
    array = _ARRAY.fullmatch(text)
    if array:
        if array[1] not in TYPES:
            raise BadRequest(f"{text} has no type {array[1]!r}; there are {', '.join(TYPES)}")
        return device.zeros(tuple(int(size) for size in array[2].split(",") if size.strip()), TYPES[array[1]])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise BadRequest(f"{text} is neither an array, as bf16[512,256], nor a constant of Python") from None


def grid_of(text: str) -> Callable[..., Any]:
    """A grid from an expression of constants, numbers and ``cdiv``. Raises ``BadRequest``."""
    try:
        code = compile(text, "--grid", "eval")
    except SyntaxError as error:
        raise BadRequest(f"--grid {text!r}: {error.msg}; it is an expression, as cdiv(512, rows)") from None
    names = [name for name in code.co_names if name != "cdiv"]

    def grid(**constants: Any) -> Any:
        return eval(code, {"__builtins__": {}, "cdiv": tile.cdiv}, constants)

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    grid.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return grid
