"""``sley fpga area`` and ``sley fpga report``: what designs take, and how fast they are."""

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.outputs import check_output
from sley.fpga.commands.configuration import chosen_configuration
from sley.fpga.flow.toolchain import require_tools


def area(
    config: Annotated[str, typer.Argument(help="Preset of a chip, or a JSON file like sley.json.")] = "nano",
    design: Annotated[
        str, typer.Option("--design", help="system (chip, bridge, memory), or a block; a wrong name lists them.")
    ] = "system",
    family: Annotated[str, typer.Option("--family", help="ecp5, ice40, gowin, xc7, or xcu.")] = "ecp5",
    depth: Annotated[int, typer.Option("--depth", min=0, help="Levels of the hierarchy to tell apart.")] = 3,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for netlist and log.", file_okay=False)] = Path(
        "build"
    ),
) -> None:
    """Print what each block of a design takes after synthesis, and the LUTs on the longest paths between registers."""
    require_tools()
    from sley.fpga.devices.family import FAMILIES
    from sley.fpga.netlist.levels import read_paths
    from sley.fpga.report.area import DESIGNS, markdown, measure, paths_markdown

    for known, asked, hint in ((DESIGNS, design, "--design"), (FAMILIES, family, "--family")):
        if asked not in known:
            raise typer.BadParameter(f"no {hint[2:]} {asked!r}; there are {', '.join(known)}", param_hint=hint)
    chip = chosen_configuration(config)
    made = measure(DESIGNS[design](chip), FAMILIES[family], output, depth)
    typer.echo(markdown(f"{design} of {chip.name}", FAMILIES[family], made))
    typer.echo(paths_markdown(read_paths(output / "sley.json", "sley", FAMILIES[family])), nl=False)


def report(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for bitstreams, reports and logs.", file_okay=False)
    ] = Path("build"),
    page: Annotated[
        Path | None, typer.Option("--page", help="Markdown file to write the table to; standard output when absent.")
    ] = None,
    only: Annotated[str, typer.Option("--only", help="Designs whose name and device have this in it.")] = "",
) -> None:
    """Implement the matrix of designs and devices, and print size and speed of each. Takes hours for all of it."""
    require_tools()
    from sley.fpga.report.report import cells, implement_row, markdown, matrix

    rows = [row for row in matrix() if only in f"{row.name} {row.device.name}"]
    if not rows:
        names = "; ".join(f"{row.name} {row.device.name}" for row in matrix())
        raise typer.BadParameter(f"no design has {only!r} in its name; there are {names}", param_hint="--only")
    check_output(page)
    done = []
    for row in rows:
        typer.echo(f"{row.name} on {row.device.name} ...", err=True)
        done.append(cells(row, implement_row(row, output)))
    text = markdown(done)
    if page is None:
        typer.echo(text, nl=False)
    else:
        page.write_text(text)
