"""Small models of random weights."""

import numpy as np

from sley.runtime.llama.checkpoint import Checkpoint, Layer
from sley.runtime.llama.shape import LlamaShape

SHAPES = {
    "grouped": LlamaShape(2, 96, 112, 160, 6, 2, 32, 256, 1e4, 1e-5),
    "one head of keys": LlamaShape(1, 64, 80, 96, 3, 1, 64, 256, 1e5, 1e-6),
}


def random_checkpoint(shape: LlamaShape, seed: int) -> Checkpoint:
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        values = random.standard_normal((rows, columns)) / np.sqrt(columns)
        values[:, 0] *= 6  # an input that stands out
        return values.astype(np.float32)

    def norm() -> np.ndarray:
        return random.uniform(0.5, 1.5, shape.width).astype(np.float32)

    layers = tuple(
        Layer(
            norm(),
            matrix(shape.heads_width, shape.width),
            matrix(shape.key_width, shape.width),
            matrix(shape.key_width, shape.width),
            matrix(shape.width, shape.heads_width),
            norm(),
            matrix(shape.hidden, shape.width),
            matrix(shape.hidden, shape.width),
            matrix(shape.width, shape.hidden),
        )
        for _ in range(shape.layers)
    )
    embedding = matrix(shape.vocabulary, shape.width)
    return Checkpoint(shape, embedding, layers, norm(), embedding, {})
