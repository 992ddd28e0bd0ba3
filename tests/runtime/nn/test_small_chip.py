"""Operators on another chip than the presets."""

from pathlib import Path

import numpy as np
import pytest
from row_operands import EPS, bits_of, normal, on
from small_chain_chip import SMALL, small_chip

from sley.runtime import Device, nn
from sley.sim.engines.options import default_engine
from sley.sim.golden import nn as golden

ENGINES = ["model", *([pytest.param("fast", marks=pytest.mark.slow)] if default_engine() == "fast" else [])]


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_to_golden(engine: str, tmp_path: Path) -> None:
    with Device.open(f"{engine}:{small_chip(tmp_path)}?memory=4M") as device:
        for shape in ((1, 1), (5, 7), (9, 34), (13, 100), (6, 200), (3, 700)):
            x, w, b = normal(1, *shape), normal(2, shape[1]), normal(3, shape[1])
            array, weight, bias = on(device, x), on(device, w), on(device, b)
            for result, right in (
                (nn.softmax(array), golden.softmax(x)),
                (nn.layer_norm(array, weight, bias, EPS), golden.layer_norm(x, w, b, EPS, SMALL.array)),
                (nn.rms_norm(array, weight, EPS), golden.rms_norm(x, w, EPS)),
                (nn.gelu(array), golden.gelu(x)),
                (nn.gelu(array, "tanh"), golden.gelu_tanh(x)),
            ):
                assert (bits_of(result) == right).all()
            wide = (x.astype(np.uint32) << np.uint32(16)).view(np.float32)
            assert (nn.argmax(array).numpy() == np.argmax(wide, -1)).all()
        x = normal(4, 3, 20, 6)
        table = nn.RotaryTable(device, 20, 6)
        right = golden.rotary(x, bits_of(table.cos), bits_of(table.sin))
        assert (bits_of(nn.rotary(on(device, x), table)) == right).all()
