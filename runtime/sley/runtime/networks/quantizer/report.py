"""What a quantisation did: the error of each layer, as a table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

import numpy as np
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """A layer.

    Attributes
    ----------
    name, operator: of it. kind: what it runs in: "int8", "dynamic", "bfloat16" or "float32".
    products: multiplications for one sample.
    int8, bfloat16: signal to noise of its result by itself, dB. behind: that of its result in the whole quantised
        network, against the network of reals.
    """

    name: str
    operator: str
    kind: str
    products: int
    int8: float
    bfloat16: float
    behind: float


@dataclass(frozen=True)
class Report:
    """All layers, and the outputs of the whole network.

    Attributes
    ----------
    method: of ranges. least: dB that a layer must reach in a type to run in it. outputs: signal to noise, dB, by name.
    """

    network: str
    method: str
    least: float
    rows: list[Row] = field(default_factory=list)
    outputs: dict[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The part of all products that is of int8."""
        total = sum(row.products for row in self.rows)
        return sum(row.products for row in self.rows if row.kind in ("int8", "dynamic")) / max(total, 1)

    def json(self) -> str:
        """As JSON; what is infinite is null."""
        content = {**asdict(self), "share": self.share}
        return json.dumps(_finite(content), indent=1)

    def table(self) -> Table:
        """For the console."""
        table = Table(title=f"{self.network}: signal to noise by layer, dB")
        for name in ("layer", "operator", "runs in", "products", "int8", "bfloat16", "in the network"):
            table.add_column(name, justify="left" if name in ("layer", "operator", "runs in") else "right")
        for row in self.rows:
            numbers = [_number(value) for value in (row.int8, row.bfloat16, row.behind)]
            table.add_row(row.name, row.operator, row.kind, f"{row.products:,}", *numbers)
        for name, value in self.outputs.items():
            table.add_row(name, "output", "", "", "", "", _number(value))
        return table


def _number(value: float) -> str:
    return "" if np.isnan(value) else "exact" if np.isinf(value) else f"{value:.1f}"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
