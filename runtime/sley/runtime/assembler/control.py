"""Labels and branches, and what is made of them: loops and conditions as context managers."""

from collections.abc import Iterator
from contextlib import contextmanager

from sley.abi.config import ChipConfig
from sley.abi.instructions import Op
from sley.runtime.assembler.operands import ZERO, Label, Register, Value
from sley.runtime.assembler.scalars import Scalars
from sley.runtime.errors import KernelError

_INVERSE = {"<": Op.BGE, ">=": Op.BLT, "==": Op.BNE, "!=": Op.BEQ}
"""Branches around a body that runs if the relation holds."""


class Control(Scalars):
    """Instructions that decide which instruction comes next."""

    def __init__(self, name: str, config: ChipConfig) -> None:
        super().__init__(name, config)
        self._loop_ends: set[int] = set()
        self._labels: list[Label] = []

    def label(self, name: str = "label") -> Label:
        """A label for ``place`` and ``branch``."""
        label = Label(name)
        self._labels.append(label)
        return label

    def place(self, label: Label) -> None:
        """Puts the label in front of the next instruction."""
        if label.index is not None:
            raise KernelError(f"{self.name}: label {label.name!r} is placed twice")
        self._straight_line_ends()
        label.index = len(self._code)

    def branch(self, op: Op, ra: Register, rb: Value, label: Label) -> None:
        """BEQ, BNE, BLT or BGE to a label."""
        if op not in _INVERSE.values():
            raise KernelError(f"{self.name}: {op.name} is no branch")
        self._straight_line_ends()
        self._emit(op, ra=ra.number, rb=self._register(rb, "rb").number)
        self._code[-1].target = label

    def jump(self, label: Label) -> None:
        self.branch(Op.BEQ, ZERO, ZERO, label)

    @contextmanager
    def loop(self, count: Value) -> Iterator[None]:
        """Hardware loop: runs the body ``count`` times, not at all for 0; the way back costs nothing."""
        end = self.label("loop end")
        self._straight_line_ends()
        if isinstance(count, Register):
            self._emit(Op.LOOP, ra=count.number)
        else:
            self._emit(Op.LOOP, use_imm=1, imm=count)
        self._code[-1].target = end
        first = len(self._code)
        yield
        self._straight_line_ends()
        if len(self._code) == first:
            raise KernelError(f"{self.name}: the body of a loop is empty")
        last = len(self._code) - 1
        unfit = self._code[-1].op in (*_INVERSE.values(), Op.LOOP, Op.END) or last in self._loop_ends
        if unfit or any(label.index == last + 1 for label in self._labels):
            self.mov(ZERO, ZERO)
        end.index = len(self._code) - 1
        self._loop_ends.add(end.index)

    @contextmanager
    def if_(self, ra: Register, relation: str, rb: Value) -> Iterator[None]:
        """Runs the body if ``ra relation rb``; the relation is one of ``<``, ``>=``, ``==``, ``!=`` (signed)."""
        end = self.label("if end")
        self.branch(self._inverse(relation), ra, rb, end)
        yield
        self.place(end)

    @contextmanager
    def while_(self, ra: Register, relation: str, rb: Value) -> Iterator[None]:
        """Runs the body as long as ``ra relation rb``, for trip counts that are not known beforehand."""
        head, end = self.label("while"), self.label("while end")
        self.place(head)
        self.branch(self._inverse(relation), ra, rb, end)
        yield
        self.jump(head)
        self.place(end)

    def _inverse(self, relation: str) -> Op:
        if relation not in _INVERSE:
            raise KernelError(f"{self.name}: no relation {relation!r}; there are {' '.join(_INVERSE)}")
        return _INVERSE[relation]
