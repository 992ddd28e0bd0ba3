"""Pass 3, simplify: makes values, and makes each of them once and in its simplest form.

There is no separate pass over the graph: ``Builder`` is the only way to make a value, and it folds constants, looks
through slices and concatenations, and cuts wide bitwise operators into the pieces of which their operands consist.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sley.sim.fast.read.netlist import WORD, Netlist
from sley.sim.fast.read.semantics import compute

_LOW_BITS = frozenset({"add", "sub", "mul"})
_BY_BITS = frozenset({"and", "or", "xor", "not", "mux"})
CARRIES = 2
"""A slice that leaves out at most so many high bits moves from the result of a bitwise operator to its operands."""

_FLIPPED = {"eq": "ne", "ne": "eq"}


class Builder(Netlist):
    """A netlist that grows. Every method returns the value that computes what its name says."""

    def __init__(self) -> None:
        super().__init__()
        self.instance = 0
        """The instance that new values belong to."""
        self._known: dict[tuple[str, int, int, tuple[int, ...]], int] = {}
        self._empty = self.const(0, 0)

    def make(self, op: str, width: int, operands: tuple[int, ...] = (), parameter: int = 0) -> int:
        """The value itself, not simplified further, but folded if all operands are constant."""
        key = (op, width, parameter, operands)
        known = self._known.get(key)
        if known is not None:
            return known
        if operands and op != "read" and all(self.op[operand] == "const" for operand in operands):
            values = [self.parameter[operand] for operand in operands]
            widths = [self.width[operand] for operand in operands]
            result = self.const(compute(op, width, parameter, values, widths), width)
        else:
            result = len(self.op)
            self.op.append(op)
            self.width.append(width)
            self.operands.append(operands)
            self.parameter.append(parameter)
            self.home.append(self.instance)
        self._known[key] = result
        return result

    def const(self, value: int, width: int) -> int:
        return self.make("const", width, (), value & ((1 << width) - 1))

    def constant(self, value: int) -> int | None:
        """The number, if the value is constant."""
        return self.parameter[value] if self.op[value] == "const" else None

    def slice(self, value: int, low: int, width: int) -> int:
        if width == self.width[value]:
            return value
        if not width:
            return self._empty
        op = self.op[value]
        if op == "slice":
            return self.slice(self.operands[value][0], low + self.parameter[value], width)
        if op == "concat":
            return self.concat(self._overlap(self.operands[value], low, width))
        if op == "sext":
            (inner,) = self.operands[value]
            narrow = self.width[inner]
            if low + width <= narrow:
                return self.slice(inner, low, width)
            if low >= narrow:
                return self.repeat(self.slice(inner, narrow - 1, 1), width)
            return self.sext(self.slice(inner, low, narrow - low), width)
        if not low and (op in _LOW_BITS or (op in _BY_BITS and width >= self.width[value] - CARRIES)):
            return self._low_bits(value, width)
        if op == "shr" and self.width[value] > WORD >= width:
            return self.make("pick", width, self.operands[value], low)
        return self.make("slice", width, (value,), low)

    def _low_bits(self, value: int, width: int) -> int:
        """The lowest bits of a result, from the lowest bits of its operands."""
        op, operands = self.op[value], self.operands[value]
        if op == "mux":
            return self.mux(operands[0], *(self.slice(operand, 0, width) for operand in operands[1:]))
        narrow = [self.slice(operand, 0, width) for operand in operands]
        if op == "not":
            return self.not_(narrow[0])
        return self.bitwise(op, *narrow) if op in _BY_BITS else self.arithmetic(op, *narrow)

    def _overlap(self, parts: Sequence[int], low: int, width: int) -> list[int]:
        result = []
        for part in parts:
            size = self.width[part]
            if low < size and width:
                count = min(size - low, width)
                result.append(self.slice(part, low, count))
                low, width = 0, width - count
            else:
                low -= size
        return result

    def concat(self, parts: Iterable[int]) -> int:
        """The parts as one value, the least significant first."""
        merged: list[int] = []
        for part in parts:
            for piece in self.operands[part] if self.op[part] == "concat" else (part,):
                if not self.width[piece]:
                    continue
                joined = self._join(merged[-1], piece) if merged else None
                if joined is None:
                    merged.append(piece)
                else:
                    merged[-1] = joined
        if not merged:
            return self._empty
        if len(merged) == 1:
            return merged[0]
        return self.make("concat", sum(self.width[piece] for piece in merged), tuple(merged))

    def _join(self, low: int, high: int) -> int | None:
        """Two neighbours as one value: constants, touching slices of one value, a value and its sign again."""
        op = self.op[low]
        if self.width[high] == 1 and op != "const" and self.slice(low, self.width[low] - 1, 1) == high:
            return self.sext(low, self.width[low] + 1)
        if op != self.op[high]:
            return None
        width = self.width[low] + self.width[high]
        if op == "const" and (width <= WORD or not self.parameter[low] | self.parameter[high]):
            return self.const(self.parameter[low] | self.parameter[high] << self.width[low], width)
        if op == "slice" and self.operands[low] == self.operands[high]:
            start = self.parameter[low]
            if start + self.width[low] == self.parameter[high]:
                return self.slice(self.operands[low][0], start, width)
        return None

    def repeat(self, value: int, count: int) -> int:
        """One bit, ``count`` times."""
        return value if count == 1 else self.sext(value, count)

    def sext(self, value: int, width: int) -> int:
        if width == self.width[value]:
            return value
        if not self.width[value]:
            return self.const(0, width)
        if self.op[value] == "sext":
            value = self.operands[value][0]
        return self.make("sext", width, (value,))

    def extend(self, value: int, width: int, signed: bool) -> int:
        """The value with another width: cut, or extended by zeros or its sign."""
        own = self.width[value]
        if width <= own:
            return self.slice(value, 0, width)
        return self.sext(value, width) if signed else self.concat((value, self.const(0, width - own)))

    def _pieces(self, *values: int) -> list[int]:
        """Widths into which a bitwise operator on these wide values is cut; none if they are single numbers."""
        edges = {0, self.width[values[0]]}
        cut = False
        for value in values:
            if self.op[value] == "concat":
                cut = True
                position = 0
                for part in self.operands[value]:
                    edges.add(position)
                    position += self.width[part]
        if not cut:
            return []
        ordered = sorted(edges)
        widths = []
        for start, end in pairwise(ordered):
            whole, rest = divmod(end - start, WORD)
            widths += [WORD] * whole + ([rest] if rest else [])
        return widths

    def _cut(self, values: tuple[int, ...]) -> list[tuple[int, ...]] | None:
        if self.width[values[0]] <= WORD:
            return None
        widths = self._pieces(*values)
        if not widths:
            return None
        result, low = [], 0
        for width in widths:
            result.append(tuple(self.slice(value, low, width) for value in values))
            low += width
        return result

    def not_(self, value: int) -> int:
        op = self.op[value]
        if op == "not":
            return self.operands[value][0]
        if op in _FLIPPED:
            return self.make(_FLIPPED[op], 1, self.operands[value])
        cut = self._cut((value,))
        if cut:
            return self.concat(self.not_(part) for (part,) in cut)
        return self.make("not", self.width[value], (value,))

    def bitwise(self, op: str, a: int, b: int) -> int:
        """``and``, ``or``, ``xor`` of two values of one width."""
        if a == b:
            return self.const(0, self.width[a]) if op == "xor" else a
        cut = self._cut((a, b))
        if cut:
            return self.concat(self.bitwise(op, *pair) for pair in cut)
        width = self.width[a]
        ones = (1 << width) - 1
        for value, other in ((a, b), (b, a)):
            number = self.constant(value)
            if number == 0:
                return value if op == "and" else other
            if number == ones:
                return other if op == "and" else value if op == "or" else self.not_(other)
        return self.make(op, width, (a, b))

    def mux(self, select: int, if_0: int, if_1: int) -> int:
        number = self.constant(select)
        if number is not None:
            return if_1 if number else if_0
        if if_0 == if_1:
            return if_0
        if self.op[select] == "not":
            return self.mux(self.operands[select][0], if_1, if_0)
        cut = self._cut((if_0, if_1))
        if cut:
            return self.concat(self.mux(select, *pair) for pair in cut)
        if self.op[if_0] == "mux" and self.operands[if_0][0] == select:
            return self.mux(select, self.operands[if_0][1], if_1)
        if self.op[if_1] == "mux" and self.operands[if_1][0] == select:
            return self.mux(select, if_0, self.operands[if_1][2])
        width = self.width[if_0]
        if width == 1:
            zero, one = self.constant(if_0), self.constant(if_1)
            if zero == 0:
                return self.bitwise("and", select, if_1)
            if one == 1:
                return self.bitwise("or", select, if_0)
            if one == 0:
                return self.bitwise("and", self.not_(select), if_0)
            if zero == 1:
                return self.bitwise("or", self.not_(select), if_1)
        return self.make("mux", width, (select, if_0, if_1))

    def arithmetic(self, op: str, a: int, b: int) -> int:
        """``add``, ``sub``, ``mul``, ``divu``, ``modu``, ``divs``, ``mods`` of two values of one width."""
        width = self.width[a]
        if not width:
            return self._empty
        if op in ("add", "sub") and self.constant(b) == 0:
            return a
        if op == "add" and self.constant(a) == 0:
            return b
        if op == "mul":
            for value, other in ((a, b), (b, a)):
                number = self.constant(value)
                if number is not None and number & (number - 1) == 0:
                    return self.shift("shl", other, self.const(number.bit_length() - 1, 32)) if number else value
        return self.make(op, width, (a, b))

    def shift(self, op: str, value: int, amount: int) -> int:
        """``shl``, ``shr``, ``sar`` by any unsigned amount."""
        width = self.width[value]
        if not self.width[amount] or not width:
            return value
        if self.width[amount] > 32:
            high = self.slice(amount, 32, self.width[amount] - 32)
            low = self.slice(amount, 0, 32)
            amount = self.mux(self.compare("ne", high, self.const(0, self.width[high])), low, self.const(-1, 32))
        number = self.constant(amount)
        if number is None:
            return self.make(op, width, (value, amount))
        if op == "shl":
            number = min(number, width)
            return self.concat((self.const(0, number), self.slice(value, 0, width - number)))
        if op == "sar":
            number = min(number, width - 1)
            return self.sext(self.slice(value, number, width - number), width)
        number = min(number, width)
        return self.concat((self.slice(value, number, width - number), self.const(0, number)))

    def compare(self, op: str, a: int, b: int) -> int:
        """``eq``, ``ne``, ``ltu``, ``leu``, ``lts``, ``les`` of two values of one width, as one bit."""
        width = self.width[a]
        if a == b:
            return self.const(int(op in ("eq", "leu", "les")), 1)
        if not width:
            return self.const(int(op in ("eq", "leu", "les")), 1)
        if op in ("eq", "ne"):
            if self.constant(a) is not None:
                a, b = b, a
            cut = self._cut((a, b))
            if cut:
                return self._chain("and" if op == "eq" else "or", [self.compare(op, *pair) for pair in cut])
            number = self.constant(b)
            if number is not None:
                if width == 1:
                    return a if (number == 1) == (op == "eq") else self.not_(a)
                if self.op[a] == "concat" and self._all_bits(a):
                    bits = enumerate(self.operands[a])
                    equal = [bit if number >> index & 1 else self.not_(bit) for index, bit in bits]
                    return self._chain("and" if op == "eq" else "or", equal if op == "eq" else [*map(self.not_, equal)])
        return self.make(op, 1, (a, b))

    def _all_bits(self, value: int) -> bool:
        return all(self.width[part] == 1 for part in self.operands[value])

    def _chain(self, op: str, bits: list[int]) -> int:
        result = bits[0]
        for bit in bits[1:]:
            result = self.bitwise(op, result, bit)
        return result

    def parity(self, value: int) -> int:
        return value if self.width[value] == 1 else self.make("parity", 1, (value,))
