"""Random parts of a design: combinational signals, state machines, and signals whose bits depend on each other."""

from amaranth.hdl import Signal, unsigned
from design_language import Operand, Target, combine
from design_scope import Scope
from random_statements import Statements


def comb(scope: Scope) -> None:
    """Combinational signals, perhaps with registers assigned under the same conditions."""
    module = scope.dice.choice(scope.modules)
    targets = [scope.new_comb() for _ in range(scope.dice.choice((1, 1, 2, 3)))]
    scope.statements(module).assign_all(targets + (module.targets if scope.dice.chance(0.3) else []))
    for target in targets:
        scope.know(target.operand)


def fsm(scope: Scope) -> None:
    """A state machine with outputs and registers."""
    module = scope.dice.choice(scope.modules)
    outputs = [scope.new_comb() for _ in range(scope.dice.between(0, 2))]
    fsm_in(scope, scope.statements(module), outputs + (module.targets or [scope.register(module)]), scope.domain())
    for target in outputs:
        scope.know(target.operand)


def fsm_in(scope: Scope, statements: Statements, targets: list[Target], domain: str) -> None:
    states = [f"S{index}" for index in range(scope.dice.between(1, 5))]
    name, m, expressions = scope.name("fsm"), statements.module, statements.expressions
    init = scope.dice.choice(states)

    def go() -> None:
        with scope.source.block(f"with {m}.If({expressions.condition(1).source})"):
            scope.source(f'{m}.next = "{scope.dice.choice(states)}"')

    with scope.source.block(f'with {m}.FSM(init="{init}", domain="{domain}", name="{name}") as {name}'):
        for state in states:
            with scope.source.block(f'with {m}.State("{state}")'):
                if scope.dice.chance(0.3):
                    scope.source(f'{m}.next = "{scope.dice.choice(states)}"')
                statements.block(targets, 1, budget=2)
                go()
    for state in states[:2]:
        expressions.pool.append(Operand(f'{name}.ongoing("{state}")', Signal(name="ongoing")))


def chain(scope: Scope) -> None:
    """A combinational signal whose bits depend on other bits of it."""
    module = scope.dice.choice(scope.modules).name
    width = max(scope.dice.width(), 2)
    target = scope.declare("x", unsigned(width), "comb", known=False)
    name, first, e = target.name, scope.expressions(1).source, scope.expressions
    mask = combine("Cat({a}, {b})", a=e(1), b=e.constant(unsigned(width)))
    scope.source(f"{name}_mask = {mask.source}")
    kind = scope.dice.choice(("up", "down", "double", "mux"))
    if kind == "double":
        step = scope.dice.between(1, width - 1)
        sign = scope.dice.choice("+^-")
        scope.source(f"{module}.d.comb += {name}[:{step}].eq({first})")
        with scope.source.block(f"for bit in range({step}, {width - width % step}, {step})"):
            below = f"{name}[bit - {step}:bit]"
            scope.source(
                f"{module}.d.comb += {name}[bit:bit + {step}].eq({below} {sign} {name}_mask[bit:bit + {step}])"
            )
    else:
        here, before = ("bit", "bit - 1") if kind != "down" else (f"{width - 1} - bit", f"{width} - bit")
        step = f"{name}[{before}] {scope.dice.choice('&|^')} {name}_mask[bit]"
        if kind == "mux":
            step = f"Mux({name}_mask[bit], {name}[{before}], {name}_mask[bit - 1])"
        scope.source(f"{module}.d.comb += {name}[{0 if kind != 'down' else width - 1}].eq({first})")
        with scope.source.block(f"for bit in range(1, {width})"):
            scope.source(f"{module}.d.comb += {name}[{here}].eq({step})")
    scope.know(target.operand)


def split(scope: Scope) -> None:
    """A signal whose bits are driven by several modules and domains."""
    shape = scope.dice.shape(low=2)
    target = scope.declare("y", shape, "comb", scope.init(shape), known=False)
    cut = scope.dice.between(1, shape.width - 1)
    for bits, domain in ((f"[:{cut}]", "comb"), (f"[{cut}:]", scope.dice.choice(("comb", scope.domain())))):
        statements = scope.statements(scope.dice.choice(scope.modules))
        if scope.dice.chance(0.4):
            with scope.source.block(f"with {statements.module}.If({scope.expressions.condition(1).source})"):
                statements.add(domain, f"{target.name}{bits}.eq({scope.expressions(2).source})")
        else:
            statements.add(domain, f"{target.name}{bits}.eq({scope.expressions(2).source})")
    scope.know(target.operand)
