"""Triton kernels of ``sley bench triton``, which has their TTIR."""

# ruff: noqa: N803 (sizes and constants are upper case, as in Triton's own kernels)

import triton
import triton.language as tl


@triton.jit
def bench_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(out_ptr + offsets, (x * 2.0 + y).to(tl.bfloat16), mask=offsets < n)


@triton.jit
def bench_softmax(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
    powers = tl.exp(x - tl.max(x, axis=0))
    out = (powers / tl.sum(powers, axis=0)).to(tl.bfloat16)
    tl.store(out_ptr + row * stride + columns, out, mask=columns < n)


@triton.jit
def bench_matmul(a_ptr, b_ptr, c_ptr, M, N, K, SIZE: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    tall, wide = tl.cdiv(M, SIZE), tl.cdiv(N, SIZE)
    first = program // (GROUP * wide) * GROUP
    size = min(tall - first, GROUP)
    down = first + (program % (GROUP * wide)) % size
    across = (program % (GROUP * wide)) // size
    rows, columns = down * SIZE + tl.arange(0, SIZE), across * SIZE + tl.arange(0, SIZE)
    inner = tl.arange(0, SIZE)
    a_at = a_ptr + (rows % M)[:, None] * K + inner[None, :]
    b_at = b_ptr + inner[:, None] * N + (columns % N)[None, :]
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, SIZE)):
        a = tl.load(a_at, mask=inner[None, :] < K - k * SIZE, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < K - k * SIZE, other=0.0)
        total = tl.dot(a, b, total)
        a_at += SIZE
        b_at += SIZE * N
    place = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(place, tl.maximum(total, 0.0).to(tl.bfloat16), mask=(rows[:, None] < M) & (columns[None, :] < N))
