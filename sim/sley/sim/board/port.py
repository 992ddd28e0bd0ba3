"""A simulated board in the same process, as a serial port."""

from sley.sim.board.board import SimulatedBoard

POLL_CYCLES = 2_000


class BoardPort:
    """The serial line of ``board`` for ``sley.fpga.bridge.link.Link``. Time passes while it is read.

    Attributes: ``sent``, ``received``: bytes so far.
    """

    name = "simulated board"

    def __init__(self, board: SimulatedBoard) -> None:
        self._board = board
        self._outgoing = bytearray()
        self.sent = self.received = 0

    def write(self, data: bytes) -> None:
        self.sent += len(data)
        self._outgoing += data

    def read(self) -> bytes:
        data = self._board.run(self._outgoing, POLL_CYCLES)
        self.received += len(data)
        return data
