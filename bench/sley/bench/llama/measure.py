"""Cycles and quality of a language model, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from sley.bench.llama.quality import by_prompts, by_tokens, measure, prose
from sley.runtime import Count
from sley.runtime.energy.estimate import estimate, joules_text
from sley.runtime.energy.table import published
from sley.runtime.llama.bound import prompt_bound, token_bound
from sley.runtime.llama.checkpoint import Checkpoint
from sley.runtime.llama.model import Llama
from sley.runtime.llama.smoothing import largest_inputs, smoothed
from sley.runtime.llama.tokenizer import Tokenizer

SMOOTHED_BY = 512
"""Tokens whose activations smoothing looks at."""


def tokens_table(model: Llama, keys: int, requests: int) -> Table:
    """Cycles of a token of so many requests, each of which sees so many keys."""
    tables = [model.cache.table(keys) for _ in range(requests)]
    for table in tables:
        table.extend(keys - 1)
    graph = model.decode_graph(requests, keys)
    graph.write([1] * requests, tables)
    with model.device.stream.counted() as count:
        graph.graph.launch()
    bound = token_bound(model.device.config, model.weights.shape, keys * requests)
    found = Table("requests", "keys of each", "cycles", "bound", "cycles / bound", "launches", "energy of a token")
    numbers = f"{count.cycles:,}", f"{bound:,}", f"{count.cycles / bound:.3f}", str(len(graph.graph))
    found.add_row(str(requests), str(keys), *numbers, energy_text(model, count, requests))
    return found


def prompt_table(model: Llama, tokens: int) -> Table:
    """Cycles of a prompt of so many tokens."""
    graph = model.prompt_graph(tokens)
    graph.write([1] * tokens, model.cache.table(tokens))
    with model.device.stream.counted() as count:
        graph.graph.launch()
    bound = prompt_bound(model.device.config, model.weights.shape, tokens, model.prompt_parts)
    found = Table("tokens", "parts", "cycles", "bound", "bound / cycles", "launches", "energy of a token")
    numbers = f"{count.cycles:,}", f"{bound:,}", f"{bound / count.cycles:.3f}", str(len(graph.graph))
    found.add_row(str(tokens), str(model.prompt_parts), *numbers, energy_text(model, count, tokens))
    return found


def energy_text(model: Llama, count: Count, tokens: int) -> str:
    """Joules of each of so many tokens, by the table of each technology; of it on the chip."""
    lines = []
    for node in ("45nm", "7nm"):
        found = estimate(count.counters, model.device.config, table=published(node))
        lines.append(f"{node} {joules_text(found.joules / tokens)}, on chip {joules_text(found.on_chip / tokens)}")
    return "\n".join(lines)


def smoothed_by_prose(checkpoint: Checkpoint, judged: int, strength: float) -> Checkpoint:
    """Smoothed by prose behind that which quality is measured on."""
    text = prose(Tokenizer.of(checkpoint.vocabulary), judged + SMOOTHED_BY)[judged:]
    return smoothed(checkpoint, largest_inputs(checkpoint, text), strength)


def quality_lines(model: Llama, checkpoint: Checkpoint, count: int, one_by_one: bool) -> Iterator[str]:
    """Perplexity and agreement behind each window of prose."""
    ways = {f"prompts of {model.prompt_parts} parts": by_prompts(model)}
    if one_by_one:
        ways["tokens"] = by_tokens(model)
    tokens = prose(Tokenizer.of(checkpoint.vocabulary), count)
    for qualities in measure(checkpoint, tokens, ways):
        for name, quality in qualities.items():
            yield (
                f"{name}: {quality.count} tokens, perplexity {quality.ratio:.4f} of float32's, the same "
                f"likeliest token {quality.same:.3f}"
            )
