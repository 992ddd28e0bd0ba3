"""Operators on other chips, and in the gateware."""

from pathlib import Path

import numpy as np
import pytest
from element_operators import TABLE as ELEMENTS
from element_operators import lines
from given import Given
from golden_steps import judged_steps
from small_chain_chip import small_chip
from test_element_operators import call
from test_structured_operators import CASES, TABLE

from sley.runtime import Device
from sley.sim.engines.options import default_engine

FEW = ("add", "clamp", "eq", "where", "exp", "sin", "log1p", "mish", "erfc", "prelu", "gelu_backward", "pow")
SOME = ("sum", "var", "logsumexp", "layer_norm_backward", "cross_entropy", "concat", "matmul", "quantize", "adamw_step")
GATEWARE = pytest.mark.skipif(default_engine() != "fast", reason="engine fast is not available")


def elements(device: Device, name: str, seed: int) -> None:
    for line in lines(name):
        call(np.random.default_rng(seed), device, name, line)


def structured(device: Device, name: str, seed: int) -> None:
    with judged_steps(), np.errstate(all="ignore"):
        TABLE[name](Given(device, seed))


def test_four_cores(quad: Device) -> None:
    for seed, name in enumerate(FEW):
        elements(quad, name, seed)
    for seed, name in enumerate(SOME):
        structured(quad, name, seed)


def test_a_small_chip(tmp_path: Path) -> None:
    with Device.open(f"model:{small_chip(tmp_path)}?memory=4M") as device:
        for seed, name in enumerate(FEW):
            elements(device, name, seed)
        for seed, name in enumerate(SOME):
            structured(device, name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["model:quad", "model:small"])
def test_every_operator(engine: str, tmp_path: Path) -> None:
    with Device.open(f"{engine.replace('small', str(small_chip(tmp_path)))}?memory=16M") as device:
        for seed, name in enumerate(ELEMENTS):
            elements(device, name, seed)
        for seed, name in enumerate(CASES.values()):
            structured(device, name, seed)


@GATEWARE
def test_in_the_gateware() -> None:
    with Device.open("fast:base?memory=8M") as device:
        for seed, name in enumerate(("add", "sin", "where")):
            elements(device, name, seed)
        for seed, name in enumerate(("sum", "softmax_backward", "quantize")):
            structured(device, name, seed)


@pytest.mark.slow
@GATEWARE
def test_more_in_the_gateware() -> None:
    with Device.open("fast:base?memory=8M") as device:
        for seed, name in enumerate(FEW):
            elements(device, name, seed)
        for seed, name in enumerate(SOME):
            structured(device, name, seed)
