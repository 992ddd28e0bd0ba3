"""Dividers of the PLLs, and how the clock of an ECP5 begins."""

from pathlib import Path
from typing import Any

import pytest
from amaranth import ClockDomain, Elaboratable, Module, Signal
from amaranth.hdl import Fragment
from icarus_bench import compile_bench, needs_icarus, run_bench, verilog

from sley.fpga.boards.clock import PLLS, PllClock, pll_dividers
from sley.fpga.boards.known import BOARDS

BENCH = """
module IB(input I, output O); assign O = I; endmodule
module DCCA(input CLKI, CE, output CLKO); wire #1 late = CE; assign CLKO = CLKI & late; endmodule
module EHXPLLL #(parameter CLKI_DIV = 1, CLKFB_DIV = 1, CLKOP_DIV = 1, CLKOP_ENABLE = "", CLKOP_CPHASE = 0,
                 CLKOP_FPHASE = 0, FEEDBK_PATH = "")
  (input CLKI, CLKFB, RST, STDBY, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG, PLLWAKESYNC, ENCLKOP,
   output CLKOP, output LOCK);
  assign CLKOP = bench.made, LOCK = bench.locked;
endmodule
module bench;
  reg made = 0, locked = 0;
  integer after, pulses = 0, rise, broken = 0;
  sley dut(.\\clk25_0__io (1'b0));
  always @(posedge dut.clk) begin rise = $time; pulses = pulses + 1; if (!locked) broken = broken + 1; end
  always @(negedge dut.clk) if ($time > 0 && $time - rise != 10) broken = broken + 1;
  initial begin
    $value$plusargs("after=%d", after);
    repeat (20) begin #3 made = 1; #2 made = 0; end  // not steady yet
    fork
      #(after) locked = 1;
      repeat (40) begin #10 made = 1; #10 made = 0; end
    join
    $display("%0d %0d", broken, pulses > 30 && dut.count == pulses);
  end
endmodule
"""
"""A PLL that locks at any time of its clock's period, and a gate that would let through a part of a pulse."""


@pytest.mark.parametrize(
    ("family", "input_mhz", "mhz"),
    [
        *(("ecp5", 25, mhz) for mhz in (10, 25, 40, 45, 50, 100, 120, 200, 250)),
        *(("ice40", 12, mhz) for mhz in (18, 24, 30, 48, 60, 120)),
        *(("gowin", 27, mhz) for mhz in (27, 36, 54, 108)),
        *(("xc7", 100, mhz) for mhz in (25, 50, 80, 100, 200)),
    ],
)
def test_dividers_make_the_frequency_within_the_limits(family: str, input_mhz: int, mhz: int) -> None:
    pll = PLLS[family]
    found = pll_dividers(pll, input_mhz * 1_000_000, mhz * 1_000_000)
    compared = input_mhz * 1e6 * found.feedback / found.reference
    oscillator = compared * found.output if pll.output_fed_back else compared
    assert (compared if pll.output_fed_back else compared / found.output) == mhz * 1e6
    assert pll.oscillator[0] <= oscillator <= pll.oscillator[1]
    assert pll.detector[0] <= input_mhz * 1e6 / found.reference <= pll.detector[1]
    assert found.reference in pll.reference
    assert found.feedback in pll.feedback
    assert found.output in pll.output


def test_a_frequency_that_cannot_be_made_names_its_neighbours() -> None:
    with pytest.raises(
        ValueError, match=r"the clock is 47\.3 MHz; from 25 MHz the PLL makes .* or .* MHz, the closest"
    ):
        pll_dividers(PLLS["ecp5"], 25_000_000, 47_300_000)


@pytest.mark.parametrize(("family", "mhz"), [("ice40", 12), ("gowin", 27), ("xc7", 100)])
def test_a_clock_that_is_not_held_needs_a_reset(family: str, mhz: int) -> None:
    with pytest.raises(ValueError, match=f"domain sync has no reset; the clock of {family} is not held"):
        Fragment.get(PllClock(ClockDomain("sync", reset_less=True), family, mhz * 1_000_000, mhz * 1_000_000), None)


class Counting(Elaboratable):
    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        m.submodules.clock = PllClock(sync, "ecp5", 25_000_000, 50_000_000)
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        return m


@needs_icarus
def test_gated_clock_begins_with_a_whole_pulse(tmp_path: Path) -> None:
    """Behind the lock, whenever that comes, and then with all of them."""
    BOARDS["ulx3s"].platform().prepare(Counting(), "sley").extract(tmp_path)
    verilog(tmp_path, "read_rtlil sley.il; hierarchy -top sley; proc; write_verilog -noattr sley.v")
    compile_bench(tmp_path, BENCH, "sley.v")
    for after in range(100, 121):
        assert run_bench(tmp_path, f"+after={after}") == ["0", "1"], after
