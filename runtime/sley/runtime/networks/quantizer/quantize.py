"""The quantiser: a network of reals in, one of integers out, and a report of what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sley.driver import BadRequest
from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.attention_forms import FoundAttention
from sley.runtime.networks.passes.batch_norm import fold_batch_norm
from sley.runtime.networks.passes.constants import Fold, fold_constants
from sley.runtime.networks.passes.subgraphs import inline_subgraphs
from sley.runtime.networks.passes.unused import leave_out_unused
from sley.runtime.networks.quantizer.attentions import Attentions, MeasuredAttention, computed_attentions
from sley.runtime.networks.quantizer.errors import LayerError, Measure
from sley.runtime.networks.quantizer.evaluation import batches, evaluate, signal_to_noise
from sley.runtime.networks.quantizer.insertion import Choice, with_integers
from sley.runtime.networks.quantizer.layers import Layer, Values, layers_of, operands_of
from sley.runtime.networks.quantizer.ranges import METHODS, Range, Scale
from sley.runtime.networks.quantizer.report import Report, Row
from sley.runtime.networks.quantizer.smoothing import smooth

LEAST = 20.0
"""Signal to noise, dB, that a layer must reach in a type to run in it."""


def quantize(
    network: Network,
    data: Mapping[str, Array],
    fold: Fold,
    *,
    method: str = "mse",
    least: float = LEAST,
    dynamic: bool = False,
    smoothing: bool = True,
    correction: bool = True,
) -> tuple[Network, Report]:
    """The network with its convolutions, products and attention on int8, as QuantizeLinear and DequantizeLinear say it.

    Weights have a scale for each output. Values between operators have one scale and one zero point, of ranges that
    ``data`` shows; inputs of the network and q of an attention have zero point 0. A layer whose result would be too far
    off in int8 runs in bfloat16 or float32, an attention in float32. The network is computed on the host, four times.

    Parameters
    ----------
    data: samples for each input, along the first axis: what the network is used on; some ten to some hundred.
    fold: computes operators on the host.
    method: of ranges: "max", all that was seen; "percentile", all but 0.01 %; "mse", of the least squared error.
    least: signal to noise, dB, that the result of a layer must reach in int8, else in bfloat16.
    dynamic: products of matrices get a scale for each row of x, which is found when they run.
    smoothing: channels behind norms are scaled against the weights behind them.
    correction: the mean error of each output channel is taken off by the bias.

    Raises ``BadRequest``, ``UnsupportedOperator``.
    """
    if method not in METHODS:
        raise BadRequest(f"method is {method!r}; it is {', '.join(METHODS)}")
    network = fold_batch_norm(leave_out_unused(fold_constants(inline_subgraphs(network, fold), fold)))
    layers = layers_of(network)
    if not layers:
        raise BadRequest(f"{network.name!r} has no convolution and no product with known weights of float32")
    samples = list(batches(network, data))
    if smoothing:
        network = smooth(network, layers, samples, fold)
        layers = layers_of(network)
    static = [layer for layer in layers if not (dynamic and layer.linear)]
    attentions = computed_attentions(network)
    scales = _scales(network, Values(network, static, attentions), attentions, samples, method, fold)
    measure = Measure(network, layers, _by_value(network, static, scales), dynamic, fold)
    measured = Attentions(attentions, _of_attentions(network, attentions, scales), fold)

    def watch(node: Node, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        measure.watch(node, inputs, results)
        measured.watch(node, inputs, results)

    for batch in samples:
        evaluate(network, batch, fold, watch)
    choices = [_choice(layer, measure.errors[layer.name], least, dynamic, correction) for layer in layers]
    near = [one.found for one in measured.measured if one.ratio >= least]
    values = Values(network, [choice.layer for choice in choices if choice.kind == "int8"], near)
    kept = {name: scale for name, scale in scales.items() if name in values.group}
    real = [node for one in attentions if one not in near for node in one.nodes]
    made = with_integers(network, kept, choices, real)
    return made, _report(network, made, samples, fold, (method, least), choices, measure.errors, measured.measured)


def _scales(
    network: Network,
    values: Values,
    attentions: Sequence[FoundAttention],
    samples: Sequence[Mapping[str, Array]],
    method: str,
    fold: Fold,
) -> dict[str, Scale]:
    """Of all values that become int8."""
    ranges = {name: Range() for name in values.group}
    rng = np.random.default_rng(0)

    def watch(node: Node, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        for name, value in zip(node.outputs, results, strict=False):
            if name in ranges:
                ranges[name].see(value, rng)

    for batch in samples:
        for name in set(ranges) & set(network.inputs):
            ranges[name].see(batch[name], rng)
        evaluate(network, batch, fold, watch)
    together: dict[str, Range] = {}
    for name, group in values.group.items():
        together.setdefault(group, Range()).join(ranges[name])
    centred = {*(set(ranges) & set(network.inputs)), *(values.source(one.q) for one in attentions)}
    symmetric = {values.group[name] for name in centred}
    found = {group: range.scale(method, group in symmetric) for group, range in together.items()}
    return {name: found[group] for name, group in values.group.items()}


def _by_value(network: Network, layers: Sequence[Layer], scales: Mapping[str, Scale]) -> dict[str, Scale]:
    """Of what layers take, which may be another value moved."""
    values = Values(network, ())
    return {layer.node.inputs[0]: scales[values.source(layer.node.inputs[0])] for layer in layers}


def _of_attentions(
    network: Network, attentions: Sequence[FoundAttention], scales: Mapping[str, Scale]
) -> dict[str, Scale]:
    """Of what attention takes, by its name there."""
    values = Values(network, ())
    return {name: scales[values.source(name)] for one in attentions for name in operands_of(one)}


def _choice(layer: Layer, error: LayerError, least: float, dynamic: bool, correction: bool) -> Choice:
    """int8 if it is near enough, else bfloat16, else float32."""
    if error.integer_ratio(correction) >= least:
        kind = "dynamic" if dynamic and layer.linear else "int8"
        return Choice(layer, kind, error.correction if correction and kind == "int8" else None)
    return Choice(layer, "bfloat16" if error.narrow_ratio >= least else "float32")


def _report(
    network: Network,
    made: Network,
    samples: Sequence[Mapping[str, Array]],
    fold: Fold,
    settings: tuple[str, float],
    choices: Sequence[Choice],
    errors: Mapping[str, LayerError],
    attentions: Sequence[MeasuredAttention],
) -> Report:
    """With the error that has come together behind each layer, on the first batch."""
    attended = {one.found.output for one in attentions}
    names = {choice.layer.node.outputs[0] for choice in choices} | attended
    real: dict[str, Array] = {one.found.output: one.first for one in attentions if one.first is not None}
    products: dict[str, int] = {}

    def keep(node: Node, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        if node.outputs[0] in names - attended and inputs[1] is not None:
            real[node.outputs[0]] = results[0]
            depth = math.prod(inputs[1].shape) // results[0].shape[1 if node.operator == "Conv" else -1]
            products[node.outputs[0]] = results[0].size * depth // len(results[0])

    wanted = evaluate(network, samples[0], fold, keep)
    behind: dict[str, float] = {}

    def compare(node: Node, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        for name in node.outputs:
            own = next((ending for ending in ("", ".real", ".uncorrected") if name.removesuffix(ending) in names), None)
            if own is not None:
                plain = name.removesuffix(own)
                behind.setdefault(plain, _ratio(real[plain], results[0]))

    found = evaluate(made, samples[0], _with_ours(fold), compare)
    method, least = settings
    rows = [
        Row(
            choice.layer.name,
            choice.layer.node.operator,
            choice.kind,
            products[choice.layer.node.outputs[0]],
            errors[choice.layer.name].integer_ratio(choice.correction is not None),
            errors[choice.layer.name].narrow_ratio,
            behind.get(choice.layer.node.outputs[0], math.nan),
        )
        for choice in choices
    ]
    for one in attentions:
        kind, last = "int8" if one.ratio >= least else "float32", behind.get(one.found.output, math.nan)
        rows.append(Row(one.name, "Attention", kind, one.products, one.ratio, math.nan, last))
    outputs = {name: _ratio(value, found[name]) for name, value in wanted.items()}
    return Report(network.name, method, least, rows, outputs)


def _ratio(real: Array, found: Array) -> float:
    exact = real.astype(np.float64)
    return signal_to_noise(float(np.square(exact).sum()), float(np.square(found - exact).sum()))


def _with_ours(fold: Fold) -> Fold:
    """Operators that the quantiser makes and ONNX does not have, too."""

    def run(node: Node, inputs: Sequence[Array | None]) -> Sequence[Array]:
        if node.operator == "DynamicMatMul":
            x, w, scales, *bias = inputs
            assert x is not None
            assert w is not None
            assert scales is not None
            factors = np.maximum(abs(x).max(-1, keepdims=True) / 127, 2.0**-100).astype(np.float32)
            sums = np.clip(np.rint(x / factors), -127, 127) @ w.astype(np.float64)
            return [(sums * scales * factors + (bias[0] if bias and bias[0] is not None else 0)).astype(np.float32)]
        plain = {name: value for name, value in node.attributes.items() if name != "precision"}
        return fold(replace(node, attributes=plain), inputs)

    return run
