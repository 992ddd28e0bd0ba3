"""The last cycles of an instance, made again from a state before them and the inputs of every cycle since.

While it records, the library keeps no more than the inputs of a cycle, and a copy of the state once in ``depth``
cycles: that costs some nanoseconds a cycle. What the recording shows is exact for every signal, memories included,
because a replay of the same inputs from the same state is the same run.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sley.sim.errors import FastError
from sley.sim.fast.emit.manifest import Manifest, Piece
from sley.sim.fast.read.netlist import Netlist
from sley.sim.fast.run.evaluate import Array, full, sources
from sley.sim.fast.run.stored import Stored

BLOCK = 4096
"""Moments that are evaluated together."""


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint32), ("size", ctypes.c_uint32)]


@dataclass(frozen=True)
class Moments:
    """When the moments of a block are: before an edge of that ``cycle``, or (the last one) now."""

    cycle: npt.NDArray[np.uint64]
    half: npt.NDArray[np.uint64]
    """1 for a moment between the first and the second edge of a tick, which counts as the next cycle."""
    edges: npt.NDArray[np.uint64]
    """Which clocks tick at its end, one bit for each of the manifest's ``clocks``."""


class Block(Stored):
    """Recorded moments as leaves of an evaluation."""

    def __init__(
        self,
        manifest: Manifest,
        moments: Moments,
        rows: npt.NDArray[np.uint8],
        columns: dict[int, int],
        memories: "dict[int, _History]",
    ) -> None:
        super().__init__(manifest, len(moments.cycle))
        self.when = moments
        self._rows = rows
        self._columns = columns
        self._memories = memories

    def load(self, piece: Piece) -> Array:
        column = self._columns[piece.offset]
        raw = np.ascontiguousarray(self._rows[:, column : column + piece.size])
        if piece.size <= 8:
            return raw.view(f"<u{piece.size}")[:, 0].astype(np.uint64)
        words = raw.view("<u8")
        result = full(0, piece.width, self.moments)
        for word in range(words.shape[1]):
            result |= words[:, word].astype(object) << 64 * word
        return result

    def load_rows(self, piece: Piece, pitch: int, rows: Array) -> Array:
        return self._memories[piece.offset].at(piece.offset + rows * np.uint64(pitch), piece.size)


