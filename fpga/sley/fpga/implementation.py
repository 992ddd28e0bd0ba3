"""Synthesis, place and route, and bitstream of a design on a device, and what they report."""

import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sley.fpga.toolchain import FlowError, tool_environment, tool_versions

STEPS = {"rpt": "synthesis", "tim": "place and route"}
"""Suffixes of the logs, in the order of the steps."""
PATH_DEPTH = 4
"""Levels of hierarchy that name a block on a critical path."""


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path between registers: nanoseconds, of which ``routing``, and the blocks it goes through."""

    delay: float
    routing: float
    blocks: tuple[str, ...]


@dataclass(frozen=True)
class Implementation:
    """A design on a device, as nextpnr reports it.

    ``fmax`` and ``constraint`` are in MHz, ``used`` and ``available`` numbers of cells by nextpnr's type, ``seconds``
    the run time of the whole flow.
    """

    folder: Path
    fmax: float
    constraint: float
    used: Mapping[str, int]
    available: Mapping[str, int]
    path: CriticalPath
    seconds: float

    @property
    def met(self) -> bool:
        """Whether the clock constraint is met."""
        return self.fmax >= self.constraint


def implement(
    platform: Any, design: Any, folder: Path, *, name: str = "sley", may_miss: bool = False
) -> Implementation:
    """Implements ``design`` on ``platform``, an Amaranth platform that is used once; everything is left in ``folder``.

    A clock constraint that is not met is a ``FlowError`` unless it ``may_miss``; so is a step that fails.
    """
    tool_versions()
    began = time.monotonic()
    report = f"{name}.report.json"
    options = ["--report", report, "--seed", "1", *(["--timing-allow-fail"] if may_miss else [])]
    plan = platform.prepare(design, name, nextpnr_opts=options, synth_opts=["-abc9"])
    plan.extract(folder)
    run = subprocess.run(
        ["sh", f"{plan.script}.sh"], cwd=folder, env=tool_environment(), capture_output=True, text=True
    )
    if run.returncode:
        raise FlowError(_reason(folder, name, run.stdout + run.stderr))
    return read_report(folder, folder / report, time.monotonic() - began)


def _reason(folder: Path, name: str, output: str) -> str:
    """Why the flow ended: errors from the log of the last step that has one."""
    for suffix, step in reversed(STEPS.items()):
        log = folder / f"{name}.{suffix}"
        if log.exists():
            errors = [line for line in log.read_text().splitlines() if "ERROR" in line or "FAIL" in line]
            return f"{step} failed: {'; '.join(errors[-3:]) or output[-500:]}; its log is {log}"
    return f"synthesis did not begin: {output[-500:]}"


def read_report(folder: Path, report: Path, seconds: float) -> Implementation:
    """What nextpnr wrote with ``--report``."""
    found = json.loads(report.read_text())
    clock, speed = min(found["fmax"].items(), key=lambda item: float(item[1]["achieved"]))
    cells = found["utilization"]
    paths = [
        path["path"] for path in found["critical_paths"] if path["from"].endswith(clock) == path["to"].endswith(clock)
    ]
    return Implementation(
        folder,
        float(speed["achieved"]),
        float(speed["constraint"]),
        {name: cell["used"] for name, cell in cells.items()},
        {name: cell["available"] for name, cell in cells.items()},
        max((_critical_path(path) for path in paths), key=lambda path: path.delay),
        seconds,
    )


def _critical_path(segments: list[dict[str, Any]]) -> CriticalPath:
    blocks: list[str] = []
    for segment in segments:
        *hierarchy, _ = segment["to"]["cell"].split("$")[0].split(".")
        block = ".".join(hierarchy[:PATH_DEPTH])
        if block and blocks[-1:] != [block]:
            blocks.append(block)
    routing = sum(segment["delay"] for segment in segments if segment["type"] == "routing")
    return CriticalPath(sum(segment["delay"] for segment in segments), routing, tuple(blocks))
