"""All tokens of a prompt at once: a graph of launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime import blas
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.llama.cache import PagedCache, Table
from sley.runtime.llama.kernels.feed_forward import gated
from sley.runtime.llama.kernels.heads import keys_of_prompt, queries_of_prompt
from sley.runtime.llama.kernels.layout import flat
from sley.runtime.llama.kernels.residual import add, begin, embed, logits, rows_quantised
from sley.runtime.llama.weights import DeviceLayer, LlamaWeights
from sley.runtime.nn.attention import attention
from sley.runtime.tile.choices import cdiv

ROWS = 64
"""Tokens of a block; prompts are padded to a multiple."""
PIECES = 256
"""Logits of a block."""


def padded(tokens: int) -> int:
    """Tokens of the graph that a prompt of so many takes."""
    return cdiv(tokens, ROWS) * ROWS


class Prompt:
    """The first ``tokens`` tokens of a request, with no tokens before them.

    Attributes
    ----------
    tokens: how many it was captured for, a multiple of ``ROWS``. every: whether it has the logits of all tokens, or
    those of the last one. x: [tokens, width] float32, the residual stream. logits: [tokens or 1, vocabulary] float32.
    graph: the launches.
    """

    def __init__(
        self,
        device: Device,
        weights: LlamaWeights,
        cache: PagedCache,
        tokens: int,
        parts: int,
        every: bool = False,
    ) -> None:
        self.device, self.weights, self.cache, self.parts, self.every = device, weights, cache, parts, every
        self.tokens = padded(tokens)
        shape, count = weights.shape, parts * self.tokens
        self._tokens, self._slots = (device.zeros((1, self.tokens), np.int32) for _ in range(2))
        self._last = device.zeros((1, 1), np.int32)
        self.x = device.empty((self.tokens, shape.width), np.float32)
        self._q, self._scales = device.empty((count, shape.width), np.int8), device.empty((self.tokens, 1), np.float32)
        self._inner_scales = device.empty((self.tokens, 1), np.float32)
        self._sums = device.empty((count, shape.width), np.int32)
        self._projected = device.empty((count, shape.projected), np.int32)
        self._queries = device.empty((shape.heads, self.tokens, shape.head), BF16)
        self._keys, self._values = (device.empty((shape.key_heads, self.tokens, shape.head), BF16) for _ in range(2))
        self._seen = device.empty((self.tokens, shape.heads_width), BF16)
        self._heads = device.empty((count, shape.heads_width), np.int8)
        self._gate_up = device.empty((count, 2 * shape.hidden), np.int32)
        self._hidden = device.empty((count, shape.hidden), np.int8)
        outputs = self.tokens if every else 1
        self._last_x = device.empty((1, shape.width), np.float32)
        self._last_q = device.empty((parts, shape.width), np.int8)
        self._last_scale = device.empty((1, 1), np.float32)
        self._head_sums = device.empty((parts * outputs, shape.vocabulary), np.int32)
        self.logits = device.empty((outputs, shape.vocabulary), np.float32)
        with device.stream.capture() as self.graph:
            self._run()

    def __call__(self, tokens: Sequence[int], table: Table) -> NDArray[np.float32]:
        """Logits [1 or tokens, vocabulary] behind these tokens, which are put into the cache. Raises ``CacheFull``."""
        self.write(tokens, table)
        self.graph.launch()
        values: NDArray[np.float32] = self.logits.numpy()
        return values[: len(tokens)]

    def write(self, tokens: Sequence[int], table: Table) -> None:
        """Sets what the next launch is for. Raises ``BadRequest``, ``CacheFull``."""
        if not 1 <= len(tokens) <= self.tokens or table.length:
            raise BadRequest(
                f"{len(tokens)} tokens behind {table.length}; this graph takes 1 to {self.tokens} that begin a request"
            )
        numbers, slots = np.zeros((1, self.tokens), np.int32), np.full((1, self.tokens), self.cache.idle, np.int32)
        numbers[0, : len(tokens)] = tokens
        slots[0, : len(tokens)] = table.extend(len(tokens))
        self._tokens.write(numbers)
        self._slots.write(slots)
        self._last.write(np.array([[len(tokens) - 1]], np.int32))

    def _run(self) -> None:
        weights, epsilon, parts, x, q = (
            self.weights,
            self.weights.shape.epsilon,
            self.parts,
            flat(self.x),
            flat(self._q),
        )

        def blocks(rows: int) -> int:
            return cdiv(self.tokens, rows)

        embed[blocks](self._tokens, weights.embedding, self.x)
        begin[blocks](x, flat(weights.layers[0].attention_norm), q, self._scales, epsilon, parts)
        norms = [layer.attention_norm for layer in weights.layers[1:]] + [weights.norm]
        for number, (layer, norm) in enumerate(zip(weights.layers, norms, strict=True)):
            self._attention(number, layer)
            self._add(layer.output.scales, layer.feed_norm)
            blas.gemm(self._q, layer.gate_up.weights, out=self._gate_up)
            gated[blocks](
                flat(self._gate_up),
                self._scales,
                flat(layer.gate_up.scales),
                flat(self._hidden),
                self._inner_scales,
                parts,
            )
            blas.gemm(self._hidden, layer.down.weights, out=self._sums)
            self._add(layer.down.scales, norm)
        head_q, head_scales = self._q, self._scales
        if not self.every:
            embed[1](self._last, self.x, self._last_x, rows=1)
            head_q, head_scales = self._last_q, self._last_scale
            begin[1](flat(self._last_x), flat(weights.norm), flat(head_q), head_scales, epsilon, parts, rows=1)
        blas.gemm(head_q, weights.head.weights, out=self._head_sums)
        rows = 16 if self.every else 1
        logits[cdiv(weights.shape.vocabulary, PIECES), cdiv(self.logits.shape[0], rows)](
            flat(self._head_sums),
            head_scales,
            flat(weights.head.scales),
            flat(self.logits),
            parts,
            rows=rows,
            pieces=PIECES,
        )

    def _attention(self, number: int, layer: DeviceLayer) -> None:
        """Up to the sums of the output's product."""
        weights, shape, parts = self.weights, self.weights.shape, self.parts
        blas.gemm(self._q, layer.projection.weights, out=self._projected)
        heads = shape.heads + 2 * shape.key_heads
        sums = self._projected.reshape(-1, heads, shape.head)
        scales = layer.projection.scales.reshape(heads, shape.head)
        turns = weights.cosines, weights.sines
        queries_of_prompt[lambda rows: (self.tokens // rows, shape.heads)](
            sums, self._scales, scales, *turns, self._queries, parts
        )
        keys_of_prompt[lambda rows: (self.tokens // rows, shape.key_heads)](
            sums,
            self._scales,
            scales,
            *turns,
            self._slots,
            self._keys,
            self._values,
            self.cache.keys[number],
            self.cache.values[number],
            shape.heads,
            parts,
        )
        queries = self._queries.reshape(shape.key_heads, shape.group, self.tokens, shape.head)
        seen = self._seen.reshape(self.tokens, shape.key_heads, shape.group, shape.head)
        for member in range(shape.group):
            attention(
                queries[None, :, member],
                self._keys[None],
                self._values[None],
                causal=True,
                out=seen[:, :, member].transpose(1, 0, 2)[None],
            )
        rows_quantised[lambda rows: cdiv(self.tokens, rows)](
            flat(self._seen), flat(self._heads), self._inner_scales, parts
        )
        blas.gemm(self._heads, layer.output.weights, out=self._sums)

    def _add(self, scales: Buffer, norm: Buffer) -> None:
        add[lambda rows: cdiv(self.tokens, rows)](
            flat(self._sums),
            self._inner_scales,
            flat(scales),
            flat(self.x),
            flat(norm),
            flat(self._q),
            self._scales,
            self.weights.shape.epsilon,
            self.parts,
        )
