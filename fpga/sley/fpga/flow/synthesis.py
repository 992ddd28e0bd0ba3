"""Synthesis of a design for a family of FPGAs, and what each of its blocks takes."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sley.fpga.devices.family import OWN_RESET, Dense, Family, Resources
from sley.fpga.errors import FlowError
from sley.fpga.flow.toolchain import require_tools, run_tool

GUARD = "setattr -mod -set keep_hierarchy 1 -set guarded 1 t:$mul %m"
"""Modules with a multiplier in them stay modules; see ``Family.guarded``."""

CONFLICT = r"(?<=Warning: )Driver-driver conflict for .*"
"""What Yosys says when it has made two drivers of one wire, and goes on."""


@dataclass(frozen=True)
class Block:
    """A module of the netlist with all below it. ``inner`` has those whose hierarchy was kept."""

    name: str
    total: Resources
    inner: tuple["Block", ...]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Block"]]:
        """All blocks from the outside in, with their depth."""
        yield depth, self
        for block in self.inner:
            yield from block.walk(depth + 1)

    def find(self, name: str) -> "Block":
        """The block of that name. Raises ``KeyError``."""
        for _, block in self.walk():
            if block.name == name:
                return block
        raise KeyError(name)


@dataclass(frozen=True)
class Synthesis:
    """A netlist: its top with the blocks in it, its cells by type, and the seconds that it took."""

    top: Block
    cells: Mapping[str, int]
    seconds: float


def synthesise(
    text: str,
    family: Family,
    folder: Path,
    *,
    name: str = "sley",
    depth: int = 0,
    edif: bool = False,
    dense: bool = False,
    resets: int = OWN_RESET,
) -> Synthesis:
    """Synthesises ``text``, RTLIL whose top is module ``name``; leaves netlist, script and log in ``folder``.

    Blocks keep their borders down to ``depth`` levels below the top: cells are counted for each, and nothing is
    optimised across. With 0 the design is flat, as on a board. The netlist that is left is flat in any case. ``dense``:
    fewer LUTs are worth more levels of them, and a reset that fewer than ``resets`` flip-flops share is in their LUTs;
    both make a difference on an ECP5.
    """
    require_tools()
    folder.mkdir(parents=True, exist_ok=True)
    kept = [module for module in re.findall(r"^module \\(\S+)", text, re.M) if module.count(".") in range(1, depth + 1)]
    # An element of an array, or a register of a memory, is called like a bit of a wire of that name, which abc9 cannot
    # tell apart (https://github.com/YosysHQ/yosys/issues/4349). Other names are kept, where that is possible, for the
    # report of the slowest path.
    hidden = "w:*" if kept else r"w:*\[*\]*"
    borders = [f"setattr -mod -set keep_hierarchy 1 {module.replace('$', chr(92) + '$')}" for module in kept]
    guards = [GUARD] if family.guarded else []
    lines = [
        f"read_rtlil {name}.il",
        "delete w:$verilog_initial_trigger",
        *borders,
        *guards,
        *_mapping(f"{family.script} -top {name}", f"rename -hide {hidden}", family.dense if dense else None, resets),
        *(_unguarded(borders) if guards else []),
        f"tee -q -o {name}.stat.json stat -json",
        *(["setattr -mod -unset keep_hierarchy", "flatten"] if kept else []),
        f"write_json {name}.json",
        *([f"write_edif -pvector bra {name}.edif"] if edif else []),
    ]
    (folder / f"{name}.il").write_text(text)
    (folder / f"{name}.ys").write_text("\n".join(lines) + "\n")
    began = time.monotonic()
    log = folder / f"{name}.rpt"
    run_tool("synthesis", ["yosys", "-q", "-l", log.name, f"{name}.ys"], folder, log)
    conflict = re.search(CONFLICT, log.read_text())
    if conflict:
        raise FlowError(f"synthesis failed: the netlist is not the design: {conflict[0]}; its log is {log}")
    return read_stat((folder / f"{name}.stat.json").read_text(), family, name, time.monotonic() - began)


def _mapping(script: str, hide: str, dense: Dense | None, resets: int) -> list[str]:
    """From the design to cells of the family: ``script`` in parts, with ``hide`` before LUTs are made."""
    if dense is None:
        return [f"{script} -run :map_luts", hide, f"{script} -run map_luts:"]
    script = f"{script} {dense.options}"
    return [
        f"{script} -run :map_gates",
        f"techmap -map +/techmap.v t:$alu r:Y_WIDTH<={dense.gates} %i",
        f"{script} -run map_gates:map_ffs",
        f"{dense.registers} -mince {dense.enables} -minsrst {resets}",
        f"{script} -run map_ffs:map_luts",
        hide,
        dense.mapper,
        "clean",
        f"{script} -run map_cells:",
    ]


def _unguarded(borders: list[str]) -> list[str]:
    """Makes one design again of what was guarded, and sees to it that no register of a sum was given away."""
    return [
        "setattr -mod -unset keep_hierarchy A:guarded",
        *borders,
        "flatten",
        "opt_clean",
        "select -assert-none t:SB_MAC16 r:C_REG=1'1 %i",
    ]


def read_stat(text: str, family: Family, top: str, seconds: float) -> Synthesis:
    """What Yosys' ``stat -json`` says of a design whose top is module ``top``."""
    modules = {
        module.removeprefix("\\"): found["num_cells_by_type"] for module, found in json.loads(text)["modules"].items()
    }
    cells: Counter[str] = Counter()

    def block(module: str) -> Block:
        own, inner = Resources(), []
        for cell, count in modules[module].items():
            if cell.removeprefix("\\") in modules:
                inner += [block(cell.removeprefix("\\")) for _ in range(count)]
                continue
            cells[cell] += count
            taken = family.cells.get(cell, Resources())
            own += Resources(*(count * value for value in (taken.lut, taken.ff, taken.dsp, taken.bram)))
        return Block(module, sum((b.total for b in inner), own), tuple(inner))

    return Synthesis(block(top), cells, seconds)
