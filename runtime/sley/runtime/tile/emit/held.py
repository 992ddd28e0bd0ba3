"""Rows that an instruction reads again and again, in row registers in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sley.abi.instructions import Space, VectorRow
from sley.abi.vector.chains import LATE, Chain, Condition, Lanes, Late, Operand
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Value, tile_shape

_SOURCES = {"b": (Late.B, VectorRow.ROW2), "c": (Late.C, VectorRow.SCALE)}
WORTH = 16
"""Rows of a tile from which on it gains."""


def hold_rows(room: Room, chain: Chain, operands: Mapping[str, Value], rows: int) -> tuple[Chain, dict[str, VectorRow]]:
    """The chain with row registers for operands B and C that are one row each in the accumulators, which an instruction
    would read again for each row, in the place of one of A or of another unit; and which register is for which."""
    held = dict[str, VectorRow]()
    for name, (source, register) in _SOURCES.items():
        value = operands.get(name)
        if value is None or rows < WORTH or tile_shape(value)[0] > 1:
            continue
        if room.placement.of[value].space is not Space.ACCUMULATOR:
            continue
        other = _held(chain, source, Operand(Operand.ROW0 + register))
        if other is not None:
            chain, held[name] = other, register
    return chain, held


def _held(chain: Chain, source: Late, operand: Operand) -> Chain | None:
    """The chain with a row register in the place of an operand; none if one of its stages takes no row register."""
    fields: dict[str, Any] = {}
    if source is Late.B and chain.binary_operand == Operand.B:
        fields["binary_operand"] = operand
    for late, of, lanes in ((LATE[0], chain.late0, chain.late0_lanes), (LATE[1], chain.late1, chain.late1_lanes)):
        if of != source or not chain.late_uses(late):
            continue
        keeps = late == Operand.LATE0 and chain.keep == Condition.LATE0_NOT_ZERO
        if lanes != Lanes.OWN or chain.other == late or keeps:
            return None
        for name in ("multiply", "multiply2", "binary2_operand"):
            if getattr(chain, name) == late:
                fields[name] = operand
    made = replace(chain, **fields)
    return None if made.reads(source) or (source is Late.B and made.uses_b) else made
