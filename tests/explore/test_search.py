"""Searches: what they choose, and that it depends on nothing but space, seed and costs."""

from typing import Any

import pytest
from priced import space

from sley.driver import BadRequest
from sley.explore.search.search import Costs
from sley.explore.search.searches import SEARCHES, search_of
from sley.explore.space.space import Point, Space

SPACE = space(array=(4, 8, 16), latency=tuple(range(1, 201)), operand_types=(("int8",), ("int8", "bf16")))


def price(point: Point) -> Costs:
    """The least is at array 8, latency 70, int8; two thirds of array 16 have no price."""
    if point["array"] == 16 and point["latency"] % 3:
        return None
    worse = 100.0 * (len(point["operand_types"]) - 1)
    return abs(point["array"] - 8) + abs(point["latency"] - 70) + worse, worse + point["latency"]


def went(name: str, designs: int | None, seed: int = 0, where: Space = SPACE) -> list[list[Point]]:
    search, rounds = search_of(name, where, 2, designs, seed), []
    for points in search.rounds():
        rounds.append(points)
        search.costs([price(point) for point in points])
    return rounds


def flat(rounds: list[list[Point]]) -> list[Point]:
    return [point for points in rounds for point in points]


def test_a_grid_is_all_points() -> None:
    assert flat(went("grid", None)) == list(SPACE)
    assert flat(went("grid", 7)) == list(SPACE)[:7]


@pytest.mark.parametrize("name", SEARCHES)
def test_designs_are_different_and_as_many_as_asked(name: str) -> None:
    if name in ("bayesian", "evolutionary"):
        pytest.importorskip("optuna", reason="the extra explore is not installed")
    points = [repr(point) for point in flat(went(name, 45))]
    assert len(points) == len(set(points)) == 45
    assert set(points) <= {repr(point) for point in SPACE}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_goes_the_same_way_again(name: str) -> None:
    if name in ("bayesian", "evolutionary"):
        pytest.importorskip("optuna", reason="the extra explore is not installed")
    assert went(name, 40, 3) == went(name, 40, 3)
    assert name == "grid" or went(name, 40, 3) != went(name, 40, 4)


@pytest.mark.parametrize("name", ["bayesian", "evolutionary"])
def test_a_space_that_is_used_up_ends(name: str) -> None:
    pytest.importorskip("optuna", reason="the extra explore is not installed")
    small = space(array=(4, 8), latency=(1, 2, 3), operand_types=(("int8",),))
    assert len(flat(went(name, 100, where=small))) == small.size


@pytest.mark.parametrize("name", ["bayesian", "evolutionary"])
def test_a_guided_search_learns(name: str) -> None:
    """Its later designs are better than random ones, by the sum of both objectives."""
    pytest.importorskip("optuna", reason="the extra explore is not installed")

    def mean(points: list[Any]) -> float:
        sums = [sum(costs) for costs in map(price, points) if costs is not None]
        return sum(sums) / len(sums)

    assert mean(flat(went(name, 60))[30:]) < 0.8 * mean(flat(went("random", 120)))


def test_what_is_no_search() -> None:
    with pytest.raises(BadRequest, match="no search 'gird'; there are grid, random, bayesian, evolutionary"):
        search_of("gird", SPACE, 2, None, 0)
    with pytest.raises(BadRequest, match="0 designs"):
        search_of("random", SPACE, 2, 0, 0)
