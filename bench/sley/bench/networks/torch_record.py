"""Outcomes of PyTorch's samples of operators, kept in a file from run to run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch

from sley.driver import BadRequest
from sley.runtime.frameworks.torch_device.score import Outcome


class Record:
    """Outcomes by operator and type, and the version of PyTorch whose samples they are of.

    ``path``: a file to go on from, and to write after each outcome; none if nothing is kept. Raises ``BadRequest`` for
    one of another version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.version = path, torch.__version__.partition("+")[0]
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        if path is not None and path.exists():
            kept = json.loads(path.read_text())
            if kept["torch"] != self.version:
                raise BadRequest(f"{path} is of PyTorch {kept['torch']}, and this is {self.version}; take another file")
            for one in kept["outcomes"]:
                self.outcomes[one["name"], one["dtype"]] = Outcome(**one)

    def finished(self, name: str, dtype: str) -> bool:
        """Whether all samples of an operator in a type were run."""
        return (name, dtype) in self.outcomes and self.outcomes[name, dtype].finished

    def add(self, outcome: Outcome) -> None:
        """Enters an outcome, in the place of an earlier one."""
        self.outcomes[outcome.name, outcome.dtype] = outcome
        if self.path is not None:
            lines = ",\n".join(json.dumps(asdict(self.outcomes[key])) for key in sorted(self.outcomes))
            self.path.write_text(f'{{"torch": "{self.version}", "outcomes": [\n{lines}\n]}}\n')
