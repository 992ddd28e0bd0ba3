"""Processes of their own: with two devices, and without a compiler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

from sley.runtime.cache import cache_folder  # noqa: E402


def run(program: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, Path(__file__).with_name(program), *arguments]
    result = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_two_devices() -> None:
    assert "checked" in run("two_devices.py", "places", "files", "random", "training", "streams", "profile")


@pytest.mark.slow
def test_graphs_on_the_second_device() -> None:
    assert "checked" in run("two_devices.py", "places", "compiled")


def test_without_a_compiler(tmp_path: Path) -> None:
    """All but what needs the part in C++; random numbers are the same."""
    torch.manual_seed(7)
    wanted = torch.randn(3, device="sley").tolist()  # the engine is compiled then
    cache = tmp_path / "cache"
    cache.mkdir()
    for entry in cache_folder().glob("*"):
        if entry.name != "torch":  # where the part in C++ is
            (cache / entry.name).symlink_to(entry.resolve())
    text = run("no_compiler.py", PATH=str(tmp_path), CXX="", SLEY_CACHE=str(cache))
    assert f"checked {wanted}" in text
