# amaranth: UnusedElaboratable=no
"""Emission: modules that are shared, and the same text whether or not they are converted beside each other."""

import subprocess
import sys

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.elaboration.rtlil_platform import RtlilPlatform
from sley.hw.elaboration.shared import shared, split
from sley.hw.rtlil import component_rtlil
from sley.hw.verilog import component_verilog


class Inverter(wiring.Component):
    i: In(1)
    o: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(~self.i)
        return m


class Failing(Inverter):
    def elaborate(self, platform: object) -> Module:
        raise ValueError("no such inverter")


class Chain(wiring.Component):
    """Inverters in a row: some shared, one a unit of its own with a row of its own in it."""

    i: In(1)
    o: Out(1)

    def __init__(self, depth: int = 2, last: type[Inverter] = Inverter) -> None:
        self._depth, self._last = depth, last
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        value = self.i
        for k in range(3):
            part = Inverter()
            m.submodules[f"part{k}"] = shared(part, "inverter", platform)
            m.d.comb += part.i.eq(value)
            value = part.o
        inner = Chain(self._depth - 1, self._last) if self._depth else self._last()
        m.submodules.inner = split(inner, f"inner{self._depth}", platform)
        m.d.comb += [inner.i.eq(value), self.o.eq(inner.o)]
        return m


def modules(text: str) -> list[str]:
    return [line.split()[1].lstrip("\\").partition("(")[0] for line in text.split("\n") if line.startswith("module ")]


def test_modules_in_rtlil_and_in_verilog() -> None:
    """Parts that are split for the sake of speed are ordinary submodules of the Verilog."""
    text = component_rtlil(Chain(), platform=RtlilPlatform())
    assert modules(text) == [
        "sley",
        "inverter",
        "inner2",
        "inner1",
        "inner0",
    ]
    assert "inverter" in modules(component_verilog(Chain()))
    assert not any(name.startswith("inner") and "." not in name for name in modules(component_verilog(Chain())))


def test_beside_each_other_the_text_is_the_same() -> None:
    program = (
        "import sys; sys.path[:0] = [{!r}]; from test_emission import Chain; from sley.hw.rtlil import component_rtlil;"
        "from sley.hw.elaboration.rtlil_platform import RtlilPlatform;"
        "print(component_rtlil(Chain(), platform=RtlilPlatform(), beside=True), end='')"
    ).format(__file__.rpartition("/")[0])
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert text == component_rtlil(Chain(), platform=RtlilPlatform())


def test_a_module_that_fails_in_a_process_of_its_own() -> None:
    """The reason is on stderr, and the caller does not hang."""
    program = (
        "import sys; sys.path[:0] = [{!r}]; from test_emission import Chain, Failing;"
        "from sley.hw.rtlil import component_rtlil; from sley.hw.elaboration.rtlil_platform import RtlilPlatform;"
        "component_rtlil(Chain(0, Failing), platform=RtlilPlatform(), beside=True)"
    ).format(__file__.rpartition("/")[0])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode
    assert "no such inverter" in done.stderr
    assert "module inner0 could not be converted" in done.stderr
    with pytest.raises(ValueError, match="no such inverter"):
        component_rtlil(Chain(0, Failing))


def test_a_module_that_fails_beside_others() -> None:
    """What it shares is longer than a pipe holds; nothing waits for the answers, and the process ends."""
    program = (
        "import sys; sys.path[:0] = [{!r}]; from test_emission import Chain; from sley.hw.elaboration import emission;"
        "from sley.hw.elaboration.shared import EmissionPlatform\n"
        "class Platform(EmissionPlatform): splits = True\n"
        "def convert(name, fragment, ports):\n"
        "    if name == 'sley': raise ValueError('no such text')\n"
        "    return 'x' * 1000000\n"
        "emission.Emission(Platform(), convert, beside=True).texts(Chain())"
    ).format(__file__.rpartition("/")[0])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode
    assert "no such text" in done.stderr


def test_the_text_is_the_same_with_widths_that_are_computed_once() -> None:
    """As engines make it, in a process of its own."""
    program = (
        "from sley.abi.config import preset; from sley.hw.core.matrix.array import SystolicArray;"
        "from sley.hw.elaboration.widths import remember_widths; from sley.hw.rtlil import system_rtlil\n"
        "plain = system_rtlil(SystolicArray(preset('nano')))\n"
        "remember_widths()\n"
        "assert system_rtlil(SystolicArray(preset('nano'))) == plain; print(plain.count('cell'))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert int(found) > 50
