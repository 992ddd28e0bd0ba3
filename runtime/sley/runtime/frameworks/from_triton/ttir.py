"""Triton's IR, TTIR, as far as a kernel needs it: types, values, operations and their regions."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TritonType:
    """Attributes: ``element``: ``i1`` to ``i64``, ``f16``, ``bf16``, ``f32``, …; what a pointer or a descriptor points
    to. ``shape``: of a tensor, or of a descriptor's block; () is a scalar. ``kind``: ``value``, ``pointer``,
    ``descriptor``."""

    element: str
    shape: tuple[int, ...] = ()
    kind: str = "value"

    def __str__(self) -> str:
        inner = f"!tt.ptr<{self.element}>" if self.kind == "pointer" else self.element
        shape = "x".join((*map(str, self.shape), inner))
        if self.kind == "descriptor":
            return f"!tt.tensordesc<{shape}>"
        return f"tensor<{shape}>" if self.shape else inner

    def of(self, element: str) -> TritonType:
        """The same shape with other elements."""
        return TritonType(element, self.shape)

    @property
    def pointee(self) -> TritonType:
        """What a load of pointers gives."""
        return TritonType(self.element, self.shape)

    @property
    def is_float(self) -> bool:
        return self.element[0] != "i" and self.kind == "value"

    @property
    def is_integer(self) -> bool:
        return self.element[0] == "i" and self.kind == "value"

    @property
    def bits(self) -> int:
        """Of an integer element."""
        return int(self.element[1:])


@dataclass(eq=False, slots=True)
class TritonValue:
    """A result of an operation or an argument of a region. Two values are the same only if they are one object."""

    type: TritonType
    name: str = ""


@dataclass(frozen=True)
class Place:
    """A line of the user's source; an empty file is unknown."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown line"

    @property
    def text(self) -> str:
        """The line itself, if its file is there."""
        return linecache.getline(self.file, self.line).strip() if self.file else ""


@dataclass(eq=False, slots=True)
class Region:
    """Operations in their order, and the arguments that their values begin with."""

    arguments: list[TritonValue] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    def walk(self) -> Iterator[Operation]:
        """All operations, those of regions behind theirs."""
        for operation in self.operations:
            yield operation
            for region in operation.regions:
                yield from region.walk()


@dataclass(eq=False, slots=True)
class Operation:
    """Attributes: ``attributes``: by name; ``predicate``, ``value``, ``axis`` and others as the operation has them."""

    name: str
    operands: list[TritonValue]
    results: list[TritonValue]
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    place: Place = field(default_factory=Place)

    @property
    def result(self) -> TritonValue:
        """The only result."""
        (result,) = self.results
        return result


@dataclass(eq=False, slots=True)
class TritonFunction:
    """A kernel: its arguments in order, and its body. ``blocks``: what is branched to by its label, where the kernel
    returns before its end."""

    name: str
    arguments: list[TritonValue]
    body: Region
    blocks: dict[str, Region] = field(default_factory=dict)

    def walk(self) -> Iterator[Operation]:
        """All operations, those of regions behind theirs."""
        for region in (self.body, *self.blocks.values()):
            yield from region.walk()
