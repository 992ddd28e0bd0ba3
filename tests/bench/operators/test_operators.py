"""The page of operators has all of them, with what they say of themselves."""

from pathlib import Path

import pytest

from sley.bench.operators.report import ENGINE, described, measured, page
from sley.bench.operators.works import call_of, names
from sley.runtime import Device

PAGE = Path(__file__).parents[3] / "docs/reference/operators.md"


def test_the_page_is_current() -> None:
    """Write it again with ``sley bench operators --write docs/reference/operators.md``."""
    found = {cells[1].strip(" `"): cells for cells in map(_cells, PAGE.read_text().splitlines()) if len(cells) == 8}
    found.pop("operator")
    found.pop("---")
    assert sorted(found) == sorted(names())
    for name in names():
        (written,) = (cells for cells in map(_cells, page([described(name)]).splitlines()) if f" `{name}` " in cells)
        assert (found[name][3], found[name][4]) == (written[3], written[4]), name


def test_each_operator_has_a_call() -> None:
    assert all(map(call_of, names()))


def test_errors_are_found() -> None:
    assert described("exp2").error == "1 ulp"
    assert described("exp2").computes == "2^x."
    assert described("floor").error == "exactly" or described("floor").error == ""


@pytest.mark.slow
def test_measured() -> None:
    with Device.open(ENGINE) as device:
        row = measured(device, "add")
        assert row.types == ("bool", "int8", "int32", "bf16", "fp32")
        assert 0.5 < row.share < 1
        assert measured(device, "split").cycles == 0


def _cells(line: str) -> list[str]:
    return line.replace("\\|", "¦").split("|")
