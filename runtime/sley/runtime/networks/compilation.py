"""From a network to a graph of launches on a device.

Operators run once while their launches are captured, on arrays of the shapes that inputs have. What depends on nothing
but constants and shapes is computed on the host, by whoever read the network (``fold``); all else is work of the
device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sley.driver import BadRequest, SleyError
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.graph import Graph
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.networks.file import save_network
from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.macs import Place, macs_of
from sley.runtime.networks.memory import MemoryUse, plan_memory
from sley.runtime.networks.passes.constants import Fold, draws, on_host
from sley.runtime.networks.passes.narrow import RESULT, narrow, typed
from sley.runtime.networks.passes.order import optimised
from sley.runtime.networks.passes.quantized.signed import less, more
from sley.runtime.networks.passes.shuffles import EXACT
from sley.runtime.networks.passes.unused import leave_out_unused
from sley.runtime.networks.registry import OWN, Handler, UnsupportedOperator, handlers
from sley.runtime.networks.seeds import Seeds

Value = Buffer | Array
STORED = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.uint32): np.dtype(np.int32)}
"""Types of networks that the device keeps in another one, after a look at their range."""
SHIFTED = {np.dtype(np.uint8): np.dtype(np.int8)}
"""Types of inputs and outputs that the device keeps 128 less; the pass ``signed`` sees to it that operators know."""
OURS = ("relu", "precision")
"""Attributes that passes give to operators of ONNX."""
ON_HOST = ("Shape", "Size", "Range", "ConstantOfShape", "Constant")
"""Operators that are always of shapes and constants alone."""


def stored(array: Array, what: str) -> Array:
    """As the device keeps it. Raises ``UnsupportedType`` for a type that it has not, ``BadRequest`` for integers beyond
    int32."""
    kind = STORED.get(array.dtype)
    if kind is None:
        if (
            array.dtype in (np.float64, np.float16, np.uint8, np.int16, np.uint16, np.uint64)
            or array.dtype.kind in "OUSc"
        ):
            raise UnsupportedType(f"{what} is {array.dtype}; the device has no such type: convert it")
        return array
    if array.size and (array.min() < -(1 << 31) or array.max() >= 1 << 31):
        raise BadRequest(f"{what} holds integers beyond int32, which the device keeps {array.dtype} in")
    return array.astype(kind)


class Compilation:
    """A network while it is compiled for a device.

    Attributes
    ----------
    device, stream: where it runs. precision: of products of float32, as in ``nn.matmul``. known_values: what was
        computed on the host. places: operators that made launches. seeds: of operators that draw random numbers.
    """

    def __init__(
        self,
        network: Network,
        device: Device,
        stream: Stream,
        fold: Fold,
        precision: str,
        operators: Mapping[str, Handler],
        seeds: Seeds,
    ) -> None:
        self._handlers = handlers() | {OWN + name: handler for name, handler in operators.items()}
        self.network, self.device, self.stream, self.precision = network, device, stream, precision
        self._fold, self.seeds = fold, seeds
        self.known_values: dict[str, Array] = {}
        self.places: list[Place] = []
        self._uploaded: dict[int, tuple[Array, Buffer]] = {}
        self._prepared: dict[Any, tuple[Array, Buffer]] = {}

    def array(self, value: Value) -> Buffer:
        """A value on the device; a constant is there once."""
        if isinstance(value, Buffer):
            return value
        if id(value) not in self._uploaded:
            self._uploaded[id(value)] = value, self.device.array(stored(value, "a constant"))
        return self._uploaded[id(value)][1]

    def prepared(self, value: Array, form: Any, make: Callable[[], Array]) -> Buffer:
        """A constant in another form, which is made on the host and is on the device once. ``form``: which one."""
        key = value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str, form
        if key not in self._prepared:
            self._prepared[key] = value, self.device.array(make())
        return self._prepared[key][1]

    def known(self, node: Node, value: Value | None, what: str) -> Array:
        """A value that must be known when the network is compiled. Raises ``UnsupportedOperator``."""
        if not isinstance(value, np.ndarray):
            raise UnsupportedOperator(
                f"{node}: {what} must be known when the network is compiled, and the network computes it"
            )
        return value

    def run(self, values: dict[str, Value], graph: Graph) -> None:
        """Runs all operators, whose launches the graph gets. Raises ``UnsupportedOperator``, with all that are
        missing."""
        table = self._handlers
        missing: list[str] = []
        unknown: set[str] = set()
        for node in self.network.nodes:
            needed = [name for name in node.inputs if name]
            if unknown & set(needed):
                unknown |= set(node.outputs)
                if node.operator not in table and node.operator not in ON_HOST:
                    missing.append(f"{node}: no such operator on the device")
                continue
            inputs = [values[name] if name else None for name in node.inputs]
            before = len(graph.launches)
            try:
                results = self._results(table.get(node.operator), node, inputs)
            except UnsupportedOperator as error:
                missing.append(str(error))
                unknown |= set(node.outputs)
                continue
            except SleyError as error:
                error.add_note(f"in {node} of {self.network.name!r}")
                raise
            if len(graph.launches) > before:
                macs = macs_of(node, inputs, results)
                self.places.append(Place(node, len(graph.launches) - before, macs))
            made = {name: result for name, result in zip(node.outputs, results, strict=False) if name}
            values |= made
            self.known_values |= {name: value for name, value in made.items() if isinstance(value, np.ndarray)}
        if missing:
            lines = "\n  ".join(dict.fromkeys(missing))
            raise UnsupportedOperator(f"{self.network.name!r} has what the device does not do:\n  {lines}")

    def _results(self, handler: Any, node: Node, inputs: list[Value | None]) -> Sequence[Value]:
        if node.operator == "Shape" and isinstance(inputs[0], Buffer):
            shape = inputs[0].shape[node.attributes.get("start", 0) : node.attributes.get("end")]
            return [np.array(shape, np.int64)]
        if node.operator == "Size" and isinstance(inputs[0], Buffer):
            return [np.array(inputs[0].size, np.int64)]
        if on_host(node) and all(value is None or isinstance(value, np.ndarray) for value in inputs):
            return self._known(node, [value for value in inputs if not isinstance(value, Buffer)])
        if handler is None:
            raise UnsupportedOperator(f"{node}: no such operator on the device")
        result = handler(self, node, *inputs)
        return result if isinstance(result, tuple) else (result,)

    def _known(self, node: Node, inputs: list[Array | None]) -> Sequence[Array]:
        """The results of an operator whose inputs are known; of one that a pass has fused those of its parts."""
        if node.operator == "Region":
            values = dict(zip(node.inputs, inputs, strict=True))
            for step in node.attributes["region"].nodes(node.inputs, node.outputs[0], node.version):
                (values[step.outputs[0]],) = self._fold(step, [values[name] for name in step.inputs])
            result = values[node.outputs[0]]
            assert result is not None
            return [result, result.astype(BF16)][: len(node.outputs)]
        attributes = {name: value for name, value in node.attributes.items() if name not in (*OURS, RESULT, EXACT)}
        found = self._fold(replace(node, attributes=attributes), inputs)
        return [np.maximum(value, 0) for value in found] if node.attributes.get("relu") else found


class CompiledNetwork:
    """A network on a device: called with its inputs it gives its outputs, as numpy arrays, by one doorbell.

    Attributes
    ----------
    network: what it is made of. inputs, outputs: device arrays by name. graph: the launches. memory: bytes of arrays.
    places: operators that have launches, in their order. seeds: of random operators; a launch draws new ones.
    """

    def __init__(
        self,
        network: Network,
        ends: tuple[dict[str, Buffer], dict[str, Value]],
        graph: Graph,
        stream: Stream,
        memory: MemoryUse,
        places: Sequence[Place],
        seeds: Seeds,
    ) -> None:
        self.network, self.graph, self.stream, self.memory, self.places = network, graph, stream, memory, places
        self.seeds = seeds
        self.inputs, self.outputs = ends

    def __call__(self, *values: Any, **named: Any) -> dict[str, Array]:
        """Runs it on inputs in order or by name. Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``."""
        self.write(*values, **named)
        self.launch()
        return self.read()

    def save(self, path: str | Path) -> None:
        """Writes the network, with these shapes, to a file for ``load_network``, of any chip."""
        save_network(self.network, path)

    def write(self, *values: Any, **named: Any) -> None:
        """Sets inputs."""
        given = dict(zip(self.inputs, values, strict=False)) | named
        if set(given) != set(self.inputs) or len(values) > len(self.inputs):
            raise BadRequest(f"{self.network.name!r} takes {', '.join(self.inputs)}; given were {', '.join(given)}")
        for name, value in given.items():
            array, kind = np.asarray(value), self.network.inputs[name].dtype
            if kind in SHIFTED and array.dtype != kind:
                raise UnsupportedType(f"{name} is {array.dtype}; the network takes {kind}")
            write_input(self.inputs[name], less(array) if kind in SHIFTED else stored(array, name))

    def launch(self) -> None:
        """Submits the work; returns before it is done."""
        if self.seeds.count:
            self.seeds.array.write(self.seeds.drawn())
        if len(self.graph):
            self.graph.launch()

    def read(self) -> dict[str, Array]:
        """Outputs behind all work so far, in the types that the network says."""
        found = {}
        for name, value in self.outputs.items():
            kind, array = self.network.outputs[name].dtype, value.numpy() if isinstance(value, Buffer) else value
            shifted = kind in SHIFTED and array.dtype == SHIFTED[kind]
            found[name] = more(array) if shifted else array.astype(kind, copy=False)
        return found


def compile_network(
    network: Network,
    device: Device,
    fold: Fold,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    known: Mapping[str, Array] | None = None,
    precision: str = "highest",
    operators: Mapping[str, Handler] | None = None,
    stream: Stream | None = None,
    draw: Callable[[], int] | None = None,
) -> CompiledNetwork:
    """The network for inputs of these shapes, and for some that are known already.

    Parameters
    ----------
    shapes: of inputs whose type leaves sides open.
    known: inputs that never change, such as the sizes of a reshape.
    precision: of products of float32: "highest", "high" or "medium", as in ``nn.matmul``.
    operators: what does operators of these names, in place of what Sley has for them, or of a domain of their own,
        ``"domain.Name"``; each takes and gives what a function with ``registry.operator`` does. No pass fuses them.
    draw: gives a seed for each random operator of a run, as in ``Seeds``.

    Raises ``UnsupportedOperator`` that lists everything that is missing, ``ShapeMismatch``, ``UnsupportedType``,
    ``BadRequest`` for names of ``operators`` that the network does not have.
    """
    constants = {name: np.asarray(value) for name, value in {**network.constants, **(known or {})}.items()}
    network = optimised(network.with_nodes(network.nodes, constants), fold, tuple(operators or ()))
    run = stream or device.stream
    values: dict[str, Value] = {**constants, **network.constants}
    inputs: dict[str, Buffer] = {}
    images = {node.inputs[0] for node in network.nodes if node.operator == "Conv"}
    for name, type in network.inputs.items():
        if name in values:
            continue
        shape = _shape(name, type, (shapes or {}).get(name))
        kind = SHIFTED.get(type.dtype) or stored(np.zeros(0, type.dtype), name).dtype
        inputs[name] = input_array(device, shape, kind, name in images)
    values |= inputs
    narrowed = typed(narrow(network) if precision == "medium" else network)
    seeds = Seeds(device, sum(map(draws, narrowed.nodes)), draw)
    compilation = Compilation(narrowed, device, run, fold, precision, operators or {}, seeds)
    with run.capture() as graph:
        compilation.run(values, graph)
        outputs: dict[str, Value] = {}
        for name, type in network.outputs.items():
            outputs[name] = values[name]
            if values[name].dtype not in (type.dtype, STORED.get(type.dtype), SHIFTED.get(type.dtype)):
                raise UnsupportedOperator(
                    f"{network.name!r} gives {name} as {type.dtype}, and the device computes {values[name].dtype}"
                )
    fixed = [array for array in (*inputs.values(), *outputs.values()) if isinstance(array, Buffer)]
    values.clear()  # so that nobody but the graph holds what is moved
    memory = plan_memory(graph, device, fixed)
    specialised = _specialised(network, inputs, compilation.known_values)
    return CompiledNetwork(specialised, (inputs, outputs), graph, run, memory, compilation.places, seeds)


def input_array(device: Device, shape: tuple[int, ...], kind: np.dtype[Any], image: bool) -> Buffer:
    """An array for an input: of images, which convolutions take, with channels last in memory."""
    if not image or len(shape) < 3:
        return device.empty(shape, kind)
    array = device.empty((shape[0], *shape[2:], shape[1]), kind)
    return array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1))


def write_input(array: Buffer, values: Array) -> None:
    """Values for an array that ``input_array`` made: a dense one, or one with channels last. Raises ``ShapeMismatch``,
    ``UnsupportedType``."""
    if array.base is not None and values.shape == array.shape:
        array.base.write(np.moveaxis(values, 1, -1))
    else:
        array.write(values)


def _specialised(network: Network, inputs: Mapping[str, Buffer], known: Mapping[str, Array]) -> Network:
    """The network for these inputs: what turned out to be known are constants."""
    nodes = [node for node in network.nodes if not all(name in known for name in node.outputs if name)]
    types = {name: TensorType(network.inputs[name].dtype, array.shape) for name, array in inputs.items()}
    fixed = replace(network, inputs=types, nodes=nodes, constants={**network.constants, **known})
    return leave_out_unused(fixed)


def _shape(name: str, type: TensorType, given: Sequence[int] | None) -> tuple[int, ...]:
    if given is not None:
        sides = tuple(int(side) for side in given)
        if type.shape is not None and (
            len(sides) != len(type.shape)
            or any(isinstance(side, int) and side != own for side, own in zip(type.shape, sides, strict=True))
        ):
            raise ShapeMismatch(f"{name} has shape {sides}; the network takes {type.shape}")
        return sides
    if type.shape is None or any(not isinstance(side, int) for side in type.shape):
        raise ShapeMismatch(f"{name} has sides that are not known, {type.shape}; give its shape")
    return tuple(side for side in type.shape if isinstance(side, int))
