"""A pseudo-terminal whose far side is a simulated board."""

import os
import select
import termios
import tty

from sley.sim.board.board import SimulatedBoard

SLICE_CYCLES = 20_000
"""Most cycles between two looks at the terminal."""
SILENT_SLICES = 50
NAP_SECONDS = 0.01
"""How long the board stands still after each slice when nothing was said for ``SILENT_SLICES``, unless something
comes."""
BUFFER_BYTES = 1 << 16
"""What is kept for a host that does not read; more is lost, as on a real line."""


class Terminal:
    """Joins ``board`` to a new pseudo-terminal, whose name is ``name``.

    ``serve_once`` runs the board for a slice of time. While neither side says anything, simulated time passes
    slowly, so that an idle board does not keep a processor busy.
    """

    def __init__(self, board: SimulatedBoard) -> None:
        self._board = board
        self._master, self._slave = os.openpty()  # the open slave keeps the line up between hosts
        tty.setraw(self._slave, termios.TCSANOW)
        os.set_blocking(self._master, False)
        self.name = os.ttyname(self._slave)
        self._to_board, self._to_host = bytearray(), bytearray()
        self._silent = 0

    def close(self) -> None:
        os.close(self._master)
        os.close(self._slave)

    def serve_once(self) -> None:
        self._read()
        spoken = bool(self._to_board)
        arrived = self._board.run(self._to_board, SLICE_CYCLES)
        self._silent = 0 if spoken or arrived else self._silent + 1
        self._to_host += arrived
        del self._to_host[BUFFER_BYTES:]
        if self._to_host:
            self._write()
        elif self._silent > SILENT_SLICES:
            select.select([self._master], [], [], NAP_SECONDS)

    def _read(self) -> None:
        if len(self._to_board) < BUFFER_BYTES:
            try:
                self._to_board += os.read(self._master, BUFFER_BYTES)
            except BlockingIOError:
                return

    def _write(self) -> None:
        try:
            del self._to_host[: os.write(self._master, self._to_host)]
        except BlockingIOError:
            return
