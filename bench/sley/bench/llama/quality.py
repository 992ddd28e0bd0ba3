"""What int8 costs a language model: perplexity, and how often the likeliest token is the same, against float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sley.runtime.llama.checkpoint import Checkpoint, Floats
from sley.runtime.llama.float32 import float_logits
from sley.runtime.llama.model import Llama
from sley.runtime.llama.prompt import Prompt
from sley.runtime.llama.tokenizer import Tokenizer

WINDOW = 256
"""Tokens that are seen together."""
Logits = Callable[[list[int]], Floats]


def prose(tokenizer: Tokenizer, count: int) -> list[int]:
    """Tokens of English prose that every Python brings: its own documentation."""
    from pydoc_data.topics import topics

    tokens: list[int] = []
    for name in sorted(topics):
        tokens += tokenizer.encode(topics[name])
        if len(tokens) >= count:
            return tokens[:count]
    raise ValueError(f"{count} tokens, and the documentation has {len(tokens)}")


@dataclass
class Quality:
    """Sums over tokens; ``losses``: natural logarithms of 1 / probability, of the device and of float32."""

    losses: list[Floats] = field(default_factory=list)
    agreed: int = 0
    count: int = 0

    def add(self, found: Floats, right: Floats, tokens: list[int]) -> None:
        """Logits behind tokens, each judged by the next one."""
        self.losses.append(np.array([_loss(logits, tokens).sum() for logits in (found, right)], np.float32))
        self.agreed += int((found[:-1].argmax(axis=1) == right[:-1].argmax(axis=1)).sum())
        self.count += len(tokens) - 1

    @property
    def ratio(self) -> float:
        """Perplexity by that of float32."""
        sums = np.array(self.losses, np.float64).sum(axis=0)
        return float(np.exp((sums[0] - sums[1]) / self.count))

    @property
    def same(self) -> float:
        """The share of tokens behind which the likeliest next token is the same."""
        return self.agreed / self.count


def _loss(logits: Floats, tokens: list[int]) -> Floats:
    rows = logits[:-1].astype(np.float64)
    largest = rows.max(axis=1, keepdims=True)
    total = np.log(np.exp(rows - largest).sum(axis=1)) + largest[:, 0]
    result: Floats = (total - rows[np.arange(len(rows)), tokens[1:]]).astype(np.float32)
    return result


def by_prompts(model: Llama) -> Logits:
    """Logits of all tokens at once."""
    graph = Prompt(model.device, model.weights, model.cache, WINDOW, model.prompt_parts, every=True)

    def logits(tokens: list[int]) -> Floats:
        table = model.cache.table(WINDOW)
        result: Floats = graph(tokens, table)
        table.free()
        return result

    return logits


def by_tokens(model: Llama) -> Logits:
    """Logits of one token after the other."""

    def logits(tokens: list[int]) -> Floats:
        table = model.cache.table(WINDOW)
        result = np.concatenate(
            [model.prompt(tokens[:1], table), *(model.decode([token], [table]) for token in tokens[1:])]
        )
        table.free()
        return result

    return logits


def measure(checkpoint: Checkpoint, tokens: list[int], ways: dict[str, Logits]) -> Iterator[dict[str, Quality]]:
    """Of each way, behind each window of tokens."""
    qualities = {name: Quality() for name in ways}
    for begin in range(0, len(tokens), WINDOW):
        window = tokens[begin : begin + WINDOW]
        right = float_logits(checkpoint, window)
        for name, logits in ways.items():
            qualities[name].add(logits(window), right, window)
        yield qualities
