"""Studies in a small form: what each finds, and its page and picture."""

import re
from pathlib import Path

import pytest

from sley.abi.functions.own import own_functions
from sley.driver import BadRequest
from sley.examples.studies.page import page
from sley.examples.studies.picture import picture
from sley.examples.studies.study import Line, Result, Study, shown

pytest.importorskip("onnx", reason="onnx is not installed: pip install -e '.[explore]'")
from sley.examples.studies.registry import STUDIES

FOLDER = Path(__file__).parents[2] / "docs" / "studies"
QUICK = ("stationary",)
RESULT = Result(("n", "cycles"), [(1, 1234), (2, 0.5)], [Line("a", [1, 2], [1234, 0.5])], "n", "cycles", (1, 2))


def test_cells() -> None:
    assert [shown(cell) for cell in ("x", 12345, 99.5, 1234.5, 0.01234)] == ["x", "12,345", "99.5", "1,234", "0.0123"]


def test_page_and_picture() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install -e '.[explore]'")
    study = Study("mine", "Which one?", "How.", lambda small: RESULT)
    assert "| 1 | 1,234 |\n| 2 | 0.5 |\n" in page(study, RESULT)
    assert picture(RESULT, "Which one?") == picture(RESULT, "Which one?")
    assert "</svg>" in picture(RESULT, "Which one?")


def check(name: str) -> None:
    result = STUDIES[name].run(True)
    assert result.rows
    assert all(len(row) == len(result.columns) for row in result.rows)
    assert all(len(line.x) == len(line.y) > 0 for line in result.lines)


@pytest.mark.parametrize("name", QUICK)
def test_small(name: str) -> None:
    check(name)


@pytest.mark.skipif("softplus" in own_functions(), reason="the function is installed")
def test_a_function_that_is_not_installed() -> None:
    """With it the study is run by ``test_softplus.py``."""
    with pytest.raises(BadRequest, match="the function softplus is not installed"):
        STUDIES["own-operation"].run(True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STUDIES if name not in (*QUICK, "own-operation")])
def test_more(name: str) -> None:
    check(name)


def test_pages_are_there() -> None:
    """Each page is of its study as it is: question, method and columns."""
    for study in STUDIES.values():
        text = (FOLDER / f"{study.name}.md").read_text()
        assert text.startswith(page(study, Result((), (), (), "", "")).partition("\n\n| ")[0]), study.name
        assert re.search(r"^\| .* \|$", text, re.M), study.name
        assert (FOLDER / f"{study.name}.svg").read_text().rstrip().endswith("</svg>"), study.name
