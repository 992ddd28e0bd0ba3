"""Searches that learn from what designs cost: Bayesian (TPE) and evolutionary (NSGA-II), by optuna."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import optuna

from sley.explore.search.search import Costs
from sley.explore.space.space import Point, Space

ROUND = 8
"""Designs chosen at once by the Bayesian search. A constant, not the number of workers: the same designs everywhere."""
POPULATION = 16
"""Designs of a generation."""


class Guided:
    """A search of several objectives.

    Parameters
    ----------
    bayesian: a tree-structured Parzen estimator; else NSGA-II.
    space: parameters are places in their lists of values. Lists of numbers that go up are taken as ordered.
    objectives: how many. designs: at most so many, all different. seed: with another one the search goes another way.
    """

    def __init__(self, bayesian: bool, space: Space, objectives: int, designs: int, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        samplers = optuna.samplers
        sampler = (
            samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
            if bayesian
            else samplers.NSGAIISampler(seed=seed, population_size=POPULATION)
        )
        self._size = ROUND if bayesian else POPULATION
        self._study = optuna.create_study(directions=["minimize"] * objectives, sampler=sampler)
        self._space, self._designs = space, designs
        self._known: dict[str, Costs] = {}
        self._round_points: list[Point] = []

    def rounds(self) -> Iterator[list[Point]]:
        """Ends with enough designs."""
        while len(self._known) < self._designs:
            size = min(self._size, self._designs - len(self._known))
            trials = [self._study.ask() for _ in range(size)]
            points = {repr(point): point for point in map(self._point, trials)}
            fresh = [point for text, point in points.items() if text not in self._known]
            self._round_points = fresh or self._untried(size)
            yield self._round_points
            for trial, text in zip(trials, map(repr, map(self._point, trials)), strict=True):
                values = self._known[text]
                if values is None:
                    self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
                else:
                    self._study.tell(trial, values)

    def costs(self, found: Sequence[Costs]) -> None:
        self._known |= dict(zip(map(repr, self._round_points), found, strict=True))

    def _point(self, trial: optuna.Trial) -> Point:
        point: Point = {}
        for name, values in self._space.values.items():
            ordered = all(isinstance(v, int) for v in values) and list(values) == sorted(values)
            place = (
                trial.suggest_int(name, 0, len(values) - 1)
                if ordered
                else trial.suggest_categorical(name, range(len(values)))
            )
            point[name] = values[place]
        return point

    def _untried(self, count: int) -> list[Point]:
        """The first points of the space that were not chosen yet: a search that repeats itself still ends."""
        return list(islice((point for point in self._space if repr(point) not in self._known), count))
