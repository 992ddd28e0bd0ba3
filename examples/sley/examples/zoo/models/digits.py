"""The networks of ``sley demo`` in float32: handwritten digits of 8 x 8 pixels, trained on the host."""

from __future__ import annotations

from functools import partial

import numpy as np

from sley.examples.digits.layers import Convolution
from sley.examples.digits.run import EPOCHS, load_digits, networks
from sley.examples.digits.training import Network as Trained
from sley.examples.zoo.subject import Model, Subject
from sley.runtime.networks.graph import Array, Network, Node, TensorType

FLOAT = np.dtype(np.float32)


def load(name: str, weights: str) -> Subject:
    """Trains one, and takes all test images at once. Raises ``DemoError`` without scikit-learn."""
    digits = load_digits()
    (trained,) = (network for network in networks() if network.name == name)
    trained.train(digits.train, digits.train_labels, EPOCHS[name], lambda: None)
    wanted = trained.forward(digits.test)[-1]
    x = np.ascontiguousarray(digits.test.transpose(0, 3, 1, 2))
    return Subject(network_of(trained, x.shape), {"x": x}, {"y": wanted}, "numpy on the host", digits.test_labels)


def network_of(trained: Trained, shape: tuple[int, ...]) -> Network:
    """A trained network in the vocabulary of ONNX, for images [images, channels, y, x]."""
    nodes: list[Node] = []
    constants: dict[str, Array] = {}
    types: dict[str, TensorType] = {}
    value, images, dense = "x", shape[0], False
    sides: tuple[int, ...]
    for number, (layer, weights, bias) in enumerate(zip(trained.layers, trained.weights, trained.biases, strict=True)):
        made = "y" if number == len(trained.layers) - 1 else f"h{number}"
        before = f"{made}.sum" if layer.relu else made
        constants |= {f"w{number}": weights, f"b{number}": bias}
        if isinstance(layer, Convolution):
            taps = weights.reshape(3, 3, layer.inputs, layer.outputs).transpose(3, 2, 0, 1)
            constants[f"w{number}"] = np.ascontiguousarray(taps)
            attributes = {"pads": [1] * 4, "strides": [layer.stride] * 2, "kernel_shape": [3, 3]}
            nodes.append(Node("Conv", (value, f"w{number}", f"b{number}"), (before,), attributes))
            sides = (images, layer.outputs, layer.side, layer.side)
        else:
            if not dense:  # channels last, as the layers were trained
                nodes.append(Node("Transpose", (value,), ("last",), {"perm": [0, 2, 3, 1]}))
                nodes.append(Node("Flatten", ("last",), ("rows",), {"axis": 1}))
                value, dense = "rows", True
            nodes.append(Node("Gemm", (value, f"w{number}", f"b{number}"), (before,)))
            sides = (images, layer.outputs)
        types |= {before: TensorType(FLOAT, sides), made: TensorType(FLOAT, sides)}
        if layer.relu:
            nodes.append(Node("Relu", (before,), (made,)))
        value = made
    inputs = {"x": TensorType(FLOAT, shape)}
    return Network(f"digits {trained.name}", inputs, {"y": types["y"]}, nodes, constants, types)


MODELS = [
    Model(f"digits-{name.lower()}", f"handwritten digits, {name}, 360 images", "trained here", partial(load, name))
    for name in EPOCHS
]
