"""What the vector unit does without chains: the flags of VECTOR, for chains that are no more than that."""

from __future__ import annotations

from typing import TypedDict

from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import SPLATS, Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.operands import wrapped
from sley.runtime.tile.constants import word
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op
from sley.runtime.tile.operations import TileError

SIGN = 1 << 31
ABILITIES = (
    "it adds two tiles or takes the larger of them, adds a number, multiplies by one in fp32, cuts at 0, and converts, "
    "in this order"
)


class Flags(TypedDict, total=False):
    """Fields of VECTOR: ``chain``, or those in its place."""

    chain: int
    b_op: BinaryOp
    bias: bool
    scale: bool
    relu: bool


def refusal(room: Room, op: Op, what: str) -> TileError:
    """The error for a chip without chains."""
    return TileError(
        f"line {op.line}: {what} takes a chain, and the chip {room.config.name} has no chains: its vector_chains is 0; "
        f"{ABILITIES}"
    )


def flags_of(room: Room, op: Op) -> Flags:
    """The flags that do what a chain does; writes the numbers that they need to row registers. Raises ``TileError``."""
    stages: Chain = op.attributes["stages"]
    computed, splats = op.attributes["computed"], op.attributes["splats"]
    bare = Chain(
        binary=stages.binary,
        binary_operand=stages.binary_operand,
        add=stages.add,
        multiply=stages.multiply,
        relu=stages.relu,
    )
    if stages != bare or op.attributes["slots"] or (stages.multiply and stages.multiply not in SPLATS):
        raise refusal(room, op, "this")
    flags = Flags(relu=stages.relu)
    added = stages.add
    if stages.binary_operand is Operand.B and stages.binary in (BinaryOp.ADD, BinaryOp.MAX):
        flags["b_op"] = stages.binary
    elif stages.binary in (BinaryOp.ADD, BinaryOp.SUB) and stages.binary_operand in SPLATS and not added:
        added = stages.binary_operand
    elif stages.binary:
        raise refusal(room, op, stages.binary.name.lower())
    if added:
        number = splats[SPLATS.index(added)]
        if stages.binary is BinaryOp.SUB:
            number = number ^ SIGN if computed.is_float else -number
        flags["bias"] = _hold(room, VectorRow.BIAS, number)
    if stages.multiply:
        flags["scale"] = _hold(room, VectorRow.SCALE, splats[SPLATS.index(stages.multiply)])
    elif computed is ElementType.INT32 and op.attributes["dtype"] is ElementType.FP32:
        flags["scale"] = _hold(room, VectorRow.SCALE, word(1.0, ElementType.FP32))
    return flags


def _hold(room: Room, register: VectorRow, number: int) -> bool:
    if not room.parameters.holds(Unit.VECTOR, register.name, number):
        room.k.vrow(register, wrapped(number), splat=True)
    return True
