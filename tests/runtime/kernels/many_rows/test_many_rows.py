"""Products of many rows of int8 with packed weights and what becomes of them, bit by bit."""

from itertools import product

import numpy as np
import pytest
from golden_rows import EPSILON, ended, parts_of, products
from golden_rows import turned as rotated

from sley.abi.config import preset
from sley.runtime import Device
from sley.runtime.device.buffer import BF16
from sley.runtime.errors import KernelError
from sley.runtime.kernels.many_rows.placement import place
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows, Source
from sley.runtime.kernels.many_rows.program import many_rows_program
from sley.runtime.kernels.many_rows.weights import pack
from sley.sim.golden import float32

MODEL = "model:base?memory=8M"
CASES = [
    (16, 1, 32, 32, Ending.SCALED),
    (8, 2, 64, 100, Ending.SCALED),
    (3, 1, 48, 32, Ending.SCALED),
    (1, 1, 16, 1, Ending.SCALED),
    (1, 2, 336, 97, Ending.SCALED),
    (17, 1, 48, 40, Ending.SCALED),
    (1, 2, 96, 64, Ending.ADDED),
    (5, 2, 64, 64, Ending.GATED),
    (2, 2, 64, 64, Ending.ADDED),
    (64, 1, 48, 31, Ending.SCALED),
    (128, 2, 80, 576, Ending.SCALED),
    (64, 1, 32, 40, Ending.GATED),
    (192, 1, 224, 96, Ending.GATED),
    (64, 2, 96, 130, Ending.GATED),
    (128, 1, 64, 96, Ending.ADDED),
    (64, 1, 64, 1536, Ending.ADDED),
    (64, 2, 96, 1500, Ending.ADDED),
    (256, 2, 32, 33, Ending.ADDED),
]
"""Tokens, parts, outputs of the product, inputs, ending."""


def run(p: ManyRows, engine: str = MODEL) -> int | None:
    """Compares, and returns the cycles of an engine that has some."""
    random, outputs = np.random.default_rng(p.inputs), p.blocks * 16
    x = given = random.integers(-128, 128, (p.parts * p.tokens, p.inputs)).astype(np.int8)
    w = random.integers(-128, 128, (outputs, p.inputs)).astype(np.int8)
    scales = random.uniform(1e-3, 2, (p.tokens, 1)).astype(np.float32) / np.float32(p.inputs * 100)
    sources: list[np.ndarray] = []
    if p.source is not Source.INT8:
        given = random.standard_normal((p.tokens, p.inputs)).astype(np.float32) ** 3
        weights = random.standard_normal((1, p.inputs)).astype(np.float32) if p.source is Source.NORMED else None
        most = np.abs(given * (1 if weights is None else weights)).max(axis=1, keepdims=True)
        inverses = (np.float32(127 if p.parts == 1 else 127 * 128) / most).astype(np.float32)
        x = parts_of(float32.to_bits(given), float32.to_bits(inverses), weights, p.parts)
        sources = [inverses] if weights is None else [inverses, weights]
    factors = random.uniform(1e-3, 2, (1, outputs)).astype(np.float32)
    width = 16 * p.groups
    before = random.standard_normal((p.tokens, width)).astype(np.float32)
    norm = random.standard_normal((1, width)).astype(np.float32)
    with Device.open(engine) as device:
        results = [device.array(before)]
        if p.gives_scales:
            results += [device.empty((p.tokens, 1), np.float32) for _ in range(2)]
        inputs = [device.array(a) for a in (given, scales, pack(device.config, w), factors)]
        norms = [device.array(np.abs(norm))] if p.ending is Ending.ADDED else []
        program = many_rows_program(device.config, p)
        with device.stream.timed() as timing:
            device.stream.launch(program, [*inputs, *results, *norms, *map(device.array, sources)], (p.cores,))
        right = ended(p, products(p, x, w, scales, factors), float32.to_bits(before), norm)
        for found, bits in zip(results, right, strict=True):
            assert (found.numpy().view(np.uint32) == bits).all()
    return timing.measured


