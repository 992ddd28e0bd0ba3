"""A kernel on a device against the oracle, and its programs through the checker."""

from typing import Any

import numpy as np
from triton_oracle import run

from sley.runtime import Device
from sley.runtime.frameworks.triton import TritonKernel
from sley.runtime.tile.check.checker import check
from sley.runtime.tile.types import ArrayType

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def agree(
    device: Device,
    text: str,
    grid: tuple[int, ...],
    arguments: list[Any],
    checked: bool = True,
    exchanged: bool = False,
) -> list[Any]:
    """The same bits in all arrays behind a launch, which are returned. ``checked``: whether programs have no races.
    ``exchanged``: as of ``TritonKernel``."""
    wanted = run(text, grid, arguments, device.config.array)
    given = [device.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    kernel = TritonKernel(text, exchanged)
    kernel[grid](*given)
    for number, (found, right) in enumerate(zip(given, wanted, strict=True)):
        if isinstance(right, np.ndarray):
            bits = BITS[right.itemsize]
            np.testing.assert_array_equal(found.numpy().view(bits), right.view(bits), f"argument {number}\n{text}")
    if checked:
        no_races(device, kernel, grid, given)
    return wanted


def no_races(device: Device, kernel: TritonKernel, grid: tuple[int, ...], given: list[Any]) -> None:
    _, memories, scalars = kernel.bind(given)
    x, y, z = (*grid, 1, 1)[:3]
    for step in kernel.steps(memories, scalars, (x, y, z), device.config):
        dtypes = {memory.array: memory.dtype for memory in memories.values()}
        types = {}
        for name, view in zip(step.compiled.program.args, step.views, strict=True):
            dtype = dtypes[view.array]
            assert dtype is not None
            types[name] = ArrayType(dtype, view.shape, view.strides)
        assert check(step.compiled, device.config, types) == []
