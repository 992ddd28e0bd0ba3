"""``sley bench growth`` and ``sley bench activity``, on the smallest chips."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import ElementType
from sley.bench.engines import activity, growth
from sley.bench.engines.parts import Profile
from sley.runtime.cli import app
from sley.sim.build.toolchain import find_c_compiler

pytestmark = pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")


def table(output: str) -> dict[str, list[str]]:
    """Cells of the rows of a table by the first one."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.split("\n") if line.startswith("│")]
    return {cells[0]: cells[1:] for cells in rows}


def test_chips_that_grow() -> None:
    """Sizes and meshes as the table says, each a valid chip with a name of its own."""
    arrays, cores = list(growth.arrays()), list(growth.cores())
    assert [config.array for config in arrays] == [4, 8, 16, 32]
    assert [config.cores for config in arrays] == [1] * 4
    assert [config.cores for config in cores] == [1, 2, 4, 8, 16]
    names = {config.name for config in arrays + cores}
    assert len(names) == len(arrays + cores)


@pytest.mark.campaign
def test_growth_command(tmp_path: Path) -> None:
    picture = tmp_path / "growth.png"
    arguments = ["bench", "growth", "--largest", "4", "--most", "1", "--size", "8", "--plot", str(picture)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert [*table(result.output)] == ["nano", "cores1x1"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.campaign
def test_activity_command() -> None:
    """An idle chip pays for nothing but what always moves, and every kind of part is in the table."""
    result = CliRunner().invoke(app, ["bench", "activity", "nano", "--rounds", "1"])
    assert result.exit_code == 0, result.output
    rows = table(result.output)
    for part in ("router", "Load", "processing element"):
        _, idle, busy = (float(cell.replace(",", "")) for cell in rows[part])
        assert idle < busy / 4, part
    assert "against one without" not in result.output  # nano has one type


def test_a_type_that_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio is that of the chip with the type to the same chip without it."""
    opened: list[object] = []

    def alternate(chips: list[str], work: object, rounds: int) -> list[float]:
        opened.extend(ChipConfig.from_json(Path(path).read_text()).operand_types for path in chips)
        return [3.0, 2.0]

    monkeypatch.setattr(activity, "_alternate", alternate)
    monkeypatch.setattr(activity, "profile", lambda url, work: Profile("base", 1.0, []))
    assert activity.activity(PRESETS["base"]).unused == {"bf16": 1.5}
    assert opened == [PRESETS["base"].operand_types, (ElementType.INT8,)]
