"""The program of attention of single tokens.

A step is a block of keys of a request: the array computes their scores, the vector unit weighs them, and the array adds
their values to the results. Load brings the keys of the next step meanwhile, and its values when these are added.
"""

from __future__ import annotations

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.types import ElementType
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Semaphores
from sley.runtime.device.program import Program
from sley.runtime.kernels.token_attention import loads, softmax
from sley.runtime.kernels.token_attention.problem import TokenAttention, place
from sley.runtime.kernels.token_attention.writer import Writer

_BF16 = ElementType.BF16


@lru_cache(maxsize=256)
def token_attention_program(config: ChipConfig, problem: TokenAttention) -> Program:
    """The program; its arguments are the addresses of queries [requests, heads, width] bfloat16, which may be parts of
    longer rows, of each head zeros but in the columns of its key head; keys and values [slots, width] bfloat16, of
    slots of any size; where the keys of a request are [requests,
    keys] int32, in bytes from the first slot on; a mask [requests, keys], not 0 where there is a key; and the results
    [requests, head + 1, N] bfloat16, each head a lane, the last row their largest magnitudes; lanes behind them are
    zeros.

    Raises ``KernelError`` if it has no room.
    """
    p = problem
    k = KernelBuilder(f"token_attention_{p.requests}x{p.keys}x{p.width}_{p.block}", config)
    w = Writer(k, config, problem, place(config, problem))
    softmax.start(w)
    loads.lists(w)
    with k.loop(p.steps):
        with k.if_(w.done, "==", 0):
            loads.queries(w)
        loads.keys(w)
        loads.lists(w)
        loads.values(w)
        _scores(w)
        softmax.weigh(w)
        _values(w)
        w.next_step()
    softmax.finish(w)
    k.end()
    return k.build()


def _scores(w: Writer) -> None:
    """Of the keys of a block: a row for each, a lane for each head."""
    k, p, at = w.k, w.problem, w.at
    folds = p.width // w.n
    with k.scratch("query key sums") as (query, key, sums):
        k.mov(query, w.read_queries)
        k.mov(key, at.keys)
        k.mov(sums, at.scores)
        k.empty(Unit.MATRIX, wait=(w.k_full, w.s_free))
        with k.if_(w.done, "==", 0):
            k.empty(Unit.MATRIX, wait=w.q_full)
        _fold(w, (query, key, sums), (w.block_rows, p.block), accumulate=False)
        _folds(w, folds - 1, (query, key, sums), (w.block_rows, p.block))
        k.empty(Unit.MATRIX, signal=(w.k_free, w.s_done))
        with k.scratch("last") as (last,):
            k.mov(last, p.blocks - 1)
            with k.if_(w.done, "==", last):
                k.empty(Unit.MATRIX, signal=w.q_free)
                w.other(w.read_queries, at.queries, p.width)


def _values(w: Writer) -> None:
    """Values of a block, weighed by its powers, are added to the results; a request's first block begins them."""
    k, p, at = w.k, w.problem, w.at
    folds = p.block // w.n // w.value_parts
    with k.scratch("power value sums") as (power, value, sums):
        k.mov(power, at.powers)
        k.mov(value, at.values)
        k.mov(sums, at.results)
        places, rows = (power, value, sums), (w.width_rows, p.width)
        for part in range(w.value_parts):
            k.empty(Unit.MATRIX, wait=w.v_full)
            if part == 0:
                with k.if_(w.done, "==", 0):
                    _fold(w, places, rows, accumulate=False, wait=w.ready)
                with k.if_(w.done, "!=", 0):
                    _fold(w, places, rows, accumulate=True, wait=w.ready)
            _folds(w, folds - (part == 0), places, rows, w.ready)
            k.empty(Unit.MATRIX, signal=w.v_free)
        k.empty(Unit.MATRIX, signal=w.o_done)


def _folds(
    w: Writer,
    folds: int,
    places: tuple[Register, Register, Register],
    rows: tuple[Register, int],
    wait: Semaphores = (),
) -> None:
    """So many, which add to the sums."""
    if folds:
        with w.k.loop(folds):
            _fold(w, places, rows, accumulate=True, wait=wait)


def _fold(
    w: Writer,
    places: tuple[Register, Register, Register],
    rows: tuple[Register, int],
    *,
    accumulate: bool,
    wait: Semaphores = (),
) -> None:
    """N rows of weights, which wait, and all rows that pass through them."""
    (weights, source, sums), (step, count) = places, rows
    w.k.weights(weights, w.n, dtype=_BF16, step=w.n_register, wait=wait)
    w.k.matmul(source, sums, count, accumulate=accumulate, dtype=_BF16, step=step)
