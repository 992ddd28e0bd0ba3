"""GELU and SiLU: every operand of bf16 on the model, sizes of all kinds, and the gateware."""

import math
from pathlib import Path

import numpy as np
import pytest
from row_operands import CALLS, GOLDEN, agree, bits_of, normal, on

from sley.abi.config import PRESETS
from sley.driver import BadRequest
from sley.runtime import Device, UnsupportedType, nn
from sley.runtime.device.buffer import BF16
from sley.sim.engines.options import default_engine

OPERATORS = ("gelu", "gelu_tanh", "silu")
EVERY = np.arange(1 << 16, dtype=np.uint16)
OUTER = 2 * np.sqrt(2 / np.pi)
SMALLEST = 2.0**-126
TAILS = {"gelu": (-4, 2.0**-37), "gelu_tanh": (-5, 2.0**-46), "silu": (-31, 2.0**-46)}
"""From where on downwards there is an error of so much times x, too."""
erfc = np.vectorize(math.erfc)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operand(base: Device, name: str) -> None:
    agree(base, name, EVERY)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 2047, 2049, 7 * 1021, 30_011])
@pytest.mark.parametrize("name", OPERATORS)
def test_sizes(base: Device, quad: Device, name: str, size: int) -> None:
    agree(base, name, normal(1, size))
    agree(quad, name, normal(2, size))


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
@pytest.mark.parametrize("name", OPERATORS)
def test_equal_to_golden_on_the_gateware(name: str) -> None:
    with Device.open("fast:base?memory=16M") as device:
        for size in (1, 17, 2049, 30_011):
            agree(device, name, normal(3, size))
        agree(device, name, EVERY[::7])


@pytest.mark.parametrize("name", OPERATORS)
def test_a_view_and_in_place(base: Device, name: str) -> None:
    x = normal(4, 9, 50)
    array = on(base, x)
    CALLS[name](array[2:5], out=array[2:5])
    x[2:5] = GOLDEN[name](x[2:5])
    assert (bits_of(array) == x).all()
    right = GOLDEN[name](x[:, 3:])
    assert (bits_of(CALLS[name](array[:, 3:])) == right).all()
    CALLS[name](array[:, 3:], out=array[:, 3:])
    assert (bits_of(array)[:, 3:] == right).all()


@pytest.mark.parametrize("name", OPERATORS)
def test_error_against_float64(name: str) -> None:
    """The bounds that the operators' documentation states, over all operands."""

    def number(bits: np.ndarray) -> np.ndarray:
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)

    with np.errstate(all="ignore"):
        x = number(EVERY)
        factor = {
            "gelu": lambda: erfc(-x / np.sqrt(2)) / 2,
            "gelu_tanh": lambda: sigmoid(OUTER * (x + 0.044715 * x**3)),
            "silu": lambda: sigmoid(x),
        }[name]()
        right, result = x * factor, number(GOLDEN[name](EVERY))
        usual = np.isfinite(x) & (np.abs(x) >= SMALLEST) & (np.abs(right) < 3.38e38)
        start, tail = TAILS[name]
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(right), SMALLEST))) - 7)
        allowed = (
            0.51 * unit + np.where(x < start, np.abs(x) * tail, 0) + np.where(np.abs(right) < SMALLEST, SMALLEST, 0)
        )
        assert (np.abs(result - right) <= allowed)[usual].all()


def test_what_is_refused(base: Device) -> None:
    x = on(base, normal(5, 4))
    with pytest.raises(BadRequest, match="approximate is 'erf'; gelu has 'none' and 'tanh'"):
        nn.gelu(x, "erf")
    with pytest.raises(UnsupportedType, match="float64"):
        nn.silu(base.array(np.ones(3)))


def test_a_chip_without_the_function(tmp_path: Path) -> None:
    path = tmp_path / "chip.json"
    path.write_text(PRESETS["base"].replace(name="plain", vector_functions=("exp2",)).to_json())
    with (
        Device.open(f"model:{path}?memory=1M") as device,
        pytest.raises(UnsupportedType, match=r"gelu needs normal_cdf; the chip .* has it not"),
    ):
        nn.gelu(device.array(np.ones(3, BF16)))
