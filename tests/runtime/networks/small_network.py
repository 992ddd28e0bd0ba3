"""Networks that the tests are made of, and what they give in numpy."""

from typing import Any

import numpy as np

from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT = np.dtype(np.float32)


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def small_network() -> Network:
    """Convolution, batch norm and Relu, a branch that is added, and a region of element-wise operators."""
    constants: dict[str, Any] = {
        "w": random(1, 6, 3, 3, 3),
        "scale": random(2, 6) + 2,
        "shift": random(3, 6),
        "mean": random(4, 6),
        "var": np.abs(random(5, 6)) + 0.5,
        "v": random(6, 6, 6, 1, 1),
        "b": random(7, 6),
        "alone": random(8, 2),
    }
    nodes = [
        Node("Conv", ("x", "w"), ("conv",), {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}, "first"),
        Node("BatchNormalization", ("conv", "scale", "shift", "mean", "var"), ("norm",), {"epsilon": 1e-3}),
        Node("Relu", ("norm",), ("active",)),
        Node("Conv", ("active", "v", "b"), ("side",), {"kernel_shape": [1, 1]}),
        Node("Add", ("active", "side"), ("sum",)),
        Node("Sigmoid", ("sum",), ("gate",)),
        Node("Mul", ("gate", "active"), ("scaled",)),
        Node("LeakyRelu", ("scaled",), ("y",), {"alpha": 0.1}),
        Node("Exp", ("alone",), ("unused",)),
    ]
    names = ("conv", "norm", "active", "side", "sum", "gate", "scaled", "y")
    types = {name: TensorType(FLOAT, (2, 6, 5, 7)) for name in names}
    inputs = {"x": TensorType(FLOAT, (2, 3, 5, 7))}
    return Network("small", inputs, {"y": types["y"]}, nodes, constants, types)


def expected(x: np.ndarray, network: Network) -> np.ndarray:
    """What ``small_network`` gives, in float64."""
    c = {name: value.astype(np.float64) for name, value in network.constants.items()}
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    seen = np.stack([padded[:, :, dy : dy + 5, dx : dx + 7] for dy in range(3) for dx in range(3)], 2)
    conv = np.einsum("ncthw,oct->nohw", seen, c["w"].reshape(6, 3, 9))

    def row(name: str) -> np.ndarray:
        return c[name].reshape(1, -1, 1, 1)

    active = np.maximum((conv - row("mean")) / np.sqrt(row("var") + 1e-3) * row("scale") + row("shift"), 0)
    total = active + np.einsum("nchw,oc->nohw", active, c["v"][:, :, 0, 0]) + row("b")
    scaled = active / (1 + np.exp(-total))
    return np.where(scaled < 0, 0.1 * scaled, scaled)


def no_fold(node: Node, inputs: Any) -> Any:
    """Nothing is left to compute on the host."""
    raise AssertionError(node)
