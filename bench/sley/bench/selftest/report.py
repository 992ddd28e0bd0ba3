"""The report of a self-test: a table for the screen, and JSON to send back."""

import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from sley.abi.config import ABI_MAJOR, ABI_MINOR, ChipConfig
from sley.bench.selftest.checks import Check, Outcome

COLOURS = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.LEFT_OUT: "yellow"}


@dataclass(frozen=True)
class Report:
    """What a self-test found.

    Attributes: ``url``: of the device. ``board``: what its bridge says of itself, by name, if it has one. ``config``:
    of the chip, None if none answered. ``memory_bytes``: of the device.
    """

    url: str
    board: dict[str, Any]
    config: ChipConfig | None
    memory_bytes: int
    checks: list[Check]

    @property
    def failures(self) -> list[Check]:
        return [check for check in self.checks if check.outcome is Outcome.FAILED]

    def to_json(self) -> str:
        """Everything, as text."""
        chip = json.loads(self.config.to_json()) if self.config else None
        return json.dumps(
            {
                "sley": version("sley"),
                "abi": f"{ABI_MAJOR}.{ABI_MINOR}",
                "url": self.url,
                "board": self.board,
                "chip": chip,
                "memory_bytes": self.memory_bytes,
                "passed": not self.failures,
                "checks": [asdict(check) for check in self.checks],
            },
            indent=2,
        )

    def print(self, console: Console) -> None:
        """A row for each group, then every check that failed or was left out, with what differs."""
        chip = self.config.name if self.config else "no chip"
        table = Table("group", "checks", "passed", "failed", "left out", "seconds", title=f"{self.url}: {chip}")
        for group in dict.fromkeys(check.group for check in self.checks):
            members = [check for check in self.checks if check.group == group]
            counts = [sum(check.outcome is outcome for check in members) for outcome in Outcome]
            seconds = sum(check.seconds for check in members)
            table.add_row(group, str(len(members)), *map(str, counts), f"{seconds:.1f}")
        console.print(table)
        for check in self.checks:
            if check.group in ("link", "memory", "timing") or check.outcome is not Outcome.PASSED:
                colour = COLOURS[check.outcome]
                console.print(
                    f"[{colour}]{check.outcome}[/] {check.group}: {check.name}: {check.about}", highlight=False
                )
            for difference in check.differences:
                console.print(
                    f"  {difference.where}: expected {difference.expected}, found {difference.found}",
                    highlight=False,
                    markup=False,
                )
            if check.count > len(check.differences):
                console.print(f"  and {check.count - len(check.differences):,} more")
