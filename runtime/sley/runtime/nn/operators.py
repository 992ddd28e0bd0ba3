"""Operators of neural networks on arrays: what ``sley.runtime.nn`` shows."""

from sley.runtime.nn.activations import gelu, silu
from sley.runtime.nn.rows import layer_norm, rms_norm, softmax

__all__ = ["gelu", "layer_norm", "rms_norm", "silu", "softmax"]
