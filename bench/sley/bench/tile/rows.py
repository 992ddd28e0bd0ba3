"""Softmax and norms of rows of bf16: tile kernels beside the programs by hand, on the same arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.bench.tile import kernels
from sley.bench.tile.beside import Beside, second_runs
from sley.runtime import Buffer, Device, tile
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.rows.direct import fits
from sley.runtime.kernels.rows.kernel import keeps, row_program, temporary_rows
from sley.runtime.kernels.rows.norms import layer_norm_operator, rms_norm_operator
from sley.runtime.kernels.rows.passes import Pass, RowOperator, fp32, one_row
from sley.runtime.kernels.rows.shape import Rows
from sley.runtime.kernels.rows.softmax import softmax_operator

EPS = 1e-5
ULPS = 1.0
"""The largest error of either against float64, in units in the last place of bf16 of the largest result of its row."""


@dataclass(frozen=True)
class Compared(Beside):
    """``right``: whether both results are what float64 gives."""

    operator: str
    right: bool


def log_softmax_operator() -> RowOperator:
    """x - maximum - log of the sum of 2^((x - maximum) * log2(e)), as the program by hand does softmax."""
    softmax = softmax_operator(False)
    first, powers, last = softmax.passes
    logarithm = one_row(1, 2, Chain(function=Function.LOG2, multiply2=Operand.SPLAT1))
    ends = replace(
        Chain(binary=last.chain.binary, binary_operand=last.chain.binary_operand),
        binary2=BinaryOp.SUB,
        binary2_operand=Operand.ROW2,
    )
    splats = (*softmax.splats, fp32(math.log(2)))
    return RowOperator("log_softmax", (first, replace(powers, after=logarithm), Pass(ends)), splats)


def compare(device: Device, m: int, k: int) -> list[Compared]:
    """Each operator on rows of ``k`` elements, ``m`` of them."""
    config, random = device.config, np.random.default_rng(0)
    x, weight, bias = (random.standard_normal(shape).astype(BF16) for shape in ((m, k), (1, k), (1, k)))
    arrays = [device.array(value) for value in (x, weight, bias)]
    outs = device.empty((m, k), BF16), device.empty((m, k), BF16)
    wide, scale, shift = (value.astype(np.float64) for value in (x, weight, bias))
    powers = np.exp(wide - wide.max(1, keepdims=True))
    softmax = powers / powers.sum(1, keepdims=True)
    centred = wide - wide.mean(1, keepdims=True)
    layer = centred / np.sqrt((centred**2).mean(1, keepdims=True) + EPS) * scale + shift
    rms = wide / np.sqrt((wide**2).mean(1, keepdims=True) + EPS) * scale
    blocks = partial(_blocks, m)
    cases: list[tuple[Any, RowOperator, list[Buffer], tuple[float, ...], Any]] = [
        (kernels.softmax, softmax_operator(keeps(config, k)), arrays[:1], (), softmax),
        (kernels.log_softmax, log_softmax_operator(), arrays[:1], (), np.log(softmax)),
        (kernels.layer_norm, layer_norm_operator(k, EPS, True, True), arrays, (EPS,), layer),
        (kernels.rms_norm, rms_norm_operator(k, EPS, True, fits(config, k, True)), arrays[:2], (EPS,), rms),
    ]
    found = []
    for kernel, operator, operands, numbers, wanted in cases:
        by_tile = partial(kernel[blocks()], *operands, outs[0], *numbers)
        by_hand = partial(_by_hand, device, operator, operands, outs[1])
        cycles = second_runs(device, by_tile, by_hand)
        found.append(Compared(*cycles, operator.name, all(_right(out, wanted) for out in outs)))
    return found


def _blocks(m: int) -> Any:
    return lambda rows: tile.cdiv(m, rows)


def _by_hand(device: Device, operator: RowOperator, operands: list[Buffer], out: Buffer) -> None:
    (m, k), config = operands[0].shape, device.config
    shape = Rows(m, k, 2 * k, 2 * k, min(config.cores, -(-m // config.array)))
    temporary = device.empty((temporary_rows(config, operator, shape), config.array), BF16)
    program = row_program(config, operator, shape)
    device.stream.launch(program, [operands[0], out, temporary, *operands[1:]], (shape.blocks,))


def _right(out: Buffer, wanted: Any) -> bool:
    largest = np.abs(wanted).max(1, keepdims=True)
    error = np.abs(out.numpy().astype(np.float64) - wanted)
    return bool((error <= ULPS * 2.0 ** (np.floor(np.log2(largest)) - 7)).all())
