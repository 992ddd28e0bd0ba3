"""The command ``sley chat``."""

from pathlib import Path
from typing import Annotated

import typer

from sley.runtime.options import Engine

DEFAULT_ENGINE = "model:base?memory=512M"


def chat(
    text: Annotated[str | None, typer.Argument(help="What you say; without it, a conversation.")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A file of GGUF; by default SmolLM2 of the package.")
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", "-n", min=1, help="Tokens of an answer at most.")] = 200,
    temperature: Annotated[float, typer.Option(min=0, help="Of sampling; 0 takes the likeliest token.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 0,
    context: Annotated[int, typer.Option(min=1, help="Tokens of a conversation at most.")] = 1024,
    engine: Engine = DEFAULT_ENGINE,
) -> None:
    """Talk with a language model that runs on the device; cycles with "model:base?memory=512M&cycles=on"."""
    from sley.runtime.llama.chat import run_chat
    from sley.runtime.llama.sampling import Sampling

    run_chat(text, model, tokens, Sampling(temperature), seed, context, engine)
