"""Loops by the names of their variables, and their rounds once more: what the words of a schedule are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.types import INDEX


def name_of(loop: Op) -> str:
    """That of its variable."""
    assert loop.body is not None
    return loop.body.parameters[0].name


def find(function: Function, word: str, names: Iterable[str]) -> list[Op]:
    """All loops with these names, those in a loop before it. ``word``: of the schedule that names them. Raises
    ``TileError`` for a name that no loop has."""
    loops = [op for op in function.body.walk() if op.body is not None]
    known = list(dict.fromkeys(map(name_of, loops)))
    for name in names:
        if name not in known:
            raise TileError(f"{word} of {name}; the loops of {function.name} are over {', '.join(known) or 'nothing'}")
    return [loop for loop in reversed(loops) if name_of(loop) in names]


def divided(function: Function, word: str, numbers: Mapping[str, int]) -> list[tuple[Op, int]]:
    """Loops and the numbers of rounds that are given for them, without those of one round. Raises ``TileError`` for a
    name that no loop has, and for a number that does not divide the rounds of a loop."""
    found = []
    for loop in find(function, word, numbers.keys()):
        name, count = name_of(loop), loop.attributes["count"]
        number = numbers[name]
        if count % number:
            raise TileError(
                f"line {loop.line}: {word} of {name} by {number}; its {count} rounds must be a multiple of that"
            )
        if number > 1:
            found.append((loop, number))
    return found


def round_behind(loop: Op, number: int, carried: Sequence[Value]) -> tuple[list[Op], list[Value]]:
    """The operations of the round that is so many rounds behind the loop's variable, on what is carried to it, and what
    it carries on. They are new ones."""
    assert loop.body is not None
    variable, *parameters = loop.body.parameters
    known, ops = dict(zip(parameters, carried, strict=True)), list[Op]()
    if number:
        behind, known[variable] = Value(INDEX), Value(INDEX)
        ops.append(Op("const", [], {"value": number * loop.attributes["step"]}, [behind], line=loop.line))
        ops.append(Op("iadd", [variable, behind], {}, [known[variable]], line=loop.line))
    *made, ends = _copied(loop.body, known)
    return ops + made, ends.operands


def alike(values: Sequence[Value]) -> list[Value]:
    """New values of the same types and names."""
    return [Value(value.type, value.name) for value in values]


def _copied(block: Block, known: dict[Value, Value]) -> list[Op]:
    """The operations of a block once more, on other values where these are known."""
    found = []
    for op in block.ops:
        copy = Op(op.name, [known.get(value, value) for value in op.operands], dict(op.attributes), line=op.line)
        copy.results = _new(op.results, known)
        if op.body is not None:
            copy.body = Block(_new(op.body.parameters, known), _copied(op.body, known))
        found.append(copy)
    return found


def _new(values: Sequence[Value], known: dict[Value, Value]) -> list[Value]:
    """New values for those of a block, which are known from then on."""
    made = alike(values)
    known.update(zip(values, made, strict=True))
    return made
