"""Packets as the driver writes and shows them."""

from collections.abc import Sequence
from typing import SupportsIndex

from sley.abi.config import ChipConfig
from sley.abi.instructions import INSTRUCTION_BYTES, MAX_ARGS
from sley.abi.layout import LayoutError
from sley.abi.packets import (
    FENCE_BYTES,
    MAX_GRID,
    PACKET_BYTES,
    PACKETS,
    SEMAPHORE_BYTES,
    PacketOp,
    decode_packet,
    encode_packet,
)
from sley.driver.errors import BadRequest

ARGS_BYTES = 128
"""Room for the arguments of one LAUNCH that do not fit into the packet."""
assert ARGS_BYTES >= 4 * MAX_ARGS

_ALIGNED = {
    (PacketOp.LAUNCH, "program"): (INSTRUCTION_BYTES, "the program's address"),
    (PacketOp.LAUNCH, "args"): (4, "the address of arguments"),
    (PacketOp.FENCE, "address"): (FENCE_BYTES, "the fence's address"),
    (PacketOp.WAIT, "address"): (SEMAPHORE_BYTES, "the semaphore's address"),
    (PacketOp.SIGNAL, "address"): (SEMAPHORE_BYTES, "the semaphore's address"),
    (PacketOp.INDIRECT, "address"): (PACKET_BYTES, "the address of packets"),
}
"""What the command processor wants a field to be a multiple of."""


def check_fields(config: ChipConfig, op: PacketOp, fields: dict[str, int]) -> None:
    """Raises ``BadRequest`` for a value that its field cannot hold, or that the command processor of this chip would
    refuse with BAD_FIELD. Ranges of memory are checked by ``AddressSpace.check``."""
    for name, value in fields.items():
        if type(value) is not int and not isinstance(value, SupportsIndex):
            raise BadRequest(f"{op.name} packet: {name} is {value!r}; it must be an integer")
    if op is PacketOp.LAUNCH:
        _check_launch(config, fields)
    for name, value in fields.items():
        low, high = PACKETS[op].layout.fields[name].field.bounds
        if not low <= value <= high:
            raise BadRequest(f"{op.name} packet: {name} is {value}; it must be in {low}..{high}")
        size, what = _ALIGNED.get((op, name), (1, ""))
        if value % size:
            raise BadRequest(f"{what} {value:#x} is no multiple of {size}")


def _check_launch(config: ChipConfig, fields: dict[str, int]) -> None:
    words, limit = fields["program_words"], config.program_words
    if not 1 <= words <= limit:
        raise BadRequest(f"the program has {words} instructions; this chip's cores hold 1 to {limit}")
    if fields["arg_words"] > MAX_ARGS:
        raise BadRequest(f"the kernel gets {fields['arg_words']} arguments; at most {MAX_ARGS} are possible")
    grid = fields["grid_x"], fields["grid_y"], fields["grid_z"]
    if not all(1 <= side <= MAX_GRID for side in grid) or grid[0] * grid[1] * grid[2] >= 1 << 32:
        raise BadRequest(
            f"the grid is {grid}; every side must be in 1..{MAX_GRID} and the product below 2^32: launch parts of it"
        )
    cores = config.cores_x, config.cores_y
    if fields["gang"] and grid[:2] != cores:
        raise BadRequest(
            f"the grid of a gang is {grid}; on this chip it must be {cores[0]} x {cores[1]} x any number: a block "
            "for each core, as the cores lie in the mesh"
        )


def argument_words(args: Sequence[int]) -> list[int]:
    """Arguments as unsigned words. Raises ``BadRequest`` for one that does not fit into 32 bits."""
    for index, value in enumerate(args):
        if not -(1 << 31) <= value < 1 << 32:
            raise BadRequest(f"argument {index} is {value}; it must fit into 32 bits")
    return [value & 0xFFFFFFFF for value in args]


def encode(config: ChipConfig, op: PacketOp, **fields: int) -> bytes:
    """The 64 bytes of a packet. Raises ``BadRequest``, see ``check_fields``."""
    check_fields(config, op, fields)
    return encode_packet(op, **fields)


def describe_packet(data: bytes) -> str:
    """Text of a packet, also of one that the device refuses."""
    try:
        op, fields = decode_packet(data)
    except LayoutError as error:
        return f"{error} ({data[:16].hex(' ')} ...)"
    return " ".join([op.name, *(f"{name}={value:#x}" for name, value in fields.items())])
