"""Recurrent layers: RNN, GRU and LSTM, one step after the other, for all of a batch.

The part of the gates that depends on inputs is one product for all steps. Each step is a product of the state and a
launch of the elements; sums of gates are float32, states have the type of x. Weights and their order are those of
PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn.elements import plus
from sley.runtime.nn.mapping import FP32, mapped, mapped_many
from sley.runtime.nn.matrices import PRECISIONS, lengthened, matmul
from sley.runtime.nn.shapes import full
from sley.runtime.tile import language as tile


class Recurrent(NamedTuple):
    """``y``: states of all steps, [steps, batch, hidden]; ``h``: the last one; ``c``: the last cell, float32, of an
    LSTM.
    """

    y: Buffer
    h: Buffer
    c: Buffer | None = None


def rnn(
    x: Buffer,
    h: Buffer | None,
    w_ih: Buffer,
    w_hh: Buffer,
    b_ih: Buffer | None = None,
    b_hh: Buffer | None = None,
    *,
    relu: bool = False,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Recurrent:
    """h' = tanh(w_ih · x + b_ih + w_hh · h + b_hh), or ``relu`` in place of tanh.

    Parameters
    ----------
    x: [steps, batch, inputs], bfloat16 or float32. h: [batch, hidden], of the type of x; zeros if not given.
    w_ih: [hidden, inputs]. w_hh: [hidden, hidden], of the type of x; beside a float32 x perhaps what ``lengthened``
        makes of their parts, in the order of ``precision``, so that they are not cut in each call. b_ih, b_hh:
        [hidden].
    precision: of products of float32, as in ``matmul``.
    """
    layer = _Layer(x, h, w_ih, w_hh, b_ih, b_hh, 1, precision, stream)
    for step in range(x.shape[0]):
        layer.run("rnn", _rnn_relu if relu else _rnn, step, [], [])
    return Recurrent(layer.y, layer.h)


def gru(
    x: Buffer,
    h: Buffer | None,
    w_ih: Buffer,
    w_hh: Buffer,
    b_ih: Buffer | None = None,
    b_hh: Buffer | None = None,
    *,
    reset_after: bool = True,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Recurrent:
    """With gates r, z, n: r, z = sigmoid(…); n = tanh(w_in · x + b_in + r · (w_hn · h + b_hn)); h' = n + z · (h - n).

    Parameters as those of ``rnn``, with [3 · hidden, …] for r, z and n. ``reset_after``: without it, r multiplies h in
    front of the product: n = tanh(w_in · x + b_in + w_hn · (r · h) + b_hn), with two products in each step.
    """
    layer = _Layer(x, h, w_ih, w_hh, b_ih, b_hh, 3, precision, stream)
    for step in range(x.shape[0]):
        if reset_after:
            layer.run("gru", _gru, step, [layer.h], [])
        else:
            layer.reset_first(step)
    return Recurrent(layer.y, layer.h)


def lstm(
    x: Buffer,
    h: Buffer | None,
    c: Buffer | None,
    w_ih: Buffer,
    w_hh: Buffer,
    b_ih: Buffer | None = None,
    b_hh: Buffer | None = None,
    *,
    peepholes: tuple[Buffer, Buffer, Buffer] | None = None,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Recurrent:
    """With gates i, f, g, o: c' = sigmoid(f) · c + sigmoid(i) · tanh(g); h' = sigmoid(o) · tanh(c').

    Parameters as those of ``rnn``, with [4 · hidden, …] for i, f, g and o; c: [batch, hidden], float32. ``peepholes``:
    [hidden] each; times c they are added to i and f, and times c' to o.
    """
    layer = _Layer(x, h, w_ih, w_hh, b_ih, b_hh, 4, precision, stream)
    device, shape = Device.of(x), (x.shape[1], layer.hidden)
    cell = full(device, shape, 0, np.float32, stream=stream) if c is None else c
    for step in range(x.shape[0]):
        grown = device.empty(shape, np.dtype(np.float32))
        layer.run("lstm", _lstm, step, [cell, *(peepholes or ())], [grown])
        cell = grown
    return Recurrent(layer.y, layer.h, cell)


def checked_layer(x: Buffer, w_ih: Buffer, w_hh: Buffer, count: int, parts: int = 1) -> tuple[Device, int]:
    """The device of a layer with so many gates, and the size of its state; weights have so many parts of each column.
    Raises ``ShapeMismatch``."""
    (rows, hidden), (outer, inputs) = (
        (*w.shape[:1], w.shape[1] // parts) if w.ndim == 2 else (0, 0) for w in (w_hh, w_ih)
    )
    if x.ndim != 3 or (outer, inputs) != (rows, x.shape[2]) or rows != count * hidden:
        raise ShapeMismatch(
            f"x {x.shape}, w_ih {(outer, inputs)}, w_hh {(rows, hidden)}; they are [steps, batch, inputs], "
            f"[{count} · hidden, inputs] and [{count} · hidden, hidden]"
        )
    return Device.of(x), hidden


class _Layer:
    """A layer at work: ``gates`` of inputs for all steps; ``y``, and ``h``, the state so far."""

    def __init__(
        self,
        x: Buffer,
        h: Buffer | None,
        w_ih: Buffer,
        w_hh: Buffer,
        b_ih: Buffer | None,
        b_hh: Buffer | None,
        count: int,
        precision: str,
        stream: Stream | None,
    ) -> None:
        if precision not in PRECISIONS:
            raise BadRequest(f"precision is {precision!r}; it is {', '.join(map(repr, PRECISIONS))}")
        self.pairs, self.stream = PRECISIONS[precision] if x.dtype == FP32 else (), stream
        w_ih, w_hh = self._in_parts(w_ih), self._in_parts(w_hh)
        self.device, hidden = checked_layer(x, w_ih, w_hh, count, max(len(self.pairs), 1))
        rows = w_hh.shape[0]
        for name, bias in (("b_ih", b_ih), ("b_hh", b_hh)):
            if bias is not None and bias.shape != (rows,):
                raise ShapeMismatch(f"{name} has shape {bias.shape}; it has {rows} elements, as w_hh has rows")
        steps, batch, _ = x.shape
        self.count, self.hidden = count, hidden
        self.w_hh, self.b_hh = w_hh, b_hh
        gates = self.product(x.reshape(steps * batch, -1), w_ih)
        if b_ih is not None:
            mapped("recurrent", plus, gates, b_ih, dtype=FP32, computed=FP32, out=gates, stream=stream)
        self.gates = gates.reshape(steps, batch, rows)
        self.y = self.device.empty((steps, batch, hidden), x.dtype)
        self.h = full(self.device, (batch, hidden), 0, x.dtype, stream=stream) if h is None else h

    def _in_parts(self, weights: Buffer) -> Buffer:
        if self.pairs and weights.dtype == FP32:
            return lengthened(weights, [second for _, second in self.pairs], self.stream)
        return weights

    def product(self, rows: Buffer, weights: Buffer) -> Buffer:
        """rows · weights^T in float32."""
        if self.pairs:
            rows = lengthened(rows, [first for first, _ in self.pairs], self.stream)
        return matmul(rows, weights.T, dtype=np.float32, stream=self.stream)

    def run(self, name: str, function: Callable[..., Any], step: int, more: list[Buffer], outs: list[Buffer]) -> None:
        """A step: gates of the inputs and of the state, bias of the state or 0, ``more``; to the state and ``outs``."""
        of_state = self.product(self.h, self.w_hh)
        parts = [
            values[:, place * self.hidden : (place + 1) * self.hidden]
            for values in (self.gates[step], of_state)
            for place in range(self.count)
        ]
        biases: list[Any] = [0.0] * self.count
        if self.b_hh is not None:
            biases = [self.b_hh[place * self.hidden : (place + 1) * self.hidden] for place in range(self.count)]
        target = self.y[step]
        mapped_many(
            name,
            function,
            *parts,
            *biases,
            *more,
            dtypes=[target.dtype, *(out.dtype for out in outs)],
            computed=FP32,
            outs=[target, *outs],
            stream=self.stream,
        )
        self.h = target

    def reset_first(self, step: int) -> None:
        """A step of a GRU whose state is reset in front of its product."""
        size, more = self.hidden, dict[str, Any](computed=FP32, stream=self.stream)
        gates = self.gates[step]
        biases: list[Any] = [0.0] * 3
        if self.b_hh is not None:
            biases = [self.b_hh[place * size : (place + 1) * size] for place in range(3)]
        of_state = self.product(self.h, self.w_hh[: 2 * size])
        update = self.device.empty(self.h.shape, FP32)
        reset = self.device.empty(self.h.shape, self.h.dtype)
        parts = [values[:, place * size : (place + 1) * size] for values in (gates, of_state) for place in range(2)]
        outs = [reset, update]
        mapped_many("gru", _gates, *parts, *biases[:2], self.h, dtypes=[o.dtype for o in outs], outs=outs, **more)
        of_reset = self.product(reset, self.w_hh[2 * size :])
        target = self.y[step]
        new = (gates[:, 2 * size :], of_reset, biases[2], update, self.h)
        mapped("gru", _renewed, *new, dtype=target.dtype, out=target, **more)
        self.h = target


def _rnn(x: Any, h: Any, bias: Any) -> Any:
    return tile.tanh(x + h + bias)


def _rnn_relu(x: Any, h: Any, bias: Any) -> Any:
    return tile.maximum(x + h + bias, 0.0)


def _gru(xr: Any, xz: Any, xn: Any, hr: Any, hz: Any, hn: Any, br: Any, bz: Any, bn: Any, h: Any) -> Any:
    reset, update = tile.sigmoid(xr + hr + br), tile.sigmoid(xz + hz + bz)
    new = tile.tanh((hn + bn) * reset + xn)
    return (h - new) * update + new


def _gates(xr: Any, xz: Any, hr: Any, hz: Any, br: Any, bz: Any, h: Any) -> tuple[Any, Any]:
    return tile.sigmoid(xr + hr + br) * h, tile.sigmoid(xz + hz + bz)


def _renewed(xn: Any, hn: Any, bn: Any, update: Any, h: Any) -> Any:
    new = tile.tanh(xn + hn + bn)
    return (h - new) * update + new


def lstm_gates(
    xi: Any,
    xf: Any,
    xg: Any,
    xo: Any,
    hi: Any,
    hf: Any,
    hg: Any,
    ho: Any,
    bi: Any,
    bf: Any,
    bg: Any,
    bo: Any,
    cell: Any,
    pi: Any = None,
    pf: Any = None,
    po: Any = None,
) -> tuple[Any, ...]:
    """Gates i, f, g and o, and the cell behind them; the last three are peepholes."""

    def seen(total: Any, hole: Any, cell: Any) -> Any:
        return total if hole is None else total + hole * cell

    i, f = tile.sigmoid(seen(xi + hi + bi, pi, cell)), tile.sigmoid(seen(xf + hf + bf, pf, cell))
    g, kept = tile.tanh(xg + hg + bg), f * cell
    cell = i * g + kept
    return i, f, g, tile.sigmoid(seen(xo + ho + bo, po, cell)), cell


def _lstm(*values: Any) -> tuple[Any, Any]:
    _, _, _, o, cell = lstm_gates(*values)
    return o * tile.tanh(cell), cell
