"""``sley bench llama``: cycles of a language model against what its memory bus needs, and what int8 costs it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

ENGINE = "model:base?memory=768M"


class What(StrEnum):
    """What is measured."""

    TOKENS = "tokens"
    PROMPT = "prompt"
    QUALITY = "quality"


def llama(
    what: Annotated[What, typer.Argument(help="Cycles of tokens, of a prompt; or perplexity against float32.")],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A file of GGUF; by default SmolLM2 of the package.")
    ] = None,
    keys: Annotated[int, typer.Option(help="Tokens that a token sees, or of the prompt.")] = 256,
    requests: Annotated[int, typer.Option(help="Requests side by side.")] = 1,
    parts: Annotated[int, typer.Option(help="Parts of int8 of an activation in prompts.")] = 2,
    tokens: Annotated[int, typer.Option(help="Tokens of prose that quality is measured on.")] = 2048,
    one_by_one: Annotated[bool, typer.Option(help="Quality of tokens one after the other, too.")] = False,
    engine: Annotated[str, typer.Option(help="Where it runs; cycles are counted where that counts them.")] = ENGINE,
) -> None:
    """A language model: cycles and their bound, or perplexity."""
    from sley.runtime import Device
    from sley.runtime.llama.checkpoint import read_gguf
    from sley.runtime.llama.model import Llama
    from sley.runtime.llama.smollm2 import smollm2_path

    console = Console()
    checkpoint = read_gguf(model or smollm2_path())
    url = engine if what is What.QUALITY or "cycles" in engine else f"{engine}&cycles=on"
    with Device.open(url) as device:
        built = Llama(device, checkpoint, context=1024, cache=max(1024, requests * (keys + 64)), prompt_parts=parts)
        if what is What.TOKENS:
            _tokens(console, built, keys, requests)
        elif what is What.PROMPT:
            _prompt(console, built, keys)
        else:
            _quality(console, built, checkpoint.vocabulary, checkpoint, tokens, one_by_one)


def _tokens(console: Console, model: object, keys: int, requests: int) -> None:
    from sley.runtime.llama.bound import token_bound
    from sley.runtime.llama.model import Llama

    assert isinstance(model, Llama)
    tables = [model.cache.table(keys) for _ in range(requests)]
    for table in tables:
        table.extend(keys - 1)
    graph = model.decode_graph(requests, keys)
    graph.write([1] * requests, tables)
    with model.device.stream.counted() as count:
        graph.graph.launch()
    bound = token_bound(model.device.config, model.weights.shape, keys * requests)
    table_of = Table("requests", "keys of each", "cycles", "bound", "cycles / bound", "launches")
    table_of.add_row(
        str(requests),
        str(keys),
        f"{count.cycles:,}",
        f"{bound:,}",
        f"{count.cycles / bound:.3f}",
        str(len(graph.graph)),
    )
    console.print(table_of)


def _prompt(console: Console, model: object, tokens: int) -> None:
    from sley.runtime.llama.bound import prompt_bound
    from sley.runtime.llama.model import Llama

    assert isinstance(model, Llama)
    graph = model.prompt_graph(tokens)
    graph.write([1] * tokens, model.cache.table(tokens))
    with model.device.stream.counted() as count:
        graph.graph.launch()
    bound = prompt_bound(model.device.config, model.weights.shape, tokens, model.prompt_parts)
    table = Table("tokens", "parts", "cycles", "bound", "bound / cycles", "launches")
    share = f"{bound / count.cycles:.3f}"
    table.add_row(str(tokens), str(model.prompt_parts), f"{count.cycles:,}", f"{bound:,}", share, str(len(graph.graph)))
    console.print(table)


def _quality(
    console: Console, model: object, vocabulary: dict[str, object], checkpoint: object, count: int, one_by_one: bool
) -> None:
    from sley.bench.llama.quality import by_prompts, by_tokens, measure, prose
    from sley.runtime.llama.checkpoint import Checkpoint
    from sley.runtime.llama.model import Llama
    from sley.runtime.llama.tokenizer import Tokenizer

    assert isinstance(model, Llama)
    assert isinstance(checkpoint, Checkpoint)
    ways = {f"prompts of {model.prompt_parts} parts": by_prompts(model)}
    if one_by_one:
        ways["tokens"] = by_tokens(model)
    tokens = prose(Tokenizer.of(vocabulary), count)
    for qualities in measure(checkpoint, tokens, ways):
        for name, quality in qualities.items():
            console.print(
                f"{name}: {quality.count} tokens, perplexity {quality.ratio:.4f} of float32's, the same likeliest "
                f"token {quality.same:.3f}"
            )
