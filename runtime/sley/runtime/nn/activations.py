"""Operators on single elements: GELU, SiLU."""

from __future__ import annotations

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.kernels.rows.activations import GELU, GELU_TANH, SILU, Activation
from sley.runtime.kernels.rows.elements import element_program
from sley.runtime.nn.arrays import Call


def gelu(
    x: Buffer, approximate: str = "none", *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x * Phi(x)."""
    forms = {"none": GELU, "tanh": GELU_TANH}
    if approximate not in forms:
        raise BadRequest(f"approximate is {approximate!r}; gelu has {' and '.join(map(repr, forms))}")
    return _run(forms[approximate], x, out, stream)


def silu(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x * sigmoid(x)."""
    return _run(SILU, x, out, stream)


def _run(activation: Activation, x: Buffer, out: Buffer | None, stream: Stream | None) -> Buffer:
    call = Call.of(activation.name, activation.chains, x, out, stream)
    device = call.device
    blocks = min(device.config.cores, -(-x.nbytes // device.config.row_bytes))
    program = element_program(device.config, activation, x.nbytes, blocks)
    call.stream.launch(program, [call.x, call.out], (blocks,))
    return call.out
