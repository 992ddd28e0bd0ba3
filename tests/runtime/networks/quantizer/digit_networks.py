"""Networks of scikit-learn's digits, trained on the host, in the vocabulary of networks."""

from __future__ import annotations

from functools import cache

import numpy as np

from sley.examples.digits.layers import Convolution
from sley.examples.digits.run import Digits, load_digits, networks
from sley.examples.digits.training import Network as Trained
from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT = np.dtype(np.float32)
EPOCHS = {"MLP": 12, "CNN": 3}


@cache
def digits() -> Digits:
    return load_digits()


@cache
def trained(name: str) -> Trained:
    """Fewer epochs than the demo: what is compared is float32 and int8 of the same weights."""
    (network,) = [network for network in networks() if network.name == name]
    network.train(digits().train, digits().train_labels, EPOCHS[name], lambda: None)
    return network


def images(values: np.ndarray) -> np.ndarray:
    """[images, 1, 8, 8], as networks take them."""
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def network_of(model: Trained) -> Network:
    """For any number of images."""
    constants: dict[str, np.ndarray] = {}
    nodes: list[Node] = []
    value, channels, flat = "image", 1, False
    for number, (layer, w, b) in enumerate(zip(model.layers, model.weights, model.biases, strict=True)):
        output = f"layer{number}"
        names = f"w{number}", f"b{number}"
        if isinstance(layer, Convolution):
            constants[names[0]] = np.ascontiguousarray(w.reshape(3, 3, channels, -1).transpose(3, 2, 0, 1))
            attributes = {"pads": [1, 1, 1, 1], "strides": [layer.stride, layer.stride], "kernel_shape": [3, 3]}
            nodes.append(Node("Conv", (value, *names), (output,), attributes, output, 21))
            channels = layer.outputs
        else:
            if not flat:
                nodes.append(Node("Flatten", (value,), ("flat",), {}, "flat", 21))
                rows = w.reshape(-1, channels, w.shape[1]).transpose(1, 0, 2).reshape(w.shape)
                value, flat = "flat", True
            else:
                rows = w
            constants[names[0]] = np.ascontiguousarray(rows)
            nodes.append(Node("Gemm", (value, *names), (output,), {}, output, 21))
        constants[names[1]] = b
        value = output
        if layer.relu:
            nodes.append(Node("Relu", (value,), (f"{output}.relu",), {}, "", 21))
            value = f"{output}.relu"
    types = {node.outputs[0]: TensorType(FLOAT, None) for node in nodes}
    inputs = {"image": TensorType(FLOAT, ("images", 1, 8, 8))}
    return Network(model.name, inputs, {value: TensorType(FLOAT, ("images", 10))}, nodes, constants, types)
