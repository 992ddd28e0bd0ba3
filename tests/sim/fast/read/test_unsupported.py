"""What the fast engine cannot simulate is an error that says where it is, never a wrong value."""

from collections.abc import Callable

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Instance, IOBufferInstance, IOPort, Module, Signal

from sley.sim.errors import FastError
from sley.sim.fast.read.rtlil import parse
from sley.sim.fast.run.build import netlist_of


def convert(design: Module, *ports: Signal) -> str:
    text: str = rtlil.convert(design, name="top", ports={signal.name: (signal, None) for signal in ports})
    return text


def derived_clock() -> str:
    slow = ClockDomain("slow")
    m, divided, count = Module(), Signal(), Signal(4)
    m.domains += slow
    m.d.sync += divided.eq(~divided)
    m.d.comb += slow.clk.eq(divided)
    m.d.slow += count.eq(count + 1)
    return convert(m, count)


def instance() -> str:
    m, a, b = Module(), Signal(), Signal()
    m.submodules.block = Instance("vendor_block", i_a=a, o_b=b)
    return convert(m, a, b)


def tristate() -> str:
    m, out, enable = Module(), Signal(), Signal()
    m.submodules.buffer = IOBufferInstance(IOPort(1, name="pad"), o=out, oe=enable)
    return convert(m, out, enable)


@pytest.mark.parametrize(
    ("design", "what"),
    [
        (derived_clock, "a clock that the design makes itself"),
        (instance, "an instance of vendor_block, of which there is no description"),
        (tristate, r"\$tribuf"),
    ],
)
def test_unsupported(design: Callable[[], str], what: str) -> None:
    with pytest.raises(FastError, match=rf"(?s)top.*test_unsupported\.py:\d+.*{what}|{what}.*test_unsupported\.py:\d+"):
        netlist_of(design())


LOOP = r"""
attribute \top 1
module \top
  wire width 1 input 0 \a
  attribute \src "loop.py:7"
  wire width 1 \x
  wire width 1 output 1 \y
  cell $xor $1
    parameter \A_SIGNED 0
    parameter \B_SIGNED 0
    parameter \A_WIDTH 1
    parameter \B_WIDTH 1
    parameter \Y_WIDTH 1
    connect \A \a [0]
    connect \B \y [0]
    connect \Y \x
  end
  connect \y \x [0]
end
"""


@pytest.mark.parametrize("kind", ["$anyconst", "$initstate", "$allseq"])
def test_formal_cells(kind: str) -> None:
    text = LOOP.replace("  cell $xor $1\n", f'  attribute \\src "formal.py:3"\n  cell {kind} $1\n')
    with pytest.raises(FastError, match=rf"top \[formal\.py:3\]: \{kind} cannot be simulated by this engine"):
        netlist_of(text.replace("    connect \\A \\a [0]\n    connect \\B \\y [0]\n", ""))


def test_combinational_loop() -> None:
    """Amaranth refuses such designs; text from elsewhere may have one."""
    with pytest.raises(FastError, match=r"a combinational loop through top\.y, top\.x \[loop\.py:7\]|top\.x"):
        netlist_of(LOOP)


def test_undriven_wire() -> None:
    with pytest.raises(FastError, match=r"bit 0 of top\.y has no driver"):
        netlist_of(LOOP.replace("  connect \\y \\x [0]\n", ""))


@pytest.mark.parametrize(
    "text", ["module \\top\n", "module \\top\n  cell $add $1\n", "nonsense\n", "module \\top\nsync always\nend\n"]
)
def test_broken_text(text: str) -> None:
    with pytest.raises(FastError, match=r"ends within|is not among what Amaranth writes"):
        parse(text)


def test_no_such_top() -> None:
    with pytest.raises(FastError, match="has no module 'other'; there are top"):
        netlist_of(LOOP, "other")
    with pytest.raises(FastError, match="has no module"):
        netlist_of("")
