"""Carry chains without cells at their ends do what they did, and nextpnr adds none."""

import json
import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from amaranth import Cat, Module
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from icarus_bench import compile_beside, needs_icarus, run_bench

from sley.fpga.devices.family import FAMILIES
from sley.fpga.flow.synthesis import synthesise
from sley.fpga.flow.toolchain import run_tool
from sley.fpga.netlist.carry_ends import trim_carry_chains
from sley.fpga.testing.netlist import Netlist

ECP5 = FAMILIES["ecp5"]
INPUTS = ("a", "b", "p", "q")
"""Of the first bit and of the second one."""


def chain(table: int, carry: str, c: str = "0", d: str = "1", inject: str = "NO", **pins: str) -> Netlist:
    """Two bits of a chain, the second of which adds."""
    made = Netlist()
    parameters = {"INIT0": f"{table:016b}", "INIT1": f"{0x96AA:016b}", "INJECT1_0": inject, "INJECT1_1": "NO"}
    second = {"A1": "p", "B1": "q", "C1": "0", "D1": "1", "S1": "second"}
    first = {"A0": "a", "B0": "b", "C0": c, "D0": d, "S0": "first", "CIN": carry}
    made.add("CCU2C", name="chain", parameters=parameters, **first | second | {"COUT": "carry"} | pins)
    return made


def trimmed(made: Netlist, folder: Path, **outputs: str) -> tuple[int, dict[str, Any]]:
    """How many ends were, and the cells then."""
    path = made.write(folder / "netlist.json", **outputs)
    count = trim_carry_chains(path, ECP5)
    return count, json.loads(path.read_text())["modules"]["top"]["cells"]


def outputs(made: Netlist, cells: dict[str, Any], inputs: tuple[int, ...], unknown: int) -> dict[str, int]:
    """What the cells give, by the data sheet; a carry of which nothing is known is ``unknown``."""
    values: dict[Any, int] = {"0": 0, "1": 1, "x": unknown}
    values |= {made.bits[net]: value for net, value in zip(INPUTS, inputs, strict=True) if net in made.bits}
    for cell in cells.values():
        pins = {pin: bits[0] for pin, bits in cell["connections"].items() if bits}
        if cell["type"] == "LUT4":
            address = sum(values[pins[pin]] << k for k, pin in enumerate("ABCD"))
            values[pins["Z"]] = int(cell["parameters"]["INIT"][::-1][address])
            continue
        carry = values[pins["CIN"]]
        for half in "01":
            table = cell["parameters"][f"INIT{half}"][::-1]
            address = [values[pins[f"{pin}{half}"]] for pin in "ABCD"]
            lut = int(table[sum(bit << k for k, bit in enumerate(address))])
            values[pins.get(f"S{half}")] = lut ^ carry
            carry = carry if lut else int(table[address[0] + 2 * address[1]])
        values[pins["COUT"]] = carry
    return {net: values[made.bits[net]] for net in ("first", "second", "carry")}


@pytest.mark.parametrize(("carry", "c", "d"), list(product("01", repeat=3)))
def test_a_constant_carry_is_left_out_and_all_sums_are_as_before(carry: str, c: str, d: str, tmp_path: Path) -> None:
    """Any table of the first bit, and any carry from what lies beside the chain."""
    rng = random.Random(f"{carry}{c}{d}")
    for table in (0x96AA, 0x000A, 0, 0xFFFF, *(rng.randrange(1 << 16) for _ in range(30))):
        made = chain(table, carry, c, d)
        whole = json.loads(made.write(tmp_path / "whole.json").read_text())["modules"]["top"]["cells"]
        count, cells = trimmed(made, tmp_path, first="first", second="second", carry="carry")
        assert (count, len(cells)) == (1, 2)
        assert cells["chain"]["connections"]["CIN"] == ["x"]
        for inputs in product((0, 1), repeat=len(INPUTS)):
            expected = outputs(made, whole, inputs, 0)
            assert [outputs(made, cells, inputs, unknown) for unknown in (0, 1)] == [expected] * 2


def test_a_first_bit_whose_sum_leads_nowhere_takes_no_lut(tmp_path: Path) -> None:
    count, cells = trimmed(chain(0x000A, "0", b="0"), tmp_path, second="second", carry="carry")
    assert (count, list(cells)) == (1, ["chain"])


