"""The packets of the grids: kept as they came, read word by word into launch messages."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.network import LAUNCH_FIELDS, LaunchWord
from sley.abi.packets import INLINE_ARGS, PACKETS, PacketOp
from sley.hw.command.records import WORD_BITS, WORDS, one_of, packet_beat, packet_lanes

MESSAGE_FLITS = 1 + len(LaunchWord) + INLINE_ARGS
"""Flits of the longest launch message: 0 is the head, then the words; a word that is not sent keeps its number."""
BLOCK = (LaunchWord.BLOCK_X, LaunchWord.BLOCK_Y, LaunchWord.BLOCK_Z)
NOT_OF_PACKET = (LaunchWord.SIZES, *BLOCK)

_LAUNCH = PACKETS[PacketOp.LAUNCH].layout
_EXTENTS = {place: LAUNCH_FIELDS[LaunchWord.GRID_X + k] for k, place in enumerate(BLOCK)}
SOURCES = {k: _LAUNCH.fields[name].lsb // WORD_BITS for k, name in (LAUNCH_FIELDS | _EXTENTS).items()}
"""For each word of a launch message: the word of the packet. With a place it is the extent, to be compared."""


class GridPackets(wiring.Component):
    """Keeps the packet of each queue's grid, and shows the words that a launch message needs.

    The packet that is fetched goes to the slot that no grid has. A word is read two flits ahead: from memory while the
    flit before the last is sent, then into a register. So the first one is of the grid that is sent.

    Parameters
    ----------
    config : ChipConfig
        Sets the number of queues and the width of a beat.

    Members
    -------
    packet : In(packet_beat(config))
        Beats of whatever packet is fetched.
    arriving : In(queues)
        One-hot, for one cycle: the packet whose beats have come is the grid of this queue.
    sending : In(queues)
        One-hot: whose block is sent.
    flit : In(range(MESSAGE_FLITS)), sent : In(1)
        Number of the flit that is offered; it is accepted in this cycle.
    idle : In(1)
        No flit is offered; the next one is a head.
    skips_args : In(1)
        The message has no word ARGS; stable from the second flit on.
    content : Out(32)
        The packet's word that goes with the flit; with a place of a block the extent.
    shown : Out(1)
        The flit is a word of the packet.

    Cost
    ----
    In memory, a packet for each queue and one more; two registers of a memory word and of a word.
    """

    packet: data.View
    arriving: Signal
    sending: Signal
    flit: Signal
    sent: Signal
    idle: Signal
    skips_args: Signal
    content: Signal
    shown: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._queues = config.queues
        # No slot is read while it is written, so what a block RAM gives then does not matter. On a narrow bus one block
        # RAM takes the packets of all queues.
        self._lanes = packet_lanes(config)
        attributes = {"no_rw_check": 1} | ({"ram_style": "block"} if self._lanes == 1 else {})
        self.memory = Memory(
            shape=unsigned(WORD_BITS * self._lanes),
            depth=(1 << config.queues.bit_length()) * (WORDS // self._lanes),
            init=[],
            attrs=attributes,
        )
        super().__init__(
            {
                "packet": In(packet_beat(config)),
                "arriving": In(config.queues),
                "sending": In(config.queues),
                "flit": In(range(MESSAGE_FLITS)),
                "sent": In(1),
                "idle": In(1),
                "skips_args": In(1),
                "content": Out(WORD_BITS),
                "shown": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queues, lanes = self._queues, self._lanes
        beats = WORDS // lanes
        slots = [Signal(range(queues + 1), init=k, name=f"slot{k}") for k in range(queues)]
        spare = Signal(range(queues + 1), init=queues)
        for k in range(queues):
            with m.If(self.arriving[k]):
                m.d.sync += [slots[k].eq(spare), spare.eq(slots[k])]

        m.submodules.memory = memory = self.memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        slot = Signal.like(spare)
        source = Signal(range(WORDS))
        with m.Switch(self.flit):
            for word, packet_word in SOURCES.items():
                with m.Case(word - 1):
                    m.d.comb += source.eq(packet_word)
                    if word in (LaunchWord.ARGS, LaunchWord.BLOCK_X):  # ARGS may be passed over
                        with m.If(self.skips_args):
                            m.d.comb += source.eq(SOURCES[word + 1])
        m.d.comb += [
            slot.eq(one_of(self.sending, slots)),
            write.en.eq(self.packet.valid),
            write.addr.eq(self.packet.index + spare * beats),
            write.data.eq(self.packet.data),
            read.addr.eq((source >> exact_log2(lanes)) + slot * beats),
        ]

        fetched = Signal(WORD_BITS * lanes, reset_less=True)
        lane = Signal(range(max(lanes, 2)), reset_less=True)
        content = Signal(WORD_BITS, reset_less=True)
        shown = Signal(reset_less=True)
        m.d.comb += [self.content.eq(content), self.shown.eq(shown)]
        with m.If(self.sent):
            m.d.sync += [
                fetched.eq(read.data),
                lane.eq(source),
                content.eq(fetched.word_select(lane, WORD_BITS) if lanes > 1 else fetched),
                shown.eq(
                    ~Cat(self.flit == k for k in NOT_OF_PACKET).any()
                    & ((self.flit != LaunchWord.ARGS) | ~self.skips_args)
                ),
            ]
        with m.If(self.idle):
            m.d.sync += shown.eq(0)
        return m
