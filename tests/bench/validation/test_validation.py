"""Sley beside SCALE-Sim and ZigZag: the page, and a small case of each."""

from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from sley.bench.gemm.scalesim import Array
from sley.bench.validation import cases, zigzag
from sley.bench.validation.cases import Case, chip
from sley.bench.validation.page import validation_page
from sley.bench.validation.zigzag import ZigZagCycles, ZigZagError, cycles_of
from sley.runtime.cli import app

SMALL = (24, 16, 40)
needs_zigzag = pytest.mark.skipif(
    find_spec("zigzag") is None, reason="ZigZag is not installed: pip install -e '.[validation]'"
)


def test_page() -> None:
    found = [
        Case(8, "product", (64, 64, 64), 5000, 8192, 6000, True, ZigZagCycles(4096, 4608)),
        Case(16, "l9", (100, 16, 16), 300, 400, 500, False, ZigZagCycles(100, 110)),
    ]
    page = validation_page(found, "1.2.3")
    assert "| product | 64 x 64 x 64 | 4,096 | 5,000 (1.22) | 8,192 (2.00) | 6,000 (1.46) | 4,608 (1.12) |" in page
    assert "## 16 x 16" in page
    assert "ZigZag 1.2.3" in page
    assert "100 x 16 x 16 on 16 x 16, with 3.00 times as many cycles" in page
    assert "run for 1 of 2 cases" in page
    assert "{" not in page


@pytest.mark.parametrize("array", cases.ARRAYS)
def test_chips_do_one_product_to_an_element(array: int) -> None:
    assert chip(array).peak_macs == array**2


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zigzag, "find_spec", lambda name: None)
    with pytest.raises(ZigZagError, match="ZigZag is not installed"):
        cycles_of(8, [SMALL])


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    result = CliRunner().invoke(app, ["bench", "validation"])
    assert result.exit_code == 2
    assert "ZigZag is not installed" in " ".join(result.output.replace("│", " ").split())


@needs_zigzag
@pytest.mark.slow
def test_a_small_case() -> None:
    """All three on 8 x 8: none below the bound, ZigZag's array exactly at it, SCALE-Sim above Sley."""
    ((_, size, on_chip, whole),) = cases._sley(8, [SMALL], [], lambda _: None)
    (modelled,) = cycles_of(8, [SMALL])
    m, n, k = size
    bound = m * n * k // 64
    assert bound <= on_chip < whole
    assert bound == modelled.computed < modelled.whole < 1.6 * bound
    assert on_chip < Array(8, 8).formula(size)
