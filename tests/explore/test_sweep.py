"""Sweeps: what runs, what is kept, and that nothing is lost."""

import json
from pathlib import Path

import pytest
from priced import Priced, space

from sley.driver import BadRequest
from sley.explore.results.table import write_tables
from sley.explore.search.searches import search_of
from sley.explore.sweep.journal import DONE, FAILED, INFEASIBLE, Journal, Run
from sley.explore.sweep.sweep import Outcome, Sweep
from sley.explore.sweep.workers import Workers

SPACE = space(array=(4, 8), scratchpad_rows=(16, 512), latency=(16, 64))
OBJECTIVES = ("cycles", "bytes")


def swept(
    folder: Path, workers: Workers, retry: bool = False, name: str = "grid", designs: int | None = None
) -> list[Outcome]:
    folder.mkdir(exist_ok=True)
    journal = Journal(folder / "journal")
    try:
        return Sweep(SPACE, OBJECTIVES, journal, workers, retry).run(search_of(name, SPACE, 2, designs, 0))
    finally:
        journal.close()


def tables(folder: Path, outcomes: list[Outcome]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in write_tables(folder, outcomes)}


def test_each_design_has_an_outcome(tmp_path: Path) -> None:
    outcomes = swept(tmp_path, workers := Priced())
    assert [one.status for one in outcomes] == [DONE] * 4 + [INFEASIBLE] * 2 + [DONE] * 2
    assert "scratchpad_rows is 16; it must be a power of two in 32" in outcomes[4].reason
    assert workers.asked == 6
    near, far = outcomes[2].objectives, outcomes[3].objectives
    assert near["bytes"] == far["bytes"] == 512 * 100 * 4
    assert far["cycles"] - near["cycles"] == 48


def test_results_do_not_depend_on_the_order_of_the_runs(tmp_path: Path) -> None:
    first = tables(tmp_path / "a", swept(tmp_path / "a", Priced()))
    assert first == tables(tmp_path / "b", swept(tmp_path / "b", Priced(backwards=True)))
    assert set(first) >= {"designs.csv", "pareto.csv"}


class KilledError(Exception):
    pass


class Dying(Priced):
    """Ends after so many runs."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def run(self, tasks):  # type: ignore[no-untyped-def]
        for run in super().run(tasks):
            if self.asked > self.after:
                raise KilledError
            yield run


@pytest.mark.parametrize("name", ["grid", "random", "evolutionary"])
def test_a_sweep_that_was_killed_goes_on(name: str, tmp_path: Path) -> None:
    if name == "evolutionary":
        pytest.importorskip("optuna", reason="the extra explore is not installed")
    whole = tables(tmp_path / "a", swept(tmp_path / "a", workers := Priced(), name=name, designs=8))
    with pytest.raises(KilledError):
        swept(tmp_path / "b", Dying(2), name=name, designs=8)
    rest = Priced()
    assert tables(tmp_path / "b", swept(tmp_path / "b", rest, name=name, designs=8)) == whole
    assert rest.asked == workers.asked - 2


def test_nothing_runs_twice(tmp_path: Path) -> None:
    swept(tmp_path, Priced())
    swept(tmp_path, workers := Priced())
    assert workers.asked == 0


def test_failures_are_listed_and_retried_when_asked(tmp_path: Path) -> None:
    outcomes = swept(tmp_path, Priced(bad=("array", 8)))
    assert [one.reason for one in outcomes if one.status == FAILED] == ["work: no array of 8"] * 2
    swept(tmp_path, still := Priced())
    assert still.asked == 0
    again = Priced()
    assert all(one.status != FAILED for one in swept(tmp_path, again, retry=True))
    assert again.asked == 2


def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.add(Run("a", "work", DONE, cost={"cycles": 1}))
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    journal = Journal(path)
    assert list(journal.runs) == ["a"]
    journal.add(Run("b", "work", FAILED, "why"))
    journal.close()
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "b"]
    assert Journal(path).runs["b"].reason == "why"


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text('{"key": "a"}\n')
    with pytest.raises(BadRequest, match=r"line 1 of .*journal is no run of a sweep"):
        Journal(path)
