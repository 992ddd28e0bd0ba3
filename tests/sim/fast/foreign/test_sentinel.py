"""Sentinel, a RISC-V processor with microcode in a ROM: its parts, and the whole with a program in a memory."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from bench import cases, lockstep
from package import Package

align, alu, control = (Package(f"sentinel_cpu.{name}") for name in ("align", "alu", "control"))
datapath, decode, exception = (Package(f"sentinel_cpu.{name}") for name in ("datapath", "decode", "exception"))
top, ucoderom = Package("sentinel_cpu.top"), Package("sentinel_cpu.ucoderom")

FIBONACCI = (
    0x00000293,  # addi x5, x0, 0
    0x00100313,  # addi x6, x0, 1
    0x08000393,  # addi x7, x0, 128
    0x00628E33,  # loop: add x28, x5, x6
    0x000302B3,  # add x5, x6, x0
    0x000E0333,  # add x6, x28, x0
    0x01C3A023,  # sw x28, 0(x7)
    0x0003AE83,  # lw x29, 0(x7)
    0x01D39423,  # sh x29, 8(x7)
    0x00839F03,  # lh x30, 8(x7)
    0x41EEDF33,  # sra x30, x29, x30
    0x01EEBF33,  # sltu x30, x29, x30
    0xFE1FF06F,  # jal x0, loop
)


class Computer(wiring.Component):
    """The processor, and 64 words of memory that answer after a cycle."""

    irq: In(1)
    slow: In(1)
    address: Out(30)
    data: Out(32)
    write: Out(1)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.cpu = cpu = top.Top()
        m.submodules.ram = ram = memory.Memory(shape=32, depth=64, init=FIBONACCI)
        read, write, bus = ram.read_port(), ram.write_port(granularity=8), cpu.bus
        m.d.comb += [read.addr.eq(bus.adr), write.addr.eq(bus.adr), write.data.eq(bus.dat_w), bus.dat_r.eq(read.data)]
        with m.If(bus.cyc & bus.stb & ~bus.ack & ~self.slow):
            m.d.sync += bus.ack.eq(1)
            m.d.comb += write.en.eq(bus.sel & bus.we.replicate(4))
        with m.Else():
            m.d.sync += bus.ack.eq(0)
        m.d.comb += [cpu.irq.eq(self.irq), self.address.eq(bus.adr), self.data.eq(bus.dat_w), self.write.eq(bus.we)]
        return m


DESIGNS: dict[str, Callable[[], Any]] = {
    "read_data_align": lambda: align.ReadDataAlign(),
    "alu": lambda: alu.ALU(32),
    "register_file": lambda: datapath.RegFile(formal=False),
    "decode": lambda: decode.Decode(),
    "computer": lambda: Computer(),
}


MORE: dict[str, Callable[[], Any]] = {
    "address_align": lambda: align.AddressAlign(),
    "write_data_align": lambda: align.WriteDataAlign(),
    "alu_operand": lambda: alu.BSrcMux(),
    "control_registers": lambda: datapath.CSRFile(),
    "data_path": lambda: datapath.DataPath(),
    "exceptions": lambda: exception.ExceptionRouter(),
    "microcode": lambda: ucoderom.UCodeROM(),
    "control": lambda: control.Control(),
    "processor": lambda: top.Top(),
    "formal_processor": lambda: top.Top(formal=True),
}
"""Those that CI has no time for."""


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name])
