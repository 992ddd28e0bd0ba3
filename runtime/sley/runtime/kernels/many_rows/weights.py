"""Weights of int8 in the order in which the array takes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig


def packed_shape(config: ChipConfig, outputs: int, inputs: int) -> tuple[int, int, int]:
    """Blocks of N outputs, tiles of each, bytes of a tile."""
    n = config.array
    return -(-outputs // n), -(-inputs // config.fold_depth()), n * config.row_bytes


def pack(config: ChipConfig, weights: NDArray[np.int8]) -> NDArray[np.int8]:
    """[outputs, inputs] as [blocks, tiles, bytes]: a tile is N scratchpad rows, one for each lane of activations, with
    the weights of N outputs in it; what is beyond the last output or input is 0."""
    n, depth = config.array, config.fold_depth()
    blocks, tiles, _ = packed_shape(config, *weights.shape)
    whole = np.zeros((blocks * n, tiles * depth), np.int8)
    whole[: weights.shape[0], : weights.shape[1]] = weights
    lanes = whole.reshape(blocks, n, tiles, n, depth // n)
    return np.ascontiguousarray(lanes.transpose(0, 2, 3, 1, 4)).reshape(blocks, tiles, -1)
