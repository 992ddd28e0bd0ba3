"""The page of operators of PyTorch's device, made of a record of outcomes."""

from __future__ import annotations

import torch

from sley.bench.networks.torch_record import Record
from sley.runtime.frameworks.torch_device import agreement, score
from sley.runtime.frameworks.torch_device.registry import ENTRIES

HEAD = """# PyTorch operators

What the [device `sley`](../guides/pytorch.md) has, as `sley bench torch` prints it; do not edit. Scores are those of
PyTorch {version}'s samples, OpInfo.

**{whole} of {count} operators pass all their samples** in float32 and bfloat16 that are on types of the device,
forward and, where PyTorch has one, backward, with nothing done by the host. Results and gradients are compared with
those of the same values in float64, so that no rounding of the host's processor decides: float32 within
{float32[0]:g} relative and {float32[1]:g} absolute, bfloat16 within {bfloat16[0]:g} and {bfloat16[1]:g}. To this comes
{condition} times the change of the result in float64 when each argument moves by half a unit in its last place, which
is what sums whose terms cancel may lose. Where float64 is another result, as at the steps of `floor_divide`, or there
is none, it is compared with the host's in the same type: {by_host} operators that pass have such samples, *by the
host's*. Operators that draw random numbers, or whose contents are not defined, are compared by shape and type alone:
{drawn} of those that pass, marked *drawn*. Equal elements may be sorted in any order, as PyTorch has it. Samples with
other types, such as float64 or complex results, are left out, and never count as passed. [torch.json](torch.json) has
the outcomes.
"""
TABLE = """
## What is registered

Each is entered for the device in the form that returns its results; the forms in place and with `out=` are made of it.
*Decompositions* are PyTorch's, and each part of them runs on the device. Besides these, PyTorch makes what it calls
composite operators (`linear`, `matmul`, `reshape`, `einsum`, …) of them, and has views for every device.
"""


def torch_page(record: Record) -> str:
    """The page of a record."""
    scores = score.operator_scores(record.outcomes.values())
    whole, some = [s for s in scores if s.whole], [s for s in scores if s.good and not s.whole]
    rest = [s for s in scores if not s.good]
    lines = [
        HEAD.format(
            version=record.version,
            whole=len(whole),
            count=len(scores),
            float32=agreement.TOLERANCES[torch.float32],
            bfloat16=agreement.TOLERANCES[torch.bfloat16],
            condition=agreement.CONDITION,
            by_host=sum("by the host's" in s.remark for s in whole),
            drawn=sum("drawn" in s.remark for s in whole),
        ),
        "## Operators that pass",
        "",
        "| operator | float32 | bfloat16 | left out | |",
        "|---|---|---|---|---|",
        *(_row(s, s.remark) for s in whole),
        "",
        "## Operators of which all samples pass that were run",
        "",
        f"{len(some)} operators, which do not count: time was over before all their samples were run.",
        "",
        "| operator | float32 | bfloat16 | left out | |",
        "|---|---|---|---|---|",
        *(_row(s, s.remark) for s in some),
        "",
        "## Others",
        "",
        "| operator | float32 | bfloat16 | left out | the first that was said |",
        "|---|---|---|---|---|",
        *(_row(s, _cell(s.reason)) for s in rest),
        TABLE,
        "| family | operators |",
        "|---|---|",
    ]
    families: dict[str, list[str]] = {}
    for entry in ENTRIES.values():
        families.setdefault(entry.family, []).append(_name(entry.name))
    lines += [f"| {family} | {', '.join(sorted(names))} |" for family, names in families.items()]
    return "\n".join(lines) + "\n"


def _row(one: score.OperatorScore, last: str) -> str:
    return f"| {_name(one.name)} | {one.text('float32')} | {one.text('bfloat16')} | {one.other} | {last} |"


def _name(name: str) -> str:
    return f"`{name}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "\\<").replace("*", "\\*")[:240]
