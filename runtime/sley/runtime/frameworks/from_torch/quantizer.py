"""A quantizer for PyTorch's PT2E flow: which values of an exported module become int8 on a Sley device.

``prepare_pt2e`` or ``prepare_qat_pt2e`` of torchao puts observers where annotations are, ``convert_pt2e`` replaces them
by quantisation; ``read_module`` then gives the network.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import (
    FakeQuantize,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
)

aten = torch.ops.aten
ANNOTATION = "quantization_annotation"
"""Where torchao looks for annotations in the metadata of a node."""
PRODUCTS = (aten.conv1d.default, aten.conv2d.default, aten.linear.default)
ATTENTIONS = (aten.scaled_dot_product_attention.default,)
SUMS = (aten.add.Tensor, aten.add_.Tensor)
NORMS = (aten.batch_norm.default,)
ACTIVATIONS = (aten.relu.default, aten.relu_.default, aten.hardtanh.default, aten.hardtanh_.default)
SAME = (
    aten.adaptive_avg_pool2d.default,
    aten.avg_pool2d.default,
    aten.flatten.using_ints,
    aten.max_pool2d.default,
    aten.mean.dim,
    aten.permute.default,
    aten.reshape.default,
    aten.transpose.int,
    aten.view.default,
)
"""Operators whose result has the scale of their input."""


class SleyQuantizer(Quantizer):
    """Convolutions and linear layers with int8 weights, a scale for each output, and int8 activations with one scale
    and one zero point; attention, q with zero point 0; sums of two values, pooling, and what only moves elements,
    between them.

    Parameters
    ----------
    training: whether observers are for ``prepare_qat_pt2e``: quantisation takes part in training.
    """

    def __init__(self, training: bool = False) -> None:
        super().__init__()
        self.values, self.centred, self.weights = _specs(training)

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotates what runs on int8. Users call ``prepare_pt2e``, which calls this."""
        for node in model.graph.nodes:
            if node.target in PRODUCTS:
                self._product(node)
            elif node.target in SUMS and all(isinstance(value, Node) for value in node.args[:2]):
                self._annotate(node, {value: self.values for value in node.args[:2]})
                self._result(node)
            elif node.target in ATTENTIONS:
                q, k, v = node.args[:3]
                self._annotate(node, {q: self.centred, k: self.values, v: self.values})
                self._result(node)
        for node in model.graph.nodes:
            if node.target in SAME:
                self._same(node)
        return model

    def validate(self, model: GraphModule) -> None:
        """Any annotation of this quantizer can be run."""

    def _product(self, node: Node) -> None:
        x, weight = node.args[:2]
        self._annotate(node, {x: self.values, weight: self.weights})
        self._result(node)

    def _result(self, node: Node) -> None:
        """The result of a layer with the norm and the activation behind it, if somebody takes it as int8."""
        for targets in (NORMS, ACTIVATIONS):
            users = list(node.users)
            if len(users) == 1 and users[0].target in targets:
                self._annotate(node, {})
                node = users[0]
        if any(user.target in (*PRODUCTS, *SUMS, *SAME) for user in node.users):
            self._annotate(node, {}, self.values)
        else:
            self._annotate(node, {})

    def _same(self, node: Node) -> None:
        """Takes the scale of its input, if that has one."""
        x = node.args[0]
        before = x.meta.get(ANNOTATION)
        if before is None or before.output_qspec is None:
            return
        node.meta[ANNOTATION] = QuantizationAnnotation(
            input_qspec_map={x: self.values}, output_qspec=SharedQuantizationSpec((x, node)), _annotated=True
        )

    def _annotate(self, node: Node, inputs: dict[Node, Any], output: Any = None) -> None:
        known = node.meta.get(ANNOTATION, QuantizationAnnotation())
        node.meta[ANNOTATION] = QuantizationAnnotation(
            input_qspec_map={**known.input_qspec_map, **inputs},
            output_qspec=output or known.output_qspec,
            _annotated=True,
        )


def _specs(training: bool) -> tuple[QuantizationSpec, QuantizationSpec, QuantizationSpec]:
    """Of values, of values with zero point 0 and of weights."""
    small = 2.0**-12
    values: Any = HistogramObserver.with_args(eps=small)
    weights: Any = PerChannelMinMaxObserver.with_args(eps=small)
    if training:
        values = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, eps=small)
        weights = FakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, eps=small)
    return (
        QuantizationSpec(torch.int8, values, -128, 127, torch.per_tensor_affine),
        QuantizationSpec(torch.int8, values, -127, 127, torch.per_tensor_symmetric),
        QuantizationSpec(torch.int8, weights, -127, 127, torch.per_channel_symmetric, ch_axis=0),
    )
