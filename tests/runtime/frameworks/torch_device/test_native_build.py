"""The part of the device in C++ is compiled by one of those that want it at once."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from sley.runtime.frameworks.torch_device.native import build


def test_others_wait_for_the_one_that_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled: list[str] = []

    def compile_it(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        compiled.append(command[-1])
        time.sleep(0.2)
        Path(command[-1]).write_text("library")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(build.subprocess, "run", compile_it)
    monkeypatch.setattr(build, "_compiler", lambda: ["c++"])
    path = tmp_path / "torch" / "hooks.so"
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(build._build, [path] * 3))
    assert path.read_text() == "library"
    assert len(compiled) == 1
