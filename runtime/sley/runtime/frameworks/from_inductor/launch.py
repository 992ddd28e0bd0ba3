"""Launches of Inductor's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch._inductor.codecache import PyCodeCache
from triton.compiler.errors import CompilationError

from sley.runtime.device.buffer import Buffer
from sley.runtime.errors import KernelError
from sley.runtime.frameworks.from_inductor.blocks import Blocks, candidates
from sley.runtime.frameworks.from_inductor.heuristics import Source
from sley.runtime.frameworks.from_triton.kernel import TritonKernel
from sley.runtime.frameworks.from_triton.launch import compiled_for
from sley.runtime.frameworks.from_triton.refusal import TritonRefused
from sley.runtime.frameworks.torch_device.tensors import elements
from sley.runtime.tile.choices import Sides, cdiv
from sley.runtime.tile.operations import TileError

Choice = tuple[Blocks, bool]
"""Blocks, and whether the axes of tiles are exchanged."""
AXES = ("x", "y", "z")
"""Of the grid, as names of sizes begin."""


class InductorKernel:
    """One kernel. ``run`` is what generated code calls.

    Attributes: ``name``; ``origins``: operators of the graph that it does; ``launches``: how often it ran.
    """

    def __init__(self, name: str, source: Source, origins: str) -> None:
        self.name, self.source, self.origins = name, source, origins
        self.launches = 0
        parameters = source.function.params
        self._names = [p.name for p in parameters if not p.is_constexpr]
        self._blocks = [p.name for p in parameters if p.is_constexpr]
        self._chosen: dict[Any, Choice] = {}

    def run(self, *args: Any, stream: Any = None) -> None:
        """One launch, on the current stream. Raises ``TritonRefused`` with the names of kernel and operators."""
        given = dict(zip(self._names, args, strict=True))
        sizes = {name.removesuffix("numel"): size for name, size in given.items() if name.endswith("numel")}
        if 0 in sizes.values():
            return
        arrays = {n: elements(value) if isinstance(value, torch.Tensor) else value for n, value in given.items()}
        key = tuple(_kind(value) for value in arrays.values())
        try:
            if key in self._chosen:
                self._launch(arrays, sizes, self._chosen[key])
            else:
                self._chosen[key] = self._first(arrays, sizes)
        except (KernelError, CompilationError) as error:
            raise TritonRefused(f"{self.name}, made of {self.origins}: {error}") from None
        self.launches += 1

    def _first(self, arrays: dict[str, Any], sizes: dict[str, int]) -> Choice:
        """The first launch, with the best blocks that become a program; which these are. Raises the error of the last
        ones that were tried."""
        last: KernelError | None = None
        for choice in self._ranked(arrays, sizes):
            try:
                self._launch(arrays, sizes, choice)
            except KernelError as error:  # too many instructions, registers or semaphores
                last = error
            else:
                return choice
        assert last is not None
        raise last

    def _launch(self, arrays: dict[str, Any], sizes: dict[str, int], choice: Choice) -> None:
        kernel, grid, rest = self._with(arrays, sizes, *choice)
        kernel[grid](*rest)

    def _with(
        self, arrays: dict[str, Any], sizes: dict[str, int], blocks: Blocks, exchanged: bool
    ) -> tuple[TritonKernel, Sides, list[Any]]:
        kernel, rest = compiled_for(self.source.function, {**arrays, **blocks}, exchanged)
        x, y, z = (cdiv(sizes[axis], blocks.get(f"{axis.upper()}BLOCK", 1)) if axis in sizes else 1 for axis in AXES)
        return kernel, (x, y, z), rest

    def _ranked(self, arrays: dict[str, Any], sizes: dict[str, int]) -> Iterator[Choice]:
        """The largest blocks that have room, and whether axes are exchanged, those with the least cycles first; then
        smaller ones. Raises the error of the smallest ones if there are none."""
        orders = (False, True) if any(axis.startswith("r") for axis in sizes) else (False,)
        whole = [size for axis, size in sizes.items() if f"{axis.upper()}BLOCK" not in self._blocks]
        last: TileError | None = None
        fitted = False
        for equal in candidates(self._blocks, sizes, whole):
            found: list[tuple[int, Choice]] = []
            for choice in product(equal, orders):
                kernel, grid, rest = self._with(arrays, sizes, *choice)
                try:
                    found.append((kernel.priced(grid, rest), choice))
                except TileError as error:
                    last = error
            fitted = fitted or bool(found)
            yield from (choice for _, choice in sorted(found, key=lambda one: one[0]))
        if not fitted:
            assert last is not None
            raise last


def _kind(value: Any) -> Any:
    if not isinstance(value, Buffer):
        return value
    return value.dtype, value.shape, value.strides, value.layout.span


def kernel_of(name: str, text: str, origins: str) -> InductorKernel:
    """A kernel from its text. ``origins``: of which operators it was made."""
    module = PyCodeCache.load(text)
    return InductorKernel(name, getattr(module, name), origins)
