"""Compiled networks between tensors of the device ``sley``: launches take the arrays that tensors have.

Before each launch the graph gets the addresses of the arguments, and of new arrays for the results, so no element
moves. Only an argument whose strides are not those that the launches were made for is copied, on the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.frameworks.torch_device.engine import index_of, on
from sley.runtime.frameworks.torch_device.tensors import elements, empty, on_device, row_major, wrap
from sley.runtime.frameworks.torch_device.types import to_numpy
from sley.runtime.networks.compilation import CompiledNetwork, stored
from sley.runtime.nn import operators as nn


def base_of(array: Buffer) -> Buffer:
    return array if array.base is None else array.base


class BoundNetwork:
    """A network with its inputs and outputs as tensors of the device.

    Attributes: ``copied``: arguments that were copied on the device so far.
    """

    def __init__(self, network: CompiledNetwork) -> None:
        self.network, self.device, self.copied = network, Device.of(network.stream), 0
        self._inputs = list(network.inputs.values())
        bases = [base_of(value) for value in network.outputs.values() if isinstance(value, Buffer)]
        ends = [base_of(value) for value in self._inputs]
        self._own = {id(base) for base in bases if sum(base is other for other in (*bases, *ends)) == 1}
        self._uses: dict[int, list[tuple[int, int, Buffer]]] = {}
        self._seeds = network.seeds
        self._kept = [*bases, *ends, self._seeds.array]  # whose identities are the keys
        known = {id(base) for base in self._kept}
        for number, launch in enumerate(network.graph.launches):
            for spot, value in enumerate(launch.values):
                if isinstance(value, Buffer) and id(base_of(value)) in known:
                    self._uses.setdefault(id(base_of(value)), []).append((number, spot, value))

    def __call__(
        self,
        arguments: Sequence[torch.Tensor],
        dtypes: Sequence[torch.dtype],
        strides: Sequence[tuple[int, ...] | None],
    ) -> list[torch.Tensor]:
        """Submits the work; returns before it is done. ``dtypes``, ``strides``: of results."""
        changes: dict[int, dict[int, Buffer]] = {}
        homes: dict[int, Buffer] = {}
        for array, tensor in zip(self._inputs, arguments, strict=True):
            home = homes[id(base_of(array))] = self._source(array, tensor)
            self._bind(array, home, changes)
        found: list[Buffer] = []
        for value in self.network.outputs.values():
            array = value if isinstance(value, Buffer) else Buffer.of(self.device, stored(value, "a result"))
            base = base_of(array)
            if id(base) in self._own:
                homes[id(base)] = self.device.empty(base.shape, base.dtype)
                self._bind(base, homes[id(base)], changes)
            found.append(array.placed(homes[id(base)], array.address - base.address) if id(base) in homes else array)
        if self._seeds.count:
            with on(index_of(self.device)):
                self._bind(self._seeds.array, self.device.array(self._seeds.drawn()), changes)
        graph = self.network.graph
        for number, spots in changes.items():
            values = list(graph.launches[number].values)
            for spot, value in spots.items():
                values[spot] = value
            graph.update(number, values)
        if len(graph):
            graph.launch(self.device.stream)
        with on(index_of(self.device)):
            return [
                self._result(array, dtype, step, not isinstance(value, Buffer) or id(base_of(value)) in self._own)
                for value, array, dtype, step in zip(self.network.outputs.values(), found, dtypes, strides, strict=True)
            ]

    def _source(self, array: Buffer, tensor: torch.Tensor) -> Buffer:
        """Where a launch finds an argument: the tensor's elements, or the network's own array with a copy of them."""
        if not on_device(tensor) and not tensor.dim():
            array.write(to_numpy(tensor))
            return array
        given = elements(tensor)
        if given.strides == array.strides or (given.contiguous and array.contiguous):
            return given
        nn.copy(given, out=array)
        self.copied += 1
        return array

    def _bind(self, array: Buffer, home: Buffer, changes: dict[int, dict[int, Buffer]]) -> None:
        base = base_of(array)
        for number, spot, value in self._uses.get(id(base), []):
            offset = value.address - base.address
            now = self.network.graph.launches[number].values[spot]
            if not isinstance(now, Buffer) or now.address != home.address + offset or now.base is not base_of(home):
                changes.setdefault(number, {})[spot] = value if home is array else value.placed(home, offset)

    def _result(self, array: Buffer, dtype: torch.dtype, strides: tuple[int, ...] | None, own: bool) -> torch.Tensor:
        steps = tuple(row_major(array.shape)) if strides is None else strides
        mine = tuple(step // array.dtype.itemsize for step in array.strides)
        if own and (mine == steps or (array.contiguous and list(steps) == row_major(array.shape))):
            return wrap(array, dtype)
        result = empty(array.shape, dtype, steps)
        if array.size:
            once = tuple(slice(0, 1 if step == 0 else side) for step, side in zip(steps, array.shape, strict=True))
            nn.copy(array[once], out=elements(result)[once])  # of an expanded result each element once
        return result
