"""What a random design consists of so far, for the parts that are added to it."""

from dataclasses import dataclass, field

from amaranth.hdl import Shape, Signal
from design_batch import ASYNC_RESET, DOMAINS
from design_language import Operand, Source, Target, shape_source
from dice import Dice
from random_expressions import Expressions
from random_statements import Statements


@dataclass
class Submodule:
    """A module of the design: where it is, and what must not wrap it."""

    name: str
    parent: str
    enable_allowed: bool = True
    targets: list[Target] = field(default_factory=list)
    """The registers that get their statements at the end."""


class Scope:
    """Signals to read, modules to write into, and names that are free."""

    def __init__(self, seed: int) -> None:
        self.dice = Dice(seed)
        self.source = Source()
        self.pool: list[Operand] = []
        self.expressions = Expressions(self.dice, self.pool, limit=self.dice.choice((17, 33, 65, 130, 200)))
        self.modules = [Submodule("m", "")]
        self.inputs: list[str] = []
        self.observable: list[Operand] = []
        """What may become an output."""
        self.memories: dict[str, str] = {}
        self.domains = ["sync", *self.dice.random.sample(list(DOMAINS), self.dice.choice((0, 0, 1, 2)))]
        self._count = 0

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def declare(self, prefix: str, shape: Shape, domain: str, options: str = "", *, known: bool = True) -> Target:
        """A signal, from now on to be read unless ``known`` is false."""
        name = self.name(prefix)
        self.source(f"{name} = Signal({shape_source(shape)}{options})")
        target = Target(name, Signal(shape, name=name), domain)
        if known:
            self.know(target.operand)
        return target

    def know(self, operand: Operand) -> None:
        self.pool.append(operand)
        self.observable.append(operand)

    def init(self, shape: Shape) -> str:
        return f", init={self.dice.number(shape)}" if shape.width and self.dice.chance(0.6) else ""

    def register(self, module: Submodule, low: int = 0) -> Target:
        """A register, whose statements come at the end at the latest."""
        shape, domain = self.dice.shape(low), self.domain()
        reset_less = ", reset_less=True" if domain not in ASYNC_RESET and self.dice.chance(0.15) else ""
        target = self.declare("r", shape, domain, self.init(shape) + reset_less)
        module.targets.append(target)
        return target

    def domain(self) -> str:
        return self.dice.choice(self.domains)

    def add_module(self) -> None:
        name = self.name("s")
        self.source(f"{name} = Module()")
        self.modules.append(Submodule(name, self.dice.choice(self.modules).name))

    def path(self, module: Submodule) -> str:
        """What the name of something in this module begins with."""
        parents = {module.name: module.parent for module in self.modules}
        path, name = "", module.name
        while name != "m":
            path, name = f"{name}.{path}", parents[name]
        return path

    def statements(self, module: Submodule) -> Statements:
        return Statements(self.dice, self.source, module.name, self.expressions)

    def new_comb(self, low: int = 0) -> Target:
        shape = self.dice.shape(low)
        return self.declare("c", shape, "comb", self.init(shape), known=False)
