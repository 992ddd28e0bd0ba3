"""``sley bench torch``: PyTorch's own samples of operators, on the device ``sley``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sley.abi.install import extra

HEAD = """# PyTorch operators

What the [device `sley`](../guides/pytorch.md) has, as `sley bench torch` prints it; do not edit. Scores are those of
PyTorch {version}'s samples, OpInfo.

**{whole} of {count} operators pass {which}** in float32 and bfloat16 that are on types of the device,
forward and, where PyTorch has one, backward, with nothing done by the host. Results and gradients are compared with
those of the same values in float64, so that no rounding of the host's processor decides: float32 within
{float32[0]:g} relative and {float32[1]:g} absolute, bfloat16 within {bfloat16[0]:g} and {bfloat16[1]:g}. To this comes
{condition} times the change of the result in float64 when each argument moves by half a unit in its last place, which
is what sums whose terms cancel may lose. Where float64 is another result, as at the steps of `floor_divide`, or there
is none, it is compared with the host's in the same type: {by_host} operators that pass have such samples, *by the
host's*. Operators that draw random numbers, or whose contents are not defined, are compared by shape and type alone:
{drawn} of those that pass, marked *drawn*. Samples with other types, such as float64 or complex results, are left out,
and never count as passed.
"""
TABLE = """
## What is registered

Each is entered for the device in the form that returns its results; the forms in place and with `out=` are made of it.
*Decompositions* are PyTorch's, and each part of them runs on the device. Besides these, PyTorch makes what it calls
composite operators (`linear`, `matmul`, `reshape`, `einsum`, …) of them, and has views for every device.
"""


def torch(
    samples: Annotated[
        int | None, typer.Option(help="At most so many of each operator and type; all if not given.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Operators, with commas between; all if not given.")] = None,
    write: Annotated[Path | None, typer.Option(help="A file for the page; without it, it is printed.")] = None,
) -> None:
    """PyTorch's own samples: operators that pass all of them on the device, forward and backward; takes an hour."""
    try:
        from sley.runtime.frameworks import torch as sley_torch
        from sley.runtime.frameworks.torch_device import score
    except ImportError as error:
        raise typer.BadParameter(f"{error}: {extra('torch')}") from None
    assert sley_torch
    wanted = None if only is None else set(only.split(","))
    operators = [op for op in score.operators() if wanted is None or score.full_name(op) in wanted]
    page = torch_page([outcome for op in operators for outcome in score.run_types(op, samples)], samples)
    if write is None:
        typer.echo(page)
    else:
        write.write_text(page)


def torch_page(outcomes: list[Any], most: int | None = None) -> str:
    """The page of outcomes of operators in both types."""
    import torch as pytorch

    from sley.runtime.frameworks.torch_device import agreement, score
    from sley.runtime.frameworks.torch_device.registry import ENTRIES

    scores = score.operator_scores(outcomes)
    whole, rest = [s for s in scores if s.whole], [s for s in scores if not s.whole]
    lines = [
        HEAD.format(
            version=pytorch.__version__.partition("+")[0],
            whole=len(whole),
            count=len(scores),
            float32=agreement.TOLERANCES[pytorch.float32],
            bfloat16=agreement.TOLERANCES[pytorch.bfloat16],
            condition=agreement.CONDITION,
            by_host=sum("by the host's" in s.remark for s in whole),
            which="all their samples"
            if most is None
            else f"the first {most} samples of each type, which is what was run,",
            drawn=sum("drawn" in s.remark for s in whole),
        ),
        "## Operators that pass",
        "",
        "| operator | float32 | bfloat16 | left out | |",
        "|---|---|---|---|---|",
        *(f"| {_name(s.name)} | {s.text('float32')} | {s.text('bfloat16')} | {s.other} | {s.remark} |" for s in whole),
        "",
        "## Others",
        "",
        "| operator | float32 | bfloat16 | left out | the first that was said |",
        "|---|---|---|---|---|",
        *(
            f"| {_name(s.name)} | {s.text('float32')} | {s.text('bfloat16')} | {s.other} | {_cell(s.reason)} |"
            for s in rest
        ),
        TABLE,
        "| family | operators |",
        "|---|---|",
    ]
    families: dict[str, list[str]] = {}
    for entry in ENTRIES.values():
        families.setdefault(entry.family, []).append(_name(entry.name))
    lines += [f"| {family} | {', '.join(sorted(names))} |" for family, names in families.items()]
    return "\n".join(lines) + "\n"


def _name(name: str) -> str:
    return f"`{name}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "\\<").replace("*", "\\*")[:240]
