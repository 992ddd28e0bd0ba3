"""Spaces and the files that describe them."""

from pathlib import Path

import pytest
from priced import OTHER, WORK, space

from sley.abi.config import ChipConfig, ConfigError
from sley.driver import BadRequest
from sley.explore import Space
from sley.explore.costs.workload import SourceWorkload, workload_of
from sley.explore.space.file import read_space

HERE = Path(__file__).parent


def test_a_grid_goes_through_the_last_parameter_first() -> None:
    points = list(space(array=(4, 8), latency=(1, 2, 3)))
    assert [tuple(point.values()) for point in points] == [(4, 1), (4, 2), (4, 3), (8, 1), (8, 2), (8, 3)]


def test_a_design_has_what_its_point_says() -> None:
    design = space(array=(4, 8), latency=(16,), precision=("medium",)).design(
        {"array": 8, "latency": 16, "precision": "medium"}
    )
    assert (design.config.array, design.config.vector_lanes, design.config.queues) == (8, 8, ChipConfig().queues)
    assert (design.timing, design.schedule) == ({"latency": 16}, {"precision": "medium"})


def test_what_no_chip_can_be_says_why() -> None:
    with pytest.raises(ConfigError, match="scratchpad_rows is 16; it must be a power of two in 32"):
        space(array=(8,), scratchpad_rows=(16,)).design({"array": 8, "scratchpad_rows": 16})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"arrays": (4,)}, "no parameter 'arrays'; there are array, "),
        ({"array": ()}, "give each of its values once"),
        ({"array": (4, 4)}, "give each of its values once"),
        ({"latency": (0,)}, r"latency is 0; it must be an integer in 1\.\."),
        ({"latency": ("slow",)}, "latency is 'slow'"),
        ({"precision": ("low",)}, "precision is 'low'; there are medium, high, highest"),
        ({"vector_lanes": (4,)}, "vector_lanes cannot be the same as 'array'"),
        ({"name": ("me",)}, "no parameter 'name'"),
        ({"rows": (1,)}, "no parameter 'rows'; there are .* link_bytes, precision$"),
    ],
)
def test_what_is_no_space(values: dict[str, tuple[object, ...]], problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        space(**values)


def test_a_workload_takes_what_its_schedule_has_of_a_design() -> None:
    found = Space(
        ChipConfig(), {"precision": ("high", "medium"), "rows": (1, 2)}, (WORK, workload_of(lambda device, rows: None))
    )
    design = found.design({"precision": "medium", "rows": 2})
    assert [design.schedule_of(workload) for workload in found.workloads] == [{"precision": "medium"}, {"rows": 2}]
    for name in ("array", "latency"):
        function = SourceWorkload("f", f"def f(device, {name}): ...")
        with pytest.raises(BadRequest, match=f"has an argument '{name}', as the chip or its memory has"):
            Space(ChipConfig(), {}, (function,))


def test_networks_have_names_of_their_own() -> None:
    with pytest.raises(BadRequest, match="each needs a name of its own"):
        Space(ChipConfig(), {}, (WORK, OTHER, WORK))
    with pytest.raises(BadRequest, match="no networks"):
        Space(ChipConfig(), {}, ())


def test_a_file_of_python() -> None:
    found, objectives = read_space(HERE / "space_of_products.py")
    assert objectives == ("cycles", "area", "bytes")
    assert found.values == {"array": (4, 8), "scratchpad_rows": (16, 512), "latency": (16, 64)}
    assert found.same == {"vector_lanes": "array"}
    (workload,) = found.workloads
    assert isinstance(workload, SourceWorkload)
    assert workload.name == "product"


def test_a_file_of_toml(tmp_path: Path) -> None:
    (tmp_path / "chip.json").write_text(ChipConfig(name="mine", queues=3).to_json())
    path = tmp_path / "space.toml"
    path.write_text(
        'base = "chip.json"\nnetworks = ["digits-mlp"]\nobjectives = ["bytes"]\n[chip]\n'
        "array = {from = 4, to = 16, times = 2}\nqueues = {from = 2, to = 7, step = 2}\n"
        'operand_types = [["int8", "bf16"]]\n'
        '[memory]\nlatency = 40\n[schedule]\nprecision = ["medium"]\n'
    )
    found, objectives = read_space(path)
    assert (found.base.name, objectives) == ("mine", ("bytes",))
    assert found.values == {
        "array": (4, 8, 16),
        "queues": (2, 4, 6),
        "operand_types": (("int8", "bf16"),),
        "latency": (40,),
        "precision": ("medium",),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bases = 1", "has 'bases'; a space has base, networks"),
        ("base = ", "is no TOML"),
        ('networks = ["absent"]', "no network 'absent'; give a file .onnx or .sley, or one of "),
        ('networks = ["absent.onnx"]', "there is no file .*absent.onnx"),
        ("[chip]\narray = {from = 8, to = 4, step = 1}", "array is no range: write {from"),
        ("[chip]\narray = {from = 1, to = 4, times = 1}", "array is no range"),
        ("[chip]\narray = {from = 1, to = 4}", "array is no range"),
    ],
)
def test_what_is_no_file_of_a_space(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(BadRequest, match=problem):
        read_space(path)
