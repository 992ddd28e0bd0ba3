"""Imports inside a portion: no circle of files, and in the runtime they point down from floor to floor.

Imports for types alone count too.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTIONS = ("runtime", "bench", "examples")


def imports(portion: str) -> dict[str, set[str]]:
    """The modules of a portion, and those of the portion that each imports."""
    root = ROOT / portion
    found: dict[str, set[str]] = {}
    for path in (root / "sley").rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found[".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")] = names
    return {module: {name for name in names if name in found} - {module} for module, names in found.items()}


@pytest.mark.parametrize("portion", PORTIONS)
def test_no_circles(portion: str) -> None:
    left = imports(portion)
    while done := {module for module, names in left.items() if not names & left.keys()}:
        left = {module: names for module, names in left.items() if module not in done}
    assert not left, f"these import each other, or are imported by those that do: {sorted(left)}"


def floors() -> dict[str, int]:
    """The floor of each folder and file of the runtime, as the guide has them, the lowest first."""
    guide = (ROOT / "docs" / "guides" / "programmers-guide.md").read_text()
    section = guide.partition("### How the runtime is built\n")[2].partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| (`.*?`) \|", section)
    return {name: number for number, row in enumerate(rows) for name in re.findall(r"`(\w+)(?:/|\.py)`", row)}


def test_floors_of_the_runtime() -> None:
    root, floor_of = "sley.runtime", floors()
    modules = imports("runtime")
    del modules[root]  # which shows the names of all floors
    assert {module.split(".")[2] for module in modules} == set(floor_of)
    for module, names in modules.items():
        assert root not in names, f"{module} imports from sley.runtime: import from the file that has the name"
        for name in names:
            above = floor_of[name.split(".")[2]] > floor_of[module.split(".")[2]]
            assert not above, f"{module} imports {name}, which is on a floor above"
