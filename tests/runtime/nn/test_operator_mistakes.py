"""What operators refuse, with words; the device is usable afterwards."""

import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sley.driver import BadRequest, BufferFreed, SleyError
from sley.runtime import Device, ShapeMismatch, UnsupportedType, nn

Arrays = SimpleNamespace


@pytest.fixture(scope="module")
def given() -> Iterator[Arrays]:
    """Arrays that go together, x, i and b; those that do not, and what is none."""
    with Device.open("model:base?memory=8M") as device, Device.open("model:base?memory=4M") as other:
        ones = np.ones((5, 7))
        freed = device.array(ones.astype(np.float32))
        freed.free()
        yield SimpleNamespace(
            device=device,
            x=device.array(ones.astype(np.float32)),
            short=device.array(np.ones((4, 7), np.float32)),
            long=device.array(np.ones((6, 7), np.float32)),
            i=device.array(ones.astype(np.int32)),
            b=device.array(ones.astype(np.int8)),
            flags=device.array(ones.astype(bool)),
            freed=freed,
            foreign=other.array(ones.astype(np.float32)),
            stream=other.stream,
            double=device.array(ones),
            half=device.array(ones.astype(np.float16)),
            wide=device.array(ones.astype(np.int64)),
            empty=device.empty((0, 7), np.float32),
            host=ones.astype(np.float32),
            classes=device.array(np.zeros(5, np.int32)),
        )


