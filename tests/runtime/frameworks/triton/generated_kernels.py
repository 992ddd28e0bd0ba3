"""Kernels as Inductor writes them: three axes of which one has blocks of one element, masks that are lower bounds,
reductions of two axes at a time, quotients of loaded numbers."""

# ruff: noqa: N803 (sizes and constants are upper case, as in Triton's own kernels)

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def planes(x_ptr, out_ptr, most_ptr, ynumel, xnumel, Z: tl.constexpr, Y: tl.constexpr, X: tl.constexpr):
    z = tl.program_id(2) * Z + tl.arange(0, Z)[:, None, None]
    y = tl.program_id(1) * Y + tl.arange(0, Y)[None, :, None]
    x = tl.arange(0, X)[None, None, :]
    inside = (y < ynumel) & (x < xnumel)
    place = (z * ynumel + y) * xnumel + x
    value = tl.load(x_ptr + place, inside, other=0.0)
    value = value + tl.where(x - y <= 0, 0.0, float("-inf"))
    tl.store(out_ptr + place, value, inside)
    most = tl.max(tl.where(inside, tl.broadcast_to(value, [Z, Y, X]), float("-inf")), 2)[:, :, None]
    tl.store(most_ptr + z * ynumel + y, most, y < ynumel)


@triton.jit
def two_axes(x_ptr, out_ptr, a, b, A: tl.constexpr, B: tl.constexpr):
    z = tl.program_id(0) + tl.arange(0, 1)[:, None, None]
    r0 = tl.arange(0, A)[None, :, None]
    r1 = tl.arange(0, B)[None, None, :]
    inside = (r0 < a) & (r1 < b)
    value = tl.load(x_ptr + (z * a + r0) * b + r1, inside, other=float("-inf"))
    most = tl.max(tl.reshape(value, [1, A * B]), 1)[:, None, None]
    tl.store(out_ptr + z + tl.full([1, 1, 1], 0, tl.int32), most, None)


@triton.jit
def joined(x_ptr, y_ptr, out_ptr, rows, first, second, Y: tl.constexpr, X: tl.constexpr):
    y = tl.arange(0, Y)[:, None]
    x = tl.program_id(0) * X + tl.arange(0, X)[None, :]
    inside = (y < rows) & (x < first + second)
    right = tl.load(y_ptr + y * second + (x - first), inside & (x >= first), other=0.0)
    left = tl.load(x_ptr + y * first + x, inside & (x < first), other=0.0)
    tl.store(out_ptr + y * (first + second) + x, tl.where(x < first, left, right), inside)


@triton.jit
def quotients(a_ptr, b_ptr, out_ptr, rest_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + place, place < n), tl.load(b_ptr + place, place < n, other=1)
    tl.store(out_ptr + place, a // b + ((a > 3) > (b > 3)).to(tl.int32), place < n)
    tl.store(rest_ptr + place, a % 7, place < n)


@triton.jit
def largest(x_ptr, most_ptr, which_ptr, rows, columns, Y: tl.constexpr, X: tl.constexpr):
    y = tl.program_id(0) * Y + tl.arange(0, Y)[:, None]
    x = tl.arange(0, X)[None, :]
    value = tl.load(x_ptr + y * columns + x, (y < rows) & (x < columns), other=float("-inf"))
    tl.store(most_ptr + y, tl.max(value, 1)[:, None], y < rows)
    tl.store(which_ptr + y, tl.argmax(value, 1)[:, None], y < rows)


@triton.jit
def functions_of_libdevice(x_ptr, out_ptr, n, BLOCK: tl.constexpr, LOGARITHMS: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, place < n)
    if LOGARITHMS:
        tl.store(out_ptr + place, libdevice.log1p(tl.abs(x)), place < n)
        tl.store(out_ptr + n + place, libdevice.pow(tl.abs(x), 1.5), place < n)
    else:
        tl.store(out_ptr + place, libdevice.expm1(x), place < n)
        tl.store(out_ptr + n + place, libdevice.isnan(x * float("inf")).to(tl.float32), place < n)


@triton.jit
def behind(y_ptr, out_ptr, n, first, X: tl.constexpr):
    x = tl.program_id(0) * X + tl.arange(0, X)
    tl.store(out_ptr + x, tl.load(y_ptr + (x - first), (x < n) & (x >= first), other=7.0), x < n)
