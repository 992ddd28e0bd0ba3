"""Weights of a model on a device: int8 with a scale for each output, embedding in bfloat16, norms in float32."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.errors import KernelError
from sley.runtime.kernels.many_rows.placement import place
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows, Source
from sley.runtime.kernels.many_rows.program import many_rows_program
from sley.runtime.kernels.many_rows.weights import pack
from sley.runtime.llama.checkpoint import Checkpoint, Floats, Layer
from sley.runtime.llama.shape import LlamaShape
from sley.runtime.llama.tokens import Norm, Tokens

SMALLEST = float(2.0**-100)


TOKENS = 64
"""Tokens of a prompt are a multiple, and cores take as many each."""
AT_A_TIME = 1024
"""Tokens of a launch, whose scales are in the accumulators."""


@dataclass(frozen=True)
class Linear:
    """On a device: weights of int8 as the array takes them, see ``many_rows.weights``; scales [1, outputs] float32."""

    packed: Buffer
    scales: Buffer

    @classmethod
    def of(cls, device: Device, values: Floats) -> Linear:
        """Of [outputs, inputs] in float32. Raises ``BadRequest`` for outputs that do not fill the chip's lanes."""
        numbers, scales = quantised(values)
        if len(values) % device.config.array:
            raise BadRequest(
                f"{len(values)} outputs of a product; on the chip {device.config.name} they are a multiple of "
                f"{device.config.array}"
            )
        packed = device.array(pack(device.config, numbers))
        return cls(packed, device.array(scales[None]))

    def of_tokens(self, x: Tokens, out: Buffer) -> None:
        """out [tokens, outputs] float32 = products of few tokens. Many outputs are several launches, each with as many
        as have the scales of all in the accumulators: loaded beside the weights, they would take a twentieth longer."""
        n, blocks = Device.of(x.values).config.array, self.packed.shape[0]
        x = self._fitting(Ending.SCALED, x)
        each = self._resident_blocks(x)
        for first in range(0, blocks, each):
            outputs = slice(first * n, (first + each) * n)
            part = Linear(self.packed[first : first + each], self.scales[:, outputs])
            part._tokens(Ending.SCALED, x, [out[:, outputs]], width=out.shape[1])

    def _resident_blocks(self, x: Tokens) -> int:
        """Blocks of outputs of a launch: all, or a part of them that is resident, if any is."""
        config, blocks = Device.of(x.values).config, self.packed.shape[0]
        problem = self._problem_of(Ending.SCALED, x)
        for pieces in range(1, blocks + 1):
            if blocks % pieces == 0 and place(config, replace(problem, blocks=blocks // pieces)).resident:
                return blocks // pieces
        return blocks

    def gated_tokens(self, x: Tokens, out: Buffer, next_scales: Buffer, inverses: Buffer) -> None:
        """As ``gated``, of few tokens."""
        self._tokens(Ending.GATED, x, [out, next_scales, inverses])

    def added_tokens(
        self, x: Tokens, out: Buffer, next_scales: Buffer, inverses: Buffer, norm: Norm, epsilon: float
    ) -> None:
        """As ``added``, of few tokens."""
        self._tokens(Ending.ADDED, x, [out, next_scales, inverses, norm.magnitudes], epsilon)

    def cached_tokens(
        self, x: Tokens, queries: Buffer, places: Buffer, tables: Sequence[Buffer], keys: Buffer, values: Buffer
    ) -> bool:
        """Products of few tokens that are heads of queries, keys and values: queries [tokens, heads, key heads · head],
        turned, each in the columns of its key head; keys, turned, and values to caches [slots, key heads, head]; all
        bfloat16. tables: cosines and sines [positions, head / 2]. places: [3, tokens] int32, in bytes, a token's row of
        the tables, of queries, and its slot. False if the chip has no room for so many tokens, or for the program;
        nothing is done then.
        """
        key_heads, head = keys.shape[1:]
        group = queries.shape[1] // key_heads
        turned = {"head": head, "group": group, "turned": (group + 1) * key_heads}
        problem = self._problem_of(Ending.CACHED, x, **turned)
        try:
            many_rows_program(Device.of(x.values).config, problem)
        except KernelError:
            return False
        arguments = [*x.first, self.packed, self.scales, queries, places, *tables, keys, values, *x.others]
        self._launch(problem, arguments)
        return True

    def _tokens(
        self, ending: Ending, x: Tokens, results: list[Buffer], epsilon: float = 0.0, width: int | None = None
    ) -> None:
        x = self._fitting(ending, x)
        problem = self._problem_of(ending, x, epsilon=epsilon, width=width)
        self._launch(problem, [*x.first, self.packed, self.scales, *results, *x.others])

    def _fitting(self, ending: Ending, x: Tokens) -> Tokens:
        """x, or made int8 before, if its program has no room for so many tokens of other types."""
        if x.source is Source.INT8:
            return x
        try:
            many_rows_program(Device.of(x.values).config, self._problem_of(ending, x))
        except KernelError:
            return x.as_int8()
        return x

    def _problem_of(self, ending: Ending, x: Tokens, **more: Any) -> ManyRows:
        """Of few tokens."""
        shape = x.scales.shape[0], x.parts, self.packed.shape[0], x.width
        more |= {"lanes": x.lanes, "head": x.values.shape[2] - 1} if x.lanes else {}
        return ManyRows(*shape, ending, source=x.source, **more)

    def of_prompt(self, x: Buffer, scales: Buffer, out: Buffer) -> None:
        """The same of many tokens, a multiple of 64."""
        self._rows(Ending.SCALED, x, [scales, out])

    def gated(self, x: Buffer, scales: Buffer, out: Buffer, next_scales: Buffer, inverses: Buffer) -> None:
        """out = silu(first half of the products) · second half, of many tokens; the scale of each, and what makes int8
        of it [tokens, 1]."""
        self._rows(Ending.GATED, x, [scales, out, next_scales, inverses])

    def added(
        self, x: Buffer, scales: Buffer, out: Buffer, next_scales: Buffer, inverses: Buffer, norm: Norm, epsilon: float
    ) -> None:
        """out += products, of many tokens; the scale of the norm of each, and what makes int8 of it times the norm's
        weights."""
        self._rows(Ending.ADDED, x, [scales, out, next_scales, inverses], [norm.magnitudes], epsilon)

    def _rows(
        self, ending: Ending, x: Buffer, rows: list[Buffer], others: Sequence[Buffer] = (), epsilon: float = 0.0
    ) -> None:
        """``rows``: arrays with a row for each token, the scales of x first."""
        whole = rows[0].shape[0]
        for first, tokens in _pieces(whole):
            scales, *results = [array[first : first + tokens] for array in rows]
            problem = self._problem(ending, x, tokens, whole, epsilon=epsilon)
            self._launch(problem, [x[first:], scales, self.packed, self.scales, *results, *others])

    def heads(self, x: Buffer, scales: Buffer, out: Buffer, tables: Sequence[Buffer], turned: int) -> None:
        """out [heads, tokens, head] bfloat16 = products of many tokens, which are at positions from 0 on; the first
        heads, so many, are turned by tables, cosines and sines [positions, head / 2]."""
        whole, head = out.shape[1:]
        for first, tokens in _pieces(whole):
            problem = self._problem(Ending.TURNED, x, tokens, whole, head=head, turned=turned)
            rows = slice(first, first + tokens)
            arguments = [x[first:], scales[rows], self.packed, self.scales, out[:, first:], *(t[rows] for t in tables)]
            self._launch(problem, arguments)

    def _problem(self, ending: Ending, x: Buffer, tokens: int, whole: int, **more: Any) -> ManyRows:
        """For some tokens of ``whole``."""
        cores = 1 if tokens % TOKENS else math.gcd(tokens // TOKENS, Device.of(x).config.cores)
        parts = x.shape[0] // whole
        return ManyRows(tokens, parts, self.packed.shape[0], x.shape[1], ending, cores=cores, apart=whole, **more)

    def _launch(self, problem: ManyRows, arguments: Sequence[Buffer]) -> None:
        device = Device.of(self.packed)
        device.stream.launch(many_rows_program(device.config, problem), arguments, (problem.cores,))


def _pieces(tokens: int) -> Iterator[tuple[int, int]]:
    """Of each launch for so many tokens, the first one and how many."""
    for first in range(0, tokens, AT_A_TIME):
        yield first, min(AT_A_TIME, tokens - first)


def quantised(values: Floats) -> tuple[NDArray[np.int8], Floats]:
    """[outputs, inputs] as int8, and the scale of each output: its largest absolute value by 127."""
    scales = np.maximum(np.abs(values).max(axis=1) / np.float32(127), np.float32(SMALLEST)).astype(np.float32)
    return np.rint(values / scales[:, None]).astype(np.int8), scales


@dataclass(frozen=True)
class DeviceLayer:
    """A layer. Products of the same input are one: queries, keys and values, and gate and up."""

    attention_norm: Norm
    projection: Linear
    output: Linear
    feed_norm: Norm
    gate_up: Linear
    down: Linear

    @classmethod
    def of(cls, device: Device, layer: Layer) -> DeviceLayer:
        """A layer of a checkpoint."""
        return cls(
            Norm.of(device, layer.attention_norm),
            Linear.of(device, np.concatenate([layer.query, layer.key, layer.value])),
            Linear.of(device, layer.output),
            Norm.of(device, layer.feed_norm),
            Linear.of(device, np.concatenate([layer.gate, layer.up])),
            Linear.of(device, layer.down),
        )


class LlamaWeights:
    """A model on a device.

    Attributes
    ----------
    shape: its sizes. embedding: [vocabulary, width] bfloat16. layers, norm, head: weights. cosines, sines: [context,
    head / 2] float32, of the angles position · base^(-2 i / head).
    """

    def __init__(self, device: Device, checkpoint: Checkpoint, context: int | None = None) -> None:
        self.shape: LlamaShape = checkpoint.shape
        self.context = context or self.shape.context
        self.embedding = device.array(checkpoint.embedding.astype(BF16))
        self.layers = tuple(DeviceLayer.of(device, layer) for layer in checkpoint.layers)
        self.norm = Norm.of(device, checkpoint.norm)
        self.head = Linear.of(device, checkpoint.head)
        pairs = np.arange(self.shape.head // 2)
        angles = np.arange(self.context)[:, None] * self.shape.rotary_base ** (-2 * pairs / self.shape.head)
        self.cosines, self.sines = (device.array(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
