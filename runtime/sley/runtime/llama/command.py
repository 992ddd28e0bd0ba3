"""The command ``sley chat``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from sley.runtime.device.device import Device
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
    from sley.runtime.llama.batch import Batch
    from sley.runtime.llama.checkpoint import read_gguf
    from sley.runtime.llama.model import Llama
    from sley.runtime.llama.sampling import Sampling
    from sley.runtime.llama.smollm2 import smollm2_path
    from sley.runtime.llama.tokenizer import Tokenizer, chat_text

    console = Console()
    path = model or smollm2_path()
    sampling = Sampling(temperature)
    with console.status(f"reading {path.name}"):
        checkpoint = read_gguf(path)
        tokenizer = Tokenizer.of(checkpoint.vocabulary)
    with Device.open(engine) as device:
        with console.status("putting weights on the device"):
            llama = Llama(device, checkpoint, context=context)
        batch = Batch(llama, 1, tokenizer.end)
        messages: list[tuple[str, str]] = []
        while True:
            said = text or _said(console)
            if not said:
                return
            messages.append(("user", said))
            request = batch.submit(tokenizer.encode(chat_text(messages)), tokens, sampling, seed)
            answer = _answer(console, batch, request, tokenizer)
            messages.append(("assistant", answer))
            if text:
                return


def _said(console: Console) -> str:
    try:
        return console.input("[bold]> [/]").strip()
    except EOFError:
        return ""


def _answer(console: Console, batch: object, request: object, tokenizer: object) -> str:
    """Prints an answer token by token, with what it costs below."""
    from sley.runtime.llama.batch import Batch, Request
    from sley.runtime.llama.bound import token_bound
    from sley.runtime.llama.tokenizer import Tokenizer

    assert isinstance(batch, Batch)
    assert isinstance(request, Request)
    assert isinstance(tokenizer, Tokenizer)
    device, shape = batch.model.device, batch.model.weights.shape
    begin, answer = time.monotonic(), ""
    cycles: list[int] = []
    shares: list[float] = []
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while not request.done:
            keys = len(request.prompt) + len(request.tokens)
            with device.stream.counted() as count:
                batch.step()
            if count.counters.has_cycles and len(request.tokens) > 2:  # a first step has the prompt in it
                cycles.append(count.cycles)
                shares.append(token_bound(device.config, shape, keys) / count.cycles)
            answer = tokenizer.decode(request.tokens)
            state = f"{len(request.prompt)} tokens, then {len(request.tokens)}; {time.monotonic() - begin:.1f} s"
            if cycles:
                state += f"; {cycles[-1]:,} cycles a token, {sum(shares) / len(shares):.0%} of the memory bound"
            live.update(Group(Text(answer), Text(state, style="dim")), refresh=True)
    return answer
