"""The program of a product of many rows of int8 with packed weights, whose ending runs beside the array.

A band of tokens is in the scratchpad, and the weights of all outputs pass by, a group of blocks of N outputs at a time.
The array takes as many cycles for a tile as the band has rows. While it works on a group, the vector unit does to the
sums of the one before what the ``Ending`` says, and Store writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.device.program import Program
from sley.runtime.kernels.many_rows import cached, floats, heads, operands
from sley.runtime.kernels.many_rows.chains import chains_of
from sley.runtime.kernels.many_rows.endings import ENDINGS
from sley.runtime.kernels.many_rows.placement import place
from sley.runtime.kernels.many_rows.problem import HIGH, Ending, ManyRows, Source
from sley.runtime.kernels.many_rows.products import multiply
from sley.runtime.kernels.many_rows.statistics import begin, finish
from sley.runtime.kernels.many_rows.turned import (
    load_tables,
    next_band,
    next_head,
    next_pair,
    next_tables,
    rounded,
    turned,
)
from sley.runtime.kernels.many_rows.writer import Writer, bits

_EARLY = 4
"""Groups of weights that are asked for before tokens have become int8."""


@lru_cache(maxsize=256)
def many_rows_program(config: ChipConfig, problem: ManyRows) -> Program:
    """The program; its arguments are the addresses of x, which is [parts · tokens, inputs] int8 or what its ``Source``
    says; the scales of its tokens, but not of HEADS; the
    packed weights, the scales of outputs, and the result [tokens, outputs]; with an ending that gives scales, those
    [tokens] and what rows are multiplied by to be int8 [tokens]; of ADDED at last the magnitudes of the norm's weights
    [outputs], of TURNED the cosines and sines of tokens [tokens, head / 2]. All but x and weights are fp32; the result
    of TURNED is [heads, tokens, head] bfloat16, x of HEADS [tokens, launches of attention, head + 1, N].

    Raises ``KernelError`` if it has no room.
    """
    k = KernelBuilder(problem.name, config)
    w = Writer(k, config, problem, place(config, problem))
    _start(w)
    _walk(w)
    k.end()
    return k.build()


def _start(w: Writer) -> None:
    """The scales of all tokens, the first band, the first weights. What goes to the accumulators comes first, as Load
    would wait for the array later."""
    k, at, p = w.k, w.at, w.problem
    if p.source is Source.HEADS:
        heads.load_heads(w)
    elif p.source is not Source.INT8:
        if p.ending is Ending.CACHED:
            cached.load_lists(w)
        floats.load_inverses(w)
        floats.load_piece(w)
    else:
        _load_scales(w)
        if p.ending is Ending.TURNED:
            for half in (0, 1):
                load_tables(w, half)
        _load_band(w)
        _load_operands(w)
        w.set_weights()
        _load_first(w, min(at.slots, at.bands * p.groups))
    w.set_store()
    k.set(Unit.MATRIX, act_stride=p.tiles(w.config))
    k.set(Unit.VECTOR, b_stride=1, out_stride=1, a_stride=1)
    k.set(Unit.VECTOR, splat0=bits(HIGH), splat1=0x7FFFFFFF)
    for chain in chains_of(p, at.bands > 1):
        k.chain(chain)
    if p.source is Source.HEADS:
        _convert_heads(w)
    elif p.source is not Source.INT8:
        _convert(w)
    k.mov(w.token_row, at.scales)


def _load_scales(w: Writer) -> None:
    """Of all tokens, in both halves; zeros where statistics begin."""
    k, at, p = w.k, w.at, w.problem
    tokens = p.tokens // p.cores
    k.set(Unit.LOAD, run_bytes=4 * tokens, chunks=-(-tokens // w.n))
    with k.scratch("row") as (row,):
        for half in (0, at.half):
            k.mov(row, half + at.scales)
            assert w.scales is not None
            k.load(w.scales, row, 1, space=Space.ACCUMULATOR)
    if p.gives_scales:
        begin(w)


def _load_operands(w: Writer) -> None:
    """Those of all groups, if they have room."""
    if w.at.resident:
        operands.load_all(w)


def _load_first(w: Writer, count: int) -> None:
    """The first weights."""
    with w.k.loop(count):
        _load_weights(w)


def _convert(w: Writer) -> None:
    """Tokens of fp32 become the band. What else is loaded is asked for in between, no more at a time than the queues
    take: the sequencer would wait for Load, and the vector unit for the sequencer."""
    k, at, p = w.k, w.at, w.problem
    pieces, step = p.inputs // w.n // at.piece, at.piece // 2
    slots = min(at.slots, p.groups)
    early = min(slots, _EARLY)
    with k.scratch("chunk last") as (chunk, last):
        k.mov(chunk, 0)
        k.mov(last, step * (pieces - 1))
        with k.loop(pieces):
            with k.if_(chunk, "==", 0):
                floats.spread_inverses(w)
            floats.to_units(w)
            if pieces > 1:
                with k.if_(chunk, "!=", last):
                    floats.load_piece(w)
            with k.if_(chunk, "==", 0):
                _load_scales(w)
                if p.ending is Ending.CACHED:
                    cached.load_tables(w)
                    cached.load_operands(w)
                else:
                    _load_operands(w)
            with k.if_(chunk, "==", last):
                w.set_weights()
                _load_first(w, early)
            floats.to_parts(w, chunk)
            k.add(chunk, chunk, step)
    k.empty(Unit.VECTOR, signal=w.x_full)
    _load_first(w, slots - early)


def _convert_heads(w: Writer) -> None:
    """Heads become the band, loads as above."""
    k, slots = w.k, min(w.at.slots, w.problem.groups)
    early = min(slots, _EARLY)
    if w.problem.gives_scales:
        begin(w)
    _load_operands(w)
    w.set_weights()
    _load_first(w, early)
    heads.scales(w)
    heads.convert(w)
    k.empty(Unit.VECTOR, signal=w.x_full)
    _load_first(w, slots - early)


def _walk(w: Writer) -> None:
    k, at, p = w.k, w.at, w.problem
    with k.loop(at.bands):
        k.empty(Unit.MATRIX, wait=w.x_full)
        if at.x_slots > 1 and at.bands > 1:
            with k.if_(w.bands_left, "!=", 0):
                _load_band(w)
        if p.of_heads:
            _heads(w)
        else:
            if at.resident:
                k.empty(Unit.VECTOR, wait=w.operands_full)
            with k.loop(p.groups):
                _group(w, ENDINGS[p.ending])
                k.add(w.column, w.column, 4 * w.n)
            k.add(w.out, w.out, at.tokens * w.pitch)
        if p.source is Source.INT8:
            k.empty(Unit.MATRIX, signal=w.x_free)
        if p.gives_scales:
            finish(w)
        k.mov(w.column, 0)
        k.add(w.token_row, w.token_row, at.tokens // w.n)
        w.next(w.read_x, 0, at.x_rows, at.x_slots)
        if at.x_slots == 1 and at.bands > 1:
            with k.if_(w.bands_left, "!=", 0):
                _load_band(w)


def _heads(w: Writer) -> None:
    """Heads that are turned, then the others, meanwhile the tables of the next band."""
    k, p, pairs = w.k, w.problem, w.problem.pairs(w.config)
    others = p.groups // pairs - p.turned
    if p.ending is Ending.CACHED:
        cached.begin(w)
        k.empty(Unit.VECTOR, wait=w.operands_full)
    k.empty(Unit.VECTOR, wait=w.tables_full)
    with k.loop(p.turned):
        with k.loop(pairs):
            _group(w, turned)
            next_pair(w)
        next_head(w)
    if p.ending is Ending.CACHED:
        cached.begin_values(w)
        with k.loop(others):
            with k.loop(pairs):
                _group(w, rounded)
                next_pair(w)
            next_head(w)
        return
    k.empty(Unit.VECTOR, signal=w.tables_free)
    with k.scratch("left") as (left,):
        k.mov(left, others * pairs)
        with k.loop(others):
            with k.loop(pairs):
                _group(w, rounded, lambda: next_tables(w, left, others * pairs))
                next_pair(w)
            next_head(w)
    next_band(w)


def _group(w: Writer, ending: Callable[[Writer], None], load: Callable[[], None] | None = None) -> None:
    """A group of blocks; ``load`` asks for more behind its operands."""
    if not w.at.resident:
        operands.load_group(w)
    if load is not None:
        load()
    with w.k.if_(w.loads_left, "!=", 0):
        _load_weights(w)
    multiply(w)
    ending(w)
    w.toggle()


def _load_band(w: Writer) -> None:
    """Chunk c of row r at r · tiles + c, low parts behind the high ones."""
    k, at, p = w.k, w.at, w.problem
    tiles = p.tiles(w.config)
    k.set(Unit.LOAD, run_bytes=p.inputs, mem_stride=p.inputs, chunks=tiles, chunk_stride=1, local_stride=tiles)
    k.set(Unit.LOAD, count2=p.parts, mem_stride2=p.rows_apart * p.inputs, local_stride2=at.tokens * tiles)
    k.load(w.x, w.load_x, at.tokens, wait=w.x_free, signal=w.x_full)
    k.add(w.x, w.x, at.tokens * p.inputs)
    w.next(w.load_x, 0, at.x_rows, at.x_slots)
    k.sub(w.bands_left, w.bands_left, 1)
    w.set_weights()


def _load_weights(w: Writer) -> None:
    """Those of the next group, as far ahead as there are slots."""
    k, at, p = w.k, w.at, w.problem
    k.load(w.weights, w.load_slot, 1, wait=w.w_free, signal=w.w_full)
    k.add(w.weights, w.weights, w.block_bytes)
    w.next(w.load_slot, at.first_slot, p.together * at.block_rows, at.slots)
    k.sub(w.loads_left, w.loads_left, 1)
    if w.head_left is not None:
        pairs = p.pairs(w.config)
        k.sub(w.head_left, w.head_left, 1)
        with k.if_(w.head_left, "==", 0):
            k.add(w.weights, w.weights, pairs * w.block_bytes)
            k.mov(w.head_left, pairs)
    k.sub(w.band_left, w.band_left, 1)
    with k.if_(w.band_left, "==", 0):
        k.sub(w.weights, w.weights, w.band_bytes)
        k.mov(w.band_left, p.groups)