def test_a_carry_that_leads_nowhere_is_left_out(tmp_path: Path) -> None:
    made = chain(0x96AA, "before")
    count, cells = trimmed(made, tmp_path, first="first", second="second")
    assert (count, list(cells), cells["chain"]["connections"]["COUT"]) == (1, ["chain"], ["x"])


@pytest.mark.parametrize(
    "pins", [{"carry": "before"}, {"carry": "0", "c": "b"}, {"carry": "0", "d": "b"}, {"carry": "1", "inject": "YES"}]
)
def test_other_chains_stay(pins: dict[str, str], tmp_path: Path) -> None:
    made = chain(0x96AA, **pins)
    whole = json.loads(made.write(tmp_path / "whole.json").read_text())["modules"]["top"]["cells"]
    assert trimmed(made, tmp_path, first="first", second="second", carry="carry") == (0, whole)


def test_other_families_stay(tmp_path: Path) -> None:
    path = chain(0x96AA, "0").write(tmp_path / "netlist.json", second="second")
    before = path.read_text()
    assert trim_carry_chains(path, FAMILIES["ice40"]) == 0
    assert path.read_text() == before


class Sums(wiring.Component):
    """Sums, differences and comparisons of widths that fill a pair of bits and that do not."""

    a: In(19)
    b: In(19)
    c: In(1)
    o: Out(202)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        found: list[Any] = []
        for width in (9, 10, 19):
            a, b = self.a[:width], self.b[:width]
            found += [a + b, (a - b)[:width], a < b, a.as_signed() < b.as_signed(), (a + 1)[:width], (a - 1)[1:width]]
            found += [(Cat(1, a) + Cat(self.c, b))[1:], (a.as_signed() - b.as_signed()) == -(1 << (width - 1))]
        assert len(Cat(*found)) == len(self.o)
        m.d.sync += self.o.eq(Cat(*found))
        return m


BENCH = """
module bench;
  reg clk = 0, rst = 0, c;
  reg [18:0] a, b;
  wire [201:0] expected, found;
  integer cycle, equal = 0;
  gold g (.clk, .rst, .a, .b, .c, .o(expected));
  sley s (.clk, .rst, .a, .b, .c, .o(found));
  initial begin
    for (cycle = 0; cycle < 4000; cycle = cycle + 1) begin
      a = $random; b = $random; c = $random;
      if (cycle % 8 == 0) a = {19{c}};
      if (cycle % 8 == 1) b = {19{c}};
      if (cycle % 8 == 2) b = a;
      #5 clk = 1;
      #5 clk = 0;
      if (expected === found && ^expected !== 1'bx) equal = equal + 1;
    end
    $display("%0d", equal);
  end
endmodule
"""


def cells(netlist: Path) -> Counter[str]:
    """How many of each type."""
    modules = json.loads(netlist.read_text())["modules"].values()
    return Counter(cell["type"] for module in modules for cell in module.get("cells", {}).values())


def packed_luts(folder: Path) -> int:
    """What nextpnr makes of the netlist."""
    options = ["--quiet", "--85k", "--out-of-context", "--pack-only", "--json", "sley.json", "--write", "packed.json"]
    run_tool("packing", ["nextpnr-ecp5", *options, "--log", "packed.log"], folder, folder / "packed.log")
    return cells(folder / "packed.json")["TRELLIS_COMB"]


@pytest.mark.slow
@needs_icarus
def test_sums_of_a_netlist(tmp_path: Path) -> None:
    """By Yosys' model of the cells, in which an open carry is unknown. nextpnr has two LUTs less for each end."""
    netlist = tmp_path / "sley.json"
    synthesise(rtlil.convert(Sums(), name="sley"), ECP5, tmp_path, dense=True)
    luts, packed = cells(netlist)["LUT4"], packed_luts(tmp_path)
    ends = trim_carry_chains(netlist, ECP5)
    assert ends > 10
    assert packed_luts(tmp_path) == packed - 2 * ends + cells(netlist)["LUT4"] - luts
    compile_beside(tmp_path, netlist, Sums(), "ecp5", BENCH)
    assert run_bench(tmp_path) == ["4000"]
