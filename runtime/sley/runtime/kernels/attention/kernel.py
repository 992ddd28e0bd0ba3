"""Programs of attention; docs/theory/attention.md explains them."""

from functools import lru_cache
from itertools import pairwise

from sley.abi.config import ChipConfig
from sley.runtime.device.program import Program
from sley.runtime.kernels.attention.problem import Problem
from sley.runtime.kernels.attention.results import Results


@lru_cache(maxsize=256)
def attention_program(config: ChipConfig, problem: Problem) -> Program:
    """The program; its arguments are the addresses of q, k, v, the result, a temporary array; and scale * log2(e). Of
    int8 also the factor of results and what is added to them."""
    return _Attention(config, problem).program


class _Attention(Results):
    """A round of the main loop: a step is loaded, one scored and weighed, one summed up, a tile finished."""

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        k = self.k
        again = k.label("again")
        k.place(again)
        self.load_step()
        self.prepare_sums()
        with k.if_(self.scored, "!=", 0):
            self.score()
            self.weigh_step()
        with k.if_(self.summed, "!=", 0):
            self.sum_up()
        self.load_values()
        self._shift()
        self.advance()
        with k.scratch("left") as (left,):
            k.max(left, self.heads, 0)
            for step in (self.scored, self.summed, self.ended):
                k.or_(left, left, step)
            with k.if_(left, "!=", 0):
                k.jump(again)
        k.end()
        self.program = k.build()

    def _shift(self) -> None:
        """Steps go on to the next stage."""
        k = self.k
        steps, outs = (self.ended, self.summed, self.scored, self.loaded), (*self.outs[::-1], self.out)
        for stages in (steps, outs):
            for to, source in pairwise(stages):
                k.mov(to, source)
        self._other(self.parity)
