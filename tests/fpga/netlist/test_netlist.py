"""Netlists with DSP blocks do what the design does, by Yosys' models of the cells, and ours of DSP blocks, in Icarus
Verilog."""

from pathlib import Path
from typing import Any

import pytest
from amaranth import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from icarus_bench import compile_beside, needs_icarus, run_bench

from sley.abi.config import preset
from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.devices.family import FAMILIES, Family
from sley.fpga.errors import FlowError
from sley.fpga.flow.implementation import netlist
from sley.fpga.netlist.carry_ends import trim_carry_chains
from sley.fpga.netlist.fanout import copy_drivers
from sley.fpga.report.area import measure
from sley.fpga.report.harness import Harness
from sley.hw.core.matrix.array import SystolicArray

pytestmark = needs_icarus
MODELS = {"ecp5": "ecp5", "gowin": "gowin", "ice40": "ice40", "xc7": "xilinx", "xcu": "xilinx"}
"""Folder of Yosys' models by family."""
DSP_BLOCKS = Path(__file__).with_name("dsp_blocks.v")
BENCH = """
module bench;
  reg clk = 0, rst = 0, swap, weights_valid, weights_rest;
  reg [31:0] weights, activations;
  reg [1:0] weights_row;
  wire [127:0] expected, found;
  integer cycle, equal = 0;
  gold g (.clk, .rst, .swap, .weights, .weights_valid, .weights_row, .weights_rest, .activations, .sums(expected));
  sley s (.clk, .rst, .swap, .weights, .weights_valid, .weights_row, .weights_rest, .activations, .sums(found));
  initial begin
    for (cycle = 0; cycle < 800; cycle = cycle + 1) begin
      swap = $random; weights = $random; activations = $random;
      weights_valid = $random; weights_row = $random; weights_rest = $random;
      #5 clk = 1;
      #5 clk = 0;
      if (cycle >= 400 && expected === found && ^expected !== 1'bx) equal = equal + 1;
    end
    $display("%0d", equal);
  end
endmodule
"""


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("family", "there", "taken"),
    [
        *((family, None, 16) for family in MODELS if family != "xcu"),
        ("ice40", 8, 6),
        ("ecp5", 12, 9),
        pytest.param("xcu", None, 16, marks=pytest.mark.campaign),  # the same cells as xc7
        pytest.param("ecp5", 8, 6, marks=pytest.mark.campaign),
    ],
)
def test_array(family: str, there: int | None, taken: int, tmp_path: Path) -> None:
    array: Any = SystolicArray(preset("nano"))
    made = measure(array, FAMILIES[family], tmp_path, 0, there)
    assert made.top.total.dsp == taken
    ends = trim_carry_chains(tmp_path / "sley.json", FAMILIES[family])
    copies = copy_drivers(tmp_path / "sley.json", FAMILIES[family], 4)
    assert (ends > 0, copies > 0) == (family == "ecp5",) * 2
    compile_beside(tmp_path, tmp_path / "sley.json", array, MODELS[family], BENCH, DSP_BLOCKS)
    assert run_bench(tmp_path) == ["400"]


class Tap(wiring.Component):
    """sum_o = sum_i + a * b, each with a register."""

    a: In(signed(8))
    b: In(signed(8))
    sum_i: In(signed(18))
    sum_o: Out(signed(18))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Signal(signed(8), reset_less=True), Signal(signed(8), reset_less=True)
        product, total = Signal(signed(16), reset_less=True), Signal(signed(18), reset_less=True)
        m.d.sync += [a.eq(self.a), b.eq(self.b), product.eq(a * b), total.eq(product + self.sum_i)]
        m.d.comb += self.sum_o.eq(total)
        return m


class Chain(wiring.Component):
    """Taps one behind the other: the register of a sum may be the result of one block or the operand of the next."""

    a: In(8).array(3)
    b: In(8).array(3)
    sum_i: In(signed(18))
    sum_o: Out(signed(18))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total: Any = self.sum_i
        for k in range(3):
            m.submodules[f"tap{k}"] = tap = Tap()
            m.d.comb += [tap.a.eq(self.a[k]), tap.b.eq(self.b[k]), tap.sum_i.eq(total)]
            total = tap.sum_o
        m.d.comb += self.sum_o.eq(total)
        return m


def test_a_sum_that_two_blocks_have_taken_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard is what makes the netlist right, and without it the fault is noticed."""
    assert measure(Chain(), FAMILIES["ice40"], tmp_path, 0).top.total.dsp == 3
    monkeypatch.setattr("sley.fpga.flow.synthesis.GUARD", "setattr -mod -set guarded 1 t:$mul %m")
    with pytest.raises(FlowError, match=r"synthesis failed: .*[Aa]ssert.*sley\.rpt"):
        measure(Chain(), FAMILIES["ice40"], tmp_path, 0)


def on_a_board(board: str) -> BoardTop:
    return BoardTop(Harness(SystolicArray(preset("nano"))), BOARDS[board].clock_hz)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("board", "array_blocks", "taken"), [("icebreaker", None, 6), ("icebreaker", 3, 3), ("ulx3s", 9, 9)]
)
def test_an_array_on_a_board_has_its_multipliers(
    board: str, array_blocks: int | None, taken: int, tmp_path: Path
) -> None:
    """Six of the eight blocks, or as said; Amaranth's platform alone does not say what family it is of."""
    platform = BOARDS[board].platform()
    assert netlist(platform, on_a_board(board), tmp_path, array_blocks=array_blocks).top.total.dsp == taken


@pytest.mark.campaign
def test_a_netlist_that_is_not_the_design_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_count(platform: Any, family: Family, dsp_blocks: int, array_blocks: int | None) -> None:
        platform.dsp_blocks = dsp_blocks

    monkeypatch.setattr("sley.fpga.flow.implementation.annotate_platform", only_count)
    with pytest.raises(FlowError, match=r"the netlist is not the design: Driver-driver conflict for .*low_outside"):
        netlist(BOARDS["icebreaker"].platform(), on_a_board("icebreaker"), tmp_path)
