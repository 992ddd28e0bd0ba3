"""The journal of a sweep: a line of JSON for each run that ended, on the disk before anything else happens."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sley.driver import BadRequest

DONE, FAILED, INFEASIBLE = "done", "failed", "infeasible"


@dataclass(frozen=True)
class Run:
    """A workload on a design, and how it ended.

    Attributes
    ----------
    key: a digest of all that it depends on. status: "done", "failed", or "infeasible" for what no chip can be.
    reason: why, if not done. cost: what ``cost.plain`` makes. seconds: of a processor, for people alone.
    """

    key: str
    workload: str
    status: str
    reason: str = ""
    cost: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Journal:
    """Runs by key; those behind others of the same key hold.

    A line is written by one call and reaches the disk before ``add`` returns. What a process that was killed left of a
    line is cut off. Raises ``BadRequest`` for a file that is damaged otherwise.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[str, Run] = {}
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.ftruncate(self._file, len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                run = Run(**json.loads(line))
            except (ValueError, TypeError) as error:
                raise BadRequest(f"line {number} of {path} is no run of a sweep ({error}): remove the line") from None
            self.runs[run.key] = run

    def add(self, run: Run) -> None:
        """Keeps a run."""
        line = json.dumps(asdict(run), sort_keys=True).encode() + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes went to {self.path}: is the disk full?")
        os.fsync(self._file)
        self.runs[run.key] = run

    def close(self) -> None:
        """Ends writing."""
        os.close(self._file)
