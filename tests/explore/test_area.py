"""The area model: the file of coefficients is the fit of the sample, and chips are the sums of their blocks."""

from dataclasses import astuple

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.explore import area_of
from sley.explore.area import fit
from sley.explore.area.features import PARTS, block_rams
from sley.explore.area.model import COEFFICIENTS, RESOURCES, Area, block_areas
from sley.explore.area.sample import CENTRE, SAMPLE
from sley.fpga.boards.known import SMALL

NANO = Area(30_775, 23_380, 36, 30)
"""``nano`` as Yosys 0.70 counted the whole chip, its hierarchy kept two levels deep."""


EDGE = PRESETS["edge"].replace(vector_lanes=1, gather=False)
HELD_OUT = {
    "small": (SMALL, (20_717, 17_589, 24, 88)),
    "edge1": (EDGE.replace(operand_types=("int8",)), (34_371, 28_189, 72, 114)),
    "edgebf1": (EDGE, (73_087, 65_585, 136, 161)),
}
"""Systems with 128 KiB on an ECPIX-5 as placed, of docs/reference/fpga.md, whose arrays have a DSP block for each
product."""


def test_the_coefficients_are_those_of_the_sample() -> None:
    """As ``sley fpga fit-area`` writes them."""
    assert COEFFICIENTS.read_text() == fit.fitted(fit.read_samples())


def test_a_chip_is_the_sum_of_its_blocks() -> None:
    """What was synthesised as a whole, against blocks that were synthesised alone."""
    blocks = block_areas(PRESETS["nano"])
    assert set(blocks) == set(PARTS)
    for name in RESOURCES:
        assert sum(getattr(block, name) for block in blocks.values()) == pytest.approx(getattr(NANO, name), rel=0.02)


@pytest.mark.parametrize("name", HELD_OUT)
def test_chips_that_were_not_fitted_are_within_ten_per_cent(name: str) -> None:
    config, measured = HELD_OUT[name]
    found = np.add(astuple(area_of(config)), fit.BESIDE)
    assert found == pytest.approx(measured, rel=0.1)


def test_every_block_has_a_sample() -> None:
    known = {sample.block for sample in fit.read_samples()}
    assert known == set(PARTS)
    assert set(SAMPLE) == set(PARTS) - {"core", "chip"}


@pytest.mark.parametrize(
    ("words", "bits", "blocks"),
    [
        (128, 32, 1),
        (128, 36, 1),
        (128, 37, 2),
        (512, 128, 4),
        (1024, 128, 8),
        (4096, 4, 1),
        (64, 128, 4),
        (16384, 1, 1),
    ],
)
def test_block_rams(words: int, bits: int, blocks: int) -> None:
    assert block_rams(words, bits) == blocks


@pytest.mark.parametrize(
    "changes",
    [
        {"array": 8, "vector_lanes": 8},
        {"vector_lanes": 4, "tlb_entries": 12},
        {"queues": 4},
        {"contexts": 8},
        {"scratchpad_rows": 4096},
        {"accumulator_rows": 4096},
        {"cores_x": 2},
        {"program_words": 1024},
    ],
)
def test_more_takes_more(changes: dict[str, int]) -> None:
    small, large = astuple(area_of(CENTRE)), astuple(area_of(CENTRE.replace(**changes)))
    assert all(a <= b for a, b in zip(small, large, strict=True))
    assert small != large


def test_cores_multiply() -> None:
    one, four = (block_areas(ChipConfig(cores_x=n, cores_y=n)) for n in (1, 2))
    for name, part in PARTS.items():
        if part.in_core and name != "sequencer":
            assert four[name].lut == pytest.approx(4 * one[name].lut, abs=4)


def test_what_fits() -> None:
    assert area_of(PRESETS["nano"]).fits
    assert not area_of(PRESETS["quad"]).fits
    assert 0 < area_of(PRESETS["nano"]).share < area_of(PRESETS["edge"]).share


def test_a_fit_finds_what_a_sample_is_made_of() -> None:
    """Of a block that grows by known numbers, from a sample in no order."""
    configs = [CENTRE.replace(tlb_entries=n, array=a, vector_lanes=a) for n in (2, 5, 9) for a in (4, 8, 16)]
    wanted = np.array([100.0, 7.0, 50.0, 3.0])
    part = PARTS["node-port"]
    counts = [int(np.dot(part.values(config), wanted)) for config in configs]
    made = [fit.Sample("node-port", fit.changes_of(c), (n, 0, 0, 0)) for c, n in zip(configs, counts, strict=True)]
    others = [one for one in fit.read_samples() if one.block != "node-port"]
    import json

    found = json.loads(fit.fitted([*others, *reversed(made)]))["blocks"]["node-port"]
    assert list(found) == list(RESOURCES)
    assert [found["lut"][name] for name in part.features] == pytest.approx(wanted, rel=1e-3)
    assert found["ff"] == {}


def test_a_sample_says_its_chip() -> None:
    config = CENTRE.replace(
        array=8, vector_lanes=8, operand_types=("int8", "bf16"), vector_chains=2, vector_functions=("exp2",)
    )
    assert fit.Sample("load", fit.changes_of(config), (0, 0, 0, 0)).config == config.replace(name=CENTRE.name)
