"""Text to tokens and back, by the vocabulary that comes with a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sley.abi.install import extra
from sley.driver import BadRequest

CONTROL, USER_DEFINED = 3, 4
"""GGUF's types of tokens that are found in a text as a whole."""


class Tokenizer:
    """Byte-level BPE as GPT-2's, with single digits.

    Attributes
    ----------
    end: the token that ends an answer.
    """

    def __init__(self, tokens: Sequence[str], merges: Sequence[str], types: Sequence[int], end: int) -> None:
        try:
            from tokenizers import AddedToken, decoders, models, pre_tokenizers
            from tokenizers import Tokenizer as Core
        except ImportError as error:
            raise BadRequest(f"the package tokenizers is not installed: {extra('chat')}") from error
        pairs = [(first, second) for first, second in (merge.split(" ", 1) for merge in merges)]
        self._core = Core(models.BPE({token: number for number, token in enumerate(tokens)}, pairs))
        self._core.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        self._core.decoder = decoders.ByteLevel()
        special = [tokens[number] for number, kind in enumerate(types) if kind in (CONTROL, USER_DEFINED)]
        self._core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
        self.end = end

    @classmethod
    def of(cls, vocabulary: dict[str, Any]) -> Tokenizer:
        """That of a checkpoint. Raises ``BadRequest`` for a vocabulary of another kind."""
        kind = vocabulary.get("tokenizer.ggml.model"), vocabulary.get("tokenizer.ggml.pre")
        if kind != ("gpt2", "smollm"):
            raise BadRequest(f"a tokenizer of the kind {kind}; the one that is known is gpt2 with smollm's digits")
        return cls(
            vocabulary["tokenizer.ggml.tokens"],
            vocabulary["tokenizer.ggml.merges"],
            vocabulary["tokenizer.ggml.token_type"],
            vocabulary["tokenizer.ggml.eos_token_id"],
        )

    def encode(self, text: str) -> list[int]:
        """Tokens of a text; special ones are found in it."""
        numbers: list[int] = self._core.encode(text, add_special_tokens=False).ids
        return numbers

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens, without special ones. Bytes that are no character yet are U+FFFD."""
        text: str = self._core.decode(list(tokens), skip_special_tokens=True)
        return text


SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chat_text(messages: Sequence[tuple[str, str]], system: str = SYSTEM) -> str:
    """A conversation as the model was trained to see it, up to where it answers. ``messages``: roles and texts."""
    parts = [("system", system), *messages]
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in parts) + "<|im_start|>assistant\n"
