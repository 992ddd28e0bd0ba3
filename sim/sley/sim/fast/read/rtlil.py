"""Pass 1, parse: RTLIL text as Amaranth writes it, to modules whose wires are numbered.

RTLIL is the public text format of Yosys (its manual, chapter "RTLIL"). Amaranth's text is deterministic: one cell for
an operator, one ``process`` for a group of assignments. What Amaranth never writes (``sync`` rules inside of processes)
is an error here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sley.sim.errors import FastError

CONST = -1

Chunk = tuple[int, int, int]
"""Part of a value: (wire number, lowest bit, width), or (CONST, value, width)."""

Sigspec = tuple[Chunk, ...]
"""A value as chunks, the least significant first."""

Parameter = int | str


@dataclass(slots=True)
class Wire:
    name: str
    width: int
    direction: str | None = None
    """``input`` or ``output`` for a port."""
    init: int = 0
    signed: bool = False
    source: str = ""


@dataclass(slots=True)
class Cell:
    kind: str
    name: str
    source: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict)
    ports: dict[str, Sigspec] = field(default_factory=dict)


@dataclass(slots=True)
class Assign:
    target: Sigspec
    value: Sigspec


@dataclass(slots=True)
class Case:
    patterns: tuple[str, ...]
    """Bits 0, 1 and - (any), the most significant first; no pattern at all is the default."""
    body: "list[Assign | Switch]"


@dataclass
class Switch:
    test: Sigspec
    cases: list[Case]

    @cached_property
    def exclusive(self) -> bool:
        """Whether no value of the test has two cases, other than the default."""
        patterns = [pattern for case in self.cases for pattern in case.patterns]
        return len(set(patterns)) == len(patterns) and not any("-" in pattern for pattern in patterns)


@dataclass(slots=True)
class Process:
    source: str
    body: list[Assign | Switch]


@dataclass(slots=True)
class MemoryDeclaration:
    name: str
    width: int
    depth: int
    source: str


@dataclass(slots=True)
class Module:
    name: str
    source: str
    wires: list[Wire] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)
    """Number of the wire with that name."""
    cells: list[Cell] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    connections: list[tuple[Sigspec, Sigspec]] = field(default_factory=list)
    memories: dict[str, MemoryDeclaration] = field(default_factory=dict)


_TOKEN = re.compile(r"(\d+)'([01x\-]*)|([\\$]\S+)(?: \[(\d+)(?::(\d+))?\])?|(-?\d+)")


def plain(name: str) -> str:
    """A name without the mark that tells public names from generated ones."""
    return name[1:] if name.startswith("\\") else name


class _Parser:
    def __init__(self, text: str) -> None:
        self._lines = iter(text.split("\n"))
        self._number = 0
        self._attributes: dict[str, Parameter] = {}
        self._module = Module("", "")
        self._sigspecs: dict[str, Sigspec] = {}
        self._last = ("", "")
        """The statement that ended a body."""

    def modules(self) -> dict[str, Module]:
        modules: dict[str, Module] = {}
        for words in self._statements():
            if words[0] == "module":
                module = self._parse_module(plain(words[1]))
                modules[module.name] = module
            elif words[0] != "autoidx":
                raise self._error(words[0])
        return modules

    def _statements(self) -> Iterator[list[str]]:
        """The statements from here on; all iterations share one position."""
        while (statement := self._next_statement()) is not None:
            yield statement

    def _next_statement(self) -> list[str] | None:
        """The next line as keyword and rest; attributes are collected on the way."""
        for line in self._lines:
            self._number += 1
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            keyword, _, rest = stripped.partition(" ")
            if keyword == "attribute":
                name, _, value = rest.partition(" ")
                if name in ("\\src", "\\init"):
                    self._attributes[name] = _parameter(value)
                continue
            return [keyword, rest]
        return None

    def _take_attributes(self) -> tuple[str, int]:
        source, init = self._attributes.get("\\src", ""), self._attributes.get("\\init", 0)
        self._attributes = {}
        return str(source), init if isinstance(init, int) else 0

    def _error(self, what: str) -> FastError:
        return FastError(f"line {self._number} of the RTLIL: {what!r} is not among what Amaranth writes")

    def _parse_module(self, name: str) -> Module:
        module = self._module = Module(name, self._take_attributes()[0])
        self._sigspecs = {}
        for keyword, rest in self._statements():
            if keyword == "wire":
                self._wire(module, rest)
            elif keyword == "cell":
                module.cells.append(self._cell(rest))
            elif keyword == "connect":
                left, right = self._pair(rest)
                module.connections.append((left, right))
            elif keyword == "process":
                source = self._take_attributes()[0]
                module.processes.append(Process(source, self._body()))
            elif keyword == "memory":
                words = rest.split()
                memory = plain(words[-1])
                width, depth = (_number(words[words.index(what) + 1]) for what in ("width", "size"))
                module.memories[memory] = MemoryDeclaration(memory, width, depth, self._take_attributes()[0])
            elif keyword == "end":
                return module
            else:
                raise self._error(keyword)
        raise FastError(f"the RTLIL ends within module {name}")

    def _wire(self, module: Module, rest: str) -> None:
        source, init = self._take_attributes()
        words = rest.split()
        name = words[-1]
        width = _number(words[words.index("width") + 1]) if "width" in words else 1
        wire = Wire(plain(name), width, source=source)
        wire.init, wire.signed = init, "signed" in words[:-1]
        for direction in ("input", "output", "inout"):
            if direction in words[:-1]:
                wire.direction = direction
        module.index[name] = len(module.wires)
        module.wires.append(wire)

    def _cell(self, rest: str) -> Cell:
        kind, name = rest.split()
        cell = Cell(plain(kind), plain(name), self._take_attributes()[0])
        for keyword, content in self._statements():
            if keyword == "connect":
                port, _, value = content.partition(" ")
                cell.ports[plain(port)] = self._sigspec(value)
            elif keyword == "parameter":
                if content.startswith(("signed ", "real ")):
                    content = content.partition(" ")[2]
                parameter, _, value = content.partition(" ")
                cell.parameters[plain(parameter)] = _parameter(value)
            elif keyword == "end":
                return cell
            else:
                raise self._error(keyword)
        raise FastError(f"the RTLIL ends within cell {name}")

    def _body(self) -> list[Assign | Switch]:
        """Statements up to the ``end`` of a process, or up to the next ``case`` or ``end`` of a switch."""
        body: list[Assign | Switch] = []
        for keyword, rest in self._statements():
            if keyword == "assign":
                body.append(Assign(*self._pair(rest)))
            elif keyword == "switch":
                body.append(self._switch(rest))
            elif keyword in ("end", "case"):
                self._last = (keyword, rest)
                return body
            else:
                raise self._error(keyword)
        raise FastError("the RTLIL ends within a process")

    def _switch(self, rest: str) -> Switch:
        switch = Switch(self._sigspec(rest), [])
        statement = self._next_statement()
        if statement is None:
            raise FastError("the RTLIL ends within a switch")
        keyword, patterns = statement
        while keyword == "case":
            parsed = tuple(pattern.strip().partition("'")[2] for pattern in patterns.split(",")) if patterns else ()
            switch.cases.append(Case(parsed, self._body()))
            keyword, patterns = self._last
        if keyword != "end":
            raise self._error(keyword)
        return switch

    def _pair(self, rest: str) -> tuple[Sigspec, Sigspec]:
        if rest.startswith("{"):
            left, _, right = rest.partition("} ")
            return self._sigspec(left + "}"), self._sigspec(right)
        match = re.match(r"\S+(?: \[[\d:]+\])? ", rest)
        if match is None:
            raise self._error(rest)
        return self._sigspec(match[0].rstrip()), self._sigspec(rest[match.end() :])

    def _sigspec(self, text: str) -> Sigspec:
        known = self._sigspecs.get(text)
        if known is not None:
            return known
        chunks: list[Chunk] = []
        for width, bits, name, high, low, number in _TOKEN.findall(text):
            if name:
                wire = self._module.index.get(name)
                if wire is None:
                    raise self._error(name)
                if high:
                    first = int(low) if low else int(high)
                    chunks.append((wire, first, int(high) - first + 1))
                else:
                    chunks.append((wire, 0, self._module.wires[wire].width))
            elif width:
                chunks.append((CONST, _bits(bits), int(width)))
            elif number:
                chunks.append((CONST, int(number) & 0xFFFFFFFF, 32))
        result = tuple(chunk for chunk in reversed(chunks) if chunk[2])
        self._sigspecs[text] = result
        return result


def _number(text: str) -> int:
    """A width. Amaranth writes that of ``Signal(True)`` as ``True``."""
    return {"True": 1, "False": 0}[text] if text in ("True", "False") else int(text)


def _bits(text: str) -> int:
    """Undefined bits are 0, as in Amaranth's simulator."""
    return int(text.replace("x", "0").replace("-", "0"), 2) if text else 0


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def _parameter(text: str) -> Parameter:
    if text.startswith('"'):
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
    width, tick, bits = text.partition("'")
    return _bits(bits) if tick else _number(width)


def parse(text: str) -> dict[str, Module]:
    """All modules of an RTLIL text by name. Raises ``FastError`` for text that Amaranth does not write."""
    return _Parser(text).modules()


def width_of(value: Sigspec) -> int:
    """Number of bits."""
    return sum(chunk[2] for chunk in value)
