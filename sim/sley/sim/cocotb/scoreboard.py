"""A scoreboard against the exact model: a session runs on the chip and on the model, and both must find the same."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from cocotb.task import bridge
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.sim.engines.options import EngineOptions
from sley.sim.engines.timed import TimedTransport, check_exact

SHOWN = 4
"""Elements that differ, of those that a message names."""


class ScoreboardError(AssertionError):
    """The chip and the model found different things."""


@dataclass(frozen=True)
class Found:
    """A result of a session: its name, its values, and the cycle in which it was known, if cycles are counted."""

    name: str
    values: NDArray[Any]
    cycle: int | None


class Results:
    """What a session found, in order. ``add`` each result as soon as it is known."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.found: list[Found] = []

    def add(self, name: str, values: Any) -> None:
        cycle = getattr(self._transport, "cycles", None)
        self.found.append(Found(name, np.array(values), cycle))


Session = Callable[[Any, Results], None]
"""A function of a transport and of the results that it adds to."""


async def compare(session: Session, transport: Any, config: ChipConfig) -> list[Found]:
    """Runs ``session`` on the chip of a bench, then on the exact model of ``config``; what the chip found.

    Every result must be the same in every bit. If the memory of ``transport`` follows the engines' rule, as that of
    ``CycleTransport`` does, so must be the cycle of every result.

    Raises
    ------
    ScoreboardError
        That names the first result that differs, the element or cycle, what is expected and what was found.
    EngineError
        For a chip of which there is no exact model.
    """
    check_exact(config)
    results = Results(transport)
    await bridge(session)(transport, results)
    exact = transport.timing is not None
    options = EngineOptions(transport.memory_bytes, *([transport.timing] if exact else []))
    model = TimedTransport(config, options)
    try:
        expected = Results(model)
        with ThreadPoolExecutor(1) as pool:  # as the bench: a driver among threads waits in shorter slices
            pool.submit(session, model, expected).result()
        if len(results.found) != len(expected.found):
            raise ScoreboardError(f"the chip found {len(results.found)} results, the model {len(expected.found)}")
        for got, wanted in zip(results.found, expected.found, strict=True):
            check(got, wanted, exact)
    finally:
        model.close()
    return results.found


def check(got: Found, wanted: Found, cycles: bool) -> None:
    """Raises ``ScoreboardError`` if a result is not the one of the model."""
    kinds = [(found.name, found.values.shape, found.values.dtype) for found in (got, wanted)]
    if kinds[0] != kinds[1]:
        raise ScoreboardError(f"the chip found {kinds[0]} where the model found {kinds[1]}")
    flat = [np.ascontiguousarray(found.values).reshape(-1) for found in (got, wanted)]
    bits = [values.view(np.uint8).reshape(values.size, values.itemsize) for values in flat]
    differ = np.flatnonzero((bits[0] != bits[1]).any(1))
    if differ.size:
        shown = ", ".join(
            f"{tuple(int(i) for i in np.unravel_index(place, got.values.shape))}: {flat[1][place]} expected, "
            f"{flat[0][place]} found"
            for place in differ[:SHOWN]
        )
        raise ScoreboardError(f"{got.name}: {differ.size} of {flat[0].size} elements differ: {shown}")
    if cycles and got.cycle != wanted.cycle:
        raise ScoreboardError(f"{got.name}: known in cycle {got.cycle}, on the model in cycle {wanted.cycle}")
