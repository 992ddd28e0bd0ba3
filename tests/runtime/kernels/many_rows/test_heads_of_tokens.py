"""Heads of single tokens: what attention leaves as tokens of a product, and products on their way to attention."""

import numpy as np
import pytest
from golden_rows import EPSILON, ended, largest, parts_of, products, turned, word

from sley.abi.config import preset
from sley.abi.functions.table import Function
from sley.runtime import Device
from sley.runtime.device.buffer import BF16
from sley.runtime.errors import KernelError
from sley.runtime.kernels.many_rows.placement import place
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows, Source
from sley.runtime.kernels.many_rows.program import many_rows_program
from sley.runtime.kernels.many_rows.weights import pack
from sley.sim.golden import float32
from sley.sim.golden.functions import apply

MODEL = "model:base?memory=8M"
HEADS = Source.HEADS


def run_heads(p: ManyRows, engine: str = MODEL) -> int | None:
    """Compares, and returns the cycles of an engine that has some; what is no head in x are large numbers."""
    random, outputs, heads = np.random.default_rng(p.inputs), p.blocks * 16, sum(p.lanes)
    values = random.standard_normal((p.tokens, heads, p.head)).astype(BF16)
    values[0] *= 0  # a token of zeros
    given = np.full((p.tokens, len(p.lanes), p.head + 1, 16), 1e9, BF16)
    given[:, :, -1] = 0
    for piece, lanes in enumerate(p.lanes):
        own = values[:, sum(p.lanes[:piece]) :][:, :lanes]
        given[:, piece, :-1, :lanes] = own.transpose(0, 2, 1)
        given[:, piece, -1, :lanes] = np.abs(own).max(axis=2)
    x = float32.to_bits(values.astype(np.float32).reshape(p.tokens, -1))
    steps = 127 if p.parts == 1 else 127 * 128
    scale = float32.maximum(float32.multiply(largest(x), word(1 / steps)), word(2.0**-100))
    parts = parts_of(x, apply(Function.RECIPROCAL, scale), None, p.parts)
    w = random.integers(-128, 128, (outputs, p.inputs)).astype(np.int8)
    factors = random.uniform(1e-3, 2, (1, outputs)).astype(np.float32)
    width = 16 * p.groups
    before, norm = (random.standard_normal(shape).astype(np.float32) for shape in ((p.tokens, width), (1, width)))
    with Device.open(engine) as device:
        results = [device.array(before)]
        if p.gives_scales:
            results += [device.empty((p.tokens, 1), np.float32) for _ in range(2)]
        inputs = [device.array(a) for a in (given, pack(device.config, w), factors)]
        norms = [device.array(np.abs(norm))] if p.ending is Ending.ADDED else []
        with device.stream.timed() as timing:
            device.stream.launch(many_rows_program(device.config, p), [*inputs, *results, *norms])
        right = ended(p, products(p, parts, w, float32.to_float(scale), factors), float32.to_bits(before), norm)
        for found, bits in zip(results, right, strict=True):
            assert (found.numpy().view(np.uint32) == bits).all()
    return timing.measured


