"""What ends a cycle: next values that become contents, and writes that reach memories."""

from dataclasses import dataclass, field

from sley.sim.fast.emit.layout import Place


@dataclass(slots=True)
class CommitUnit:
    """Registers of one fragment whose next values have places of their own until all fragments of the edge have run."""

    number: int
    lines: list[str] = field(default_factory=list)
    scalars: list[Place] = field(default_factory=list)
    readers: set[int] = field(default_factory=set)
    """Fragments of the edge after this one that read these registers."""

    def statements(self) -> list[str]:
        """Next values become contents; scalars lie side by side and are copied as one block."""
        if not self.scalars:
            return self.lines
        first, last = min(self.scalars, key=lambda p: p.offset), max(self.scalars, key=lambda p: p.offset)
        source = str(first).replace("s->r", "s->n", 1)
        return [f"memcpy(&{first}, &{source}, {last.end - first.offset});", *self.lines]


@dataclass(slots=True)
class WriteUnit:
    """Writes of one port to segments of one row: address ``wa``, data ``wd`` and enables ``we`` in the state."""

    clock: int
    number: int
    order: int
    """Place in the order in which writes take effect, and number of its bit in ``pending``."""
    memory: int
    lines: list[str] = field(default_factory=list)

    def pending(self, condition: str) -> str:
        word, bit = self.order // 64, f"{1 << self.order % 64:#x}ull"
        return f"if ({condition}) s->pending[{word}] |= {bit}; else s->pending[{word}] &= ~{bit};"

    def copy(self, strips: list[tuple[Place, int, int]], count: int, kind: str, depth: int, bitwise: bool) -> None:
        """Writes the statements that store the data and set ``d`` if the memory changed."""
        number = self.number
        strip, row, position = strips[0]
        self.lines += ["u64 d = 0;", f"if (s->wa{number} < {depth}u) {{"]
        merged = "({old} & ~s->we{n}[{i}]) | (s->wd{n}[{i}] & s->we{n}[{i}])"
        chosen = merged if bitwise else "s->we{n}[{i}] ? s->wd{n}[{i}] : {old}"
        if all(other.name == strip.name and at == position + i for i, (other, _, at) in enumerate(strips)):
            value = chosen.format(old="p[i]", n=number, i="i")
            self.lines += [
                f"  {kind}* const p = s->{strip.name} + s->wa{number} * {row} + {position};",
                f"  {kind} changed = 0;",
                *(['  _Pragma("GCC ivdep")'] if count > 1 else []),
                f"  for (int i = 0; i < {count}; i++) {{",
                f"    const {kind} v = {value}; changed |= v ^ p[i]; p[i] = v;",
                "  }",
                "  d = changed;",
            ]
        else:
            for index, (other, size, at) in enumerate(strips):
                value = chosen.format(old="*p", n=number, i=index)
                self.lines.append(
                    f"  {{ {kind}* const p = s->{other.name} + s->wa{number} * {size} + {at}; "
                    f"const {kind} v = {value}; d |= v ^ *p; *p = v; }}"
                )
        self.lines.append("}")
