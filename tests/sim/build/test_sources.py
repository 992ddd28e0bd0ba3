"""What enters the cache is made of the sources that it is named after, whoever edits them, and when."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sley.hw
import sley.sim
from sley.abi.config import preset
from sley.abi.transport import EngineError
from sley.sim.build import verilator
from sley.sim.build.new_process import in_new_process
from sley.sim.build.sources import Sources
from sley.sim.build.toolchain import find_c_compiler, find_compiler, find_verilator
from sley.sim.build.verilator import LibraryBuild
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.errors import FastError
from sley.sim.fast.run import build

needs_compiler = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")
needs_verilator = pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")

CHANGED = "changed since this process read it"

OLD, NEW = 'def chip_rtlil(config, beside):\n    return "old"\n', 'def chip_rtlil(config, beside):\n    return "new"\n'

TEXT = """
def result():
    from sley.abi.config import preset
    from sley.sim.engines.design_text import cached_rtlil
    return cached_rtlil(preset("nano"))
"""

LIBRARY = """
def result():
    from sley.sim.fast.run.simulation import Simulation
    return Simulation("module \\\\top\\n  wire width 8 output 1 \\\\o\\n  connect \\\\o 8'00000111\\nend\\n").peek("o")
"""

SHOW = """
from sley.abi.transport import EngineError
try:
    print(result())
except EngineError as error:
    print(error)
"""

EDIT = """
import sys
from pathlib import Path
Path(sys.argv[1]).write_text(sys.argv[2])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the gateware and of the simulators that hide the installed ones, and an empty cache."""
    parts = {"hw": next(iter(sley.hw.__path__)), "sim": next(iter(sley.sim.__path__))}
    for part, path in parts.items():
        shutil.copytree(path, tmp_path / part / "sley" / part, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(tmp_path / part) for part in parts))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # which would hide an edit within the same second
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def gateware(folder: Path) -> Path:
    """A source file of a gateware whose RTLIL is the word ``old``."""
    path = folder / "hw" / "sley" / "hw" / "rtlil.py"
    path.write_text(OLD)
    return path


@pytest.fixture
def compiler(folder: Path) -> Path:
    """A source file of the fast engine's compiler."""
    return folder / "sim" / "sley" / "sim" / "fast" / "emit" / "manifest.py"


def run(program: str, *arguments: str | Path) -> list[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def test_gateware_edited_after_its_import(gateware: Path) -> None:
    """This process has the old gateware in memory: what that generates is not what the name stands for by then."""
    assert run("import sley.hw.rtlil" + EDIT + TEXT + SHOW, gateware, NEW) == ["new"]
    assert run(TEXT + SHOW) == ["new"]


def test_gateware_edited_after_it_was_read(gateware: Path) -> None:
    [said] = run("import sley.sim.engines.design_text" + EDIT + TEXT + SHOW, gateware, NEW)
    assert said.startswith(f"rtlil.py {CHANGED}")
    assert run(TEXT + SHOW) == ["new"]
    gateware.write_text(OLD)
    assert run(TEXT + SHOW) == ["old"]


def test_a_process_stays_with_its_gateware(gateware: Path) -> None:
    """Two engines that it compares are of one version, though somebody edited it before the second one was opened."""
    assert run(TEXT + SHOW + EDIT + SHOW, gateware, NEW) == ["old", "old"]
    assert run(TEXT + SHOW) == ["new"]


@needs_compiler
def test_compiler_edited_after_its_import(compiler: Path) -> None:
    """The edit puts all variables in another place."""
    wrong = compiler.read_text().replace(
        "Piece(0, width, offset, SIZES[kind])", "Piece(0, width, offset + 1, SIZES[kind])"
    )
    first = run("import sley.sim.fast.emit.manifest" + EDIT + LIBRARY + SHOW, compiler, wrong)
    assert first == run(LIBRARY + SHOW)
    assert first != ["7"]


@needs_compiler
def test_compiler_edited_after_it_was_read(compiler: Path, folder: Path) -> None:
    text = compiler.read_text()
    [said] = run("import sley.sim.fast.run.build" + EDIT + LIBRARY + SHOW, compiler, text + "# edited\n")
    assert said.startswith(f"manifest.py {CHANGED}")
    assert not list(folder.rglob("*.so"))
    compiler.write_text(text)
    assert run(LIBRARY + SHOW) == ["7"]


@needs_compiler
def test_host_edited_during_the_build(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = folder / "host.c"
    host.write_text((folder / "sim/sley/sim/fast/run/simulation.c").read_text())

    def edit(title: str, step: object) -> contextlib.AbstractContextManager[Callable[[str], None]]:
        host.write_text(host.read_text() + "\n")
        return contextlib.nullcontext(lambda text: None)

    monkeypatch.setattr(build, "progress", edit)
    with pytest.raises(EngineError, match=rf"host\.c {CHANGED}"):
        build.build_library("module \\top\nend\n", host=host)


@needs_verilator
def test_harness_edited_during_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = tmp_path / "sim" / "engines" / "harness.cpp"
    harness.parent.mkdir(parents=True)
    harness.touch()

    def edit(command: object, folder: Path) -> None:
        harness.write_text("edited")

    monkeypatch.setattr(verilator, "run_tool", edit)
    monkeypatch.setattr(LibraryBuild, "_objects", lambda self, scratch, pool, show: [])
    build = LibraryBuild("\nmodule sley();\nendmodule\n", harness, {}, None)
    with pytest.raises(EngineError, match=rf"harness\.cpp {CHANGED}"):
        build(tmp_path / "library.so", tmp_path)


def test_files_that_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    sources = Sources(lambda: sorted(tmp_path.iterdir()))
    sources.check()
    (tmp_path / "two").write_text("2")
    with pytest.raises(EngineError, match=f"two {CHANGED}"):
        sources.check()
    (tmp_path / "two").unlink()
    sources.check()
    (tmp_path / "one").unlink()
    with pytest.raises(EngineError, match=f"one {CHANGED}"):
        sources.check()


def printing(number: int) -> int:
    print("not the answer")
    return number + os.getpid()


def failing(error: Exception) -> None:
    raise error


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    name = __name__.split(".")  # pytest may call this module by its path from the root
    monkeypatch.syspath_prepend(Path(__file__).parents[len(name) - 1])


@pytest.mark.usefixtures("importable")
def test_new_process() -> None:
    assert in_new_process(printing, 1) != printing(1)


@pytest.mark.usefixtures("importable")
def test_errors_of_a_new_process(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FastError, match=r"^no such design$"):
        in_new_process(failing, FastError("no such design"))
    with pytest.raises(EngineError, match=r"test_sources\.failing ended with status 1"):
        in_new_process(failing, KeyError("a bug"))
    assert "KeyError: 'a bug'" in capfd.readouterr().err


def test_the_text_of_a_chip_names_no_place() -> None:
    """What is compiled of it is the same wherever Sley is installed."""
    text = cached_rtlil(preset("nano"))
    assert "cell " in text
    assert str(Path(sley.hw.__file__).parent) not in text
    assert "attribute \\src" not in text
