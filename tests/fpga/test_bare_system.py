"""A board without a chip: its line and its memory."""

import random
from types import SimpleNamespace

import pytest

from sley.abi.config import preset
from sley.fpga.bridge import link
from sley.fpga.bridge.transport import FpgaTransport
from sley.fpga.memory.block_ram import BlockMemory
from sley.fpga.system import BareSystem
from sley.hw.rtlil import component_rtlil
from sley.sim.board.board import SimulatedBoard
from sley.sim.board.host_uart import HostedDesign
from sley.sim.board.port import BoardPort
from sley.sim.build.toolchain import find_c_compiler

CLOCKS, BAUD, MEMORY_BYTES = 4, 25_000, 4096


@pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")
def test_memory_is_there_and_registers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    config = preset("nano")
    design = BareSystem(config, CLOCKS * BAUD, BAUD, BlockMemory(config, MEMORY_BYTES))
    board = SimulatedBoard(component_rtlil(HostedDesign(design, CLOCKS), "board"))
    monkeypatch.setattr(link, "time", SimpleNamespace(monotonic=lambda: board.cycles / (CLOCKS * BAUD)))
    try:
        transport = FpgaTransport(BoardPort(board), BAUD)
        assert transport.memory_bytes == MEMORY_BYTES
        data = random.Random(3).randbytes(1000)
        transport.write_memory(5, data)
        assert transport.read_memory(5, 1000) == data
        assert not transport.wait_irq(10)
        with pytest.raises(OSError, match="0x10"):
            transport.read32(0x10)
        transport.write32(0x20, 1)
        with pytest.raises(OSError, match="0x20"):
            transport.read_memory(0, 4)
    finally:
        board.close()