@pytest.mark.parametrize(("tokens", "parts", "outputs", "inputs", "ending"), CASES)
def test_endings(tokens: int, parts: int, outputs: int, inputs: int, ending: Ending) -> None:
    run(ManyRows(tokens, parts, outputs // 16, inputs, ending, EPSILON))


@pytest.mark.parametrize("source", [Source.FLOATS, Source.NORMED])
@pytest.mark.parametrize(
    ("tokens", "parts", "outputs", "inputs", "ending"),
    [
        (1, 2, 64, 576, Ending.SCALED),
        (1, 2, 32, 16, Ending.GATED),
        (3, 1, 64, 80, Ending.ADDED),
        (8, 2, 64, 1536, Ending.ADDED),
        (8, 2, 96, 576, Ending.GATED),
        (17, 1, 48, 96, Ending.SCALED),
    ],
)
def test_tokens_of_floats(tokens: int, parts: int, outputs: int, inputs: int, ending: Ending, source: Source) -> None:
    """Tokens become int8 in the program, all at once or in pieces."""
    run(ManyRows(tokens, parts, outputs // 16, inputs, ending, EPSILON, source=source))


def test_tokens_on_the_gateware() -> None:
    """The same bits, and the cycles of the model."""
    p = ManyRows(2, 2, 4, 48, Ending.ADDED, EPSILON, source=Source.NORMED)
    assert run(p, "fast:base?memory=8M") == run(p, f"{MODEL}&cycles=on")


def test_extremes() -> None:
    """The largest sums there are do not wrap."""
    x, w = np.full((2, 1536), -128, np.int8), np.full((16, 1536), -128, np.int8)
    p = ManyRows(1, 2, 1, 1536)
    with Device.open(MODEL) as device:
        ones = [device.full((1, size), 1.0, np.float32) for size in (1, 16)]
        out = device.empty((1, 16), np.float32)
        arguments = [device.array(x), ones[0], device.array(pack(device.config, w)), ones[1], out]
        device.stream.launch(many_rows_program(device.config, p), arguments)
        assert (out.numpy() == 129 * 128 * 128 * 1536).all()


def test_cores() -> None:
    """Cores take as many tokens each."""
    for ending in (Ending.SCALED, Ending.GATED, Ending.ADDED):
        run(ManyRows(256, 1, 4, 48, ending, EPSILON, cores=4), "model:quad?memory=8M")


def test_zeros() -> None:
    """A token of zeros has the least scale, and stays zero."""
    p = ManyRows(16, 1, 4, 32, Ending.ADDED, EPSILON)
    with Device.open(MODEL) as device:
        arrays = [device.zeros((16, 32), np.int8), device.zeros((16, 1), np.float32)]
        arrays += [device.zeros((4, 1, 512), np.int8), device.zeros((1, 64), np.float32)]
        x, scales, inverses = (device.zeros((16, width), np.float32) for width in (64, 1, 1))
        device.stream.launch(
            many_rows_program(device.config, p), [*arrays, x, scales, inverses, device.full((1, 64), 1.0, np.float32)]
        )
        assert (x.numpy() == 0).all()
        assert (inverses.numpy() == 2.0**100).all()
        assert ((scales.numpy() > 0) & (scales.numpy() < 1e-20)).all()


@pytest.mark.parametrize("source", [Source.FLOATS, Source.NORMED])
def test_places_of_floats(source: Source) -> None:
    """What becomes int8 ends in its half of the accumulators, and pieces are all of a token."""
    for tokens, blocks, inputs in product(range(1, 17), range(2, 64, 6), (16, 80, 576, 1536)):
        at = place(preset("base"), ManyRows(tokens, 2, blocks, inputs, Ending.ADDED, source=source))
        rows = tokens * at.piece + 1 + tokens + (at.piece if source is Source.NORMED else 0)
        assert at.floats + rows <= at.half
        assert inputs // 16 % at.piece == 0


def test_refused() -> None:
    base = preset("base")
    with pytest.raises(KernelError, match=r"a norm over 48 outputs.* a multiple of 32"):
        place(base, ManyRows(64, 1, 3, 32, Ending.ADDED))
    with pytest.raises(KernelError, match="heads of 48 elements"):
        place(base, ManyRows(64, 1, 6, 32, Ending.TURNED, head=48, turned=1))
    with pytest.raises(KernelError, match=r"rows of 40 in fp32 for 1 cores.* a multiple of 16"):
        place(base, ManyRows(1, 2, 4, 40, source=Source.FLOATS))
    with pytest.raises(KernelError, match="128 tokens of 1 parts"):
        place(base, ManyRows(128, 1, 4, 576, source=Source.NORMED))
    with pytest.raises(KernelError, match="150 tokens of 1 parts"):
        place(base, ManyRows(150, 1, 4, 32))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [Ending.SCALED, Ending.GATED, Ending.ADDED])
def test_on_the_gateware(ending: Ending) -> None:
    """The same bits, and the cycles of the model."""
    p = ManyRows(64, 2, 8, 70, ending, EPSILON)
    assert run(p, "fast:base?memory=8M") == run(p, f"{MODEL}&cycles=on")


@pytest.mark.parametrize(
    ("tokens", "parts", "heads", "turned", "head", "inputs"),
    [(64, 1, 4, 3, 32, 40), (128, 1, 5, 4, 64, 96), (192, 2, 3, 2, 128, 65), (64, 1, 3, 2, 96, 32)],
)
def test_heads(tokens: int, parts: int, heads: int, turned: int, head: int, inputs: int) -> None:
    """Heads that are turned, and those that are not."""
    random, outputs = np.random.default_rng(head), heads * head
    x = random.integers(-128, 128, (parts * tokens, inputs)).astype(np.int8)
    w = random.integers(-128, 128, (outputs, inputs)).astype(np.int8)
    scales = random.uniform(1e-3, 2, (tokens, 1)).astype(np.float32)
    factors = random.uniform(1e-3, 2, (1, outputs)).astype(np.float32)
    tables = [random.standard_normal((tokens, head // 2)).astype(np.float32) for _ in range(2)]
    p = ManyRows(tokens, parts, outputs // 16, inputs, Ending.TURNED, head=head, turned=turned)
    with Device.open(MODEL) as device:
        out = device.empty((heads, tokens, head), BF16)
        arrays = [device.array(a) for a in (x, scales, pack(device.config, w), factors)]
        program = many_rows_program(device.config, p)
        device.stream.launch(program, [*arrays, out, *(device.array(a) for a in tables)], (1,))
        values = products(p, x, w, scales, factors).reshape(tokens, heads, head).transpose(1, 0, 2)
        tables_bits = [float32.to_bits(table) for table in tables]
        right = np.concatenate([rotated(values[:turned], *tables_bits), values[turned:]])
        assert (out.numpy().view(np.uint16) == float32.to_bf16(right)).all()
