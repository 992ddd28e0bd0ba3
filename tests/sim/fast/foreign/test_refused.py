"""Designs that cannot be simulated by their nature, each with the sentence that says so; and a bench that must fail."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from bench import lockstep, ports_of, quiet
from package import Package

from sley.sim.errors import FastError
from sley.sim.fast.run.simulation import Simulation

jtag, xilinx = Package("luna.gateware.interface.jtag"), Package("luna.gateware.interface.serdes_phy.xc7_gtp")
fifo, crossing = Package("maia_hdl.fifo"), Package("maia_hdl.cdc")
recorder = Package("maia_hdl.recorder")

INSTANCE = r"{}\.py:\d+\]: an instance of {}, of which there is no description.*put a model in Amaranth in its place"


class Divided(wiring.Component):
    """luna's divider of the clock for out-of-band signals, and a counter that the divided clock drives."""

    count: Out(4)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.divider = divider = Package("luna.gateware.interface.serdes_phy.xc7").GTOOBClockDivider(125e6)
        m.domains.slow = slow = ClockDomain()
        m.d.comb += slow.clk.eq(divider.o)
        m.d.slow += self.count.eq(self.count + 1)
        return m


DESIGNS: dict[str, tuple[Callable[[], Any], str]] = {
    "jtag_registers": (lambda: jtag.JTAGRegisterInterface(), INSTANCE.format("jtag", "JTAGG")),
    "jtag_spi": (lambda: jtag.ECP5DebugSPIBridge(), INSTANCE.format("jtag", "JTAGG")),
    "transceiver_pll": (lambda: xilinx.GTPQuadPLL(Signal(), 100e6, 5e9), INSTANCE.format("xc7_gtp", "GTPE2_COMMON")),
    "vendor_fifo": (lambda: fifo.AsyncFifo18_36(), INSTANCE.format("fifo", "FIFO18E1")),
    "samples_between_clocks": (lambda: crossing.RxIQCDC("sync", "other", 12), INSTANCE.format("fifo", "FIFO18E1")),
    "recorder": (lambda: recorder.Recorder16IQ(0, 4096), INSTANCE.format("fifo", "FIFO18E1")),
    "divided_clock": (
        lambda: Divided(),
        "a clock that the design makes itself is not supported; clock the domain from",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_refused(name: str) -> None:
    make, what = DESIGNS[name]
    with quiet():
        design = make()
        with pytest.raises(FastError, match=what):
            Simulation.of(design, ports_of(design))


class Counter(wiring.Component):
    """Counts by a step that is the number of instances made so far."""

    run: In(1)
    count: Out(8)
    made = 0

    def __init__(self) -> None:
        Counter.made += 1
        self.step = Counter.made
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        with m.If(self.run):
            m.d.sync += self.count.eq(self.count + self.step)
        return m


@pytest.mark.slow
def test_the_bench_sees_a_difference() -> None:
    with pytest.raises(AssertionError, match=r"cycle \d+: top.count is 0x1, 0x2 in pysim"):
        lockstep(Counter)


@pytest.mark.slow
def test_the_bench_sees_that_nothing_happens() -> None:
    class Still(wiring.Component):
        run: In(1)
        count: Out(8)

        def elaborate(self, platform: Any) -> Module:
            m = Module()
            m.d.comb += self.count.eq(5)
            return m

    with pytest.raises(AssertionError, match="nothing ever changed"):
        lockstep(Still)
