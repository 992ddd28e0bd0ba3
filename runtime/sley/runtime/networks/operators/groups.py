"""Grouped convolutions: several small groups in one, with zeros between them, so that the array is full.

The array takes N channels and gives N outputs at a time. A depthwise convolution has one of each a group, so N groups
together take as long as one. Zeros times finite values add nothing; an infinity or a NaN of one channel reaches the
outputs of the groups that it is together with.
"""

from __future__ import annotations

import numpy as np


def together(groups: int, channels: int, outputs: int, lanes: int) -> int:
    """How many groups, of so many channels and outputs each, are one: as few passes through the array as can be."""

    def passes(count: int) -> int:
        return groups // count * -(-count * channels // lanes) * -(-count * outputs // lanes)

    divisors = [count for count in range(1, groups + 1) if groups % count == 0]
    return min(divisors, key=lambda count: (passes(count), count))


def merged(taps: np.ndarray, groups: int, count: int) -> np.ndarray:
    """Weights [taps y, taps x, channels of a group, outputs] of groups / count groups."""
    rows, across, channels, outputs = taps.shape
    each = outputs // groups
    wide = np.zeros((rows, across, count, channels, groups // count, count, each), taps.dtype)
    parts = taps.reshape(rows, across, channels, groups // count, count, each)
    for number in range(count):
        wide[:, :, number, :, :, number] = parts[:, :, :, :, number]
    return wide.reshape(rows, across, count * channels, outputs)
