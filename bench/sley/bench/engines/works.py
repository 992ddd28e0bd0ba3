"""Works that engines are compared on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from sley.runtime import Device

SIZE = 512
SOFTMAX = (512, 1024)


def works_of(device: "Device") -> "dict[str, Callable[[Device], Callable[[], object]]]":
    """Works by name: what makes operands on a device, and returns the work on them."""
    import numpy as np

    from sley.abi.types import ElementType
    from sley.runtime import blas, nn
    from sley.runtime.device.buffer import BF16

    random = np.random.default_rng(1)
    square, rows = random.integers(-100, 100, (SIZE, SIZE)), random.normal(size=SOFTMAX)

    def product(dtype: "DTypeLike") -> "Callable[[Device], Callable[[], object]]":
        def work(device: "Device") -> Callable[[], object]:
            a, b = (device.array(square.astype(dtype)) for _ in range(2))
            return lambda: blas.gemm(a, b)

        return work

    def softmax(device: "Device") -> Callable[[], object]:
        x = device.array(rows.astype(BF16))
        return lambda: nn.softmax(x)

    found = {f"product of int8, {SIZE} cubed": product(np.int8)}
    if device.config.has(ElementType.BF16):
        found[f"product of bf16, {SIZE} cubed"] = product(BF16)
    if device.config.vector_chains:
        found["softmax of {} x {}".format(*SOFTMAX)] = softmax
    return found
