"""Operators of neural networks on arrays: what ``sley.runtime.nn`` shows."""

from sley.runtime.nn.activations import gelu, silu
from sley.runtime.nn.adam import adam_step
from sley.runtime.nn.argmax import argmax
from sley.runtime.nn.embedding import embedding
from sley.runtime.nn.rotary import RotaryTable, rotary
from sley.runtime.nn.rows import layer_norm, rms_norm, softmax

__all__ = [
    "RotaryTable",
    "adam_step",
    "argmax",
    "embedding",
    "gelu",
    "layer_norm",
    "rms_norm",
    "rotary",
    "silu",
    "softmax",
]
