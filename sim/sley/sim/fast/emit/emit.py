"""Pass 6, emit: C code for a schedule.

Every fragment becomes a function from the state to next values of registers (``n…``), stored values (``t…``) and
memory writes (``w…``). A set of ``dirty`` bits says which fragments must run; a fragment whose results differ from the
last ones marks its readers. ``settle`` runs the first fragments. ``commit`` ends a cycle: the fragments of the edge
run, next values become contents, writes reach the memories.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sley.sim.fast.emit.commit import CommitUnit, WriteUnit
from sley.sim.fast.emit.expressions import literal
from sley.sim.fast.emit.fragment import FragmentWriter
from sley.sim.fast.emit.layout import Place, StateLayout
from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.optimise.machine_types import ALIGN_ARRAYS, c_type, words
from sley.sim.fast.read.netlist import WORD
from sley.sim.fast.schedule.schedule import Schedule
from sley.sim.fast.schedule.ticks import write_ports

UNIT_LINES = 4000
"""A source file is complete when it has this many lines; files compile beside each other."""


@dataclass
class Code:
    """A design in C: a header with the state and the sources, and where everything is in the state."""

    header: str
    sources: list[str]
    layout: StateLayout
    registers: list[Place]
    """For every register the place of its contents."""
    strips: dict[int, tuple[Place, int, int]]
    """For every memory segment: place of its strip, elements in a row of it, position in the row."""
    fragments: list[str]
    """Names of the fragments, in order."""


class Emitter:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.elements: Elements = schedule.elements
        self.net = schedule.elements.netlist
        self.layout = StateLayout()
        self.readers = schedule.readers
        self.memory_readers = schedule.memory_readers
        self.commits: list[CommitUnit] = []
        self.writes: list[WriteUnit] = []
        self.places: dict[int, Place] = {}
        self.strips: dict[int, tuple[Place, int, int]] = {}
        self.bits = len(schedule.fragments)
        self._ports = write_ports(self.net)
        self.spare = ALIGN_ARRAYS
        """Bytes behind everything, which loops may read, or write if a row is outside of its memory."""
        self.write_order = self._order_writes()
        self._declare()

    def _order_writes(self) -> dict[int, int]:
        """For the first write of every group its place in the order of clocks and ports."""
        firsts = [self.elements.parameter[group.values[0]] for group in self.elements.groups if group.op == "write"]
        firsts.sort(key=lambda first: (self.net.writes[first].clock, first))
        return {first: order for order, first in enumerate(firsts)}

    # The state.

    def _declare(self) -> None:
        layout, net, elements = self.layout, self.net, self.elements
        self.words = max(1, -(-self.bits // 64))
        layout.add("dirty", "u8", self.words * 8)
        layout.add("changed", "u64", self.words)
        layout.add("unclocked", "u32")
        layout.add("pending", "u64", max(1, -(-len(self.write_order) // 64)))
        layout.add("runs", "u64", max(1, self.bits))
        for number, port in enumerate(net.inputs):
            self.places[port.value] = self._variable(f"i{number}", port.width)
        for number, port in enumerate(net.outputs):
            self._variable(f"o{number}", port.width)
        doubled = self._doubled()
        scalars = self._scalar_registers()
        starts = []
        for side, twice in (("r", True), ("n", True), ("r", False)):
            starts.append(layout.align())  # so that both sides of what exists twice have the same offsets
            for number, values in enumerate(elements.arrays):
                if twice == any(value in doubled for value in values):
                    kind = c_type(max(net.width[value] for value in values if value >= 0))
                    layout.add_elements(f"{side}a{number}", kind, len(values))
            for number in scalars:
                if twice == (net.registers[number].value in doubled):
                    layout.add(f"{side}{number}", c_type(net.registers[number].width))
        self.next_shift = starts[1] - starts[0]
        """Bytes from the contents of a register to its next value, if that has a place."""
        for number, register in enumerate(net.registers):
            if register.value in elements.stored:
                array, index = elements.stored[register.value]
                self.places[register.value] = layout.place(f"ra{array}", index)
            else:
                self.places[register.value] = layout.place(f"r{number}")
            if register.reset >= 0:
                layout.add(f"rs{number}", "u8")
        for number in sorted(self.schedule.stored):
            group = elements.groups[number]
            count = len(group.values)
            if count == 1:
                self.places[group.values[0]] = self._variable(f"t{number}", group.width)
            else:
                layout.add_elements(f"t{number}", c_type(group.width), group.slots[-1] + 1)
                for slot, value in zip(group.slots, group.values, strict=True):
                    self.places[value] = layout.place(f"t{number}", slot)
        for number, event in enumerate(net.events):
            layout.add(f"e{number}", "u8")
            if event.arguments:
                layout.add(f"ea{number}", "u64", len(event.arguments))
        self._declare_memories()

    def _doubled(self) -> set[int]:
        """Registers whose next value has a place of its own."""
        elements, net = self.elements, self.net
        doubled: set[int] = set()
        for number, group in enumerate(elements.groups):
            if group.op == "next" and number not in self.schedule.in_place:
                registers = [net.registers[elements.parameter[value]] for value in group.values]
                doubled.update(
                    register.value
                    for register in registers
                    if len(registers) > 1 or (register.clock >= 0 and register.next != register.value)
                )
        return doubled

    def _scalar_registers(self) -> list[int]:
        """Registers outside of arrays, those that one fragment computes for one clock side by side."""
        elements, net = self.elements, self.net
        fragment = {
            elements.parameter[value]: self.schedule.fragment_of[number]
            for number, group in enumerate(elements.groups)
            if group.op == "next"
            for value in group.values
        }
        scalars = [number for number, register in enumerate(net.registers) if register.value not in elements.stored]

        def order(number: int) -> tuple[int, int, int]:
            register = net.registers[number]
            # A register that never changes has no next value that could be copied along with its neighbours'.
            constant = register.clock < 0 or register.next == register.value
            return -1 if constant else fragment[number], register.clock, -register.width

        return sorted(scalars, key=order)

    def _variable(self, name: str, width: int) -> Place:
        if width <= WORD:
            self.layout.add(name, c_type(width))
        else:
            self.layout.add(name, "u64", words(width))
        return self.layout.place(name)

    def _declare_memories(self) -> None:
        net = self.net
        for number, memory in enumerate(net.memories):
            by_width: dict[int, list[int]] = defaultdict(list)
            for segment in memory.segments:
                by_width[net.segments[segment].width].append(segment)
            for width, segments in by_width.items():
                name = f"m{number}_{width}"
                self.layout.add(name, c_type(width), max(1, memory.depth * len(segments)))
                for position, segment in enumerate(segments):
                    self.strips[segment] = (self.layout.place(name), len(segments), position)

    # Everything.

    def run(self) -> Code:
        bodies = [FragmentWriter(self, index, fragment) for index, fragment in enumerate(self.schedule.fragments)]
        for body in bodies:
            body.write()
        sources: list[list[str]] = [[]]
        for body in bodies:
            if len(sources[-1]) > UNIT_LINES:
                sources.append([])
            sources[-1] += body.function()
        sources.append(self._control())
        self.layout.add("spare", "u8", self.spare)
        header = self._header()
        texts = ["\n".join(['#include "design.h"', *lines, ""]) for lines in sources]
        registers = [self.places[register.value] for register in self.net.registers]
        names = [f"{fragment.home}/{fragment.elements}/{fragment.stage}" for fragment in self.schedule.fragments]
        return Code(header, texts, self.layout, registers, self.strips, names)

    def mark(self, readers: Iterable[int], difference: str = "") -> list[str]:
        """Statements that make fragments dirty; with ``difference``, a variable, only if it is not zero.

        They touch single bytes: such instructions are the shortest, and much of the code consists of them.
        """
        masks: dict[int, int] = defaultdict(int)
        for reader in readers:
            masks[reader // 8] |= 1 << reader % 8
        condition = f"(u8)-({difference} != 0) & " if difference else ""
        return [f"s->dirty[{index}] |= {condition}{bits:#x};" for index, bits in sorted(masks.items())]

    def _header(self) -> str:
        net = self.net
        lines = ['#include "vectors.h"', "", "typedef struct S {", *self.layout.text, "} S;", ""]
        lines += [f"void f{index}(S* s);" for index in range(self.bits)]
        lines += [
            *("void init(S* s);", "void mark_all(S* s);", "void settle(S* s);", "void commit(S* s, u64 clocks);"),
            "void poke(S* s, u32 input, const u64* value);",
            *(
                "typedef int (*Hook)(void* user, u32 event);",
                "int fire(const S* s, u64 clocks, Hook hook, void* user);",
            ),
            f"enum {{ UNCLOCKED = {len(net.clocks)} }};",
            "",
        ]
        for number, port in enumerate(self.net.inputs):
            lines += self._setter(number, port.name, port.width)
            lines.append(f"#define OUT_{port.name} i{number}  // what drives a pin that the design does not")
        for number, port in enumerate(self.net.outputs):
            lines.append(f"#define OUT_{port.name} o{number}")
        return "\n".join(lines) + "\n"

    def _setter(self, number: int, name: str, width: int) -> list[str]:
        marks = " ".join(self.mark(self.readers.get(self.net.inputs[number].value, ())))
        if width <= WORD:
            kind = c_type(width)
            return [
                f"static inline void set_{name}(S* s, {kind} value) {{",
                f"  if (s->i{number} != value) {{ s->i{number} = value; {marks} }}",
                "}",
                f"static inline void load_{name}(S* s, const void* bytes) {{",
                f"  {kind} value;",
                "  memcpy(&value, bytes, sizeof value);",
                f"  set_{name}(s, value);",
                "}",
            ]
        size = words(width) * 8
        return [
            f"static inline void set_{name}(S* s, const void* value) {{",
            f"  if (memcmp(s->i{number}, value, {size})) {{ memcpy(s->i{number}, value, {size}); {marks} }}",
            "}",
            f"static inline void load_{name}(S* s, const void* bytes) {{ set_{name}(s, bytes); }}",
        ]

    def _control(self) -> list[str]:
        lines = ["void mark_all(S* s) {"]
        lines += [f"  {mark}" for mark in self.mark(range(self.bits))] + ["}", "void init(S* s) {"]
        lines += [f"  {line}" for line in self._initial()] + ["  mark_all(s);", "}"]
        lines += self._run()
        lines += self._settle() + self._poke() + self._fire()
        return lines + self._commit()

    def _commit(self) -> list[str]:
        """The end of a cycle for chosen clocks: edges, next values that become contents, writes that reach memories."""
        lines: list[str] = []
        for unit in self.commits:
            statements = [*unit.statements(), *self.mark(unit.readers)]
            lines.append(f"static void c{unit.number}(S* s) {{ {' '.join(statements)} }}")
        table = ", ".join(f"c{unit.number}" for unit in self.commits) or "0"
        lines += [f"static void (*const commits[])(S*) = {{{table}}};", "void commit(S* s, u64 clocks) {"]
        if self.schedule.settling < self.bits:
            lines.append("  tick(s, clocks);")
        for word in range(-(-len(self.commits) // 64)):
            lines += [
                f"  for (u64 bits = s->changed[{word}]; bits; bits &= bits - 1)",
                f"    commits[{word * 64} + __builtin_ctzll(bits)](s);",
                f"  s->changed[{word}] = 0;",
            ]
        for clock in range(len(self.net.clocks)):
            writes = self._commit_writes(clock)
            if writes:
                lines += [f"  if (clocks & {1 << clock:#x}ull) {{", *writes, "  }"]
        return [*lines, "}"]

    def _run(self) -> list[str]:
        """Runs dirty fragments in their order: ``run`` what settles, ``tick`` what belongs to the edges of clocks.

        What settles may make later fragments dirty. What runs at an edge makes dirty, for the next time, itself and
        what ran before.
        """
        table = ", ".join(f"f{index}" for index in range(self.bits)) or "0"
        whole, rest = divmod(self.schedule.settling, 8)
        size = -(-self.bits // 8)
        lines = [
            f"static void (*const fragments[])(S*) = {{{table}}};",
            "static inline void run_byte(S* s, unsigned k, unsigned mask) {",
            "  unsigned bits;",
            "  while ((bits = s->dirty[k] & mask)) {",
            "    const unsigned bit = bits & -bits, f = k * 8 + (unsigned)__builtin_ctz(bits);",
            "    s->dirty[k] ^= bit;",
            "    s->runs[f]++;",
            "    fragments[f](s);",
            "  }",
            "}",
            "static void run(S* s) {",
            f"  for (unsigned k = 0; k < {whole}; k++) run_byte(s, k, 0xff);",
            *([f"  run_byte(s, {whole}, {(1 << rest) - 1:#x});"] if rest else []),
            "}",
        ]
        if self.schedule.settling == self.bits:
            return lines
        masks = []
        for clock in range(len(self.net.clocks)):
            own = [index for index, fragment in enumerate(self.schedule.fragments) if fragment.clock == clock]
            numbers = [0] * size
            for index in own:
                numbers[index // 8] |= 1 << index % 8
            lines.append(f"static const u8 edge{clock}[] = {{{', '.join(map(hex, numbers))}}};")
            masks.append(f"(clocks & {1 << clock:#x}ull ? edge{clock}[k] : 0)")
        return [
            *lines,
            "static void tick(S* s, u64 clocks) {",
            f"  for (unsigned k = {whole}; k < {size}; k++) {{",
            f"    unsigned bits = s->dirty[k] & ({' | '.join(masks)});",
            "    s->dirty[k] ^= bits;",
            "    for (; bits; bits &= bits - 1) {",
            "      const unsigned f = k * 8 + (unsigned)__builtin_ctz(bits);",
            "      s->runs[f]++;",
            "      fragments[f](s);",
            "    }",
            "  }",
            "}",
        ]

    def _commit_writes(self, clock: int) -> list[str]:
        """Writes in the order of their ports; one that nothing can undo is not repeated while it stays the same."""
        lines: list[str] = []
        word = -1
        for write in sorted(self.writes, key=lambda write: write.order):
            if write.clock != clock:
                continue
            if write.order // 64 != word:
                lines += ["    }"] if word >= 0 else []
                word = write.order // 64
                lines.append(f"    if (s->pending[{word}]) {{")
            bit = f"{1 << write.order % 64:#x}ull"
            lines.append(f"      if (s->pending[{word}] & {bit}) {{")
            lines += [f"        {line}" for line in write.lines]
            lines.append(f"        if (d) {{ {' '.join(self.mark(self.memory_readers.get(write.memory, ())))} }}")
            if self._ports[write.memory] == 1:
                lines.append(f"        s->pending[{word}] &= ~{bit};")
            lines.append("      }")
        return [*lines, "    }"] if word >= 0 else lines

    def _settle(self) -> list[str]:
        resets = [number for number, register in enumerate(self.net.registers) if register.reset >= 0]
        lines = ["static int async_resets(S* s) {", "  int any = 0;"]
        for number in resets:
            register = self.net.registers[number]
            place, init = self.places[register.value], literal(register.init, register.width)
            marks = " ".join(self.mark(self.readers.get(register.value, ())))
            lines.append(f"  if (s->rs{number} && {place} != {init}) {{ {place} = {init}; any = 1; {marks} }}")
        lines += ["  return any;", "}", "void settle(S* s) {", "  run(s);"]
        if resets:
            lines.append("  for (int limit = 0; limit < 100 && async_resets(s); limit++) run(s);")
        else:
            lines.append("  (void)async_resets;")
        lines.append("}")
        return lines

    def _poke(self) -> list[str]:
        lines = ["void poke(S* s, u32 input, const u64* value) {", "  switch (input) {"]
        for number, port in enumerate(self.net.inputs):
            text = "value" if port.width > WORD else f"({c_type(port.width)})*value"
            lines.append(f"    case {number}: set_{port.name}(s, {text}); break;")
        return [*lines, "  }", "}"]

    def _fire(self) -> list[str]:
        """Reports the events of an edge, in their order, until the hook returns other than 0."""
        lines = ["int fire(const S* s, u64 clocks, Hook hook, void* user) {", "  int result = 0;"]
        for number, event in enumerate(self.net.events):
            clock = event.clock if event.clock >= 0 else len(self.net.clocks)
            lines.append(
                f"  if (s->e{number} && clocks >> {clock} & 1 && (result = hook(user, {number}))) return result;"
            )
        return [*lines, "  return result;", "}"]

    def _initial(self) -> list[str]:
        lines = []
        for register in self.net.registers:
            if register.init:
                lines.append(f"{self.places[register.value]} = {literal(register.init, register.width)};")
        for memory in self.net.memories:
            rows = len(memory.init)
            if not rows or not memory.width:
                continue
            strips: dict[str, list[int]] = {}
            for segment in memory.segments:
                strips.setdefault(self.strips[segment][0].name, []).append(segment)
            for name, segments in strips.items():
                kind = self.layout.variables[name][0]
                numbers = [
                    memory.init[row] >> self.net.segments[segment].low & (1 << self.net.segments[segment].width) - 1
                    for row in range(min(rows, memory.depth))
                    for segment in segments
                ]
                values = ",".join(literal(number, 64) for number in numbers)
                lines.append(f"static const {kind} {name}_init[] = {{{values}}};")
                lines.append(f"memcpy(s->{name}, {name}_init, sizeof {name}_init);")
        return lines


def emit(schedule: Schedule) -> Code:
    """C code for a schedule."""
    return Emitter(schedule).run()
