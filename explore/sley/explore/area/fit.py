"""The fit of the area model: synthesised blocks to coefficients."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from sley.abi.config import ChipConfig
from sley.explore.area.features import PARTS, Part
from sley.explore.area.model import RESOURCES
from sley.explore.area.sample import CENTRE

SAMPLE = Path(__file__).with_name("sample.csv")
"""What synthesis said of the blocks of ``sample``; made by ``sley fpga sample-area``."""
COLUMNS = ("block", "changes", *RESOURCES)
FLAT_CHIP = CENTRE.replace(vector_lanes=1)
FLAT_SYSTEM = (23_763, 18_721, 24, 95)
BESIDE = (1_564, 950, 0, 65)
"""A chip on an ECPIX-5 as placed, flat, and what host bridge and 128 KiB of memory take of it: ``nano1`` of the report
of FPGAs. What blocks have in common is there once in a flat netlist."""
LEAST = 20.0
"""Units of a resource from which on relative errors count; below, absolute ones."""


@dataclass(frozen=True)
class Sample:
    """A block that was synthesised. ``changes``: parameters of its chip that are not those of ``CENTRE``."""

    block: str
    changes: str
    resources: tuple[int, ...]

    @property
    def config(self) -> ChipConfig:
        changes = json.loads(self.changes)
        return CENTRE.replace(**{key: tuple(v) if isinstance(v, list) else v for key, v in changes.items()})


def changes_of(config: ChipConfig) -> str:
    """What a configuration changes, as a text."""
    known, centre = (json.loads(c.to_json())["parameters"] for c in (config, CENTRE))
    return json.dumps({key: value for key, value in known.items() if key != "name" and value != centre[key]})


def read_samples(path: Path = SAMPLE) -> list[Sample]:
    """All that were synthesised."""
    with path.open() as file:
        return [Sample(r["block"], r["changes"], tuple(int(r[k]) for k in RESOURCES)) for r in csv.DictReader(file)]


def write_samples(samples: Iterable[Sample], path: Path = SAMPLE) -> None:
    """In the order of blocks."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((s.block, s.changes, *s.resources) for s in samples)


def fitted(samples: Sequence[Sample]) -> str:
    """The text of the file of coefficients, with the largest error of each block on its samples, and the features that
    these do not tell from others: their coefficients are 0."""
    blocks, errors, unknown = {}, {}, {}
    for name, part in PARTS.items():
        own = [sample for sample in samples if sample.block == name]
        rows = np.array([part.values(sample.config) for sample in own])
        told = _told_apart(rows)
        found = [
            _solve(rows * told, np.array([s.resources[k] for s in own], np.float64)) for k in range(len(RESOURCES))
        ]
        blocks[name] = {resource: _named(part, row) for resource, row in zip(RESOURCES, found, strict=True)}
        errors[name] = {
            resource: round(float(_errors(rows @ row, np.array([s.resources[k] for s in own])).max()), 3)
            for k, (resource, row) in enumerate(zip(RESOURCES, found, strict=True))
        }
        if not told.all():
            unknown[name] = [feature for feature, is_told in zip(part.features, told, strict=True) if not is_told]
    flat = {
        resource: round((whole - rest) / total(blocks, resource, FLAT_CHIP), 4)
        for resource, whole, rest in zip(RESOURCES, FLAT_SYSTEM, BESIDE, strict=True)
    }
    made = {
        "flat": flat,
        "blocks": blocks,
        "largest error on the sample": errors,
        "not told apart by the sample": unknown,
    }
    return json.dumps(made, indent=1) + "\n"


def total(blocks: Mapping[str, Mapping[str, Mapping[str, float]]], resource: str, config: ChipConfig) -> float:
    """Of all blocks of a chip."""
    return sum(
        part.count(config) * blocks[name][resource].get(feature, 0.0) * value
        for name, part in PARTS.items()
        for feature, value in zip(part.features, part.values(config), strict=True)
    )


def _told_apart(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of each feature whether some sample tells it from the features before it."""
    ranks = [0, *(int(np.linalg.matrix_rank(rows[:, : count + 1])) for count in range(rows.shape[1]))]
    return np.diff(ranks) > 0


def _solve(rows: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients with the least squares of relative errors; none is negative, as no feature makes a block smaller."""
    weights = 1 / np.maximum(wanted, LEAST)
    found: NDArray[np.float64] = lsq_linear(rows * weights[:, None], wanted * weights, (0, np.inf), method="bvls").x
    return found


def _errors(found: NDArray[np.float64], wanted: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.abs(found - wanted) / np.maximum(wanted, LEAST)


def _named(part: Part, row: NDArray[np.float64]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(part.features, row, strict=True) if value > 5e-4}
