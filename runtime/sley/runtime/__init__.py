"""The runtime: devices with their arrays and streams, kernels of one's own, and mathematics on arrays.

``Device.open`` opens what an engine URL names. Arrays (``Buffer``) are in its memory; a ``Stream`` launches programs,
copies and fills in order; ``blas`` has matrix products, ``nn`` operators of neural networks.
``tile`` is the language to write kernels in; ``KernelBuilder`` makes a ``Program`` instruction by instruction.
``energy`` estimates what a run took.

This is the one place that shows the public names; files of the runtime import from the file that has the name. Every
error is a ``sley.driver.SleyError``.
"""

from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Label, Register, Semaphore
from sley.runtime.blas import routines as blas
from sley.runtime.device.arguments import Argument
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client
from sley.runtime.device.device import Device
from sley.runtime.device.event import Event
from sley.runtime.device.graph import Graph
from sley.runtime.device.pool import MemoryPool
from sley.runtime.device.program import Program
from sley.runtime.device.stream import Count, Stream, Timing
from sley.runtime.energy import estimates as energy
from sley.runtime.errors import BadIndex, KernelError, ShapeMismatch, UnsupportedType
from sley.runtime.nn import operators as nn
from sley.runtime.tile import language as tile

__all__ = [
    "ZERO",
    "Argument",
    "BadIndex",
    "Buffer",
    "Client",
    "Count",
    "Device",
    "Event",
    "Graph",
    "KernelBuilder",
    "KernelError",
    "Label",
    "MemoryPool",
    "Program",
    "Register",
    "Semaphore",
    "ShapeMismatch",
    "Stream",
    "Timing",
    "UnsupportedType",
    "blas",
    "energy",
    "nn",
    "tile",
]