class _History:
    """Contents of a range of the state, by moment."""

    def __init__(
        self, offset: int, before: npt.NDArray[np.uint64], changes: npt.NDArray[np.uint64], moments: int
    ) -> None:
        self._offset = offset
        self._before = before
        self._moments = np.uint64(moments)
        inside = (changes[:, 1] >= offset) & (changes[:, 1] < offset + 8 * len(before))
        own = changes[inside]
        keys = (own[:, 1] - np.uint64(offset)) // np.uint64(8) * self._moments + own[:, 0]
        order = np.argsort(keys, kind="stable")
        self._keys, self._values = keys[order], own[order, 2]

    def at(self, offsets: Array, size: int) -> Array:
        """Numbers of ``size`` bytes at these offsets of the state, one for each moment."""
        places = offsets - np.uint64(self._offset)
        words = places // np.uint64(8)
        moments = np.arange(len(offsets), dtype=np.uint64)
        result = self._before[words]
        if len(self._keys):
            found = np.searchsorted(self._keys, words * self._moments + moments, side="right") - 1
            last = np.maximum(found, 0)
            changed = (found >= 0) & (self._keys[last] // self._moments == words)
            result = np.where(changed, self._values[last], result)
        result = result >> (places % np.uint64(8) * np.uint64(8))
        return result if size == 8 else result & np.uint64((1 << 8 * size) - 1)


class Recording:
    """The recorded cycles of an instance, up to ``cycles`` of them and the present moment.

    It is good until the instance runs on. ``handle`` raises if the instance is no more.
    """

    def __init__(self, library: Any, handle: Callable[[], Any], manifest: Manifest, cycles: int) -> None:
        self._library, self._handle, self.manifest = library, handle, manifest
        first = ctypes.c_uint64()
        rows = library.fast_record_rows(handle(), cycles, ctypes.byref(first))
        if not rows:
            raise FastError("nothing was recorded; call record(depth) before the cycles to be looked at")
        self._first, self._end = first.value, rows

    @property
    def moments(self) -> int:
        return self._end - self._first

    def blocks(self, netlist: Netlist, values: Iterable[int]) -> Iterator[Block]:
        """All moments, in order, with what these values need."""
        inputs, registers, memories = sources(netlist, values)
        pieces = [piece for name in inputs for piece in self.manifest.inputs[name].pieces]
        pieces += [piece for name in registers for piece in self.manifest.registers[name].pieces]
        yield from self.pieces(pieces, memories)

    def pieces(self, pieces: Iterable[Piece], memories: Iterable[str] = ()) -> Iterator[Block]:
        """All moments, in order, with these pieces of the state and these memories."""
        ranges, columns = _merge(pieces)
        watched, origins = self._watched(memories)
        for first in range(self._first, self._end, BLOCK):
            yield self._block(first, min(BLOCK, self._end - first), ranges, columns, watched, origins)

    def _watched(self, memories: Iterable[str]) -> tuple[list[tuple[int, int]], dict[int, int]]:
        """Ranges (offset, bytes) of the memories, and for each of their pieces the range that it is in."""
        spans = []
        places = [self.manifest.memories[name] for name in memories]
        for place in places:
            for piece, pitch in zip(place.pieces, place.pitches, strict=True):
                spans.append((piece.offset, piece.offset + pitch * max(place.depth - 1, 0) + piece.size))
        ranges: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            start, end = start // 8 * 8, -(-end // 8) * 8
            if ranges and start <= ranges[-1][1]:
                ranges[-1] = (ranges[-1][0], max(end, ranges[-1][1]))
            else:
                ranges.append((start, end))
        origins = {}
        for place in places:
            for piece in place.pieces:
                origins[piece.offset] = next(i for i, (low, high) in enumerate(ranges) if low <= piece.offset < high)
        return [(start, end - start) for start, end in ranges], origins

    def _block(
        self,
        first: int,
        count: int,
        ranges: list[tuple[int, int]],
        columns: dict[int, int],
        watched: list[tuple[int, int]],
        origins: dict[int, int],
    ) -> Block:
        rows = np.zeros((count, max(1, sum(size for _, size in ranges))), np.uint8)
        times = np.zeros((count, 3), np.uint64)
        before = np.zeros(max(1, sum(size for _, size in watched) // 8), np.uint64)
        changes = ctypes.c_void_p()
        found = self._library.fast_replay(
            *(self._handle(), first, count, _ranges(ranges), len(ranges), rows.ctypes.data, times.ctypes.data),
            *(_ranges(watched), len(watched), before.ctypes.data, ctypes.byref(changes)),
        )
        if found < 0:
            raise MemoryError(f"there is no memory to replay {count} cycles; record fewer, or choose fewer signals")
        log = np.zeros((0, 3), np.uint64)
        if found:
            raw = ctypes.cast(changes, ctypes.POINTER(ctypes.c_uint64))
            log = np.ctypeslib.as_array(raw, (found, 3)).copy()
            self._library.fast_free(changes)
        histories, at = [], 0
        for offset, size in watched:
            histories.append(_History(offset, before[at : at + size // 8], log, count))
            at += size // 8
        moments = Moments(times[:, 0], times[:, 1], times[:, 2])
        memories = {offset: histories[number] for offset, number in origins.items()}
        return Block(self.manifest, moments, rows, columns, memories)


def _ranges(ranges: list[tuple[int, int]]) -> Any:
    return (_Range * max(1, len(ranges)))(*(_Range(*item) for item in ranges))


def _merge(pieces: Iterable[Piece]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Ranges (offset, bytes) that hold the pieces, and the column at which each piece comes to lie."""
    gap = 16  # bytes that cost less to copy than another range
    ranges: list[tuple[int, int]] = []
    columns: dict[int, int] = {}
    width = 0
    for piece in sorted(set(pieces), key=lambda piece: piece.offset):
        start, end = piece.offset, piece.offset + piece.size
        if ranges and start <= ranges[-1][0] + ranges[-1][1] + gap:
            low, size = ranges[-1]
            width += max(0, end - low - size)
            ranges[-1] = (low, max(size, end - low))
        else:
            ranges.append((start, piece.size))
            width += piece.size
        columns[start] = width - ranges[-1][1] + (start - ranges[-1][0])
    return ranges, columns
