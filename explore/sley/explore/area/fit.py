"""The fit of the area model: synthesised blocks to coefficients."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
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
    """The text of the file of coefficients, with the largest and the mean error of each block on its samples."""
    blocks, errors = {}, {}
    for name, part in PARTS.items():
        own = [sample for sample in samples if sample.block == name]
        rows = np.array([part.values(sample.config) for sample in own])
        found = [_solve(rows, np.array([s.resources[k] for s in own], np.float64)) for k in range(len(RESOURCES))]
        blocks[name] = {resource: _named(part, row) for resource, row in zip(RESOURCES, found, strict=True)}
        errors[name] = {
            resource: round(float(_errors(rows @ row, np.array([s.resources[k] for s in own])).max()), 3)
            for k, (resource, row) in enumerate(zip(RESOURCES, found, strict=True))
        }
    return json.dumps({"blocks": blocks, "largest error on the sample": errors}, indent=1) + "\n"


def _solve(rows: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients with the least squares of relative errors; none is negative, as no feature makes a block smaller."""
    weights = 1 / np.maximum(wanted, LEAST)
    found: NDArray[np.float64] = lsq_linear(rows * weights[:, None], wanted * weights, (0, np.inf)).x
    return found


def _errors(found: NDArray[np.float64], wanted: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.abs(found - wanted) / np.maximum(wanted, LEAST)


def _named(part: Part, row: NDArray[np.float64]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(part.features, row, strict=True) if value > 5e-4}
