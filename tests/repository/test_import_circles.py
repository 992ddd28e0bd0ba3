"""No circles of imports: between the files of a portion, and between its rooms, which are its folders.

An import counts wherever it is, also under ``TYPE_CHECKING`` and inside of a function: who reads a file has to know
what it names. The ``__init__.py`` that shows a portion's names counts as a file that imports all others; that Python
runs it before them does not.
"""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTIONS = sorted(path.parent.name for path in ROOT.glob("*/sley"))
LIMIT = 1
"""Files in one circle, at most."""
FLOORS = ["driver", "runtime", "sim", "sim/fast", "fpga", "hw/core"]
"""Where folders are rooms, one above the other; so is a file beside them."""

Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, modules: Iterable[str]) -> set[str]:
    """Which of the modules a file imports, or imports a name from."""
    named = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= inner & set(modules) or {node.module}
    return named & set(modules)


def imports_of(portion: str) -> Graph:
    paths = {module_name(path): path for path in sorted((ROOT / portion / "sley").rglob("*.py"))}
    return {name: imported(path, paths) - {name} for name, path in paths.items()}


def folder_of(place: str) -> Path:
    return ROOT / place.split("/")[0] / "sley" / place


def rooms_of(place: str) -> Graph:
    """What the folders of a place, and the files beside them, import of each other."""
    base = ["sley", *place.split("/")]

    def room(name: str) -> str | None:
        parts = name.split(".")
        return parts[len(base)] if parts[: len(base)] == base and len(parts) > len(base) else None

    graph: Graph = {}
    for name, targets in imports_of(base[1]).items():
        if (own := room(name)) is not None:
            graph.setdefault(own, set()).update(r for target in targets if (r := room(target)) is not None and r != own)
    return graph


def circles(graph: Graph) -> list[set[str]]:
    """Sets of nodes that all lead to each other (strongly connected components), without those of one node."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        stack = [start]
        while stack:
            new = graph[stack.pop()] - seen
            seen |= new
            stack += new
        return seen

    reached = {node: reach(node) for node in graph}
    found: list[set[str]] = []
    for node in graph:
        circle = {other for other in reached[node] if node in reached[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def test_circles_are_found() -> None:
    graph: Graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == [{"a", "b", "c"}, {"d", "e"}]
    assert circles({"a": {"b"}, "b": set()}) == []


@pytest.mark.parametrize("portion", PORTIONS)
def test_no_circle_of_many_files(portion: str) -> None:
    for circle in circles(imports_of(portion)):
        assert len(circle) <= LIMIT, f"{len(circle)} files import each other: {', '.join(sorted(circle))}"


@pytest.mark.parametrize("place", FLOORS)
def test_no_circle_of_rooms(place: str) -> None:
    for circle in circles(rooms_of(place)):
        folders = [room for room in circle if (folder_of(place) / room).is_dir()]
        assert not folders, f"rooms of {place} import each other: {', '.join(sorted(circle))}"


@pytest.mark.parametrize("portion", ["driver", "runtime", "sim", "fpga", "bench", "explore", "examples"])
def test_no_circle_at_all(portion: str) -> None:
    assert circles(imports_of(portion)) == []


@pytest.mark.parametrize(("portion", "page"), [("driver", "driver-guide"), ("runtime", "programmers-guide")])
def test_rooms_are_in_the_order_of_their_guide(portion: str, page: str) -> None:
    """A row of the guide's table is a floor; the rooms of a row may import each other."""
    guide = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    section = guide.partition(f"# How the {portion} is built\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", section, re.M)
    floor_of = {name: floor for floor, row in enumerate(rows) for name in re.findall(r"`(\w+)(?:/|\.py)`", row)}
    rooms = rooms_of(portion)
    assert set(floor_of) == set(rooms)
    for room, targets in rooms.items():
        above = {target for target in targets if floor_of[target] > floor_of[room]}
        assert not above, f"{room} imports from above: {', '.join(sorted(above))}"
