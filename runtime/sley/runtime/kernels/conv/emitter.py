"""What all parts of a convolution's program share: names, semaphores, the walk."""

from sley.abi.config import ChipConfig
from sley.abi.vector.chains import Chain, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Value
from sley.runtime.kernels.conv.pixels import Pixels
from sley.runtime.kernels.conv.placement import Placement
from sley.runtime.kernels.conv.problem import Conv
from sley.runtime.kernels.conv.tiling import Tiling, chunks_of, patches
from sley.runtime.kernels.conv.walk import Level, Walk
from sley.runtime.kernels.sums_to_results import sums_to_results

JOIN = Chain(multiply=Operand.SPLAT0, binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.B)
"""A residual times its factor, and the sums, which are B."""


class ConvEmitter(Pixels):
    """The base of the parts that write a convolution's program.

    The walk is at the chunk that is loaded, one ahead of the chunk that is multiplied. Semaphores: ``free`` and
    ``full`` hand slots of chunks over, ``acc_free`` and ``acc_done`` halves of the accumulators, ``out_free`` and
    ``out_done`` places of results in the scratchpad, ``values_free`` and ``values_full`` the rows of bias and scale. A
    residual is loaded to where the results go: LOAD waits for that place then, and ``residual_full`` hands it over.
    Whatever an instruction waits for is signalled by one issued before it, so the queues may have any length.
    """

    place: Placement
    column_tile: Level
    rounds: Register
    ready_slot: Register
    chunk: Register
    half: Register
    tile_rows: Value
    """Output pixels of the macro tile that is multiplied."""
    tile_height: Value
    tile_width: Value
    tile_outputs: Value
    out_at: Register
    residual_at: Register
    joins: int

    def __init__(self, config: ChipConfig, problem: Conv, tiling: Tiling) -> None:
        self.config, self.problem, self.tiling = config, problem, tiling
        self.place = Placement.of(config, problem, tiling)
        self.patch_y, self.patch_x = patches(problem, tiling)
        self.folds = problem.folds(config)
        self.chunks = chunks_of(config, problem, tiling)
        y, x = problem.y, problem.x
        self.k = k = KernelBuilder(
            f"conv_{y.out}x{x.out}x{problem.outputs}_{y.taps}x{x.taps}x{problem.channels}", config
        )
        epilogue = problem.epilogue
        self.arg = {"x": k.arg("x", True), "w": k.arg("w"), "out": k.arg("out", True)}
        if epilogue.bias:
            self.arg["bias"] = k.arg("bias", bound=problem.bias_bound)
        if epilogue.scale:
            self.arg["scale"] = k.arg("scale")
        if epilogue.residual:
            self.arg["residual"], self.arg["factor"] = k.arg("residual", True), k.arg("factor")
            self.joins = k.chain(JOIN)
        if epilogue.zero_point:
            self.arg["zero_point"] = k.arg("zero_point")
        self.to_results = sums_to_results(k, epilogue)
        self.free, self.full = k.semaphore("free", tiling.slots), k.semaphore("full")
        self.acc_free, self.acc_done = k.semaphore("acc_free", 2), k.semaphore("acc_done")
        self.out_free, self.out_done = k.semaphore("out_free", 2 * epilogue.narrow), k.semaphore("out_done")
        self.has_values = epilogue.value_rows > 0
        self.values_free = k.semaphore("values_free", 2 * self.has_values)
        self.values_full = k.semaphore("values_full")
        self.residual_full = k.semaphore("residual_full")
        self.walk = Walk(k)
        self._known: dict[str, Value] = {}