Call = Callable[[Arrays], Any]
ONE_TAP = np.ones((1, 1, 7, 2), np.float32)
ELEMENTS: list[tuple[Call, type[SleyError], str]] = [
    (lambda g: nn.add(g.x, g.short), ShapeMismatch, r"add of shapes \(5, 7\) and \(4, 7\): axes"),
    (lambda g: nn.add(g.x, g.double), UnsupportedType, "array of float64; operators take bool, int8.*use astype"),
    (lambda g: nn.add(g.x, np.ones((5, 7))), UnsupportedType, "array of float64"),
    (lambda g: nn.eq(g.wide, g.x), UnsupportedType, "array of int64"),
    (lambda g: nn.exp(g.half), UnsupportedType, "array of float16"),
    (lambda g: nn.prelu(g.x, g.freed), BufferFreed, "freed"),
    (lambda g: nn.div(g.x, g.foreign), BadRequest, "another device"),
    (lambda g: nn.exp(g.x, out=g.foreign), BadRequest, "another device"),
    (lambda g: nn.exp(g.x, stream=g.stream), BadRequest, "another device"),
    (lambda g: nn.exp(g.x, stream="first"), UnsupportedType, "stream is 'first'; give one of device.streams"),
    (lambda g: nn.exp(g.host), UnsupportedType, "exp without an array of the device; device.array"),
    (lambda g: nn.add(1, 2.0), UnsupportedType, "numbers alone"),
    (lambda g: nn.exp(g.empty), ShapeMismatch, r"exp has shape \(0, 7\)"),
    (lambda g: nn.add(g.x, None), UnsupportedType, ""),
    (lambda g: nn.add(g.long[:5], 1.0, out=g.long[1:]), BadRequest, "out of add shares memory with an operand"),
    (lambda g: nn.exp(g.x, out=g.host), UnsupportedType, "out is ndarray; exp writes to arrays of the device"),
    (lambda g: nn.exp(g.x, out=g.short), ShapeMismatch, r"the result of exp is float32 of shape \(5, 7\)"),
    (lambda g: nn.exp(g.x, out=g.i), ShapeMismatch, "the result of exp is float32"),
    (lambda g: nn.add(g.i, 1 << 31), BadRequest, "add with 2147483648; it computes in int32, below 2\\^31"),
    (lambda g: nn.add(g.x, 10**400), BadRequest, "computes in fp32, below 2\\^128"),
    (lambda g: nn.bitwise_and(g.x, g.i), UnsupportedType, "bitwise_and of float32; it takes integers"),
    (lambda g: nn.div(g.x, 0), BadRequest, "div by the number 0"),
    (lambda g: nn.clamp(g.x), BadRequest, "clamp without low and high"),
    (lambda g: nn.pow(g.x, g.x), UnsupportedType, "exponent is Buffer; pow takes a number, and nn.power arrays"),
    (lambda g: nn.cast(g.x, np.float64), SleyError, "float64"),
    (lambda g: nn.where(g.flags, g.x, g.short), ShapeMismatch, "where of shapes"),
    (lambda g: nn.masked_fill(g.i, g.flags, 1 << 40), BadRequest, "computes in int32"),
]
SUMS: list[tuple[Call, type[SleyError], str]] = [
    (lambda g: nn.sum(g.x, 2), ShapeMismatch, r"axis \(2,\) of sum; the array has 2 axes, -2 to 1"),
    (lambda g: nn.amax(g.x, (0, -2)), ShapeMismatch, "axes .* of amax; each comes once"),
    (lambda g: nn.mean(g.x, "a"), BadRequest, r"axis \('a',\) of mean; axes are numbers"),
    (lambda g: nn.any(g.x, 1.5), BadRequest, r"axis \(1.5,\) of any; axes are numbers"),
    (lambda g: nn.norm(g.double), UnsupportedType, "float64"),
    (lambda g: nn.mean(g.empty), ShapeMismatch, r"x has shape \(0, 7\); mean"),
    (lambda g: nn.sum(g.freed), BufferFreed, "freed"),
    (lambda g: nn.sum(g.host), UnsupportedType, "x is ndarray; sum takes arrays of the device"),
    (lambda g: nn.sum(g.x, 0, out=g.short), ShapeMismatch, r"the result of sum is float32 of shape \(7,\)"),
    (lambda g: nn.sum(g.x, 0, out=g.x[0]), BadRequest, "out of sum shares memory"),
    (lambda g: nn.var(g.x[:1, :1]), ShapeMismatch, "var of 1 elements with correction 1"),
    (lambda g: nn.logsumexp(g.x, (0,)), BadRequest, "axes are numbers"),
    (lambda g: nn.softmax_backward(g.x, g.short), ShapeMismatch, "softmax_backward of shapes"),
    (lambda g: nn.log_softmax(g.x, 3), ShapeMismatch, "the array has 2 axes"),
    (lambda g: nn.moments(g.x, 7), ShapeMismatch, "moments"),
    (lambda g: nn.group_norm(g.x, 3), ShapeMismatch, "7 channels in 3 groups; groups must divide"),
    (lambda g: nn.group_norm(g.x[0], 1), ShapeMismatch, "axis of images and one of channels"),
    (lambda g: nn.batch_norm_training(g.x[0]), ShapeMismatch, "axis of images and one of channels"),
    (lambda g: nn.batch_norm(g.x, g.x[0, :3], g.x[0]), SleyError, "shape"),
    (lambda g: nn.layer_norm_backward(g.x, g.short), ShapeMismatch, "layer_norm_backward of shapes"),
    (lambda g: nn.cumsum(g.x, 3), ShapeMismatch, "the array has 2 axes"),
]
LOSSES: list[tuple[Call, type[SleyError], str]] = [
    (lambda g: nn.cross_entropy(g.x, g.x[:, 0]), UnsupportedType, "target of cross_entropy .* int32"),
    (lambda g: nn.cross_entropy(g.x, g.classes[:4]), ShapeMismatch, r"has shape \(4,\); x without its classes has"),
    (lambda g: nn.cross_entropy(g.x, g.classes, reduction="avg"), BadRequest, "reduction is 'avg'; it is 'mean'"),
    (lambda g: nn.mse_loss(g.x, g.short), ShapeMismatch, "mse_loss of shapes"),
    (lambda g: nn.smooth_l1_loss(g.x, g.x, 0.0), BadRequest, "beta is 0.0; it must be above 0"),
    (lambda g: nn.smooth_l1_loss_backward(g.x, g.x, g.x, 0.0), BadRequest, "beta is 0.0; it must be above 0"),
    (lambda g: nn.huber_loss(g.x, g.x, -1.0), BadRequest, "delta is -1.0"),
    (lambda g: nn.one_hot(g.x, 5), UnsupportedType, "target of one_hot"),
]
SHAPES: list[tuple[Call, type[SleyError], str]] = [
    (lambda g: nn.concat([]), ShapeMismatch, "concat of no arrays"),
    (lambda g: nn.concat([g.x, g.i]), ShapeMismatch, "they have one type, and equal other axes"),
    (lambda g: nn.concat([g.x], 2), ShapeMismatch, "the array has 2 axes"),
    (lambda g: nn.stack([g.x, g.short]), ShapeMismatch, "one shape"),
    (lambda g: nn.stack([g.x, g.x], 5), ShapeMismatch, r"axis \(5,\) of stack; the array has 3 axes"),
    (lambda g: nn.split(g.x, [1, 2]), ShapeMismatch, "must add up to it"),
    (lambda g: nn.split(g.x, 0), BadRequest, "parts of 0 elements"),
    (lambda g: nn.pad(g.x, [(-1, 0)]), ShapeMismatch, "numbers of 0 or more"),
    (lambda g: nn.pad(g.host, [(1, 1)]), SleyError, "ndarray.*arrays? of the device|array of the device"),
    (lambda g: nn.full(g.device, (3,), 300, np.int8), BadRequest, "value is 300, which int8 has not"),
    (lambda g: nn.tiled(g.x, (2, 2, 2)), ShapeMismatch, "x has 2 axes"),
    (lambda g: nn.upsample_nearest(g.x, 2), ShapeMismatch, "images"),
    (lambda g: nn.pixel_shuffle(g.x, 2), ShapeMismatch, "images"),
    (lambda g: nn.tril(g.x[0]), ShapeMismatch, "tril takes matrices"),
    (lambda g: nn.broadcast_to(g.x, (3,)), ShapeMismatch, "has no result of shape|axes"),
    (lambda g: nn.take_along(g.x, g.x), UnsupportedType, "numbers of take_along"),
    (lambda g: nn.scatter(g.x, g.i, g.short), ShapeMismatch, "they have one shape"),
    (lambda g: nn.index_select(g.x, g.i), ShapeMismatch, "they are a list"),
    (lambda g: nn.topk(g.x, 8), BadRequest, "k is 8; it is 1 to 7"),
]
NETWORKS: list[tuple[Call, type[SleyError], str]] = [
    (lambda g: nn.matmul(g.x, g.short), ShapeMismatch, "7 columns against 4 rows"),
    (lambda g: nn.matmul(g.x, g.i.T), UnsupportedType, "both are int8, bfloat16 or float32"),
    (lambda g: nn.matmul(g.x, g.x.T, precision="low"), BadRequest, "precision is 'low'; it is 'highest'"),
    (lambda g: nn.matmul(g.x, g.foreign.T), BadRequest, "another device"),
    (lambda g: nn.matmul(g.x, g.freed.T), BufferFreed, "freed"),
    (lambda g: nn.linear(g.x, g.short.T), ShapeMismatch, r"\[outputs, inputs\]"),
    (lambda g: nn.sum_to(g.x, (3,)), SleyError, "shape"),
    (lambda g: nn.quantize(g.x, 0.0), BadRequest, "scale is 0.0; it is above 0"),
    (lambda g: nn.quantized_add(g.x, g.x, 1, 1, 1), UnsupportedType, "an operand of quantized_add is float32; .* int8"),
    (lambda g: nn.quantized_softmax(g.x, 1.0), UnsupportedType, "an operand of quantized_softmax is float32"),
    (lambda g: nn.quantized_softmax(g.x, 0.0), BadRequest, "scale is 0.0; it is one number above 0"),
    (lambda g: nn.quantized_activation(g.x, "sin", 1.0, 1.0), BadRequest, "kind is 'sin'; it is one of elu"),
    (lambda g: nn.quantized_concat([g.x], [1.0, 2.0], 1.0), BadRequest, "1 arrays, 2 scales and 1 zero points"),
    (lambda g: nn.sgd_step(g.b, g.x), UnsupportedType, "sgd_step keeps float32"),
    (lambda g: nn.sgd_step(g.x, g.x, None, 0.1, 0.9), BadRequest, "momentum is 0.9 without momentum_buffer"),
    (lambda g: nn.adamw_step(g.x, g.x, g.long[:5], g.long[:5], 0), BadRequest, "step is 0"),
    (lambda g: nn.adamw_step(g.x, g.x, g.long[:5], g.long[1:], 1), BadRequest, "share"),
    (lambda g: nn.conv2d(g.x, ONE_TAP), ShapeMismatch, "they are .images, y, x, channels."),
    (lambda g: nn.conv2d(g.x[None, None], np.ones((1, 1, 7, 2))), UnsupportedType, "x is float32 and w float64"),
    (lambda g: nn.conv2d(g.x[None, None], ONE_TAP, precision="full"), BadRequest, "precision is 'full'; it is 'high"),
    (lambda g: nn.conv2d(g.x[None, None], ONE_TAP, groups=0), ShapeMismatch, "groups is 0"),
    (lambda g: nn.conv1d(g.x[None], np.ones((9, 7, 2), np.float32)), ShapeMismatch, "9"),
    (lambda g: nn.max_pool(g.x[None], 9), ShapeMismatch, "windows of"),
    (lambda g: nn.max_pool(g.x[None], 0), BadRequest, "window is 0"),
    (lambda g: nn.scaled_dot_product_attention(g.x, g.x, g.x), ShapeMismatch, "heads"),
    (lambda g: nn.attention_weights(*[g.x[None, None]] * 2, g.i[:, :5]), UnsupportedType, "mask is int32"),
    (lambda g: nn.rnn(g.x[None], None, g.long, g.long[:, :6], None, g.x[0]), ShapeMismatch, "b_hh has shape"),
    (lambda g: nn.rand(g.device, (3,), -1), BadRequest, "seed is -1"),
    (lambda g: nn.rand(g.device, (3,), 1, np.int8), UnsupportedType, "dtype is int8"),
    (lambda g: nn.dropout(g.x, 1.0, 1), BadRequest, "p is 1.0"),
]


@pytest.mark.parametrize(
    "mistakes", [ELEMENTS, SUMS, LOSSES, SHAPES, NETWORKS], ids=["elements", "sums", "losses", "shapes", "networks"]
)
def test_mistakes(given: Arrays, mistakes: list[tuple[Call, type[SleyError], str]]) -> None:
    for number, (call, error, words) in enumerate(mistakes):
        with pytest.raises(error) as caught:
            call(given)
        assert re.search(words, str(caught.value)), f"{number}: {caught.value}"
    assert (nn.add(given.i, 1).numpy() == 2).all()
    assert (nn.sum(given.i, 0).numpy() == 5).all()
