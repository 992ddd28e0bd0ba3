"""A small chip with all that chains can have, compiled once for all tests of chains on a whole chip.

Four lanes, queues of two instructions, little memory: a program whose units wait for what is issued behind them does
not end on it.
"""

from pathlib import Path

from sley.abi.config import PRESETS
from sley.abi.functions.table import Function

SMALL = PRESETS["nano"].replace(
    name="small",
    operand_types=("int8", "bf16"),
    vector_chains=15,
    vector_functions=tuple(Function),
    program_words=1024,
    scratchpad_rows=1024,
    accumulator_rows=256,
    unit_queue=2,
)


def small_chip(folder: Path) -> str:
    """The chip as a file, which engines take in place of a preset."""
    path = folder / "small.json"
    path.write_text(SMALL.to_json())
    return str(path)
