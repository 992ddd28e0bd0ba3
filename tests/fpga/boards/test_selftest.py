"""The self-test at the serial line of simulated boards: memories and lines that are at fault, and a whole board."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from sley.abi.config import preset
from sley.bench.selftest.checks import Outcome
from sley.bench.selftest.report import Report
from sley.bench.selftest.run import selftest
from sley.fpga.boards.simulated import BAUD
from sley.fpga.bridge import link
from sley.fpga.bridge.transport import FpgaTransport
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.memory.storage import BlockRam, storage_signature
from sley.fpga.system import BareSystem
from sley.hw.rtlil import component_rtlil
from sley.sim.board.board import SimulatedBoard
from sley.sim.board.design import open_board
from sley.sim.board.host_uart import HostedDesign
from sley.sim.board.port import BoardPort
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.testing.faulty_line import FaultyLine

pytestmark = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")
CLOCKS = 4
MEMORY_BYTES = 1 << 14
DEAD_BIT = 9
STUCK_ROW, STUCK_BIT = 300, 6


class FaultyRam(wiring.Component):
    """Block RAM with a line of the address, or a bit of a row, at fault."""

    single_port = False
    port: Any

    def __init__(self, depth: int, width: int, fault: str) -> None:
        self._inner, self._fault = BlockRam(depth, width), fault
        super().__init__({"port": In(storage_signature(depth, width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = inner = self._inner
        connect(m, flipped(self.port), inner.port)
        if self._fault == "line":
            dead = ~(1 << DEAD_BIT)
            m.d.comb += [
                inner.port.read_row.eq(self.port.read_row & dead),
                inner.port.write_row.eq(self.port.write_row & dead),
            ]
        if self._fault == "bit":
            with m.If(self.port.write_row == STUCK_ROW):
                m.d.comb += inner.port.write_data.eq(self.port.write_data | 1 << STUCK_BIT)
        return m


def storage(fault: str) -> Callable[[int, int], Any]:
    def make(depth: int, width: int) -> FaultyRam:
        return FaultyRam(depth, width, fault)

    make.single_port = False  # type: ignore[attr-defined]
    return make


def report_of(board: SimulatedBoard, monkeypatch: pytest.MonkeyPatch, rate: float = 0.0) -> Report:
    """The report; to the link a second is what the board's clock says. ``rate``: of faults of the line."""
    clock = SimpleNamespace(monotonic=lambda: board.cycles / (CLOCKS * BAUD))
    monkeypatch.setattr(link, "time", clock)
    line = FaultyLine(BoardPort(board), 0.0, 5)
    transport = FpgaTransport(line, BAUD)
    line.rate = rate
    try:
        return selftest(transport, "simulated", 0.0)
    finally:
        board.close()


@pytest.mark.parametrize("fault", ["line", pytest.param("bit", marks=pytest.mark.slow)])
def test_a_memory_at_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board without a chip, whose memory has a dead line or a stuck bit."""
    config = preset("nano")
    memory = BlockMemory(config, MEMORY_BYTES, storage(fault))  # type: ignore[arg-type]
    design = BareSystem(config, CLOCKS * BAUD, BAUD, memory)
    report = report_of(SimulatedBoard(component_rtlil(HostedDesign(design, CLOCKS), "board")), monkeypatch)
    assert report.board["clock_hz"] == str(CLOCKS * BAUD)
    failed = {check.name: check for check in report.failures if check.group == "memory"}
    if fault == "line":
        place = config.bus_bytes << DEAD_BIT
        found = [(d.where, d.found) for d in failed["lines of the address"].differences]
        assert ("address 0x0", f"what was written to {place:#x}") in found
    else:
        assert "lines of the address" not in failed
        place = STUCK_ROW * config.bus_bytes
        assert all(d.where.startswith(f"address {place:#x}, ") for d in failed["march"].differences)
        first = failed["march"].differences[0]
        assert int(first.expected, 16) ^ int(first.found, 16) == 1 << STUCK_BIT


@pytest.mark.slow
def test_a_line_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong but the line, which loses something now and then."""
    config = preset("nano")
    design = BareSystem(config, CLOCKS * BAUD, BAUD, BlockMemory(config, MEMORY_BYTES))
    board = SimulatedBoard(component_rtlil(HostedDesign(design, CLOCKS), "board"))
    report = report_of(board, monkeypatch, rate=0.0005)
    (losses,) = (check for check in report.failures if check.group == "link")
    assert losses.name == "losses"
    assert losses.differences[0].found != "0 losses"
    assert not [check for check in report.failures if check.group == "memory"]


@pytest.mark.slow
def test_a_whole_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chip, bridge and memory of nano, by the serial line: nothing fails, nothing is left out."""
    report = report_of(open_board(None, CLOCKS, 1 << 17), monkeypatch)
    assert [check for check in report.checks if check.outcome is not Outcome.PASSED] == []
    assert len(report.checks) > 70
