"""Attention of tokens to pages of keys and values: the tile kernel beside the program by hand, on the same arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.bench.tile.beside import Beside, second_runs
from sley.bench.tile.kernels import paged_attention
from sley.runtime import Buffer, Device
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.token_attention.problem import TokenAttention, key_block
from sley.runtime.kernels.token_attention.program import token_attention_program


@dataclass(frozen=True)
class Pages:
    """A problem: tokens, the keys that each has places for, elements of a key, heads of queries."""

    requests: int
    keys: int
    width: int
    heads: int

    def arrays(self) -> tuple[Any, ...]:
        """Queries, keys, values, slots by number and a mask; each request sees another number of keys."""
        rng, count = np.random.default_rng(0), self.requests * self.keys + 3
        shapes = (self.requests, self.heads, self.width), (count, self.width), (count, self.width)
        q, k, v = (rng.standard_normal(shape).astype(BF16) for shape in shapes)
        slots = rng.permutation(count)[: self.requests * self.keys].reshape(self.requests, self.keys).astype(np.int32)
        lengths = self.keys - 7 * np.arange(self.requests)[:, None] % self.keys
        return q, k, v, slots, (np.arange(self.keys) < lengths).astype(np.float32)

    def wanted(self) -> Any:
        """[requests, width, heads] in float64."""
        q, k, v, slots, mask = (array.astype(np.float64) for array in self.arrays())
        places = slots.astype(int)
        scores = np.einsum("rhw,rkw->rhk", q, k[places]) / math.sqrt(self.width)
        weights = np.exp(np.where(mask[:, None] != 0, scores, -np.inf))
        return np.einsum("rhk,rkw->rwh", weights / weights.sum(-1, keepdims=True), v[places])


@dataclass(frozen=True)
class Compared(Beside):
    """``error``: the largest of both against float64."""

    error: float


def compare(device: Device, pages: Pages, keys: int | None = None) -> Compared:
    """Runs both. ``keys``: of a block of the tile kernel; by default it is chosen."""
    q, k, v, slots, mask = pages.arrays()
    arrays = [device.array(array) for array in (q, k, v, slots * (2 * pages.width), mask)]
    requests, width, heads = pages.requests, pages.width, pages.heads
    factor, block = math.log2(math.e) / math.sqrt(width), key_block(device.config, width)
    steps = (width, heads * width, width + 1)
    problem = TokenAttention(requests, pages.keys, width, 1, heads, *steps, factor, block)
    program = token_attention_program(device.config, problem)
    shapes = (requests, width, heads), (requests, width + 1, device.config.array)
    outs = [device.empty(shape, BF16) for shape in shapes]
    blocks = {} if keys is None else {"keys": keys}

    def by_tile() -> None:
        paged_attention[pages.requests](*arrays, outs[0], factor, **blocks)

    def by_hand() -> None:
        device.stream.launch(program, [*arrays, outs[1]], (1,))

    cycles = second_runs(device, by_tile, by_hand)
    wanted = pages.wanted()
    error = max(float(abs(_results(out, pages) - wanted).max()) for out in outs)
    return Compared(*cycles, error)


def _results(out: Buffer, pages: Pages) -> Any:
    """Lanes of heads, rows of elements."""
    return out.numpy()[:, : pages.width, : pages.heads].astype(np.float64)
