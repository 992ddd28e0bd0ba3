"""An encoder of BERT's size: 12 layers, width 768, 12 heads, 128 tokens, weights drawn at random."""

from __future__ import annotations

import numpy as np

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.examples.zoo.subject import Model, Subject

LAYERS, WIDTH, HEADS, HIDDEN, TOKENS = 12, 768, 12, 3072, 128


def load(weights: str, layers: int = LAYERS) -> Subject:
    """Makes it, of so many layers. Raises ``BadRequest`` without torch."""
    try:
        import torch
    except ImportError as error:
        raise BadRequest(f"bert is made by PyTorch ({error}): {extra('torch')}") from None
    from sley.runtime.frameworks.from_torch.export import read_module

    torch.backends.mha.set_fastpath_enabled(False)  # a single operator, which no exporter takes apart
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, 0.0, "gelu", batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()
    x = torch.randn(1, TOKENS, WIDTH)
    with torch.no_grad():
        wanted = model(x).numpy()
    network = read_module(model, [x])
    (name,), (output,) = network.inputs, network.outputs
    return Subject(network, {name: np.asarray(x.numpy())}, {output: wanted}, "PyTorch")


MODEL = Model("bert", "encoder of BERT's size, 128 tokens", "PyTorch, random weights", load, ("random",))
