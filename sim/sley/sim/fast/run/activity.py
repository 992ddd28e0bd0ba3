"""What was hit, what ran and what toggled in an instance."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sley.sim.fast.emit.manifest import Manifest, Piece
from sley.sim.fast.run.recording import Recording


def covers(manifest: Manifest, counts: Sequence[int]) -> Mapping[str, int]:
    """Hits of each ``Cover``, by path and source location, from how often each event fired."""
    result: dict[str, int] = {}
    for number, event in enumerate(manifest.events):
        if event.kind == "cover":
            name = f"{event.path} {event.source}"
            result[name] = result.get(name, 0) + counts[number]
    return result


def fragment_runs(manifest: Manifest, state: memoryview) -> Mapping[str, int]:
    """How often each fragment has run."""
    raw = state[manifest.runs : manifest.runs + 8 * len(manifest.fragments)]
    result: dict[str, int] = {}
    for name, runs in zip(manifest.fragments, raw.cast("Q"), strict=True):
        result[name] = result.get(name, 0) + runs
    return result


def toggles(recording: Recording) -> Mapping[str, int]:
    """Bits of registers that changed in the recorded cycles, summed over the registers of each instance."""
    groups: dict[str, list[Piece]] = defaultdict(list)
    for name, signal in recording.manifest.registers.items():
        groups[name.rpartition(".")[0]] += signal.pieces
    result = dict.fromkeys(groups, 0)
    last: dict[Piece, Any] = {}
    for block in recording.pieces(piece for pieces in groups.values() for piece in pieces):
        for path, pieces in groups.items():
            for piece in pieces:
                values = block.load(piece)
                before = last.get(piece, values[0])
                changes = values ^ np.concatenate(([before], values[:-1])).astype(np.uint64)
                last[piece] = values[-1]
                result[path] += int(np.bitwise_count(changes).sum())
    return result
