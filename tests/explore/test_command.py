"""The command ``sley sweep``."""

import csv
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sley.driver import BadRequest
from sley.explore.command import sweep

SPACE = Path(__file__).parent / "space_of_products.py"
app = typer.Typer()
app.command()(sweep)


def ran(*arguments: object) -> str:
    ended = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.output


@pytest.mark.slow
def test_a_sweep_prints_the_front_and_writes_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shown = ran(SPACE, "-o", folder, "-j", 1)
    assert "8 designs: 6 done, 2 infeasible, 0 failed" in shown
    tables = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".parquet")}
    assert {"designs.csv", "pareto.csv"} <= set(tables)
    assert tables["pareto.csv"].count(b"\n") == 1 + tables["designs.csv"].count(b",True,")
    journal = (folder / "journal.jsonl").read_bytes()
    assert "8 designs: 6 done" in ran(SPACE, "-o", folder, "-j", 1)
    assert (folder / "journal.jsonl").read_bytes() == journal, "nothing runs twice"
    assert tables == {name: (folder / name).read_bytes() for name in tables}


@pytest.mark.campaign
def test_finalists_are_synthesised(tmp_path: Path) -> None:
    """The model's area of a chip on the front is within a tenth of what Yosys makes of it."""
    folder = tmp_path / "results"
    assert "synthesised: Area(" in ran(SPACE, "-o", folder, "-j", 1, "-s", "random", "-n", 2, "--synthesize", 1)
    with (folder / "designs.csv").open() as file:
        chips = [row for row in csv.DictReader(file) if row["lut by synthesis"]]
    assert "True" in {chip["pareto"] for chip in chips}
    for name in ("lut", "ff", "dsp", "bram"):
        assert float(chips[0][f"{name} by synthesis"]) == pytest.approx(float(chips[0][name]), rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("absent.toml",), "there is no file absent.toml"),
        ((SPACE, "--objective", "speed"), "no objective 'speed'; there are cycles, bytes, energy, area"),
        ((SPACE, "--objective", "area", "--objective", "area"), "name each once"),
        ((SPACE, "--search", "gird"), "no search 'gird'"),
    ],
)
def test_what_is_no_sweep(arguments: tuple[object, ...], problem: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=problem):
        ran(*arguments, "-o", tmp_path / "results")
    assert not (tmp_path / "results").exists()
