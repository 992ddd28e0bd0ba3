"""Gradients of recurrent layers, from the last step to the first, for all of a batch.

Nothing but the states is kept from the forward pass: the gates of all steps are computed again, by one product with the
inputs and one with the states. Each step back is a launch of the elements and a product with the weights of the state;
gradients of inputs and weights are one product for all steps. Everything between is float32; products of a layer of
bfloat16 take gradients of gates rounded to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn import sums
from sley.runtime.nn.elements import plus, times
from sley.runtime.nn.mapping import FP32, cast, mapped, mapped_many
from sley.runtime.nn.matrices import matmul
from sley.runtime.nn.recurrent import Recurrent, checked_layer, lstm_gates
from sley.runtime.nn.shapes import concat, full
from sley.runtime.tile import language as tile


class RecurrentGradients(NamedTuple):
    """Of ``x`` and ``h``, of the type of x; of weights and biases, float32; of ``c`` and ``peepholes`` of an LSTM,
    float32.
    """

    x: Buffer
    h: Buffer
    w_ih: Buffer
    w_hh: Buffer
    b_ih: Buffer
    b_hh: Buffer
    c: Buffer | None = None
    peepholes: tuple[Buffer, Buffer, Buffer] | None = None


def rnn_backward(
    grad: Buffer,
    made: Recurrent,
    x: Buffer,
    h: Buffer | None,
    w_ih: Buffer,
    w_hh: Buffer,
    b_ih: Buffer | None = None,
    b_hh: Buffer | None = None,
    *,
    relu: bool = False,
    grad_h: Buffer | None = None,
    stream: Stream | None = None,
) -> RecurrentGradients:
    """Of ``rnn``: step by step dh · (1 - y²), or dh where y > 0 with ``relu``, and its products with the weights.

    Parameters
    ----------
    grad: of all states, of the shape of ``made.y``. made: what the layer gave. grad_h: of the last state, besides.
    x, h, w_ih, w_hh, b_ih, b_hh, relu: as the layer was called.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    back = _Back(grad, made, x, h, w_ih, w_hh, 1, stream)
    function = _rnn_relu if relu else _rnn
    for step in back.steps(grad_h):
        back.elements("rnn_backward", function, [grad[step], *back.late, made.y[step]], [back.gates[step]])
        back.late = [back.product(step)]
    return back.gradients()


def gru_backward(
    grad: Buffer,
    made: Recurrent,
    x: Buffer,
    h: Buffer | None,
    w_ih: Buffer,
    w_hh: Buffer,
    b_ih: Buffer | None = None,
    b_hh: Buffer | None = None,
    *,
    reset_after: bool = True,
    grad_h: Buffer | None = None,
    stream: Stream | None = None,
) -> RecurrentGradients:
    """Of ``gru``: of its gates r, z, n, step by step, and their products with the weights; parameters as those of
    ``rnn_backward``."""
    back = _Back(grad, made, x, h, w_ih, w_hh, 3, stream)
    inputs, biases = back.of_inputs(w_ih, b_ih), back.parts(b_hh)
    if not reset_after:
        return _reset_first(back, grad, grad_h, inputs, biases)
    of_state = back.of_states(w_hh)
    inner = back.space(3)
    for step in back.steps(grad_h):
        parts = [*back.parts(inputs[step]), *back.parts(of_state[step]), *biases, back.before[step]]
        outs = [*back.parts(back.gates[step]), *back.parts(inner[step]), back.kept]
        back.elements("gru_backward", _gru, [grad[step], *back.late, *parts], outs)
        back.late = [back.product(step, inner), back.kept]
    return back.gradients(inner)


