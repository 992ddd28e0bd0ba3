"""Command packets: 64 bytes each, little-endian, in the ring of a queue.

A queue executes its packets strictly in order: the next one starts when the one before has finished and all
that it wrote is in memory.
"""

from dataclasses import dataclass
from enum import IntEnum

from sley.abi.layout import Field, Layout, LayoutError

PACKET_BYTES = 64
FENCE_BYTES = 16
SEMAPHORE_BYTES = 8
"""A semaphore in memory: one 64-bit word."""
MAX_GRID = 65535
"""Largest number of blocks along one dimension of a grid."""
INLINE_ARGS = 6
"""Kernel arguments that a LAUNCH packet can carry itself."""


class PacketOp(IntEnum):
    """First byte of a packet. Zeroed memory is not a packet."""

    NOP = 1
    LAUNCH = 2
    COPY = 3
    FILL = 4
    FENCE = 5
    WAIT = 6
    SIGNAL = 7
    INDIRECT = 8


_OP = Field("op", 8, "Which packet this is.", enum=PacketOp)


@dataclass(frozen=True)
class PacketFormat:
    """Layout and meaning of one kind of packet."""

    op: PacketOp
    doc: str
    layout: Layout


def _packet(op: PacketOp, doc: str, *fields: Field) -> PacketFormat:
    return PacketFormat(op, doc, Layout(op.name, 8 * PACKET_BYTES, (_OP, *fields)))


PACKETS: dict[PacketOp, PacketFormat] = {
    f.op: f
    for f in (
        _packet(PacketOp.NOP, "Does nothing."),
        _packet(
            PacketOp.LAUNCH,
            "Runs a grid of blocks of a program on the cores; finishes when every block has ended.",
            Field(
                "gang",
                1,
                "Blocks run in gangs that fill the chip: grid_x and grid_y are the chip's columns and rows of cores, "
                "block (x, y, z) runs on the core in column x and row y, and gang z begins when gang z - 1 has ended.",
            ),
            Field(
                "program_words",
                16,
                "Length of the program in instruction words, 1 to the capability.",
                lsb=32,
            ),
            Field(
                "arg_words",
                16,
                f"32-bit kernel arguments, 0 to 24; they appear in r8 upwards. Up to {INLINE_ARGS} are in the packet, "
                "more are in memory.",
            ),
            Field("grid_x", 32, f"Blocks along x, 1 to {MAX_GRID}."),
            Field("grid_y", 32, f"Blocks along y, 1 to {MAX_GRID}."),
            Field("grid_z", 32, f"Blocks along z, 1 to {MAX_GRID}."),
            Field(
                "tag",
                32,
                "Name of the program. Not 0: all launches with this tag, since the chip's last reset, have the same "
                "program at the same address, so that a core that still holds it need not fetch it again.",
            ),
            Field("program", 64, "Byte address of the program, a multiple of 16."),
            Field(
                "args",
                64,
                f"Byte address of the arguments, a multiple of 4, if there are more than {INLINE_ARGS}; else 0.",
            ),
            *(
                Field(f"arg{k}", 32, f"Argument {k}, if there are at least {k + 1} and at most {INLINE_ARGS}; else 0.")
                for k in range(INLINE_ARGS)
            ),
        ),
        _packet(
            PacketOp.COPY,
            "Copies bytes within memory; any alignment; the ranges must not overlap.",
            Field("bytes", 32, "Length in bytes; 0 does nothing.", lsb=32),
            Field("src", 64, "Byte address to read."),
            Field("dst", 64, "Byte address to write."),
        ),
        _packet(
            PacketOp.FILL,
            "Sets bytes in memory; any alignment.",
            Field("value", 8, "The byte."),
            Field("bytes", 32, "Length in bytes; 0 does nothing.", lsb=32),
            Field("dst", 64, "Byte address to write."),
        ),
        _packet(
            PacketOp.FENCE,
            "Writes the 64-bit sequence number and then the 64-bit time in cycles, 16 bytes in all.",
            Field("interrupt", 1, "Raise the queue's fence interrupt after the write has reached memory."),
            Field("address", 64, "Byte address of the fence, a multiple of 16.", lsb=64),
            Field("sequence", 64, "The sequence number."),
        ),
        _packet(
            PacketOp.WAIT,
            "Holds this queue until the 64-bit word in memory is at least the value (unsigned).",
            Field("address", 64, "Byte address of the semaphore, a multiple of 8.", lsb=64),
            Field("value", 64, "The value to wait for."),
        ),
        _packet(
            PacketOp.SIGNAL,
            "Writes a 64-bit word to memory.",
            Field("address", 64, "Byte address of the semaphore, a multiple of 8.", lsb=64),
            Field("value", 64, "The value to write."),
        ),
        _packet(
            PacketOp.INDIRECT,
            "Executes packets from elsewhere, in order, as if they stood in its place; none of them may be INDIRECT.",
            Field("packets", 16, "How many; 0 does nothing.", lsb=32),
            Field("address", 64, "Byte address of the first, a multiple of 64; the others follow.", lsb=64),
        ),
    )
}


def encode_packet(op: PacketOp, **fields: int) -> bytes:
    """The 64 bytes of a packet. Raises ``LayoutError`` on a bad field or value."""
    return PACKETS[op].layout.pack(op=op, **fields).to_bytes(PACKET_BYTES, "little")


def decode_packet(data: bytes) -> tuple[PacketOp, dict[str, int]]:
    """Kind and fields of a packet. Raises ``LayoutError`` for an unknown opcode or a reserved bit that is set."""
    if len(data) != PACKET_BYTES:
        raise LayoutError(f"a packet has {PACKET_BYTES} bytes, not {len(data)}")
    word = int.from_bytes(data, "little")
    try:
        op = PacketOp(data[0])
    except ValueError:
        raise LayoutError(f"no packet has opcode {data[0]:#04x}") from None
    layout = PACKETS[op].layout
    if word & ~layout.mask:
        raise LayoutError(f"reserved bits are set in a {op.name} packet: {word & ~layout.mask:#x}")
    fields = layout.unpack(word)
    del fields["op"]
    return op, fields
