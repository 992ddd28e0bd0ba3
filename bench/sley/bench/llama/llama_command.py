"""``sley bench llama``: cycles of a language model against what its memory bus needs, and what int8 costs it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

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
    smooth: Annotated[float, typer.Option(help="Strength of smoothing, 0 to 1, by another text; 0: none.")] = 0.0,
    engine: Annotated[str, typer.Option(help="Where it runs; cycles are counted where that counts them.")] = ENGINE,
) -> None:
    """A language model: cycles and their bound, or perplexity."""
    from sley.bench.llama.measure import prompt_table, quality_lines, smoothed_by_prose, tokens_table
    from sley.runtime import Device
    from sley.runtime.llama.checkpoint import read_gguf
    from sley.runtime.llama.model import Llama
    from sley.runtime.llama.smollm2 import smollm2_path

    console = Console(soft_wrap=True)
    original = checkpoint = read_gguf(model or smollm2_path())
    if smooth:
        checkpoint = smoothed_by_prose(original, tokens, smooth)
    url = engine if what is What.QUALITY or "cycles" in engine else f"{engine}&cycles=on"
    with Device.open(url) as device:
        built = Llama(device, checkpoint, context=1024, cache=max(1024, requests * (keys + 64)), prompt_parts=parts)
        if what is What.TOKENS:
            console.print(tokens_table(built, keys, requests))
        elif what is What.PROMPT:
            console.print(prompt_table(built, keys))
        else:
            for line in quality_lines(built, original, tokens, one_by_one):
                console.print(line)
