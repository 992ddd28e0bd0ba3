"""Trains small networks on the host, in numpy."""

from collections.abc import Callable, Sequence

import numpy as np

from sley.examples.digits.layers import Array, Layer

BATCH = 64
RATE = 2e-3


class Network:
    """Layers with their fp32 weights [depth, outputs] and biases [outputs]."""

    def __init__(self, name: str, layers: Sequence[Layer], seed: int = 0) -> None:
        self.name = name
        self.layers = tuple(layers)
        random = np.random.default_rng(seed)
        self.weights: list[Array] = [
            (random.standard_normal((layer.depth, layer.outputs)) * np.sqrt(2 / layer.depth)).astype(np.float32)
            for layer in layers
        ]
        self.biases: list[Array] = [np.zeros(layer.outputs, np.float32) for layer in layers]

    def forward(self, x: Array) -> list[Array]:
        """The input and the output of every layer."""
        values = [x]
        for layer, weights, bias in zip(self.layers, self.weights, self.biases, strict=True):
            y = layer.lower(values[-1]) @ weights + bias
            values.append(layer.shape(np.maximum(y, 0) if layer.relu else y, len(x)))
        return values

    def classify(self, x: Array) -> Array:
        classes: Array = self.forward(x)[-1].argmax(axis=1)
        return classes

    def gradients(self, x: Array, labels: Array) -> tuple[list[Array], list[Array]]:
        """Of the mean cross-entropy, for weights and biases."""
        values = self.forward(x)
        logits = values[-1] - values[-1].max(axis=1, keepdims=True)
        softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        gradient: Array = softmax
        gradient[np.arange(len(labels)), labels] -= 1
        gradient = gradient / np.float32(len(labels))
        of_weights, of_biases = [], []
        for layer, weights, before, after in zip(
            self.layers[::-1], self.weights[::-1], values[-2::-1], values[:0:-1], strict=True
        ):
            if layer.relu:
                gradient = gradient * (after > 0)
            rows = gradient.reshape(-1, layer.outputs)
            of_weights.append(layer.lower(before).T @ rows)
            of_biases.append(rows.sum(axis=0))
            gradient = layer.raise_(rows @ weights.T, before.shape)
        return of_weights[::-1], of_biases[::-1]

    def train(self, x: Array, labels: Array, epochs: int, progress: Callable[[], None]) -> None:
        """Adam over shuffled batches; calls ``progress`` after every epoch."""
        random = np.random.default_rng(1)
        values = self.weights + self.biases
        first, second = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
        step = 0
        for _ in range(epochs):
            order = random.permutation(len(x))
            for start in range(0, len(x), BATCH):
                chosen = order[start : start + BATCH]
                of_weights, of_biases = self.gradients(x[chosen], labels[chosen])
                step += 1
                rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                for value, g, m, v in zip(values, of_weights + of_biases, first, second, strict=True):
                    m += np.float32(0.1) * (g - m)
                    v += np.float32(0.001) * (g * g - v)
                    value -= np.float32(rate) * m / (np.sqrt(v) + np.float32(1e-8))
            progress()
