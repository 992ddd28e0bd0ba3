"""Random memories with some ports."""

from amaranth.hdl import Shape, Signal
from amaranth.utils import ceil_log2
from design_language import Operand, combine, shape_source
from design_scope import Scope, Submodule
from random_statements import Statements


def memory(scope: Scope) -> None:
    """A memory with some ports."""
    module = scope.dice.choice(scope.modules)
    name, data = memory_in(scope, scope.statements(module), module)
    scope.memories[scope.path(module) + name] = name
    scope.observable += data


def memory_in(scope: Scope, statements: Statements, module: Submodule) -> tuple[str, list[Operand]]:
    """Writes a memory and its ports. Returns its name and what the ports read."""
    dice, name = scope.dice, scope.name("mem")
    shape = dice.shape(high=130)
    depth = dice.choice((1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 40))
    rows = [dice.number(shape) for _ in range(dice.choice((0, depth // 2, depth)))]
    scope.source(f"{name} = Memory(shape={shape_source(shape)}, depth={depth}, init={rows})")
    scope.source(f"{statements.module}.submodules.{name} = {name}")
    domain = dice.choice(("sync", "sync", "neg", "free"))
    writers = _write_ports(scope, statements, name, shape, ceil_log2(depth), domain)
    data = []
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        if dice.chance(0.45):
            port = _async_read_port(scope, statements, name)
        else:
            port = _sync_read_port(scope, statements, name, domain, writers)
            module.enable_allowed = module.enable_allowed and domain == "free"
        address = statements.expressions(1)
        if address.width > ceil_log2(depth) and dice.chance(0.5):
            address = combine("{a}[:{stop}]", a=address, stop=ceil_log2(depth))
        statements.add("comb", f"{port}.addr.eq({address.source})")
        data.append(Operand(f"{port}.data", Signal(shape, name="data"), is_signal=True))
        statements.expressions.pool.append(data[-1])
    return name, data


def _write_ports(
    scope: Scope, statements: Statements, memory: str, shape: Shape, address_width: int, domain: str
) -> list[str]:
    """Write ports, each with rows or bits of rows of its own. Returns their names."""
    dice, e, ports = scope.dice, statements.expressions, []
    count = dice.choice((0, 1, 1, 1, 2, 2, 3))
    divisors = [d for d in range(1, shape.width + 1) if shape.width % d == 0 and shape.width // d <= 32]
    granularity = dice.choice(divisors) if divisors and not shape.signed and dice.chance(0.5) else None
    lanes = shape.width // granularity if granularity else 1
    own_rows = ceil_log2(count) if count else 0
    own_lanes = count > 1 and lanes >= count and (own_rows > address_width or dice.chance(0.4))
    if own_rows > address_width and not own_lanes:
        count, own_rows = 1, 0
    for index in range(count):
        port = scope.name("w")
        option = f", granularity={granularity}" if granularity else ""
        scope.source(f'{port} = {memory}.write_port(domain="{domain}"{option})')
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


def _async_read_port(scope: Scope, statements: Statements, memory: str) -> str:
    port = scope.name("p")
    scope.source(f'{port} = {memory}.read_port(domain="comb")')
    return port


def _sync_read_port(scope: Scope, statements: Statements, memory: str, domain: str, writers: list[str]) -> str:
    port = scope.name("p")
    transparent = "".join(f"{writer}, " for writer in writers if scope.dice.chance(0.5))
    scope.source(f'{port} = {memory}.read_port(domain="{domain}", transparent_for=({transparent}))')
    if scope.dice.chance(0.7):
        reset = f'ResetSignal("{domain}", allow_reset_less=True)'
        statements.add("comb", f"{port}.en.eq({statements.expressions.condition(1).source} | {reset})")
    return port
