"""What the parts of the program of token attention share: registers, semaphores, steps."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.token_attention.problem import LISTS, Placement, TokenAttention


class Writer:
    """A program that is being written.

    Attributes
    ----------
    k, config, problem, at, n: the builder, for what, where things are, lanes.
    done: blocks of the request before this one. ended: whether there is a request before. value_parts: parts of a
    block whose values are loaded when the array has left those before; the bus would wait for the last ones otherwise.
    """

    def __init__(self, k: KernelBuilder, config: ChipConfig, problem: TokenAttention, at: Placement) -> None:
        self.k, self.config, self.problem, self.at, self.n = k, config, problem, at, config.array
        p = problem
        self.q, self.keys, self.values = (k.arg(name, strided=True) for name in ("queries", "keys", "values"))
        self.lists, self.mask, self.out = k.arg("lists"), k.arg("mask"), k.arg("out", strided=True)
        if p.cores > 1:
            own = p.requests // p.cores
            steps = ((self.q, 2 * p.request_step), (self.lists, 4 * p.keys), (self.mask, 4 * p.keys))
            with k.scratch("first") as (first,):
                for register, step in (*steps, (self.out, 2 * self.n * p.result_step)):
                    k.mul(first, k.block[0], own * step)
                    k.add(register, register, first)
        k.free(*k.block, *k.grid)
        self.value_parts = 2 if p.block > self.n else 1
        self.k_free, self.k_full = k.semaphore("k_free", 1), k.semaphore("k_full")
        self.v_free, self.v_full = k.semaphore("v_free", self.value_parts), k.semaphore("v_full")
        self.q_free, self.q_full = k.semaphore("q_free", 2), k.semaphore("q_full")
        self.s_free, self.s_done = k.semaphore("s_free", 1), k.semaphore("s_done")
        self.ready, self.o_done = k.semaphore("ready"), k.semaphore("o_done")
        self.list_free, self.list_full = k.semaphore("list_free", LISTS), k.semaphore("list_full")
        self.mask_free, self.mask_full = k.semaphore("mask_free", LISTS), k.semaphore("mask_full")
        self.staged_free, self.staged = k.semaphore("staged_free", 1), k.semaphore("staged")
        self.load_queries, self.read_queries = k.reg("load_queries", at.queries), k.reg("read_queries", at.queries)
        self.load_list, self.key_list = k.reg("load_list", 0), k.reg("key_list", 0)
        self.value_list, self.read_mask = k.reg("value_list", 0), k.reg("read_mask", at.masks)
        self.lists_left, self.done = k.reg("lists_left", p.steps), k.reg("done", 0)
        self.ended = k.reg("ended", 0)
        self.n_register = k.reg("n", self.n)
        self.block_rows, self.width_rows = k.reg("block_rows", p.block), k.reg("width_rows", p.width)

    def other(self, place: Register, first: int, step: int) -> None:
        """The other one of two places."""
        with self.k.scratch("both") as (both,):
            self.k.mov(both, 2 * first + step)
            self.k.sub(place, both, place)

    def next_list(self, place: Register, first: int) -> None:
        """The next place of a list, or of a mask."""
        k, rows = self.k, self.problem.block // self.n
        k.add(place, place, rows)
        with k.scratch("end") as (end,):
            k.mov(end, first + LISTS * rows)
            with k.if_(place, "==", end):
                k.mov(place, first)

    def next_step(self) -> None:
        """Behind a block's values."""
        k, p = self.k, self.problem
        k.add(self.done, self.done, 1)
        with k.scratch("all") as (blocks,):
            k.mov(blocks, p.blocks)
            with k.if_(self.done, "==", blocks):
                k.mov(self.done, 0)
