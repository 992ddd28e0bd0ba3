"""Operators of neural networks on arrays: what ``sley.runtime.nn`` shows."""

from sley.runtime.nn.activations import gelu, silu
from sley.runtime.nn.adam import adam_step
from sley.runtime.nn.argmax import argmax
from sley.runtime.nn.attention import attention
from sley.runtime.nn.conv2d import conv2d
from sley.runtime.nn.embedding import embedding
from sley.runtime.nn.pooling import avg_pool2d, global_avg_pool2d, max_pool2d
from sley.runtime.nn.rotary import RotaryTable, rotary
from sley.runtime.nn.rows import layer_norm, rms_norm, softmax
from sley.runtime.nn.weights import ConvWeights

__all__ = [
    "ConvWeights",
    "RotaryTable",
    "adam_step",
    "argmax",
    "attention",
    "avg_pool2d",
    "conv2d",
    "embedding",
    "gelu",
    "global_avg_pool2d",
    "layer_norm",
    "max_pool2d",
    "rms_norm",
    "rotary",
    "silu",
    "softmax",
]
