"""Modules of PyTorch as networks, by PyTorch's own exporter: ``torch.export``, then operators of ONNX."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from sley.driver import BadRequest
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.networks.graph import Network


def read_module(module: torch.nn.Module, arguments: Sequence[Any]) -> Network:
    """A module, called with these arguments, as a network: its parameters are constants, its inputs the tensors among
    the arguments, of their shapes.

    Raises ``BadRequest`` with what the exporter says if it cannot, ``UnsupportedOperator``.
    """
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(module, tuple(arguments), dynamo=True, verbose=False)
    except Exception as error:  # of any kind, as it comes from the exporter
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        text = str(cause).strip().splitlines() or [type(cause).__name__]
        raise BadRequest(f"PyTorch cannot export {type(module).__name__}: {text[0]}") from error
    finally:
        quiet.setLevel(level)
    assert program is not None
    return read_model(program.model_proto)
