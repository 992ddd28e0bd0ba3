"""An estimate of the cycles of a GEMM's loads: the bus, and the rows that they interleave and transpose."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.instructions import INTERLEAVE_CHUNKS
from sley.abi.timing import JOINED_BEATS, READER_BEATS, transposer_latency
from sley.runtime.kernels.gemm.candidates import Candidates, Ints, ceil, larger
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import interleaved, most_chunks, piece_chunks

GAP = 1  # a run that does not continue the one before
SHARED_GAP = 9  # in eighths: a burst of a shared load; each core that shares it sends a request
VALUES_BEATS = 5  # of the bias or the scale of a macro tile: those of a row of sums, and one that is not aligned
READ_AHEAD = READER_BEATS - 50  # beats that arrive and wait while nothing is placed: less those of a round trip


class Load(NamedTuple):
    """Of a part of an operand, for all blocks."""

    read: Ints
    """Cycles of the memory bus."""
    beats: Ints
    """Cycles to place what comes from memory, one each."""
    rows: Ints
    """The same with the rows of zeros that fill up the last unit."""
    last: Ints
    """Cycles from the last row that enters the transposer until all have left it."""
    heads: Ints
    """Requests of one core."""

    @property
    def alone(self) -> Ints:
        """Cycles from load to load of the same kind: rows of zeros are placed while memory goes on."""
        return larger(self.read, self.rows)

    @property
    def done(self) -> Ints:
        """Cycles to the last row that is written."""
        return self.read + self.rows - self.beats + self.last


class OperandCost:
    """The loads of A or B.

    A load that permutes fills the transposer with a unit of runs before the first row leaves it.
    """

    def __init__(self, config: ChipConfig, problem: Problem, c: Candidates, name: str) -> None:
        p, pairs, n = problem, interleaved(config, problem), config.array
        first = name == "a"
        self._config, self._size, self._gang = config, p.bytes, c.gang
        self.transposes = p.trans_a if first else p.trans_b
        self._along_k = not p.trans_a if first else p.trans_b
        interleaves = pairs and not self._along_k
        self.flags = interleaves, self.transposes
        self._unit = (n if self.transposes else 1) << interleaves
        self._register = transposer_latency(n) if self.transposes else 1  # from a unit's last row to its first result
        self._most = most_chunks(config, p)[0 if first else 1] if self.transposes else INTERLEAVE_CHUNKS
        self.moving: NDArray[np.bool_] = c.resident != name
        self._pitch = (p.steps.lda if first else p.steps.ldb) * p.bytes
        # Macro tiles side by side in memory may begin anywhere in a beat.
        tile = c.tile_m if first else c.wide * n
        self._tile = (tile < (p.m if first else p.n)) * (not self._along_k) * tile * p.bytes
        self._times = (c.down if first else c.across) if c.gang else c.blocks
        longest = np.minimum(c.folds * config.fold_depth(p.dtype), p.k) if self._along_k else tile
        pieces = -(-self._chunks(longest) // self._most)
        self.further_pieces: Ints = (pieces - 1) * (self.transposes * self.moving)
        """LOADs of a chunk besides the first."""

    def _chunks(self, elements: Ints) -> Ints:
        return ceil(elements * self._size, self._config.row_bytes)

    def load(self, across: Ints, depth: Ints) -> Load:
        """Of ``across`` elements along M or N, by ``depth`` along K."""
        runs, elements = (across, depth) if self._along_k else (depth, across)
        chunks, bytes = self._chunks(elements), elements * self._size
        read = self._pieces(runs, bytes) if self.transposes else self._runs(runs, bytes, self._pitch)
        unit_rows = self._unit * piece_chunks(chunks, self._most) + self._register
        last = unit_rows if self._unit > 1 else np.zeros_like(chunks)
        rows = ceil(runs, self._unit) * self._unit * chunks
        return Load(read * self._times, runs * chunks, rows, last, self._heads(runs, bytes))

    def chunk(self, across: Ints, depth: Ints) -> Load:
        """Of a chunk: nothing, if the operand is resident."""
        return Load(*(value * self.moving for value in self.load(across, depth)))

    def _heads(self, runs: Ints, bytes: Ints) -> Ints:
        """Requests: they share the way out of the core with the beats of its writes."""
        bus = self._config.bus_bytes
        bursts = runs * ceil(bytes, self._config.max_burst * bus)
        joined = ceil(runs * bytes, bus * (1 if self._gang else JOINED_BEATS))  # where requests wait
        return np.where(bytes == self._pitch, np.minimum(bursts, joined), bursts)

    def _runs(self, runs: Ints, bytes: Ints, pitch: int) -> Ints:
        """Cycles to read runs of so many bytes, ``pitch`` apart: contiguous ones as one, but for a cycle for each beat
        of a row. In a gang the bursts of several loads alternate, so that none continues the one before."""
        bus = self._config.bus_bytes
        joined = bytes == pitch
        shared = ceil(runs * bytes, bus)
        rows = larger(runs * ceil(bytes, bus), shared)
        apart = np.gcd(pitch, self._tile)
        beats = pieces_of(runs, bytes, apart, bus)
        if not self._gang:
            return np.where(joined, rows + GAP, beats + runs * GAP)
        bursts = pieces_of(runs, bytes, apart, self._config.max_burst * bus)
        rows_bursts = np.minimum(runs, shared) + shared // self._config.max_burst
        bursts = np.where(joined & (pitch % bus > 0), rows_bursts, bursts)
        return np.where(joined, rows, beats) + ceil(bursts * SHARED_GAP, 8)

    def _pieces(self, runs: Ints, bytes: Ints) -> Ints:
        """The same when one LOAD may take a piece of a run only."""
        piece = piece_chunks(ceil(bytes, self._config.row_bytes), self._most) * self._config.row_bytes
        full, rest = bytes // piece, bytes % piece
        apart = -(self._pitch % self._config.bus_bytes)
        cut = full * self._runs(runs, piece, apart)
        cut += np.where(rest > 0, self._runs(runs, np.maximum(rest, 1), apart), 0)
        return np.where(bytes <= piece, self._runs(runs, bytes, self._pitch), cut)


def pieces_of(runs: Ints, bytes: Ints, apart: Ints, unit: int) -> Ints:
    """Aligned pieces of ``unit`` bytes that runs touch whose first bytes are multiples of ``apart`` from each other."""
    step = np.gcd(apart, unit)
    found: Ints = ceil(runs * (ceil(bytes, step) * step + unit - step), unit)
    return found


class LoadCost:
    """The loads of both operands."""

    def __init__(self, config: ChipConfig, problem: Problem, c: Candidates) -> None:
        self.a, self.b = OperandCost(config, problem, c, "a"), OperandCost(config, problem, c, "b")
        self._differ = self.a.flags != self.b.flags
        self._both = self.a.moving & self.b.moving

    def chunk(self, a: Load, b: Load) -> Ints:
        """From chunk to chunk. Where memory is slower than rows are placed, it goes on while they wait."""
        slack_a, slack_b = (np.clip(x.read - x.beats, 0, READ_AHEAD) for x in (a, b))
        if self._differ:
            # What comes next waits until the last unit is full, and has left the transposer.
            waits = larger(a.done - a.read - slack_b, 0) + larger(b.done - b.read - slack_a, 0)
            return np.where(self._both, a.read + b.read + waits, a.alone + b.alone)
        # It fills the transposer meanwhile, but only with its first unit.
        waits = larger(np.abs(a.last - b.last) - np.minimum(slack_a + slack_b, READ_AHEAD), 0)
        return a.alone + b.alone + waits * self._both

    def values(self, a: Load, b: Load, rows: int) -> Ints:
        """By how much longer a chunk takes with so many rows of bias and scale before its last load: they wait for the
        transposer, unless A and B wait for each other anyway."""
        if not rows:
            return np.zeros_like(a.done)
        done = np.where(self._both, a.done - a.alone, larger(a.done - a.alone, b.done - b.alone))
        waits: Ints = done * ~(self._both & self._differ) + VALUES_BEATS * rows
        return waits

    def behind(self, a: Load, b: Load) -> Ints:
        """From the last beat of a chunk until its last row is written."""
        return np.where(self.b.moving, b.last, a.last)

    def first(self, a: Load, b: Load, whole_a: Load, whole_b: Load) -> Ints:
        """Up to the first chunk, behind an operand that is resident."""
        before: Ints = (whole_a.alone + whole_a.last * self._differ) * ~self.a.moving
        before = before + (whole_b.alone + whole_b.last * self._differ) * ~self.b.moving
        return before + self.chunk(a, b) + self.behind(a, b)
