"""The result of the campaign, by folder."""

from collections import Counter, defaultdict

import pytest
from rich.console import Console
from rich.table import Table

OUTCOMES = ("caught", "survived", "equivalent")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = [value for report in reports for name, value in report.user_properties if name == "planted"]
    if not found:
        return
    table = Table("tests", *OUTCOMES, title="Planted faults")
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for folder, outcome in found:
        folders[folder][outcome] += 1
    for folder, counts in sorted(folders.items()):
        table.add_row(folder, *(str(counts[outcome]) for outcome in OUTCOMES))
    total = sum(folders.values(), Counter())
    table.add_row("all", *(str(total[outcome]) for outcome in OUTCOMES))
    terminalreporter.section("planted faults")
    Console(file=terminalreporter._tw._file, width=120).print(table)
