"""A token, and a prompt, of a Llama in golden arithmetic: what the device must give, bit by bit.

It is written from the description of the operators, not from the kernels: words of fp32 are ``np.uint32``, of bf16
``np.uint16``.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig, preset
from sley.abi.functions.table import Function
from sley.abi.types import ElementType
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.attention.problem import key_block
from sley.runtime.kernels.token_attention.problem import key_block as block_of_keys
from sley.runtime.llama.checkpoint import Checkpoint, Floats, Layer
from sley.runtime.llama.weights import quantised
from sley.runtime.nn.attention import exponent_factor
from sley.sim.golden import float32
from sley.sim.golden.attention import attention
from sley.sim.golden.functions import apply
from sley.sim.golden.matmul import bf16_sums
from sley.sim.golden.tile import GoldenTiles

Bits = NDArray[np.uint32]
MINUS_INFINITY = np.uint32(0xFF800000)


BASE = preset("base")


def word(value: float) -> Bits:
    return float32.to_bits(np.float32(value))


class GoldenLlama:
    """A request: its keys and values so far, of each layer [tokens, key heads · head].

    Attributes: ``keys``, ``values``; ``x``: the residual stream behind the last layer; ``logits``.
    """

    def __init__(self, checkpoint: Checkpoint, config: ChipConfig = BASE, parts: int = 2) -> None:
        self.checkpoint, self.shape, self.config, self.parts = checkpoint, checkpoint.shape, config, parts
        self.lanes = config.array
        self.layers = [self._layer(layer) for layer in checkpoint.layers]
        self.head = quantised(checkpoint.head)
        self.keys = [np.zeros((0, self.shape.key_width), np.uint16) for _ in self.layers]
        self.values = [np.zeros((0, self.shape.key_width), np.uint16) for _ in self.layers]
        self.x = np.zeros((1, self.shape.width), np.uint32)

    @staticmethod
    def _layer(layer: Layer) -> dict[str, tuple[NDArray[np.int8], Floats]]:
        return {
            "projection": quantised(np.concatenate([layer.query, layer.key, layer.value])),
            "output": quantised(layer.output),
            "gate_up": quantised(np.concatenate([layer.gate, layer.up])),
            "down": quantised(layer.down),
        }

    # Parts

    def squares(self, x: Bits) -> Bits:
        """The sum of each token's squares: lane by lane from the left, those of even and of odd blocks of lanes apart,
        then of all lanes."""
        tiles, x = GoldenTiles(), float32.multiply(x, x)
        halves = np.zeros((2, len(x), self.lanes), np.uint32)
        for blocks in x.reshape(len(x), -1, 2, self.lanes).transpose(1, 2, 0, 3):
            halves = float32.add(halves, blocks)
        rows = float32.add(halves[0], halves[1])
        return tiles.reduce("sum", rows, 1, ElementType.FP32, self.lanes)

    def normed_linear(self, x: Bits, norm: Floats, weights: tuple[NDArray[np.int8], Floats]) -> Bits:
        """Products of the RMS norm of tokens, whose roots are in their scales."""
        mean = float32.multiply(self.squares(x), word(1 / x.shape[1]))
        root = apply(Function.RSQRT, float32.add(mean, word(self.shape.epsilon)))
        return self.linear(float32.multiply(x, float32.to_bits(norm)), weights, root)

    def linear(self, x: Bits, weights: tuple[NDArray[np.int8], Floats], root: Bits | None = None) -> Bits:
        """Products of tokens: each is one or two int8 and a scale, which is multiplied by ``root``."""
        numbers, factors = weights
        largest = (x & ~float32.SIGN).max(axis=1, keepdims=True)
        scale = float32.maximum(
            float32.multiply(largest, word(1 / 127 if self.parts == 1 else 1 / (127 * 128))), word(2.0**-100)
        )
        units = float32.multiply(x, apply(Function.RECIPROCAL, scale))
        scale = scale if root is None else float32.multiply(root, scale)
        wide = numbers.T.astype(np.float64)  # sums are whole numbers, and exact
        if self.parts == 1:
            total = float32.from_int32((float32.to_int8(units).astype(np.float64) @ wide).astype(np.int32))
        else:
            high = apply(Function.ROUND, float32.multiply(units, word(1 / 128)))
            low = float32.add(units, float32.multiply(high, word(128)) ^ float32.SIGN)
            sums = [
                float32.from_int32((float32.to_int8(part).astype(np.float64) @ wide).astype(np.int32))
                for part in (high, low)
            ]
            total = float32.add(float32.multiply(sums[0], word(128)), sums[1])
        return float32.multiply(float32.multiply(total, scale), float32.to_bits(factors))

    def turned(self, x: Bits, positions: NDArray[np.int64]) -> NDArray[np.uint16]:
        """[tokens, heads, head], turned by their positions."""
        half = self.shape.head // 2
        angles = positions[:, None] * self.shape.rotary_base ** (-2 * np.arange(half) / self.shape.head)
        cos, sin = (float32.to_bits(f(angles).astype(np.float32))[:, None] for f in (np.cos, np.sin))
        a, b = x[..., :half], x[..., half:]
        first = float32.add(float32.multiply(a, cos), float32.multiply(b, sin) ^ float32.SIGN)
        second = float32.add(float32.multiply(b, cos), float32.multiply(a, sin))
        return float32.to_bf16(np.concatenate([first, second], axis=-1))

    def attend(self, queries: NDArray[np.uint16], number: int) -> NDArray[np.uint16]:
        """One token, [heads, head], to the keys of a layer, a block after the other."""
        shape = self.shape
        spread = np.zeros((shape.heads, shape.key_width), np.uint16)
        for head in range(shape.heads):
            own = head // shape.group * shape.head
            spread[head, own : own + shape.head] = queries[head]
        tiles, factor = GoldenTiles(), word(math.log2(math.e) / math.sqrt(shape.head))
        keys, values = self.keys[number], self.values[number]
        most, sums = np.full((1, shape.heads), MINUS_INFINITY), np.zeros((1, shape.heads), np.uint32)
        result = np.zeros((shape.key_width, shape.heads), np.uint32)
        size = block_of_keys(self.config, shape.key_width)
        for first in range(0, len(keys), size):
            count = min(size, len(keys) - first)
            block = np.zeros((2, size, shape.key_width), np.uint16)
            block[0, :count], block[1, :count] = keys[first : first + count], values[first : first + count]
            scores = bf16_sums(block[0], spread.T, None)
            scores[count:] = MINUS_INFINITY
            higher = float32.maximum(most, tiles.reduce("max", scores, 0, ElementType.FP32, self.lanes))
            powers = apply(Function.EXP2, float32.multiply(float32.add(scores, higher ^ float32.SIGN), factor))
            faded = apply(Function.EXP2, float32.multiply(float32.add(most, higher ^ float32.SIGN), factor))
            own = tiles.reduce("sum", powers, 0, ElementType.FP32, self.lanes)
            sums = float32.add(float32.multiply(sums, faded), own)
            before = float32.multiply(result, faded) if first else None
            result = bf16_sums(np.ascontiguousarray(block[1].T), float32.to_bf16(powers), before)
            most = higher
        rounded = float32.to_bf16(float32.multiply(result, apply(Function.RECIPROCAL, sums)))
        return np.stack([rounded[h // shape.group * shape.head :][: shape.head, h] for h in range(shape.heads)])

    # A request

    def run(self, tokens: NDArray[np.int64], one: bool | None = None) -> Bits:
        """Logits behind tokens: ``one`` more token, or the first ones of the request. Returns those of the last."""
        shape, first = self.shape, len(self.keys[0])
        one = len(tokens) == 1 and first > 0 if one is None else one
        positions = first + np.arange(len(tokens))
        x = float32.from_bf16(self.checkpoint.embedding.astype(BF16).view(np.uint16)[tokens])
        for number, (layer, weights) in enumerate(zip(self.checkpoint.layers, self.layers, strict=True)):
            projected = self.normed_linear(x, layer.attention_norm, weights["projection"])
            heads = projected.reshape(len(tokens), -1, shape.head)
            queries = self.turned(heads[:, : shape.heads], positions)
            keys = self.turned(heads[:, shape.heads : shape.heads + shape.key_heads], positions)
            values = float32.to_bf16(heads[:, shape.heads + shape.key_heads :])
            self.keys[number] = np.concatenate([self.keys[number], keys.reshape(len(tokens), -1)])
            self.values[number] = np.concatenate([self.values[number], values.reshape(len(tokens), -1)])
            seen = self.attend(queries[0], number)[None] if one else self._prompt(queries, keys, values)
            wide = float32.from_bf16(np.ascontiguousarray(seen.reshape(len(tokens), -1)))
            x = float32.add(x, self.linear(wide, weights["output"]))
            both = self.normed_linear(x, layer.feed_norm, weights["gate_up"])
            gate, up = both[:, : shape.hidden], both[:, shape.hidden :]
            hidden = float32.multiply(float32.multiply(apply(Function.SIGMOID, gate), gate), up)
            x = float32.add(x, self.linear(hidden, weights["down"]))
        self.x = x
        return self.normed_linear(x[-1:], self.checkpoint.norm, self.head)

    def _prompt(
        self, queries: NDArray[np.uint16], keys: NDArray[np.uint16], values: NDArray[np.uint16]
    ) -> NDArray[np.uint16]:
        """[tokens, heads, head], by the program of ``nn.attention``."""
        shape = self.shape
        blocks = {"key_block": key_block(self.config, shape.head), "group": self.lanes}
        return np.stack(
            [
                attention(
                    np.ascontiguousarray(queries[:, head]),
                    np.ascontiguousarray(keys[:, head // shape.group]),
                    np.ascontiguousarray(values[:, head // shape.group]),
                    factor=float32.to_bits(exponent_factor(None, shape.head)),
                    causal=True,
                    **blocks,
                )
                for head in range(shape.heads)
            ],
            axis=1,
        )
