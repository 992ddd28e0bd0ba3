"""Random statements: assignments, conditions, and what prints or asserts."""

from design_language import Operand, Source, Target, combine
from dice import Dice
from random_expressions import Expressions


class Statements:
    """Writes statements that assign given targets, in one module."""

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
