"""Networks of random operators on images, for tests that compare two compilations."""

from typing import Any

import numpy as np

from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT = np.dtype(np.float32)
SIDES = 1, 3, 5, 6
"""Of the input."""


def random_network(seed: int, steps: int = 12) -> Network:
    """Operators on values before them, so that some live long and others are used once; two outputs."""
    random = np.random.default_rng(seed)
    values: dict[str, tuple[int, ...]] = {"x": SIDES}
    constants: dict[str, Any] = {}
    nodes: list[Node] = []

    def add(operator: str, inputs: list[str], shape: tuple[int, ...], **attributes: Any) -> None:
        name = f"v{len(nodes)}"
        nodes.append(Node(operator, tuple(inputs), (name,), attributes))
        values[name] = shape

    def constant(*shape: int) -> str:
        name = f"c{len(constants)}"
        constants[name] = random.standard_normal(shape).astype(np.float32) / 4
        return name

    for _ in range(steps):
        name = list(values)[-1 - int(random.integers(min(len(values), 4)))]
        shape = values[name]
        peers = [other for other, own in values.items() if own == shape and other != name]
        kind = random.choice(["Conv", "Relu", "Sigmoid", "Add", "Concat", "MaxPool", "Shuffle", "MatMul", "Tanh"])
        if kind == "Conv":
            outputs, side = int(random.integers(1, 8)), int(random.choice([1, 3]))
            weights, pads = constant(outputs, shape[1], side, side), [side // 2] * 4
            add("Conv", [name, weights], (shape[0], outputs, *shape[2:]), kernel_shape=[side] * 2, pads=pads)
        elif kind == "MatMul":
            add("MatMul", [name, constant(shape[3], 6)], (*shape[:3], 6))
        elif kind == "Add" and peers:
            add("Add", [name, peers[0]], shape)
        elif kind == "Concat" and peers and shape[1] < 12:
            add("Concat", [name, peers[-1]], (shape[0], 2 * shape[1], *shape[2:]), axis=1)
        elif kind == "MaxPool":
            add("MaxPool", [name], shape, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
        elif kind == "Shuffle":
            sizes = f"c{len(constants)}"
            constants[sizes] = np.array([shape[0], shape[3], shape[1], shape[2]])
            add("Transpose", [name], (shape[0], *shape[2:], shape[1]), perm=[0, 2, 3, 1])
            add("Reshape", [f"v{len(nodes) - 1}", sizes], tuple(constants[sizes].tolist()))
        elif kind in ("Relu", "Sigmoid", "Tanh"):
            add(str(kind), [name], shape)
    types = {name: TensorType(FLOAT, shape) for name, shape in values.items() if name != "x"}
    outputs = {name: types[name] for name in list(types)[-2:]}
    return Network(f"random {seed}", {"x": TensorType(FLOAT, SIDES)}, outputs, nodes, constants, types)
