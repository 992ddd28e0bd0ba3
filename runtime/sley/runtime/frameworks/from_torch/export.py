"""Modules of PyTorch as networks, by PyTorch's own exporter: ``torch.export``, then operators of ONNX."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from onnx import ModelProto
from torch.onnx._internal.exporter import _core

from sley.driver import BadRequest
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.frameworks.from_torch.effects import without_checks
from sley.runtime.frameworks.from_torch.functions import FUNCTIONS
from sley.runtime.frameworks.from_torch.gradients import decompositions
from sley.runtime.frameworks.from_torch.graphs import Fixed
from sley.runtime.frameworks.from_torch.missing import missing_operators
from sley.runtime.frameworks.from_torch.translations import OPSET, translations
from sley.runtime.frameworks.torch_device.registry import PARTS
from sley.runtime.networks.graph import Network
from sley.runtime.networks.registry import UnsupportedOperator


def read_module(module: torch.nn.Module, arguments: Sequence[Any]) -> Network:
    """A module, called with these arguments, as a network: its parameters are constants, its inputs the tensors among
    the arguments, of their shapes.

    Raises ``UnsupportedOperator`` that lists all operators that ONNX or the device does not have, ``BadRequest`` with
    what the exporter says if it cannot for another reason.
    """
    return _read(module, arguments, module)


def read_graph(graph: torch.nn.Module, arguments: Sequence[Any]) -> Network:
    """A graph of ATen operators, as AOTAutograd makes them of training, forward or backward, as ``read_module``."""
    with _quiet(), without_checks():
        program = torch.export.export(graph, tuple(arguments), strict=False)
        program = program.run_decompositions(decompositions() | PARTS | FUNCTIONS)
    return _read(graph, (), program)


def _read(module: torch.nn.Module, arguments: Sequence[Any], what: Any) -> Network:
    with _quiet(), _in_parts(), without_checks():
        try:
            model = _translated(what, arguments)
        except Exception as error:  # of any kind, as it comes from the exporter
            missing = _missing(what, arguments)
            if missing:
                lines = "\n  ".join(missing)
                raise UnsupportedOperator(f"{_name(module)} has what cannot be translated:\n  {lines}") from None
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            if isinstance(cause, UnsupportedOperator):
                raise cause from None
            text = str(cause).strip().splitlines() or [type(cause).__name__]
            raise BadRequest(f"PyTorch cannot export {_name(module)}: {text[0]}") from error
    return read_model(model)


def _translated(what: Any, arguments: Sequence[Any]) -> ModelProto:
    """By the exporter, with what it raises."""
    program = _core.export(what, tuple(arguments), registry=translations(), opset_version=OPSET, verbose=False)
    model: ModelProto = program.model_proto
    return model


def _name(module: torch.nn.Module) -> str:
    """What a user calls it: graphs that Dynamo made have names of its own."""
    return "a graph" if isinstance(module, (Fixed, torch.fx.GraphModule)) else type(module).__name__


def _missing(what: Any, arguments: Sequence[Any]) -> list[str]:
    """Operators that the exporter cannot translate; none if it fails before it comes to them."""
    try:
        program = (
            what if isinstance(what, torch.export.ExportedProgram) else torch.export.export(what, tuple(arguments))
        )
        return missing_operators(program, lambda graph, given: read_model(_translated(graph, given)))
    except Exception:  # of any kind: what the exporter said is the error
        return []


@contextlib.contextmanager
def _in_parts() -> Iterator[None]:
    """The exporter takes operators apart that ONNX does not have, as the device ``sley`` does. It looks for how to in
    PyTorch's own table, which is as it was behind this."""
    table: dict[Any, Any] = torch._decomp.decomposition_table
    own = PARTS | FUNCTIONS
    before = {operator: table[operator] for operator in own if operator in table}
    table.update(own)
    try:
        yield
    finally:
        for operator in own:
            del table[operator]
        table.update(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter prints."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
