"""Size and speed of designs on devices, as a table."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sley.abi.config import preset
from sley.fpga.boards.board import Board, BoardTop
from sley.fpga.boards.known import BOARDS, ULX3S_DEVICES, ulx3s
from sley.fpga.harness import Harness
from sley.fpga.implementation import Implementation, implement
from sley.fpga.toolchain import tool_versions
from sley.hw.core.array import SystolicArray


@dataclass(frozen=True)
class Row:
    """A design on a device. ``clock_hz`` is what the tools are asked for; ``macs`` int8 products in a cycle."""

    name: str
    device: str
    clock_hz: int
    macs: int
    design: Callable[[], Any]


def _arrays(device: str, size: int, clock_hz: int) -> Row:
    config = preset("nano").replace(name=f"{size}x{size}", array=size, scratchpad_rows=512, accumulator_rows=256)
    return Row(f"array {size}x{size}, int8", device, clock_hz, config.peak_macs, lambda: Harness(SystolicArray(config)))


def _chip(device: str, board: Board) -> Row:
    """What ``sley fpga build`` builds."""
    return Row(f"chip {board.config.name}", device, board.clock_hz, board.config.peak_macs, board.system)


MATRIX = (
    _arrays("ecp5-25f", 4, 250_000_000),
    _arrays("ecp5-85f", 4, 250_000_000),
    _arrays("ecp5-85f", 8, 200_000_000),
    _chip("ecp5-85f", BOARDS["ulx3s"]),
)
"""What ``sley fpga report`` implements unless told otherwise."""

COLUMNS = (
    "design",
    "device",
    "LUT",
    "FF",
    "DSP",
    "BRAM",
    "asked MHz",
    "Fmax MHz",
    "GOP/s",
    "MAC/DSP",
    "critical path",
    "min",
)


def implement_row(row: Row, folder: Path) -> Implementation:
    """Implements one row below ``folder``; the clock may be missed, as the report says what was reached."""
    place = folder / f"{row.device}-{row.name.replace(', ', '-').replace(' ', '-')}"
    place.mkdir(parents=True, exist_ok=True)
    return implement(ulx3s(ULX3S_DEVICES[row.device]), BoardTop(row.design(), row.clock_hz), place, may_miss=True)


def cells(row: Row, made: Implementation) -> tuple[str, ...]:
    """The row of the table. An operation is a multiplication or an addition: two for each MAC."""
    used = made.used
    multipliers = used.get("MULT18X18D", 0)
    return (
        row.name,
        row.device,
        f"{used['TRELLIS_COMB']:,}",
        f"{used['TRELLIS_FF']:,}",
        str(multipliers),
        str(used.get("DP16KD", 0)),
        f"{made.constraint:.0f}",
        f"{made.fmax:.1f}",
        f"{2 * row.macs * made.fmax / 1000:.2f}",
        f"{row.macs / multipliers:.2f}" if multipliers else "no DSP",
        f"{made.path.delay:.1f} ns, {made.path.routing / made.path.delay:.0%} routing: {' → '.join(made.path.blocks)}",
        f"{made.seconds / 60:.1f}",
    )


def markdown(rows: list[tuple[str, ...]]) -> str:
    """The table as a page of the documentation, with the versions of the tools."""
    versions = ", ".join(f"{package} {version}" for package, version in tool_versions().items())
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# Size and speed on FPGAs\n\nWritten by `sley fpga report`, with {versions}.\n\n{table}\n"
