"""``sley bench onnx``: the tests of onnx itself, by operator."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sley.abi.install import extra

HEAD = """# ONNX operators

What the [ONNX backend](../guides/networks.md#run-an-onnx-model) passes of the tests that onnx {version} has for
backends, as `sley bench onnx` prints it. An operator counts if some of its cases are on types of the device
({types}), and all of these pass. int64 is int32 on the device; integers beyond it are refused.
uint8 counts for operators in which it stands for reals, or is less a zero point: there it is held as int8, 128 less.
Inputs that decide shapes, axes or numbers of steps, and weights of convolutions, are taken as constants when a case is
compiled, though the case gives them as inputs.

**{whole} of {count} operators count**; {folded} of them are *folded*: their cases give everything as constants or
shapes, so the result is known when the model is compiled and the device has nothing to do. Besides, {expanded} of
{all_expanded} cases pass in which an operator is replaced by those that its specification makes it of.

A case on other types is left out, and never counts as passed. What is not supported is refused by an error that says
what is missing.
"""


def onnx(
    engine: Annotated[str, typer.Option(help="Where cases run.")] = "model:base?memory=64M",
    write: Annotated[Path | None, typer.Option(help="A file for the page; without it, it is printed.")] = None,
) -> None:
    """The tests of onnx for backends: operators that pass all their cases on types of the device."""
    try:
        from sley.runtime.frameworks.from_onnx import score
    except ImportError as error:
        raise typer.BadParameter(f"{error}: {extra('onnx')}") from None
    page = onnx_page([score.run_case(case, engine) for case in score.cases()])
    if write is None:
        typer.echo(page)
    else:
        write.write_text(page)


def onnx_page(results: list[Any]) -> str:
    """The page of results of all cases."""
    from onnx import __version__

    from sley.runtime.frameworks.from_onnx.score import EXPANDED, TYPES, operator_scores

    scores = operator_scores(results)
    whole, rest = [s for s in scores if s.whole], [s for s in scores if not s.whole]
    expanded = [result for result in results if EXPANDED in result.name and result.outcome != "type"]
    lines = [
        HEAD.format(
            version=__version__,
            types=", ".join(TYPES),
            whole=len(whole),
            count=len(scores),
            folded=sum(s.all_folded for s in whole),
            expanded=sum(result.outcome == "pass" for result in expanded),
            all_expanded=len(expanded),
        ),
        "## Operators that count",
        "",
        "| operator | passed | on types of the device | of all cases | |",
        "|---|---|---|---|---|",
        *(f"| {s.name} | {s.passed} | {s.on_types} | {s.cases} | {_folded(s)} |" for s in whole),
        "",
        "## Others",
        "",
        "| operator | passed | on types of the device | of all cases | reason |",
        "|---|---|---|---|---|",
        *(f"| {s.name} | {s.passed} | {s.on_types} | {s.cases} | {_cell(s.reason)} |" for s in rest),
    ]
    return "\n".join(lines) + "\n"


def _folded(score: Any) -> str:
    if score.all_folded:
        return "folded"
    return f"{score.folded} folded" if score.folded else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
