"""The complete state of an instance, kept in memory or in a file."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sley.sim.errors import FastError

MAGIC = b"SLEYSNAP"
VERSION = 1
SPARE_BUFFERS = 4
"""Buffers of past snapshots that are kept for the next ones."""

_FAST = 1
"""Level of compression: a quarter of a second for 64 MB that are mostly zeros."""


class Snapshot:
    """A state to come back to with ``restore``, as often as you like. ``cycle`` is when it was taken.

    Its buffer returns to the instance with its end, so that the next snapshot needs no new memory.
    """

    __slots__ = ("_spare", "buffer", "cycle", "layout", "memory", "size")

    def __init__(self, buffer: Any, size: int, cycle: int, layout: str, memory: bool, spare: list[Any]) -> None:
        self.buffer = buffer
        self.size = size
        self.cycle = cycle
        self.layout = layout
        """Digest of the layout that the state has."""
        self.memory = memory
        """Whether the device memory is in it."""
        self._spare = spare

    def __del__(self) -> None:
        if len(self._spare) < SPARE_BUFFERS:
            self._spare.append(self.buffer)


@dataclass(frozen=True)
class SavedState:
    """What a file holds."""

    cycle: int
    design: str
    """Digest of the design's text."""
    layout: str
    memory: int
    """Bytes of device memory in the state."""
    state: bytes

    def check(self, path: Path, design: str, layout: str, memory: int) -> None:
        """Raises ``FastError`` if this is no state, read from ``path``, of an instance with these properties."""
        if self.design != design:
            raise FastError(f"{path} is the state of another design; open that design to load it")
        if self.layout != layout:
            raise FastError(
                f"{path} was saved by another version of the engine, which keeps the state of this design in another "
                "layout; run to this point again and save"
            )
        if self.memory != memory:
            raise FastError(
                f"{path} has a device memory of {self.memory} bytes, this device one of {memory}; "
                f"open it with memory={self.memory}"
            )


def write_state(path: Path, saved: SavedState) -> None:
    """A file with a header in JSON and the compressed state."""
    header = {
        "version": VERSION,
        "cycle": saved.cycle,
        "design": saved.design,
        "layout": saved.layout,
        "memory": saved.memory,
        "size": len(saved.state),
    }
    text = json.dumps(header).encode()
    path.write_bytes(MAGIC + len(text).to_bytes(4, "little") + text + zlib.compress(saved.state, _FAST))


def read_state(path: Path) -> SavedState:
    """What ``write_state`` wrote. Raises ``FastError`` for a file that is none or is damaged."""
    raw = path.read_bytes()
    if raw[: len(MAGIC)] != MAGIC:
        raise FastError(f"{path} is no saved state: it does not begin with {MAGIC.decode()}")
    start = len(MAGIC) + 4
    end = start + int.from_bytes(raw[len(MAGIC) : start], "little")
    try:
        header = json.loads(raw[start:end])
        if header["version"] != VERSION:
            raise FastError(f"{path} has version {header['version']}, this engine reads {VERSION}: save it again")
        state = zlib.decompress(raw[end:])
        if len(state) != header["size"]:
            raise ValueError("the state is not complete")
        return SavedState(header["cycle"], header["design"], header["layout"], header["memory"], state)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise FastError(f"{path} is damaged ({error}): save the state again") from error
