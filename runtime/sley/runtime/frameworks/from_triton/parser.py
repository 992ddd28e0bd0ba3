"""Reads the text of TTIR that Triton prints. Each operation is on a line of its own; regions are indented blocks.

Names are scoped by region, and come again in other regions. Locations are at the end of a line, most of them names
that are explained at the end of the module. Of a function that was inlined, the line is the one of the kernel that
called it.
"""

from __future__ import annotations

import re

from sley.runtime.frameworks.from_triton.refusal import REASONS, UNKNOWN, TritonRefused, refuse
from sley.runtime.frameworks.from_triton.syntax import (
    attributes_in,
    number_in,
    result_types,
    split_location,
    split_types,
    type_of,
    types_in,
)
from sley.runtime.frameworks.from_triton.ttir import (
    Operation,
    Place,
    Region,
    TritonFunction,
    TritonType,
    TritonValue,
)

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_OPERATION = re.compile(
    r'^(?:(?P<results>%[\w.$-]+)(?::(?P<count>\d+))? = )?"?(?P<name>[a-z]\w*\.[\w.]+)"?(?P<rest>.*)$'
)
_FUNCTION = re.compile(r"^tt\.func (?:public |private )?@([\w.$-]+)\((.*?)\)(?: ->.*?)?(?: attributes .*)? \{$")
_FOR = re.compile(
    r"^(?P<variable>%[\w.$-]+) = (?P<lower>%\S+) to (?P<upper>%\S+) step (?P<step>%\S+)"
    r"(?: iter_args\((?P<carried>.*?)\) -> \(.*\))?\s*(?:: (?P<type>\w+) )?\{$"
)
_NAME = re.compile(r"%[\w.$-]+(?:#\d+)?")
_ARGUMENT = re.compile(r"(%[\w.$-]+): (.*?)(?: loc\((?:[^()]|\([^()]*\))*\))?(?=, %|$)")


def read_ttir(text: str) -> TritonFunction:
    """The kernel of a module. Raises ``TritonRefused`` for what is no TTIR, or has no kernel or several."""
    functions = _Reader(text).functions()
    if len(functions) != 1:
        names = ", ".join(function.name for function in functions) or "none"
        raise TritonRefused(f"the module has the functions {names}; it has one: run Triton's inliner before")
    return functions[0]


