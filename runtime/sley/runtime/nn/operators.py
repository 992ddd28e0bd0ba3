"""Operators of neural networks on arrays: what ``sley.runtime.nn`` shows."""

from sley.runtime.nn.attention import attention

__all__ = ["attention"]
