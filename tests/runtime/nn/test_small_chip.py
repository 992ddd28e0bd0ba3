"""Operators on another chip than the presets: four lanes, queues of two instructions, little memory.

A program whose units wait for what is issued behind them does not end here.
"""

from pathlib import Path

import numpy as np
import pytest
from row_operands import EPS, bits_of, normal, on

from sley.abi.config import PRESETS
from sley.abi.functions.table import Function
from sley.runtime import Device, nn
from sley.sim.engines.options import default_engine
from sley.sim.golden import nn as golden

CONFIG = PRESETS["nano"].replace(
    name="small",
    operand_types=("int8", "bf16"),
    vector_chains=15,
    vector_functions=tuple(Function),
    program_words=512,
    unit_queue=2,
)
ENGINES = ["model", *(["fast"] if default_engine() == "fast" else [])]


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_to_golden(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(CONFIG.to_json())
    with Device.open(f"{engine}:{path}?memory=4M") as device:
        for shape in ((1, 1), (5, 7), (9, 34), (13, 100), (6, 200), (3, 700)):
            x, w, b = normal(1, *shape), normal(2, shape[1]), normal(3, shape[1])
            array, weight, bias = on(device, x), on(device, w), on(device, b)
            for result, right in (
                (nn.softmax(array), golden.softmax(x)),
                (nn.layer_norm(array, weight, bias, EPS), golden.layer_norm(x, w, b, EPS, CONFIG.array)),
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
