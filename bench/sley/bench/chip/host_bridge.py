"""The host bridge's use of its serial line: bytes of memory against bits on the line, cycles of an access.

Random contents of ``nano``'s simulated board are written and read through the bridge. Fails when a share is missed.
"""

import random
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from sley.abi.config import preset
from sley.fpga.boards.simulated import BAUD
from sley.fpga.bridge.transport import FpgaTransport
from sley.sim.board.design import open_board
from sley.sim.board.port import BoardPort

CLOCKS_PER_BIT = 16
MEMORY_BYTES = 1 << 18
SIZE = 48_000
PROMISED = 0.72
"""Payload bits in the time of a bit on the line. Eight of ten bits of a byte are data."""


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    board = open_board(preset("nano"), CLOCKS_PER_BIT, MEMORY_BYTES)
    port = BoardPort(board)
    transport = FpgaTransport(port, BAUD, timeout=10.0)
    data = random.Random(1).randbytes(SIZE)
    table = Table("", "bytes", "line bytes to and from the board", "payload / line bits", "payload / bit times")
    shares = []

    def row(what: str, size: int, action: Callable[[], None]) -> None:
        before, sent, received = board.cycles, port.sent, port.received
        action()
        bits = (board.cycles - before) / CLOCKS_PER_BIT
        sent, received = port.sent - sent, port.received - received
        line = 10 * max(sent, received)
        table.add_row(what, f"{size:,}", f"{sent:,} + {received:,}", f"{8 * size / line:.1%}", f"{8 * size / bits:.1%}")
        shares.append(8 * size / bits)

    def write(contents: bytes) -> None:
        transport.write_memory(0, contents)
        transport.barrier()

    def read() -> None:
        assert transport.read_memory(0, SIZE) == data

    row("zeros written", SIZE, lambda: write(bytes(SIZE)))
    row("random bytes written", SIZE, lambda: write(data))
    row("random bytes read", SIZE, read)
    console = Console()
    console.print(table)
    before = board.cycles
    for _ in range(100):
        transport.read32(0)
    cycles = (board.cycles - before) / 100
    console.print(f"a register read takes the time of {cycles / CLOCKS_PER_BIT:.0f} bits")
    transport.close()
    board.close()
    return [f"a share is below {PROMISED:.0%}"] if min(shares) < PROMISED else []
