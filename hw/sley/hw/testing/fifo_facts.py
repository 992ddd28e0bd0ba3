"""What the registers of a ``StreamFIFO`` keep, for proofs of blocks that have one inside."""

from collections.abc import Mapping
from typing import Any


def fifo_facts(inner: Mapping[str, Any], depth: int, path: str = "") -> list[Any]:
    """Conditions that hold in every cycle; ``inner``: the signals of the block, ``path``: the queue's, with its dot."""
    read, write, level, offered = (inner[path + name] for name in ("read_index", "write_index", "level", "o__valid"))
    stored = (level - offered)[: len(level)]
    return [
        *(level >= offered, stored <= depth, read < depth, write < depth, write == (read + stored) % depth),
        *(inner[path + "some"] == (stored != 0), inner[path + "full"] == (stored == depth)),
    ]
