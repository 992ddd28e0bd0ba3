"""What studies run: ResNet-50 or a block of it, attention, a token of a language model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import ml_dtypes
import numpy as np

from sley.abi import ChipConfig
from sley.driver import Counters
from sley.runtime import Device, nn
from sley.runtime.frameworks.constants import fold
from sley.runtime.llama.checkpoint import Checkpoint, Layer
from sley.runtime.llama.model import Llama
from sley.runtime.llama.shape import LlamaShape
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.quantizer.quantize import quantize

FLOAT = np.dtype(np.float32)
SMOLLM2 = LlamaShape(30, 576, 1536, 49152, 9, 3, 64, 8192, 1e5, 1e-5)
"""SmolLM2-135M."""
KEYS = 256
"""That the token of a study sees."""


def block() -> Network:
    """Two convolutions of 3 x 3 with 16 channels and a residual, on 16 x 16 pixels."""
    random, shape = np.random.default_rng(0), (1, 16, 16, 16)
    weights = {name: random.standard_normal((16, 16, 3, 3)).astype(np.float32) / 12 for name in ("v", "w")}
    pads = {"pads": [1, 1, 1, 1]}
    nodes = (
        Node("Conv", ("x", "v"), ("a",), pads, "", 21),
        Node("Relu", ("a",), ("b",), {}, "", 21),
        Node("Conv", ("b", "w"), ("c",), pads, "", 21),
        Node("Add", ("c", "x"), ("y",), {}, "", 21),
    )
    type = TensorType(FLOAT, shape)
    return Network("block", {"x": type}, {"y": type}, nodes, weights)


def quantised_block() -> Network:
    """``block`` on int8."""
    x = np.random.default_rng(1).standard_normal((1, 16, 16, 16)).astype(np.float32)
    return quantize(block(), {"x": x}, fold, method="max")[0]


def attention(heads: int, tokens: int, dim: int) -> Callable[[Device], Callable[[], None]]:
    """Flash attention of bf16, causal."""

    def prepare(device: Device) -> Callable[[], None]:
        q, k, v, out = (device.empty((1, heads, tokens, dim), np.dtype(ml_dtypes.bfloat16)) for _ in range(4))

        def submit() -> None:
            nn.attention(q, k, v, causal=True, out=out)

        submit()
        return submit

    return prepare


def checkpoint(shape: LlamaShape) -> Checkpoint:
    """Weights of zeros, which take no room: time depends on no value."""

    def zeros(*sides: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.broadcast_to(np.float32(0), sides)

    norm, wide = zeros(shape.width), zeros(shape.heads_width, shape.width)
    narrow, up = zeros(shape.key_width, shape.width), zeros(shape.hidden, shape.width)
    layer = Layer(norm, wide, narrow, narrow, wide.T, norm, up, up, up.T)
    head = zeros(shape.vocabulary, shape.width)
    return Checkpoint(shape, head, (layer,) * shape.layers, norm, head, {})


@dataclass(frozen=True)
class Token:
    """Cycles of one: ``launch``, from its doorbell to its fence; ``whole``, from what the host writes for it to the
    logits that it reads. ``counters``: of the whole."""

    launch: int
    whole: int
    counters: Counters


def token(config: ChipConfig, small: bool, options: str = "") -> Token:
    """Of SmolLM2, which sees ``KEYS`` keys; of a layer of it, and 32 keys, if ``small``. ``options``: of the engine."""
    shape = replace(SMOLLM2, layers=1, vocabulary=512) if small else SMOLLM2
    keys = 32 if small else KEYS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chip.json"
        file.write_text(config.to_json())
        with Device.open(f"model:{file}?memory={'64M' if small else '512M'}&cycles=on{options}") as device:
            model = Llama(device, checkpoint(shape), context=2 * keys)
            graph, table = model.decode_graph(1, keys), model.cache.table(keys)
            table.extend(keys - 2)
            graph([1], [table])  # programs are on the device behind it
            before = device.driver.counters()
            graph.write([1], [table])
            with device.stream.timed() as timing:
                graph.graph.launch()
            graph.logits.numpy()
            counters = device.driver.counters() - before
    return Token(timing.cycles, counters.cycles, counters)
