"""Cases of convolutions, pooling, attention, recurrent layers and random numbers, against float64."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from element_operators import sigmoid
from given import Floats, Given
from reduction_operators import softmax

from sley.runtime import nn
from sley.runtime.nn.mapping import BF16, BOOL, FP32

Case = Callable[[Given], None]
Sizes = tuple[int, ...]


def seen(x: Any, taps: Sizes, stride: Sizes, pads: Sizes, spread: Sizes, fill: float = 0.0) -> Iterator[Any]:
    """For each tap its numbers, and the elements that it sees, of [images, ..., channels]."""
    padded = np.pad(x, [(0, 0), *((p, p) for p in pads), (0, 0)], constant_values=fill)
    sizes = padded.shape[1:-1]
    outs = [(n - (t - 1) * d - 1) // s + 1 for n, t, s, d in zip(sizes, taps, stride, spread, strict=True)]
    for tap in product(*map(range, taps)):
        cuts = [slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, spread, outs, stride, strict=True)]
        yield tap, padded[(slice(None), *cuts)]


def convolved(x: Any, w: Any, stride: Sizes, pads: Sizes, spread: Sizes, groups: int = 1) -> Any:
    each, outputs = w.shape[-2], w.shape[-1] // groups
    total: Any = 0.0
    for tap, part in seen(x, w.shape[:-2], stride, pads, spread):
        products = [
            part[..., n * each : (n + 1) * each] @ w[tap][:, n * outputs : (n + 1) * outputs] for n in range(groups)
        ]
        total = total + np.concatenate(products, -1)
    return total


GEOMETRY: tuple[tuple[Any, ...], ...] = (
    ((1, 1), (0, 0), (1, 1), 1),
    ((2, 2), (1, 1), (1, 1), 1),
    ((1, 1), (2, 2), (2, 2), 2),
    ((2, 1), (1, 0), (1, 1), 3),
    ((3, 3), (1, 1), (1, 1), 6),
)


def convolutions(g: Given) -> None:
    stride, pads, spread, groups = g.one(*GEOMETRY)
    x, host = g.array((2, 9, 8, 6), dense=True)
    w = g.values((3, 2, 6 // groups, 12)).astype(np.float64)
    weights = w.astype(np.float32)
    right = convolved(host, w, stride, pads, spread, groups)
    more = {"stride": stride, "padding": pads, "dilation": spread, "groups": groups}
    g.near(nn.conv2d(x, weights, **more), right, 4e-6, FP32)
    grad, slope = g.array(right.shape, dense=True)
    found = nn.conv2d_backward(grad, x, weights, **more)

    def forward(x: Any, w: Any, b: Any) -> Any:
        return convolved(x, w, stride, pads, spread, groups) + b

    g.slopes(forward, [host, w, np.zeros(12)], slope, found)


def conv_transpose2d(g: Given) -> None:
    """It is the adjoint: the sum of y · conv(x) is that of x · transposed(y)."""
    stride, pads, spread, groups = g.one(*GEOMETRY)
    w = g.values((3, 2, 6 // groups, 12)).astype(np.float32)
    y, host = g.array((2, 4, 5, 12), dense=True)
    made = nn.conv_transpose2d(y, w, stride=stride, padding=pads, dilation=spread, groups=groups)
    if g.special:
        return
    assert convolved(np.zeros(made.shape), w.astype(np.float64), stride, pads, spread, groups).shape == host.shape
    for _ in range(4):
        x = g.random.standard_normal(made.shape)
        right = (host * convolved(x, w.astype(np.float64), stride, pads, spread, groups)).sum()
        assert abs((made.numpy() * x).sum() - right) < 1e-4 * np.sqrt(x.size)


def conv1d(g: Given) -> None:
    kind = g.one(FP32, BF16)
    (x, host), (_, w) = g.array((2, 20, 6), kind, dense=True), g.array((3, 3, 8), kind)
    found = nn.conv1d(x, w.astype(kind), stride=2, padding=1, groups=2)
    g.near(found, convolved(host, w, (2,), (1,), (1,), 2), 4e-6)


def conv3d(g: Given) -> None:
    kind = g.one(FP32, BF16)
    (x, host), (_, w), (b, bias) = (
        g.array((2, 5, 6, 7, 3), kind, dense=True),
        g.array((2, 3, 3, 3, 4), kind),
        g.array((4,)),
    )
    found = nn.conv3d(x, w.astype(kind), stride=(2, 1, 2), padding=(1, 1, 0), bias=b)
    g.near(found, convolved(host, w, (2, 1, 2), (1, 1, 0), (1, 1, 1)) + bias, 4e-6, FP32)


def pooled(g: Given) -> None:
    """Largest elements and means, of one to three dimensions, with their gradients."""
    sides = int(g.random.integers(1, 4))
    window, stride, pads, spread = g.one((2, 2, 0, 1), (3, 2, 1, 1), (2, 1, 1, 1), (2, 1, 0, 2))
    every = [(number,) * sides for number in (window, stride, pads, spread)]
    x, host = g.array((2, *(9, 6, 5)[:sides], 5), g.one(FP32, BF16), dense=True)
    host = host if g.special else host + 0.0
    maxima = np.max([part for _, part in seen(host, *every, fill=-np.inf)], 0)
    made = nn.max_pool(x, window, stride=stride, padding=pads, dilation=spread)
    g.near(made, maxima, 0.0, x.dtype)
    grad, slope = g.array(maxima.shape, dense=True)
    found = nn.max_pool_backward(grad, x, made, window, stride=stride, padding=pads, dilation=spread)
    if x.dtype == FP32:
        g.slopes(lambda x: np.max([part for _, part in seen(x, *every, fill=-np.inf)], 0), [host], slope, [found])
    if spread > 1:
        return
    for counted in (True, False):

        def mean(x: Any, counted: bool = counted) -> Any:
            total = sum(part for _, part in seen(x, *every))
            taps = sum(part for _, part in seen(np.ones(x.shape), *every))
            return total / (window**sides if counted else taps)

        more = {"stride": stride, "padding": pads, "count_include_pad": counted}
        g.near(nn.avg_pool(x, window, **more), mean(host), dtype=x.dtype)
        g.slopes(mean, [host], slope, [nn.avg_pool_backward(grad, x, window, **more)])


def lp_pool(g: Given) -> None:
    x, host = g.array((2, 9, 6, 5), dense=True)
    for power, spread in ((1, 1), (2, 2), (3, 1), (4, 2)):
        parts = seen(host, (3, 2), (2, 2), (0, 0), (spread, spread))
        total = sum(np.abs(part) ** power for _, part in parts)
        g.near(nn.lp_pool(x, power, (3, 2), stride=2, dilation=spread), total ** (1 / power), 2e-6 * power)
    right = sum(part for _, part in seen(host, (2, 2), (1, 1), (1, 1), (2, 2)))
    g.near(nn.sum_pool(x, 2, stride=1, padding=1, dilation=2), right, dtype=FP32)


def max_pool_places(g: Given) -> None:
    """Of equal elements the first; numbers of one plane for all images and channels."""
    x, host = g.on(g.random.integers(-3, 4, (2, 7, 6, 5)).astype(g.one(FP32, BF16)), dense=True)
    numbers = np.arange(42, dtype=np.int32).reshape(1, 7, 6, 1)
    y = nn.max_pool(x, (3, 2), stride=2, dilation=(1, 2))
    found = nn.max_pool_places(x, y, g.device.array(numbers), (3, 2), stride=2, dilation=(1, 2))
    every = ((3, 2), (2, 2), (0, 0), (1, 2))
    first = np.argmax([part for _, part in seen(host, *every)], 0)
    spots = np.array([np.broadcast_to(part, first.shape) for _, part in seen(numbers, *every)])
    g.same(found, np.take_along_axis(spots, first[None], 0)[0].astype(np.int32))


def conv_transpose3d(g: Given) -> None:
    """It is the adjoint, as that of two dimensions; ``output_padding`` adds rows behind."""
    stride, pads, spread, groups = g.one(
        ((1, 1, 1), (0, 0, 0), (1, 1, 1), 1), ((2, 1, 3), (1, 0, 2), (1, 2, 1), 2), ((1, 2, 1), (2, 1, 0), (1, 1, 2), 1)
    )
    w = g.values((2, 3, 2, 4 // groups, 6)).astype(np.float32)
    y, host = g.array((2, 4, 3, 2, 6), dense=True)
    more = {"stride": stride, "padding": pads, "dilation": spread, "groups": groups}
    made, longer = nn.conv_transpose3d(y, w, **more), nn.conv_transpose3d(y, w, output_padding=(0, 1, 0), **more)
    assert longer.shape[2] == made.shape[2] + 1
    if g.special:
        return
    np.testing.assert_array_equal(longer.numpy()[:, :, :-1], made.numpy())
    x = g.random.standard_normal(made.shape)
    right = (host * convolved(x, w.astype(np.float64), stride, pads, spread, groups)).sum()
    assert abs((made.numpy() * x).sum() - right) < 1e-4 * np.sqrt(x.size)


def adaptive(g: Given) -> None:
    x, host = g.array((2, 7, 5, 3), g.one(FP32, BF16), dense=True)
    for operator, reduce in ((nn.adaptive_avg_pool, np.mean), (nn.adaptive_max_pool, np.max)):
        right = np.zeros((2, 3, 2, 3))
        for i, j in product(range(3), range(2)):
            rows, columns = slice(i * 7 // 3, -(-(i + 1) * 7 // 3)), slice(j * 5 // 2, -(-(j + 1) * 5 // 2))
            right[:, i, j] = reduce(host[:, rows, columns], (1, 2))
        g.near(operator(x, (3, 2)), right, dtype=x.dtype)


def attended(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float) -> Any:
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], 1) for a in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    return softmax(scores) @ v


def attentions(g: Given) -> None:
    batch, heads, own, queries, keys, dim = g.one((2, 4, 2, 5, 9, 6), (1, 3, 3, 17, 17, 16), (1, 2, 1, 1, 33, 8))
    (q, a), (k, b), (v, c) = (
        g.array((batch, count, rows, dim), dense=True) for count, rows in ((heads, queries), (own, keys), (own, keys))
    )
    mask: Any = g.one(None, BOOL, FP32)
    given = None
    if mask == BOOL:
        mask = g.random.random((batch, heads, queries, keys)) < 0.7
        mask[..., 0] = True
    elif mask == FP32:
        mask = g.random.standard_normal((queries, keys)).astype(np.float32)
    if mask is not None:
        given = g.device.array(mask)
    causal, scale = bool(g.random.integers(0, 2)), g.one(None, 0.3)
    more = {"causal": causal, "scale": scale}
    factor = dim**-0.5 if scale is None else scale
    right = attended(a, b, c, mask, causal, factor)
    g.near(nn.scaled_dot_product_attention(q, k, v, given, **more), right, 1e-5, FP32)
    grad, slope = g.array(right.shape, dense=True)
    found = nn.attention_backward(grad, q, k, v, given, **more)
    g.slopes(lambda q, k, v: attended(q, k, v, mask, causal, factor), [a, b, c], slope, found, 2e-5)
    if heads == own:
        weights = nn.attention_weights(q, k, given, **more)
        g.near(
            weights, attended(a, b, np.broadcast_to(np.eye(keys), (batch, own, keys, keys)), mask, causal, factor), 1e-5
        )


Layer = tuple[list[Any], list[Floats], dict[str, Any], tuple[bool, bool]]
"""Arrays of a layer by the order of its parameters, the same in float64, options, and two of these as they are."""


def recurrent_layer(g: Given, count: int, dtype: Any = FP32) -> Layer:
    """With ``count`` gates: an RNN has 1, a GRU 3, an LSTM 4."""
    steps, batch, inputs, hidden = g.one((4, 3, 5, 7), (1, 1, 1, 1), (3, 2, 17, 16))
    shapes = [
        (steps, batch, inputs), (batch, hidden), *([(batch, hidden)] if count == 4 else []),
        (count * hidden, inputs), (count * hidden, hidden), (count * hidden,), (count * hidden,),
    ]  # fmt: skip
    made = [g.array(shape, FP32 if count == 4 and n == 2 else dtype, 0.5, dense=True) for n, shape in enumerate(shapes)]
    arrays, host = [array for array, _ in made], [values for _, values in made]
    if g.random.integers(0, 2):
        arrays[-2:] = [None, None]
        host[-2:] = [host[-2] * 0, host[-1] * 0]
    relu = count == 1 and bool(g.random.integers(0, 2))
    more: dict[str, Any] = {"relu": relu} if count == 1 else {}
    reset_after = count != 3 or bool(g.random.integers(0, 2))
    if count == 3:
        more["reset_after"] = reset_after
    host += [np.zeros(hidden)] * 3
    if count == 4 and g.random.integers(0, 2):
        holes = [g.array((hidden,), dtype, dense=True) for _ in range(3)]
        more["peepholes"], host[-3:] = tuple(hole for hole, _ in holes), [hole for _, hole in holes]
    return arrays, host, more, (relu, reset_after)


def recurrent_states(count: int, options: tuple[bool, bool], host: Sequence[Floats]) -> tuple[Floats, Floats]:
    """States of all steps, and the last cell."""
    inside, state, *rest = host
    cell = rest.pop(0) if count == 4 else state
    of_input, of_state, bias, other, *holes = rest
    hidden, (relu, reset_after), states = state.shape[1], options, []
    for step in inside:
        left, right = step @ of_input.T + bias, state @ of_state.T + other
        one, two = (np.split(part, count, -1) for part in (left, right))
        if count == 1:
            state = np.maximum(left + right, 0) if relu else np.tanh(left + right)
        elif count == 3:
            reset, update = sigmoid(one[0] + two[0]), sigmoid(one[1] + two[1])
            before = (reset * state) @ of_state[2 * hidden :].T + other[2 * hidden :]
            new = np.tanh(one[2] + (reset * two[2] if reset_after else before))
            state = new + update * (state - new)
        else:
            kept = sigmoid(one[1] + two[1] + holes[1] * cell) * cell
            cell = kept + sigmoid(one[0] + two[0] + holes[0] * cell) * np.tanh(one[2] + two[2])
            state = sigmoid(one[3] + two[3] + holes[2] * cell) * np.tanh(cell)
        states.append(state)
    return np.array(states), cell


def recurrent(count: int, operator: Any) -> Case:
    def case(g: Given) -> None:
        arrays, host, more, options = recurrent_layer(g, count)
        made = operator(*arrays, **more)
        states, cell = recurrent_states(count, options, host)
        g.near(made.y, states, 1e-5, FP32)
        g.near(made.h, states[-1], 1e-5, FP32)
        if count == 4:
            g.near(made.c, cell, 1e-5, FP32)
        else:
            assert made.c is None
        zero = operator(arrays[0], None, *([None] if count == 4 else []), *arrays[-4:-2])
        assert zero.y.shape == made.y.shape

    return case


def recurrent_gradient(count: int, operator: Any, gradient: Any) -> Case:
    """Of all that a layer is called with, by differences of float64; states that begin as zeros; bfloat16."""

    def case(g: Given) -> None:
        arrays, host, more, options = recurrent_layer(g, count)
        made = operator(*arrays, **more)
        (grad, slope), (last, of_last), (end, of_end) = (
            g.array(shape, dense=True) for shape in (made.y.shape, made.h.shape, made.h.shape)
        )
        ends = {"grad_h": last, **({"grad_c": end} if count == 4 else {})}
        found = gradient(grad, made, *arrays, **more, **ends)

        def outcome(*values: Floats) -> Floats:
            states, cell = recurrent_states(count, options, values)
            return np.concatenate([states.ravel(), states[-1].ravel(), cell.ravel()])

        every = np.concatenate([slope.ravel(), of_last.ravel(), of_end.ravel() * (count == 4)])
        gradients = [found.x, found.h, *([found.c] if count == 4 else []), found.w_ih, found.w_hh]
        gradients += [found.b_ih, found.b_hh, *(found.peepholes or ())]
        g.slopes(outcome, host, every, gradients, 3e-5)
        assert (found.peepholes is None) == ("peepholes" not in more)
        zero = gradient(grad, made, arrays[0], None, *([None] if count == 4 else []), *arrays[-4:-2])
        assert zero.h.shape == made.h.shape
        if g.special:
            return
        narrow = [None if array is None else nn.cast(array, BF16) for array in arrays]
        small = operator(*narrow, **more)
        rough = gradient(nn.cast(grad, BF16), small, *narrow, **more, **ends)
        assert (rough.x.dtype, rough.w_ih.dtype) == (BF16, FP32)
        for near, right in zip(rough[:6], found[:6], strict=True):
            wanted = right.numpy().astype(np.float64)
            off = np.abs(near.numpy().astype(np.float64) - wanted)
            assert off.max() <= 0.1 * max(np.abs(wanted).max(), 0.1), off.max()

    return case


def hashed(x: Any) -> Any:
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return x ^ (x >> np.uint64(16))


def bits_of(count: int, seed: int) -> Any:
    low, high = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    whole = np.uint64(0xFFFFFFFF)
    return hashed((hashed((np.arange(count, dtype=np.uint64) + low) & whole) + high) & whole)


def randoms(g: Given) -> None:
    shape, seed = g.one((3, 5), (1,), (7, 1021), (2, 3, 1, 17)), g.one(0, 7, (1 << 64) - 1, 12345678901234)
    count = int(np.prod(shape))
    bits = bits_of(count, seed)
    draws = (bits >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    g.same(nn.rand(g.device, shape, seed), draws.reshape(shape))
    g.same(nn.rand(g.device, shape, seed, BF16), draws.reshape(shape).astype(BF16))
    turns = (hashed((bits + np.uint64(1)) & np.uint64(0xFFFFFFFF)) >> np.uint64(8)).astype(np.float64) * 2.0**-24
    right = np.sqrt(-2 * np.log(1 - draws.astype(np.float64))) * np.cos(2 * np.pi * turns)
    g.near(nn.randn(g.device, shape, seed), right.reshape(shape), 4e-6, FP32)
    x, host = g.array(shape, FP32)
    made = nn.dropout(x, 0.3, seed)
    mask = (draws >= np.float32(0.3)).reshape(shape)
    g.same(made.mask, mask)
    g.near(made.y, host * mask / 0.7)
    g.near(nn.dropout_backward(x, made.mask, 0.3), host * mask / 0.7)


NETWORKS: dict[str, Case] = {
    "conv2d": convolutions,
    "conv2d_backward": convolutions,
    "conv_transpose2d": conv_transpose2d,
    "conv1d": conv1d,
    "conv3d": conv3d,
    "max_pool": pooled,
    "max_pool_backward": pooled,
    "avg_pool": pooled,
    "avg_pool_backward": pooled,
    "lp_pool": lp_pool,
    "sum_pool": lp_pool,
    "max_pool_places": max_pool_places,
    "conv_transpose3d": conv_transpose3d,
    "adaptive_avg_pool": adaptive,
    "adaptive_max_pool": adaptive,
    "scaled_dot_product_attention": attentions,
    "attention_weights": attentions,
    "attention_backward": attentions,
    "rnn": recurrent(1, nn.rnn),
    "rnn_backward": recurrent_gradient(1, nn.rnn, nn.rnn_backward),
    "gru_backward": recurrent_gradient(3, nn.gru, nn.gru_backward),
    "lstm_backward": recurrent_gradient(4, nn.lstm, nn.lstm_backward),
    "gru": recurrent(3, nn.gru),
    "lstm": recurrent(4, nn.lstm),
    "rand": randoms,
    "randn": randoms,
    "dropout": randoms,
    "dropout_backward": randoms,
}
