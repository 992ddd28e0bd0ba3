"""What a person would not have written, out of a module that Yosys wrote. Behaviour stays the same in every cycle.

* A register's next value, which Yosys computes in a process of its own, moves into the clocked process.
* A process that only copies becomes an assignment.
* Wires that nothing reads go.
* A condition that is used once goes where it is used.
"""

import re
from collections import Counter

from sley.hw.ip.module_text import Declaration, ModuleText, identifiers

CLOCKED = re.compile(r"  always @\(posedge clk\)\n    (\\\S+ |\w+) *<= (\\\$\d+ );")
PROCESS = "  always @* begin\n"
TRIGGER_LINE = re.compile(r"    if \((\\\$auto\$\S+ )\) begin end\n")
TARGET = re.compile(r"( *)((?:\\\S+ |\w+)(?: *\[[\d:]+\])?|\{[^=]*\}) *= (.*;)")
COPY = re.compile(r"  always @\* begin\n    ([^=\n]+?) = ([^\n]*);\n  end")
ASSIGN = re.compile(r"  assign (.*?) = (.*);", re.DOTALL)
TEMPORARY = re.compile(r"\\\$\d+ ")
COPIED = re.compile(r" +((?:\\\S+ |\w+)(?: ?\[\d+\])?) *<?= (\\\$\d+ );")
UNFIT = re.compile(r"[~!<>=(]|^[&|^]")
"""Not the operands of one operator, which needs no parentheses inside of another of its kind."""
LONGEST = 100
"""Characters of a line into which something is inlined."""


def simplify(module: ModuleText) -> None:
    """Rewrites the module."""
    _merge_registers(module)
    _copies(module)
    remove_unread(module)
    module.statements = [_compare(statement, module.declarations) for statement in module.statements]
    _inline(module)


def _merge_registers(module: ModuleText) -> None:
    uses = Counter(name for statement in module.statements for name in identifiers(statement))
    processes = {}
    for index, statement in enumerate(module.statements):
        if statement.startswith(PROCESS):
            first = TRIGGER_LINE.sub("", statement).splitlines()[1]
            processes[identifiers(first)[0]] = index
    merged: set[int] = set()
    for index, statement in enumerate(module.statements):
        found = CLOCKED.fullmatch(statement)
        if not found or found[2] not in processes:
            continue
        register, following = found[1], found[2]
        process = TRIGGER_LINE.sub("", module.statements[processes[following]])
        if uses[following] != identifiers(process).count(following) + 1:
            continue  # something else looks at the next value
        lines = _clocked(process.splitlines()[1:-1], register, following)
        if lines is None:
            continue
        if len(lines) == 1:
            module.statements[index] = f"  always @(posedge clk)\n{lines[0]}"
        else:
            module.statements[index] = "\n".join(["  always @(posedge clk) begin", *lines, "  end"])
        merged.add(processes[following])
        del module.declarations[following]
    module.statements = [text for index, text in enumerate(module.statements) if index not in merged]


def _clocked(lines: list[str], register: str, following: str) -> list[str] | None:
    """The lines of a process with the register as their target, or None if that is not possible."""
    result = []
    for number, line in enumerate(lines):
        found = TARGET.fullmatch(line)
        if following not in identifiers(line):
            if found:
                return None  # a second target
            result.append(line)
        elif not found or following in identifiers(found[3]) or {*identifiers(found[2])} != {following}:
            return None
        elif number or found[3].removesuffix(";").rstrip() != register.rstrip():
            result.append(f"{found[1]}{found[2].replace(following, register)} <= {found[3]}")
    return result


def _copies(module: ModuleText) -> None:
    """Processes with one unconditional assignment, if the target has no other kind of process."""
    plain = {}
    written: Counter[str] = Counter()
    for index, statement in enumerate(module.statements):
        if statement.startswith("  always"):
            text = TRIGGER_LINE.sub("", statement)
            found = COPY.fullmatch(text)
            if found:
                plain[index] = found
            else:
                written.update({*identifiers(text)})
    for index, found in plain.items():
        targets = identifiers(found[1])
        if not any(written[name] for name in targets):
            module.statements[index] = f"  assign {found[1]} = {found[2]};"
            for name in targets:
                module.declarations[name].kind = "wire"
                module.declarations[name].init = ""


