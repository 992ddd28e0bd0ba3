"""From a kernel's Python source to the tile IR.

Statements run as Python does them, on values that note what is done to them (``trace``): whatever is known when the
kernel is compiled is plain Python. Only loops over ``range`` are looked at: they become loops of the IR.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any, TypeVar

from sley.runtime.errors import KernelError
from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.nested import described, form_of, traced_in, with_traced
from sley.runtime.tile.operations import TileError, result_types
from sley.runtime.tile.trace import CURRENT, Array, Index, Trace, Traced, as_index
from sley.runtime.tile.types import INDEX, ArrayType

T = TypeVar("T")


@dataclass(frozen=True)
class _Returned:
    """A function's result: what ``return`` leaves behind."""

    value: Any


@dataclass
class Source:
    """A function that is read as a kernel, or a part of one."""

    python: Callable[..., Any]
    _code: dict[ast.AST, CodeType] = field(default_factory=dict, repr=False)
    _stored: dict[ast.For, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict, repr=False)

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.python)

    def code(self, node: ast.stmt | ast.expr) -> CodeType:
        """A statement or an expression of its tree, compiled once."""
        if node not in self._code:
            whole = ast.Expression(node) if isinstance(node, ast.expr) else ast.Module([node], [])
            self._code[node] = compile(whole, self.file, "eval" if isinstance(node, ast.expr) else "exec")
        return self._code[node]

    def stored(self, loop: ast.For) -> tuple[frozenset[str], frozenset[str]]:
        """The names that the body of a loop gives a value, and those of whose values it changes an element."""
        if loop not in self._stored:
            nodes = [node for part in loop.body for node in ast.walk(part)]
            targets = [node for node in nodes if isinstance(node, ast.Name | ast.Subscript)]
            changed = [node for node in targets if isinstance(node.ctx, ast.Store)]
            elements = (node.value for node in changed if isinstance(node, ast.Subscript))
            names, whose = (frozenset(n.id for n in found if isinstance(n, ast.Name)) for found in (changed, elements))
            self._stored[loop] = names, whose
        return self._stored[loop]

    @cached_property
    def text(self) -> str:
        """Its source. Raises ``TileError`` if Python does not have it."""
        try:
            return textwrap.dedent(inspect.getsource(self.python))
        except (OSError, TypeError):
            raise TileError(
                f"the source of {self.python.__name__} is not known; a kernel stands in a file, or in a notebook's cell"
            ) from None

    @cached_property
    def tree(self) -> ast.FunctionDef:
        tree = ast.parse(self.text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise TileError(f"{self.python.__name__} is no function with def")
        ast.increment_lineno(tree, self.python.__code__.co_firstlineno - 1)
        return tree

    @property
    def file(self) -> str:
        return self.python.__code__.co_filename

    def names(self) -> dict[str, Any]:
        """What its body sees from outside."""
        return {**self.python.__globals__, **inspect.getclosurevars(self.python).nonlocals}

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs its body in the trace at work. Raises ``TileError`` with the line at fault."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return _Run(self, self.names(), dict(bound.arguments)).body()


class _Run:
    """A function body at work: ``variables`` are its own, ``names`` those from outside, ``given`` its arguments."""

    def __init__(self, source: Source, names: dict[str, Any], variables: dict[str, Any]) -> None:
        self.source, self.names, self.variables = source, names, variables
        self.given = [*variables.values()]
        self.trace = CURRENT.get()

    def body(self) -> Any:
        result = self.statements(self.source.tree.body)
        return result.value if result else None

    def statements(self, nodes: Sequence[ast.stmt]) -> _Returned | None:
        """Runs them, up to a ``return``."""
        for node in nodes:
            before, self.trace.line = self.trace.line, node.lineno
            try:
                result = self.statement(node)
            except KernelError as error:
                if "\n" in str(error):
                    raise
                line = self.source.text.splitlines()[node.lineno - self.source.python.__code__.co_firstlineno]
                place = f"{self.source.file}:{node.lineno}"
                raise TileError(f"{place}: {error}\n    {line.strip()}") from None
            self.trace.line = before
            if result:
                return result
        return None

    def statement(self, node: ast.stmt) -> _Returned | None:
        if isinstance(node, ast.For):
            return self.loop(node)
        if isinstance(node, ast.If):
            return self.statements(node.body if self.value(node.test) else node.orelse)
        if isinstance(node, ast.Return):
            return _Returned(self.value(node.value) if node.value else None)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Assert | ast.Pass):
            exec(self.source.code(node), self.scope(), self.variables)  # the user's own source
            return None
        raise TileError(f"{type(node).__name__.lower()} is no statement of a kernel")

    def value(self, node: ast.expr) -> Any:
        return eval(self.source.code(node), self.scope(), self.variables)

    def scope(self) -> dict[str, Any]:
        """For expressions: comprehensions see variables of the function as names from outside."""
        return {**self.names, **self.variables}

    def loop(self, node: ast.For) -> _Returned | None:
        if node.orelse:
            raise TileError("a loop of a kernel has no else")
        rounds = self.rounds(node.iter)
        if not isinstance(rounds, range):
            return self.unrolled(node, rounds)
        if not isinstance(node.target, ast.Name):
            raise TileError("a loop over range has one variable")
        if len(rounds) < 2:
            return self.unrolled(node, [as_index(value) for value in rounds])
        self.hardware_loop(node, node.target.id, rounds)
        return None

    def unrolled(self, node: ast.For, rounds: Iterable[Any]) -> _Returned | None:
        for value in rounds:
            self.assign(node.target, value)
            result = self.statements(node.body)
            if result:
                return result
        return None

    def rounds(self, node: ast.expr) -> Any:
        rounds = self.value(node)
        if isinstance(rounds, Traced):
            raise TileError(f"a loop over {type(rounds).__name__}; it is over range, or over values that are known")
        return rounds

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
            return
        module = ast.Module([ast.Assign([target], ast.Name("__value", ast.Load()))], [])
        self.variables["__value"] = value
        exec(compile(ast.fix_missing_locations(module), self.source.file, "exec"), self.scope(), self.variables)
        del self.variables["__value"]

    def hardware_loop(self, node: ast.For, variable: str, rounds: range) -> None:
        names, whose = self.source.stored(node)
        carried = [name for name in self.variables if name in names | whose and name != variable]
        for name in carried:
            if isinstance(self.variables[name], int) and not isinstance(self.variables[name], bool):
                self.variables[name] = as_index(self.variables[name])
        for name in sorted(whose.intersection(self.variables)):
            self._check_alone(name)
        before = {name: traced_in(self.variables[name]) for name in carried}
        begin = [value for found in before.values() for value in found]
        number = Value(INDEX, variable)
        body = Block([number, *(Value(value.type) for value in begin)])
        outside = dict(self.variables)
        others = {name: _content(value) for name, value in outside.items() if name not in before}
        self.variables[variable] = Index(number)
        self._replace(before, body.parameters[1:])
        with self.trace.inside(body):
            if self.statements(node.body):
                raise TileError("return in a loop over range, whose body runs in each round; return behind it")
            ends = [end for name in before for end in self._ends(name, outside[name])]
            for name, content in others.items():
                if _content(outside[name]) != content:
                    raise TileError(
                        f"{name} changes in the loop; a loop carries what is assigned: {name} = [*{name}, x]"
                    )
            self.trace.emit("yield", ends)
        attributes = {"lower": rounds.start, "step": rounds.step, "count": len(rounds)}
        op = Op("for", begin, attributes, body=body, line=node.lineno)
        op.results = [Value(type) for type in result_types(op)]
        self.trace.block.ops.append(op)
        self.variables = outside
        self._replace(before, op.results)

    def _check_alone(self, name: str) -> None:
        """Raises ``TileError`` if a loop would change an element of what has another name too: it is carried by its own
        alone."""
        value = self.variables[name]
        others = [other for other, same in self.variables.items() if same is value and other != name]
        others += ["an argument"] * any(given is value for given in self.given)
        if others:
            kind = type(value).__name__
            raise TileError(
                f"elements of {name} change in the loop, and {others[0]} is the same {kind}; make it a copy before: "
                f"{name} = {kind}({name})"
            )

    def _replace(self, names: Iterable[str], values: Iterable[Value]) -> None:
        """Variables that a loop carries become others, in as many lists and tuples."""
        left = iter(values)
        for name in names:
            self.variables[name] = with_traced(self.variables[name], left)

    def _ends(self, name: str, before: Any) -> list[Value]:
        """What a loop carries of a variable from round to round. Raises ``TileError`` if that is something else at its
        end than before it."""
        end = self.variables[name]
        if form_of(before) != form_of(end):
            raise TileError(
                f"{name} is {described(before)} before the loop and {described(end)} at its end; it must stay the same"
            )
        return traced_in(end)


def _content(value: Any) -> tuple[Any, list[Value]]:
    """All that a value is; of what is traced, which it is."""
    return form_of(value), traced_in(value)


def flat(arguments: Mapping[str, T | tuple[T, ...]]) -> Iterator[tuple[str, T]]:
    """Arrays, and those of tuples, by names of their own."""
    for name, value in arguments.items():
        if isinstance(value, tuple):
            yield from ((f"{name}_{number}", one) for number, one in enumerate(value))
        else:
            yield name, value


def read(
    source: Source,
    arrays: Mapping[str, ArrayType | tuple[ArrayType, ...]],
    constants: Mapping[str, Any],
    grid: tuple[int, int, int],
) -> Function:
    """The function that a kernel is for these arrays and constants. Raises ``TileError``."""
    trace = Trace()
    values = {name: Value(type, name) for name, type in flat(arrays)}
    left = iter(values.values())
    arguments = {
        name: tuple(Array(next(left)) for _ in type) if isinstance(type, tuple) else Array(next(left))
        for name, type in arrays.items()
    }
    token = CURRENT.set(trace)
    try:
        source.call(**arguments, **constants)
    finally:
        CURRENT.reset(token)
    return Function(source.python.__name__, list(values.values()), grid, trace.block)
