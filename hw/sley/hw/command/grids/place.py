"""Place and number of the next block of each grid."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.network import QUEUE_BITS, LaunchWord
from sley.hw.command.grids.packets import BLOCK, MESSAGE_FLITS
from sley.hw.command.records import GRID_BITS

BLOCK_NUMBER = 3
"""Where the number of the next block is, behind its place in x, y and z; it takes two pieces, the low half first."""
PIECE_BITS = 3
EXTENTS = (LaunchWord.GRID_X, LaunchWord.GRID_Y, LaunchWord.GRID_Z)
PIECES: dict[int, int] = {
    LaunchWord.PROGRAM: BLOCK_NUMBER,
    LaunchWord.TAG: BLOCK_NUMBER + 1,
    **{LaunchWord.BLOCK_X + k: k for k in range(3)},
    **{extent: k for k, extent in enumerate(EXTENTS)},
}
"""Which piece is looked at with each word of a launch message."""


class BlockPlace(wiring.Component):
    """Counts the blocks of each grid: x fastest, then y, then z; and numbers them.

    Place and number are in memory in pieces of 16 bits, each read while the flit before is sent. A piece moves on while
    its extent is sent; those of the number while words are sent that have nothing to do with it.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of queues.

    Members
    -------
    queue : In(QUEUE_BITS)
        Whose block is sent.
    begun : In(1)
        A block of its grid was sent before; otherwise the place is 0, whatever the memory holds.
    flit : In(range(MESSAGE_FLITS)), sent : In(1)
        Number of the flit that is offered; it is accepted in this cycle.
    extent : In(16)
        With a word of the place: the extent of the grid in that direction.
    piece : Out(16)
        The piece that goes with the flit: with a word of the place its value, with PROGRAM and TAG the two halves of
        the block's number.
    last : Out(1)
        The block is the last one of its grid; valid with the last flit.

    Cost
    ----
    A memory of eight pieces for each queue, two registers of a piece.
    """

    queue: Signal
    begun: Signal
    flit: Signal
    sent: Signal
    extent: Signal
    piece: Signal
    last: Signal

    def __init__(self, config: ChipConfig) -> None:
        self.memory = Memory(shape=GRID_BITS, depth=max(config.queues, 2) << PIECE_BITS, init=[])
        super().__init__(
            {
                "queue": In(QUEUE_BITS),
                "begun": In(1),
                "flit": In(range(MESSAGE_FLITS)),
                "sent": In(1),
                "extent": In(GRID_BITS),
                "piece": Out(GRID_BITS),
                "last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = self.memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        index, next_index = Signal(PIECE_BITS, reset_less=True), Signal(PIECE_BITS)
        stored = Signal(GRID_BITS, reset_less=True)
        after = Signal(GRID_BITS + 1)
        begun = Signal(reset_less=True)  # known behind the head
        moves, is_extent = Signal(), Signal()  # the piece does; its end is the word sent
        carry = Signal()  # into the piece
        wraps = Signal()  # the piece does, from its end to 0
        # Whether a piece comes to its end is found out while its place is sent, two cycles late.
        equal = Signal(GRID_BITS // 2 + 1, reset_less=True)
        compared = Signal(len(EXTENTS), reset_less=True)
        at_end = Signal(len(EXTENTS), reset_less=True)
        difference = after ^ self.extent
        m.d.sync += [
            begun.eq(self.begun),
            compared.eq(Cat(self.flit == k + 1 for k in BLOCK)),
            equal.eq(Cat(~difference[k : k + 2].any() for k in range(0, len(difference), 2))),
        ]
        for k in range(len(EXTENTS)):
            with m.If(compared[k]):
                m.d.sync += at_end[k].eq(equal.all())
        with m.Switch(self.flit):  # whether the address of arguments is sent or not makes no difference
            for position in range(MESSAGE_FLITS - 1):
                with m.Case(position):
                    m.d.comb += next_index.eq(PIECES.get(position, 0))
                    with m.If(self.sent):
                        m.d.sync += [
                            is_extent.eq(position in EXTENTS),
                            moves.eq(position in EXTENTS or PIECES.get(position, 0) >= BLOCK_NUMBER),
                        ]
        m.d.comb += [
            read.addr.eq(Cat(next_index, self.queue)),
            self.piece.eq(Mux(begun, stored, 0)),
            self.last.eq(at_end.all()),
            after.eq(self.piece + 1),
            write.addr.eq(Cat(index, self.queue)),
            write.en.eq(self.sent & moves),
            wraps.eq(is_extent & carry & at_end.bit_select(index[:2], 1)),
            write.data.eq(Mux(wraps, 0, Mux(carry, after[:GRID_BITS], self.piece))),
        ]
        with m.If(self.sent):
            m.d.sync += [index.eq(next_index), stored.eq(read.data), carry.eq(~moves | wraps | after[-1])]
        return m
