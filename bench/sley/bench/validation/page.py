"""The page of ``sley bench validation``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files

from sley.bench.gemm.scalesim import VERSION
from sley.bench.validation.cases import Case

_TEXT = files("sley.bench.validation")


def validation_page(cases: Sequence[Case], zigzag: str) -> str:
    """The page for these cases; ``zigzag``: its version."""
    lines = [_text("head.md").format(scalesim=VERSION, zigzag=zigzag)]
    for array in dict.fromkeys(case.array for case in cases):
        lines += [
            f"## {array} x {array}",
            "",
            "| | M x N x K | bound | Sley on chip | Sley whole | SCALE-Sim | ZigZag |",
            "|---|---|---:|---:|---:|---:|---:|",
        ]
        own = [case for case in cases if case.array == array]
        lines += [_row(case) for case in own]
        means = (
            math.exp(sum(math.log(count(case) / case.bound) for case in own) / len(own))
            for count in (on_chip_of, whole_of, scalesim_of, zigzag_of)
        )
        lines += [f"| geometric mean | | | {' | '.join(f'({mean:.2f})' for mean in means)} |", ""]
    above = max(cases, key=lambda case: case.on_chip / case.bound)
    size, times = " x ".join(map(str, above.size)), above.on_chip / above.bound
    simulated = sum(case.simulated for case in cases)
    lines.append(
        f"SCALE-Sim was run for {simulated} of {len(cases)} cases and agreed with its formula in each; the others are "
        "by the formula."
    )
    small = f"{size} on {above.array} x {above.array}, with {times:.2f} times as many cycles"
    return "\n".join(lines) + "\n\n" + _text("why.md").format(small=small)


def _text(name: str) -> str:
    return (_TEXT / name).read_text("utf-8")


def on_chip_of(case: Case) -> int:
    return case.on_chip


def whole_of(case: Case) -> int:
    return case.whole


def scalesim_of(case: Case) -> int:
    return case.scalesim


def zigzag_of(case: Case) -> int:
    return case.zigzag.whole


def _row(case: Case) -> str:
    counts = (on_chip_of(case), whole_of(case), scalesim_of(case), zigzag_of(case))
    cells = " | ".join(f"{count:,} ({count / case.bound:.2f})" for count in counts)
    return f"| {case.name} | {' x '.join(map(str, case.size))} | {case.bound:,} | {cells} |"
