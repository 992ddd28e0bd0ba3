"""The registers of the pins, with a part on the opposite clock edge."""

from types import SimpleNamespace
from typing import Any

import pytest
from amaranth import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Signal
from amaranth.lib import io
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from sley.abi.config import ChipConfig, preset
from sley.fpga.memory.sdram.memory import SdramMemory
from sley.fpga.memory.sdram.part import COMMON_32M
from sley.fpga.memory.sdram.pins import SdramPins
from sley.fpga.testing.sdram_chip import SdramChip, SdramRule
from sley.hw.memory.axi import axi4_signature
from sley.hw.testing.axi_manager import AxiManager
from sley.hw.testing.streams import StreamBench, StreamError

PART = COMMON_32M.__class__("small", row_bits=3, power_up=2_000)
WIDTHS = {"clk_en": 1, "cs": 1, "ras": 1, "cas": 1, "we": 1, "ba": 2, "a": 11, "dqm": 2}
INVERTED = ("cs", "ras", "cas", "we")


class OnPins(Component):
    """Controller, pins as a board has them, and a part whose clock is the inverse, or not."""

    bus: Any
    fault: Signal
    selected: Signal

    def __init__(self, config: ChipConfig, clock_hz: int, edge: str) -> None:
        self._memory = SdramMemory(config, clock_hz, PART)
        self._chip = SdramChip(PART, clock_hz)
        self._edge = edge
        super().__init__(
            {"bus": In(axi4_signature(config)), "fault": Out(len(SdramRule)), "selected": Out(1)},
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.part = ClockDomain("part", clk_edge=self._edge, reset_less=True)
        m.d.comb += ClockSignal("part").eq(ClockSignal("sync"))
        ports = SimpleNamespace(
            **{name: io.SimulationPort("o", width, invert=name in INVERTED) for name, width in WIDTHS.items()},
            dq=io.SimulationPort("io", 16),
        )
        m.submodules.memory = memory = self._memory
        m.submodules.pins = pins = SdramPins(PART.row_bits, ports)
        m.submodules.chip = DomainRenamer("part")(chip := self._chip)
        connect(m, flipped(self.bus), memory.bus)
        connect(m, memory.sdram, pins.sdram)
        m.d.comb += [
            chip.sdram.command.eq(Cat(~ports.we.o, ~ports.cas.o, ~ports.ras.o)),
            chip.sdram.bank.eq(ports.ba.o),
            chip.sdram.address.eq(ports.a.o),
            chip.sdram.mask.eq(ports.dqm.o),
            chip.sdram.out.eq(ports.dq.o),
            chip.sdram.drive.eq(ports.dq.oe[0]),
            ports.dq.i.eq(chip.sdram.data),
            self.fault.eq(chip.fault),
            self.selected.eq(ports.clk_en.o & ~ports.cs.o),
        ]
        return m


def run(config: ChipConfig, clock_hz: int, edge: str) -> None:
    dut = OnPins(config, clock_hz, edge)
    bench = StreamBench(dut, seed=1, timeout=10_000)
    AxiManager(bench, config, dut.bus, region=range(PART.memory_bytes), operations=80, longest=16, gap=0.1)
    seen = []

    async def watch(ctx: Any) -> None:
        while True:
            seen.append((await ctx.tick().sample(dut.fault, dut.selected))[2:])

    bench.add(watch)
    bench.run()
    assert {fault for fault, _ in seen[2:]} == {0}
    assert all(selected for _, selected in seen[2:])


@pytest.mark.parametrize(
    ("name", "mhz"), [("nano", 25), pytest.param("edge", 40, marks=pytest.mark.slow), ("nano", 133)]
)
def test_pins(name: str, mhz: int) -> None:
    """At 133 MHz the cycles alone are looked at: of the path through pins and board nothing is modelled."""
    run(preset(name), mhz * 1_000_000, "neg")


def test_without_the_inverted_clock_data_are_wrong() -> None:
    with pytest.raises(StreamError, match=r"beat \d+ of Burst\(.*\) is 0x[0-9a-f]+, not "):
        run(preset("nano"), 25_000_000, "pos")
