"""The way of bf16 weights into the array: they wait until the swap before them has passed."""

from amaranth import Array, Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.timing import BF16_ROW
from sley.hw.core.matrix.rows import lanes

TILES = 1 << (BF16_ROW - 2).bit_length()
"""Tiles in the memory. The swap takes less than BF16_ROW tiles of N rows to travel through the array."""


class WeightDelay(wiring.Component):
    """Keeps the words of some tiles in a memory and sends each to its array row when that row can take it.

    The swap of a tile reaches array row j BF16_ROW * j cycles after row 0, and a word travels there in j
    cycles. So word j of the next tile must not leave before the swap has travelled (BF16_ROW - 1) * j cycles,
    and has to leave before the next swap has. Time is divided into rounds of N slots, and slot j belongs to array row
    j: in it leaves word j of the tile whose turn it is there, by the count of swaps that have travelled so far. Swaps
    are N cycles apart at least, so each word has a slot. It may leave more than once, and before it has come some older
    contents of its place may: both do no harm, because what a row takes last before the swap counts.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(lanes(config)), i_valid : In(1), i_bf16 : In(1), i_row : In(range(N))
        Words of the next tile and their array rows. One without ``i_bf16`` is kept, but nothing leaves on its account.
    swaps : In(N)
        Bit j: a swap has travelled (BF16_ROW - 1) * j cycles.
    o : Out(lanes(config)), o_valid : Out(1), o_row : Out(range(N))
        To the array, for ``word_cycles`` after the last word of bf16 came.

    Cost
    ----
    TILES * N words of memory, N counters of 3 bits.
    """

    i: data.View
    i_valid: Signal
    i_bf16: Signal
    i_row: Signal
    swaps: Signal
    o: data.View
    o_valid: Signal
    o_row: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        n = config.array
        super().__init__(
            {
                "i": In(lanes(config)),
                "i_valid": In(1),
                "i_bf16": In(1),
                "i_row": In(range(n)),
                "swaps": In(n),
                "o": Out(lanes(config)),
                "o_valid": Out(1),
                "o_row": Out(range(n)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self._config.array
        m.submodules.memory = memory = Memory(shape=unsigned(lanes(self._config).size), depth=TILES * n, init=[])
        write, read = memory.write_port(), memory.read_port()
        passed = [Signal(range(TILES), name=f"passed{j}") for j in range(n)]  # swaps, modulo TILES
        m.d.sync += [count.eq(count + self.swaps[j]) for j, count in enumerate(passed)]
        left = Signal(range(word_cycles(self._config) + 1))
        slot = Signal(range(n), reset_less=True)
        with m.If(self.i_valid & self.i_bf16):
            m.d.sync += left.eq(word_cycles(self._config))
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(left != 0):
            m.d.sync += [slot.eq(slot + 1), self.o_row.eq(slot)]
        m.d.sync += self.o_valid.eq(left != 0)
        newest = (passed[0] + self.swaps[0])[: len(passed[0])]
        m.d.comb += [
            write.addr.eq(Cat(self.i_row, newest)),
            write.data.eq(self.i),
            write.en.eq(self.i_valid),
            read.addr.eq(Cat(slot, Array(passed)[slot])),
            read.en.eq(left != 0),
            self.o.eq(read.data),
        ]
        return m


def word_cycles(config: ChipConfig) -> int:
    """Cycles from the last word of a tile to the moment when all its words have left: the swap before it has travelled,
    and one round has passed."""
    return BF16_ROW * config.array + 2