def remove_unread(module: ModuleText) -> None:
    """Assignments to wires that nothing reads, and declarations that nothing mentions."""
    read: Counter[str] = Counter()
    sources: dict[int, tuple[list[str], list[str]]] = {}
    for index, statement in enumerate(module.statements):
        if found := ASSIGN.fullmatch(statement):
            sources[index] = identifiers(found[1]), identifiers(found[2])
            read.update(sources[index][1])
        else:
            read.update(identifiers(statement))

    def is_dead(name: str) -> bool:
        return not read[name] and not module.declarations[name].direction

    removed: set[int] = set()
    changed = True
    while changed:
        dead = [index for index, (targets, _) in sources.items() if all(map(is_dead, targets))]
        for index in dead:
            read.subtract(sources.pop(index)[1])
        removed.update(dead)
        changed = bool(dead)
    module.statements = [text for index, text in enumerate(module.statements) if index not in removed]
    used = {name for statement in module.statements for name in identifiers(statement)}
    module.declarations = {
        name: declared for name, declared in module.declarations.items() if declared.direction or name in used
    }


BIT = r"(?:\\\S+ |\w+)(?: ?\[\d+\])?|1'h[01]"
BIT_OPERATION = re.compile(rf"(?:~ ?)?(?:{BIT}) ?(?:([&|^]) (?:{BIT}))? ?")
OPERAND = r"(?:(?:\\\S+ |[A-Za-z_][\w$]*)(?: ?\[[\d:]+\])?|\d+'[hd][0-9a-f]+)"
COMPARISON = re.compile(rf"{OPERAND} ?(?:==|!=|<=|>=|<|>) {OPERAND} ?|[&^] {OPERAND} ?")
EQUALITY = re.compile(rf"({OPERAND} ?)(==|!=)( {OPERAND} ?)")


TEST = re.compile(rf"(  assign .* = )([!|]) ({OPERAND} ?);")
WITH_CONSTANT = re.compile(rf"(  assign .* = )({OPERAND} ?)(==|!=|<=|>=|<|>) (\d+)'([hd][0-9a-f]+);")


def _compare(statement: str, declarations: dict[str, Declaration]) -> str:
    """Tests of a word as comparisons, constants as wide as what they are compared with."""
    if found := TEST.fullmatch(statement):
        start, operator, operand = found.groups()
        width = _width(operand, declarations)
        if width == 1:
            return f"{start}{'~ ' if operator == '!' else ''}{operand};"
        space = "" if operand.endswith(" ") else " "
        return f"{start}{operand}{space}{'==' if operator == '!' else '!='} {width}'h0;"
    if found := WITH_CONSTANT.fullmatch(statement):
        start, operand, operator, width_of_constant, value = found.groups()
        width = max(_width(operand, declarations), int(width_of_constant))
        return f"{start}{operand}{operator} {width}'{value};"
    return statement


def _width(operand: str, declarations: dict[str, Declaration]) -> int:
    base, _, select = operand.partition("[")
    if select:
        high, _, low = select.strip(" ]").partition(":")
        return int(high) - int(low or high) + 1
    if "'" in base:
        return int(base.partition("'")[0])
    return declarations[_name(base)].width


def _name(operand: str) -> str:
    """As the identifier is written in declarations: escaped ones end with a space."""
    return operand.strip() + (" " if operand.startswith("\\") else "")


