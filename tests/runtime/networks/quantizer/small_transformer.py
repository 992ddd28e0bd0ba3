"""A small transformer of random weights, in the vocabulary of networks: two layers of attention and a perceptron."""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT = np.dtype(np.float32)
WIDTH, HEADS, TOKENS, LAYERS = 64, 2, 24, 2


def transformer(causal: bool = True) -> Network:
    """[samples, tokens, width] in and out; masks are constants, as exporters write them."""
    rng = np.random.default_rng(7)
    constants: dict[str, np.ndarray] = {
        "split": np.array([0, 0, HEADS, -1], np.int64),
        "joined": np.array([0, 0, WIDTH], np.int64),
        "root": np.array((WIDTH // HEADS) ** -0.5, np.float32),
        "mask": np.where(np.tri(TOKENS, dtype=bool), 0, -np.inf).astype(np.float32),
    }
    nodes: list[Node] = []

    def node(operator: str, output: str, *inputs: str, **attributes: object) -> str:
        nodes.append(Node(operator, inputs, (output,), attributes, output, 21))
        return output

    def linear(x: str, output: str, rows: int, columns: int, gain: float = 1.0) -> str:
        weights = rng.standard_normal((rows, columns)) * gain / np.sqrt(rows)
        constants[f"{output}.w"] = weights.astype(np.float32)
        constants[f"{output}.b"] = (0.1 * rng.standard_normal(columns)).astype(np.float32)
        return node("Add", output, node("MatMul", f"{output}.product", x, f"{output}.w"), f"{output}.b")

    def norm(x: str, output: str) -> str:
        constants[f"{output}.w"] = rng.uniform(0.5, 1.5, WIDTH).astype(np.float32)
        return node("LayerNormalization", output, x, f"{output}.w", axis=-1)

    x = "x"
    for layer in range(LAYERS):
        name = f"layer{layer}"
        normed = norm(x, f"{name}.norm")
        heads = []
        for part, gain in (("q", 2.0), ("k", 2.0), ("v", 1.0)):
            value = linear(normed, f"{name}.{part}", WIDTH, WIDTH, gain)
            wide = node("Reshape", f"{name}.{part}.split", value, "split")
            perm = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
            heads.append(node("Transpose", f"{name}.{part}.heads", wide, perm=perm))
        scores = node("MatMul", f"{name}.scores", heads[0], heads[1])
        scores = node("Mul", f"{name}.scaled", scores, "root")
        if causal:
            scores = node("Add", f"{name}.masked", scores, "mask")
        weights = node("Softmax", f"{name}.weights", scores, axis=-1)
        result = node("MatMul", f"{name}.attention", weights, heads[2])
        turned = node("Transpose", f"{name}.turned", result, perm=[0, 2, 1, 3])
        flat = node("Reshape", f"{name}.flat", turned, "joined")
        x = node("Add", f"{name}.sum", x, linear(flat, f"{name}.out", WIDTH, WIDTH))
        wide = linear(norm(x, f"{name}.norm2"), f"{name}.wide", WIDTH, 2 * WIDTH)
        narrow = linear(node("Relu", f"{name}.relu", wide), f"{name}.narrow", 2 * WIDTH, WIDTH)
        x = node("Add", f"{name}.result", x, narrow)
    types = {one.outputs[0]: TensorType(FLOAT, None) for one in nodes}
    inputs = {"x": TensorType(FLOAT, ("samples", TOKENS, WIDTH))}
    return Network("transformer", inputs, {x: types[x]}, nodes, constants, types)
