"""PyTorch's PT2E quantisation for a Sley device: ``prepare_pt2e(exported, SleyQuantizer())``."""

from sley.runtime.frameworks.from_torch.quantizer import SleyQuantizer

__all__ = ["SleyQuantizer"]
