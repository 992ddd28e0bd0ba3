"""Verilog of a component as one readable text for each module.

Yosys keeps what the gateware means and loses how a person would say it. This module says it again: ports in the header,
``always @(posedge clk)`` with the conditions in it, plain names, memories cleared by a loop, the meaning of enumerated
values beside their declaration. Names depend on the module alone: on what a signal is called in the gateware and, among
signals of one name, on their order.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from sley.hw.elaboration.emission import TOP
from sley.hw.ip.module_text import IDENTIFIER, Declaration, ModuleText, parse_module
from sley.hw.ip.reserved_words import RESERVED
from sley.hw.ip.shells import instance_of, without_shells
from sley.hw.ip.simplify import TRIGGER_LINE, remove_unread, simplify

WIDTH = 112
WORD = re.compile(r"    (\\\S+ |\w+) ?\[(\d+)\] = ([^;]+);")
LONG_CONSTANT = re.compile(r"(?<='h)0{16,}(?=[0-9a-f])")
START = "at_start"
START_COMMENT = "// Constant; read so that processes run once when a simulation starts."


def readable_modules(verilog: str, ports: Sequence[str]) -> dict[str, str]:
    """Text by module name, top module first; ``ports`` gives the order of its ports besides clock and reset."""
    modules = [parse_module(text) for text in re.split(r"^(?=module )", verilog, flags=re.MULTILINE)[1:]]
    for module in modules:
        simplify(module)
    modules = without_shells(modules)
    for module in modules:
        remove_unread(module)
    names = _unique(module.name for module in modules)
    signals = {module.name: _signal_names(module) for module in modules}
    return {
        names[module.name]: _render(module, names, signals, ports if module.name == TOP else ()) for module in modules
    }


def _plain(name: str) -> tuple[str, tuple[int, ...]]:
    """What a name would be without others, and its numbers, which order it among those."""
    name = name.strip().removeprefix("\\")
    numbers = tuple(int(number) for number in re.findall(r"\$(\d+)", name))
    word = re.sub(r"\W+|_+", "_", re.sub(r"\$\d+", "", name).replace("$", "")).strip("_")
    if re.fullmatch(r"_\d+_", name):  # the output of a memory with a register
        return "read", (int(name.strip("_")),)
    if not word:
        word = "n"
    return (f"{word}_" if word in RESERVED else word), numbers


def _unique(written: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Plain names by written ones."""
    used = {*taken}
    names = {}
    for name in sorted(written, key=lambda name: (_plain(name)[0], len(_plain(name)[1]) > 0, _plain(name)[1], name)):
        plain, _ = _plain(name)
        candidate, number = plain, 1
        while candidate in used or (plain == "n" and number == 1):
            number += 1
            candidate = f"n{number - 1}" if plain == "n" else f"{plain}_{number}"
        used.add(candidate)
        names[name] = candidate
    return names


def _signal_names(module: ModuleText) -> dict[str, str]:
    ports = [name for name, declared in module.declarations.items() if declared.direction]
    triggers = [name for name in module.declarations if name.startswith("\\$auto$verilog_backend")]
    names = _unique(ports, [START])
    inner = [name for name in module.declarations if name not in names and name not in triggers]
    instances = [found[1] for found in map(instance_of, module.statements) if found]
    inner_names = _unique([*inner, *(name for name in instances if name not in inner)], [START, *names.values()])
    return names | inner_names | dict.fromkeys(triggers, START)


def _render(
    module: ModuleText, modules: dict[str, str], signals: dict[str, dict[str, str]], order: Sequence[str]
) -> str:
    names = signals[module.name]

    def rename(text: str) -> str:
        text = IDENTIFIER.sub(lambda found: names.get(found[0], found[0]), text)
        text = LONG_CONSTANT.sub("", text)
        text = re.sub(r"([~!]) (?=[\w(~!])", r"\1", text)
        return re.sub(r"(?<=\w) +(?=[;)\[\],])", "", text)

    ports = [declared for declared in module.declarations.values() if declared.direction]
    first = ["clk", "rst", *order]
    ports.sort(key=lambda port: first.index(port.name) if port.name in first else len(first))
    triggered = any(TRIGGER_LINE.search(statement) for statement in module.statements)
    path = re.sub(r"\$\d+", "", module.name)
    lines = [f"// {path}", f"module {modules[module.name]} ("]
    lines += [f"    {_declaration(port, names[port.name], port is not ports[-1])}".rstrip() for port in ports]
    lines += [");", ""]
    if triggered:
        lines += [f"  {START_COMMENT}", f"  reg {START} = 1'b0;"]
    inner = [d for name, d in module.declarations.items() if not d.direction and names[name] != START]
    lines += sorted((f"  {_declaration(d, names[d.name])}" for d in inner), key=_natural)
    lines.append("")
    for statement in module.statements:
        if instance := instance_of(statement):
            kind, name, connections = instance
            text = "\n".join(
                [
                    f"  {modules[kind]} {rename(name).strip()} (",
                    ",\n".join(
                        f"    .{signals[kind][port]}({rename(value).strip()})" for port, value in connections.items()
                    ),
                    "  );",
                ]
            )
        elif statement.startswith("  initial begin"):
            text = _initial(statement, rename)
        else:
            text = rename(TRIGGER_LINE.sub(f"    if ({START}) begin end\n", statement))
        lines += [part for line in text.splitlines() for part in _wrap(line)]
    return "\n".join([*lines, "endmodule", ""])


def _natural(line: str) -> list[tuple[int, str]]:
    """Order by the name that is declared, numbers by value."""
    name = re.findall(r"(\w+)(?: \[\d+:0\])?(?: =.*)?;", line)[0]
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _declaration(declared: Declaration, name: str, more: bool | None = None) -> str:
    """One line; ``more`` for ports only: whether another one follows."""
    words = [declared.direction, declared.kind, "signed" if declared.signed else ""]
    words += [f"[{declared.width - 1}:0]" if declared.width > 1 else "", name]
    words += [
        f"[{declared.rows - 1}:0]" if declared.rows else "",
        f"= {declared.init.strip()}" if declared.init else "",
    ]
    end = ";" if more is None else "," if more else ""
    meanings = ", ".join(f"{value} {meaning}" for value, meaning in declared.meanings)
    comment = f"  // {meanings}" if meanings else ""
    return " ".join(word for word in words if word) + end + comment


def _initial(statement: str, rename: Callable[[str], str]) -> str:
    """The contents of a memory; one loop if all words are the same."""
    words = [WORD.fullmatch(line) for line in statement.splitlines()[1:-1]]
    values = {word[3] for word in words if word}
    if not all(words) or len(values) > 1 or [int(word[2]) for word in words if word] != [*range(len(words))]:
        return rename(statement)
    memory = rename(words[0][1] + " " if words[0] else "").strip()
    value = values.pop()
    return (
        f"  initial begin : initial_{memory}\n    integer row;\n"
        f"    for (row = 0; row < {len(words)}; row = row + 1) {memory}[row] = {value};\n  end"
    )


def _wrap(line: str) -> list[str]:
    """Long lists over several lines."""
    if len(line) <= WIDTH or ", " not in line or line.lstrip().startswith("//"):
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    lines, current = [], ""
    for part in re.split(r"(?<=, )", line):
        if current.strip() and len(current) + len(part) > WIDTH:
            lines.append(current.rstrip())
            current = indent
        current += part
    return [*lines, current]
