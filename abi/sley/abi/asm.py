"""Text form of programs: assembler and disassembler.

One instruction a line; ``;`` starts a comment; ``name:`` labels the next instruction. Operands are registers
(``r0`` to ``r31``), immediates (``#12``, ``#-1``, ``#0xff``) and labels (or plain instruction indices); what is
left are ``key=value`` pairs, given only where they differ from zero::

    loop   r10, last                  ; target: the last instruction of the body
    load   r8, r12, r13 step=r14 signal=0
    set    load.run_bytes, #64
    last:
    matmul r12, r20, r13 accumulate=1 wait=0,1 signal=2
    add    r8, r8, #64
    end

``step`` is the register that a unit instruction adds to its first operand after issue.
"""

import re
from collections.abc import Iterable
from enum import IntEnum

from sley.abi.config import MAX_CHAINS
from sley.abi.errors import SleyError
from sley.abi.faults import Unit
from sley.abi.instructions import (
    FORMATS,
    INSTRUCTION_BYTES,
    REGISTERS,
    SEMAPHORES,
    InstructionFormat,
    Op,
    decode,
    encode,
)
from sley.abi.layout import LayoutError
from sley.abi.parameters import PARAMS, Param
from sley.abi.vector.chains import CHAIN_PARAM, CHAIN_WORDS, WORDS, WORDS_KEPT, chain_parameter

_WORD_NAMES = [word.name.removeprefix("CHAIN_") for word in WORDS]
_CHAIN_WORD = re.compile(rf"CHAIN(\d+)_({'|'.join(_WORD_NAMES)})")
"""Parameters that are words of chains: ``vector.chain1_front``, ``vector.chain1_tail``, ``vector.chain1_operands``."""


class AsmError(SleyError, ValueError):
    """A line of assembly that cannot be translated; the message names the line."""


def assemble(text: str) -> list[int]:
    """Instruction words of a program. Raises ``AsmError`` naming the first bad line."""
    labels: dict[str, int] = {}
    lines: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split(";")[0].strip()
        while ":" in line:
            label, line = (part.strip() for part in line.split(":", 1))
            if not label.isidentifier():
                raise AsmError(f"line {number}: {label!r} is not a label; use letters, digits and _")
            if label in labels:
                raise AsmError(f"line {number}: label {label!r} is defined twice")
            labels[label] = len(lines)
        if line:
            lines.append((number, line))
    words = []
    for number, line in lines:
        try:
            words.append(_assemble_line(line, labels))
        except (LayoutError, AsmError) as error:
            raise AsmError(f"line {number}: {error}") from None
    return words


def disassemble(words: Iterable[int]) -> str:
    """Text of a program that ``assemble`` turns back into the same words. A word that is not an instruction
    becomes a comment line."""
    words = list(words)
    decoded: list[tuple[Op, dict[str, int]] | LayoutError] = []
    for word in words:
        try:
            decoded.append(decode(word))
        except LayoutError as error:
            decoded.append(error)
    targets = {d[1]["target"] for d in decoded if not isinstance(d, LayoutError) and "target" in d[1]}
    lines = []
    for index, item in enumerate(decoded):
        if index in targets:
            lines.append(f"L{index}:")
        if isinstance(item, LayoutError):
            lines.append(f"    ; {index}: {words[index]:#034x} is no instruction: {item}")
        else:
            lines.append("    " + _disassemble_one(*item, count=len(words)))
    return "\n".join(lines) + "\n"


def words_to_bytes(words: Iterable[int]) -> bytes:
    """The program as it stands in memory."""
    return b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in words)


def bytes_to_words(data: bytes) -> list[int]:
    """Inverse of ``words_to_bytes``. Raises ``ValueError`` when the length is no multiple of an instruction."""
    if len(data) % INSTRUCTION_BYTES:
        raise ValueError(f"{len(data)} bytes are no program: the length must be a multiple of {INSTRUCTION_BYTES}")
    return [int.from_bytes(data[i : i + INSTRUCTION_BYTES], "little") for i in range(0, len(data), INSTRUCTION_BYTES)]


def _operands(form: InstructionFormat) -> list[str]:
    """Positional operands in text order; unit instructions name rd as ``step``."""
    scalar = "wait" not in form.fields
    order = ["rd", "ra", "rb", "rc", "target"] if scalar else ["ra", "rb", "rc"]
    return [name for name in order if name in form.fields]


def _flag_enum(form: InstructionFormat, name: str) -> type[IntEnum] | None:
    return form.layout.fields[name].field.enum


