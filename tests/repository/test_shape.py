"""The shape of the source: how long files and ``elaborate`` bodies may be, and how many ports have no type."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for portion in ("abi", "hw", "driver", "runtime", "sim", "fpga", "bench", "explore", "examples")
    for path in sorted((ROOT / portion).rglob("*.py"))
]
GATEWARE = [path for path in FILES if path.is_relative_to(ROOT / "hw") or path.is_relative_to(ROOT / "fpga")]
LONGEST_FILE = 450
LONGEST_ELABORATE = 200
UNTYPED_MEMBERS = 20
"""Members of classes in ``hw`` annotated ``Any``."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))


def test_files_are_short() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in FILES}
    assert {file: count for file, count in lengths.items() if count > LONGEST_FILE} == {}


def test_elaborate_bodies_have_seams() -> None:
    found = {
        f"{name(path)}: {kind.name}": body.end_lineno - body.lineno + 1
        for path in GATEWARE
        for kind in classes(path)
        for body in kind.body
        if isinstance(body, ast.FunctionDef) and body.name == "elaborate" and body.end_lineno is not None
    }
    assert len(found) > 50
    assert {body: count for body, count in found.items() if count > LONGEST_ELABORATE} == {}


def test_members_have_types() -> None:
    untyped = [
        f"{name(path)}: {kind.name}.{ast.unparse(member.target)}"
        for path in FILES
        if path.is_relative_to(ROOT / "hw")
        for kind in classes(path)
        for member in kind.body
        if isinstance(member, ast.AnnAssign) and ast.unparse(member.annotation) == "Any"
    ]
    assert len(untyped) <= UNTYPED_MEMBERS, untyped
