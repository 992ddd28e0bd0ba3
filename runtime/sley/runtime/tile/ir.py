"""The tile IR: functions of operations on values, each assigned once, in blocks.

An operation has operands, attributes, results, and a body if it is a loop. What each one means and which types it takes
is in ``operations``; ``text`` prints and parses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sley.runtime.tile.types import TileType, Type

VERSION = 1
"""Of the IR's meaning and its text."""

Attribute = Any
"""Numbers, names, tuples of numbers, element types, chains: as ``operations`` says."""


@dataclass(eq=False, slots=True)
class Value:
    """A result of an operation, or a parameter of a block. Two values are the same only if they are one object."""

    type: Type
    name: str = ""


@dataclass(eq=False, slots=True)
class Op:
    """An operation. Attributes: ``line``: of the source, 0 if unknown. ``body``: of a loop."""

    name: str
    operands: list[Value]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    results: list[Value] = field(default_factory=list)
    body: Block | None = None
    line: int = 0

    @property
    def result(self) -> Value:
        """The only result."""
        (result,) = self.results
        return result


@dataclass(eq=False, slots=True)
class Block:
    """Operations in their order. ``parameters``: of a loop's body, its variable and what is carried."""

    parameters: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def walk(self) -> Iterator[Op]:
        """All operations, those of bodies behind their loop."""
        for op in self.ops:
            yield op
            if op.body is not None:
                yield from op.body.walk()

    def blocks(self) -> Iterator[Block]:
        """This block, and those of all bodies in it."""
        yield self
        yield from (op.body for op in self.walk() if op.body is not None)


@dataclass(eq=False, slots=True)
class Function:
    """A kernel for arrays of known types and a grid of known size."""

    name: str
    arrays: list[Value]
    grid: tuple[int, int, int]
    body: Block


def saved(function: Function) -> Callable[[], None]:
    """What puts a function back to how it is now."""
    body, grid = function.body, function.grid
    blocks = [(block, list(block.parameters), list(block.ops)) for block in body.blocks()]
    ops = [(op, op.name, list(op.operands), dict(op.attributes), list(op.results), op.body) for op in body.walk()]

    def restore() -> None:
        function.body, function.grid = body, grid
        for block, parameters, inside in blocks:
            block.parameters, block.ops = list(parameters), list(inside)
        for op, name, operands, attributes, results, inner in ops:
            op.name, op.operands, op.attributes = name, list(operands), dict(attributes)
            op.results, op.body = list(results), inner

    return restore


def tile_type(value: Value) -> TileType:
    """The type of a value that is a tile."""
    assert isinstance(value.type, TileType)
    return value.type


def tile_shape(value: Value) -> tuple[int, int]:
    """Rows and columns of a value that is a tile."""
    return tile_type(value).shape


def replaced(block: Block, values: Mapping[Value, Value]) -> None:
    """Exchanges operands everywhere in a block, in place."""
    for op in block.walk():
        op.operands = [values.get(operand, operand) for operand in op.operands]


def uses(block: Block) -> dict[Value, list[Op]]:
    """The operations that use each value, in order; one that uses it twice is there twice."""
    found: dict[Value, list[Op]] = {}
    for op in block.walk():
        for operand in op.operands:
            found.setdefault(operand, []).append(op)
    return found
