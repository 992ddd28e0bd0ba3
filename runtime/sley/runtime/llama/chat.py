"""A conversation on a terminal."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from sley.runtime.device.device import Device
from sley.runtime.energy.estimate import estimate, joules_text
from sley.runtime.energy.table import DEFAULT
from sley.runtime.llama.batch import Batch, Request
from sley.runtime.llama.bound import token_bound
from sley.runtime.llama.checkpoint import read_gguf
from sley.runtime.llama.model import Llama
from sley.runtime.llama.sampling import Sampling
from sley.runtime.llama.smollm2 import smollm2_path
from sley.runtime.llama.tokenizer import Tokenizer, chat_text


def run_chat(
    text: str | None, path: Path | None, tokens: int, sampling: Sampling, seed: int, context: int, engine: str
) -> None:
    """Answers ``text``, or what is typed until nothing is. Raises what the device and the model raise."""
    console, path = Console(), path or smollm2_path()
    with console.status(f"reading {path.name}"):
        checkpoint = read_gguf(path)
        tokenizer = Tokenizer.of(checkpoint.vocabulary)
    with Device.open(engine) as device:
        with console.status("putting weights on the device"):
            batch = Batch(Llama(device, checkpoint, context=context), 1, tokenizer.end)
        messages: list[tuple[str, str]] = []
        while said := text or _typed(console):
            messages.append(("user", said))
            request = batch.submit(tokenizer.encode(chat_text(messages)), tokens, sampling, seed)
            messages.append(("assistant", _answer(console, batch, request, tokenizer)))
            if text:
                return


def _typed(console: Console) -> str:
    try:
        return console.input("[bold]> [/]").strip()
    except EOFError:
        return ""


def _answer(console: Console, batch: Batch, request: Request, tokenizer: Tokenizer) -> str:
    """Prints an answer token by token, with what it costs below."""
    device, shape = batch.model.device, batch.model.weights.shape
    begin, answer = time.monotonic(), ""
    cycles: list[int] = []
    bounds: list[int] = []
    took = 0.0
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while not request.done:
            keys, first = len(request.prompt) + len(request.tokens), not request.tokens
            with device.stream.counted() as count:
                batch.step()
            if count.measured is not None and not first and len(request.tokens) + len(request.prompt) > keys:
                cycles.append(count.measured)
                took = estimate(count.counters, device.config).joules
                bounds.append(token_bound(device.config, shape, keys))
            answer = tokenizer.decode(request.tokens)
            state = f"{len(request.prompt)} tokens, then {len(request.tokens)}; {time.monotonic() - begin:.1f} s"
            if cycles:
                state += f"; {cycles[-1]:,} cycles a token, {sum(bounds) / sum(cycles):.0%} of the memory bound"
                state += f", {joules_text(took)} by the table {DEFAULT.name}"
            live.update(Group(Text(answer), Text(state, style="dim")), refresh=True)
    return answer
