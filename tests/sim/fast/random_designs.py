"""Random Amaranth designs, many of them in one top module.

``design_source(seed)`` writes a design as the text of a Python function, which is also its reproducer: ::

    def design(m, domains):
        ...
        return inputs, outputs, memories

``Design`` runs such a text and ``Batch`` puts several designs below one top module with the clock domains ``DOMAINS``.

What a design computes never depends on what Amaranth leaves open, nor on where its simulator (pysim) and its RTLIL
disagree, so that either may serve as the reference:

- Several write ports of a memory never meet in one bit of a row, and the ports of a memory share a clock domain.
- A synchronous read port is enabled while its domain is in reset. (Otherwise pysim clears its data, RTLIL keeps it.)
- No memory and no ``reset_less`` register is in a domain with an asynchronous reset. (In pysim the rising reset clocks
  them.)
- Asynchronous resets come from an input or from a register, never through logic that could glitch.
- Clocks come from inputs only.
- An assertion holds for every value of its operands: pysim also checks it while combinational logic settles.
- ``Cover`` has a message. (pysim makes wrong code of one without, alone in a branch.)
- A dynamic part select reads an unsigned signal or a slice. (Above the top of ``~x`` of an unsigned ``x`` pysim sees
  ones, and above that of a signed value it sees the sign but RTLIL zeros.)
"""

import functools
import operator
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    Cat,
    ClockDomain,
    Const,
    Cover,
    DomainRenamer,
    Elaboratable,
    EnableInserter,
    Format,
    Module,
    Mux,
    Print,
    ResetInserter,
    ResetSignal,
    Shape,
    Signal,
    Value,
    signed,
    unsigned,
)
from amaranth.lib.memory import Memory
from amaranth.utils import ceil_log2

MAX_WIDTH = 300
"""No expression is wider."""

DOMAINS = {
    "sync": {},
    "neg": {"clk_edge": "neg"},
    "arst": {"async_reset": True},
    "narst": {"async_reset": True, "clk_edge": "neg"},
    "free": {"reset_less": True},
}
"""The clock domains of a batch, all of whose clocks and resets are inputs: name to options of ``ClockDomain``."""

ASYNC_RESET = {"arst", "narst", "local"}
FALLING = {"neg", "narst"}

LANGUAGE = {
    **{
        item.__name__: item
        for item in (Array, Assert, Assume, Cat, ClockDomain, Const, Cover, DomainRenamer, EnableInserter, Format)
    },
    **{
        item.__name__: item
        for item in (Memory, Module, Mux, Print, ResetInserter, ResetSignal, Signal, Value, signed, unsigned)
    },
    "reduce": functools.reduce,
    "operator": operator,
}
"""The names that the text of a design uses."""


@dataclass(frozen=True)
class Operand:
    """An expression: its text, and a signal that stands for it as far as shapes go."""

    source: str
    value: Signal
    is_signal: bool = False
    is_constant: bool = False

    @property
    def width(self) -> int:
        return len(self.value)

    @property
    def signed(self) -> bool:
        return self.value.shape().signed


@dataclass(frozen=True)
class Target:
    """A signal that statements may assign."""

    name: str
    value: Signal
    domain: str

    @property
    def width(self) -> int:
        return len(self.value)

    @property
    def operand(self) -> Operand:
        return Operand(self.name, self.value, is_signal=True)


@functools.cache
def _compiled(template: str):
    return compile(template.replace("{", "").replace("}", ""), template, "eval")


def combine(template: str, **parts: Operand | int) -> Operand:
    """The operand made of others: ``combine("({a} + {b})", a=x, b=y)``."""
    names = {name: part.value if isinstance(part, Operand) else part for name, part in parts.items()}
    result = Value.cast(eval(_compiled(template), LANGUAGE | names))
    sources = {name: part.source if isinstance(part, Operand) else part for name, part in parts.items()}
    return Operand(template.format(**sources), Signal(result.shape(), name="operand"))


def shape_source(shape: Shape) -> str:
    return f"{'signed' if shape.signed else 'unsigned'}({shape.width})"


