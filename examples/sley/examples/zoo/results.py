"""What was measured of models, kept in a file that the page is made of."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Launch:
    """A launch of a graph: the operator that made it, its program, its cycles behind a doorbell of its own, and the
    multiply-accumulates of the operator, at its longest launch."""

    operator: str
    program: str
    cycles: int
    macs: int


@dataclass(frozen=True)
class Result:
    """A run of a model.

    Attributes
    ----------
    error: the largest difference from the reference, by the largest value of an output; ``None`` if no values were
        computed. classes: what classes it found. reference: whom it was compared with.
    cycles: from doorbell to fence; 0 on an engine without. bound: cycles that the operation of ``limit`` needs at
        least. compile_seconds: of the host. weights_bytes, before, after: of arrays, and of intermediate ones at places
        of their own and planned. engine: where it ran.
    """

    model: str
    precision: str
    weights: str
    engine: str
    cycles: int
    bound: int
    limit: str
    launches: int
    compile_seconds: float
    weights_bytes: int
    before: int
    after: int
    error: float | None = None
    classes: str = ""
    reference: str = ""
    note: str = ""
    costs: tuple[Launch, ...] = field(default=(), compare=False)

    @property
    def share(self) -> float:
        """Of the bound."""
        return self.bound / self.cycles if self.cycles else 0.0

    @property
    def key(self) -> str:
        return f"{self.model} {self.precision} {self.weights}"


def read_results(path: Path = FILE) -> dict[str, Result]:
    """All that is kept, by model, precision and weights."""
    if not path.exists():
        return {}
    return {
        one["model"] + f" {one['precision']} {one['weights']}": Result(**one) for one in json.loads(path.read_text())
    }


def keep(result: Result, path: Path = FILE) -> None:
    """Puts a result into the file, in place of one of the same model, precision and weights. Of a run without values
    it takes what the run before found."""
    kept = read_results(path)
    old = kept.get(result.key)
    fields = asdict(result) | {"costs": ()}
    if result.error is None and old is not None:
        fields |= {name: getattr(old, name) for name in ("error", "classes", "reference")}
    if not result.cycles and old is not None:
        fields |= {name: getattr(old, name) for name in ("cycles", "engine")}
    kept[result.key] = Result(**fields)
    rows = [{name: value for name, value in asdict(kept[key]).items() if name != "costs"} for key in sorted(kept)]
    path.write_text(json.dumps(rows, indent=1) + "\n")
