"""A network of reals on the host, operator by operator, to look at its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from sley.driver import BadRequest
from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.constants import Fold

Watch = Callable[[Node, Sequence[Array | None], Sequence[Array]], None]
"""Sees an operator, its inputs and its results."""
MOST = 32
"""Samples of a batch, where the network leaves it open."""


def evaluate(network: Network, inputs: Mapping[str, Array], fold: Fold, watch: Watch | None = None) -> dict[str, Array]:
    """The outputs for these inputs. Values are forgotten behind their last use."""
    values: dict[str, Array] = {**network.constants, **inputs}
    left = Counter(name for node in network.nodes for name in set(node.inputs) if name)
    for node in network.nodes:
        given = [values[name] if name else None for name in node.inputs]
        results = fold(node, given)
        if watch is not None:
            watch(node, given, results)
        values |= {name: value for name, value in zip(node.outputs, results, strict=False) if name}
        for name in set(node.inputs):
            left[name] -= 1
            if not left[name] and name not in network.outputs and name not in network.constants:
                values.pop(name, None)
    return {name: values[name] for name in network.outputs}


def batches(network: Network, data: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Data cut along its first axis into batches as the network takes them. Raises ``BadRequest``."""
    if set(data) != set(network.inputs):
        raise BadRequest(f"data for {', '.join(sorted(data))}; {network.name!r} takes {', '.join(network.inputs)}")
    counts = {len(values) for values in data.values()}
    if len(counts) != 1 or 0 in counts:
        raise BadRequest(f"data of {sorted(counts)} samples; all inputs have as many, at least 1")
    (count,) = counts
    sizes = {side for type in network.inputs.values() for side in (type.shape or (None,))[:1] if isinstance(side, int)}
    size = max(sizes, default=MOST)
    if count % size and sizes:
        raise BadRequest(f"{count} samples, and {network.name!r} takes {size} at once: give a multiple of it")
    for first in range(0, count, size):
        yield {
            name: values[first : first + size].astype(network.inputs[name].dtype, copy=False)
            for name, values in data.items()
        }


def signal_to_noise(signal: float, noise: float) -> float:
    """In dB, of energies; infinite without noise."""
    if noise <= 0:
        return np.inf
    return float(10 * np.log10(max(signal, 1e-300) / noise))
