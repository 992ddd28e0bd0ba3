"""The C compiler: which one is taken, what is said when there is none, and that its libraries run."""

import ctypes
import importlib.metadata
import importlib.util
import platform
import sys
from pathlib import Path

import pytest

from sley.sim.build import toolchain
from sley.sim.build.toolchain import ZIG, CCompiler, cpu_features, find_c_compiler
from sley.sim.errors import BuildError

SOURCE = """
#include <stdint.h>
#include <string.h>
uint64_t shifted(uint64_t value, unsigned count) { return value << (count & 63); }
unsigned wrap(int value) { return value + value; }
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only folder on PATH; neither CC nor CFLAGS nor ziglang exist."""
    for name in ("CC", "CFLAGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return tmp_path


def program(path: Path, says: str = "") -> str:
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return str(path)


def test_the_first_of_the_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_c_compiler() is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "ziglang" or None)
    assert find_c_compiler() == CCompiler((sys.executable, "-m", "ziglang", "cc"))
    for name in ("cc", "gcc", "clang"):
        path = program(folder / name)
        assert find_c_compiler() == CCompiler((path,))


def test_cc_with_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder / "gcc")
    mine = program(folder / "my cc")
    monkeypatch.setenv("CC", f"'{mine}' -m64 --sysroot=/x")
    found = find_c_compiler()
    assert found == CCompiler((mine, "-m64", "--sysroot=/x"))


def test_cc_that_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder / "gcc")
    monkeypatch.setenv("CC", "icx -O2")
    assert find_c_compiler() is None
    with pytest.raises(BuildError, match="CC=icx -O2 is not installed: correct or unset CC"):
        CCompiler.find()


def test_nothing_installed(folder: Path) -> None:
    with pytest.raises(
        BuildError, match="none of clang, gcc, cc, none named in CC, and no Python package ziglang"
    ) as e:
        CCompiler.find()
    for remedy in ("pip install -e '.[fast]'", "apt install gcc", "xcode-select --install"):
        assert remedy in str(e.value)


def test_version(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for says, is_clang in {"gcc 12.2.0": False, "Apple clang version 15": True}.items():
        compiler = CCompiler((program(folder / says.split()[0], says),))
        assert compiler.version == f"{says}\n"
        assert compiler.is_clang == is_clang
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"ziglang": "0.99"}[name])
    assert CCompiler(ZIG).version == "clang of ziglang 0.99"
    assert CCompiler(ZIG).is_clang


def test_version_is_asked_once(folder: Path) -> None:
    path = program(folder / "once", "one")
    assert CCompiler((path,)).version == "one\n"
    program(folder / "once", "two")
    assert CCompiler((path,)).version == "one\n"


@pytest.mark.parametrize(
    ("machine", "flags"),
    [
        ("x86_64", ("-march=native",)),
        ("AMD64", ("-march=native",)),
        ("aarch64", ("-mcpu=native",)),
        ("arm64", ("-mcpu=native",)),
        ("riscv64", ()),
    ],
)
def test_flags(machine: str, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setenv("CFLAGS", "-g '-DNAME=a b'")
    compiler = CCompiler(("cc",))
    assert compiler.native == flags
    assert compiler.flags[-2:] == ("-g", "-DNAME=a b")
    assert set(flags) < set(compiler.flags)


def test_failure_names_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho cannot compile; exit 3\n")
    broken.chmod(0o755)
    with pytest.raises(BuildError, match=r"broken failed with exit status 3:\ncannot compile"):
        CCompiler((str(broken),)).run("a.c", folder=tmp_path)
    monkeypatch.setattr(toolchain, "ZIG", (str(broken), "cc"))
    with pytest.raises(BuildError, match=r"zig cc failed with exit status 3:\ncannot compile"):
        CCompiler((str(broken), "cc")).run("a.c", folder=tmp_path)


COMPILERS = [
    *([find_c_compiler()] if find_c_compiler() else []),
    *([CCompiler(ZIG)] if importlib.util.find_spec("ziglang") else []),
]


@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda compiler: Path(compiler.command[-1]).name)
def test_library(compiler: CCompiler, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    compiler.run("-O2", "-shared", *compiler.flags, "a.c", "-o", tmp_path / "a.so", folder=tmp_path)
    library = ctypes.CDLL(str(tmp_path / "a.so"))
    library.shifted.restype = ctypes.c_uint64
    assert library.shifted(ctypes.c_uint64(5), 63) == 1 << 63
    library.wrap.restype = ctypes.c_uint32
    assert library.wrap(0x7FFFFFFF) == 0xFFFFFFFE, "a sanitizer would have ended the process"


def test_cpu_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    x86 = "processor\t: {}\ncpu MHz\t\t: {}\nmodel\t\t: 17\nmodel name\t: EPYC\nflags\t\t: fpu avx2 {}\n\n"

    def features(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return cpu_features(tmp_path / name)

    first = features("a", x86.format(0, 2000, "") + x86.format(1, 3000, ""))
    assert "EPYC" in first
    assert "avx2" in first
    assert first == features("b", x86.format(0, 1234, ""))
    assert first != features("c", x86.format(0, 2000, "avx512f"))
    big_little = "Features\t: fp asimd\nCPU part\t: {}\n\n"
    assert features("d", big_little.format("0xd03") + big_little.format("0xd08")).count("CPU part") == 2
    monkeypatch.setattr(platform, "processor", lambda: "M1")
    assert cpu_features(tmp_path / "none") == "x86_64\nM1"
    assert len(cpu_features()) > 5
