"""Packets as the driver writes and shows them."""

from sley.abi.instructions import MAX_ARGS
from sley.abi.layout import LayoutError
from sley.abi.packets import PacketOp, decode_packet, encode_packet
from sley.driver.errors import BadRequest

ARGS_BYTES = 128
"""Room for the arguments of one LAUNCH that do not fit into the packet."""
assert ARGS_BYTES >= 4 * MAX_ARGS


def encode(op: PacketOp, **fields: int) -> bytes:
    """The 64 bytes of a packet. Raises ``BadRequest`` on a value that does not fit."""
    try:
        return encode_packet(op, **fields)
    except LayoutError as error:
        raise BadRequest(f"{op.name} packet: {error}") from None


def describe_packet(data: bytes) -> str:
    """Text of a packet, also of one that the device refuses."""
    try:
        op, fields = decode_packet(data)
    except LayoutError as error:
        return f"{error} ({data[:16].hex(' ')} ...)"
    return " ".join([op.name, *(f"{name}={value:#x}" for name, value in fields.items())])
