"""Contents of registers, inputs and memories as the leaves of an evaluation, found with the help of a manifest."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from sley.sim.errors import FastError
from sley.sim.fast.emit.manifest import Manifest, Piece
from sley.sim.fast.run.evaluate import Array, apply, full


class Stored(ABC):
    """Leaves (see ``evaluate``) of a compiled design at some moments."""

    def __init__(self, manifest: Manifest, moments: int) -> None:
        self.manifest = manifest
        self.moments = moments

    @abstractmethod
    def load(self, piece: Piece) -> Array:
        """A piece of the state at all moments."""

    @abstractmethod
    def load_rows(self, piece: Piece, pitch: int, rows: Array) -> Array:
        """A piece of a memory whose row ``n`` is ``n * pitch`` bytes further, at each moment another row."""

    def input(self, name: str, width: int) -> Array:
        return self._bits(self.manifest.inputs[name].pieces, 0, width, self.load)

    def register(self, name: str, low: int, width: int) -> Array:
        signal = self.manifest.registers.get(name)
        if signal is None:
            raise FastError(f"the compiled design has no register {name!r}; build it again from this RTLIL")
        return self._bits(signal.pieces, low, width, self.load)

    def read(self, memory: str, low: int, width: int, address: Array) -> Array:
        place = self.manifest.memories[memory]
        inside = address < np.uint64(place.depth)
        rows = np.where(inside, address, np.uint64(0))
        pitches = {piece.offset: pitch for piece, pitch in zip(place.pieces, place.pitches, strict=True)}
        value = self._bits(place.pieces, low, width, lambda piece: self.load_rows(piece, pitches[piece.offset], rows))
        return np.where(inside, value, full(0, width, self.moments))

    def _bits(self, pieces: list[Piece], low: int, width: int, load: Callable[[Piece], Array]) -> Array:
        parts: list[Array] = []
        widths: list[int] = []
        for piece in sorted(pieces, key=lambda piece: piece.low):
            start, end = max(low, piece.low), min(low + width, piece.low + piece.width)
            if start < end:
                parts.append(apply("slice", end - start, start - piece.low, [load(piece)], [piece.width]))
                widths.append(end - start)
        if len(parts) == 1:
            return parts[0]
        return apply("concat", width, 0, parts, widths) if parts else full(0, width, self.moments)


class Present(Stored):
    """The state as it is now."""

    def __init__(self, manifest: Manifest, view: memoryview) -> None:
        super().__init__(manifest, 1)
        self._view = view

    def load(self, piece: Piece) -> Array:
        raw = self._view[piece.offset : piece.offset + piece.size]
        return full(int.from_bytes(raw, "little"), piece.width, 1)

    def load_rows(self, piece: Piece, pitch: int, rows: Array) -> Array:
        return self.load(Piece(piece.low, piece.width, piece.offset + int(rows[0]) * pitch, piece.size))