def _reset_first(
    back: _Back, grad: Buffer, grad_h: Buffer | None, inputs: Buffer, biases: list[Any]
) -> RecurrentGradients:
    """Of a GRU whose state is reset in front of its product."""
    size, w_hh, stream = back.hidden, back.w_hh, back.stream
    of_state = matmul(back.rows(back.before), w_hh[: 2 * size].T, dtype=FP32, stream=stream)
    of_state = of_state.reshape(*back.before.shape[:2], 2 * size)
    reset, state = back.space(1), back.space(1, back.x.dtype)
    left = [inputs[:, :, :size], of_state[:, :, :size], biases[0], back.before]
    back.elements("gru_backward", _reset, left, [reset, state])
    of_reset = back.rows(matmul(back.rows(state), w_hh[2 * size :].T, dtype=FP32, stream=stream), back.before.shape)
    for step in back.steps(grad_h):
        gates, known = back.parts(back.gates[step]), back.before[step]
        right = [*back.parts(inputs[step])[1:], of_state[step][:, size:], of_reset[step], *biases[1:], known]
        back.elements("gru_backward", _renewed, [grad[step], *back.late, *right], [*gates[1:], back.kept])
        of_new = matmul(back.narrow(gates[2]), w_hh[2 * size :], dtype=FP32, stream=stream)
        more = back.device.empty(of_new.shape, FP32)
        back.elements("gru_backward", _of_reset, [of_new, reset[step], known, back.kept], [gates[0], more])
        product = matmul(back.narrow(back.gates[step][:, : 2 * size]), w_hh[: 2 * size], dtype=FP32, stream=stream)
        back.late = [product, more]
    return back.gradients(state=state)


def lstm_backward(
    grad: Buffer,
    made: Recurrent,
    x: Buffer,
    h: Buffer | None,
    c: Buffer | None,
    w_ih: Buffer,
    w_hh: Buffer,
    b_ih: Buffer | None = None,
    b_hh: Buffer | None = None,
    *,
    peepholes: tuple[Buffer, Buffer, Buffer] | None = None,
    grad_h: Buffer | None = None,
    grad_c: Buffer | None = None,
    stream: Stream | None = None,
) -> RecurrentGradients:
    """Of ``lstm``: its cells again from the first step on, then of its gates i, f, g, o, step by step, and their
    products with the weights; parameters as those of ``rnn_backward``. grad_c: of the last cell, besides."""
    back = _Back(grad, made, x, h, w_ih, w_hh, 4, stream)
    steps, batch, size = made.y.shape
    inputs, of_state, biases = back.of_inputs(w_ih, b_ih), back.of_states(w_hh), back.parts(b_hh)
    gates, cells = back.space(4), back.device.empty((steps + 1, batch, size), FP32)
    if c is None:
        full(back.device, (batch, size), 0, FP32, out=cells[0], stream=stream)
    else:
        cast(c, FP32, out=cells[0], stream=stream)
    holes = peepholes or ()
    for step in range(steps):
        parts = [*back.parts(inputs[step]), *back.parts(of_state[step]), *biases, cells[step], *holes]
        back.elements("lstm_backward", lstm_gates, parts, [*back.parts(gates[step]), cells[step + 1]])
    of_cell: Any = 0.0 if grad_c is None else grad_c
    for step in back.steps(grad_h):
        outs = [*back.parts(back.gates[step]), back.device.empty((batch, size), FP32)]
        parts = [*back.parts(gates[step]), cells[step + 1], cells[step], *holes]
        back.elements("lstm_backward", _lstm, [grad[step], *back.late, of_cell, *parts], outs)
        of_cell, back.late = outs[-1], [back.product(step)]
    found = back.gradients()._replace(c=of_cell)
    if peepholes is None:
        return found
    seen = [(0, cells[:steps]), (1, cells[:steps]), (3, cells[1:])]
    of_holes = [back.of_hole(place, cell) for place, cell in seen]
    return found._replace(peepholes=(of_holes[0], of_holes[1], of_holes[2]))


