"""Modules that are nothing but one instance of another, as Amaranth makes them around what a design has many times."""

import re
from collections.abc import Sequence

from sley.hw.ip.module_text import IDENTIFIER, ModuleText, identifiers

INSTANCE = re.compile(r"  (\\\S+ |\w+) +(\\\S+ |\w+) \(\n")
CONNECTION = re.compile(r"    \.(\\\S+ |\w+) ?\((.*)\),?", re.DOTALL)

Connections = dict[str, str]
"""Expression by port."""


def instance_of(statement: str) -> tuple[str, str, Connections] | None:
    """Module, name and connections of an instance; None for other statements."""
    found = INSTANCE.match(statement)
    if not found:
        return None
    connections = {}
    for line in statement.splitlines()[1:-1]:
        connection = CONNECTION.fullmatch(line)
        if connection is None:
            raise ValueError(f"an instance of {found[1]} has {line!r}")
        connections[connection[1]] = connection[2]
    return found[1].strip().removeprefix("\\"), found[2], connections


def without_shells(modules: Sequence[ModuleText]) -> list[ModuleText]:
    """The modules with what is in a shell in its place, as far as that needs no new wires."""
    shells = {}
    for module in modules[1:]:
        only = instance_of(module.statements[0]) if len(module.statements) == 1 else None
        if only:
            shells[module.name] = module, only[0], only[2]
    for module in modules:
        for index, statement in enumerate(module.statements):
            instance = instance_of(statement)
            if instance and instance[0] in shells:
                shell, kind, inner = shells[instance[0]]
                moved = _moved(shell, inner, instance[2])
                if moved is not None:
                    lines = ",\n".join(f"    .{port}({value})" for port, value in moved.items())
                    module.statements[index] = f"  \\{kind}  {instance[1]} (\n{lines}\n  );"
    return _reached(modules)


def _moved(shell: ModuleText, inner: Connections, outer: Connections) -> Connections | None:
    """Connections of the inner instance as its grandparent sees them."""
    moved = {}
    for port, value in inner.items():
        for name in identifiers(value):
            if name not in outer or (
                re.search(rf"{re.escape(name)} ?\[", value) and not outer[name].strip().isidentifier()
            ):
                return None
        moved[port] = IDENTIFIER.sub(lambda found: outer.get(found[0], found[0]), value)
    return moved


def _reached(modules: Sequence[ModuleText]) -> list[ModuleText]:
    """The first module and what it needs."""
    by_name = {module.name: module for module in modules}
    reached, waiting = set(), [modules[0].name]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            found = (instance_of(statement) for statement in by_name[name].statements)
            waiting += [instance[0] for instance in found if instance]
    return [module for module in modules if module.name in reached]
