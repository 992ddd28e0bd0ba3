"""What the parts of the command processor hand to each other."""

from collections.abc import Iterable

from amaranth.hdl import Const, Mux, Value, ValueLike
from amaranth.lib import data

from sley.abi.command import ErrorAddress
from sley.abi.config import ChipConfig
from sley.abi.faults import FAULT
from sley.abi.network import QUEUE_BITS
from sley.abi.packets import MAX_GRID, PACKET_BYTES
from sley.abi.pages import CONTEXT_BITS
from sley.hw.elaboration.layouts import struct, widths

WORD_BITS = 32
WORDS = 8 * PACKET_BYTES // WORD_BITS
INDEX_BITS = 16
"""Width of a packet index (the field of the READ_INDEX register)."""
READBACK_BYTES = 4
"""What the read index is in memory."""
GRID_BITS = MAX_GRID.bit_length()
"""Width of a dimension of a grid."""


FaultRecord = struct(FAULT)
"""Error record of a queue; ``code`` 0 means no fault."""

WorkResult = data.StructLayout({"queue": QUEUE_BITS, "fault": FaultRecord})
"""End of what the executor gave away, a grid or a copy: nothing of it is under way any more; ``fault`` is the first."""


def packet_lanes(config: ChipConfig) -> int:
    """Words of a packet that come at once: those of a beat, or the whole packet if that is less."""
    return min(8 * config.bus_bytes // WORD_BITS, WORDS)


def packet_beat(config: ChipConfig) -> data.StructLayout:
    """A beat of a packet that is fetched, or the whole packet if that is less; ``index``: its place in the packet."""
    lanes = packet_lanes(config)
    return data.StructLayout({"valid": 1, "index": range(max(WORDS // lanes, 2)), "data": WORD_BITS * lanes})


QueueError = data.StructLayout({**widths(FAULT, "code"), "address": ErrorAddress})
"""What a queue itself knows of its error record."""


Grid = data.StructLayout({"context": CONTEXT_BITS, "watchdog": 32, "program_words": 16, "arg_words": 8, "gang": 1})
"""What is to be known of a grid of blocks beside its packet, which is without fault. ``gang``: blocks go out a chip of
cores at a time; ``watchdog``: see the register."""

LaunchCommand = data.StructLayout({"queue": QUEUE_BITS, "grid": Grid})


CopyJob = data.StructLayout({"context": CONTEXT_BITS, "fill": 1, "value": 8, "src": 32, "dst": 32, "bytes": 32})
"""A COPY, or a FILL of ``dst`` with ``value``; all fields checked."""

CopyCommand = data.StructLayout({"queue": QUEUE_BITS, "job": CopyJob})


def readback_word(address: Value) -> Value:
    """Where a read index goes: the low bits of READBACK are ignored."""
    word: Value = address & ~(READBACK_BYTES - 1)
    return word


def number(one_hot: Value) -> Value:
    """Position of the bit that is set."""
    position: Value = one_hot & 0
    for k in range(1, len(one_hot)):
        position = position | Mux(one_hot[k], k, 0)
    return position


def one_of(one_hot: Value, items: Iterable[ValueLike]) -> Value:
    """The item whose bit is set."""
    selected: Value = Const(0, 1)
    for bit, item in zip(one_hot, items, strict=True):
        value = Value.cast(item)
        selected = selected | (value & bit.replicate(len(value)))
    return selected