@pytest.mark.parametrize(
    ("tokens", "parts", "outputs", "lanes", "head", "ending"),
    [
        (8, 2, 576, (9,), 64, Ending.ADDED),
        (1, 2, 64, (9,), 64, Ending.ADDED),
        (17, 1, 32, (3, 3, 1), 32, Ending.SCALED),
        (3, 2, 96, (16, 2), 96, Ending.GATED),
        (20, 2, 64, (12,), 64, Ending.ADDED),
    ],
)
def test_heads_of_attention(
    tokens: int, parts: int, outputs: int, lanes: tuple[int, ...], head: int, ending: Ending
) -> None:
    """Tokens are heads in lanes, of one launch of attention or several; with many tokens, some chunks at a time."""
    inputs = sum(lanes) * head
    run_heads(ManyRows(tokens, parts, outputs // 16, inputs, ending, EPSILON, head=head, lanes=lanes, source=HEADS))


@pytest.mark.slow
def test_heads_of_attention_on_the_gateware() -> None:
    """The same bits, and the cycles of the model."""
    p = ManyRows(2, 2, 4, 160, Ending.ADDED, EPSILON, head=32, lanes=(3, 2), source=HEADS)
    assert run_heads(p, "fast:base?memory=8M") == run_heads(p, f"{MODEL}&cycles=on")


def run_cached(p: ManyRows, engine: str = MODEL) -> int | None:
    """Compares, and returns the cycles of an engine that has some. Positions and slots are anywhere; what
    belongs to nobody stays."""
    random, outputs, positions = np.random.default_rng(p.inputs), p.blocks * 16, 40
    queries, slots = p.group * p.key_heads, p.tokens + 5
    x = random.standard_normal((p.tokens, p.inputs)).astype(np.float32)
    norm = random.standard_normal((1, p.inputs)).astype(np.float32) if p.source is Source.NORMED else None
    most = np.abs(x * (1 if norm is None else norm)).max(axis=1, keepdims=True)
    inverses = (np.float32(127 if p.parts == 1 else 127 * 128) / most).astype(np.float32)
    scales = random.uniform(1e-5, 1e-3, (p.tokens, 1)).astype(np.float32)
    w = random.integers(-128, 128, (outputs, p.inputs)).astype(np.int8)
    factors = random.uniform(1e-3, 2, (1, outputs)).astype(np.float32)
    tables = [random.standard_normal((positions, p.head // 2)).astype(np.float32) for _ in range(2)]
    at, slot = random.integers(0, positions, p.tokens), random.permutation(slots)[: p.tokens]
    row = 2 * p.key_heads * p.head
    places = np.stack([at * 2 * p.head, np.arange(p.tokens) * queries * row, slot * row]).astype(np.int32)
    with Device.open(engine) as device:
        arrays = [device.array(a) for a in (x, scales, pack(device.config, w), factors)]
        lists = [device.array(a) for a in (places, *tables)]
        sides = (p.tokens, queries, p.key_heads, p.head), *((slots, p.key_heads, p.head),) * 2
        out, *caches = (device.full(side, 7.0, BF16) for side in sides)
        others = [device.array(a) for a in (inverses, norm) if a is not None]
        with device.stream.timed() as timing:
            device.stream.launch(many_rows_program(device.config, p), [*arrays, out, *lists, *caches, *others])
        found = [array.numpy().view(np.uint16) for array in (out, *caches)]
    parts = parts_of(float32.to_bits(x), float32.to_bits(inverses), norm, p.parts)
    values = products(p, parts, w, scales, factors).reshape(p.tokens, -1, p.head)
    values[:, : p.turned] = turned(values[:, : p.turned], *(float32.to_bits(t[at])[:, None] for t in tables))
    right = [np.full_like(array, 0x40E0) for array in found]
    rounded = float32.to_bf16(values)
    for head in range(queries):
        right[0][:, head, head // p.group] = rounded[:, head]
    right[1][slot] = rounded[:, queries : p.turned]
    right[2][slot] = rounded[:, p.turned :]
    for a, b in zip(found, right, strict=True):
        assert (a == b).all()
    return timing.measured


def cached(tokens: int, parts: int, group: int, key_heads: int, head: int, inputs: int, source: Source) -> ManyRows:
    blocks, turns = (group + 2) * key_heads * head // 16, (group + 1) * key_heads
    heads = {"head": head, "group": group, "turned": turns}
    return ManyRows(tokens, parts, blocks, inputs, Ending.CACHED, source=source, **heads)


@pytest.mark.parametrize(
    ("tokens", "parts", "group", "key_heads", "head", "inputs", "source"),
    [
        (8, 2, 3, 3, 64, 576, Source.NORMED),
        (1, 2, 1, 2, 32, 16, Source.NORMED),
        (5, 1, 2, 1, 96, 80, Source.FLOATS),
        (17, 2, 1, 3, 32, 48, Source.NORMED),
        (3, 2, 2, 2, 128, 1536, Source.FLOATS),
    ],
)
def test_heads_to_attention(
    tokens: int, parts: int, group: int, key_heads: int, head: int, inputs: int, source: Source
) -> None:
    """Heads of one to four pairs of blocks; more tokens than a list has in a row; tokens in pieces."""
    run_cached(cached(tokens, parts, group, key_heads, head, inputs, source))


@pytest.mark.slow
def test_heads_to_attention_on_the_gateware() -> None:
    """The same bits, and the cycles of the model."""
    p = cached(2, 2, 2, 1, 32, 48, Source.NORMED)
    assert run_cached(p, "fast:base?memory=8M") == run_cached(p, f"{MODEL}&cycles=on")


def test_refused() -> None:
    base = preset("base")
    with pytest.raises(KernelError, match=r"launches of \(3,\) heads of 48 elements.* multiple of 32 elements"):
        place(base, ManyRows(1, 2, 4, 144, head=48, lanes=(3,), source=HEADS))
    with pytest.raises(KernelError, match="of tokens in int8; tokens are floats"):
        place(base, cached(1, 2, 3, 3, 64, 576, Source.INT8))
    with pytest.raises(KernelError, match="heads of 48 elements"):
        place(base, cached(1, 2, 1, 1, 48, 96, Source.NORMED))
    with pytest.raises(KernelError, match="64 tokens of 2 parts with 576 inputs have no room"):
        place(base, cached(64, 2, 3, 3, 64, 576, Source.NORMED))
