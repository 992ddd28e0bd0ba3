"""Where a chip's configuration comes from."""

import json
import re
from pathlib import Path

import pytest

from sley.abi.config import PRESETS, ConfigError, configuration, preset

NO_CHAINS = {"vector_chains": 0, "vector_functions": ()}


@pytest.mark.parametrize("name", PRESETS)
def test_preset_or_file(name: str, tmp_path: Path) -> None:
    assert configuration(name) is preset(name)
    own = preset(name).replace(name="own", vector_lanes=1, **NO_CHAINS)
    file = tmp_path / "own.json"
    file.write_text(own.to_json())
    assert configuration(str(file)) == own


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no preset 'huge'; there are nano, edge, base, quad, or a JSON file"):
        configuration("huge")
    with pytest.raises(ConfigError, match=r"the configuration .*absent\.json cannot be read: No such file"):
        configuration(str(tmp_path / "absent.json"))
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ConfigError, match="no configuration"):
        configuration(str(tmp_path / "broken.json"))


@pytest.mark.parametrize("lanes", [0, 3, 8])
def test_lanes_divide_the_columns(lanes: int) -> None:
    with pytest.raises(ConfigError, match=rf"vector_lanes is {lanes}; it must be a power of two in 1\.\.4"):
        preset("nano").replace(vector_lanes=lanes)


def test_parts_of_a_row() -> None:
    assert [preset("base").replace(vector_lanes=lanes, **NO_CHAINS).row_parts for lanes in (1, 4, 16)] == [16, 4, 1]


@pytest.mark.parametrize("name", ["nano", "edge_int8", "16x16", "my-chip.v2", "_", "x" * 64])
def test_names(name: str) -> None:
    own = preset("nano").replace(name=name)
    assert own.name == name
    assert own.hash == preset("nano").hash


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\n", "*/", "edge int8", "../up", "-o", ".hidden", "é", "x" * 65, 7, None]
)
def test_names_that_are_refused(name: object, tmp_path: Path) -> None:
    """Whatever could leave a comment of Verilog or a folder."""
    sentence = rf"name is {re.escape(repr(name))}; a name has 1 to 64 letters of ASCII, digits, and _ \. -"
    with pytest.raises(ConfigError, match=sentence):
        preset("nano").replace(name=name)
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"parameters": {"name": name}}))
    with pytest.raises(ConfigError, match=sentence):
        configuration(str(file))
