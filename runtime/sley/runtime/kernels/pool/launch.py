"""Planned pooling to a stream."""

from sley.runtime.device.arguments import Argument
from sley.runtime.device.stream import Stream
from sley.runtime.kernels.pool.kernel import pool_program
from sley.runtime.kernels.pool.plan import plan
from sley.runtime.kernels.pool.problem import Pool


def launch(stream: Stream, problem: Pool, x: Argument, out: Argument, *factor: float) -> None:
    """``factor``: of the sums, if it is an average."""
    config = stream.device.config
    tiling = plan(config, problem)
    stream.launch(pool_program(config, problem, tiling), [x, out, *factor], tiling.grid)
