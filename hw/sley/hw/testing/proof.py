"""Proofs about designs, for all inputs and all times.

    class NeverFull(Property):
        def elaborate(self, platform):
            m = Module()
            m.submodules.dut = self.dut
            self.free_inputs(m, self.dut)
            m.d.comb += Assert(self.dut.level < 3)
            return m

    prove(NeverFull(dut), 4)

The solver looks for inputs that break an assertion. Reset is an input like any other.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Fragment, Module, Signal, Value
from amaranth.lib import wiring
from bitwuzla import Bitwuzla, Kind, Option, Options, Result, Term

from sley.hw.testing.transition_system import Cycle, TransitionSystem, btor2


class Counterexample(AssertionError):  # noqa: N818
    """An assertion fails in a run from reset."""


class NotInductive(AssertionError):  # noqa: N818
    """An assertion holds in every run of ``depth`` cycles from reset, and fails after ``depth`` cycles from a state in
    which it held: a bug that needs longer, or a state that is never reached, which a further assertion must exclude."""


class VacuousProof(AssertionError):  # noqa: N818
    """The assumptions contradict each other: anything could be proved."""


class Property(Elaboratable):
    """What shall hold of ``dut``: a module with ``Assert``, and ``Assume`` for what its neighbours guarantee."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.inputs: dict[str, Any] = {}
        self.constants: set[str] = set()

    def free(self, shape: Any, name: str) -> Any:
        """A signal that the solver chooses in every cycle."""
        if name in self.inputs:
            raise ValueError(f"there is an input {name} already")
        self.inputs[name] = Signal(shape, name=name)
        return self.inputs[name]

    def constant(self, shape: Any, name: str) -> Any:
        """A signal that the solver chooses once."""
        self.constants.add(name)
        return self.free(shape, name)

    def free_inputs(self, m: Module, component: Any) -> None:
        """Has the solver choose every input of ``component``."""
        for path, member, value in component.signature.flatten(component):
            if member.flow == wiring.In:
                m.d.comb += value.eq(self.free(member.shape, "_".join(str(part) for part in path)))

    def inner(self, m: Module, component: Any) -> dict[str, Any]:
        """Adds ``component`` as the submodule that is proved; the registers and wires in it by name, those of its
        submodules with their path."""
        fragment = Fragment.get(component, None)
        m.submodules.dut = fragment
        return dict(_driven(fragment, ""))


def _driven(fragment: Any, path: str) -> Iterator[tuple[str, Any]]:
    # Amaranth has no public way to the signals inside a component.
    for statements in fragment.statements.values():
        for signal in statements._lhs_signals():
            yield path + signal.name, signal
    for part, name, _ in fragment.subfragments:
        yield from _driven(part, f"{path}{name}.")


def prove(design: Property, depth: int, *, induction: bool = True) -> None:
    """Proves the assertions of ``design``: in every run of ``depth`` cycles from reset, and with ``induction`` in every
    run: ``depth`` cycles in which they hold, from any state at all, are followed by one in which they hold. No state
    comes twice in these cycles; a shortest way to a failure has no loops.

    Raises ``Counterexample`` and ``NotInductive``, with a table of the named signals in each cycle, and
    ``VacuousProof``.
    """
    # A traceback must not hold the solver's objects: collected in any other order than theirs they crash.
    failure = _failure(btor2(_convert(design)), design.constants, depth, induction)
    if failure is not None:
        raise failure


def _failure(text: str, constants: set[str], depth: int, induction: bool) -> AssertionError | None:
    system = TransitionSystem(text, constants)
    return _bounded(system, depth) or (_step(system, depth) if induction else None)


def _convert(design: Property) -> str:
    elaborated = Fragment.get(design, None)  # now the inputs are known
    ports = {name: (Value.cast(signal), None) for name, signal in design.inputs.items()}
    return str(rtlil.convert(elaborated, name="top", ports=ports))


def _bounded(system: TransitionSystem, depth: int) -> AssertionError | None:
    solver = _solver(system)
    cycles: list[Cycle] = []
    registers = system.first()
    for _ in range(depth):
        cycles.append(system.cycle(registers))
        registers = cycles[-1].next
        _assert(solver, cycles[-1].assumed)
        if _possible(solver, _any(system, cycles[-1])):
            return Counterexample(_trace(solver, cycles))
        _assert(solver, _negated(system, cycles[-1].bad.values()))  # spares the next search a sixth of its time
    return None if _possible(solver) else VacuousProof("no run satisfies the assumptions")


def _step(system: TransitionSystem, depth: int) -> NotInductive | None:
    solver = _solver(system)
    cycles: list[Cycle] = []
    registers: dict[int, Term] = {}
    for _ in range(depth + 1):
        for cycle in cycles[-1:]:
            _assert(solver, _negated(system, cycle.bad.values()))
        cycles.append(system.cycle(registers))
        registers = cycles[-1].next
        _assert(solver, cycles[-1].assumed)
        _assert(solver, [_differ(system, cycle, cycles[-1]) for cycle in cycles[:-1]])
    return NotInductive(_trace(solver, cycles)) if _possible(solver, _any(system, cycles[-1])) else None


def _solver(system: TransitionSystem) -> Bitwuzla:
    options = Options()
    options.set(Option.PRODUCE_MODELS, True)
    return Bitwuzla(system.manager, options)


def _possible(solver: Bitwuzla, *terms: Term) -> bool:
    result = solver.check_sat(*terms)
    if result not in (Result.SAT, Result.UNSAT):
        raise RuntimeError(f"the solver ended with {result}")
    return bool(result == Result.SAT)


def _assert(solver: Bitwuzla, terms: list[Term]) -> None:
    for term in terms:
        solver.assert_formula(term)


def _differ(system: TransitionSystem, one: Cycle, other: Cycle) -> Term:
    differences = [
        system.manager.mk_term(Kind.DISTINCT, [term, other.registers[number]]) for number, term in one.registers.items()
    ]
    return _or(system, differences) if differences else system.manager.mk_true()


def _negated(system: TransitionSystem, terms: Iterable[Term]) -> list[Term]:
    return [system.manager.mk_term(Kind.NOT, [term]) for term in terms]


def _or(system: TransitionSystem, terms: list[Term]) -> Term:
    return system.manager.mk_term(Kind.OR, terms) if len(terms) > 1 else terms[0]


def _any(system: TransitionSystem, cycle: Cycle) -> Term:
    bad = list(cycle.bad.values())
    if not bad:
        raise ValueError("the design asserts nothing")
    return _or(system, bad)


def _trace(solver: Bitwuzla, cycles: list[Cycle]) -> str:
    """A line for every named signal with its value in each cycle, and the assertions that fail in the last."""
    failed = [name for name, term in cycles[-1].bad.items() if solver.get_value(term).value()]
    lines = [f"fails in cycle {len(cycles) - 1}: {', '.join(failed)}"]
    seen: set[Term] = set()
    for name, term in sorted(cycles[0].names.items(), key=lambda item: (item[0].count("."), item[0])):
        parts = name.split(".")
        part_of_another = any(".".join(parts[:k]) in cycles[0].names for k in range(1, len(parts)))
        if term not in seen and not part_of_another:
            seen.add(term)
            values = [format(int(solver.get_value(cycle.names[name]).value(10)), "x") for cycle in cycles]
            lines.append(f"{name:32} {' '.join(f'{value:>4}' for value in values)}")
    return "\n".join(lines)
