"""Programs that bring rows of a table together: a LOAD for each, at an address that the launch gives."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import MAX_ARGS
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.device.program import Program

MOST_BYTES = (1 << 16) - 1
"""Of a row."""


def rows_of(config: ChipConfig, row_bytes: int) -> int:
    """Rows that one launch brings: as many as it has arguments, and the scratchpad has room."""
    chunks = -(-row_bytes // config.row_bytes)
    return min(MAX_ARGS - 2, config.scratchpad_rows // chunks)


@lru_cache(maxsize=256)
def embedding_program(config: ChipConfig, rows: int, row_bytes: int) -> Program:
    """The program; its arguments are the addresses of the table and of the result, then where rows begin in the table,
    in bytes."""
    k = KernelBuilder(f"embedding_{rows}x{row_bytes}", config)
    table, out = k.arg("table", strided=True), k.arg("out")
    places = [k.arg(f"row{number}") for number in range(rows)]
    loaded = k.semaphore("loaded")
    chunks = -(-row_bytes // config.row_bytes)
    k.set(Unit.LOAD, run_bytes=row_bytes, chunks=chunks)
    k.free(*k.grid, *k.block)
    row = k.reg("row", 0)
    for number, place in enumerate(places):
        k.add(place, place, table)
        k.load(place, row, 1, signal=loaded if number == rows - 1 else ())
        k.add(row, row, chunks)
    k.set(Unit.STORE, run_bytes=row_bytes, mem_stride=row_bytes, local_stride=chunks)
    k.store(out, 0, rows, wait=loaded)
    k.end()
    return k.build()
