"""Views of a waveform: states and instructions by name, for GTKWave and Surfer.

The Verilog of ``sley ip`` says beside a declaration what enumerated values mean (``// 0 IDLE, 1 RUN``); so does what a
user writes in this form. A view has every such signal below the top module, and the operation of each sequencer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcd.gtkw import GTKWSave, make_translation_filter

from sley.abi.instructions import Op

MODULE = re.compile(r"^module (\w+)\b(.*?)^endmodule", re.MULTILINE | re.DOTALL)
MEANINGS = r"// (\d+ \w+(?:, \d+ \w+)+)$"
DECLARED = re.compile(
    rf"^\s*(?:(?:input|output)\s+)?(?:wire|reg)\s+\[(\d+):0\] (\w+)[^;\n]*[;,]?\s*{MEANINGS}", re.MULTILINE
)
INSTANCE = re.compile(r"^ +(\w+)(?: #\(.*\))? (\w+) \($", re.MULTILINE)
KEYWORDS = {"module", "if", "for", "case", "begin", "else", "always", "assign", "initial"}
OPERATION = "sley_core_sequencer_execute_alu", "op", {op.value: op.name for op in Op}
"""The module and port at which the sequencer's operation is, and what its values mean."""


@dataclass(frozen=True)
class Labelled:
    """A signal with names for its values: its path from the top module on, its width, and the names."""

    path: str
    bits: int
    names: Mapping[int, str]

    @property
    def mapping(self) -> str:
        """What its names are called, as part of a file's name: the end of its path."""
        return "_".join(self.path.split(".")[-3:])


@dataclass(frozen=True)
class _Module:
    signals: list[tuple[str, int, Mapping[int, str]]]
    instances: list[tuple[str, str]]


def labelled_signals(sources: Sequence[Path], top: str) -> list[Labelled]:
    """All signals below ``top`` whose values have names, in the order of the hierarchy."""
    modules: dict[str, _Module] = {}
    for source in sources:
        if source.suffix == ".v":
            modules |= {found[1]: _read(found[1], found[2]) for found in MODULE.finditer(source.read_text())}
    return [*_below(modules, top, top)]


def _read(name: str, text: str) -> _Module:
    signals: list[tuple[str, int, Mapping[int, str]]] = []
    for high, signal, meanings in DECLARED.findall(text):
        pairs = (meaning.split(" ") for meaning in meanings.split(", "))
        signals.append((signal, int(high) + 1, {int(value): label for value, label in pairs}))
    if name == OPERATION[0]:
        signals.append((OPERATION[1], 8, OPERATION[2]))
    return _Module(signals, [pair for pair in INSTANCE.findall(text) if pair[0] not in KEYWORDS])


def _below(modules: Mapping[str, _Module], module: str, path: str) -> Iterator[Labelled]:
    found = modules.get(module)
    if found is None:
        return
    for signal, bits, names in found.signals:
        yield Labelled(f"{path}.{signal}", bits, names)
    for kind, name in found.instances:
        yield from _below(modules, kind, f"{path}.{name}")


def write_views(sources: Sequence[Path], top: str, waveform: Path) -> Path:
    """Writes views of ``waveform`` beside it; the one for GTKWave, ``NAME.gtkw``, with its filters. For Surfer, which
    looks for them in the folder in which it is started, there are mappings below ``.surfer``."""
    signals = labelled_signals(sources, top)
    folder = waveform.parent
    filters, mappings = folder / "filters", folder / ".surfer" / "mappings"
    for made in (filters, mappings):
        made.mkdir(parents=True, exist_ok=True)
    view = waveform.with_suffix(".gtkw")
    with view.open("w") as file:
        save = GTKWSave(file)
        save.dumpfile(str(waveform), abspath=False)
        for signal in signals:
            pairs = sorted(signal.names.items())
            table = filters / f"{signal.mapping}.txt"
            table.write_text(make_translation_filter(pairs, "hex", signal.bits) + "\n")
            lines = [f"Name = {signal.mapping}", f"Bits = {signal.bits}", *(f"{value} {name}" for value, name in pairs)]
            (mappings / table.name).write_text("\n".join(lines) + "\n")
            save.trace(f"{signal.path}[{signal.bits - 1}:0]", translate_filter_file=str(table.resolve()))
    return view
