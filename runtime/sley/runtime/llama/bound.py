"""The least cycles of a token: all that it needs once over the memory bus."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.runtime.llama.shape import LlamaShape


def token_bytes(shape: LlamaShape, keys: int) -> int:
    """Bytes read for a token that sees so many keys: int8 weights, a float32 scale for each output, norms in two
    bytes, keys and values in bfloat16."""
    outputs = shape.layers * (shape.projected + 2 * shape.width + 2 * shape.hidden) + shape.vocabulary
    norms = (2 * shape.layers + 1) * shape.width
    cached = 2 * shape.layers * shape.key_width * keys
    return shape.linear_weights + 4 * outputs + 2 * norms + 2 * cached


def token_bound(config: ChipConfig, shape: LlamaShape, keys: int) -> int:
    """Cycles of the memory bus for these bytes; products of few tokens are faster than that."""
    return -(-token_bytes(shape, keys) // config.bus_bytes)


def prompt_bound(config: ChipConfig, shape: LlamaShape, tokens: int, parts: int) -> int:
    """Cycles of the array for a prompt: linear products of int8, once for each part, of the head for the last token
    alone; attention in bfloat16, of the keys that a token sees."""
    layers = shape.linear_weights - shape.vocabulary * shape.width
    pairs = shape.layers * shape.heads * tokens * (tokens + 1) // 2
    int8 = parts * (tokens * layers + shape.vocabulary * shape.width)
    return -(-int8 // config.peak_macs) + -(-2 * pairs * shape.head // (config.array**2 * config.cores))
