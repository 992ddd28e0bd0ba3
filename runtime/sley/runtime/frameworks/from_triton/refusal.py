"""What a Triton kernel asks for and Sley does not do: an error that shows the line of its source."""

from __future__ import annotations

from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.tile.operations import TileError


class TritonRefused(TileError):
    """A Triton kernel that the device does not run. The text has the line of the kernel, what is there, and what to do
    instead."""


def refuse(operation: Operation, why: str) -> TritonRefused:
    """The error for an operation, to be raised."""
    text = operation.place.text
    return TritonRefused(f"{operation.place}: {operation.name}: {why}" + (f"\n    {text}" if text else ""))
