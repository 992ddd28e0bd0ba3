"""The page of operators: what each computes, with which error, of which types, and how long it takes."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.bench.operators.works import COLUMNS, MACS, ROWS, Arrays, arrays_of, call_of, names
from sley.driver import SleyError
from sley.runtime import Device, nn
from sley.runtime.device.buffer import BF16

ENGINE = "model:base?cycles=on&memory=32M"
TYPES = {"bool": bool, "int8": np.int8, "int32": np.int32, "bf16": BF16, "fp32": np.float32}
ERROR = re.compile(r"[:;] ((?:half a|[\d.]+) ulp\b.*|an (?:absolute )?error of .*|exactly)\.?$")
HEAD = f"""# Operators

What `sley.runtime.nn` shows, as `sley bench operators --write docs/reference/operators.md` prints it; do not edit.

- *Types* are those of operands that a call is not refused with. Results of integers may be float32.
- *Error* is that of float32 results against float64, as the documentation of an operator states it and tests check it;
  ulp is a unit in the last place. What has none here says more in its own documentation, or is exact.
- *Cycles* are those of the [exact model](../theory/exact-model.md) of `base`, from the doorbell to the fence of a
  second call, of arrays of {ROWS} by {COLUMNS} bfloat16, or of those in
  `bench/sley/bench/operators/works.py`.
- *Of bound*: the fewest cycles in which memory can move each operand and each result once, or the array multiply, as a
  share of that.
"""


@dataclass(frozen=True)
class Row:
    """An operator; ``cycles`` and ``share`` are 0 of one that launches nothing."""

    name: str
    computes: str
    error: str
    types: tuple[str, ...] = ()
    cycles: int = 0
    share: float = 0.0


def described(name: str) -> Row:
    """What the documentation of an operator says in its first paragraph."""
    text = " ".join((inspect.getdoc(getattr(nn, name)) or "").partition("\n\n")[0].split())
    found = ERROR.search(text)
    computes, error = (text[: found.start()] + ".", found[1]) if found else (text, "")
    return Row(name, computes, error.removesuffix("."))


def measured(device: Device, name: str) -> Row:
    """The row with its numbers. Raises ``SleyError``."""
    row, call, arrays = described(name), call_of(name), Arrays(device)
    types = tuple(kind for kind, dtype in TYPES.items() if _takes(device, name, dtype))
    if "bf16" not in types:
        arrays = Arrays(device, TYPES[types[-1]])
    call(arrays)
    with device.stream.counted() as count:
        results = arrays_of(call(arrays))
    config = device.config
    read = sum(array.nbytes for array in arrays.used.values())
    written = sum(array.nbytes for array in results)
    bound = max(read, written) / config.bus_bytes
    bound = max(bound, MACS.get(name, 0) / config.array**2)
    cycles = count.cycles if name != "split" else 0
    return Row(row.name, row.computes, row.error, types, cycles, bound / cycles if cycles else 0.0)


def _takes(device: Device, name: str, dtype: Any) -> bool:
    arrays = Arrays(device, dtype, 16, 32)
    try:
        call_of(name)(arrays)
    except SleyError:
        return False
    return True


def page(rows: list[Row]) -> str:
    """The whole page: a part for each file of operators."""
    text = HEAD
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(getattr(nn, row.name).__module__, []).append(row)
    for module, members in parts.items():
        title = _escaped((sys.modules[module].__doc__ or "").partition("\n")[0].rstrip(".;:"))
        text += (
            f"\n## {title}\n\n| operator | types | computes | error | cycles | of bound |\n|---|---|---|---|---|---|\n"
        )
        for row in members:
            cells = [f"`{row.name}`", ", ".join(row.types), _escaped(row.computes), _escaped(row.error)]
            cells += [f"{row.cycles:,}", f"{row.share:.0%}"] if row.cycles else ["", ""]
            text += f"| {' | '.join(cells)} |\n"
    return text


def _escaped(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|").replace("*", "\\*")


def measure_all() -> list[Row]:
    """All operators, on a device of its own."""
    with Device.open(ENGINE) as device:
        return [measured(device, name) for name in names()]
