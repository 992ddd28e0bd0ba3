"""All tokens of a prompt at once: a graph of launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.llama.cache import PagedCache, Table
from sley.runtime.llama.kernels.heads import to_cache
from sley.runtime.llama.kernels.quantised import to_int8
from sley.runtime.llama.kernels.residual import embed, norm_scales, rows_quantised
from sley.runtime.llama.tokens import Norm, Tokens
from sley.runtime.llama.weights import TOKENS, DeviceLayer, Linear, LlamaWeights
from sley.runtime.nn.attention import attention
from sley.runtime.tile.choices import cdiv


def padded(tokens: int) -> int:
    """Tokens of the graph that a prompt of so many takes."""
    return cdiv(tokens, TOKENS) * TOKENS


class Prompt:
    """The first ``tokens`` tokens of a request, with no tokens before them.

    Attributes
    ----------
    tokens: how many it was captured for, a multiple of ``TOKENS``. every: whether it has the logits of all tokens, or
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
        self._q = device.empty((count, shape.width), np.int8)
        self._scales, self._inner_scales, self._inverses = (
            device.empty((self.tokens, 1), np.float32) for _ in range(3)
        )
        self._projected = device.empty((shape.heads + 2 * shape.key_heads, self.tokens, shape.head), BF16)
        self._seen = device.empty((self.tokens, shape.heads_width), BF16)
        self._heads = device.empty((count, shape.heads_width), np.int8)
        self._gated = device.empty((self.tokens, shape.hidden), np.float32)
        self._hidden = device.empty((count, shape.hidden), np.int8)
        self._last_x = device.empty((1, shape.width), np.float32)
        self.logits = device.empty((self.tokens if every else 1, shape.vocabulary), np.float32)
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
        weights = self.weights
        embed[lambda rows: cdiv(self.tokens, rows)](self._tokens, weights.embedding, self.x)
        self._norm_scales(self.x, weights.layers[0].attention_norm, TOKENS)
        norms = [layer.attention_norm for layer in weights.layers[1:]] + [weights.norm]
        before = weights.layers[0].attention_norm
        for number, (layer, norm) in enumerate(zip(weights.layers, norms, strict=True)):
            self._to_int8(self.x, before, self._q)
            self._attention(number, layer)
            self._added(self._heads, layer.output, layer.feed_norm)
            self._to_int8(self.x, layer.feed_norm, self._q)
            layer.gate_up.gated(self._q, self._scales, self._gated, self._inner_scales, self._inverses)
            self._to_int8(self._gated, None, self._hidden)
            self._added(self._hidden, layer.down, norm)
            before = norm
        if self.every:
            self._to_int8(self.x, weights.norm, self._q)
            weights.head.of_prompt(self._q, self._scales, self.logits)
            return
        embed[1](self._last, self.x, self._last_x, rows=1)
        self._norm_scales(self._last_x, weights.norm, 1)
        last = Tokens(self._last_x, self._scales[:1], self._inverses[:1], weights.norm, self.parts)
        weights.head.of_tokens(last, self.logits)

    def _attention(self, number: int, layer: DeviceLayer) -> None:
        """Up to the parts of the output's product."""
        weights, shape, parts = self.weights, self.weights.shape, self.parts
        turned = shape.heads + shape.key_heads
        layer.projection.heads(self._q, self._scales, self._projected, (weights.cosines, weights.sines), turned)
        keys, values = self._projected[shape.heads : turned], self._projected[turned:]
        to_cache[lambda rows: (self.tokens // rows, shape.key_heads)](
            keys, values, self._slots, self.cache.keys[number], self.cache.values[number]
        )
        queries = self._projected[: shape.heads].reshape(shape.key_heads, shape.group, self.tokens, shape.head)
        seen = self._seen.reshape(self.tokens, shape.key_heads, shape.group, shape.head)
        for member in range(shape.group):
            attention(
                queries[None, :, member],
                keys[None],
                values[None],
                causal=True,
                out=seen[:, :, member].transpose(1, 0, 2)[None],
            )
        rows_quantised[lambda rows: self.tokens // rows](self._seen, self._heads, self._inner_scales, parts)

    def _norm_scales(self, x: Buffer, norm: Norm, rows: int) -> None:
        """Scales of the norm of tokens of x, and what makes int8 of x times its weights."""
        count, lanes = x.shape[0], self.device.config.array
        norm_scales[cdiv(count, rows)](
            x,
            norm.weights,
            self._scales[:count],
            self._inverses[:count],
            self.weights.shape.epsilon,
            self.parts,
            lanes,
            rows=rows,
        )

    def _to_int8(self, x: Buffer, norm: Norm | None, q: Buffer) -> None:
        """Tokens of x, times a norm's weights if there is one, by what is known to make int8 of them."""
        count, width = x.shape
        to_int8[lambda rows, columns: (cdiv(width, columns), cdiv(count, rows))](
            x, None if norm is None else norm.weights, self._inverses[:count], q, self.parts
        )

    def _added(self, x: Buffer, linear: Linear, norm: Norm) -> None:
        """The residual stream and a product; the scales of its norm."""
        linear.added(x, self._inner_scales, self.x, self._scales, self._inverses, norm, self.weights.shape.epsilon)
