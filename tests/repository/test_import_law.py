"""Imports point down only: reads every import of every source file."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = {
    "abi": {"abi"},
    "hw": {"hw", "abi"},
    "driver": {"driver", "abi"},
    "runtime": {"runtime", "driver", "abi"},
    "sim": {"sim", "hw", "abi"},
    "fpga": {"fpga", "hw", "abi"},
}
ALLOWED |= {"examples": {"examples", *ALLOWED}, "bench": {"bench", *ALLOWED}}
NO_HDL = {"abi", "driver", "runtime"}
FILES = [(portion, path) for portion in ALLOWED for path in sorted((ROOT / portion / "sley").rglob("*.py"))]


def imported_modules(path: Path) -> list[str]:
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            modules.append(node.module)
            if node.module == "sley":
                modules += [f"sley.{alias.name}" for alias in node.names]
    return modules


@pytest.mark.parametrize(("portion", "path"), FILES, ids=lambda v: v if isinstance(v, str) else v.stem)
def test_imports_point_down(portion: str, path: Path) -> None:
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "sley" and len(parts) > 1:
            assert parts[1] in ALLOWED[portion], f"{path}: {portion} must not import {module}"
        if portion in NO_HDL:
            assert parts[0] != "amaranth", f"{path}: {portion} must not import Amaranth"


def test_abi_needs_the_standard_library_alone() -> None:
    import sys

    for path in (ROOT / "abi" / "sley").rglob("*.py"):
        for module in imported_modules(path):
            assert module.split(".")[0] in {"sley", *sys.stdlib_module_names}, f"{path} imports {module}"


def test_namespace_package() -> None:
    """A portion may show its public names in one place; there is no other ``__init__.py``."""
    assert set(ROOT.glob("*/sley/**/__init__.py")) <= {ROOT / p / "sley" / p / "__init__.py" for p in ALLOWED}
    assert all((ROOT / portion / "sley" / portion / "py.typed").exists() for portion in ALLOWED)
