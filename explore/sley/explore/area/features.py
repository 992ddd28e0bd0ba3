"""What the area of each block of a chip grows with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.types import ElementType

Feature = Callable[[ChipConfig], float]
WIDTHS = ((36, 512), (18, 1024), (9, 2048), (4, 4096), (2, 8192), (1, 16384))
"""Bits and words of a block RAM of an ECP5, as Yosys uses it with a read and a write port."""
LEAST_WORDS = 64
"""Of a bank that is in block RAM; shallower ones are in LUTs."""
LUT_WORDS = 16
"""Words of a queue that is in LUTs; longer ones are in block RAM."""


def block_rams(words: int, bits: int) -> int:
    """Of a memory of so many words."""
    return min(-(-bits // width) * -(-words // depth) for width, depth in WIDTHS)


def _bf16(config: ChipConfig) -> int:
    return int(config.has(ElementType.BF16))


def _banks(kind: str) -> dict[str, Feature]:
    """Of the banked memory ``kind``: ports choose among banks, and a bank among its block RAMs."""

    def bytes_of(config: ChipConfig) -> int:
        return config.row_bytes if kind == "scratchpad" else config.accumulator_row_bytes

    def words(config: ChipConfig) -> int:
        return int(getattr(config, f"{kind}_rows") // getattr(config, f"{kind}_banks"))

    def blocks(config: ChipConfig) -> float:
        deep = words(config) >= LEAST_WORDS
        return float(deep * getattr(config, f"{kind}_banks") * block_rams(words(config), 8 * bytes_of(config)))

    def shallow(config: ChipConfig) -> float:
        return float((words(config) < LEAST_WORDS) * getattr(config, f"{kind}_rows") * 8 * bytes_of(config))

    return {
        "one": lambda config: 1.0,
        "row bytes": lambda config: float(bytes_of(config)),
        "block RAMs": blocks,
        "bits in LUTs": shallow,
        "bytes of all banks": lambda config: float(bytes_of(config) * getattr(config, f"{kind}_banks")),
    }


FEATURES: dict[str, Feature] = {
    "one": lambda config: 1.0,
    "row bytes": lambda config: float(config.row_bytes),
    "array": lambda config: float(config.array),
    "elements": lambda config: float(config.array**2),
    "elements with bf16": lambda config: float(config.array**2 * _bf16(config)),
    "bf16": lambda config: float(_bf16(config)),
    "gather": lambda config: float(config.gather),
    "lanes": lambda config: float(config.vector_lanes),
    "lanes with bf16": lambda config: float(config.vector_lanes * _bf16(config)),
    "lanes with chains": lambda config: float(config.vector_lanes * bool(config.vector_chains)),
    "any function": lambda config: float(bool(config.vector_functions)),
    "functions": lambda config: float(len(config.vector_functions)),
    "chains": lambda config: float(config.vector_chains),
    "translations": lambda config: float(config.tlb_entries),
    "wide translations": lambda config: float(config.tlb_entries * config.row_bytes),
    "program block RAMs": lambda config: float(block_rams(config.program_words, 8 * INSTRUCTION_BYTES)),
    "queues": lambda config: float(config.queues),
    "contexts": lambda config: float(config.contexts),
    "cores": lambda config: float(config.cores),
    "several cores": lambda config: float(config.cores > 1),
    "nodes": lambda config: float(config.cores + 2),
    "bytes of all nodes": lambda config: float((config.cores + 2) * config.row_bytes),
    "bytes of many nodes": lambda config: float((config.cores > 1) * (config.cores + 2) * config.row_bytes),
    "short queue": lambda config: float(config.unit_queue <= LUT_WORDS),
    "long queue": lambda config: float(config.unit_queue > LUT_WORDS),
}
"""By name."""


@dataclass(frozen=True)
class Part:
    """A block: the features that it grows with, and how many there are, in each core if ``in_core``, in each lane of
    its vector unit if ``in_lane``."""

    features: tuple[str, ...]
    in_core: bool = True
    each: int = 1
    in_lane: bool = False
    own: Mapping[str, Feature] | None = None

    def values(self, config: ChipConfig) -> list[float]:
        """Of its features."""
        return [(self.own or FEATURES)[name](config) for name in self.features]

    def count(self, config: ChipConfig) -> int:
        """How many a chip has."""
        lanes = config.vector_lanes if self.in_lane else 1
        return self.each * lanes * (config.cores if self.in_core else 1)


_MOVER = ("one", "row bytes", "bf16", "gather")
_SCRATCHPAD, _ACCUMULATORS = _banks("scratchpad"), _banks("accumulator")
PARTS: dict[str, Part] = {
    "sequencer": Part(("one", "row bytes", "program block RAMs")),
    "load": Part(_MOVER),
    "store": Part(_MOVER),
    "matrix": Part(("array", "elements", "elements with bf16")),
    "vector": Part(("one", "lanes", "lanes with chains", "lanes with bf16", "array")),
    "function": Part(("any function", "functions"), in_lane=True),
    "scratchpad": Part(tuple(_SCRATCHPAD), own=_SCRATCHPAD),
    "accumulators": Part(tuple(_ACCUMULATORS), own=_ACCUMULATORS),
    "front": Part(("short queue", "long queue"), each=4),
    "fetch-reader": Part(("one", "row bytes")),
    "load-reader": Part(("one", "row bytes")),
    "writer": Part(("one", "row bytes")),
    "node-port": Part(("one", "row bytes", "translations", "wide translations")),
    "semaphores": Part(("one",)),
    "scrub": Part(("one",)),
    "counters": Part(("one",)),
    "core": Part(("one",)),
    "command": Part(("one", "row bytes", "queues", "cores", "contexts"), in_core=False),
    "gateway": Part(("one", "row bytes", "contexts", "several cores"), in_core=False),
    "mesh": Part(("nodes", "bytes of all nodes", "bytes of many nodes", "several cores"), in_core=False),
    "bank": Part(("one", "queues", "contexts"), in_core=False),
    "bus-counters": Part(("one",), in_core=False),
    "target": Part(("one",), in_core=False),
    "chip": Part(("one",), in_core=False),
}
"""By the names of ``blocks``; ``core`` and ``chip`` are what joins the blocks of each."""
