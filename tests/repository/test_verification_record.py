"""The verification record names what exists: every test in it, every file of the gateware and of its tests."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "verification").glob("*.md"))
RECORD = "\n".join(page.read_text() for page in PAGES)
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", RECORD)))
GATEWARE = ROOT / "hw" / "sley" / "hw"
FILES = [path.relative_to(GATEWARE).as_posix() for path in sorted(GATEWARE.rglob("*.py"))]
COMPONENTS = [name for name in FILES if not name.startswith("testing/")]
TESTS = [
    path.relative_to(ROOT).as_posix()
    for part in ("hw", "formal")
    for path in sorted((ROOT / "tests" / part).rglob("test_*.py"))
]
PROOFS = {path for path in TESTS if path.startswith("tests/formal/")} - {"tests/formal/test_proof.py"}  # of the prover


def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def short_name(test: Path) -> str:
    """A test file as the table names it; every unit of a core has one of the same stem."""
    return f"{test.parent.name}/{test.stem}" if test.stem == "test_unit" else test.stem


@pytest.mark.parametrize("test", NAMED)
def test_what_the_record_names_exists(test: str) -> None:
    path, _, name = test.partition("::")
    assert (ROOT / path).exists(), f"{path} does not exist"
    assert not name or name in functions_of(ROOT / path), f"{path} has no {name}"


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_block_is_in_the_record(component: str) -> None:
    assert f"`{component}`" in RECORD, f"docs/verification does not name {component}"


@pytest.mark.parametrize("path", TESTS)
def test_every_test_of_the_gateware_is_in_the_record(path: str) -> None:
    assert any(test.partition("::")[0] == path for test in NAMED), f"docs/verification does not name {path}"
    if "test_coverage" in functions_of(ROOT / path):
        assert f"{path}::test_coverage" in NAMED


def test_stages_of_the_table_are_those_of_the_tests() -> None:
    lines = [line.split("|") for line in (ROOT / "docs/verification/index.md").read_text().splitlines()]
    rows = [line for line in lines if len(line) == 11 and line[2].strip() == "yes"]
    for column, tests in ((5, {p for p in TESTS if "test_coverage" in functions_of(ROOT / p)}), (6, PROOFS)):
        named = {name for row in rows for name in re.findall(r"`((?:\w+/)?test_\w+)`", row[column])}
        assert named == {short_name(Path(test)) for test in tests}
