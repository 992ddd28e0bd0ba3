"""What VECTOR does from sums to results: flags, or a chain where a zero point is added behind the rounding."""

from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.kernels.epilogue import Epilogue


def sums_to_results(k: KernelBuilder, epilogue: Epilogue) -> dict[str, Any]:
    """Arguments of ``KernelBuilder.vector`` for an epilogue without beta and residual; a chain is written here. The
    zero point is SPLAT0."""
    if not epilogue.zero_point:
        return {"bias": epilogue.bias, "scale": epilogue.scale, "relu": epilogue.relu}
    chain = Chain(
        add=Operand.ROW0 if epilogue.bias else Operand.NONE,
        multiply=Operand.ROW1,
        relu=epilogue.relu,
        function=Function.ROUND,
        binary2=BinaryOp.ADD,
        binary2_operand=Operand.SPLAT0,
    )
    return {"chain": k.chain(chain)}


def adds_zero_points(config: ChipConfig) -> bool:
    """Whether the chip adds a zero point behind the rounding."""
    return bool(config.vector_chains) and Function.ROUND in config.vector_functions
