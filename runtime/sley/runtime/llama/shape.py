"""The sizes of a model of the Llama family."""

from __future__ import annotations

from dataclasses import dataclass

from sley.driver import BadRequest


@dataclass(frozen=True)
class LlamaShape:
    """Sizes of a decoder: RMS norm, rotary embedding, grouped-query attention, SwiGLU.

    Attributes
    ----------
    layers, width, hidden, vocabulary: layers; elements of a token, inside of the feed-forward network, of the logits.
    heads, key_heads, head: heads of queries, of keys and values; elements of a head.
    context: tokens that a request may have. rotary_base, epsilon: of the rotary embedding, of the norms.
    """

    layers: int
    width: int
    hidden: int
    vocabulary: int
    heads: int
    key_heads: int
    head: int
    context: int
    rotary_base: float
    epsilon: float

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("layers", "width", "hidden", "vocabulary", "heads", "context")}
        small = [f"{name} {size}" for name, size in sizes.items() if size < 1]
        if small or self.key_heads < 1 or self.heads % self.key_heads:
            raise BadRequest(f"{self}: sizes are at least 1, and key heads divide heads")
        if self.head < 2 or self.head % 2:
            raise BadRequest(f"heads have {self.head} elements; the rotary embedding takes an even number")

    @property
    def group(self) -> int:
        """Heads of queries for each head of keys."""
        return self.heads // self.key_heads

    @property
    def key_width(self) -> int:
        """Elements of the keys, or of the values, of a token."""
        return self.key_heads * self.head

    @property
    def heads_width(self) -> int:
        """Elements of the queries of a token."""
        return self.heads * self.head

    @property
    def projected(self) -> int:
        """Elements of queries, keys and values of a token."""
        return self.heads_width + 2 * self.key_width

    @property
    def linear_weights(self) -> int:
        """Weights of all products of a token: its multiply-accumulates."""
        layer = self.width * (self.projected + self.heads_width + 3 * self.hidden)
        return self.layers * layer + self.vocabulary * self.width