class _Back:
    """A layer on its way back. ``before``: the state in front of each step. ``gates``: gradients of the gates of all
    steps, float32. ``late``: what the step behind adds to the gradient of the state; ``kept``: the part of it that is
    no product."""

    def __init__(
        self,
        grad: Buffer,
        made: Recurrent,
        x: Buffer,
        h: Buffer | None,
        w_ih: Buffer,
        w_hh: Buffer,
        count: int,
        stream: Stream | None,
    ) -> None:
        self.device, self.hidden = checked_layer(x, w_ih, w_hh, count)
        self.shape = (*x.shape[:2], self.hidden)
        for name, array in (("grad", grad), ("y", made.y)):
            if array.shape != self.shape:
                raise ShapeMismatch(f"{name} has shape {array.shape}; states are {self.shape}")
        if made.y.dtype != x.dtype:
            raise BadRequest(f"y is {made.y.dtype} and x {x.dtype}; states have the type of x: give what it gave")
        self.x, self.w_ih, self.w_hh, self.count, self.stream = x, w_ih, w_hh, count, stream
        first = full(self.device, self.shape[1:], 0, x.dtype, stream=stream) if h is None else h
        states = [first.reshape(1, *self.shape[1:])]
        if self.shape[0] > 1:
            states.append(made.y[:-1])
        self.before = concat(states, stream=stream)
        self.gates = self.space(count)
        self.late: list[Any] = []
        self.kept = self.device.empty(self.shape[1:], FP32)

    def space(self, count: int, dtype: Any = FP32) -> Buffer:
        """``count`` gates of all steps."""
        return self.device.empty((*self.shape[:2], count * self.hidden), dtype)

    def steps(self, grad_h: Buffer | None) -> Sequence[int]:
        """From the last one to the first."""
        self.late = [0.0 if grad_h is None else grad_h, 0.0][: 1 if self.count != 3 else 2]
        return range(self.shape[0] - 1, -1, -1)

    def parts(self, values: Buffer | None) -> list[Any]:
        """Each of the gates along the last axis; 0 of a bias that there is not."""
        if values is None:
            return [0.0] * self.count
        size = self.hidden
        return [values[..., place * size : (place + 1) * size] for place in range(values.shape[-1] // size)]

    def rows(self, values: Buffer, shape: tuple[int, ...] | None = None) -> Buffer:
        """All steps of a batch as rows, or rows as that."""
        return values.reshape(-1, values.shape[-1]) if shape is None else values.reshape(*shape)

    def narrow(self, values: Buffer) -> Buffer:
        """Gradients as products take them."""
        return cast(values, self.x.dtype, stream=self.stream)

    def of_inputs(self, w_ih: Buffer, b_ih: Buffer | None) -> Buffer:
        found = matmul(self.rows(self.x), w_ih.T, dtype=FP32, stream=self.stream)
        if b_ih is not None:
            mapped("recurrent", plus, found, b_ih, dtype=FP32, computed=FP32, out=found, stream=self.stream)
        return found.reshape(*self.shape[:2], -1)

    def of_states(self, w_hh: Buffer) -> Buffer:
        return matmul(self.rows(self.before), w_hh.T, dtype=FP32, stream=self.stream).reshape(*self.shape[:2], -1)

    def elements(self, name: str, function: Callable[..., Any], operands: list[Any], outs: list[Buffer]) -> None:
        dtypes = [out.dtype for out in outs]
        mapped_many(name, function, *operands, dtypes=dtypes, computed=FP32, outs=outs, stream=self.stream)

    def of_hole(self, place: int, cells: Buffer) -> Buffer:
        """Of what a gate's cells are multiplied by: the sum over all steps and the batch."""
        gate = self.gates[:, :, place * self.hidden : (place + 1) * self.hidden]
        products = mapped("lstm_backward", times, gate, cells, dtype=FP32, computed=FP32, stream=self.stream)
        return sums.sum(products, (0, 1), stream=self.stream)

    def product(self, step: int, gates: Buffer | None = None) -> Buffer:
        """What the gates of a step give the state before it."""
        found = (self.gates if gates is None else gates)[step]
        return matmul(self.narrow(found), self.w_hh, dtype=FP32, stream=self.stream)

    def gradients(self, inner: Buffer | None = None, state: Buffer | None = None) -> RecurrentGradients:
        """All that is left, with the gradient of the first state from ``late``. ``inner``: gradients of gates as the
        state has them, if they are others; ``state``: what the last gate's weights were multiplied by, if it is not
        the state."""
        stream, size = self.stream, self.hidden
        outside = self.rows(self.gates)
        inside = outside if inner is None else self.rows(inner)
        narrow = self.narrow(outside)
        narrow_inside = narrow if inner is None else self.narrow(inside)
        before = self.rows(self.before)
        of_x = matmul(narrow, self.w_ih, dtype=self.x.dtype, stream=stream)
        of_w_ih = matmul(narrow.T, self.rows(self.x), dtype=FP32, stream=stream)
        of_w_hh = self.device.empty(self.w_hh.shape, FP32)
        last = 2 * size if state is not None else self.count * size
        matmul(narrow_inside[:, :last].T, before, dtype=FP32, out=of_w_hh[:last], stream=stream)
        if state is not None:
            matmul(narrow_inside[:, last:].T, self.rows(state), dtype=FP32, out=of_w_hh[last:], stream=stream)
        of_h = self.late[0]
        if len(self.late) > 1:
            of_h = mapped("recurrent", plus, *self.late, dtype=FP32, computed=FP32, stream=stream)
        of_b_ih = sums.sum(outside, 0, stream=stream)
        of_b_hh = of_b_ih if inner is None else sums.sum(inside, 0, stream=stream)
        return RecurrentGradients(
            of_x.reshape(*self.x.shape), cast(of_h, self.x.dtype, stream=stream), of_w_ih, of_w_hh, of_b_ih, of_b_hh
        )


def _rnn(grad: Any, late: Any, y: Any) -> Any:
    return (grad + late) * (1.0 - y * y)


def _rnn_relu(grad: Any, late: Any, y: Any) -> Any:
    return tile.where(y > 0.0, grad + late, 0.0)


def _gru(
    grad: Any,
    late: Any,
    kept: Any,
    xr: Any,
    xz: Any,
    xn: Any,
    hr: Any,
    hz: Any,
    hn: Any,
    br: Any,
    bz: Any,
    bn: Any,
    h: Any,
) -> tuple[Any, ...]:
    """Of r, z and n, the same as the state has them, and what the state before gets besides."""
    total = grad + late + kept
    reset, update = tile.sigmoid(xr + hr + br), tile.sigmoid(xz + hz + bz)
    inner = hn + bn
    new = tile.tanh(inner * reset + xn)
    of_new = total * (1.0 - update) * (1.0 - new * new)
    of_reset = of_new * inner * reset * (1.0 - reset)
    of_update = total * (h - new) * update * (1.0 - update)
    return of_reset, of_update, of_new, of_reset, of_update, of_new * reset, total * update


def _reset(xr: Any, hr: Any, br: Any, h: Any) -> tuple[Any, Any]:
    reset = tile.sigmoid(xr + hr + br)
    return reset, reset * h


def _renewed(
    grad: Any, late: Any, kept: Any, xz: Any, xn: Any, hz: Any, hn: Any, bz: Any, bn: Any, h: Any
) -> tuple[Any, ...]:
    """Of z and n, and what the state before gets besides."""
    total = grad + late + kept
    update, new = tile.sigmoid(xz + hz + bz), tile.tanh(xn + hn + bn)
    of_new = total * (1.0 - update) * (1.0 - new * new)
    return total * (h - new) * update * (1.0 - update), of_new, total * update


def _of_reset(of_state: Any, reset: Any, h: Any, kept: Any) -> tuple[Any, Any]:
    """Of r, by the gradient of r · h, and what the state gets by it and besides."""
    return of_state * h * reset * (1.0 - reset), of_state * reset + kept


def _lstm(
    grad: Any,
    late: Any,
    of_cell: Any,
    i: Any,
    f: Any,
    g: Any,
    o: Any,
    cell: Any,
    before: Any,
    pi: Any = None,
    pf: Any = None,
    po: Any = None,
) -> tuple[Any, ...]:
    """Of i, f, g and o, and of the cell before; the last three are peepholes."""
    total, shown = grad + late, tile.tanh(cell)
    of_o = total * shown * o * (1.0 - o)
    of_cell = total * o * (1.0 - shown * shown) + of_cell
    if po is not None:
        of_cell = of_cell + of_o * po
    of_i, of_f = of_cell * g * i * (1.0 - i), of_cell * before * f * (1.0 - f)
    of_before = of_cell * f if pi is None else of_cell * f + of_i * pi + of_f * pf
    return of_i, of_f, of_cell * i * (1.0 - g * g), of_o, of_before
