"""Conditions on a signal that the compiled design itself checks, cycle by cycle.

What the state holds (inputs, outputs, registers) is compared in place. For any other signal its cone of operators
becomes a C function of its own, compiled when it is first used and kept in the cache.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sley.sim.build.cache import cached, digest
from sley.sim.build.toolchain import CCompiler, cpu_features
from sley.sim.fast.emit.expressions import literal, mask, narrow
from sley.sim.fast.emit.manifest import Manifest, Piece
from sley.sim.fast.optimise.machine_types import SIZES, words
from sley.sim.fast.read.netlist import WORD, Netlist
from sley.sim.fast.run.evaluate import cone

WIDE = Path(__file__).parents[1] / "emit" / "wide.h"
_TYPES = {size: kind for kind, size in SIZES.items()}

_Function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)


class _Term(ctypes.Structure):
    _fields_ = [
        ("offset", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    ]


class _Condition(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_uint32),
        ("negate", ctypes.c_uint32),
        ("terms", ctypes.POINTER(_Term)),
        ("function", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Test:
    """``signal & mask == value``, or ``!=`` without ``equal``."""

    __test__ = False  # not one of pytest's

    value: int
    mask: int
    equal: bool

    def describe(self, name: str, width: int) -> str:
        left = name if self.mask == (1 << width) - 1 else f"{name} & {self.mask:#x}"
        return f"{left} {'==' if self.equal else '!='} {self.value:#x}"


class Condition:
    """A test in the form that the C API takes; ``pointer`` is valid as long as this object."""

    def __init__(self, terms: Sequence[tuple[int, int, int, int]], equal: bool, function: Any = None) -> None:
        self._function = function
        self._terms = (_Term * max(1, len(terms)))(*(_Term(*term) for term in terms))
        address = ctypes.cast(function, ctypes.c_void_p) if function else None
        self._raw = _Condition(len(terms), not equal, self._terms, address)
        self.pointer = ctypes.byref(self._raw)


def stored_condition(pieces: Sequence[Piece], test: Test) -> Condition:
    """A condition on a signal that the state holds in these pieces."""
    terms = []
    for piece in pieces:
        for at in range(0, piece.width, WORD):
            low, width = piece.low + at, min(WORD, piece.width - at)
            bits = test.mask >> low & ((1 << width) - 1)
            if bits:
                terms.append((piece.offset + at // 8, min(piece.size, 8), bits, test.value >> low & bits))
    return Condition(terms, test.equal)


def computed_condition(netlist: Netlist, value: int, manifest: Manifest, test: Test) -> Condition:
    """A condition on any value of the netlist. Raises ``BuildError`` without a C compiler."""
    source = _ConeWriter(netlist, manifest).source(value, test)
    compiler = CCompiler.find()
    flags = ("-O1", "-fno-strict-aliasing", "-fvisibility=hidden", "-w", *compiler.flags)
    wide = WIDE.read_bytes()
    key = digest(*compiler.command, compiler.version, *flags, cpu_features(), source, wide)

    def build(output: Path, scratch: Path) -> None:
        path = scratch / "condition.c"
        path.write_text(source)
        (scratch / "wide.h").write_bytes(wide)
        compiler.run("-shared", *flags, path, "-o", output, folder=scratch)

    library = ctypes.CDLL(str(cached("fast", f"{key}.so", build)))
    return Condition((), True, _Function(("condition", library)))


class _ConeWriter:
    """C code for the cone of one value, as a function of the state."""

    def __init__(self, netlist: Netlist, manifest: Manifest) -> None:
        self._net = netlist
        self._manifest = manifest
        self._lines: list[str] = []

    def source(self, value: int, test: Test) -> str:
        net = self._net
        for part in cone(net, [value]):
            if net.width[part] <= WORD:
                if net.op[part] != "const":
                    self._lines.append(f"const u64 v{part} = {self._narrow(part)};")
            else:
                self._wide(part)
        result = self._compare(value, test)
        body = "\n".join(f"  {line}" for line in self._lines)
        return (
            '#include "wide.h"\n__attribute__((visibility("default"))) u64 condition(const u8* s) {\n'
            f"{body}\n  return {result};\n}}\n"
        )

    def _compare(self, value: int, test: Test) -> str:
        width = self._net.width[value]
        if width <= WORD:
            parts = [f"({self._text(value)} & {literal(test.mask, 64)}) == {literal(test.value, 64)}"]
        else:
            parts = []
            for index, low in enumerate(range(0, width, WORD)):
                bits, want = (literal(number >> low & (1 << WORD) - 1, 64) for number in (test.mask, test.value))
                parts.append(f"(v{value}[{index}] & {bits}) == {want}")
        joined = " && ".join(f"({part})" for part in parts)
        return joined if test.equal else f"!({joined})"

    def _text(self, value: int) -> str:
        net = self._net
        if net.op[value] == "const" and net.width[value] <= WORD:
            return literal(net.parameter[value], 64)
        return f"v{value}"

    def _narrow(self, value: int) -> str:
        net = self._net
        op, width, parameter, operands = net.op[value], net.width[value], net.parameter[value], net.operands[value]
        if op == "input":
            return self._pieces(self._manifest.inputs[net.inputs[parameter].name].pieces, 0, width)
        if op == "register":
            register = net.registers[parameter]
            return self._pieces(self._manifest.registers[register.name].pieces, register.low, width)
        if op == "read":
            return self._read(value)
        texts, widths = [self._text(operand) for operand in operands], [net.width[operand] for operand in operands]
        if max(widths) <= WORD:
            if op == "pick":
                return self._pick(texts, width, parameter)
            return narrow(op, width, parameter, texts, widths, "u64")
        size = widths[0]
        if op == "slice":
            return f"w_pick({texts[0]}, {size}, {parameter}) & {mask(width)}"
        if op == "pick":
            return f"w_pick({texts[0]}, {size}, {texts[1]} + {parameter}) & {mask(width)}"
        if op == "parity":
            return f"w_parity({texts[0]}, {size})"
        if op in ("leu", "les"):
            return f"!w_lt{op[2]}({texts[1]}, {texts[0]}, {size})"
        return f"{'!w_eq' if op == 'ne' else 'w_' + op}({texts[0]}, {texts[1]}, {size})"

    def _pick(self, texts: Sequence[str], width: int, parameter: int) -> str:
        return f"({texts[1]} + {parameter} < 64 ? {texts[0]} >> (({texts[1]} + {parameter}) & 63) : 0) & {mask(width)}"

    def _pieces(self, pieces: Sequence[Piece], low: int, width: int, row: str = "") -> str:
        """Bits of a stored signal; ``row`` is added to the address."""
        parts = []
        for piece in pieces:
            start, end = max(low, piece.low), min(low + width, piece.low + piece.width)
            if start < end:
                load = f"(u64)*(const {_TYPES[piece.size]}*)(s + {piece.offset}{row})"
                bits = f"({load} >> {start - piece.low} & {mask(end - start)})"
                parts.append(f"({bits} << {start - low})")
        return " | ".join(parts) or "0"

    def _read(self, value: int) -> str:
        net = self._net
        segment = net.segments[net.parameter[value]]
        place = self._manifest.memories[net.memories[segment.memory].name]
        address = self._text(net.operands[value][0])
        parts = [
            f"({self._pieces([piece], segment.low, segment.width, f' + {address} * {pitch}')})"
            for piece, pitch in zip(place.pieces, place.pitches, strict=True)
            if piece.low < segment.low + segment.width and segment.low < piece.low + piece.width
        ]
        shifted = " | ".join(parts) or "0"
        return f"{address} < {place.depth} ? {shifted} : 0"

    def _wide(self, value: int) -> None:
        net, lines, name = self._net, self._lines, f"v{value}"
        op, width, parameter, operands = net.op[value], net.width[value], net.parameter[value], net.operands[value]
        if op == "const":
            numbers = ", ".join(literal(parameter >> low & (1 << 64) - 1, 64) for low in range(0, width, 64))
            lines.append(f"static const u64 {name}[] = {{{numbers}}};")
            return
        lines.append(f"u64 {name}[{words(width)}] = {{0}};")
        texts, widths = [self._text(operand) for operand in operands], [net.width[operand] for operand in operands]
        if op == "input":
            (piece,) = self._manifest.inputs[net.inputs[parameter].name].pieces
            lines.append(f"memcpy({name}, s + {piece.offset}, sizeof {name});")
        elif op == "concat":
            low = 0
            for text, part in zip(texts, widths, strict=True):
                if part:
                    lines.append(f"w_put{'_wide' if part > WORD else ''}({name}, {low}, {part}, {text});")
                low += part
        elif op == "mux":
            lines.append(f"memcpy({name}, {texts[0]} ? {texts[2]} : {texts[1]}, sizeof {name});")
        elif op == "sext":
            inner = texts[0]
            if widths[0] <= WORD:
                lines.append(f"const u64 x{value}[1] = {{{inner}}};")
                inner = f"x{value}"
            lines.append(f"w_sext({name}, {width}, {inner}, {widths[0]});")
        elif op == "slice":
            lines.append(f"w_slice({name}, {width}, {texts[0]}, {widths[0]}, {parameter});")
        elif op == "pick":
            lines.append(f"w_slice({name}, {width}, {texts[0]}, {widths[0]}, {texts[1]} + {parameter});")
        else:
            lines.append(f"w_{op}({name}, {width}, {', '.join(texts)});")
