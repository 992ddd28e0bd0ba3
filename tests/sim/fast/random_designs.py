"""Random Amaranth designs, many of them in one top module.

``design_source(seed)`` writes a design as the text of a Python function, which is also its reproducer: ::

    def design(m, domains):
        ...
        return inputs, outputs, memories

``Design`` runs such a text and ``Batch`` puts several designs below one top module (``design_batch.py``).

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

from amaranth.hdl import unsigned
from design_scope import Scope
from random_lanes import repetition
from random_memories import memory
from random_parts import chain, comb, fsm, split


def design_source(seed: int) -> str:
    """The text of the design of this seed."""
    scope = Scope(seed)
    with scope.source.block("def design(m, domains)"):
        scope.source(f'"""Seed {seed}."""')
        for _ in range(scope.dice.between(1, 4)):
            target = scope.declare("i", scope.dice.shape(low=1), "comb")
            scope.inputs.append(target.name)
        scope.observable.clear()
        for _ in range(scope.dice.choice((0, 0, 0, 1, 1, 2))):
            scope.add_module()
        if scope.dice.chance(0.12):
            _local_domain(scope)
        for _ in range(scope.dice.choice((0, 0, 1, 1, 2))):
            scope.register(scope.dice.choice(scope.modules))
        parts = [comb] * 5 + [repetition] * 3 + [fsm, memory, memory, chain, split]
        for _ in range(scope.dice.choice((1, 1, 1, 1, 2, 3))):
            scope.dice.choice(parts)(scope)
        _drive_registers(scope)
        _wrap_modules(scope)
        _return_ports(scope)
    return "\n".join(scope.source.lines) + "\n"


def _local_domain(scope: Scope) -> None:
    """A clock domain that shares a clock with another, with a register of that one as its asynchronous reset."""
    base = scope.dice.choice(("sync", "neg", "free"))
    edge = scope.dice.choice(("pos", "neg"))
    reset = scope.declare("q", unsigned(1), base, scope.dice.choice(("", ", init=1")))
    scope.dice.choice(scope.modules).targets.append(reset)
    scope.source(f'local = ClockDomain("local", clk_edge="{edge}", async_reset=True, local=True)')
    scope.source(f'local.clk = domains["{base}"].clk')
    scope.source("m.domains += local")
    scope.source(f"m.d.comb += local.rst.eq({reset.name})")
    scope.domains += ["local", "local"]


def _drive_registers(scope: Scope) -> None:
    for module in scope.modules:
        if module.targets:
            scope.statements(module).assign_all(module.targets)


def _wrap_modules(scope: Scope) -> None:
    """Puts each module into its parent, perhaps with a reset, an enable or another clock domain of its own."""
    by_name = {module.name: module for module in scope.modules}
    for module in reversed(scope.modules[1:]):
        parent, name, wrapped = by_name[module.parent], module.name, module.name
        parent.enable_allowed = parent.enable_allowed and module.enable_allowed
        control = scope.expressions.unsigned(1, 1)
        if control.width == 1:
            domain = scope.domain()
            if scope.dice.chance(0.15):
                wrapped = f'ResetInserter({{"{domain}": {control.source}}})({wrapped})'
            if scope.dice.chance(0.15) and module.enable_allowed:
                wrapped = f'EnableInserter({{"{domain}": {control.source}}})({wrapped})'
        if scope.dice.chance(0.1):
            pair = scope.dice.choice(('"sync": "neg"', '"neg": "sync"', '"sync": "neg", "neg": "sync"'))
            wrapped = f"DomainRenamer({{{pair}}})({wrapped})"
        scope.source(f"{module.parent}.submodules.{name} = {wrapped}")


def _return_ports(scope: Scope) -> None:
    names = dict.fromkeys(operand.source for operand in scope.observable if operand.width)
    outputs = [name for name in names if scope.dice.chance(0.7)] or list(names)[-1:]
    memories = ", ".join(f'"{path}": {name}' for path, name in scope.memories.items())
    scope.source(f"return [{', '.join(scope.inputs)}], [{', '.join(outputs)}], {{{memories}}}")
