"""Results as tables: CSV and Parquet, and the Pareto front of them. What they say depends on the designs alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sley.explore.area.model import Area, area_of
from sley.explore.results.pareto import front
from sley.explore.sweep.journal import DONE
from sley.explore.sweep.sweep import Outcome

Row = dict[str, Any]
DESIGNS, FRONT = "designs", "pareto"
"""Names of files."""


def on_front(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those on the Pareto front."""
    done = [outcome for outcome in outcomes if outcome.status == DONE]
    best = front([list(one.objectives.values()) for one in done])
    return [one for one, is_best in zip(done, best, strict=True) if is_best]


def rows(outcomes: Sequence[Outcome], synthesised: Mapping[int, Area] | None = None) -> list[Row]:
    """A row for each design, in the order of the search. ``pareto``: whether it is on the front. ``synthesised``: areas
    of some chips by their hash."""
    best = set(map(id, on_front(outcomes)))
    return [_row(number, one, id(one) in best, synthesised or {}) for number, one in enumerate(outcomes)]


def _row(number: int, one: Outcome, best: bool, synthesised: Mapping[int, Area]) -> Row:
    parameters = {name: _cell(value) for name, value in one.point.items()}
    row: Row = {"design": number, **parameters, "status": one.status, "pareto": best, **one.objectives}
    if one.design is not None and one.costs:
        row |= asdict(area_of(one.design.config))
        if one.design.config.hash in synthesised:
            real = asdict(synthesised[one.design.config.hash])
            row |= {f"{name} by synthesis": value for name, value in real.items()}
        for name, cost in one.costs.items():
            row |= {f"cycles of {name}": cost.cycles, f"bytes of {name}": cost.bytes, f"MACs of {name}": cost.macs}
    return row | {"reason": one.reason}


def _cell(value: Any) -> Any:
    return "+".join(map(str, value)) if isinstance(value, tuple) else value


def columns(table: Sequence[Row]) -> list[str]:
    """Of all rows, in the order in which they come first; the reason last."""
    names = list(dict.fromkeys(name for row in table for name in row if name != "reason"))
    return [*names, "reason"]


def write_tables(
    folder: Path, outcomes: Sequence[Outcome], synthesised: Mapping[int, Area] | None = None
) -> list[Path]:
    """Writes ``designs`` and ``pareto`` as CSV, and as Parquet where pyarrow is installed. Each file is there whole or
    not at all."""
    table = rows(outcomes, synthesised)
    written = []
    for name, part in ((DESIGNS, table), (FRONT, [row for row in table if row["pareto"]])):
        names = columns(table)
        written.append(write_whole(folder / f"{name}.csv", _csv(part, names).encode()))
        parquet = _parquet(part, names)
        if parquet is not None:
            written.append(write_whole(folder / f"{name}.parquet", parquet))
    return written


def write_whole(path: Path, content: bytes) -> Path:
    """Writes a file beside, and moves it in place."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    return part.replace(path)


def _csv(table: Sequence[Row], names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def _parquet(table: Sequence[Row], names: Sequence[str]) -> bytes | None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return None
    sink = io.BytesIO()
    arrays = {name: pyarrow.array([row.get(name) for row in table]) for name in names}
    parquet.write_table(pyarrow.table(arrays), sink)
    return sink.getvalue()
