"""What engine ``model`` refuses with cycles, and why."""

from pathlib import Path

import pytest

from sley.abi.config import ChipConfig
from sley.abi.transport import EngineError
from sley.sim.engines import model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cycles": "yes"}, "cycles=yes: cycles must be off or on"),
        ({"latency": "3"}, "engine model has no option 'latency'; .*; that one is for cycles=on"),
        ({"cycles": "on", "record": "3"}, "engine model has no option 'record'; there are values, cycles, memory"),
        ({"cycles": "on", "values": "numpy"}, "values=numpy: with cycles=on values must be compiled or off"),
        ({"cycles": "on", "sanitize": "race"}, "sanitize=race with cycles=on: .*; leave cycles=on out"),
    ],
    ids=str,
)
def test_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        model.open_transport("nano", options)


def test_a_bus_that_no_twin_knows(tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_text(
        ChipConfig(
            name="wide", array=64, vector_lanes=64, operand_types=("int8", "bf16"), scratchpad_rows=512
        ).to_json()
    )
    with pytest.raises(EngineError, match="cycles=on with bus_bytes=128: twins know buses of up to 64 bytes; leave"):
        model.open_transport(str(path), {"cycles": "on"})
