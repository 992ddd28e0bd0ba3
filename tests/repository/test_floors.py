"""Imports inside a portion: no circle of files, and in the runtime they point down from floor to floor.

Imports for types alone count too.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTIONS = ("runtime", "bench", "examples")
FLOORS = (
    ("errors", "cache", "options"),
    ("device",),
    ("assembler",),
    ("tile",),
    ("kernels",),
    ("nn",),
    ("blas", "cli"),
)
"""The rooms and files of ``sley.runtime``, the lowest first. Only its ``__init__`` is above all of them."""
FLOOR_OF = {name: number for number, floor in enumerate(FLOORS) for name in floor}


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


def test_floors_of_the_runtime() -> None:
    root = "sley.runtime"
    for module, names in imports("runtime").items():
        if module == root:
            continue
        floor = FLOOR_OF[module.split(".")[2]]
        assert root not in names, f"{module} imports the whole runtime: import the file that has the name"
        for name in names:
            assert FLOOR_OF[name.split(".")[2]] <= floor, f"{module} imports {name}, which is above it"
