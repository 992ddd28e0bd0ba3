"""Values of scalar code: as expressions, or as names of what was computed before."""

from collections.abc import Sequence

from sley.sim.fast.emit.expressions import literal, mask, narrow
from sley.sim.fast.emit.function import Function
from sley.sim.fast.emit.gather import SHORT_RUN
from sley.sim.fast.optimise.machine_types import WIDTHS, words
from sley.sim.fast.read.netlist import WORD


class Scalars:
    """Values that a fragment's function uses one by one; ``known`` are those with a name in it."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: dict[int, str] = {}
        self._design = function.design
        self._elements = function.elements

    def operand(self, value: int) -> str:
        """A value as an expression, or the name of an array of words if it is wide."""
        elements = self._elements
        if value in self.known:
            return self.known[value]
        width = elements.width[value]
        if elements.op[value] == "const":
            number = elements.parameter[value]
            return literal(number, width) if width <= WORD else self._wide_constant(number, width)
        if value in self._design.places:
            return str(self._design.places[value])
        self.compute(value)  # a cheap one
        return self.known[value]

    def _wide_constant(self, number: int, width: int) -> str:
        name = self.function.name("k")
        parts = ", ".join(f"{number >> 64 * word & (1 << 64) - 1:#x}ull" for word in range(words(width)))
        self.function.lines.append(f"static const u64 {name}[] = {{{parts}}};")
        return name

    def compute(self, value: int) -> None:
        """Writes the statements that make a value; it then has a name."""
        elements = self._elements
        width, op = elements.width[value], elements.op[value]
        operands = elements.operands[value]
        widths = [elements.width[operand] for operand in operands]
        if op == "read":
            expression = self._memory_read(value)
        elif width > WORD or any(size > WORD for size in widths):
            self._compute_wide(value)
            return
        else:
            kind = "u32" if width <= 32 else "u64"
            if op in ("lts", "les", "ltu", "leu", "eq", "ne", "parity"):
                kind = "u32"
            texts = [self.operand(operand) for operand in operands]
            expression = narrow(op, width, elements.parameter[value], texts, widths, kind)
        kind = "u32" if width <= 32 else "u64"
        self.known[value] = f"v{value}"
        self.function.lines.append(f"const {kind} v{value} = {expression};")

    def _memory_read(self, value: int) -> str:
        elements, net = self._elements, self._design.net
        segment = elements.parameter[value]
        number = net.segments[segment].memory
        depth = net.memories[number].depth
        (address_value,) = elements.operands[value]
        address = self.operand(address_value)
        strip, count, position = self._design.strips[segment]
        inside = f"s->{strip.name}[(u64){address} * {count} + {position}]"
        if depth >= 1 << elements.width[address_value]:
            return inside
        return f"({address} < {depth}u ? {inside} : 0)"

    def _compute_wide(self, value: int) -> None:
        elements = self._elements
        op, width, parameter = elements.op[value], elements.width[value], elements.parameter[value]
        operands = elements.operands[value]
        widths = [elements.width[operand] for operand in operands]
        name = f"v{value}"
        narrow_result = {
            "slice": lambda: f"w_pick({self.operand(operands[0])}, {widths[0]}, {parameter}) & {mask(width)}",
            "pick": lambda: (
                f"w_pick({self.operand(operands[0])}, {widths[0]}, (u64){self.operand(operands[1])} + {parameter})"
                f" & {mask(width)}"
            ),
            "eq": lambda: f"w_eq({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "ne": lambda: f"!w_eq({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "ltu": lambda: f"w_ltu({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "leu": lambda: f"!w_ltu({self.operand(operands[1])}, {self.operand(operands[0])}, {widths[0]})",
            "lts": lambda: f"w_lts({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "les": lambda: f"!w_lts({self.operand(operands[1])}, {self.operand(operands[0])}, {widths[0]})",
            "parity": lambda: f"w_parity({self.operand(operands[0])}, {widths[0]})",
        }
        if width <= WORD:
            kind = "u32" if width <= 32 else "u64"
            expression = narrow_result[op]()
            self.function.lines.append(f"const {kind} {name} = ({kind})({expression});")
            self.known[value] = name
            return
        lines = [f"u64 {name}[{words(width)}];"]
        if op == "concat":
            lines[0] = f"u64 {name}[{words(width)}] = {{0}};"
            lines += self._pack(name, operands)
        elif op == "mux":
            select, if_0, if_1 = (self.operand(operand) for operand in operands)
            lines.append(f"memcpy({name}, {select} ? {if_1} : {if_0}, sizeof {name});")
        elif op == "sext":
            inner = self._as_wide(operands[0])
            lines.append(f"w_sext({name}, {width}, {inner}, {widths[0]});")
        elif op == "slice":
            lines.append(f"w_slice({name}, {width}, {self.operand(operands[0])}, {widths[0]}, {parameter});")
        elif op in ("shl", "shr", "sar"):
            a, amount = (self.operand(operand) for operand in operands)
            lines.append(f"w_{op}({name}, {width}, {a}, {amount});")
        else:
            arguments = ", ".join(self.operand(operand) for operand in operands)
            lines.append(f"w_{op}({name}, {width}, {arguments});")
        self.function.lines += lines
        self.known[value] = name

    def _as_wide(self, value: int) -> str:
        """An operand of any width as an array of words."""
        text = self.operand(value)
        if self._elements.width[value] > WORD:
            return text
        name = self.function.name("x")
        self.function.lines.append(f"const u64 {name}[1] = {{{text}}};")
        return name

    def _pack(self, name: str, parts: Sequence[int]) -> list[str]:
        """Statements that put parts into an array of words which is zero."""
        elements = self._elements
        lines: list[str] = []
        low = index = 0
        while index < len(parts):
            part = parts[index]
            width = elements.width[part]
            count = self._run_length(parts, index)
            if count >= SHORT_RUN and width in WIDTHS and low % 8 == 0:
                place = self._design.places[part]
                lines.append(f"memcpy((u8*){name} + {low // 8}, &{place}, {count * width // 8});")
            elif count >= SHORT_RUN:
                place = self._design.places[part]
                put = f"w_put({name}, {low} + i * {width}, {width}, s->{place.name}[{place.index} + i])"
                lines.append(f"for (unsigned i = 0; i < {count}; i++) {put};")
            elif elements.op[part] != "const" or elements.parameter[part]:
                put = "w_put" if width <= WORD else "w_put_wide"
                lines.append(f"{put}({name}, {low}, {width}, {self.operand(part)});")
                count = 1
            else:
                count = 1
            low += sum(elements.width[other] for other in parts[index : index + count])
            index += count
        return lines

    def _run_length(self, parts: Sequence[int], start: int) -> int:
        """How many parts from here on lie side by side in one array of the state."""
        places = self._design.places
        first = places.get(parts[start])
        if first is None or first.index < 0 or parts[start] in self.known:
            return 1
        width = self._elements.width[parts[start]]
        count = 1
        while start + count < len(parts):
            part = parts[start + count]
            place = places.get(part)
            if place is None or self._elements.width[part] != width or part in self.known:
                break
            if (place.name, place.index) != (first.name, first.index + count):
                break
            count += 1
        return count
