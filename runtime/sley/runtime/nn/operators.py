"""Operators of neural networks on arrays: what ``sley.runtime.nn`` shows."""

from sley.runtime.nn.conv2d import conv2d
from sley.runtime.nn.pooling import avg_pool2d, global_avg_pool2d, max_pool2d
from sley.runtime.nn.weights import ConvWeights

__all__ = ["ConvWeights", "avg_pool2d", "conv2d", "global_avg_pool2d", "max_pool2d"]
