"""The zoo's networks for other portions, by name: what ``sley sweep`` can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sley.examples.zoo.registry import MODELS
from sley.explore.costs.workload import NetworkWorkload


def networks() -> Mapping[str, Callable[[], NetworkWorkload]]:
    """Those that are compiled networks, with the first of their sets of weights."""
    return {name: partial(_workload, name) for name, model in MODELS.items() if model.load is not None}


def _workload(name: str) -> NetworkWorkload:
    model = MODELS[name]
    assert model.load is not None
    subject = model.load(model.weights[0])
    return NetworkWorkload(name, subject.network, {key: value.shape for key, value in subject.inputs.items()})
