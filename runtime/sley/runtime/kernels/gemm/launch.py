"""A planned GEMM to a stream."""

from sley.runtime.device.arguments import Argument
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.kernels.gemm.kernel import gemm_program
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Plan


def launch(stream: Stream, problem: Problem, plan: Plan, a: Buffer, b: Buffer, out: Buffer, *more: Argument) -> None:
    """``more``: the bias, the scale and beta, if the epilogue has them. A plan may be one for the swapped operands."""
    first, second = (a, b) if plan.problem == problem else (b, a)
    program = gemm_program(stream.device.config, plan.problem, plan.tiling)
    stream.launch(program, [first, second, out, *more], plan.tiling.grid, plan.tiling.gang)
