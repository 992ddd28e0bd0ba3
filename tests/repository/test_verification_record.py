"""The verification record names what exists: every test in it, every file of the gateware and of its tests."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "verification").glob("*.md"))
RECORD = "\n".join(page.read_text() for page in PAGES)
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", RECORD)))
GATEWARE = ROOT / "hw" / "sley" / "hw"
FILES = [path.relative_to(GATEWARE).as_posix() for path in sorted(GATEWARE.rglob("*.py"))]
COMPONENTS = [name for name in FILES if not name.startswith("testing/") and not name.endswith("__init__.py")]
TESTS = [
    path.relative_to(ROOT).as_posix()
    for part in ("hw", "formal")
    for path in sorted((ROOT / "tests" / part).rglob("test_*.py"))
]
PROOFS = {path for path in TESTS if path.startswith("tests/formal/")} - {"tests/formal/test_proof.py"}  # of the prover


@cache
def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


COVERED = {path for path in TESTS if "test_coverage" in functions_of(ROOT / path)}


def short_name(test: Path) -> str:
    """A test file as the table names it; of some stems every block has one."""
    return f"{test.parent.name}/{test.stem}" if test.stem in ("test_unit", "test_meetings") else test.stem


def test_what_the_record_names_exists() -> None:
    missing = []
    for test in NAMED:
        path, _, name = test.partition("::")
        if not (ROOT / path).exists() or (name and name not in functions_of(ROOT / path)):
            missing.append(test)
    assert NAMED
    assert not missing, f"docs/verification names what does not exist: {', '.join(missing)}"


def test_every_block_is_in_the_record() -> None:
    missing = [component for component in COMPONENTS if f"`{component}`" not in RECORD]
    assert COMPONENTS
    assert not missing, f"docs/verification does not name {', '.join(missing)}"


def test_every_test_of_the_gateware_is_in_the_record() -> None:
    named = {test.partition("::")[0] for test in NAMED}
    missing = [path for path in TESTS if path not in named]
    missing += [f"{path}::test_coverage" for path in COVERED if f"{path}::test_coverage" not in NAMED]
    assert TESTS
    assert not missing, f"docs/verification does not name {', '.join(missing)}"


def test_every_campaign_is_in_the_table_of_the_last_runs() -> None:
    table = (ROOT / "docs/verification/index.md").read_text().partition("## Campaigns")[2].partition("\n## ")[0]
    marked = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark.campaign" in path.read_text() and path != Path(__file__)
    ]
    missing = [path for path in marked if f"`{path}`" not in table]
    assert marked
    assert not missing, f"docs/verification/index.md has no campaign {', '.join(missing)}"


def test_stages_of_the_table_are_those_of_the_tests() -> None:
    lines = [line.split("|") for line in (ROOT / "docs/verification/index.md").read_text().splitlines()]
    rows = [line for line in lines if len(line) == 11 and line[2].strip() == "yes"]
    for column, tests in ((5, COVERED), (6, PROOFS)):
        named = {name for row in rows for name in re.findall(r"`((?:\w+/)?test_\w+)`", row[column])}
        assert named == {short_name(Path(test)) for test in tests}