class _Reader:
    """The lines of a module, one after the other; ``scopes``: values by name, the innermost region last."""

    def __init__(self, text: str) -> None:
        self.lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.aliases = {match[1]: match[2] for line in self.lines if (match := _ALIAS.match(line))}
        self.lines = [line for line in self.lines if not line.startswith("#")]
        self.at = 0
        self.scopes: list[dict[str, TritonValue]] = []

    def functions(self) -> list[TritonFunction]:
        found = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.startswith("tt.func"):
                found.append(self._function(line))
            elif not re.match(r"^(module\b.*\{|\}.*)$", line):
                raise TritonRefused(f"{line!r} is no line of TTIR outside of a function")
        return found

    def _function(self, line: str) -> TritonFunction:
        match = _FUNCTION.match(line)
        if not match:
            raise TritonRefused(f"{line!r} is no head of a function of TTIR")
        self.scopes.append({})
        arguments = self._arguments(re.sub(r" \{[^}]*\}", "", match[2]))
        blocks: dict[str, Region] = {}
        body = self._region(Region(arguments), blocks)
        return TritonFunction(match[1], arguments, body, blocks)

    def _arguments(self, text: str) -> list[TritonValue]:
        made = []
        for name, type in _ARGUMENT.findall(text):
            made.append(self._define(name, type_of(type)))
        return made

    def _define(self, name: str, type: TritonType) -> TritonValue:
        value = self.scopes[-1][name] = TritonValue(type, name[1:])
        return value

    def _value(self, name: str) -> TritonValue:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise TritonRefused(f"{name} has no value where it is used")

    def _region(self, region: Region, blocks: dict[str, Region] | None = None) -> Region:
        """Operations up to the line that closes the region, which is the next one then. ``blocks``: where those go that
        have a label, of a function."""
        first = region
        while True:
            if self.at >= len(self.lines):
                raise TritonRefused("the module ends inside of a region")
            line = self.lines[self.at]
            if line.startswith("}"):
                self.scopes.pop()
                return first
            self.at += 1
            if line.startswith("^"):
                line = line.partition("  //")[0]
                arguments = self._arguments(line[line.index("(") + 1 : line.rindex(")")] if "(" in line else "")
                if blocks is None:
                    region.arguments = arguments
                else:
                    region = blocks[line.split("(")[0].rstrip(":")] = Region(arguments)
            else:
                region.operations.append(self._operation(line))

    def _operation(self, line: str) -> Operation:
        line, location = split_location(line)
        match = _OPERATION.match(line)
        if not match:
            raise TritonRefused(f"{line!r} is no operation of TTIR that is known")
        name, rest = match["name"], match["rest"].strip()
        operation = Operation(name, [], [])
        if name == "scf.for":
            types = self._for(operation, rest)
        elif name == "scf.if":
            types = self._if(operation, rest)
        elif rest.endswith("({"):
            types = self._generic(operation, rest)
        elif rest.endswith("{"):
            operation.place = self._place(self._end_of_region())
            raise refuse(operation, REASONS.get(name, UNKNOWN))
        else:
            types = self._plain(operation, rest)
        if operation.regions:
            line, location = split_location(self.lines[self.at - 1])
        operation.place = self._place(location)
        if match["results"]:
            operation.results = self._results(match["results"], int(match["count"] or 0), types)
        return operation

    def _results(self, name: str, count: int, types: list[TritonType]) -> list[TritonValue]:
        if not count:
            return [self._define(name, types[0])]
        made = [TritonValue(type, f"{name[1:]}#{number}") for number, type in enumerate(types)]
        self.scopes[-1] |= {f"{name}#{number}": value for number, value in enumerate(made)}
        return made

    def _for(self, operation: Operation, rest: str) -> list[TritonType]:
        match = _FOR.match(rest)
        if not match:
            raise TritonRefused(f"scf.for {rest!r} is no loop of TTIR that is known")
        bounds = [self._value(match[name]) for name in ("lower", "upper", "step")]
        pairs = [part.split(" = ") for part in (match["carried"] or "").split(", ") if part]
        begin = [self._value(value) for _, value in pairs]
        operation.operands = [*bounds, *begin]
        self.scopes.append({})
        arguments = [self._define(match["variable"], bounds[0].type)]
        arguments += [self._define(name, value.type) for (name, _), value in zip(pairs, begin, strict=True)]
        operation.regions = [self._region(Region(arguments))]
        self.at += 1
        return [value.type for value in begin]

    def _if(self, operation: Operation, rest: str) -> list[TritonType]:
        condition = _NAME.match(rest)
        assert condition
        operation.operands = [self._value(condition[0])]
        types = types_in(rest.partition("->")[2].rstrip("{").strip()) if "->" in rest else []
        self.scopes.append({})
        operation.regions = [self._region(Region())]
        if self.lines[self.at].startswith("} else"):
            self.at += 1
            self.scopes.append({})
            operation.regions.append(self._region(Region()))
        self.at += 1
        return types

    def _generic(self, operation: Operation, rest: str) -> list[TritonType]:
        """An operation in MLIR's general form: operands, properties, regions, and its type behind them."""
        head = rest[: -len("({")]
        operation.operands = [self._value(name) for name in _NAME.findall(head)]
        operation.attributes = attributes_in(head)
        while True:
            self.scopes.append({})
            operation.regions.append(self._region(Region()))
            end = self.lines[self.at]
            self.at += 1
            if not end.startswith("}, {"):
                break
        end, _ = split_location(end)
        return types_in(end.partition("->")[2])

    def _plain(self, operation: Operation, rest: str) -> list[TritonType]:
        head, types = split_types(rest)
        bare = re.sub(r"<?\{[^}]*\}>?", "", head)
        operation.operands = [self._value(name) for name in _NAME.findall(bare)]
        operation.attributes = attributes_in(head)
        words = bare.replace(",", " ").split()
        if operation.name in ("arith.cmpi", "arith.cmpf"):
            operation.attributes["predicate"] = words[0]
        elif operation.name in ("tt.get_program_id", "tt.get_num_programs"):
            operation.attributes["axis"] = "xyz".index(words[0])
        elif operation.name in ("cf.br", "cf.cond_br"):
            return self._branch(operation, head)
        elif operation.name == "arith.constant":
            return [self._constant(operation, bare.strip(), types)]
        return result_types(operation, types)

    def _branch(self, operation: Operation, head: str) -> list[TritonType]:
        """Where a branch goes, with what it hands on to each block."""
        targets = re.findall(r"(\^\w+)(?:\(([^:)]*)[^)]*\))?", head)
        operation.attributes["targets"] = [label for label, _ in targets]
        operation.attributes["handed"] = [[self._value(name) for name in _NAME.findall(text)] for _, text in targets]
        return []

    def _constant(self, operation: Operation, text: str, types: str) -> TritonType:
        type = type_of(types) if types else TritonType("i1")
        inner = re.match(r"^dense<(.*)>$", text)
        operation.attributes["value"] = number_in(inner[1] if inner else text, type)
        return type

    def _end_of_region(self) -> str:
        """The location behind the region that has begun."""
        depth = 1
        for line in self.lines[self.at :]:
            depth += line.endswith("{") - line.startswith("}")
            if not depth:
                return split_location(line)[1]
        return ""

    def _place(self, location: str) -> Place:
        """The line of the kernel: where a function was called, not where it is."""
        for _ in range(100):
            location = self.aliases.get(location, location)
            file = re.match(r'^"(.*?)":(\d+):\d+', location)
            if file:
                return Place(file[1], int(file[2]))
            call = re.match(r"^callsite\((.*) at (.*)\)$", location)
            named = re.match(r'^"[^"]*"\((.*)\)$', location)
            fused = re.match(r"^fused(?:<.*?>)?\[(.*?)(?:,.*)?\]$", location)
            inner = call[2] if call else named[1] if named else fused[1] if fused else ""
            if not inner:
                break
            location = inner
        return Place()
