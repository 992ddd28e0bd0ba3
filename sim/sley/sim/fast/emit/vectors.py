"""C expressions for the operators of the netlist on the vectors of ``vectors.h``.

A vector holds the same value of several elements, in lanes of one unsigned type that has room for it. A value of one
bit is a mask, all ones or zero, which comparisons give and multiplexers take.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sley.sim.fast.emit.expressions import literal, narrow
from sley.sim.fast.optimise.machine_types import BITS

VECTOR_BYTES = 64
LONG_BYTES = 256
"""Of a loop that goes in vectors of half that size: fewer of them lie across two cache lines."""
_SYMBOLS = {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*"}
_COMPARE = {"eq": "==", "ne": "!=", "ltu": "<", "leu": "<=", "lts": "<", "les": "<="}


@dataclass(frozen=True, slots=True)
class Vector:
    """A type of vectors."""

    kind: str
    lanes: int

    @classmethod
    def fitting(cls, kind: str, elements: int, widest: int = 0) -> "Vector":
        """Lanes of type ``kind``: as many as a vector register has, but no more than elements. ``widest``: bits of the
        numbers that lanes are sliced from, of which a register must have as many."""
        size = BITS[kind] // 8
        lanes = VECTOR_BYTES // size // (2 if elements * size > LONG_BYTES else 1)
        lanes = min(lanes, 8 * VECTOR_BYTES // max(widest, 1))
        while lanes > elements:
            lanes //= 2
        return cls(kind, lanes)

    def __str__(self) -> str:
        return f"{self.kind}x{self.lanes}"

    @property
    def bits(self) -> int:
        return BITS[self.kind]

    def of(self, kind: str) -> "Vector":
        """As many lanes of another type."""
        return Vector(kind, self.lanes)

    def converted(self, text: str, other: "Vector") -> str:
        """A vector of type ``other`` with as many lanes, in this type."""
        return text if other == self else f"{self}_of_{other}({text})"

    def all(self, value: int) -> str:
        """The same constant in all lanes."""
        return f"(({self}){{0}} + ({self.kind}){literal(value, 64)})" if value else f"(({self}){{0}})"

    def operator(
        self, op: str, width: int, parameter: int, operands: Sequence[str], widths: Sequence[int], loose: bool = False
    ) -> str:
        """Result of an operator; operands and result of one bit are masks. ``loose``: the bits above do not matter."""
        a = operands[0]
        ones = (1 << width) - 1
        if op in ("and", "or", "xor"):
            return f"({a} {_SYMBOLS[op]} {operands[1]})"
        if op == "not":
            return f"(~{a})" if width == 1 else f"({a} ^ {self.all(ones)})"
        if op in _COMPARE:
            return self._compare(op, operands, widths)
        if op == "mux":
            return f"(({a} & {operands[2]}) | (~{a} & {operands[1]}))"
        numbers = [self._number(operand, size) for operand, size in zip(operands, widths, strict=True)]
        a = numbers[0]
        if op in ("add", "sub", "mul"):
            result = f"({a} {_SYMBOLS[op]} {numbers[1]})"
            result = self.cut(result, width, loose)
        elif op == "slice":
            result = f"({a} >> {parameter})" if parameter else a
            result = result if parameter + width == widths[0] else f"({result} & {self.all(ones)})"
        elif op == "concat":
            result = self._concat(numbers, widths)
        elif op == "sext":
            result = self._sext(operands[0], a, width, widths[0], loose)
        else:
            result = self._shift(op, width, a, numbers[1], widths[1])
        return f"(-{result})" if width == 1 else result

    def _number(self, operand: str, width: int) -> str:
        return f"({operand} & {self.all(1)})" if width == 1 else operand

    def _compare(self, op: str, operands: Sequence[str], widths: Sequence[int]) -> str:
        a, b = operands
        if op in ("lts", "les") and widths[0] == 1:  # as numbers of one bit, 1 means -1
            a, b = b, a
        elif op in ("lts", "les"):
            sign = self.all(1 << (widths[0] - 1))
            a, b = f"({a} ^ {sign})", f"({b} ^ {sign})"
        return f"(({self})({a} {_COMPARE[op]} {b}))"

    def _concat(self, numbers: Sequence[str], widths: Sequence[int]) -> str:
        parts, low = [], 0
        for number, width in zip(numbers, widths, strict=True):
            if number != self.all(0):
                parts.append(f"({number} << {low})" if low else number)
            low += width
        return "(" + " | ".join(parts or [self.all(0)]) + ")"

    def _sext(self, operand: str, a: str, width: int, own: int, loose: bool) -> str:
        if own == 1:
            return f"({operand} & {self.all((1 << width) - 1)})"
        sign = self.all(1 << (own - 1))
        return self.cut(f"(({a} ^ {sign}) - {sign})", width, loose)

    def cut(self, text: str, width: int, loose: bool) -> str:
        """The low bits of numbers, or the numbers themselves if the bits above do not matter."""
        return text if loose or width == self.bits else f"({text} & {self.all((1 << width) - 1)})"

    def signed_slice(self, text: str, low: int, own: int) -> str:
        """Bits of numbers as signed numbers of all bits of a lane."""
        signed = f"s{self.kind[1:]}x{self.lanes}"
        left = f"({text} << {self.bits - low - own})" if self.bits - low - own else text
        return f"(({self})(({signed}){left} >> {self.bits - own}))"

    def _shift(self, op: str, width: int, a: str, amount: str, amount_width: int) -> str:
        largest, ones = (1 << amount_width) - 1, (1 << width) - 1
        safe = amount if largest < self.bits else f"({amount} & {self.all(self.bits - 1)})"
        inside = f"(({self})({amount} < {self.all(self.bits)}))"
        if op == "sar":
            signed = f"s{self.kind[1:]}x{self.lanes}"
            if largest >= self.bits:
                safe = f"(({inside} & {amount}) | (~{inside} & {self.all(self.bits - 1)}))"
            top = self.bits - width
            value = f"((({signed})({a} << {top})) >> {top})"
            result = f"(({self})({value} >> ({signed}){safe}))"
            return result if width == self.bits else f"({result} & {self.all(ones)})"
        result = f"({a} {'<<' if op == 'shl' else '>>'} {safe})"
        if largest >= self.bits:
            result = f"({result} & {inside})"
        return result if op == "shr" or width == self.bits else f"({result} & {self.all(ones)})"

    def lane(self, op: str, width: int, parameter: int, operands: Sequence[str], widths: Sequence[int]) -> str:
        """An operator that vectors do not have, for lane ``l``."""
        texts = [
            f"({operand}[l] & 1)" if size == 1 else f"{operand}[l]"
            for operand, size in zip(operands, widths, strict=True)
        ]
        result = narrow(op, width, parameter, texts, widths, "u32" if self.bits < 64 else "u64")
        return f"(-{result})" if width == 1 else result
