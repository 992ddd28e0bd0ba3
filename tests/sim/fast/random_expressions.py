"""Random expressions."""

from amaranth.hdl import Shape, Signal
from design_language import MAX_WIDTH, Operand, combine, shape_source
from dice import Dice


class Expressions:
    """Makes them over a pool of operands."""

    BINARY = (*"++--**", "//", "%", *"&&||^^", "==", "==", "!=", "<", "<=", ">", ">=")
    UNARY = ("(~{a})", "(-{a})", "abs({a})", "{a}.bool()", "{a}.any()", "{a}.all()", "{a}.xor()", "{a}.as_unsigned()")

    def __init__(self, dice: Dice, pool: list[Operand], limit: int = 200) -> None:
        """``limit``: width that operands of arithmetic are cut to."""
        self._dice, self.pool, self._limit = dice, pool, limit
        self._kinds = [
            *[self._binary] * 10,
            *[self._unary] * 4,
            *[self._slice] * 4,
            *[self._mux] * 3,
            *[self._cat] * 3,
            *[self._shift] * 2,
            *[self._part_select] * 2,
            *[self._with_number] * 2,
            self._as_signed,
            self._shift_by_constant,
            self._replicate,
            self._array,
            self._matches,
        ]

    def __call__(self, depth: int | None = None) -> Operand:
        """An expression of at most ``depth`` operators above its leaves."""
        if depth is None:
            depth = self._dice.choice((0, 0, 1, 1, 1, 1, 2, 2, 3))
        if depth == 0 or self._dice.chance(0.1):
            return self.leaf()
        return self._dice.choice(self._kinds)(depth - 1)

    def leaf(self) -> Operand:
        if self.pool and self._dice.chance(0.88):
            return self._dice.choice(self.pool)
        return self.constant(self._dice.shape(high=self._limit))

    def constant(self, shape: Shape) -> Operand:
        source = f"Const({self._dice.number(shape)}, {shape_source(shape)})"
        return Operand(source, Signal(shape, name="constant"), is_constant=True)

    def offset(self, depth: int, width: int) -> Operand:
        """What a dynamic part select starts at. (A ``Const`` would make it a slice, which may be narrower.)"""
        operand = self.unsigned(depth, width)
        return combine("{a}.as_unsigned()", a=operand) if operand.is_constant else operand

    def unsigned(self, depth: int, width: int) -> Operand:
        """An unsigned expression of at most ``width`` bits."""
        operand = self(depth)
        return combine("{a}[:{stop}]", a=operand, stop=width) if operand.signed or operand.width > width else operand

    def condition(self, depth: int) -> Operand:
        """An unsigned expression to test, mostly one bit wide."""
        operand = self(depth)
        if operand.signed:
            return combine(self._dice.choice(("{a}.bool()", "({a} < 0)", "{a}[0]")), a=operand)
        if operand.width > 1 and self._dice.chance(0.5):
            return combine(self._dice.choice(("{a}[0]", "{a}[-1]", "{a}.xor()")), a=operand)
        return operand

    def patterns(self, shape: Shape, count: int) -> str:
        """Arguments of ``Case`` or ``matches``."""
        return ", ".join(self._pattern(shape) for _ in range(count))

    def _pattern(self, shape: Shape) -> str:
        if shape.width == 0 or self._dice.chance(0.4):
            return str(self._dice.number(shape)) if shape.width else '""'
        density = self._dice.choice((0, 0.3, 0.9))
        bits = f"{self._dice.bits(shape.width):0{shape.width}b}"
        return '"' + "".join("-" if self._dice.chance(density) else bit for bit in bits) + '"'

    def _binary(self, depth: int) -> Operand:
        a, b, sign = self(depth), self(depth), self._dice.choice(self.BINARY)
        if sign not in "&|^":
            a, b = self._cut(a), self._cut(b)
        if sign == "*" and a.width + b.width > MAX_WIDTH:
            sign = "-"
        return combine(f"({{a}} {sign} {{b}})", a=a, b=b)

    def _cut(self, operand: Operand) -> Operand:
        if operand.width <= self._limit:
            return operand
        start = self._dice.between(0, operand.width - self._limit)
        return combine("{a}[{start}:{stop}]", a=operand, start=start, stop=start + self._limit)

    def _with_number(self, depth: int) -> Operand:
        a = self.unsigned(depth, self._limit)
        number = self._dice.choice((0, 1, 2, 3, 5, 7, 10, 255, -1, -2, self._dice.bits(max(a.width, 1))))
        template = self._dice.choice(("({a} + {n})", "({n} - {a})", "({a} * {n})", "({a} & {n})", "({a} == {n})"))
        if number > 0 and self._dice.chance(0.3):
            template = self._dice.choice(("({a} // {n})", "({a} % {n})", "({a} < {n})", "({n} // {a})"))
        if template == "({a} * {n})" and number.bit_length() + 1 + a.width > MAX_WIDTH:
            template = "({a} ^ {n})"
        return combine(template, a=a, n=number)

    def _unary(self, depth: int) -> Operand:
        a = self(depth)
        return combine(self._dice.choice(self.UNARY if a.width < MAX_WIDTH - 1 else ("(~{a})", "{a}.any()")), a=a)

    def _as_signed(self, depth: int) -> Operand:
        a = self(depth)
        return combine("{a}.as_signed()", a=a) if a.width else a

    def _slice(self, depth: int) -> Operand:
        a = self(depth)
        template, parts = self.slice_of(a.width)
        return combine("{a}" + template, a=a, **parts)

    def slice_of(self, width: int) -> tuple[str, dict[str, int]]:
        """A random subscript for a value of this width, as template and numbers."""
        kind = self._dice.random.random()
        if width and kind < 0.35:
            return "[{index}]", {"index": self._dice.between(-width, width - 1)}
        start, stop = sorted((self._dice.between(0, width), self._dice.between(0, width)))
        if kind < 0.8:
            return "[{start}:{stop}]", {"start": start, "stop": stop}
        if kind < 0.86:
            return "[{start}:]", {"start": start}
        if kind < 0.92:
            return "[:-{stop}]", {"stop": self._dice.between(1, width + 1)}
        if kind < 0.96:
            return "[::-1]", {}
        return "[{start}::{step}]", {"start": start, "step": self._dice.between(2, 3)}

    def _mux(self, depth: int) -> Operand:
        return combine("Mux({c}, {a}, {b})", c=self.condition(depth), a=self(depth), b=self(depth))

    def _cat(self, depth: int) -> Operand:
        parts = {name: self(depth) for name in "abcd"[: self._dice.between(1, 4)]}
        while sum(part.width for part in parts.values()) > MAX_WIDTH:
            parts.popitem()
        return combine("Cat(" + ", ".join("{" + name + "}" for name in parts) + ")", **parts)

    def _shift(self, depth: int) -> Operand:
        a = self(depth)
        if self._dice.chance(0.5):
            return combine("({a} >> {n})", a=a, n=self.unsigned(depth, self._dice.between(1, 9)))
        digits = min(max((MAX_WIDTH - a.width + 1).bit_length() - 1, 0), self._dice.between(1, 6))
        return combine("({a} << {n})", a=a, n=self.unsigned(depth, digits))

    def _shift_by_constant(self, depth: int) -> Operand:
        a = self(depth)
        name = self._dice.choice(("shift_left", "shift_right", "rotate_left", "rotate_right"))
        amount = self._dice.between(0, a.width + 2)
        if name == "shift_left":
            amount = min(amount, MAX_WIDTH - a.width)
        elif name.startswith("rotate") and self._dice.chance(0.3):
            amount = -amount
        return combine(f"{{a}}.{name}({{n}})", a=a, n=amount)

    def _replicate(self, depth: int) -> Operand:
        a = self(depth)
        return combine("{a}.replicate({n})", a=a, n=self._dice.between(0, min(5, MAX_WIDTH // max(a.width, 1))))

    def _part_select(self, depth: int) -> Operand:
        a = self(depth)
        if not a.is_signal or a.signed:
            a = combine("{a}[:]", a=a)
        if self._dice.chance(0.2):
            start = self._dice.between(0, a.width)
            return combine("{a}.bit_select({n}, {w})", a=a, n=start, w=self._dice.between(0, a.width - start))
        name = self._dice.choice(("bit_select", "word_select"))
        width = self._dice.between(name == "word_select", min(a.width + 2, 40))
        return combine(f"{{a}}.{name}({{n}}, {{w}})", a=a, n=self.offset(depth, 8), w=width)

    def _array(self, depth: int) -> Operand:
        parts = {name: self(depth - 1 if depth else 0) for name in "abcdefg"[: self._dice.between(1, 7)]}
        elements = ", ".join("{" + name + "}" for name in parts)
        return combine(f"Value.cast(Array([{elements}])[{{index}}])", index=self.unsigned(depth, 4), **parts)

    def _matches(self, depth: int) -> Operand:
        a = self(depth)
        patterns = self.patterns(a.value.shape(), self._dice.between(0, 3))
        return Operand(f"{a.source}.matches({patterns})", Signal(name="match"))
