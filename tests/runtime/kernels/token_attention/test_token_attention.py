"""Attention of single tokens to keys and values anywhere in memory, bit by bit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from sley.abi.config import preset
from sley.abi.functions.table import Function
from sley.abi.types import ElementType
from sley.runtime import Device
from sley.runtime.device.buffer import BF16
from sley.runtime.errors import KernelError
from sley.runtime.kernels.token_attention.problem import TokenAttention, key_block, place
from sley.runtime.kernels.token_attention.program import token_attention_program
from sley.sim.golden import float32
from sley.sim.golden.functions import apply
from sley.sim.golden.matmul import bf16_sums
from sley.sim.golden.tile import GoldenTiles

Bits = NDArray[np.uint32]
MODEL = "model:base?memory=8M"


def golden(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, p: TokenAttention) -> NDArray[np.uint16]:
    """[head + 1, N] of a request; keys and values are those that it sees, in order."""
    tiles, factor = GoldenTiles(), float32.to_bits(np.float32(p.factor))
    most, sums = np.full((1, p.heads), 0xFF800000, np.uint32), np.zeros((1, p.heads), np.uint32)
    result = np.zeros((p.width, p.heads), np.uint32)
    for first in range(0, p.keys, p.block):
        count = max(0, min(p.block, len(keys) - first))
        block = np.zeros((2, p.block, p.width), np.uint16)
        block[0, :count], block[1, :count] = keys[first : first + count], values[first : first + count]
        scores = bf16_sums(block[0], queries.T, None)
        scores[count:] = 0xFF800000
        higher = float32.maximum(most, tiles.reduce("max", scores, 0, ElementType.FP32, 16))
        powers = apply(Function.EXP2, float32.multiply(float32.add(scores, higher ^ float32.SIGN), factor))
        faded = apply(Function.EXP2, float32.multiply(float32.add(most, higher ^ float32.SIGN), factor))
        own = tiles.reduce("sum", powers, 0, ElementType.FP32, 16)
        sums = float32.add(float32.multiply(sums, faded), own) if first else own
        before = float32.multiply(result, faded) if first else None
        result = bf16_sums(np.ascontiguousarray(block[1].T), float32.to_bf16(powers), before)
        most = higher
    rounded = float32.to_bf16(float32.multiply(result, apply(Function.RECIPROCAL, sums)))
    bits = np.zeros((p.head + 1, 16), np.uint16)
    for head in range(p.heads):
        bits[:-1, head] = rounded[head // p.group * p.head :][: p.head, head]
    bits[-1] = (bits[:-1] & 0x7FFF).max(axis=0)
    return bits


def run(p: TokenAttention, lengths: list[int], engine: str = MODEL) -> int | None:
    """Compares, and returns the cycles of an engine that has some. Slots of a request are anywhere, and each request
    sees so many keys."""
    random, slots = np.random.default_rng(p.keys), p.requests * p.keys + 3
    queries, keys, values = (
        random.standard_normal(shape).astype(BF16)
        for shape in ((p.requests, p.heads, p.width), (slots, p.width), (slots, p.width))
    )
    order = random.permutation(slots)[: p.requests * p.keys].reshape(p.requests, p.keys).astype(np.int32)
    mask = (np.arange(p.keys)[None] < np.array(lengths)[:, None]).astype(np.float32)
    with Device.open(engine) as device:
        arrays = [device.array(a) for a in (queries, keys, values, order * (2 * p.width), mask)]
        out = device.full((p.requests, p.result_step, 16), 7.0, BF16)
        program = token_attention_program(device.config, p)
        with device.stream.timed() as timing:
            device.stream.launch(program, [*arrays, out], (p.cores,))
        found = out.numpy().view(np.uint16)
    for number, length in enumerate(lengths):
        seen = order[number, :length]
        sides = (a.view(np.uint16) for a in (queries[number], keys[seen], values[seen]))
        assert (found[number, : p.head + 1] == golden(*sides, p)).all(), number
        assert (found[number, p.head + 1 :] == 0x40E0).all()
    return timing.measured


def problem(requests: int, keys: int, width: int, heads: int, key_heads: int = 1) -> TokenAttention:
    """Results of a request have two rows more than they need."""
    block, factor, step = key_block(preset("base"), width), math.log2(math.e) / 8, width // key_heads + 3
    return TokenAttention(requests, keys, width, key_heads, heads, width, heads * width, step, factor, block)


@pytest.mark.parametrize(
    ("keys", "width", "heads", "key_heads", "lengths"),
    [
        (128, 64, 3, 1, [1, 128]),
        (256, 192, 9, 3, [129, 7, 256]),
        (384, 16, 16, 1, [300]),
        (192, 320, 15, 5, [64, 63]),
        (128, 128, 16, 2, [3, 128, 1, 99]),
    ],
)
def test_requests(keys: int, width: int, heads: int, key_heads: int, lengths: list[int]) -> None:
    """One block and several, lengths at their ends, wide keys with smaller blocks, requests behind each other."""
    run(problem(len(lengths), keys, width, heads, key_heads), lengths)


def test_cores() -> None:
    """Cores take as many requests each."""
    run(replace(problem(4, 128, 64, 6, 2), cores=2), [128, 1, 77, 30], "model:quad?memory=8M")


def test_refused() -> None:
    base = preset("base")
    with pytest.raises(KernelError, match=r"attention of 17 heads .* at most 16"):
        place(base, problem(1, 128, 64, 17))
    with pytest.raises(KernelError, match="keys of 8192 elements have no room"):
        key_block(base, 8192)
    with pytest.raises(KernelError, match="attention to 100 keys"):
        place(base, problem(1, 100, 64, 3))
    with pytest.raises(KernelError, match="attention of 5 heads to 2 of keys in 64 elements"):
        place(base, problem(1, 128, 64, 5, 2))


@pytest.mark.slow
def test_on_the_gateware() -> None:
    """The same bits, and the cycles of the model."""
    p = problem(2, 256, 64, 6, 2)
    assert run(p, [200, 5], "fast:base?memory=8M") == run(p, [200, 5], f"{MODEL}&cycles=on")
