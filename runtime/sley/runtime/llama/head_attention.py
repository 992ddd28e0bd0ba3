"""Attention of tokens to the cache, in launches of as many heads as the chip has lanes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program
from sley.runtime.kernels.token_attention.problem import TokenAttention
from sley.runtime.kernels.token_attention.program import token_attention_program
from sley.runtime.llama.shape import LlamaShape


@dataclass(frozen=True)
class _Part:
    """Heads of one launch: its key heads, and the program."""

    key_heads: slice
    program: Program


class HeadAttention:
    """Of ``requests`` tokens, each with up to ``keys`` others, ``block`` of them at a time.

    Each launch has whole key heads, so a key head has no more heads of queries than the chip has lanes; it reads no
    others' columns. Raises ``KernelError`` if a program has no room.

    Attributes
    ----------
    lanes: heads of each launch. results: [requests, launches, head + 1, N] bfloat16, see ``token_attention_program``.
    """

    def __init__(self, device: Device, shape: LlamaShape, requests: int, keys: int, block: int) -> None:
        config = device.config
        self._device, self._shape = device, shape
        self._cores = math.gcd(requests, config.cores)
        most = config.array // shape.group
        self._parts: list[_Part] = []
        counts = [min(most, shape.key_heads - first) for first in range(0, shape.key_heads, most)]
        self.lanes = tuple(count * shape.group for count in counts)
        self.results = device.empty((requests, len(counts), shape.head + 1, config.array), BF16)
        for first, count in zip(range(0, shape.key_heads, most), counts, strict=True):
            problem = TokenAttention(
                requests,
                keys,
                count * shape.head,
                count,
                count * shape.group,
                shape.key_width,
                shape.heads * shape.key_width,
                len(counts) * (shape.head + 1),
                math.log2(math.e) / math.sqrt(shape.head),
                block,
                self._cores,
            )
            self._parts.append(_Part(slice(first, first + count), token_attention_program(config, problem)))

    def __call__(self, queries: Buffer, keys: Buffer, values: Buffer, slots: Buffer, mask: Buffer) -> None:
        """queries: [requests, heads, key heads · head], of each head zeros but in the columns of its key head. keys,
        values: [slots, key heads, head]. slots, mask: [requests, keys], see ``token_attention_program``. All but slots
        and mask are bfloat16."""
        head, group = self._shape.head, self._shape.group
        for number, part in enumerate(self._parts):
            own = part.key_heads
            columns = slice(own.start * head, own.stop * head)
            mine = queries[:, own.start * group : own.stop * group, columns]
            arguments = [mine, keys[:, own], values[:, own], slots, mask, self.results[:, number]]
            self._device.stream.launch(part.program, arguments, (self._cores,))
