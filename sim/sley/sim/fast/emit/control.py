"""C functions around the fragments: which run when, what ends a cycle, and how a host reaches the state."""

from collections.abc import Iterable

from sley.sim.fast.emit.design import Design
from sley.sim.fast.emit.expressions import literal
from sley.sim.fast.optimise.machine_types import c_type
from sley.sim.fast.read.netlist import WORD


def control(design: Design) -> list[str]:
    """Functions that run fragments, settle, end a cycle, and those through which a host reaches the state."""
    lines = ["void mark_all(S* s) {"]
    lines += [f"  {mark}" for mark in design.mark(range(design.fragment_count))] + ["}", "void init(S* s) {"]
    lines += [f"  {line}" for line in _initial(design)] + ["  mark_all(s);", "}"]
    lines += _run(design)
    lines += _settle(design) + _poke(design) + _fire(design)
    return lines + _commit(design)


def _commit(design: Design) -> list[str]:
    """The end of a cycle for chosen clocks: edges, next values that become contents, writes that reach memories."""
    lines: list[str] = []
    for unit in design.commits:
        statements = [*unit.statements(), *design.mark(unit.readers)]
        lines.append(f"static void c{unit.number}(S* s) {{ {' '.join(statements)} }}")
    lines += ["void commit(S* s, u64 clocks) {", "  u64 bits;", "  (void)bits;"]
    if design.schedule.settling < design.fragment_count:
        lines.append("  tick(s, clocks);")
    for word in range(-(-len(design.commits) // 64)):
        lines += [f"  if ((bits = s->changed[{word}])) {{", f"    s->changed[{word}] = 0;"]
        for byte in range(0, 64, 8):
            units = range(64 * word + byte, min(64 * word + byte + 8, len(design.commits)))
            calls = [f"      if (bits & {1 << unit % 64:#x}ull) c{unit}(s);" for unit in units]
            if calls:
                lines += [f"    if (bits & {0xFF << byte:#x}ull) {{", *calls, "    }"]
        lines.append("  }")
    for clock in range(len(design.net.clocks)):
        writes = _commit_writes(design, clock)
        if writes:
            lines += [f"  if (clocks & {1 << clock:#x}ull) {{", *writes, "  }"]
    return [*lines, "}"]


def _run(design: Design) -> list[str]:
    """Runs dirty fragments in their order: ``run`` what settles, ``tick`` what belongs to the edges of clocks.

    What settles may make later fragments dirty. What runs at an edge makes dirty, for the next time, itself and
    what ran before. Each fragment has a branch and a call of its own: chips do much the same in each cycle, and a
    processor predicts these better than calls by a table.
    """
    settling, count = design.schedule.settling, design.fragment_count
    lines = ["static void run(S* s) {"]
    for byte in range(-(-settling // 8)):
        own = range(8 * byte, min(8 * byte + 8, settling))
        lines.append(f"  if (s->dirty[{byte}] & {_mask(own):#x}) {{")
        lines += [
            f"    if (s->dirty[{byte}] & {_mask([f]):#x}) {{ s->dirty[{byte}] ^= {_mask([f]):#x}; {_call(f)} }}"
            for f in own
        ]
        lines.append("  }")
    lines.append("}")
    if settling == count:
        return lines
    lines += ["static void tick(S* s, u64 clocks) {", "  unsigned bits;"]
    for byte in range(settling // 8, -(-count // 8)):
        own = range(max(8 * byte, settling), min(8 * byte + 8, count))
        by_clock: dict[int, list[int]] = {}
        for f in own:
            by_clock.setdefault(design.schedule.fragments[f].clock, []).append(f)
        masks = [f"(clocks & {1 << clock:#x}ull ? {_mask(some):#x} : 0)" for clock, some in by_clock.items()]
        lines.append(f"  if ((bits = s->dirty[{byte}] & ({' | '.join(masks)}))) {{")
        lines.append(f"    s->dirty[{byte}] ^= bits;")
        lines += [f"    if (bits & {_mask([f]):#x}) {{ {_call(f)} }}" for f in own]
        lines.append("  }")
    return [*lines, "}"]


def _mask(fragments: Iterable[int]) -> int:
    """The bits of fragments in the byte that has them."""
    return sum(1 << fragment % 8 for fragment in fragments)


def _call(fragment: int) -> str:
    return f"s->runs[{fragment}]++; f{fragment}(s);"


def _commit_writes(design: Design, clock: int) -> list[str]:
    """Writes in the order of their ports; one that nothing can undo is not repeated while it stays the same."""
    lines: list[str] = []
    word = -1
    for write in sorted(design.writes, key=lambda write: write.order):
        if write.clock != clock:
            continue
        if write.order // 64 != word:
            lines += ["    }"] if word >= 0 else []
            word = write.order // 64
            lines.append(f"    if (s->pending[{word}]) {{")
        bit = f"{1 << write.order % 64:#x}ull"
        lines.append(f"      if (s->pending[{word}] & {bit}) {{")
        lines += [f"        {line}" for line in write.lines]
        lines.append(f"        if (d) {{ {' '.join(design.mark(design.memory_readers.get(write.memory, ())))} }}")
        if design.write_ports[write.memory] == 1:
            lines.append(f"        s->pending[{word}] &= ~{bit};")
        lines.append("      }")
    return [*lines, "    }"] if word >= 0 else lines


def _settle(design: Design) -> list[str]:
    resets = [number for number, register in enumerate(design.net.registers) if register.reset >= 0]
    lines = ["static int async_resets(S* s) {", "  int any = 0;"]
    for number in resets:
        register = design.net.registers[number]
        place, init = design.places[register.value], literal(register.init, register.width)
        marks = " ".join(design.mark(design.readers.get(register.value, ())))
        lines.append(f"  if (s->rs{number} && {place} != {init}) {{ {place} = {init}; any = 1; {marks} }}")
    lines += ["  return any;", "}", "void settle(S* s) {", "  run(s);"]
    if resets:
        lines.append("  for (int limit = 0; limit < 100 && async_resets(s); limit++) run(s);")
    else:
        lines.append("  (void)async_resets;")
    lines.append("}")
    return lines


def _poke(design: Design) -> list[str]:
    lines = ["void poke(S* s, u32 input, const u64* value) {", "  switch (input) {"]
    for number, port in enumerate(design.net.inputs):
        text = "value" if port.width > WORD else f"({c_type(port.width)})*value"
        lines.append(f"    case {number}: set_{port.name}(s, {text}); break;")
    return [*lines, "  }", "}"]


def _fire(design: Design) -> list[str]:
    """Reports the events of an edge, in their order, until the hook returns other than 0."""
    lines = ["int fire(const S* s, u64 clocks, Hook hook, void* user) {", "  int result = 0;"]
    for number, event in enumerate(design.net.events):
        clock = event.clock if event.clock >= 0 else len(design.net.clocks)
        lines.append(f"  if (s->e{number} && clocks >> {clock} & 1 && (result = hook(user, {number}))) return result;")
    return [*lines, "  return result;", "}"]


def _initial(design: Design) -> list[str]:
    lines = []
    for register in design.net.registers:
        if register.init:
            lines.append(f"{design.places[register.value]} = {literal(register.init, register.width)};")
    for memory in design.net.memories:
        rows = len(memory.init)
        if not rows or not memory.width:
            continue
        strips: dict[str, list[int]] = {}
        for segment in memory.segments:
            strips.setdefault(design.strips[segment][0].name, []).append(segment)
        for name, segments in strips.items():
            kind = design.layout.variables[name][0]
            numbers = [
                memory.init[row] >> design.net.segments[segment].low & (1 << design.net.segments[segment].width) - 1
                for row in range(min(rows, memory.depth))
                for segment in segments
            ]
            values = ",".join(literal(number, 64) for number in numbers)
            lines.append(f"static const {kind} {name}_init[] = {{{values}}};")
            lines.append(f"memcpy(s->{name}, {name}_init, sizeof {name}_init);")
    return lines
