"""Models from files of GGUF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime.llama.shape import LlamaShape

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Layer:
    """Weights of a layer in float32, each [outputs, inputs]; rows of queries and keys have the first elements of all
    pairs that the rotary embedding turns in the first half of a head, the second ones in the second half."""

    attention_norm: Floats
    query: Floats
    key: Floats
    value: Floats
    output: Floats
    feed_norm: Floats
    gate: Floats
    up: Floats
    down: Floats


@dataclass(frozen=True)
class Checkpoint:
    """A model as it was trained.

    Attributes
    ----------
    shape: its sizes. embedding: [vocabulary, width], float32. layers, norm: weights; the norm before the head.
    head: [vocabulary, width]. vocabulary: what ``Tokenizer.of`` takes.
    """

    shape: LlamaShape
    embedding: Floats
    layers: tuple[Layer, ...]
    norm: Floats
    head: Floats
    vocabulary: dict[str, Any]


NAMES = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "feed_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}
"""Attributes of ``Layer``, and GGUF's names of tensors."""


def read_gguf(path: str | Path) -> Checkpoint:
    """The model in a file; weights of any of GGUF's formats are computed back to float32.

    Raises ``BadRequest`` for a file that is none of GGUF, for another architecture than ``llama``, without the package.
    """
    try:
        import gguf
    except ImportError as error:
        raise BadRequest(f"the package gguf reads models and is not installed: {extra('chat')}") from error
    if not Path(path).is_file():
        raise BadRequest(f"{path}: no such file")
    try:
        reader = gguf.GGUFReader(path)
    except ValueError as error:
        raise BadRequest(f"{path} is no file of GGUF: {error}") from error
    fields = {name: field.contents() for name, field in reader.fields.items()}
    architecture = fields.get("general.architecture")
    if architecture != "llama":
        raise BadRequest(f"{path} holds a model of the architecture {architecture!r}; llama is what runs")
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def values(name: str) -> Floats:
        if name not in tensors:
            raise BadRequest(f"{path} has no tensor {name}")
        tensor = tensors[name]
        return np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)

    shape = _shape(fields, len(values("output_norm.weight")))
    embedding = values("token_embd.weight")
    layers = tuple(
        Layer(**_halves(shape, {name: values(f"blk.{number}.{own}.weight") for name, own in NAMES.items()}))
        for number in range(shape.layers)
    )
    head = values("output.weight") if "output.weight" in tensors else embedding
    vocabulary = {name: value for name, value in fields.items() if name.startswith("tokenizer.")}
    return Checkpoint(shape, embedding, layers, values("output_norm.weight"), head, vocabulary)


def _shape(fields: dict[str, Any], width: int) -> LlamaShape:
    def field(name: str, otherwise: Any = None) -> Any:
        value = fields.get(f"llama.{name}", otherwise)
        if value is None:
            raise BadRequest(f"the file says no llama.{name}")
        return value

    heads = field("attention.head_count")
    return LlamaShape(
        layers=field("block_count"),
        width=width,
        hidden=field("feed_forward_length"),
        vocabulary=len(fields["tokenizer.ggml.tokens"]),
        heads=heads,
        key_heads=field("attention.head_count_kv", heads),
        head=field("rope.dimension_count", width // heads),
        context=field("context_length"),
        rotary_base=float(field("rope.freq_base", 10_000.0)),
        epsilon=float(field("attention.layer_norm_rms_epsilon")),
    )


def _halves(shape: LlamaShape, weights: dict[str, Floats]) -> dict[str, Floats]:
    """GGUF has the elements of a pair side by side."""
    for name in ("query", "key"):
        rows = weights[name].reshape(-1, shape.head // 2, 2, shape.width)
        weights[name] = np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).reshape(-1, shape.width)
    return weights
