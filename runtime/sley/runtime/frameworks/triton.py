"""Triton kernels on a Sley device.

``launch(kernel, grid, x, y, n, BLOCK=128)`` runs a ``@triton.jit`` function, with device arrays for its pointers.
``activate()`` makes Sley the target of Triton, so that ``kernel[grid](x, y, n, BLOCK=128)`` does. ``TritonKernel``
takes the text of TTIR, and needs no Triton.
"""

from sley.runtime.frameworks.from_triton.kernel import TritonKernel
from sley.runtime.frameworks.from_triton.launch import activate, launch
from sley.runtime.frameworks.from_triton.refusal import TritonRefused

__all__ = ["TritonKernel", "TritonRefused", "activate", "launch"]
