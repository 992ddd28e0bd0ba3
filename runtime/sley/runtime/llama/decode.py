"""One more token of each request: a graph of launches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sley.runtime.device.buffer import BF16
from sley.runtime.device.device import Device
from sley.runtime.kernels.token_attention.problem import key_block
from sley.runtime.llama.cache import PagedCache, Table
from sley.runtime.llama.head_attention import HeadAttention
from sley.runtime.llama.kernels.heads import heads_of_tokens
from sley.runtime.llama.kernels.residual import embed, norm_scales
from sley.runtime.llama.tokens import Norm, Tokens
from sley.runtime.llama.weights import Linear, LlamaWeights
from sley.runtime.tile.choices import cdiv

_ROWS = 16
"""Most requests of a block of ``heads_of_tokens``."""
Floats = NDArray[np.float32]


class Decode:
    """A token of each of ``requests``, with up to ``keys`` tokens before it and it itself.

    Attributes
    ----------
    requests, keys: sizes that it was captured for. x: [requests, width] float32, the residual stream. logits:
    [requests, vocabulary] float32. graph: the launches.
    """

    def __init__(
        self, device: Device, weights: LlamaWeights, cache: PagedCache, requests: int, keys: int, parts: int
    ) -> None:
        self.device, self.weights, self.cache, self.parts = device, weights, cache, parts
        shape = weights.shape
        block = key_block(device.config, shape.key_width)
        self.requests, self.keys = requests, cdiv(keys, block) * block
        self._head_attention = HeadAttention(device, shape, requests, self.keys, block)
        self._tokens, self._positions, self._slots = (device.zeros((1, requests), np.int32) for _ in range(3))
        self._key_slots = device.zeros((requests, self.keys), np.int32)
        self._mask = device.zeros((requests, self.keys), np.float32)
        self.x = device.empty((requests, shape.width), np.float32)
        self._scales, self._inner_scales = (device.empty((requests, 1), np.float32) for _ in range(2))
        self._places = device.zeros((3, requests), np.int32)
        self._queries = device.zeros((requests, shape.heads, shape.key_width), BF16)
        self._gated = device.empty((requests, shape.hidden), np.float32)
        self._inverses, self._gated_inverses = (device.empty((requests, 1), np.float32) for _ in range(2))
        self.logits = device.empty((requests, shape.vocabulary), np.float32)
        with device.stream.capture() as self.graph:
            self._run()

    def __call__(self, tokens: Sequence[int], tables: Sequence[Table | None]) -> Floats:
        """Logits [requests, vocabulary] behind these tokens, one for each request, which are put into the cache; no
        table: there is no such request. Raises ``CacheFull``."""
        self.write(tokens, tables)
        self.graph.launch()
        values: Floats = self.logits.numpy()
        return values

    def write(self, tokens: Sequence[int], tables: Sequence[Table | None]) -> None:
        """Sets what the next launch is for. Raises ``CacheFull``."""
        positions, slots = (
            np.zeros((1, self.requests), np.int32),
            np.full((1, self.requests), self.cache.idle, np.int32),
        )
        keys = np.full((self.requests, self.keys), self.cache.idle, np.int32)
        mask = np.zeros((self.requests, self.keys), np.float32)
        mask[:, 0] = 1
        for table in tables:
            if table is not None:
                table.check_room(1)
        for number, table in enumerate(tables):
            if table is not None:
                positions[0, number] = table.length
                slots[0, number] = table.extend(1)[0]
                keys[number, : table.length] = table.slots()
                mask[number, : table.length] = 1
        self._tokens.write(np.asarray(tokens, np.int32)[None])
        table_row, request = self.weights.cosines.strides[0], np.arange(self.requests, dtype=np.int32)
        places = [positions[0] * table_row, request * self._queries.strides[0], slots[0] * self.cache.slot_bytes]
        for array, values in (
            (self._places, np.stack(places)),
            (self._positions, positions),
            (self._slots, slots),
            (self._key_slots, keys * self.cache.slot_bytes),
            (self._mask, mask),
        ):
            array.write(values)

    def _run(self) -> None:
        weights, lanes, epsilon = self.weights, self.device.config.array, self.weights.shape.epsilon
        embed[lambda rows: cdiv(self.requests, rows)](self._tokens, weights.embedding, self.x)
        first = weights.layers[0].attention_norm
        norm_scales[1](
            self.x, first.weights, self._scales, self._inverses, epsilon, self.parts, lanes, rows=self.requests
        )
        norms = [layer.attention_norm for layer in weights.layers] + [weights.norm]
        statistics, parts = (self._scales, self._inverses), self.parts
        gated = Tokens(self._gated, self._inner_scales, self._gated_inverses, None, parts)
        attention = self._head_attention
        seen = Tokens(attention.results, self._inner_scales, parts=parts, lanes=attention.lanes)
        for number, (layer, norm) in enumerate(zip(weights.layers, norms[1:], strict=True)):
            self._heads(number, layer.projection, self._normed(norms[number]))
            caches = self.cache.keys[number], self.cache.values[number]
            self._head_attention(self._queries, *caches, self._key_slots, self._mask)
            layer.output.added_tokens(seen, self.x, *statistics, layer.feed_norm, epsilon)
            layer.gate_up.gated_tokens(
                self._normed(layer.feed_norm), self._gated, self._inner_scales, self._gated_inverses
            )
            layer.down.added_tokens(gated, self.x, *statistics, norm, epsilon)
        weights.head.of_tokens(self._normed(weights.norm), self.logits)

    def _normed(self, norm: Norm) -> Tokens:
        """The residual stream behind a norm."""
        return Tokens(self.x, self._scales, self._inverses, norm, self.parts)

    def _heads(self, number: int, projection: Linear, x: Tokens) -> None:
        """Queries, keys and values of a layer, turned by positions; keys and values to the cache."""
        weights, shape, queries = self.weights, self.weights.shape, self._queries
        keys, values = self.cache.keys[number], self.cache.values[number]
        tables = weights.cosines, weights.sines
        if not projection.cached_tokens(x, queries, self._places, tables, keys, values):
            projected = self.device.empty((self.requests, shape.projected), np.float32)
            projection.of_tokens(x, projected)
            heads = projected.reshape(self.requests, -1, shape.head)
            places, rows = (self._positions, self._slots), math.gcd(self.requests, _ROWS)
            arrays = heads, *tables, *places, queries, keys, values
            heads_of_tokens[self.requests // rows](*arrays, shape.key_heads, rows=rows)
