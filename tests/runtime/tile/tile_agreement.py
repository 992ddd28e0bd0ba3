"""A tile kernel in the interpreter behind every pass, through its text, and on a device: equal in every bit."""

from typing import Any

import numpy as np

from sley.runtime import Device
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.types import element_type
from sley.runtime.tile.check.checker import check
from sley.runtime.tile.compiler import compile_function
from sley.runtime.tile.interpreter import interpret
from sley.runtime.tile.ir import Function
from sley.runtime.tile.kernel import Kernel
from sley.runtime.tile.lowering import lower
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.text import parse, printed
from sley.runtime.tile.types import ArrayType

Arrays = dict[str, np.ndarray[Any, Any]]
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy as bit patterns."""
    return np.ascontiguousarray(array).view(BITS[array.dtype.itemsize]).copy()


def on_device(device: Device, array: np.ndarray[Any, Any]) -> Buffer:
    """The array, or a view, with the same order of axes in memory, and the same distance between elements."""
    axes = sorted(range(array.ndim), key=lambda axis: (-array.strides[axis], axis))
    apart = array.strides[axes[-1]] // array.itemsize if array.shape[axes[-1]] > 1 else 1
    dense = np.repeat(np.ascontiguousarray(array.transpose(axes)), apart, axis=-1)
    view = device.array(dense)[..., ::apart].transpose(*(axes.index(axis) for axis in range(array.ndim)))
    strides = list(zip(array.shape, view.strides, array.strides, strict=True))
    assert all(made == wanted for size, made, wanted in strides if size > 1), strides
    return view


def types_of(arrays: Arrays) -> dict[str, ArrayType]:
    found = {}
    for name, array in arrays.items():
        dtype = element_type(array.dtype)
        assert dtype is not None
        found[name] = ArrayType(dtype, array.shape, tuple(stride // array.itemsize for stride in array.strides))
    return found


def interpreted(function: Function, arrays: Arrays, lanes: int) -> Arrays:
    """The arrays behind a run of the function's text."""
    values = {name: bits(array) for name, array in arrays.items()}
    text = printed(function)
    again = parse(text)
    assert printed(again) == text
    interpret(again, values, lanes)
    return values


def agree(device: Device, function: Any, arrays: Arrays, schedule: Schedule = AUTOMATIC) -> Arrays:
    """Arrays as bits behind a run on the device. ``function()`` makes the IR anew."""
    lanes = device.config.array
    wanted = interpreted(function(), arrays, lanes)

    seen = [printed(function())]

    def watch(name: str, passed: Function) -> None:
        text = printed(passed)
        if text == seen[-1] and name != "source":
            return
        seen.append(text)
        for array, value in interpreted(passed, arrays, lanes).items():
            np.testing.assert_array_equal(value, wanted[array], f"{array} behind {name}")

    lower(function(), lanes, schedule, watch)
    made = function()
    compiled = compile_function(made, device.config, schedule)
    assert check(compiled, device.config, types_of(arrays)) == []
    buffers = {name: on_device(device, array) for name, array in arrays.items()}
    compiled.launch(device.stream, [*buffers.values()])
    for name, buffer in buffers.items():
        np.testing.assert_array_equal(bits(buffer.numpy()), wanted[name], f"{name} on the device\n{printed(made)}")
    return wanted


def kernel_agrees(
    device: Device,
    kernel: Kernel,
    arrays: Arrays,
    grid: tuple[int, int, int] = (1, 1, 1),
    schedule: Schedule = AUTOMATIC,
    **constants: Any,
) -> Arrays:
    bound = kernel.signature.bind(*arrays, **constants)
    bound.apply_defaults()
    known = {name: value for name, value in bound.arguments.items() if name not in arrays}
    return agree(device, lambda: kernel.function(types_of(arrays), known, grid), arrays, schedule)


Drawn = tuple[Kernel, Arrays, dict[str, Any], tuple[int, int, int], int]
"""A random case: a kernel, its arrays and constants, the grid, and most slots of a tile."""


def drawn_agrees(device: Device, case: Drawn) -> None:
    """The same of a random case."""
    kernel, arrays, constants, grid, buffer = case
    agree(device, lambda: kernel.function(types_of(arrays), constants, grid), arrays, Schedule(buffer=buffer))
