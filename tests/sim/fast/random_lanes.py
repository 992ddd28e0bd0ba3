"""Random repetition: rows and grids of like elements, which a vectorising compiler finds again."""

from amaranth.hdl import Shape, Signal, unsigned
from design_language import Operand, Target, shape_source
from design_scope import Scope, Submodule
from random_expressions import Expressions
from random_memories import memory_in
from random_parts import fsm_in
from random_statements import Statements


def repetition(scope: Scope) -> None:
    """A row or grid of like elements, with neighbours, constants and slices of wide words of their own."""
    dice, module, n = scope.dice, scope.dice.choice(scope.modules), scope.name("lanes")
    lanes = dice.choice((4, 4, 4, 4, 5, 5, 6, 6, 7, 8, dice.between(9, 20)))
    columns = dice.choice([c for c in range(2, lanes + 1) if lanes % c == 0])
    shared = dice.random.sample(scope.pool, min(len(scope.pool), dice.between(1, 3)))
    local = Expressions(dice, list(shared), limit=dice.choice((16, 33, 65)))
    states, combs = (
        _lane_signals(scope, n, lanes, "state", (1, 1, 1, 2)),
        _lane_signals(scope, n, lanes, "comb", (0, 0, 1, 1, 2)),
    )
    shape = _lane_shape(scope)
    scope.source(f"{n}_taps = {[dice.number(shape) for _ in range(lanes)]}")
    tap = f"Const({n}_taps[lane], {shape_source(shape)})"
    local.pool.append(Operand(tap, Signal(shape, name="tap"), is_constant=True))
    wide_in = [operand for operand in scope.pool if operand.width >= lanes and operand.is_signal]
    word = dice.between(1, 9)
    wide_out = scope.declare("z", unsigned(lanes * word), dice.choice(("comb", states[0].domain)), known=False)
    edges = {target.name: _lane_edge(scope, module, target) for target in states + combs}
    separate = dice.chance(0.6)
    pe = "pe" if separate else module.name
    statements = Statements(dice, scope.source, pe, local)
    with scope.source.block(f"for lane in range({lanes})"):
        if separate:
            scope.source("pe = Module()")
            scope.source(f'{module.name}.submodules[f"{n}_{{lane}}"] = pe')
        if wide_in and dice.chance(0.7):
            source = dice.choice(wide_in)
            size = source.width // lanes
            slice_source = f"{source.source}[lane * {size}:lane * {size} + {size}]"
            local.pool.append(Operand(slice_source, Signal(size, name="slice")))
        for index, state in enumerate(states):
            local.pool.append(state.operand)
            for _ in range(dice.between(1, 2)):
                _neighbour(scope, f"n{index}", state, edges[state.name], lanes, columns, local, registered=True)
        if separate and dice.chance(0.1):
            memory_in(scope, statements, module)
        for index, comb in enumerate(combs):
            if dice.chance(0.6):
                _neighbour(scope, f"c{index}", comb, edges[comb.name], lanes, columns, local, registered=False)
            statements.block([comb], 1, budget=dice.choice((1, 1, 1, 2, 3)))
            local.pool.append(comb.operand)
        if separate and dice.chance(0.08):
            fsm_in(scope, statements, states, states[0].domain)
        statements.block(states, 1, budget=dice.choice((1, 1, 1, 2, 3)))
        if dice.chance(0.15):
            with scope.source.block(f"if lane == {dice.between(0, lanes - 1)}"):
                statements.block(states, 0, budget=1)
        place = f"{wide_out.name}[lane * {word}:lane * {word} + {word}]"
        statements.add(wide_out.domain, f"{place}.eq({local(1).source})")
    scope.know(wide_out.operand)
    _reductions(scope, module, lanes, states + combs)


def _lane_signals(scope: Scope, n: str, lanes: int, kind: str, counts: tuple[int, ...]) -> list[Target]:
    """Lists of one signal per lane, of which the target is the current lane's."""
    targets = []
    for index in range(scope.dice.choice(counts)):
        shape, name = _lane_shape(scope), f"{n}_{kind}{index}"
        init = f"{[scope.dice.number(shape) for _ in range(lanes)]}[lane]"
        if scope.dice.chance(0.5):
            init = str(scope.dice.number(shape))
        signal = f'Signal({shape_source(shape)}, name=f"{name}_{{lane}}", init={init})'
        scope.source(f"{name} = [{signal} for lane in range({lanes})]")
        domain = scope.domain() if kind == "state" else "comb"
        targets.append(Target(f"{name}[lane]", Signal(shape, name=name), domain))
    return targets


def _lane_shape(scope: Scope) -> Shape:
    return scope.dice.shape(low=1, high=scope.dice.choice((8, 8, 9, 16, 33, 65)))


def _lane_edge(scope: Scope, module: Submodule, target: Target) -> str:
    """What the first or last lane sees instead of a neighbour: a signal or constant of the shape of the target."""
    shape = target.value.shape()
    if scope.dice.chance(0.4):
        return f"{scope.expressions.constant(shape).source}.as_{'signed' if shape.signed else 'unsigned'}()"
    edge = scope.declare("e", shape, "comb", known=False)
    scope.statements(module).add("comb", f"{edge.name}.eq({scope.expressions(1).source})")
    scope.know(edge.operand)
    return edge.name


def _neighbour(
    scope: Scope,
    name: str,
    target: Target,
    edge: str,
    lanes: int,
    columns: int,
    local: Expressions,
    *,
    registered: bool,
) -> None:
    """Lets the current lane read the target of another one."""
    signals = target.name.removesuffix("[lane]")
    forms = [f"{signals}[lane - 1] if lane else {edge}", f"{signals}[lane - 1] if lane % {columns} else {edge}"]
    forms.append(f"{signals}[lane - {columns}] if lane >= {columns} else {edge}")
    if registered:
        forms.append(f"{signals}[lane + 1] if lane < {lanes - 1} else {edge}")
        forms.append(f"{signals}[lane - {scope.dice.between(1, lanes)}]")
        forms.append(f"{signals}[{lanes - 1} - lane]")
        forms.append(f"{signals}[lane * {scope.dice.between(0, 5)} % {lanes}]")
        forms.append(f"{signals}[lane + {columns}] if lane < {lanes - columns} else {edge}")
    name = scope.name(name + "_")
    scope.source(f"{name} = {scope.dice.choice(forms)}")
    local.pool.append(Operand(name, target.value, is_signal=True))


def _reductions(scope: Scope, module: Submodule, lanes: int, targets: list[Target]) -> None:
    """Signals made of those of all lanes."""
    for target in scope.dice.random.sample(targets, scope.dice.between(1, min(2, len(targets)))):
        signals = target.name.removesuffix("[lane]")
        forms = {
            f"Cat({signals})": min(target.width * lanes, 200),
            f"sum({signals})": target.width + 5,
            f"reduce(operator.xor, {signals})": target.width,
            f"reduce(operator.and_, {signals})": target.width,
            f"Cat(signal.any() for signal in {signals})": lanes,
            f"Cat(signal == {signals}[0] for signal in {signals}).all()": 1,
            f"Cat(signal[-1] for signal in {signals}).xor()": 1,
            f"Array({signals})[{scope.expressions.unsigned(1, 5).source}]": target.width,
        }
        source = scope.dice.choice(list(forms))
        result = scope.declare("t", unsigned(forms[source]), "comb", known=False)
        scope.statements(module).add("comb", f"{result.name}.eq({source})")
        scope.know(result.operand)
