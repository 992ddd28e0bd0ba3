"""Registers of Amaranth's own simulator beside those of the fast engine."""

from typing import Any

import numpy as np

from sley.sim.fast.emit.manifest import Signal


class Registers:
    """Registers on both sides. Only those that changed on one of them are looked at. ``moved``: whether any has."""

    def __init__(self, registers: dict[str, Signal], slots: list[Any], state: memoryview) -> None:
        pieces = [(number, piece) for number, place in enumerate(registers.values()) for piece in place.pieces]
        assert all(piece.size <= 8 for _, piece in pieces)
        self._names, self._slots = list(registers), slots
        self._widths = [place.width for place in registers.values()]
        self._lows = [piece.low for _, piece in pieces]
        self._owner = np.array([number for number, _ in pieces])
        self._of: list[list[int]] = [[] for _ in registers]
        for index, (number, _) in enumerate(pieces):
            self._of[number].append(index)
        self._state = np.frombuffer(state, np.uint8)
        bytes_ = np.arange(8)
        offsets = np.array([piece.offset for _, piece in pieces])[:, None]
        self._inside = (bytes_ < np.array([piece.size for _, piece in pieces])[:, None]).astype(np.uint8)
        self._where = np.minimum(offsets + bytes_, len(self._state) - 1)
        self._known: list[int | None] = [None] * len(slots)
        self._known_pieces = np.zeros(0, np.uint64)
        self.moved = False

    def differences(self) -> list[str]:
        values = [slot.curr for slot in self._slots]
        pieces = (self._state[self._where] * self._inside).view("<u8")[:, 0]
        changed = {number for number, value in enumerate(values) if value != self._known[number]}
        if len(self._known_pieces):
            changed.update(self._owner[pieces != self._known_pieces].tolist())
            self.moved |= bool(changed)
        self._known, self._known_pieces = list(values), pieces
        return [text for number in sorted(changed) if (text := self._difference(number, values[number], pieces))]

    def _difference(self, number: int, value: int, pieces: np.ndarray) -> str:
        got = sum(int(pieces[index]) << self._lows[index] for index in self._of[number])
        value &= (1 << self._widths[number]) - 1
        return "" if got == value else f"{self._names[number]} is {got:#x}, {value:#x} in pysim"
