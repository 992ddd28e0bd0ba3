"""The guide on changes of the chip: its patches apply, its cycles are those of today, and what it adds is right."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sley.sim.build.toolchain import find_c_compiler

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "changes"
PAGE = ROOT / "docs" / "guides" / "change-the-chip.md"
LAYERS = ("abi", "driver", "hw", "runtime", "sim")
CYCLES = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) cycles", PAGE.read_text())]
"""Of the network; with CLIP; with banks; with closed pages."""


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def changed(tmp_path: Path, patch: str) -> dict[str, str]:
    """An environment in which a copy of the tree, with the patch, is what is imported."""
    for layer in (*LAYERS, "tests"):
        shutil.copytree(ROOT / layer, tmp_path / layer, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    run("git", "apply", FOLDER / patch, cwd=tmp_path)
    path = os.pathsep.join(str(tmp_path / layer) for layer in LAYERS)
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.parametrize("patch", sorted(path.name for path in FOLDER.glob("*.patch")))
def test_patches_apply(patch: str, tmp_path: Path) -> None:
    names = re.findall(r"^--- a/(.*)$", (FOLDER / patch).read_text(), re.M)
    assert names
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    run("git", "apply", FOLDER / patch, cwd=tmp_path)


def printed(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) cycles", text)]


@pytest.mark.slow
@pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")
def test_an_instruction(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    env = changed(tmp_path, "clip.patch")
    assert printed(run(sys.executable, FOLDER / "network.py", env=env)) == CYCLES[1:2]
    tests = ["tests/sim/golden/test_operations.py", "tests/hw/fp/test_logic.py"]
    run(sys.executable, "-m", "pytest", "-q", "-n", "0", "-k", "CLIP or 20 or every", *tests, env=env, cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not find_c_compiler(), reason="needs a C compiler")
def test_the_dram(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    banks = "model:base?cycles=on&memory=16M&banks=8"
    assert printed(run(sys.executable, FOLDER / "network.py")) == CYCLES[:1]
    assert printed(run(sys.executable, FOLDER / "network.py", banks)) == CYCLES[2:3]
    env = changed(tmp_path, "closed_page.patch")
    assert printed(run(sys.executable, FOLDER / "network.py", banks, env=env)) == CYCLES[3:]