def _inline(module: ModuleText) -> None:
    """Bits that one place reads; all that is around them there is one bit wide, too, so widths stay what they are."""
    readers: dict[str, Counter[int]] = {}
    drivers: dict[str, list[int]] = {}
    for index, statement in enumerate(module.statements):
        found = ASSIGN.fullmatch(statement)
        for name in identifiers(found[1] if found else ""):
            drivers.setdefault(name, []).append(index)
        for name in identifiers(found[2] if found else statement):
            readers.setdefault(name, Counter())[index] += 1
    bits = {index for index, text in enumerate(module.statements) if _is_bit_operation(text, module.declarations)}
    removed: set[int] = set()
    for name in [name for name in module.declarations if TEMPORARY.fullmatch(name)]:
        places, sources = readers.get(name, Counter()), drivers.get(name, [])
        if module.declarations[name].width != 1 or places.total() != 1 or len(sources) != 1:
            continue
        source, place = sources[0], next(iter(places))
        found = ASSIGN.fullmatch(module.statements[source])
        assert found is not None
        value = found[2]
        if found[1].strip() != name.strip():
            continue
        simple = source in bits
        if not simple and not _is_comparison(value, module.declarations):
            continue
        text = _substitute(module, place, name, value, place in bits)
        if text is None:
            continue
        module.statements[place] = text
        removed.add(source)
        for operand in identifiers(value):
            readers[operand][source] -= 1
            readers[operand] += Counter({place: 1})
        del module.declarations[name]
    module.statements = [text for index, text in enumerate(module.statements) if index not in removed]


def _is_bit(operand: str, declarations: dict[str, Declaration]) -> bool:
    if operand.startswith("1'h"):
        return True
    base, _, select = operand.partition("[")
    declared = declarations.get(_name(base))
    if declared is None or declared.rows:
        return False
    return bool(select) or declared.width == 1


def _is_bit_operation(statement: str, declarations: dict[str, Declaration]) -> bool:
    """An assignment of which both sides and all operands are one bit wide."""
    found = ASSIGN.fullmatch(statement)
    if not found or not re.fullmatch(BIT, found[1]) or not BIT_OPERATION.fullmatch(found[2]):
        return False
    operands = re.findall(BIT, found[2])
    return all(_is_bit(operand, declarations) for operand in [found[1], *operands])


def _is_comparison(value: str, declarations: dict[str, Declaration]) -> bool:
    """Operators that make one bit of operands which determine their width among themselves."""
    signed = any(declarations[name].signed for name in identifiers(value) if name in declarations)
    return not signed and bool(COMPARISON.fullmatch(value))


def _substitute(module: ModuleText, place: int, name: str, value: str, is_bit: bool) -> str | None:
    """The statement with the value in the place of the name; None where that could mean something else, or is long."""
    text = module.statements[place]
    start = text.index(name)
    begin = text.rfind("\n", 0, start) + 1
    end = (text.find("\n", start) + len(text) + 1) % (len(text) + 1)
    line = text[begin:end]
    if len(line) + len(value) - len(name) > LONGEST:
        return None
    unary = f"~ {name}" not in line and bool(re.fullmatch(r"~ ?(?:\\\S+ |\w+)(?: ?\[[\d:]+\])? ?", value))
    if f"if ({name}) begin" in line:
        line = line.replace(f"if ({name})", f"if ({value})")
    elif f"if (!{name}) begin" in line:
        line = line.replace(f"if (!{name})", f"if (!({value}))")
    elif re.search(rf" = {re.escape(name)} ?\? ", line) and line.startswith("  assign "):
        line = line.replace(name, value if unary else f"({value})")
    elif is_bit and f"~ {name}" in line and (opposite := EQUALITY.fullmatch(value)):
        value = f"{opposite[1]}{'!=' if opposite[2] == '==' else '=='}{opposite[3]}"
        line = line.replace(f"~ {name}", value if line.endswith(f" = ~ {name};") else f"({value})")
    elif is_bit:
        alone = line.endswith(f" = {name};")
        operator = {*re.findall(r" ([&|^]) ", line), *re.findall(r" ([&|^]) ", value)}
        flat = len(operator) == 1 and not UNFIT.search(value) and not UNFIT.search(line.split(" = ", 1)[1])
        line = line.replace(name, value if alone or flat or unary else f"({value})")
    elif (found := COPIED.fullmatch(line)) and found[2] == name and _is_bit(found[1], module.declarations):
        line = line.replace(name, value)
    else:
        return None
    return text[:begin] + line + text[end:]
