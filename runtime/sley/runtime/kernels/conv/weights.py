"""Weights as the array takes them, packed on the host once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.conv.mapping import Form

NEUTRAL_BF16 = 0x8000
"""-0, which adds nothing to any sum with an activation of +0."""


def pack(config: ChipConfig, dtype: ElementType, weights: NDArray[Any], groups: int, form: Form) -> NDArray[Any]:
    """Bytes of [bundle, column tile, fold, tap y, tap x, N rows, N lanes]: rows of the scratchpad in the order in which
    they are loaded.

    Parameters
    ----------
    weights: [taps y, taps x, channels of a group, outputs], as integers of the operands' width. groups: of the
        convolution. form: what is packed.
    """
    n, lanes = config.array, config.lane_elements(dtype)
    dense = _packed(weights, form) if form.packed else _diagonal(weights, groups, form)
    bundles, taps_y, taps_x, channels, outputs = dense.shape
    folds, tiles = -(-channels // (n * lanes)), -(-outputs // n)
    neutral = NEUTRAL_BF16 if dtype is ElementType.BF16 else 0
    full = np.full((bundles, taps_y, taps_x, folds * n * lanes, tiles * n), neutral, weights.dtype)
    full[:, :, :, :channels, :outputs] = dense
    split = full.reshape(bundles, taps_y, taps_x, folds, n, lanes, tiles, n)
    rows = np.ascontiguousarray(split.transpose(0, 6, 3, 1, 2, 4, 7, 5))
    if dtype is ElementType.INT8 or config.lane_bits == dtype.bits:
        return rows.reshape(-1).view(np.uint8)
    raise AssertionError(f"lanes of {config.lane_bits} bits hold no {dtype.name}")


def _diagonal(weights: NDArray[Any], groups: int, form: Form) -> NDArray[Any]:
    """Of the groups of each bundle blocks on the diagonal: [bundles, taps y, taps x, channels, outputs] of a bundle."""
    taps_y, taps_x, channels, all_outputs = weights.shape
    outputs, size = all_outputs // groups, form.groups
    found = np.zeros((form.bundles, taps_y, taps_x, size * channels, size * outputs), weights.dtype)
    for bundle in range(form.bundles):
        for member in range(size):
            first = (form.first + bundle * size + member) * outputs
            block = np.s_[member * channels : (member + 1) * channels, member * outputs : (member + 1) * outputs]
            found[bundle, :, :, *block] = weights[..., first : first + outputs]
    return found


def _packed(weights: NDArray[Any], form: Form) -> NDArray[Any]:
    """The taps of a row as channels of one tap; those that the shift moves out of the window are zeros."""
    taps_y, taps_x, channels, outputs = weights.shape
    moved = np.zeros((taps_y, form.window, channels, outputs), weights.dtype)
    for place in range(form.window):
        if 0 <= place + form.shift < taps_x:
            moved[:, place] = weights[:, place + form.shift]
    return moved.reshape(1, taps_y, 1, form.window * channels, outputs)
