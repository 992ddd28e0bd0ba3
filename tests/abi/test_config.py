"""Where a chip's configuration comes from."""

import json
import re
from pathlib import Path

import pytest

from sley.abi.config import PRESETS, ConfigError, configuration, preset
from sley.abi.functions.table import Function

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


@pytest.mark.parametrize("chains", [-1, 16, True, 1.5])
def test_numbers_of_chains(chains: object) -> None:
    with pytest.raises(ConfigError, match=rf"vector_chains is {chains!r}; it must be an integer in 0\.\.15"):
        preset("nano").replace(vector_chains=chains)


def test_chains_need_all_lanes() -> None:
    with pytest.raises(
        ConfigError, match="vector_chains is 1 with vector_lanes = 2; chains need a lane for each of the 4 columns"
    ):
        preset("nano").replace(vector_chains=1, vector_lanes=2)
    assert preset("nano").replace(vector_chains=1).row_registers == 4
    assert preset("nano").row_registers == 2


def test_functions_need_chains() -> None:
    with pytest.raises(ConfigError, match="vector_functions has exp2 with vector_chains = 0; functions are stages of"):
        preset("nano").replace(vector_functions=("exp2",))


@pytest.mark.parametrize("given", [("exp3",), ("exp2", 3.0), "EXP2", (None,)])
def test_functions_that_are_none(given: object) -> None:
    with pytest.raises(ConfigError, match=r"vector_functions has .*; there are exp2, log2, "):
        preset("nano").replace(vector_chains=1, vector_functions=given)


def test_functions_are_a_set() -> None:
    one, other = (
        preset("nano").replace(vector_chains=2, vector_functions=given)
        for given in (("tanh", "exp2", "tanh"), {Function.EXP2, Function.TANH})
    )
    assert one == other
    assert one.hash == other.hash != preset("nano").replace(vector_chains=2).hash
    assert preset("nano").replace(vector_chains=1, vector_functions="exp2").vector_functions == (Function.EXP2,)
