"""What a Triton kernel asks for and Sley does not do: an error that shows the line of its source."""

from __future__ import annotations

from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.tile.operations import TileError

ATOMICS = "the device has no atomics: give each program a part of its own, and add the parts in a second kernel"
REASONS = {
    "tt.atomic_rmw": ATOMICS,
    "tt.atomic_cas": ATOMICS,
    "tt.descriptor_reduce": ATOMICS,
    "arith.bitcast": "bits of one type as another; the device converts numbers alone",
    "tt.dot_scaled": "the array multiplies int8 and bf16",
    "tt.mulhiui": "the upper half of a product, as random numbers take; draw them on the host",
    "arith.mulsi_extended": "the upper half of a product, as random numbers take; draw them on the host",
    "tt.print": "a program cannot print; store what you want to see",
    "tt.assert": "a program cannot stop with an error; check on the host",
    "tt.call": "a function that is not inlined: leave out noinline=True",
    "scf.while": "a loop whose rounds are not known when the kernel is launched",
}
"""Why the device does not do operations that kernels have."""
UNKNOWN = "Sley does not convert it"


class TritonRefused(TileError):  # noqa: N818 (named like the driver's)
    """A Triton kernel that the device does not run. The text has the line of the kernel, what is there, and what to do
    instead."""


def refuse(operation: Operation, why: str) -> TritonRefused:
    """The error for an operation, to be raised."""
    text = operation.place.text
    return TritonRefused(f"{operation.place}: {operation.name}: {why}" + (f"\n    {text}" if text else ""))
