"""Kernels of the forms that Inductor writes, against the oracle; Triton's front end makes their TTIR here."""

from typing import Any

import numpy as np
import pytest
from triton_agreement import agree
from triton_cases import type_of

from sley.abi.install import extra
from sley.runtime import Device
from sley.runtime.frameworks import triton as sley_triton
from sley.runtime.frameworks.triton import TritonKernel, TritonRefused

pytest.importorskip("triton", reason=f"Triton is not installed: {extra('triton')}")

kernels = pytest.importorskip("generated_kernels")
RNG = np.random.default_rng(5)


def text_of(kernel: Any, arguments: list[Any], **constants: int) -> str:
    from sley.runtime.frameworks.from_triton.backend.front_end import ttir_of

    types = iter(type_of(one) for one in arguments)
    signature = {name: "constexpr" if name in constants else next(types) for name in kernel.arg_names}
    return ttir_of(kernel, signature, constants)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("y", "x"), [(16, 32), (32, 8)])
def test_blocks_of_one_plane(base: Device, y: int, x: int) -> None:
    """A choice by coordinates alone, whose sum with what was loaded is one chain; a reduction of the last axis."""
    xnumel = min(x, 27)
    given = [normal(3, 21, xnumel), normal(3, 21, xnumel), normal(3, 21), 21, xnumel]
    agree(base, text_of(kernels.planes, given, Z=1, Y=y, X=x), (1, -(-21 // y), 3), given)


def test_blocks_of_one_element_along_other_axes(base: Device) -> None:
    given = [normal(4, 21, 5), normal(4, 21, 5), normal(4, 21), 21, 5]
    agree(base, text_of(kernels.planes, given, Z=4, Y=1, X=8), (1, 21, 1), given)


def test_three_axes_are_refused(base: Device) -> None:
    given = [normal(4, 20, 5), normal(4, 20, 5), normal(4, 20), 20, 5]
    text = text_of(kernels.planes, given, Z=4, Y=4, X=8)
    with pytest.raises(TritonRefused, match="a tensor of 3 axes; tiles have two at most"):
        TritonKernel(text)[1, 5, 1](*(base.array(one) if isinstance(one, np.ndarray) else one for one in given))


def test_a_reduction_of_two_axes(base: Device) -> None:
    given = [normal(3, 13, 21), normal(3), 13, 21]
    found = agree(base, text_of(kernels.two_axes, given, A=16, B=32), (3,), given)
    np.testing.assert_array_equal(found[1], given[0].max((1, 2)))


@pytest.mark.parametrize("first", [8, 13])
def test_lower_bounds(base: Device, first: int) -> None:
    """Blocks on one side of a bound look at no element of the other; of a block on both the memory has no elements."""
    given = [normal(5, first), normal(5, 24 - first), normal(5, 24), 5, first, 24 - first]
    text = text_of(kernels.joined, given, Y=8, X=8)
    if first % 8:
        with pytest.raises(TritonRefused, match="of its mask only upper bounds keep it inside"):
            TritonKernel(text)[3](*(base.array(one) if isinstance(one, np.ndarray) else one for one in given))
    else:
        found = agree(base, text, (3,), given)
        np.testing.assert_array_equal(found[2], np.concatenate(given[:2], 1))


def test_quotients_of_loaded_numbers(base: Device) -> None:
    """Towards 0, ends of int32 too; a comparison of two conditions."""
    a = RNG.integers(-(1 << 31), 1 << 31, 100).astype(np.int32)
    a[:6] = -(1 << 31), (1 << 31) - 1, -7, 7, 0, 6
    b = RNG.integers(-9, 10, 100).astype(np.int32)
    b[b == 0] = 1
    b[0], b[50:] = 3, RNG.integers(1, 1 << 31, 50)
    given = [a, b, np.zeros(100, np.int32), np.zeros(100, np.int32), 100]
    found = agree(base, text_of(kernels.quotients, given, BLOCK=64), (2,), given)
    wanted = np.trunc(a / b.astype(np.float64)).astype(np.int64) + ((a > 3) & ~(b > 3))
    np.testing.assert_array_equal(found[2], wanted)


@pytest.mark.parametrize("exchanged", [False, True])
def test_axes_exchanged(base: Device, exchanged: bool) -> None:
    """The same maxima and their numbers, whether rows are rows of tiles or columns; ties and NaN."""
    x = normal(21, 30)
    x[3, 4] = x[3, 17] = 9.0
    x[5, 6] = np.nan
    given = [x, np.zeros(21, np.float32), np.zeros(21, np.int32), 21, 30]
    text = text_of(kernels.largest, given, Y=16, X=32)
    agree(base, text, (2,), given, exchanged=exchanged)
    kernel = TritonKernel(text, exchanged)
    shapes = {value.type.shape for op in kernel.function.walk() for value in op.results if len(value.type.shape) == 2}
    assert ((32, 16) if exchanged else (16, 32)) in shapes


@pytest.mark.parametrize("logarithms", [False, True])
def test_functions_of_libdevice(base: Device, logarithms: bool) -> None:
    x = np.array([-1.5, -1e-4, 0.0, 3e-7, 0.25, 2.0, -3.75], np.float32)
    n, wide = len(x), x.astype(np.float64)
    out = base.zeros((2, n), np.float32)
    arguments = [base.array(x), out, n]
    sley_triton.launch(kernels.functions_of_libdevice, 1, *arguments, BLOCK=8, LOGARITHMS=logarithms)
    wanted = [np.log1p(abs(wide)), abs(wide) ** 1.5] if logarithms else [np.expm1(wide), wide == 0]
    for found, right in zip(out.numpy(), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6)


def test_a_lower_bound_alone(base: Device) -> None:
    given = [normal(16), normal(24), 24, 8]
    found = agree(base, text_of(kernels.behind, given, X=8), (3,), given)
    np.testing.assert_array_equal(found[1], np.concatenate([np.full(8, 7, np.float32), given[0]]))