class Source:
    """Lines of Python, indented."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self(f"{head}:")
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self("pass")
        self._depth -= 1


class Dice:
    """Random numbers that prefer the values where simulators go wrong."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.chance = lambda probability: self.random.random() < probability
        self.choice = self.random.choice
        self.between = self.random.randint

    def width(self, low: int = 0, high: int = 200) -> int:
        """A width: mostly small, else around the sizes of machine words."""
        sizes = ((60, range(1, 9)), (7, (0, 1)), (19, (7, 8, 9, 15, 16, 17, 31, 32, 33)), (7, (63, 64, 65)))
        sizes += ((3, (127, 128, 129, 200)), (4, range(201)))
        chosen = self.choice(self.random.choices([s for _, s in sizes], [weight for weight, _ in sizes])[0])
        return min(max(chosen, low), high)

    def shape(self, low: int = 0, high: int = 200) -> Shape:
        width = self.width(low, high)
        return signed(width) if width and self.chance(0.25) else unsigned(width)

    def bits(self, width: int) -> int:
        """A number of this many bits."""
        return random_bits(self.random, width)

    def number(self, shape: Shape) -> int:
        """A number of this shape."""
        return Const(self.bits(shape.width), shape).value


def random_bits(source: random.Random, width: int) -> int:
    """Uniform bits, or an extreme: zeros, ones, one bit, a small number or all but one bit."""
    ones = (1 << width) - 1
    kind = source.random()
    if kind < 0.5 or not width:
        return source.getrandbits(width)
    if kind < 0.62:
        return 0
    if kind < 0.74:
        return ones
    if kind < 0.84:
        return 1 << source.randrange(width)
    if kind < 0.92:
        return source.randrange(4) & ones
    return ones ^ (1 << source.randrange(width))


class Expressions:
    """Random expressions over a pool of operands."""

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


class Statements:
    """Random statements that assign given targets, in one module."""

    def __init__(self, dice: Dice, source: Source, module: str, expressions: Expressions) -> None:
        self._dice, self._source, self.module, self.expressions = dice, source, module, expressions
        self._budget = 0

    def assign_all(self, targets: list[Target]) -> None:
        """Some statements, of which each target mostly gets one."""
        for target in targets:
            if self._dice.chance(0.5):
                self._assign([target])
        self.block(targets, self._dice.choice((0, 1, 1, 2)), budget=self._dice.choice((1, 1, 2, 3, 6)))

    def block(self, targets: list[Target], depth: int, budget: int) -> None:
        """Statements with at most ``depth`` levels of conditions, and with none after ``budget`` statements."""
        self._budget = budget
        self._block(targets, depth)

    def _block(self, targets: list[Target], depth: int) -> None:
        for _ in range(self._dice.choice((1, 1, 2, 3))):
            self._budget -= 1
            if self._budget < 0:
                depth = 0
            kind = self._dice.random.random()
            if depth and kind < 0.3:
                self._if(targets, depth - 1)
            elif depth and kind < 0.5:
                self._switch(targets, depth - 1)
            elif kind < 0.95:
                self._assign(targets)
            else:
                self._side_effect(self._dice.choice(targets).domain)
            if self._budget < 0:
                break

    def _if(self, targets: list[Target], depth: int) -> None:
        def branch(name: str, condition: Operand | None) -> None:
            with self._source.block(f"with {self.module}.{name}({condition.source if condition else ''})"):
                self._block(targets, depth)

        branch("If", self.expressions.condition(self._dice.choice((0, 1, 1, 2))))
        for _ in range(self._dice.choice((0, 0, 0, 1, 1, 2))):
            branch("Elif", self.expressions.condition(self._dice.choice((0, 1, 1, 2))))
        if self._dice.chance(0.5):
            with self._source.block(f"with {self.module}.Else()"):
                self._block(targets, depth)

    def _switch(self, targets: list[Target], depth: int) -> None:
        test = self.expressions(1)
        if test.width > 5 and self._dice.chance(0.8):
            test = combine("{a}[:{stop}]", a=test, stop=self._dice.between(1, 5))
        with self._source.block(f"with {self.module}.Switch({test.source})"):
            for _ in range(self._dice.between(0, 4)):
                patterns = self.expressions.patterns(test.value.shape(), self._dice.choice((0, 1, 1, 1, 1, 2, 3)))
                with self._source.block(f"with {self.module}.Case({patterns})"):
                    self._block(targets, depth)
            if self._dice.chance(0.5):
                with self._source.block(f"with {self.module}.Default()"):
                    self._block(targets, depth)

    def _assign(self, targets: list[Target]) -> None:
        target = self._dice.choice(targets)
        place = self._place(target, [other for other in targets if other.domain == target.domain])
        self.add(target.domain, f"{place}.eq({self.expressions().source})")

    def add(self, domain: str, statement: str) -> None:
        self._source(f"{self.module}.d.{domain} += {statement}")

    def _place(self, target: Target, domain_targets: list[Target]) -> str:
        """The left side of an assignment: a target, a part of it, or it together with others of its domain."""
        kind = self._dice.random.random()
        whole = combine("{a}", a=target.operand)
        if kind < 0.5 or not target.width:
            return target.name
        if kind < 0.7:
            return self._slice(whole).source
        if kind < 0.82:
            part = self._slice(whole) if self._dice.chance(0.2) else whole
            return self._dynamic(part).source
        if kind < 0.86:
            return f"{target.name}.as_{self._dice.choice(('signed', 'unsigned'))}()"
        others = [other for other in domain_targets if other.name != target.name]
        if others and kind < 0.94:
            return f"Cat({self._slice(whole).source}, {self._dice.choice(others).name})"
        if others:
            elements = ", ".join(element.name for element in domain_targets)
            return f"Array([{elements}])[{self.expressions.unsigned(1, 3).source}]"
        return f"{target.name}.rotate_left({self._dice.between(0, target.width)})"

    def _slice(self, whole: Operand) -> Operand:
        template, parts = self.expressions.slice_of(whole.width)
        return combine("{a}" + template, a=whole, **parts)

    def _dynamic(self, whole: Operand) -> Operand:
        name = self._dice.choice(("bit_select", "word_select"))
        width = self._dice.between(name == "word_select", min(whole.width + 1, 40))
        return combine(f"{{a}}.{name}({{n}}, {{w}})", a=whole, n=self.expressions.offset(1, 6), w=width)

    def _side_effect(self, domain: str) -> None:
        """A statement that assigns nothing. What is asserted always holds; what is printed tells the design."""
        a = self.expressions(1)
        style = self._dice.choice(("", "d", "x", "#06x", "_b", "<12", "+d"))
        message = f'Format("@d{self._dice.seed} {domain} {{:{style}}} {{}}", {a.source}, {a.source})'
        kind = self._dice.choice(("Print", "Assert", "Assume", "Cover"))
        if kind == "Print":
            self.add(domain, f"Print({message})")
        elif kind == "Cover":
            self.add(domain, f"Cover({self.expressions.condition(1).source}, {message})")
        else:
            self.add(domain, f"{kind}(({a.source} ^ {a.source}) == 0{self._dice.choice(('', ', ' + message))})")


