"""Convolutions and products between DequantizeLinear and QuantizeLinear become operators on integers.

``QuantizedConv`` and ``QuantizedMatMul`` take int8, weights of int8, a bias in int32 and a scale for each output, and
give

    saturate(round((sum(x · w) + bias) · scale) + zero point)

as int8, rounded half to even, or the product with the scale as float32, where no QuantizeLinear follows. The bias holds
what the zero point of x amounts to: it times the sum of the weights. Weights whose zero points take them out of int8
are shifted, and ``RecentredSums`` behind the sums makes up for it.
A Relu or Clip before the QuantizeLinear is a bound of the result, and a bias that is added is part of the bias. A
quantised value that is added to a convolution is its residual: times a factor it is added before the result is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.quantized.parameters import INT8, Integers, dequantizer, makers_of, quantizer
from sley.runtime.networks.passes.quantized.weights import IntegerWeights, integer_weights

OPERATORS = {"Conv": "QuantizedConv", "Gemm": "QuantizedMatMul", "MatMul": "QuantizedMatMul"}
LARGEST_STEP = 0.25
"""The largest scale of sums at which the zero point of a result with a residual may be part of the bias, as it is
rounded to one of them: an eighth of a unit at the most is lost."""
DEEPEST = (1 << 17) - 1
"""The most products of a sum."""
FLOAT = np.dtype(np.float32)


def fuse_products(network: Network) -> Network:
    """Runs the pass."""
    if not any(node.operator == "DequantizeLinear" for node in network.nodes):
        return network
    return _Fusion(network).run()


@dataclass(frozen=True)
class Product:
    """An operator on integers while it is made. ``unit``: what a sum of 1 stands for, of each output; ``bias``: in
    reals."""

    x: Integers
    weights: IntegerWeights
    unit: Array
    bias: Array

    @property
    def largest(self) -> int:
        """The largest bias of int32 beside which no sum wraps."""
        return (1 << 31) - 1 - (255 * 255 if self.weights.shifts.any() else 128 * 128) * self.weights.depth


@dataclass(frozen=True)
class Behind:
    """What follows: ``nodes`` that become part of it, ``bias``, a ``residual`` that is added, bounds of the result, and
    what it is quantised to."""

    nodes: tuple[Node, ...]
    bias: Array | None
    low: float
    high: float
    made: Integers | None
    residual: Integers | None = None

    @property
    def output(self) -> str:
        return self.nodes[-1].outputs[0]


class _Fusion:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.uses, self.makers = network.uses(), makers_of(network)
        self.constants, self.types = dict(network.constants), dict(network.types)

    def run(self) -> Network:
        instead: dict[int, list[Node]] = {}
        for node in self.network.nodes:
            found = self._fused(node) if node.operator in OPERATORS else None
            if found is not None:
                for gone in found[0]:
                    instead[id(gone)] = []
                instead[id(found[0][-1])] = found[1]
        nodes = [new for node in self.network.nodes for new in instead.get(id(node), [node])]
        return replace(self.network.with_nodes(nodes, self.constants), types=self.types)

    def _fused(self, node: Node) -> tuple[tuple[Node, ...], list[Node]] | None:
        """The nodes that go, and those in their place, behind all that they need."""
        product = self._product(node)
        if product is None:
            return None
        for behind in self._behind(node, product):
            made = self._made(node, product, behind)
            if made is not None:
                return behind.nodes, made
        return None

    def _product(self, node: Node) -> Product | None:
        x, w = (dequantizer(self.network, self.makers, name) for name in node.inputs[:2])
        if x is None or w is None or not x.whole or x.dtype != INT8 or w.name not in self.constants:
            return None
        if x.name in self.constants or node.attributes.get("transA", 0):
            return None
        if node.attributes.get("alpha", 1.0) != 1 or node.attributes.get("beta", 1.0) != 1:
            return None
        turned = bool(node.attributes.get("transB", 0))
        weights = integer_weights(self.constants[w.name], w, node.operator == "Conv", turned)
        if weights is None:
            return None
        unit = np.broadcast_to(x.scale * w.scale, (weights.outputs,))
        bias = self._bias(node.inputs[2] if len(node.inputs) > 2 else "", weights.outputs)
        if bias is None or weights.depth > DEEPEST or not (unit > 0).all():
            return None
        return Product(x, weights, unit, bias)

    def _bias(self, name: str, outputs: int) -> Array | None:
        """In reals; ``None`` if it is not known, or has another shape."""
        if not name:
            return np.zeros(outputs)
        integers = dequantizer(self.network, self.makers, name)
        if integers is not None and integers.name in self.constants:
            values = (self.constants[integers.name].astype(np.int64) - integers.zero) * integers.scale
        elif name in self.constants:
            values = self.constants[name].astype(np.float64)
        else:
            return None
        return np.broadcast_to(values.ravel(), (outputs,)) if values.size in (1, outputs) else None

    def _behind(self, node: Node, product: Product) -> list[Behind]:
        """What may become part of it, most first."""
        nodes = [node]
        bias: Array | None = None
        residual: Integers | None = None
        low, high = -np.inf, np.inf
        found = [Behind((node,), None, low, high, None)]
        while self.network.alone(nodes[-1].outputs[0], self.uses):
            (follower,) = self.uses[nodes[-1].outputs[0]]
            if follower.operator in ("Add", "Sum") and (low, high) == (-np.inf, np.inf) and residual is None:
                before = nodes[-1].outputs[0]
                added = self._added(node, follower, before, product.weights.outputs)
                residual = self._residual(node, follower, before) if added is None else None
                if added is None and residual is None:
                    break
                if added is not None:
                    bias = added if bias is None else bias + added
            elif follower.operator == "Relu":
                low = max(low, 0.0)
            elif follower.operator == "Clip" and (ends := self._ends(follower)) is not None:
                low, high = max(low, ends[0]), min(high, ends[1])
            elif follower.operator == "QuantizeLinear":
                made = quantizer(self.network, follower)
                if made is not None and made.whole and made.dtype == INT8:
                    found.append(Behind((*nodes, follower), bias, low, high, made, residual))
                break
            else:
                break
            nodes.append(follower)
            if high == np.inf and low in (0.0, -np.inf) and residual is None:
                found.append(Behind(tuple(nodes), bias, low, high, None))
        return found[::-1]

    def _ends(self, clip: Node) -> tuple[float, float] | None:
        """Bounds of a Clip, if they are known."""
        ends = [-np.inf, np.inf]
        for place, name in enumerate(clip.inputs[1:]):
            if name and name not in self.constants:
                return None
            ends[place] = float(self.constants[name].item()) if name else ends[place]
        return ends[0], ends[1]

    def _added(self, node: Node, follower: Node, before: str, outputs: int) -> Array | None:
        """A bias that is added, of one value, or one for each output; else ``None``."""
        if len(follower.inputs) != 2:
            return None
        name = follower.inputs[follower.inputs[0] == before]
        integers = dequantizer(self.network, self.makers, name)
        known = self.constants.get(name if integers is None else integers.name)
        if known is None:
            return None
        behind = max(self._rank(node) - 2, 0) if node.operator == "Conv" else 0
        sides = known.shape[: known.ndim - behind]
        fits = known.size == 1 or (bool(sides) and sides[-1] == outputs == known.size)
        return self._bias(name, outputs) if fits else None

    def _residual(self, node: Node, follower: Node, before: str) -> Integers | None:
        """Integers like the result of a convolution of images that are added to it."""
        name = follower.inputs[follower.inputs[0] == before] if len(follower.inputs) == 2 else ""
        found = dequantizer(self.network, self.makers, name)
        if node.operator != "Conv" or self._rank(node) != 4 or found is None or found.name in self.constants:
            return None
        sides = [self.network.types[value].shape for value in (name, before) if value in self.network.types]
        same = len(sides) == 2 and sides[0] is not None and sides[0] == sides[1]
        return found if same and found.whole and found.dtype == INT8 else None

    def _rank(self, node: Node) -> int:
        w = dequantizer(self.network, self.makers, node.inputs[1])
        assert w is not None
        return self.constants[w.name].ndim

    def _made(self, node: Node, product: Product, behind: Behind) -> list[Node] | None:
        made, x, residual = behind.made, product.x, behind.residual
        real = product.bias if behind.bias is None else product.bias + behind.bias
        scale = (product.unit if made is None else product.unit / made.scale).astype(np.float32)
        bias = np.rint(real / product.unit) - product.weights.sums * int(x.zero)
        relu, low, high, zero = behind.low == 0, -128, 127, 0
        if made is not None:
            low, high = (
                int(np.clip(np.rint(end / made.scale) + made.zero, -128, 127)) for end in (behind.low, behind.high)
            )
            if residual is None:
                zero = int(made.zero)
                low = -128 if relu else low
            else:
                offset = float(made.zero) - float(residual.zero * residual.scale / made.scale)
                if offset and scale.max() > LARGEST_STEP:
                    return None
                bias = bias + np.rint(offset / scale.astype(np.float64))
                if (low, high) != (-128, 127) or product.weights.shifts.any():
                    return None  # the sum has no bound but that of int8, and the residual is of exact sums
        if abs(bias).max(initial=0) > product.largest:
            return None
        output = behind.output
        attributes: dict[str, Any] = {"result": "float32" if made is None else "int8", "relu": int(relu)}
        if zero:
            attributes["zero_point"] = zero
        if residual is not None:
            assert made is not None
            attributes |= {"relu": 0, "residual_scale": float(np.float32(residual.scale / made.scale))}
        bounded = (low, high) != (-128, 127)
        result = f"{output}.unbounded" if bounded else output
        nodes = self._integer_nodes(node, product, (bias.astype(np.int32), scale), attributes, (result, residual))
        if bounded:
            ends = f"{output}.low", f"{output}.high"
            self.constants |= {ends[0]: np.array(low, np.int8), ends[1]: np.array(high, np.int8)}
            self.types[result] = TensorType(INT8, None)
            nodes.append(Node("Clip", (result, *ends), (output,), {}, node.name, node.version))
        return nodes

    def _integer_nodes(
        self,
        node: Node,
        product: Product,
        numbers: tuple[Array, Array],
        attributes: dict[str, Any],
        ends: tuple[str, Integers | None],
    ) -> list[Node]:
        """The operator on integers, or, with shifted weights, that for the sums and one behind it. ``numbers``: bias
        and scale. ``ends``: the result, and the residual."""
        (bias, scale), (output, residual), weights = numbers, ends, product.weights
        operator, version = OPERATORS[node.operator], node.version
        names = {part: f"{output}.sums.{part}" for part in ("weights", "shifts", "bias", "scale")}
        self.constants |= {names["bias"]: bias, names["scale"]: scale}
        outside: dict[str, Any] = {}
        if node.operator == "Conv":
            outside = {name: value for name, value in node.attributes.items() if name != "relu"}
            outside["padding_value"] = int(product.x.zero)
        if weights.shifts.any():
            groups = node.attributes.get("group", 1)
            self.constants[names["weights"]] = weights.with_ones(groups)
            self.constants[names["shifts"]] = weights.shifts.astype(np.int32)
            self.types[f"{output}.sums"] = TensorType(np.dtype(np.int32), None)
            of_sums = (f"{output}.sums", names["shifts"], names["bias"], names["scale"])
            more = {**attributes, "groups": groups, "channels": 1 if outside else -1}
            sums = {**outside, "result": "int32"}
            return [
                Node(operator, (product.x.name, names["weights"]), (f"{output}.sums",), sums, node.name, version),
                Node("RecentredSums", of_sums, (output,), more, f"{node.name}.recentred", version),
            ]
        self.constants[names["weights"]] = weights.values
        if (scale == scale[0]).all():
            self.constants[names["scale"]] = scale[:1].reshape(())
        added = () if residual is None else (residual.name,)
        inputs = (product.x.name, names["weights"], names["bias"] if bias.any() else "", names["scale"], *added)
        return [Node(operator, inputs, (output,), {**attributes, **outside}, node.name, version)]
