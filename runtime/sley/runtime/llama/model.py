"""A model of the Llama family on a device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.device.device import Device
from sley.runtime.kernels.token_attention.problem import key_block
from sley.runtime.llama.cache import PagedCache, Table
from sley.runtime.llama.checkpoint import Checkpoint
from sley.runtime.llama.decode import Decode
from sley.runtime.llama.prompt import Prompt, padded
from sley.runtime.llama.shape import LlamaShape
from sley.runtime.llama.weights import LlamaWeights


class Llama:
    """Logits of the next token, for one or more requests.

    Graphs are captured when they are needed first: of prompts for each multiple of 64 tokens, of single tokens for each
    number of requests and each power of two of blocks of keys, 128 on ``base`` with SmolLM2.

    Parameters
    ----------
    device: where it runs; it has bf16, int8 and lists. checkpoint: the model.
    context: tokens that a request may have, prompt and answer; by default the model's own, at most 2,048.
    cache: tokens of all requests together for which keys and values are kept; by default ``context``.
    prompt_parts: parts of int8 that an activation has in products of prompts: 1, or 2 for 15 bits, which take twice
        the time. Single tokens have 2, which take none.

    Raises ``BadRequest``.
    """

    TOKEN_PARTS = 2

    def __init__(
        self,
        device: Device,
        checkpoint: Checkpoint,
        *,
        context: int | None = None,
        cache: int | None = None,
        prompt_parts: int = 2,
    ) -> None:
        if prompt_parts not in (1, 2):
            raise BadRequest(f"prompt_parts is {prompt_parts}; activations have 1 or 2 parts")
        _check_fits(device, checkpoint.shape)
        own = checkpoint.shape.context
        length = min(own, 2048) if context is None else context
        if not 1 <= length <= own:
            raise BadRequest(f"a context of {length} tokens; this model has 1 to {own}")
        self.device, self.prompt_parts = device, prompt_parts
        self.weights = LlamaWeights(device, checkpoint, padded(length))
        self.cache = PagedCache(device, checkpoint.shape, length if cache is None else cache)
        self._prompts: dict[int, Prompt] = {}
        self._decodes: dict[tuple[int, int], Decode] = {}

    def prompt(self, tokens: Sequence[int], table: Table) -> NDArray[np.float32]:
        """Logits [1, vocabulary] behind the first tokens of a request. Raises ``BadRequest``, ``CacheFull``."""
        self.check_tokens(tokens)
        return self.prompt_graph(len(tokens))(tokens, table)

    def decode(self, tokens: Sequence[int], tables: Sequence[Table | None]) -> NDArray[np.float32]:
        """Logits [requests, vocabulary] behind one more token of each request; without a table there is none, and its
        logits mean nothing. Raises ``BadRequest``, ``CacheFull``."""
        if len(tokens) != len(tables):
            raise BadRequest(f"{len(tokens)} tokens and {len(tables)} tables; each request has one of both")
        self.check_tokens(tokens)
        longest = max((table.length for table in tables if table is not None), default=0) + 1
        return self.decode_graph(len(tokens), longest)(tokens, tables)

    def check_tokens(self, tokens: Sequence[int]) -> None:
        """Raises ``BadRequest`` for a number that is no token."""
        count = self.weights.shape.vocabulary
        for token in tokens:
            if not 0 <= token < count:
                raise BadRequest(f"token {token}, and the vocabulary has {count}")

    def prompt_graph(self, tokens: int) -> Prompt:
        """The graph for a prompt of so many tokens."""
        if tokens > self.weights.context:
            raise BadRequest(f"a prompt of {tokens} tokens; the model was given a context of {self.weights.context}")
        size = padded(tokens)
        if size not in self._prompts:
            self._prompts[size] = Prompt(self.device, self.weights, self.cache, size, self.prompt_parts)
        return self._prompts[size]

    def decode_graph(self, requests: int, keys: int) -> Decode:
        """The graph for a token of so many requests, which see so many keys."""
        if keys > self.weights.context:
            raise BadRequest(f"{keys} tokens of a request; the model was given a context of {self.weights.context}")
        size = key_block(self.device.config, self.weights.shape.key_width)
        while size < keys:
            size *= 2
        key = requests, min(size, self.weights.context)
        if key not in self._decodes:
            self._decodes[key] = Decode(self.device, self.weights, self.cache, *key, self.TOKEN_PARTS)
        return self._decodes[key]


def _check_fits(device: Device, shape: LlamaShape) -> None:
    """Raises ``BadRequest`` for sizes that programs for the device's chip do not have."""
    name, lanes = device.config.name, device.config.array
    if shape.width % (2 * lanes) or shape.head % (2 * lanes):
        raise BadRequest(
            f"tokens of {shape.width} elements and heads of {shape.head}; on the chip {name} both are multiples of "
            f"{2 * lanes}"
        )
    if shape.group > lanes:
        raise BadRequest(
            f"{shape.group} heads of queries for each of keys; on the chip {name} there are at most {lanes}"
        )