@dataclass
class Submodule:
    """A module of the design: where it is, and what must not wrap it."""

    name: str
    parent: str
    enable_allowed: bool = True
    targets: list[Target] = field(default_factory=list)
    """The registers that get their statements at the end."""


class Generator:
    """Writes one random design."""

    def __init__(self, seed: int) -> None:
        self._dice = Dice(seed)
        self._source = Source()
        self._pool: list[Operand] = []
        self._expressions = Expressions(self._dice, self._pool, limit=self._dice.choice((17, 33, 65, 130, 200)))
        self._modules = [Submodule("m", "")]
        self._inputs: list[str] = []
        self._observable: list[Operand] = []
        self._memories: dict[str, str] = {}
        self._count = 0
        self._seed = seed
        self._domains = ["sync", *self._dice.random.sample(list(DOMAINS), self._dice.choice((0, 0, 1, 2)))]

    def text(self) -> str:
        with self._source.block("def design(m, domains)"):
            self._source(f'"""Seed {self._seed}."""')
            for _ in range(self._dice.between(1, 4)):
                target = self._declare("i", self._dice.shape(low=1), "comb")
                self._inputs.append(target.name)
            self._observable.clear()
            for _ in range(self._dice.choice((0, 0, 0, 1, 1, 2))):
                self._add_module()
            if self._dice.chance(0.12):
                self._local_domain()
            for _ in range(self._dice.choice((0, 0, 1, 1, 2))):
                self._register(self._dice.choice(self._modules))
            parts = (
                [self._comb] * 5 + [self._lanes] * 3 + [self._fsm, self._memory, self._memory, self._chain, self._split]
            )
            for _ in range(self._dice.choice((1, 1, 1, 1, 2, 3))):
                self._dice.choice(parts)()
            self._drive_registers()
            self._wrap_modules()
            self._return()
        return "\n".join(self._source.lines) + "\n"

    # Declarations

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _declare(self, prefix: str, shape: Shape, domain: str, options: str = "", *, known: bool = True) -> Target:
        """A signal, from now on to be read unless ``known`` is false."""
        name = self._name(prefix)
        self._source(f"{name} = Signal({shape_source(shape)}{options})")
        target = Target(name, Signal(shape, name=name), domain)
        if known:
            self._know(target.operand)
        return target

    def _know(self, operand: Operand) -> None:
        self._pool.append(operand)
        self._observable.append(operand)

    def _init(self, shape: Shape) -> str:
        return f", init={self._dice.number(shape)}" if shape.width and self._dice.chance(0.6) else ""

    def _register(self, module: Submodule, low: int = 0) -> Target:
        """A register, whose statements come at the end at the latest."""
        shape, domain = self._dice.shape(low), self._domain()
        reset_less = ", reset_less=True" if domain not in ASYNC_RESET and self._dice.chance(0.15) else ""
        target = self._declare("r", shape, domain, self._init(shape) + reset_less)
        module.targets.append(target)
        return target

    def _domain(self) -> str:
        return self._dice.choice(self._domains)

    def _add_module(self) -> None:
        name = self._name("s")
        self._source(f"{name} = Module()")
        self._modules.append(Submodule(name, self._dice.choice(self._modules).name))

    def _path(self, module: Submodule) -> str:
        """What the name of something in this module begins with."""
        parents = {module.name: module.parent for module in self._modules}
        path, name = "", module.name
        while name != "m":
            path, name = f"{name}.{path}", parents[name]
        return path

    def _statements(self, module: Submodule) -> Statements:
        return Statements(self._dice, self._source, module.name, self._expressions)

    def _new_comb(self, low: int = 0) -> Target:
        shape = self._dice.shape(low)
        return self._declare("c", shape, "comb", self._init(shape), known=False)

    # Parts of a design

    def _comb(self) -> None:
        """Combinational signals, perhaps with registers assigned under the same conditions."""
        module = self._dice.choice(self._modules)
        targets = [self._new_comb() for _ in range(self._dice.choice((1, 1, 2, 3)))]
        self._statements(module).assign_all(targets + (module.targets if self._dice.chance(0.3) else []))
        for target in targets:
            self._know(target.operand)

    def _fsm(self) -> None:
        """A state machine with outputs and registers."""
        module = self._dice.choice(self._modules)
        outputs = [self._new_comb() for _ in range(self._dice.between(0, 2))]
        self._fsm_in(self._statements(module), outputs + (module.targets or [self._register(module)]), self._domain())
        for target in outputs:
            self._know(target.operand)

    def _fsm_in(self, statements: Statements, targets: list[Target], domain: str) -> None:
        states = [f"S{index}" for index in range(self._dice.between(1, 5))]
        name, m, expressions = self._name("fsm"), statements.module, statements.expressions
        init = self._dice.choice(states)

        def go() -> None:
            with self._source.block(f"with {m}.If({expressions.condition(1).source})"):
                self._source(f'{m}.next = "{self._dice.choice(states)}"')

        with self._source.block(f'with {m}.FSM(init="{init}", domain="{domain}", name="{name}") as {name}'):
            for state in states:
                with self._source.block(f'with {m}.State("{state}")'):
                    if self._dice.chance(0.3):
                        self._source(f'{m}.next = "{self._dice.choice(states)}"')
                    statements.block(targets, 1, budget=2)
                    go()
        for state in states[:2]:
            expressions.pool.append(Operand(f'{name}.ongoing("{state}")', Signal(name="ongoing")))

    def _chain(self) -> None:
        """A combinational signal whose bits depend on other bits of it."""
        module = self._dice.choice(self._modules).name
        width = max(self._dice.width(), 2)
        target = self._declare("x", unsigned(width), "comb", known=False)
        name, first, e = target.name, self._expressions(1).source, self._expressions
        mask = combine("Cat({a}, {b})", a=e(1), b=e.constant(unsigned(width)))
        self._source(f"{name}_mask = {mask.source}")
        kind = self._dice.choice(("up", "down", "double", "mux"))
        if kind == "double":
            step = self._dice.between(1, width - 1)
            sign = self._dice.choice("+^-")
            self._source(f"{module}.d.comb += {name}[:{step}].eq({first})")
            with self._source.block(f"for bit in range({step}, {width - width % step}, {step})"):
                below = f"{name}[bit - {step}:bit]"
                self._source(
                    f"{module}.d.comb += {name}[bit:bit + {step}].eq({below} {sign} {name}_mask[bit:bit + {step}])"
                )
        else:
            here, before = ("bit", "bit - 1") if kind != "down" else (f"{width - 1} - bit", f"{width} - bit")
            step = f"{name}[{before}] {self._dice.choice('&|^')} {name}_mask[bit]"
            if kind == "mux":
                step = f"Mux({name}_mask[bit], {name}[{before}], {name}_mask[bit - 1])"
            self._source(f"{module}.d.comb += {name}[{0 if kind != 'down' else width - 1}].eq({first})")
            with self._source.block(f"for bit in range(1, {width})"):
                self._source(f"{module}.d.comb += {name}[{here}].eq({step})")
        self._know(target.operand)

    def _split(self) -> None:
        """A signal whose bits are driven by several modules and domains."""
        shape = self._dice.shape(low=2)
        target = self._declare("y", shape, "comb", self._init(shape), known=False)
        cut = self._dice.between(1, shape.width - 1)
        for bits, domain in ((f"[:{cut}]", "comb"), (f"[{cut}:]", self._dice.choice(("comb", self._domain())))):
            statements = self._statements(self._dice.choice(self._modules))
            if self._dice.chance(0.4):
                with self._source.block(f"with {statements.module}.If({self._expressions.condition(1).source})"):
                    statements.add(domain, f"{target.name}{bits}.eq({self._expressions(2).source})")
            else:
                statements.add(domain, f"{target.name}{bits}.eq({self._expressions(2).source})")
        self._know(target.operand)

    def _local_domain(self) -> None:
        """A clock domain that shares a clock with another, with a register of that one as its asynchronous reset."""
        base = self._dice.choice(("sync", "neg", "free"))
        edge = self._dice.choice(("pos", "neg"))
        reset = self._declare("q", unsigned(1), base, self._dice.choice(("", ", init=1")))
        self._dice.choice(self._modules).targets.append(reset)
        self._source(f'local = ClockDomain("local", clk_edge="{edge}", async_reset=True, local=True)')
        self._source(f'local.clk = domains["{base}"].clk')
        self._source("m.domains += local")
        self._source(f"m.d.comb += local.rst.eq({reset.name})")
        self._domains += ["local", "local"]

    def _memory(self) -> None:
        """A memory with some ports."""
        module = self._dice.choice(self._modules)
        name, data = self._memory_in(self._statements(module), module)
        self._memories[self._path(module) + name] = name
        self._observable += data

    def _memory_in(self, statements: Statements, module: Submodule) -> tuple[str, list[Operand]]:
        """Writes a memory and its ports. Returns its name and what the ports read."""
        dice, name = self._dice, self._name("mem")
        shape = dice.shape(high=130)
        depth = dice.choice((1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 40))
        rows = [dice.number(shape) for _ in range(dice.choice((0, depth // 2, depth)))]
        self._source(f"{name} = Memory(shape={shape_source(shape)}, depth={depth}, init={rows})")
        self._source(f"{statements.module}.submodules.{name} = {name}")
        domain = dice.choice(("sync", "sync", "neg", "free"))
        writers = self._write_ports(statements, name, shape, ceil_log2(depth), domain)
        data = []
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            if dice.chance(0.45):
                port = self._async_read_port(statements, name)
            else:
                port = self._sync_read_port(statements, name, domain, writers)
                module.enable_allowed = module.enable_allowed and domain == "free"
            address = statements.expressions(1)
            if address.width > ceil_log2(depth) and dice.chance(0.5):
                address = combine("{a}[:{stop}]", a=address, stop=ceil_log2(depth))
            statements.add("comb", f"{port}.addr.eq({address.source})")
            data.append(Operand(f"{port}.data", Signal(shape, name="data"), is_signal=True))
            statements.expressions.pool.append(data[-1])
        return name, data

    def _write_ports(
        self, statements: Statements, memory: str, shape: Shape, address_width: int, domain: str
    ) -> list[str]:
        """Write ports, each with rows or bits of rows of its own. Returns their names."""
        dice, e, ports = self._dice, statements.expressions, []
        count = dice.choice((0, 1, 1, 1, 2, 2, 3))
        divisors = [d for d in range(1, shape.width + 1) if shape.width % d == 0 and shape.width // d <= 32]
        granularity = dice.choice(divisors) if divisors and not shape.signed and dice.chance(0.5) else None
        lanes = shape.width // granularity if granularity else 1
        own_rows = ceil_log2(count) if count else 0
        own_lanes = count > 1 and lanes >= count and (own_rows > address_width or dice.chance(0.4))
        if own_rows > address_width and not own_lanes:
            count, own_rows = 1, 0
        for index in range(count):
            port = self._name("w")
            option = f", granularity={granularity}" if granularity else ""
            self._source(f'{port} = {memory}.write_port(domain="{domain}"{option})')
            address, enable = e(1).source, e(1).source
            if own_lanes:
                enable = f"{enable} & {sum(1 << lane for lane in range(index, lanes, count))}"
            elif own_rows:
                address = f"Cat(Const({index}, {own_rows}), {address})"
            statements.add("comb", f"{port}.addr.eq({address})")
            statements.add("comb", f"{port}.data.eq({e(2).source})")
            statements.add("comb", f"{port}.en.eq({enable})")
            ports.append(port)
        return ports

    def _async_read_port(self, statements: Statements, memory: str) -> str:
        port = self._name("p")
        self._source(f'{port} = {memory}.read_port(domain="comb")')
        return port

    def _sync_read_port(self, statements: Statements, memory: str, domain: str, writers: list[str]) -> str:
        port = self._name("p")
        transparent = "".join(f"{writer}, " for writer in writers if self._dice.chance(0.5))
        self._source(f'{port} = {memory}.read_port(domain="{domain}", transparent_for=({transparent}))')
        if self._dice.chance(0.7):
            reset = f'ResetSignal("{domain}", allow_reset_less=True)'
            statements.add("comb", f"{port}.en.eq({statements.expressions.condition(1).source} | {reset})")
        return port

    # Repetition

    def _lanes(self) -> None:
        """A row or grid of like elements, with neighbours, constants and slices of wide words of their own."""
        dice, module, n = self._dice, self._dice.choice(self._modules), self._name("lanes")
        lanes = dice.choice((4, 4, 4, 4, 5, 5, 6, 6, 7, 8, dice.between(9, 20)))
        columns = dice.choice([c for c in range(2, lanes + 1) if lanes % c == 0])
        shared = dice.random.sample(self._pool, min(len(self._pool), dice.between(1, 3)))
        local = Expressions(dice, list(shared), limit=dice.choice((16, 33, 65)))
        states, combs = (
            self._lane_signals(n, lanes, "state", (1, 1, 1, 2)),
            self._lane_signals(n, lanes, "comb", (0, 0, 1, 1, 2)),
        )
        shape = self._lane_shape()
        self._source(f"{n}_taps = {[dice.number(shape) for _ in range(lanes)]}")
        tap = f"Const({n}_taps[lane], {shape_source(shape)})"
        local.pool.append(Operand(tap, Signal(shape, name="tap"), is_constant=True))
        wide_in = [operand for operand in self._pool if operand.width >= lanes and operand.is_signal]
        word = dice.between(1, 9)
        wide_out = self._declare("z", unsigned(lanes * word), dice.choice(("comb", states[0].domain)), known=False)
        edges = {target.name: self._lane_edge(module, target) for target in states + combs}
        separate = dice.chance(0.6)
        pe = "pe" if separate else module.name
        statements = Statements(dice, self._source, pe, local)
        with self._source.block(f"for lane in range({lanes})"):
            if separate:
                self._source("pe = Module()")
                self._source(f'{module.name}.submodules[f"{n}_{{lane}}"] = pe')
            if wide_in and dice.chance(0.7):
                source = dice.choice(wide_in)
                size = source.width // lanes
                slice_source = f"{source.source}[lane * {size}:lane * {size} + {size}]"
                local.pool.append(Operand(slice_source, Signal(size, name="slice")))
            for index, state in enumerate(states):
                local.pool.append(state.operand)
                for _ in range(dice.between(1, 2)):
                    self._neighbour(f"n{index}", state, edges[state.name], lanes, columns, local, registered=True)
            if separate and dice.chance(0.1):
                self._memory_in(statements, module)
            for index, comb in enumerate(combs):
                if dice.chance(0.6):
                    self._neighbour(f"c{index}", comb, edges[comb.name], lanes, columns, local, registered=False)
                statements.block([comb], 1, budget=dice.choice((1, 1, 1, 2, 3)))
                local.pool.append(comb.operand)
            if separate and dice.chance(0.08):
                self._fsm_in(statements, states, states[0].domain)
            statements.block(states, 1, budget=dice.choice((1, 1, 1, 2, 3)))
            if dice.chance(0.15):
                with self._source.block(f"if lane == {dice.between(0, lanes - 1)}"):
                    statements.block(states, 0, budget=1)
            place = f"{wide_out.name}[lane * {word}:lane * {word} + {word}]"
            statements.add(wide_out.domain, f"{place}.eq({local(1).source})")
        self._know(wide_out.operand)
        self._reductions(module, lanes, states + combs)

    def _lane_signals(self, n: str, lanes: int, kind: str, counts: tuple[int, ...]) -> list[Target]:
        """Lists of one signal per lane, of which the target is the current lane's."""
        targets = []
        for index in range(self._dice.choice(counts)):
            shape, name = self._lane_shape(), f"{n}_{kind}{index}"
            init = f"{[self._dice.number(shape) for _ in range(lanes)]}[lane]"
            if self._dice.chance(0.5):
                init = str(self._dice.number(shape))
            signal = f'Signal({shape_source(shape)}, name=f"{name}_{{lane}}", init={init})'
            self._source(f"{name} = [{signal} for lane in range({lanes})]")
            domain = self._domain() if kind == "state" else "comb"
            targets.append(Target(f"{name}[lane]", Signal(shape, name=name), domain))
        return targets

    def _lane_shape(self) -> Shape:
        return self._dice.shape(low=1, high=self._dice.choice((8, 8, 9, 16, 33, 65)))

    def _lane_edge(self, module: Submodule, target: Target) -> str:
        """What the first or last lane sees instead of a neighbour: a signal or constant of the shape of the target."""
        shape = target.value.shape()
        if self._dice.chance(0.4):
            return f"{self._expressions.constant(shape).source}.as_{'signed' if shape.signed else 'unsigned'}()"
        edge = self._declare("e", shape, "comb", known=False)
        self._statements(module).add("comb", f"{edge.name}.eq({self._expressions(1).source})")
        self._know(edge.operand)
        return edge.name

    def _neighbour(
        self, name: str, target: Target, edge: str, lanes: int, columns: int, local: Expressions, *, registered: bool
    ) -> None:
        """Lets the current lane read the target of another one."""
        signals = target.name.removesuffix("[lane]")
        forms = [f"{signals}[lane - 1] if lane else {edge}", f"{signals}[lane - 1] if lane % {columns} else {edge}"]
        forms.append(f"{signals}[lane - {columns}] if lane >= {columns} else {edge}")
        if registered:
            forms.append(f"{signals}[lane + 1] if lane < {lanes - 1} else {edge}")
            forms.append(f"{signals}[lane - {self._dice.between(1, lanes)}]")
            forms.append(f"{signals}[{lanes - 1} - lane]")
            forms.append(f"{signals}[lane * {self._dice.between(0, 5)} % {lanes}]")
            forms.append(f"{signals}[lane + {columns}] if lane < {lanes - columns} else {edge}")
        name = self._name(name + "_")
        self._source(f"{name} = {self._dice.choice(forms)}")
        local.pool.append(Operand(name, target.value, is_signal=True))

    def _reductions(self, module: Submodule, lanes: int, targets: list[Target]) -> None:
        """Signals made of those of all lanes."""
        for target in self._dice.random.sample(targets, self._dice.between(1, min(2, len(targets)))):
            signals = target.name.removesuffix("[lane]")
            forms = {
                f"Cat({signals})": min(target.width * lanes, 200),
                f"sum({signals})": target.width + 5,
                f"reduce(operator.xor, {signals})": target.width,
                f"reduce(operator.and_, {signals})": target.width,
                f"Cat(signal.any() for signal in {signals})": lanes,
                f"Cat(signal == {signals}[0] for signal in {signals}).all()": 1,
                f"Cat(signal[-1] for signal in {signals}).xor()": 1,
                f"Array({signals})[{self._expressions.unsigned(1, 5).source}]": target.width,
            }
            source = self._dice.choice(list(forms))
            result = self._declare("t", unsigned(forms[source]), "comb", known=False)
            self._statements(module).add("comb", f"{result.name}.eq({source})")
            self._know(result.operand)

    # The end of a design

    def _drive_registers(self) -> None:
        for module in self._modules:
            if module.targets:
                self._statements(module).assign_all(module.targets)

    def _wrap_modules(self) -> None:
        """Puts each module into its parent, perhaps with a reset, an enable or another clock domain of its own."""
        by_name = {module.name: module for module in self._modules}
        for module in reversed(self._modules[1:]):
            parent, name, wrapped = by_name[module.parent], module.name, module.name
            parent.enable_allowed = parent.enable_allowed and module.enable_allowed
            control = self._expressions.unsigned(1, 1)
            if control.width == 1:
                domain = self._domain()
                if self._dice.chance(0.15):
                    wrapped = f'ResetInserter({{"{domain}": {control.source}}})({wrapped})'
                if self._dice.chance(0.15) and module.enable_allowed:
                    wrapped = f'EnableInserter({{"{domain}": {control.source}}})({wrapped})'
            if self._dice.chance(0.1):
                pair = self._dice.choice(('"sync": "neg"', '"neg": "sync"', '"sync": "neg", "neg": "sync"'))
                wrapped = f"DomainRenamer({{{pair}}})({wrapped})"
            self._source(f"{module.parent}.submodules.{name} = {wrapped}")

    def _return(self) -> None:
        names = dict.fromkeys(operand.source for operand in self._observable if operand.width)
        outputs = [name for name in names if self._dice.chance(0.7)] or list(names)[-1:]
        memories = ", ".join(f'"{path}": {name}' for path, name in self._memories.items())
        self._source(f"return [{', '.join(self._inputs)}], [{', '.join(outputs)}], {{{memories}}}")


def design_source(seed: int) -> str:
    """The text of the design of this seed."""
    return Generator(seed).text()


class Design:
    """A design made from its text, below a module of its own."""

    def __init__(self, name: str, source: str, domains: dict[str, ClockDomain]) -> None:
        self.name, self.source, self.module = name, source, Module()
        scope = dict(LANGUAGE)
        exec(compile(source, f"<{name}>", "exec"), scope)
        inputs, outputs, memories = scope["design"](self.module, domains)
        self.inputs = {f"{name}_{signal.name}": signal for signal in inputs}
        self.outputs = {f"{name}_o{index}": self._output(signal) for index, signal in enumerate(outputs)}
        self.memories = {f"top.{name}.{path}": memory.data for path, memory in memories.items()}

    def _output(self, signal: Signal) -> Signal:
        """A port that shows a signal. (The signal itself would be an input if nothing drives it.)"""
        port = Signal(len(signal), name="out")
        self.module.d.comb += port.eq(signal)
        return port


class Batch(Elaboratable):
    """Several designs, given as name to text, side by side."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.domains = {name: ClockDomain(name, **options) for name, options in DOMAINS.items()}
        self.designs = [Design(name, source, self.domains) for name, source in sources.items()]
        self.clocks = {domain.clk.name: domain.clk for domain in self.domains.values()}
        self.resets = {domain.rst.name: domain.rst for domain in self.domains.values() if domain.rst is not None}
        self.inputs = {name: signal for design in self.designs for name, signal in design.inputs.items()}
        self.outputs = {name: signal for design in self.designs for name, signal in design.outputs.items()}
        self.memories = {path: data for design in self.designs for path, data in design.memories.items()}

    @property
    def ports(self) -> dict[str, Signal]:
        return {**self.clocks, **self.resets, **self.inputs, **self.outputs}

    def design_of(self, name: str) -> str:
        """The design that an output, or a row of a memory, belongs to."""
        return name.removeprefix("top.").split("_" if "_" in name else ".")[0]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domains.values()
        for design in self.designs:
            m.submodules[design.name] = design.module
        return m