def _assemble_line(line: str, labels: dict[str, int]) -> int:
    mnemonic, _, rest = line.partition(" ")
    try:
        op = Op[mnemonic.upper()]
    except KeyError:
        raise AsmError(f"no instruction {mnemonic!r}; there are {', '.join(o.name.lower() for o in Op)}") from None
    form = FORMATS[op]
    tokens = rest.replace(" = ", "=").split()
    pairs = [t for t in tokens if "=" in t]
    first_pair = tokens.index(pairs[0]) if pairs else len(tokens)
    operands = [o.strip() for o in " ".join(tokens[:first_pair]).split(",") if o.strip()]
    values: dict[str, int] = {}
    if op is Op.SET:
        if not operands:
            raise AsmError("set needs unit.parameter and a value")
        values.update(_parameter(operands.pop(0)))
    names = _operands(form)
    if len(operands) != len(names):
        raise AsmError(f"{mnemonic} takes {len(names)} operands ({', '.join(names)}), got {len(operands)}")
    for name, text in zip(names, operands, strict=True):
        if name == "target":
            values["target"] = labels[text] if text in labels else _number(text, "label or index")
        elif text.startswith("#"):
            if form.immediate_replaces != name:
                raise AsmError(f"{mnemonic} cannot take an immediate for {name}")
            value = _number(text[1:], "immediate")
            if not -(1 << 31) <= value < 1 << 32:
                raise AsmError(f"immediate {value} does not fit into 32 bits")
            values["use_imm"], values["imm"] = 1, value - (1 << 32) if value >= 1 << 31 else value
        else:
            values[name] = _register(text)
    for pair in tokens[first_pair:]:
        values.update(_pair(form, pair))
    return encode(op, **values)


def _pair(form: InstructionFormat, pair: str) -> dict[str, int]:
    key, _, value = pair.partition("=")
    if key == "step" and "wait" in form.fields and "rd" in form.fields:
        return {"rd": _register(value)}
    if key in ("wait", "signal") and key in form.fields:
        mask = 0
        for item in value.split(","):
            number = _number(item, "semaphore")
            if not 0 <= number < SEMAPHORES:
                raise AsmError(f"semaphore {number} is outside 0..{SEMAPHORES - 1}")
            mask |= 1 << number
        return {key: mask}
    if key in form.flags and form.op is not Op.SET:
        enum = _flag_enum(form, key)
        if enum is not None and value.upper() in enum.__members__:
            return {key: enum[value.upper()].value}
        return {key: _number(value, key)}
    raise AsmError(f"{form.op.name.lower()} has no {key!r}")


def _parameter(text: str) -> dict[str, int]:
    unit_name, _, param_name = text.upper().partition(".")
    chain = _CHAIN_WORD.fullmatch(param_name) if unit_name == "VECTOR" else None
    if chain:
        number, word = int(chain[1]), _WORD_NAMES.index(chain[2])
        if not 1 <= number <= MAX_CHAINS:
            raise AsmError(f"chain {number} is outside 1..{MAX_CHAINS}")
        return {"unit": Unit.VECTOR, "param": chain_parameter(number, word)}
    if unit_name not in Unit.__members__ or param_name not in Param.__members__:
        raise AsmError(f"{text!r} is no unit.parameter")
    unit, param = Unit[unit_name], Param[param_name]
    if unit not in PARAMS[param].units:
        raise AsmError(f"unit {unit_name.lower()} has no parameter {param_name.lower()}")
    return {"unit": unit, "param": param}


def _parameter_name(unit: int, param: int) -> str:
    """The text of a parameter. Raises ``ValueError`` if there is none of this number."""
    chain, word = divmod(param - CHAIN_PARAM, WORDS_KEPT)
    if unit == Unit.VECTOR and 1 <= chain <= MAX_CHAINS and word < CHAIN_WORDS:
        return f"vector.chain{chain}_{_WORD_NAMES[word]}".lower()
    return f"{Unit(unit).name}.{Param(param).name}".lower()


def _register(text: str) -> int:
    if text[:1] == "r" and text[1:].isdigit() and int(text[1:]) < REGISTERS:
        return int(text[1:])
    raise AsmError(f"{text!r} is no register; there are r0 to r{REGISTERS - 1}")


def _number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise AsmError(f"{text!r} is no {what}") from None


def _disassemble_one(op: Op, fields: dict[str, int], count: int) -> str:
    form = FORMATS[op]
    operands = []
    if op is Op.SET:
        try:
            operands.append(_parameter_name(fields["unit"], fields["param"]))
        except ValueError as error:
            return f"; set of an unknown parameter: {error}"
    for name in _operands(form):
        if name == "target":
            operands.append(f"L{fields[name]}" if fields[name] < count else str(fields[name]))
        elif form.immediate_replaces == name and fields["use_imm"]:
            operands.append(f"#{fields['imm']}")
        else:
            operands.append(f"r{fields[name]}")
    pairs = []
    if "wait" in form.fields and fields.get("rd"):
        pairs.append(f"step=r{fields['rd']}")
    for key in form.flags if op is not Op.SET else ():
        if fields[key] != form.layout.fields[key].field.reset:
            enum = _flag_enum(form, key)
            known = enum is not None and fields[key] in enum._value2member_map_
            pairs.append(f"{key}={enum(fields[key]).name.lower() if enum and known else fields[key]}")
    for key in ("wait", "signal"):
        if fields.get(key):
            pairs.append(f"{key}=" + ",".join(str(i) for i in range(SEMAPHORES) if fields[key] >> i & 1))
    return " ".join([f"{op.name.lower():<7}", ", ".join(operands), *pairs]).rstrip()
