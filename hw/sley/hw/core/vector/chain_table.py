"""The table of the vector unit's chains."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.layout import Layout
from sley.abi.vector.chains import CHAIN_BITS, CHAIN_PARAM, WORDS, WORDS_KEPT


def word_layout(word: Layout) -> data.StructLayout:
    """A word of a chain, its fields without a gap."""
    return data.StructLayout({name: placed.width for name, placed in word.fields.items()})


CHAIN = data.StructLayout({word.name.removeprefix("CHAIN_").lower(): word_layout(word) for word in WORDS})
"""The words of a chain: ``front``, ``tail`` and ``operands``."""


class ChainTable(wiring.Component):
    """Words of chains that SET writes and VECTOR names. A word that was not written since ``clear`` is 0.

    Parameters
    ----------
    chains : int
        How many; their indices begin with 1.

    Members
    -------
    set : In(1), param : In(8), value : In(32)
        Write a word, unless ``bad``.
    clear : In(1)
        All words become 0; not with ``set``.
    known : Out(1)
        ``param`` is a number of the table, whether or not it has this word; combinational.
    bad : Out(1)
        There is no such word, or the value has bits beyond its fields; combinational.
    index : In(4)
        The chain that is asked for.
    o : Out(CHAIN)
        Its words; combinational.

    Latency
    -------
    One cycle from ``set`` to ``o``.

    Cost
    ----
    LUT memory of as many bits as the words have, a flip-flop for each word.
    """

    set: Signal
    param: Signal
    value: Signal
    clear: Signal
    known: Signal
    bad: Signal
    index: Signal
    o: data.View

    def __init__(self, chains: int) -> None:
        self._chains = chains
        super().__init__(
            {
                "set": In(1),
                "param": In(8),
                "value": In(32),
                "clear": In(1),
                "known": Out(1),
                "bad": Out(1),
                "index": In(CHAIN_BITS),
                "o": Out(CHAIN),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self.param[: WORDS_KEPT.bit_length() - 1]
        offset = self.param - CHAIN_PARAM
        chain = Signal(CHAIN_BITS)
        depth = self._chains + 1
        exists = (offset[WORDS_KEPT.bit_length() - 1 :] != 0) & (offset < WORDS_KEPT * depth) & (word < len(WORDS))
        beyond = Array(self.value[layout.mask.bit_length() :].any() for layout in WORDS)
        m.d.comb += [
            self.known.eq(self.param >= CHAIN_PARAM),
            self.bad.eq(~exists | beyond[Mux(word < len(WORDS), word, 0)]),
            chain.eq(offset[WORDS_KEPT.bit_length() - 1 :]),
        ]
        written = Signal(depth * len(WORDS))
        for number, (name, _) in enumerate(CHAIN):
            width = CHAIN[name].width
            m.submodules[name] = words = Memory(shape=width, depth=depth, init=[])
            write, read = words.write_port(), words.read_port(domain="comb")
            marks = written[number * depth : (number + 1) * depth]
            m.d.comb += [
                write.en.eq(self.set & ~self.bad & (word == number)),
                write.addr.eq(chain),
                write.data.eq(self.value),
                read.addr.eq(self.index),
                self.o[name].as_value().eq(read.data & marks.bit_select(self.index, 1).replicate(width)),
            ]
            with m.If(write.en):
                m.d.sync += marks.bit_select(chain, 1).eq(1)
        with m.If(self.clear):
            m.d.sync += written.eq(0)
        return m
