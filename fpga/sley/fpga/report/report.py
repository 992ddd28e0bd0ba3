"""Size and speed of designs on devices, as a table."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sley.abi.config import ChipConfig, preset
from sley.fpga.boards.board import Board, BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.devices.device import DEVICES, Device, device_of
from sley.fpga.flow.implementation import Implementation, implement
from sley.fpga.flow.synthesis import Synthesis
from sley.fpga.flow.toolchain import tool_versions
from sley.fpga.report.area import DESIGNS, measure
from sley.fpga.report.blocks import BLOCKS
from sley.fpga.report.harness import Harness
from sley.hw.core.matrix.array import SystolicArray

MEASURED_BLOCKS = ("execute", "load", "matrix", "memory-port", "semaphores", "store", "translate", "vector")


@dataclass(frozen=True)
class Row:
    """A design on a device. ``clock_hz`` is what the tools are asked for; ``macs`` int8 products in a cycle.

    ``dense``: see ``synthesise``; ``array_blocks``: see ``annotate_platform``. Without a ``board`` it is synthesised
    and no more.
    """

    name: str
    device: Device
    macs: int
    design: Callable[[], Any]
    board: Board | None = None
    clock_hz: int = 0
    dense: bool = False
    array_blocks: int | None = None


def _int8(size: int) -> ChipConfig:
    return preset("nano").replace(name=f"{size}x{size}", array=size, scratchpad_rows=512, accumulator_rows=256)


def _array(size: int, board: Board, clock_hz: int) -> Row:
    config, device = _int8(size), device_of(board.platform())
    return Row(_array_name(size), device, config.peak_macs, lambda: Harness(SystolicArray(config)), board, clock_hz)


def _unplaced_array(size: int, device: Device) -> Row:
    config = _int8(size)
    return Row(_array_name(size), device, config.peak_macs, lambda: SystolicArray(config))


def _array_name(size: int) -> str:
    return f"array {size}x{size}, int8"


def _blocks(board: Board) -> tuple[Row, ...]:
    """Blocks of the board's chip alone: where the slowest paths of a chip come from."""
    config, device = board.config, device_of(board.platform())

    def row(name: str) -> Row:
        return Row(f"block {name}", device, 0, lambda: Harness(BLOCKS[name](config)), board, 120_000_000)

    return tuple(row(name) for name in MEASURED_BLOCKS)


def _line(board: Board) -> Row:
    """What ``sley fpga build --without-chip`` builds."""
    return Row("bridge and memory", device_of(board.platform()), 0, board.line, board, board.clock_hz)


def _chip(
    board: Board, config: ChipConfig | None = None, array_blocks: int | None = None, clock_hz: int | None = None
) -> Row:
    """What ``sley fpga build`` builds, of the board's chip or another one."""
    config = config or board.config
    device = device_of(board.platform())
    system = partial(board.system, config)
    name = f"chip {config.name}" + (f", array of {array_blocks} DSP" if array_blocks else "")
    clock_hz = clock_hz or board.clock_hz
    return Row(name, device, config.peak_macs, system, board, clock_hz, dense=True, array_blocks=array_blocks)


def _unplaced_chip(name: str, device: Device) -> Row:
    """The same without pins and clock."""
    config = preset(name)
    return Row(f"chip {name}", device, config.peak_macs, lambda: DESIGNS["system"](config))


_EDGE1 = preset("edge").replace(name="edge1", operand_types=("int8",), vector_lanes=1, gather=False)
"""``edge`` without bf16 and lists, and with one fp32 lane."""
_EDGE_BF16 = preset("edge").replace(name="edgebf1", vector_lanes=1, gather=False)
"""``edge`` without lists and with one fp32 lane."""
_WIDE1 = preset("nano").replace(
    name="16x16", array=16, vector_lanes=1, scratchpad_rows=1024, accumulator_rows=256, program_words=512
)
"""``nano`` around an array of 16 x 16, with one fp32 lane."""
_ULX3S, _ULX3S_25F, _ECPIX5, _ICEBREAKER = (BOARDS[name] for name in ("ulx3s", "ulx3s_25f", "ecpix5", "icebreaker"))
_GW2A, _XC7A100T, _XCKU040 = DEVICES["GW2A-LV18PG256C8/I7"], DEVICES["xc7a100ti"], DEVICES["xcku040"]


def matrix() -> tuple[Row, ...]:
    """What ``sley fpga report`` implements unless told otherwise."""
    return (
        _array(4, _ULX3S_25F, 300_000_000),
        _array(8, _ULX3S_25F, 210_000_000),
        _array(4, _ULX3S, 300_000_000),
        _array(8, _ULX3S, 280_000_000),
        _array(16, _ULX3S, 210_000_000),
        _array(4, _ICEBREAKER, 60_000_000),
        *(_unplaced_array(4, device) for device in (_GW2A, _XC7A100T, _XCKU040)),
        *_blocks(_ULX3S),
        _line(_ULX3S_25F),
        _line(_ICEBREAKER),
        _chip(_ULX3S_25F),
        _chip(_ULX3S),
        _chip(_ECPIX5),
        _chip(_ECPIX5, array_blocks=8),
        _chip(_ECPIX5, _EDGE1),
        _chip(_ECPIX5, _EDGE1, array_blocks=32),
        _chip(_ECPIX5, _EDGE_BF16, clock_hz=60_000_000),
        _chip(_ECPIX5, _WIDE1),
        *(_unplaced_chip("nano", device) for device in (_GW2A, _XC7A100T, _XCKU040)),
    )


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
    "MMAC/s/DSP",
    "critical path",
    "min",
)


def implement_row(row: Row, folder: Path) -> Implementation | Synthesis:
    """Implements one row below ``folder``; the clock may be missed, as the report says what was reached."""
    place = folder / f"{row.device.name}-{row.name}".replace(", ", "-").replace(" ", "-")
    if row.board is None:
        return measure(row.design(), row.device.family, place, 0, row.device.capacity.dsp)
    top = BoardTop(row.design(), row.clock_hz)
    return implement(row.board.platform(), top, place, dense=row.dense, may_miss=True, array_blocks=row.array_blocks)


def cells(row: Row, made: Implementation | Synthesis) -> tuple[str, ...]:
    """The row of the table. An operation is a multiplication or an addition: two for each MAC."""
    total = made.resources if isinstance(made, Implementation) else made.top.total
    speed: tuple[str, ...] = ("-", "-", "-")
    path = "synthesis only" if row.device.fits(total) else "synthesis only, does not fit"
    if isinstance(made, Implementation):
        share = made.path.routing / made.path.delay
        path = f"{made.path.delay:.1f} ns, {share:.0%} routing: {' → '.join(made.path.blocks)}"
        speed = (
            f"{made.constraint:.0f}",
            f"{made.fmax:.1f}",
            f"{2 * row.macs * made.fmax / 1000:.2f}" if row.macs else "-",
        )
    return (
        row.name,
        row.device.name,
        *(f"{count:,}" for count in (total.lut, total.ff, total.dsp, total.bram)),
        *speed,
        f"{row.macs / total.dsp:.2f}" if total.dsp else "no DSP",
        f"{row.macs * made.fmax / total.dsp:.0f}" if isinstance(made, Implementation) and total.dsp else "-",
        path,
        f"{made.seconds / 60:.1f}",
    )


def markdown(rows: list[tuple[str, ...]]) -> str:
    """The table as a page of the documentation, with the versions of the tools."""
    versions = ", ".join(f"{package} {version}" for package, version in tool_versions().items())
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# Size and speed on FPGAs\n\nWritten by `sley fpga report`, with {versions}.\n\n{table}\n"
