"""Attention of tokens to the cache, in launches of as many heads as the chip has lanes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.runtime.kernels.token_attention.problem import TokenAttention
from sley.runtime.kernels.token_attention.program import token_attention_program
from sley.runtime.llama.kernels.attention import rows_of_heads
from sley.runtime.llama.shape import LlamaShape


@dataclass(frozen=True)
class _Part:
    """Heads of one launch: its key heads, the program, and the results as the program leaves them."""

    key_heads: slice
    program: Program
    results: Buffer


class HeadAttention:
    """Of ``requests`` tokens, each with up to ``keys`` others, ``block`` of them at a time.

    Each launch has whole key heads, so a key head has no more heads of queries than the chip has lanes; it reads no
    others' columns. Raises ``KernelError`` if a program has no room.
    """

    def __init__(self, device: Device, shape: LlamaShape, requests: int, keys: int, block: int) -> None:
        config = device.config
        self._device, self._shape, self._requests = device, shape, requests
        self._cores = math.gcd(requests, config.cores)
        most = config.array // shape.group
        self._parts: list[_Part] = []
        for first in range(0, shape.key_heads, most):
            count = min(most, shape.key_heads - first)
            problem = TokenAttention(
                requests,
                keys,
                count * shape.head,
                count * shape.group,
                shape.key_width,
                shape.heads * shape.key_width,
                math.log2(math.e) / math.sqrt(shape.head),
                block,
                self._cores,
            )
            results = device.empty((requests, problem.width, config.array), BF16)
            program = token_attention_program(config, problem)
            self._parts.append(_Part(slice(first, first + count), program, results))

    def __call__(
        self, queries: Buffer, keys: Buffer, values: Buffer, slots: Buffer, mask: Buffer, seen: Buffer
    ) -> None:
        """queries: [requests, heads, key heads · head], of each head zeros but in the columns of its key head. keys,
        values: [slots, key heads, head]. slots, mask: [requests, keys], see ``token_attention_program``. seen:
        [requests, key heads, heads of each, head], the result. All but slots and mask are bfloat16."""
        head, group = self._shape.head, self._shape.group
        for part in self._parts:
            own = part.key_heads
            columns = slice(own.start * head, own.stop * head)
            mine = queries[:, own.start * group : own.stop * group, columns]
            arguments = [mine, keys[:, own], values[:, own], slots, mask, part.results]
            self._device.stream.launch(part.program, arguments, (self._cores,))
            rows_of_heads[own.stop - own.start, self._requests](part.results, seen[:, own])
