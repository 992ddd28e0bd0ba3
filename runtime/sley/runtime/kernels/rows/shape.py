"""Sizes of an operator on rows, and where a program keeps them in the scratchpad."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig

SLOTS = 3
"""Places of rows: one is loaded, one computed, one stored."""
SUMS = 2
"""Places in the accumulators for the sums of a piece's chunks; before them is the bias of a piece, as fp32."""
SLAB_CHUNKS = 8
"""Chunks that a LOAD with ``transpose`` takes of a run."""


@dataclass(frozen=True)
class Rows:
    """A matrix [m, k] of bf16, and its result: bytes from row to row of both, and the blocks that share the work."""

    m: int
    k: int
    pitch: int
    out_pitch: int
    blocks: int = 1


@dataclass(frozen=True)
class Placement:
    """Rows of the scratchpad: ``SLOTS`` slots of ``step`` rows, in each up to ``piece`` elements along K, and behind
    them as many values of the weight and the bias as they have. ``resident``: a slot holds all of K. The last row of
    the scratchpad is one of ones, for sums."""

    piece: int
    step: int
    resident: bool

    @classmethod
    def of(cls, config: ChipConfig, k: int, values: int) -> "Placement":
        """``values``: of weight and bias, how many there are."""
        n, rows = config.array, config.scratchpad_rows
        bank = rows // config.scratchpad_banks
        padded = -(-k // n) * n
        behind = values * (padded // n)
        # Slots in banks of their own, if they fit; what is behind the last one is weight and bias.
        chunks = config.accumulator_rows // (1 + SUMS)
        for step in (max(bank, padded), padded):
            if SLOTS * step + behind < rows and padded <= chunks * n:
                return cls(padded, step, True)
        slab = SLAB_CHUNKS * n
        room = (rows - 1) // SLOTS * n // (n + values)
        piece = min(room // slab * slab if room >= slab else room // n * n, chunks * n)
        return cls(piece, piece + values * (piece // n), False)

    def sums_row(self, n: int, place: int) -> int:
        """First accumulator row of the sums."""
        return (1 + place) * (self.piece // n)

    def values_row(self) -> int:
        """Where weight and bias begin: behind their slot, or, resident, behind all."""
        return SLOTS * self.step if self.resident else self.piece
