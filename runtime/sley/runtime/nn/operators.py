"""Operators of neural networks on arrays: what ``sley.runtime.nn`` shows."""

from sley.runtime.nn.conv2d import conv2d
from sley.runtime.nn.weights import ConvWeights

__all__ = ["ConvWeights", "conv2d"]
