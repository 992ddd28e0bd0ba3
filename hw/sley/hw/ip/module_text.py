"""One module of the Verilog that Yosys writes, taken apart into declarations and statements."""

import re
from dataclasses import dataclass, field

IDENTIFIER = re.compile(r"\\\S+ |(?<![\w'$.\\])[A-Za-z_][\w$]*")
_KEYWORDS = """
module endmodule input output wire reg integer assign always posedge initial begin end if else case casez endcase
default for
"""
KEYWORDS = frozenset(_KEYWORDS.split())
DECLARATION = re.compile(
    r"  (?P<kind>wire|reg|input|output) (?:(?P<sign>signed) )?(?:\[(?P<high>\d+):0\] )?(?P<name>\\\S+ |\w+)"
    r"(?: \[(?P<rows>\d+):0\])?(?: *= (?P<init>[^;]+))?;"
)
ENUMERATOR = re.compile(r'enum_value_([01]+) = "(\w+)"')


class TextError(ValueError):
    """A construct that Yosys has not written so far."""


@dataclass
class Declaration:
    """A wire, register or memory."""

    name: str
    kind: str
    width: int
    signed: bool = False
    rows: int = 0
    """Of a memory; 0: it is none."""
    init: str = ""
    direction: str = ""
    """Of a port."""
    meanings: list[tuple[int, str]] = field(default_factory=list)
    """Of its values, if they are enumerated."""


@dataclass
class ModuleText:
    """``statements`` are whole: an assignment, a process, an instance, with their line breaks."""

    name: str
    declarations: dict[str, Declaration]
    statements: list[str]


def identifiers(text: str) -> list[str]:
    """Names in a statement as they are written, keywords left out; ports in connections are none (see ``PORT``)."""
    return [name for name in IDENTIFIER.findall(text) if name not in KEYWORDS]


def parse_module(text: str) -> ModuleText:
    """Takes apart what is between ``module`` and ``endmodule``."""
    header, body = text.split(";\n", 1)
    name = header.removeprefix("module ").split("(")[0].strip().removeprefix("\\")
    module = ModuleText(name, {}, [])
    meanings: list[tuple[int, str]] = []
    lines = iter(body.splitlines())
    for line in lines:
        if line == "endmodule":
            return module
        if line.startswith("  (*"):
            meanings += [(int(value, 2), meaning) for value, meaning in ENUMERATOR.findall(line)]
            continue
        if found := DECLARATION.fullmatch(line):
            _declare(module, found, meanings)
        else:
            statement = [line]
            while not _is_complete(statement):
                statement.append(next(lines))
            module.statements.append(_with_defaults(statement))
        meanings = []
    raise TextError(f"module {name} has no end")


def _with_defaults(lines: list[str]) -> str:
    """The statement with a default for every case: where Yosys leaves it out, it means that nothing is assigned."""
    text, has_default = [], []
    for line in lines:
        word = line.strip()
        if word.startswith("casez "):
            has_default.append(False)
            if not any("?" in item for item in lines):
                line = line.replace("casez", "case", 1)
        elif word == "default:":
            has_default[-1] = True
        elif word == "endcase" and not has_default.pop():
            text.append(f"{line.removesuffix('endcase')}  default: ;")
        if not word.startswith("(* full_case"):
            text.append(line.replace("/* empty */;", ";"))
    return "\n".join(text)


def _declare(module: ModuleText, found: re.Match[str], meanings: list[tuple[int, str]]) -> None:
    name, kind = found["name"], found["kind"]
    width, rows = int(found["high"] or 0) + 1, int(found["rows"]) + 1 if found["rows"] else 0
    old = module.declarations.get(name)
    if kind in ("input", "output"):
        module.declarations[name] = Declaration(name, "wire", width, bool(found["sign"]), direction=kind)
    elif old:
        old.kind, old.init, old.meanings = kind, found["init"] or "", meanings
    else:
        signed, init = bool(found["sign"]), found["init"] or ""
        module.declarations[name] = Declaration(name, kind, width, signed, rows, init, "", meanings)


def _is_complete(statement: list[str]) -> bool:
    first, last = statement[0], statement[-1]
    if first.startswith("  assign "):
        return last.endswith(";")
    if first.startswith(("  always ", "  initial ")):
        if first.endswith(" begin"):
            return last == "  end"
        return len(statement) > 1 and last.endswith(";")
    if first.endswith(" ("):
        return last == "  );"
    raise TextError(f"unknown statement {first!r}")
