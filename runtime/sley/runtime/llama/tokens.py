"""What products of few tokens take: tokens in one of several forms, and the norm in front of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.kernels.many_rows.problem import Source
from sley.runtime.llama.checkpoint import Floats
from sley.runtime.llama.kernels.attention import rows_of_heads
from sley.runtime.llama.kernels.quantised import to_int8
from sley.runtime.llama.kernels.residual import rows_quantised
from sley.runtime.tile.choices import cdiv


@dataclass(frozen=True)
class Norm:
    """On a device: weights of a norm [1, width] float32, and their magnitudes."""

    weights: Buffer
    magnitudes: Buffer

    @classmethod
    def of(cls, device: Device, values: Floats) -> Norm:
        """Of [width] in float32."""
        return cls(device.array(values[None]), device.array(np.abs(values[None])))


@dataclass(frozen=True)
class Tokens:
    """What a product of few tokens takes.

    Attributes
    ----------
    values: [parts · tokens, inputs] int8, high parts first; or [tokens, inputs] float32, with ``inverses``; or results
    of attention in ``lanes``, see ``HeadAttention``. scales: of tokens [tokens, 1]; of those with ``lanes`` they are
    found, here or in the product. inverses: what tokens of float32 are multiplied by to be int8 [tokens, 1], in
    ``parts``. norm: weights that they are multiplied by before. lanes: heads of each launch of attention.
    """

    values: Buffer
    scales: Buffer
    inverses: Buffer | None = None
    norm: Norm | None = None
    parts: int = 2
    lanes: tuple[int, ...] = ()

    @property
    def source(self) -> Source:
        """How the program takes them."""
        if self.lanes:
            return Source.HEADS
        if self.inverses is None:
            return Source.INT8
        return Source.FLOATS if self.norm is None else Source.NORMED

    def as_int8(self) -> Tokens:
        """The same, made int8 by launches of their own."""
        if self.lanes:
            return self._heads_as_int8()
        assert self.inverses is not None
        count, width = self.values.shape
        q = Device.of(self.values).empty((self.parts * count, width), np.int8)
        norm = None if self.norm is None else self.norm.weights
        to_int8[lambda rows, columns: (cdiv(width, columns), cdiv(count, rows))](
            self.values, norm, self.inverses, q, self.parts
        )
        return Tokens(q, self.scales, parts=self.parts)

    def _heads_as_int8(self) -> Tokens:
        device, (count, pieces, rows, _) = Device.of(self.values), self.values.shape
        width = sum(self.lanes) * (rows - 1)
        seen = device.empty((count, sum(self.lanes), rows - 1), BF16)
        q = device.empty((self.parts * count, width), np.int8)
        for piece in range(pieces):
            first = sum(self.lanes[:piece])
            rows_of_heads[count](self.values[:, piece], seen[:, first : first + self.lanes[piece]])
        rows_quantised[lambda rows: cdiv(count, rows)](seen.reshape(count, width), q, self.scales, self.parts)
        return Tokens(q, self.scales, parts=self.parts)

    @property
    def width(self) -> int:
        """Inputs of the product."""
        return sum(self.lanes) * (self.values.shape[2] - 1) if self.lanes else self.values.shape[1]

    @property
    def first(self) -> list[Buffer]:
        """Arguments in front of the weights."""
        return [self.values] if self.lanes else [self.values, self.scales]

    @property
    def others(self) -> list[Buffer]:
        """Arguments behind all others."""
        norms = [] if self.norm is None else [self.norm.weights]
        return [] if self.inverses is None else [self.inverses, *norms]
