"""Pareto fronts and the picture."""

import itertools
import random
from pathlib import Path

import pytest
from priced import Priced, space

from sley.explore.results.pareto import front
from sley.explore.results.picture import write_picture
from sley.explore.results.table import rows
from sley.explore.search.searches import search_of
from sley.explore.sweep.journal import Journal
from sley.explore.sweep.sweep import Sweep


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_the_front_is_what_nobody_beats(objectives: int) -> None:
    draw = random.Random(objectives)
    costs = [[draw.randrange(6) for _ in range(objectives)] for _ in range(60)]

    def beats(a: list[int], b: list[int]) -> bool:
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    assert front(costs) == [not any(beats(other, one) for other in costs) for one in costs]
    assert front([]) == []


def test_the_picture_is_one_file_with_everything(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="the extra explore is not installed")
    chips = space(array=(4, 8), operand_types=(("int8",), ("int8", "bf16")), latency=(16, 64))
    objectives = ("cycles", "bytes", "area")
    journal = Journal(tmp_path / "journal")
    made = Sweep(chips, objectives, journal, Priced(bad=("array", 8)))
    outcomes = made.run(search_of("grid", chips, 3, None, 0))
    journal.close()
    picture = write_picture(tmp_path, "chips", outcomes, objectives)
    assert picture is not None
    text = picture.read_text()
    assert "src=" not in text.replace("\\", "")[:2000]
    for a, b in itertools.combinations(objectives, 2):
        assert f"{a} / {b}" in text.replace("\\u002f", "/")
    done = [row for row in rows(outcomes) if row["status"] == "done"]
    assert len(done) == 4
    assert text.count("<br>latency: ") + text.count("\\u003cbr\\u003elatency: ") == 4
