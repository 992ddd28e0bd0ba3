"""The table of tested versions holds what is installed here."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "versions.md").read_text()
ROWS = re.findall(r"(?m)^\| (\w+) \| `\w+` \| ([\d.]+) \| ([\d.]+) \|", PAGE)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.partition("+")[0].split("."))


def test_the_table_has_both() -> None:
    assert [name for name, *_ in ROWS] == ["onnx", "torch"]


@pytest.mark.parametrize(("name", "oldest", "newest"), ROWS)
def test_what_is_installed_was_tested(name: str, oldest: str, newest: str) -> None:
    try:
        found = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert numbers(oldest) <= numbers(found) <= numbers(newest), (
        f"{name} {found} is not among the versions of docs/reference/versions.md: run the tests, then enter it"
    )
