"""Triton kernels as users write them. Their TTIR is kept beside this file, so that most tests run without Triton."""

# ruff: noqa: N803 (sizes and constants are upper case, as in Triton's own kernels)

import triton
import triton.language as tl


@triton.jit
def scaled_add(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x * scale + y, mask=inside)


@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def gated(x_ptr, gate_ptr, out_ptr, rows, columns, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    place = row[:, None] * stride + column[None, :]
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    gate = tl.load(gate_ptr + place, mask=inside).to(tl.float32)
    x = tl.load(x_ptr + place, mask=inside).to(tl.float32)
    tl.store(out_ptr + place, (x * gate * tl.sigmoid(gate)).to(tl.bfloat16), mask=inside)


@triton.jit
def integers(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-7)
    y = tl.where((x > 3) & (x != 11), x * 5 - offsets, (x ^ 21) + (x >> 2))
    tl.store(out_ptr + offsets, tl.maximum(y, -100), mask=offsets < n)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        deep = k + inner
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + deep[None, :] * stride_ak,
            mask=(rows[:, None] < M) & (deep[None, :] < K), other=0.0,
        )  # fmt: skip
        b = tl.load(
            b_ptr + deep[:, None] * stride_bk + columns[None, :] * stride_bn,
            mask=(deep[:, None] < K) & (columns[None, :] < N), other=0.0,
        )  # fmt: skip
        total += tl.dot(a, b)
    place = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(place, total.to(tl.bfloat16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul_grouped(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    tall, wide = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP * wide
    first = program // in_group * GROUP
    size = min(tall - first, GROUP)
    down = first + (program % in_group) % size
    across = (program % in_group) // size
    rows = (down * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    columns = (across * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    inner = tl.arange(0, BLOCK_K)
    a_at = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_at = b_ptr + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_at, mask=inner[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < K - k * BLOCK_K, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BLOCK_K * stride_ak
        b_at += BLOCK_K * stride_bk
    c = leaky(total).to(tl.bfloat16)
    rows = down * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = across * BLOCK_N + tl.arange(0, BLOCK_N)
    place = c_ptr + stride_cm * rows[:, None] + stride_cn * columns[None, :]
    tl.store(place, c, mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def matmul_descriptor(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, K, BLOCK_K):
        total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
    c.store([row, column], total)


@triton.jit
def matmul_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    wide = tl.cdiv(N, BLOCK_N)
    for part in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * wide, PROGRAMS):
        row, column = part // wide * BLOCK_M, part % wide * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            total = tl.dot(a.load([row, k]), b.load([k, column]), total)
        c.store([row, column], total.to(tl.bfloat16))


@triton.jit
def shifted(x, out, by, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Descriptors that the host made."""
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([row, column], x.load([row, column]) + by)


@triton.jit
def kept(x_ptr, keep_ptr, out_ptr, negative_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    keep = tl.load(keep_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(keep, x, 0.0), mask=offsets < n)
    tl.store(negative_ptr + offsets, x < 0, mask=offsets < n)


@triton.jit
def returning(x_ptr, out_ptr, n, power, BLOCK: tl.constexpr):
    """Programs that have nothing to do, or something else."""
    program = tl.program_id(0)
    if program * BLOCK >= n:
        return
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    if program == 1:
        tl.store(out_ptr + offsets, 1.0, mask=offsets < n)
        return
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    if power > 1:
        x = x * x
    tl.store(out_ptr + offsets, x, mask=offsets < n)


@triton.jit
def functions(x_ptr, n_ptr, out_ptr, whole_ptr, n, BLOCK: tl.constexpr):
    """What tensors of floats and int32 can do, one behind the other."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    number = tl.load(n_ptr + offsets, mask=inside)
    positive = tl.abs(x) + 0.5
    y = tl.exp(-positive) + tl.exp2(x) * tl.log(positive) - tl.log2(positive) / tl.sqrt(positive)
    y += tl.rsqrt(positive) + tl.floor(x) * tl.ceil(x) + tl.fma(x, x, positive) + tl.sigmoid(x) + tl.erf(x)
    y = tl.where((x > 0.25) | (x == -1.0), y, tl.clamp(y, -2.0, 2.0))
    y = tl.minimum(tl.maximum(y, -50.0), number.to(tl.float32) * 0.5)
    half = y.to(tl.bfloat16)
    half = half * half + x.to(tl.bfloat16)
    whole = (y * 3.0).to(tl.int32) + (number << 2) - (number >> 1) + tl.where(half > 1.0, 1, 0)
    tl.store(out_ptr + offsets, half, mask=inside)
    tl.store(whole_ptr + offsets, tl.minimum(whole, 1000), mask=inside)


@triton.jit
def found(x_ptr, place_ptr, least_ptr, sums_ptr, any_ptr, N, BLOCK: tl.constexpr):
    """Places of the largest and the smallest, sums up to each element, and whether one is above 2."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + columns, mask=columns < N, other=0.0)
    value, place = tl.max(x, axis=0, return_indices=True)
    tl.store(place_ptr + row, place)
    tl.store(least_ptr + row, value + tl.argmin(x, axis=0).to(tl.float32))
    tl.store(sums_ptr + row * N + columns, tl.cumsum(x, axis=0), mask=columns < N)
    tl.store(any_ptr + row, tl.max((x > 2.0).to(tl.int32), axis=0))


@triton.jit
def softmax(out_ptr, x_ptr, stride_x, stride_out, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride_x + offsets, mask=inside, other=-float("inf"))
        powers = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * stride_out + offsets, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm_forward(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        x = tl.where(columns < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for off in range(0, N, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        inside = columns < N
        w = tl.load(w_ptr + columns, mask=inside)
        b = tl.load(b_ptr + columns, mask=inside)
        x = tl.load(x_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, (x - mean) * rstd * w + b, mask=inside)


@triton.jit
def layer_norm_backward(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, stride, rows, N,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Each program has ROWS rows, and sums of its own of the gradients of weight and bias."""
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    w = tl.load(w_ptr + columns, mask=inside, other=0.0)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    for part in range(0, ROWS):
        row = program * ROWS + part
        x = tl.load(x_ptr + row * stride + columns, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride + columns, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        xhat = tl.where(inside, (x - mean) * rstd, 0.0)
        wdy = tl.where(inside, w * dy, 0.0)
        c1 = tl.sum(xhat * wdy, axis=0) / N
        c2 = tl.sum(wdy, axis=0) / N
        tl.store(dx_ptr + row * stride + columns, (wdy - (xhat * c1 + c2)) * rstd, mask=inside)
        dw += dy * xhat
        db += dy
    tl.store(dw_ptr + program * N + columns, dw, mask=inside)
    tl.store(db_ptr + program * N + columns, db, mask=inside)


@triton.jit
def sum_parts(parts_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, M, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        total += tl.load(parts_ptr + rows[:, None] * N + columns[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + columns, tl.sum(total, axis=0), mask=columns < N)


@triton.jit
def rms_norm(x_ptr, w_ptr, out_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    x = tl.load(x_ptr + row * stride + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    w = tl.load(w_ptr + columns, mask=inside).to(tl.float32)
    tl.store(out_ptr + row * stride + columns, (x * scale * w).to(tl.bfloat16), mask=inside)


@triton.jit
def rotary(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, HALF: tl.constexpr, SEQUENCE: tl.constexpr):
    """x[sequence, heads, 2 * HALF]; a program has some positions of one head."""
    position = tl.program_id(0) * SEQUENCE + tl.arange(0, SEQUENCE)
    head = tl.program_id(1)
    lane = tl.arange(0, HALF)
    angles = position[:, None] * HALF + lane[None, :]
    cos = tl.load(cos_ptr + angles)
    sin = tl.load(sin_ptr + angles)
    place = (position[:, None] * heads + head) * (2 * HALF) + lane[None, :]
    first = tl.load(x_ptr + place).to(tl.float32)
    second = tl.load(x_ptr + place + HALF).to(tl.float32)
    tl.store(out_ptr + place, (first * cos - second * sin).to(tl.bfloat16))
    tl.store(out_ptr + place + HALF, (second * cos + first * sin).to(tl.bfloat16))


@triton.jit
def cross_entropy(logits_ptr, labels_ptr, loss_ptr, grad_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    label = tl.load(labels_ptr + row)
    x = tl.load(logits_ptr + row * stride + columns, mask=inside, other=-float("inf"))
    largest = tl.max(x, axis=0)
    powers = tl.exp(x - largest)
    total = tl.sum(powers, axis=0)
    chosen = tl.sum(tl.where(columns == label, x, 0.0), axis=0)
    tl.store(loss_ptr + row, tl.log(total) + largest - chosen)
    tl.store(grad_ptr + row * stride + columns, powers / total - tl.where(columns == label, 1.0, 0.0), mask=inside)


@triton.jit
def cross_entropy_ignoring(logits_ptr, labels_ptr, loss_ptr, stride, N, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    x = tl.load(logits_ptr + row * stride + columns, mask=columns < N, other=-float("inf"))
    if label == ignored:
        loss = 0.0
    else:
        largest = tl.max(x, axis=0)
        loss = (
            tl.log(tl.sum(tl.exp(x - largest), axis=0)) + largest - tl.sum(tl.where(columns == label, x, 0.0), axis=0)
        )
    tl.store(loss_ptr + row, loss)


@triton.jit
def cross_entropy_gather(logits_ptr, labels_ptr, loss_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    x = tl.load(logits_ptr + row * stride + columns, mask=columns < N, other=-float("inf"))
    largest = tl.max(x, axis=0)
    total = tl.log(tl.sum(tl.exp(x - largest), axis=0)) + largest
    tl.store(loss_ptr + row, total - tl.load(logits_ptr + row * stride + label))


@triton.jit
def embedding(ids_ptr, table_ptr, out_ptr, n, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    ids = tl.load(ids_ptr + rows, mask=rows < n, other=0)
    inside = (rows[:, None] < n) & (columns[None, :] < width)
    values = tl.load(table_ptr + ids[:, None] * width + columns[None, :], mask=inside)
    tl.store(out_ptr + rows[:, None] * width + columns[None, :], values, mask=inside)


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, stride_z, stride_h, stride_t, H, T,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0)
    z, h = tl.program_id(1) // H, tl.program_id(1) % H
    base = z * stride_z + h * stride_h
    rows = start * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    lanes = tl.arange(0, HEAD)
    q = tl.load(q_ptr + base + rows[:, None] * stride_t + lanes[None, :], mask=rows[:, None] < T, other=0.0)
    k_at = k_ptr + base + keys[None, :] * stride_t + lanes[:, None]
    v_at = v_ptr + base + keys[:, None] * stride_t + lanes[None, :]
    largest = tl.full([BLOCK_M], -1.0e30, dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    out = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    end = (start + 1) * BLOCK_M if CAUSAL else T
    for first in range(0, end, BLOCK_N):
        k = tl.load(k_at, mask=keys[None, :] + first < T, other=0.0)
        scores = tl.dot(q, k) * scale
        seen = keys[None, :] + first < T
        if CAUSAL:
            seen = seen & (rows[:, None] >= keys[None, :] + first)
        scores = tl.where(seen, scores, -1.0e30)
        higher = tl.maximum(largest, tl.max(scores, 1))
        powers = tl.exp2(scores - higher[:, None])
        decay = tl.exp2(largest - higher)
        total = total * decay + tl.sum(powers, 1)
        v = tl.load(v_at, mask=keys[:, None] + first < T, other=0.0)
        out = tl.dot(powers.to(tl.bfloat16), v, out * decay[:, None])
        largest = higher
        k_at += BLOCK_N * stride_t
        v_at += BLOCK_N * stride_t
    out = out / total[:, None]
    place = out_ptr + base + rows[:, None] * stride_t + lanes[None, :]
    tl.store(place, out.to(tl.bfloat16), mask=rows[:, None] < T)


@triton.jit
def attention_part(
    out, total, largest, queries, k, v, base, first, last, rows, scale, MASKED: tl.constexpr, BLOCK_N: tl.constexpr
):
    keys = tl.arange(0, BLOCK_N)
    for begin in tl.range(first, last, BLOCK_N):
        scores = tl.dot(queries, k.load([base + begin, 0]).T)
        if MASKED:
            seen = rows[:, None] >= (begin + keys[None, :])
            scores = scores * scale + tl.where(seen, 0, -1.0e6)
            higher = tl.maximum(largest, tl.max(scores, 1))
            scores -= higher[:, None]
        else:
            higher = tl.maximum(largest, tl.max(scores, 1) * scale)
            scores = scores * scale - higher[:, None]
        powers = tl.exp2(scores)
        decay = tl.exp2(largest - higher)
        out = tl.dot(powers.to(tl.bfloat16), v.load([base + begin, 0]), out * decay[:, None])
        total = total * decay + tl.sum(powers, 1)
        largest = higher
    return out, total, largest


@triton.jit
def attention_staged(
    q_ptr, k_ptr, v_ptr, out_ptr, sums_ptr, scale, heads, T,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    """Causal, in two loops: keys that all queries of a block see, and the diagonal. T is a multiple of both."""
    start, head = tl.program_id(0), tl.program_id(1)
    all_rows = heads * T
    q = tl.make_tensor_descriptor(q_ptr, [all_rows, HEAD], [HEAD, 1], [BLOCK_M, HEAD])
    k = tl.make_tensor_descriptor(k_ptr, [all_rows, HEAD], [HEAD, 1], [BLOCK_N, HEAD])
    v = tl.make_tensor_descriptor(v_ptr, [all_rows, HEAD], [HEAD, 1], [BLOCK_N, HEAD])
    o = tl.make_tensor_descriptor(out_ptr, [all_rows, HEAD], [HEAD, 1], [BLOCK_M, HEAD])
    base = head * T
    rows = start * BLOCK_M + tl.arange(0, BLOCK_M)
    queries = q.load([base + start * BLOCK_M, 0])
    largest = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    out = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    middle = tl.multiple_of(start * BLOCK_M, BLOCK_M)
    out, total, largest = attention_part(
        out, total, largest, queries, k, v, base, 0, middle, rows, scale, False, BLOCK_N
    )
    out, total, largest = attention_part(
        out, total, largest, queries, k, v, base, middle, middle + BLOCK_M, rows, scale, True, BLOCK_N
    )
    tl.store(sums_ptr + head * T + rows, largest + tl.log2(total))
    o.store([base + start * BLOCK_M, 0], (out / total[:, None]).to(tl.bfloat16))


@triton.jit
def attention_descriptor(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, T, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr
):
    """Heads one below the other: q[heads * T, HEAD]. T is a multiple of both blocks."""
    heads = tl.num_programs(1)
    q = tl.make_tensor_descriptor(q_ptr, [heads * T, HEAD], [HEAD, 1], [BLOCK_M, HEAD])
    k = tl.make_tensor_descriptor(k_ptr, [heads * T, HEAD], [HEAD, 1], [BLOCK_N, HEAD])
    v = tl.make_tensor_descriptor(v_ptr, [heads * T, HEAD], [HEAD, 1], [BLOCK_N, HEAD])
    o = tl.make_tensor_descriptor(out_ptr, [heads * T, HEAD], [HEAD, 1], [BLOCK_M, HEAD])
    base = tl.program_id(1) * T
    row = base + tl.program_id(0) * BLOCK_M
    queries = q.load([row, 0])
    largest = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    out = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    for first in range(0, T, BLOCK_N):
        scores = tl.dot(queries, k.load([base + first, 0]).T) * scale
        higher = tl.maximum(largest, tl.max(scores, 1))
        powers = tl.exp2(scores - higher[:, None])
        decay = tl.exp2(largest - higher)
        total = total * decay + tl.sum(powers, 1)
        out = tl.dot(powers.to(tl.bfloat16), v.load([base + first, 0]), out * decay[:, None])
        largest = higher
    o.store([row, 0], (out / total[:, None]).to(tl.bfloat16))
