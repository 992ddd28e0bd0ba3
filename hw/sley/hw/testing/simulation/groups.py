"""A design as Python functions, one for each group of statements that drive the same signals.

Amaranth's own simulator makes one function of all combinational statements of a module, and runs all of it whenever any
of its inputs changes; a module with statements before and behind those of another one runs several times in a cycle.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Fragment, MemoryInstance, Signal
from amaranth.hdl._ast import Print, Property, SignalSet, Switch
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim._pyrtl import _FragmentCompiler, _PythonEmitter, _RHSValueCompiler, _StatementCompiler, _ValueCompiler

from sley.hw.testing.simulation.state import State


@dataclass(eq=False)
class Group:
    """Statements that run together.

    ``run``: computes what they drive from the current values. ``inputs``, ``outputs``: places in the state of the
    signals that they read and drive. ``domain``: the clock that they follow, None if they are combinational.
    ``speaks``: something in them is printed or checked.
    """

    run: Callable[[], None]
    inputs: list[int]
    outputs: list[int]
    domain: Any
    speaks: bool


class _Values(_RHSValueCompiler):
    """Reads a signal through a name of its own, not through a list of all."""

    def on_Signal(self, value: Signal) -> str:  # noqa: N802
        if self.inputs is not None:
            self.inputs.add(value)
        index = self.state.get_signal(value)
        return f"s{index}.curr" if self.mode == "curr" else f"next_{index}"


class _Statements(_StatementCompiler):
    def __init__(self, state: State, emitter: Any, inputs: SignalSet) -> None:
        super().__init__(state, emitter)
        self.rhs = _Values(state, emitter, mode="curr", inputs=inputs)
        self.lhs.rrhs = self.lhs.lrhs.rrhs = self.rhs


def groups_of(state: State, fragment: Fragment) -> list[Group]:
    """The groups of a prepared design without its memories: combinational ones in their order, then domain by
    domain."""
    emitter = _PythonEmitter()
    written = list(_written(state, fragment, emitter))
    scope: dict[str, Any] = {f"s{index}": slot for index, slot in enumerate(state.slots)}
    scope.update({"pending": state.pending, **_ValueCompiler.helpers, **_StatementCompiler.helpers})
    exec(compile(emitter.flush(), "<simulated design>", "exec"), scope)
    groups = [Group(scope[name], *rest) for name, *rest in written]
    domains = dict.fromkeys(id(group.domain) for group in groups if group.domain)
    clocked = [group for domain in domains for group in groups if id(group.domain) == domain]
    return [*_in_order([group for group in groups if not group.domain]), *clocked]


def memories_of(state: State, fragment: Fragment) -> Iterator[Any]:
    """Amaranth's own processes of the memories of a prepared design."""
    if isinstance(fragment, MemoryInstance):
        yield from _FragmentCompiler(state)(fragment)
    for inner, _, _ in fragment.subfragments:
        yield from memories_of(state, inner)


def _written(state: State, fragment: Fragment, emitter: Any) -> Iterator[tuple[Any, ...]]:
    """Writes the functions of a fragment and all below it. Their names, and what ``Group`` has of them besides."""
    for name, statements in fragment.statements.items():
        domain = None if name == "comb" else fragment.domains[name]
        for together in _dependent(statements):
            yield _write(state, together, domain, emitter)
    for inner, _, _ in fragment.subfragments:
        yield from _written(state, inner, emitter)


def _dependent(statements: Iterable[Any]) -> list[list[Any]]:
    """Statements that drive the same signal, together and in their order."""
    owner: dict[int, int] = {}
    groups: dict[int, list[tuple[int, Any]]] = {}
    for number, statement in enumerate(statements):
        driven = [id(signal) for signal in statement._lhs_signals()]
        meeting = {owner[signal] for signal in driven if signal in owner}
        members = sorted((one for group in meeting for one in groups.pop(group)), key=lambda member: member[0])
        groups[number] = [*members, (number, statement)]
        owner.update({signal: number for signal, group in owner.items() if group in meeting})
        owner.update(dict.fromkeys(driven, number))
    return [[statement for _, statement in group] for group in groups.values()]


def _write(state: State, statements: list[Any], domain: Any, emitter: Any) -> tuple[Any, ...]:
    """Writes the function of a group. Its name, and what ``Group`` has of it besides."""
    masks = LHSMaskCollector()
    masks.visit_stmt(statements)
    outputs = [(signal, mask, state.get_signal(signal)) for signal, mask in masks.masks()]
    inputs = SignalSet()
    name = emitter.gen_var("run")
    emitter.append(f"def {name}():")
    with emitter.indent():
        emitter.append("pass")
        for signal, _, index in outputs:
            state.slots[index].is_comb |= domain is None
            emitter.append(f"next_{index} = {f's{index}.next' if domain else signal.init}")
        compiler = _Statements(state, emitter, inputs)
        compiler(statements)
        if domain is not None and domain.rst is not None:
            emitter.append(f"if 1 & {compiler.rhs(domain.rst)}:")
            with emitter.indent():
                emitter.append("pass")
                for signal, _, index in outputs:
                    if not signal.reset_less:
                        emitter.append(f"next_{index} = {signal.init}")
        for signal, mask, index in outputs:
            if mask != (1 << len(signal)) - 1:  # the other bits are driven elsewhere
                if signal.shape().signed and mask >> len(signal) - 1 & 1:
                    mask |= -1 << len(signal)
                emitter.append(f"next_{index} = s{index}.next & {~mask} | next_{index} & {mask}")
            if domain is None:
                emitter.append(f"if next_{index} != s{index}.curr: s{index}.follow(next_{index})")
            else:
                emitter.append(
                    f"if next_{index} != s{index}.next: s{index}.next = next_{index}; pending.append(s{index})"
                )
    driven = [index for *_, index in outputs]
    return name, list(map(state.get_signal, inputs)), driven, domain, any(map(_speaks, statements))


def _speaks(statement: Any) -> bool:
    if isinstance(statement, Switch):
        return any(_speaks(inner) for _, body, _ in statement.cases for inner in body)
    return isinstance(statement, Print | Property)


def _in_order(groups: list[Group]) -> list[Group]:
    """Those that drive a signal before those that read it; where they go in circles, in any order."""
    readers: dict[int, list[Group]] = {}
    for group in groups:
        for signal in group.inputs:
            readers.setdefault(signal, []).append(group)

    def after(group: Group) -> Iterator[Group]:
        return (reader for signal in group.outputs for reader in readers.get(signal, ()))

    order, seen = [], set()
    for first in groups:
        path = [(first, after(first))] if first not in seen else []
        seen.add(first)
        while path:
            group, rest = path[-1]
            reader = next((reader for reader in rest if reader not in seen), None)
            if reader is None:
                order.append(group)
                path.pop()
            else:
                seen.add(reader)
                path.append((reader, after(reader)))
    return order[::-1]
