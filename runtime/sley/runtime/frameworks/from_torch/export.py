"""Modules of PyTorch as networks, by PyTorch's own exporter: ``torch.export``, then operators of ONNX."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from sley.driver import BadRequest, SleyError
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.frameworks.from_torch.gradients import decompositions
from sley.runtime.networks.graph import Network


def read_module(module: torch.nn.Module, arguments: Sequence[Any]) -> Network:
    """A module, called with these arguments, as a network: its parameters are constants, its inputs the tensors among
    the arguments, of their shapes.

    Raises ``BadRequest`` with what the exporter says if it cannot, ``UnsupportedOperator``.
    """
    with _quiet(module):
        program = torch.onnx.export(module, tuple(arguments), dynamo=True, verbose=False)
    assert program is not None
    return read_model(program.model_proto)


def read_graph(graph: torch.nn.Module, arguments: Sequence[Any]) -> Network:
    """A graph of ATen operators, as AOTAutograd makes them of training, forward or backward, as ``read_module``."""
    with _quiet(graph):
        program = torch.export.export(graph, tuple(arguments), strict=False).run_decompositions(decompositions())
        exported = torch.onnx.export(program, dynamo=True, verbose=False)
    assert exported is not None
    return read_model(exported.model_proto)


@contextlib.contextmanager
def _quiet(module: torch.nn.Module) -> Iterator[None]:
    """The exporter at work, without what it prints. Raises ``BadRequest`` with what it says."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            yield
    except SleyError:
        raise
    except Exception as error:  # of any kind, as it comes from the exporter
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        text = str(cause).strip().splitlines() or [type(cause).__name__]
        raise BadRequest(f"PyTorch cannot export {type(module).__name__}: {text[0]}") from error
    finally:
        log.setLevel(level)
