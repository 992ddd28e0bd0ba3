"""One loop over the elements of groups that use each other's values."""

from sley.sim.fast.emit.expressions import mask
from sley.sim.fast.emit.loop_operands import LoopOperands
from sley.sim.fast.emit.loop_sinks import LoopSinks
from sley.sim.fast.emit.scalars import Scalars
from sley.sim.fast.optimise.machine_types import BITS, c_type, words
from sley.sim.fast.read.netlist import WORD
from sley.sim.fast.schedule.guards import condition_of_loop
from sley.sim.fast.schedule.loops import LANE_BY_LANE, narrows

UNROLL = 4
"""Vectors that a long loop computes in one round."""


class LoopWriter:
    """Writes a loop of a fragment.

    The loop goes through *slots*, as far apart as the elements lie in memory. Spare slots between elements, and behind
    the last one in an incomplete vector, compute what nobody looks at, from whatever lies at the operands' places. They
    store zeros, or leave what is there if it belongs to somebody else; so arrays have room for whole vectors.
    """

    def __init__(self, scalars: Scalars, groups: list[int]) -> None:
        self._scalars = scalars
        self._function = scalars.function
        self._design = scalars.function.design
        self._elements = scalars.function.elements
        self._groups = groups
        self._operands = LoopOperands(scalars, groups)
        self._sinks = LoopSinks(scalars, groups, self._operands)
        self._vector = self._operands.vector
        self._setup = scalars.function.lines
        self._loose = self._find_loose()

    def write(self) -> list[str]:
        operands = self._operands
        body = [line for number in self._groups for line in self._group(number)]
        self._function.overwritten += operands.overwritten
        slots, lanes = operands.slots, self._vector.lanes
        opening = f"for (int i = 0; i < {slots}; i += {lanes}) {{"
        if operands.downwards and slots > lanes:
            opening = f"for (int i = {slots - lanes}; i >= 0; i -= {lanes}) {{"
        unroll = [f'_Pragma("GCC unroll {UNROLL}")'] if slots >= 2 * UNROLL * lanes else []
        return [
            f"{self._guard()}{{",
            *(f"  {line}" for line in (*operands.opening, *unroll, opening)),
            *(f"    {line}" for line in (*body, *self._sinks.stores)),
            "  }",
            "}",
        ]

    def _guard(self) -> str:
        """What skips a loop whose registers all keep their contents."""
        schedule = self._design.schedule
        found = condition_of_loop(self._elements, self._groups, schedule.in_place, schedule.stored)
        if found is None:
            return ""
        value, holds = found
        return f"if ({'!' if holds else ''}{self._scalars.operand(value)}) "

    def _group(self, number: int) -> list[str]:
        elements, operands, vector = self._elements, self._operands, self._vector
        group = elements.groups[number]
        op, width = group.op, group.width
        if op == "next":
            return self._sinks.next(group.values)
        if op == "write":
            return self._sinks.write(group.values)
        name = f"v{group.values[0]}"
        if op == "read":
            lines = [f"const {vector} {name} = {operands.load(*operands.row(group.values), width)};"]
        else:
            lines = self._compute(name, op, width, group.values)
        operands.known[group.values] = name
        if number in self._design.schedule.stored:
            lines += self._sinks.keep(number, name)
        return lines

    def _compute(self, name: str, op: str, width: int, values: tuple[int, ...]) -> list[str]:
        elements, operands, vector = self._elements, self._operands, self._vector
        columns = list(zip(*(elements.operands[value] for value in values), strict=True))
        widths = [elements.width[column[0]] for column in columns]
        parameters = [elements.parameter[value] for value in values]
        if widths[0] > WORD:
            return self._pick(name, op, width, columns, widths[0], parameters)
        if narrows(elements, elements.group_of[values[0]], vector.bits):
            return [f"const {vector} {name} = {self._narrowed(width, columns[0], parameters)};"]
        loose = values in self._loose
        if op == "sext":
            text = self._signed(columns[0], widths[0])
            if text:
                return [f"const {vector} {name} = {vector.cut(text, width, loose)};"]
        if op == "mux" and width > 1 and operands.in_memory(columns[0]):
            pointer, if_0, if_1 = operands.array(columns[0]), operands.column(columns[1]), operands.column(columns[2])
            select = f"load_{vector.of('u8')}({pointer} + i)"
            return [f"const {vector} {name} = choose_{vector}({select}, {if_1}, {if_0});"]
        texts = [operands.column(column) for column in columns]
        if op in LANE_BY_LANE:
            named = []
            lines = []
            for index, text in enumerate(texts):
                lines.append(f"const {vector} {name}_{index} = {text};")
                named.append(f"{name}_{index}")
            result = vector.lane(op, width, parameters[0], named, widths)
            return [*lines, f"{vector} {name}; for (int l = 0; l < {vector.lanes}; l++) {name}[l] = {result};"]
        if op == "slice" and len(set(parameters)) > 1:
            shifts = operands.load(operands.table(parameters, vector.kind), vector.kind, 64)
            expression = f"(({texts[0]} >> {shifts}) & {vector.all((1 << width) - 1)})"
            expression = f"(-{expression})" if width == 1 else expression
        else:
            expression = vector.operator(op, width, parameters[0], texts, widths, loose)
        return [f"const {vector} {name} = {expression};"]

    def _narrowed(self, width: int, column: tuple[int, ...], parameters: list[int]) -> str:
        """Bits of numbers that are wider than a lane."""
        operands, vector = self._operands, self._vector
        wide = vector.of("u64")
        by = f"{parameters[0]}"
        if len(set(parameters)) > 1:
            by = f"load_{wide}({operands.table(parameters, 'u64')} + i)"
        text = vector.converted(f"(({operands.wide_column(column)} >> {by}) & {wide.all((1 << width) - 1)})", wide)
        return f"(-{text})" if width == 1 else text

    def _signed(self, column: tuple[int, ...], width: int) -> str:
        """A column sign-extended to all bits of a lane, if there is a shorter way than with its sign."""
        elements, operands, vector = self._elements, self._operands, self._vector
        first = column[0]
        group = elements.groups[elements.group_of[first]] if first in elements.group_of else None
        if column in operands.known and group and group.op == "slice" and width > 1:
            inner = tuple(elements.operands[value][0] for value in column)
            lows = {elements.parameter[value] for value in column}
            if len(lows) == 1 and elements.width[inner[0]] <= WORD and inner in operands.known:
                return vector.signed_slice(operands.known[inner], lows.pop(), width)
        kind = c_type(width)
        if kind != vector.kind and width == BITS[kind] and operands.in_memory(column):
            other = vector.of(kind)
            return f"{vector}_signed_{other}(load_{other}({operands.array(column)} + i))"
        return ""

    def _find_loose(self) -> set[tuple[int, ...]]:
        """Values whose bits above their width do not matter, because all users ignore them."""
        elements = self._elements
        exact: set[tuple[int, ...]] = set()
        for number in self._groups:
            group = elements.groups[number]
            if group.op in ("add", "sub", "mul"):
                continue
            for column in zip(*(elements.operands[value] for value in group.values), strict=True):
                ends = {elements.parameter[value] + group.width for value in group.values}
                if group.op != "slice" or max(ends) >= elements.width[column[0]]:
                    exact.add(column)
        loose = set()
        for number in self._groups:
            group = elements.groups[number]
            unread = number not in self._design.schedule.stored
            if group.op in ("add", "sub", "mul", "sext") and unread and group.width > 1 and group.values not in exact:
                loose.add(group.values)
        return loose

    def _pick(
        self, name: str, op: str, width: int, columns: list[tuple[int, ...]], size: int, parameters: list[int]
    ) -> list[str]:
        """Pieces of one wide value for all elements."""
        operands, vector = self._operands, self._vector
        wide = self._scalars.operand(columns[0][0])
        step = (parameters[1] - parameters[0]) // (operands.at[1] - operands.at[0])
        regular = all(low == parameters[0] + step * slot for slot, low in zip(operands.at, parameters, strict=True))
        if op == "slice" and regular and step == width and width in BITS.values() and parameters[0] % width == 0:
            pointer = f"((const u{width}*){wide} + {parameters[0] // width})"
            return [f"const {vector} {name} = {operands.load(pointer, f'u{width}', width)};"]
        if op == "pick" and regular and step == width and width in BITS.values() and len(set(columns[1])) == 1:
            shifted = self._function.name("g")
            low = f"(u64){self._scalars.operand(columns[1][0])} + {parameters[0]}"
            self._setup.append(f"u64 {shifted}[{words(operands.slots * width)}];")
            self._setup.append(f"w_slice({shifted}, {words(operands.count * width) * 64}, {wide}, {size}, {low});")
            return [f"const {vector} {name} = {operands.load(f'((const u{width}*){shifted})', f'u{width}', width)};"]
        if op == "pick" and width == 8 and set(parameters) == {0} and self._bytes_from_memory(columns[1]):
            chosen = self._function.name("g")
            self._setup.append(f"u8 {chosen}[{operands.slots}];")
            self._setup.append(f"w_bytes({chosen}, {wide}, {size}, {operands.array(columns[1])}, {operands.slots});")
            return [f"const {vector} {name} = {operands.load(chosen, 'u8', 8)};"]
        low = f"{operands.table(parameters, 'u32')}[i + l]"
        lines = []
        text = f"(w_pick({wide}, {size}, {low}) & {mask(width)})"
        if op == "pick":
            amount = self._function.name("y")
            column = operands.column(columns[1])
            amount_width = self._elements.width[columns[1][0]]
            lines.append(f"const {vector} {amount} = {column};")
            by = f"({amount}[l] & 1)" if amount_width == 1 else f"{amount}[l]"
            text = f"(w_pick({wide}, {size}, (u64){by} + {low}) & {mask(width)})"
        if width == 1:
            text = f"(-({vector.kind}){text})"
        return [*lines, f"{vector} {name}; for (int l = 0; l < {vector.lanes}; l++) {name}[l] = {text};"]

    def _bytes_from_memory(self, amounts: tuple[int, ...]) -> bool:
        in_memory = c_type(self._elements.width[amounts[0]]) == "u16" and amounts not in self._operands.known
        return in_memory and self._whole_bytes(amounts)

    def _whole_bytes(self, amounts: tuple[int, ...]) -> bool:
        """Whether all these numbers are multiples of 8."""
        elements = self._elements
        for amount in amounts:
            if elements.op[amount] == "const" and elements.parameter[amount] % 8 == 0:
                continue
            low = elements.operands[amount][:1]
            if elements.op[amount] != "concat" or elements.op[low[0]] != "const":
                return False
            if elements.width[low[0]] < 3 or elements.parameter[low[0]] % 8:
                return False
        return True
