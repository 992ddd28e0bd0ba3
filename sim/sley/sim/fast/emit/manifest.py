"""What is where in a compiled design: names, widths and byte offsets, kept inside the library as JSON."""

import dataclasses
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sley.sim.build.cache import digest
from sley.sim.fast.emit.emit import Code
from sley.sim.fast.optimise.machine_types import SIZES, words
from sley.sim.fast.read.netlist import WORD, Netlist


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits of a value: position in it, number of bits, byte offset in the state, bytes there."""

    low: int
    width: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Signal:
    width: int
    pieces: list[Piece]


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """``pieces`` of row 0; row ``n`` of a piece is ``n`` times its entry of ``pitches`` bytes later."""

    width: int
    depth: int
    pieces: list[Piece]
    pitches: list[int]


@dataclass(frozen=True, slots=True)
class EventPlace:
    kind: str
    format: str
    condition: int
    """Offset of the byte that says whether it fires."""
    arguments: list[Piece]
    path: str
    source: str
    unclocked: bool


@dataclass(frozen=True, slots=True)
class ClockName:
    name: str
    rising: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    state_bytes: int
    inputs: dict[str, Signal]
    outputs: dict[str, Signal]
    registers: dict[str, Signal]
    memories: dict[str, MemoryPlace]
    events: list[EventPlace]
    clocks: list[ClockName]
    fragments: list[str]
    runs: int
    """Offset of one 64-bit counter for each fragment."""
    async_resets: bool
    layout: str
    """Digest of the state's layout: states with the same one can be exchanged."""

    def as_c(self) -> str:
        """A C file that defines the function ``fast_manifest`` and what ``tables.h`` declares."""
        text = json.dumps(dataclasses.asdict(self), separators=(",", ":"))
        escaped = [
            text[start : start + 4000].replace("\\", "\\\\").replace('"', '\\"') for start in range(0, len(text), 4000)
        ]
        literals = "\n".join(f'"{part}"' for part in escaped)
        return (
            f"{self._tables()}"
            f"static const char text[] =\n{literals};\n"
            '__attribute__((visibility("default"))) const char* fast_manifest(void) { return text; }\n'
        )

    def _tables(self) -> str:
        places = [signal.pieces[0] if signal.pieces else Piece(0, 0, 0, 0) for signal in self.inputs.values()]
        low = min((place.offset for place in places if place.size), default=0)
        high = max((place.offset + place.size for place in places if place.size), default=0)
        inputs = [f"{{{place.offset if place.size else low}, {place.size}}}" for place in places]
        events = []
        for event in self.events:
            start = event.arguments[0].offset if event.arguments else 0
            message = int(bool(event.format))
            events.append(
                f"{{EVENT_{event.kind.upper()}, {int(event.unclocked)}, {message}, "
                f"{event.condition}, {start}, {len(event.arguments)}}}"
            )
        lines = [
            '#include "tables.h"',
            f"const InputPlace fast_inputs[] = {{{', '.join([*inputs, '{0, 0}'])}}};",
            f"const uint32_t fast_input_count = {len(places)};",
            f"const uint32_t fast_inputs_low = {low}, fast_inputs_bytes = {high - low};",
            f"const EventPlace fast_events[] = {{{', '.join([*events, '{0}'])}}};",
            f"const uint32_t fast_event_count = {len(events)};",
            f"const uint32_t fast_event_words = {sum(len(event.arguments) for event in self.events)};",
            f"const uint32_t fast_async_resets = {int(self.async_resets)};",
        ]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        data = json.loads(text)

        def signal(item: dict[str, Any]) -> Signal:
            return Signal(item["width"], [Piece(**piece) for piece in item["pieces"]])

        def memory(item: dict[str, Any]) -> MemoryPlace:
            pieces = [Piece(**piece) for piece in item["pieces"]]
            return MemoryPlace(item["width"], item["depth"], pieces, item["pitches"])

        for kind in ("inputs", "outputs", "registers"):
            data[kind] = {name: signal(item) for name, item in data[kind].items()}
        data["memories"] = {name: memory(item) for name, item in data["memories"].items()}
        data["events"] = [
            EventPlace(**(event | {"arguments": [Piece(**piece) for piece in event["arguments"]]}))
            for event in data["events"]
        ]
        data["clocks"] = [ClockName(**clock) for clock in data["clocks"]]
        return cls(**data)


known_manifest = lru_cache(maxsize=4)(Manifest.from_json)
"""That of a text which was there before is not read again: it takes most of the time to open a design once more."""


def make_manifest(netlist: Netlist, code: Code) -> Manifest:
    layout = code.layout

    def variable(name: str, width: int) -> Signal:
        kind, _, offset = layout.variables[name]
        if width <= WORD:
            return Signal(width, [Piece(0, width, offset, SIZES[kind])] if width else [])
        return Signal(width, [Piece(0, width, offset, 8 * words(width))])

    registers: dict[str, Signal] = {}
    for register, place in zip(netlist.registers, code.registers, strict=True):
        known = registers.get(register.name, Signal(0, []))
        piece = Piece(register.low, register.width, place.offset, SIZES[place.type])
        registers[register.name] = Signal(max(known.width, register.low + register.width), [*known.pieces, piece])
    memories = {}
    for memory in netlist.memories:
        pieces, pitches = [], []
        for number in memory.segments:
            segment = netlist.segments[number]
            strip, count, position = code.strips[number]
            size = SIZES[strip.type]
            pieces.append(Piece(segment.low, segment.width, strip.offset + position * size, size))
            pitches.append(count * size)
        memories[memory.name] = MemoryPlace(memory.width, memory.depth, pieces, pitches)
    events = []
    for number, event in enumerate(netlist.events):
        arguments = []
        for index, argument in enumerate(event.arguments):
            offset = layout.variables[f"ea{number}"][2] + 8 * index
            arguments.append(Piece(WORD * index, netlist.width[argument], offset, 8))
        condition = layout.variables[f"e{number}"][2]
        unclocked = event.clock < 0
        events.append(EventPlace(event.kind, event.format, condition, arguments, event.path, event.source, unclocked))
    return Manifest(
        layout.total,
        {port.name: variable(f"i{number}", port.width) for number, port in enumerate(netlist.inputs)},
        {port.name: variable(f"o{number}", port.width) for number, port in enumerate(netlist.outputs)},
        registers,
        memories,
        events,
        [ClockName(clock.name, clock.rising) for clock in netlist.clocks],
        code.fragments,
        layout.variables["runs"][2],
        any(register.reset >= 0 for register in netlist.registers),
        digest(*layout.text),
    )
