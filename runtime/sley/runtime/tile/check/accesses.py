"""Which rows of the local memories and which bytes of the memory a command reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op, Space
from sley.abi.parameters import Param
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.chains import CHAIN_WORDS, Chain, Late, chain_of, chain_parameter
from sley.abi.vector.operations import BinaryOp
from sley.runtime.errors import KernelError
from sley.runtime.tile.check.commands import Command

MEMORY = "memory"
MOST_ROWS = (1 << 16) - 1
"""Rows or runs of an instruction."""
PLACES = {Space.SCRATCHPAD: "scratchpad", Space.ACCUMULATOR: "accumulators"}
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Access:
    """Rows of a local memory, or addresses of bytes, that a command reads or writes. ``anywhere``: in the array that
    its only address is in, which nobody knows before."""

    place: str
    rows: Rows
    writes: bool
    anywhere: bool = False


def accesses(command: Command, config: ChipConfig) -> Iterator[Access]:
    """Those of a command. Raises ``KernelError`` for one that would fault."""
    op = command.op
    if command.c > MOST_ROWS:
        raise KernelError(f"instruction {command.pc} has {command.c:,} rows or runs; at most {MOST_ROWS:,} fit")
    if op in (Op.LOAD, Op.STORE):
        yield from _transfer(command, config)
    elif op is Op.MATMUL and command.c:
        yield Access("scratchpad", _activations(command), False)
        sums = command.b + np.arange(command.c)
        if command.fields["accumulate"]:
            yield Access("accumulators", sums, False)
        yield Access("accumulators", sums, True)
    elif op is Op.WEIGHTS and command.c:
        yield Access("scratchpad", command.a + np.arange(command.c) * command.params[Param.WEIGHT_STRIDE], False)
    elif op is Op.VECTOR and command.c:
        yield from _vector(command, config)
    elif op is Op.VROW and not command.fields["splat"]:
        yield Access("accumulators", np.array([command.a]), False)


def _activations(command: Command) -> Rows:
    p = command.params
    index = np.arange(command.c)
    inner = p[Param.ACT_COUNT] or command.c
    middle = p[Param.ACT_COUNT2] or command.c
    i0, rest = index % inner, index // inner
    i1, i2 = rest % middle, rest // middle
    walked: Rows = command.a + i0 * p[Param.ACT_STRIDE] + i1 * p[Param.ACT_STRIDE2] + i2 * p[Param.ACT_STRIDE3]
    return walked


def _vector(command: Command, config: ChipConfig) -> Iterator[Access]:
    f, p, index = command.fields, command.params, np.arange(command.c)
    number = f["chain"]
    chain: Chain | None = Chain()
    if number:
        words = tuple(p.get(chain_parameter(number, word), 0) for word in range(CHAIN_WORDS))
        chain = chain_of(words)
    if chain is None:
        raise KernelError(f"instruction {command.pc}: chain {number} means nothing")

    def steps(late: Late) -> Rows:
        found: Rows = index // config.array if chain.broadcasts(late) else index
        return found

    b_space = Space(f["b_space"])
    if chain.binary is not BinaryOp.SECOND or chain.reads(Late.A):  # or nothing depends on what is read
        yield Access(PLACES[Space(f["a_space"])], command.a + index * p[Param.A_STRIDE], False)
    if chain.uses_b or f["b_op"]:
        yield Access(PLACES[b_space], p[Param.B_ROW] + steps(Late.B) * p[Param.B_STRIDE], False)
    if chain.uses_c:
        yield Access(PLACES[Space(1 - b_space)], p[Param.C_ROW] + steps(Late.C) * p[Param.C_STRIDE], False)
    if not chain.silent:
        place = "accumulators" if ElementType(f["out"]) in WORD_TYPES else "scratchpad"
        yield Access(place, command.b + index * p[Param.OUT_STRIDE], True)


def _grid(*sides: tuple[int, int]) -> Rows:
    """All sums of multiples: of each step so many."""
    total = np.zeros(1, np.int64)
    for count, step in sides:
        total = (total[:, None] + np.arange(count) * step).reshape(-1)
    return total


def _transfer(command: Command, config: ChipConfig) -> Iterator[Access]:
    f, p, loads = command.fields, command.params, command.op is Op.LOAD
    space, runs, slabs, size = Space(f["space"]), command.c, p[Param.COUNT2], p[Param.RUN_BYTES]
    if not runs or not slabs or (not size and not (loads and p[Param.CHUNKS])):
        return
    row = config.row_bytes if space is Space.SCRATCHPAD else config.accumulator_row_bytes
    chunks = p[Param.CHUNKS] if loads else -(-size // row)
    unit, made = 1, [(chunks, p[Param.CHUNK_STRIDE])]
    if loads and f["interleave"]:
        unit, made = 2, [(2 * chunks, p[Param.CHUNK_STRIDE])]
    if loads and f["transpose"]:
        unit, made = unit * config.array, [*made, (config.array, 1)]
    units = -(-(runs + (p[Param.PAD_RUNS] if loads else 0)) // unit)
    local = command.b + _grid((slabs, p[Param.LOCAL_STRIDE2]), (units, p[Param.LOCAL_STRIDE]), *made)
    yield Access(PLACES[space], local, loads)
    if f["by_list"]:
        rows = p[Param.LIST_ROW] + np.arange(-(-runs // config.array))
        yield Access("accumulators", rows, False)
        yield Access(MEMORY, np.array([command.a]), not loads, anywhere=True)
    elif size:
        starts = _grid((slabs, p[Param.MEM_STRIDE2]), (runs, p[Param.MEM_STRIDE]))
        yield Access(MEMORY, (command.a + starts[:, None] + np.arange(size)).reshape(-1), not loads)
