"""Products of a few rows of int8 with packed weights, bit by bit: sums are exact, and each step behind them rounds."""

import numpy as np
import pytest

from sley.abi.config import preset
from sley.runtime import Device
from sley.runtime.errors import KernelError
from sley.runtime.kernels.few_rows.program import FewRows, few_rows_program
from sley.runtime.kernels.few_rows.weights import pack
from sley.sim.golden import float32

CASES = [
    (1, 1, 1, 1),
    (1, 2, 16, 32),
    (1, 2, 17, 31),
    (3, 1, 48, 64),
    (2, 2, 144, 96),
    (1, 2, 331, 97),
    (8, 2, 80, 130),
    (17, 1, 33, 40),
    (1, 1, 48, 1536),
]
"""Rows, parts, outputs, inputs."""


def product(device: Device, x: np.ndarray, w: np.ndarray, rows: int, parts: int, seed: int) -> tuple[np.ndarray, ...]:
    """What the device gives, and what it must give."""
    random, outputs = np.random.default_rng(seed), len(w)
    packed = pack(device.config, w)
    whole = packed.shape[0] * device.config.array
    scales = random.uniform(1e-3, 2, rows).astype(np.float32)
    factors = np.zeros(whole, np.float32)
    factors[:outputs] = random.uniform(1e-3, 2, outputs)
    out = device.full((rows, whole), 7.0, np.float32)
    program = few_rows_program(device.config, FewRows(rows, parts, packed.shape[0], x.shape[1]))
    device.stream.launch(program, [*(device.array(a) for a in (x, scales, packed, factors)), out], (1,))
    sums = float32.from_int32((x.astype(np.int64) @ w.T.astype(np.int64)).astype(np.int32))
    if parts == 2:
        sums = float32.add(float32.multiply(sums[:rows], float32.to_bits(128.0)), sums[rows:])
    right = float32.multiply(
        float32.multiply(sums, float32.to_bits(scales)[:, None]), float32.to_bits(factors[:outputs])
    )
    return out.numpy()[:, :outputs], float32.to_float(right)


@pytest.mark.parametrize(("rows", "parts", "outputs", "inputs"), CASES)
def test_products(rows: int, parts: int, outputs: int, inputs: int) -> None:
    random = np.random.default_rng(inputs)
    x = random.integers(-128, 128, (parts * rows, inputs)).astype(np.int8)
    w = random.integers(-128, 128, (outputs, inputs)).astype(np.int8)
    with Device.open("model:base?memory=4M") as device:
        found, right = product(device, x, w, rows, parts, inputs)
        assert (found.view(np.uint32) == right.view(np.uint32)).all()


def test_extremes() -> None:
    """The largest sums there are do not wrap."""
    x, w = np.full((2, 1536), -128, np.int8), np.full((16, 1536), -128, np.int8)
    with Device.open("model:base?memory=4M") as device:
        found, right = product(device, x, w, 1, 2, 0)
        assert (found == right).all()


@pytest.mark.parametrize("case", [(2, 2, 33, 65), (1, 2, 160, 96)])
def test_on_the_gateware(case: tuple[int, int, int, int]) -> None:
    rows, parts, outputs, inputs = case
    random = np.random.default_rng(1)
    x = random.integers(-128, 128, (parts * rows, inputs)).astype(np.int8)
    w = random.integers(-128, 128, (outputs, inputs)).astype(np.int8)
    with Device.open("fast:base?memory=4M") as device:
        found, right = product(device, x, w, rows, parts, 1)
        assert (found == right).all()


def test_no_room() -> None:
    with pytest.raises(KernelError, match="a product of 256 rows with 64 inputs has no room on the chip base"):
        few_rows_program(preset("base"), FewRows(128, 2, 1, 64))
