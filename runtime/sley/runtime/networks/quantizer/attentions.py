"""The error that each attention makes with q, k and v in int8, by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.attention_forms import FoundAttention, attentions_of
from sley.runtime.networks.passes.constants import Fold
from sley.runtime.networks.quantizer.evaluation import signal_to_noise
from sley.runtime.networks.quantizer.layers import operands_of
from sley.runtime.networks.quantizer.ranges import Scale


@dataclass
class MeasuredAttention:
    """An attention while a network is evaluated.

    Attributes
    ----------
    signal, noise: energies over all results that were seen. products: multiplications for one sample. first: result on
        the first batch.
    """

    found: FoundAttention
    scales: Mapping[str, Scale]
    signal: float = 0.0
    noise: float = 0.0
    products: int = 0
    first: Array | None = None
    _values: dict[str, Array] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.found.nodes[-1].name or self.found.output

    @property
    def ratio(self) -> float:
        """Of signal to noise, dB."""
        return signal_to_noise(self.signal, self.noise)

    def watch(self, node: Node, inputs: Sequence[Array | None], results: Sequence[Array], fold: Fold) -> None:
        """Sees an operator of it."""
        self._values |= {name: value for name, value in zip(node.inputs, inputs, strict=True) if value is not None}
        if node is not self.found.nodes[-1]:
            return
        values = dict(self._values)
        for name in operands_of(self.found):
            values[name] = self.scales[name].rounded(values[name])
        for one in self.found.nodes:
            (values[one.outputs[0]],) = fold(one, [values[name] if name else None for name in one.inputs])
        real = results[0].astype(np.float64)
        self.signal += float(np.square(real).sum())
        self.noise += float(np.square(values[self.found.output] - real).sum())
        if self.first is None:
            keys = self._values[self.found.v].shape[-2]
            self.first, self.products = results[0], 2 * results[0].size * keys // len(results[0])
        self._values.clear()


class Attentions:
    """All of a network: ``watch`` sees its operators."""

    def __init__(self, found: Sequence[FoundAttention], scales: Mapping[str, Scale], fold: Fold) -> None:
        self.measured = [MeasuredAttention(one, scales) for one in found]
        self.fold = fold
        self._of = {id(node): one for one in self.measured for node in one.found.nodes}

    def watch(self, node: Node, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        one = self._of.get(id(node))
        if one is not None:
            one.watch(node, inputs, results, self.fold)


def computed_attentions(network: Network) -> list[FoundAttention]:
    """Those of which q, k and v are computed, or inputs."""
    return [one for one in attentions_of(network) if not set(operands_of(one)) & set(network.constants)]
