"""SmolLM2-135M-Instruct, bit by bit against golden arithmetic: every layer's keys and values, and logits."""

import numpy as np
import pytest
from golden_llama import GoldenLlama

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.llama.checkpoint import Checkpoint, read_gguf
from sley.runtime.llama.model import Llama
from sley.runtime.llama.smollm2 import smollm2_path
from sley.runtime.llama.tokenizer import Tokenizer, chat_text

PROMPTS = ("What is the capital of France?", "Name three colours.", "Write a line about the sea.")
pytest.importorskip("gguf", reason=f"gguf is not installed: {extra('chat')}")
pytest.importorskip("tokenizers", reason=f"tokenizers is not installed: {extra('chat')}")


@pytest.fixture(scope="module")
def smollm2() -> Checkpoint:
    try:
        return read_gguf(smollm2_path())
    except BadRequest as error:
        pytest.skip(str(error))


def follow(engine: str, checkpoint: Checkpoint, text: str, prompt: int, tokens: int) -> None:
    """A prompt of so many tokens of a conversation, then tokens that the model chooses."""
    with Device.open(engine) as device:
        model, golden = Llama(device, checkpoint, context=256, cache=256), GoldenLlama(checkpoint)
        given = Tokenizer.of(checkpoint.vocabulary).encode(chat_text([("user", text)]))[:prompt]
        table = model.cache.table(prompt + tokens)
        logits = model.prompt(given, table)
        right = golden.run(np.array(given))
        for _ in range(tokens):
            assert (logits.view(np.uint32) == right).all()
            token = int(logits[0].argmax())
            logits, right = model.decode([token], [table]), golden.run(np.array([token]))
        assert (logits.view(np.uint32) == right).all()
        width, slots = checkpoint.shape.key_width, table.slots()
        arrays = [*model.cache.keys, *model.cache.values]
        for array, golden_values in zip(arrays, [*golden.keys, *golden.values], strict=True):
            assert (array.numpy().reshape(-1, width)[slots].view(np.uint16) == golden_values).all()


@pytest.mark.campaign
@pytest.mark.parametrize("text", PROMPTS)
def test_sixty_four_tokens(smollm2: Checkpoint, text: str) -> None:
    follow("model:base?memory=768M", smollm2, text, 30, 34)


@pytest.mark.campaign
def test_on_the_gateware(smollm2: Checkpoint) -> None:
    """Two tokens, the second of which begins a page, behind keys and values that the golden model has computed."""
    with Device.open("fast:base?memory=768M", hang_cycles=100_000_000) as device:
        model, golden = Llama(device, smollm2, context=128, cache=128), GoldenLlama(smollm2)
        random = np.random.default_rng(0)
        before = random.integers(3, 1000, 63)
        golden.run(before)
        table = model.cache.table(128)
        slots = table.extend(63)
        sides = smollm2.shape.key_heads, smollm2.shape.head
        for arrays, values in ((model.cache.keys, golden.keys), (model.cache.values, golden.values)):
            for array, own in zip(arrays, values, strict=True):
                array[int(slots[0]) : int(slots[0]) + 63].write(own.view(array.dtype).reshape(63, *sides))
        for token in (65, 66):
            assert (model.decode([token], [table]).view(np.uint32) == golden.run(np.array([token]))).all()
