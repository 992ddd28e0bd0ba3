"""What the compiler decides of a function and does not write into it, behind the lines of its text."""

from collections.abc import Callable, Iterator

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.runtime.tile.ir import Function, Op
from sley.runtime.tile.passes.ahead import early_operations
from sley.runtime.tile.passes.order import Channel, orders
from sley.runtime.tile.passes.placement import place
from sley.runtime.tile.text import printed

MEMORIES = {Space.SCRATCHPAD: "scratchpad", Space.ACCUMULATOR: "accumulators"}


def places_of(function: Function, config: ChipConfig) -> str:
    """Where each tile is."""
    placement = place(function, config)

    def note(op: Op) -> Iterator[str]:
        for value in op.results:
            if value in placement.of:
                buffer = placement.of[value]
                slots = f", {buffer.slots} slots of {buffer.rows}" if buffer.slots > 1 else ""
                yield f"{MEMORIES[buffer.space]}, rows {buffer.first} to {buffer.first + buffer.all_rows - 1}{slots}"

    return _noted(function, note)


def ahead_of(function: Function, config: ChipConfig) -> str:
    """What is issued ahead, and how far."""
    words = {1: "a round ahead", 2: "two rounds ahead"}
    early: dict[Op, int] = {}
    for rounds in early_operations(function, place(function, config), config).values():
        early.update(rounds.ahead)
    return _noted(function, lambda op: iter([words[early[op]]] if op in early else []))


def waits_of(function: Function, config: ChipConfig) -> str:
    """Semaphores: after what each operation comes, and whom it lets go on."""
    placement = place(function, config)
    early = early_operations(function, placement, config)
    numbers: dict[tuple[int, Channel], int] = {}
    notes: dict[Op, list[str]] = {}
    for place_of_block, order in enumerate(orders(function, placement, early).values()):
        for word, table in (("waits for", order.waits), ("signals", order.signals)):
            for number, channels in table.items():
                for channel in channels:
                    semaphore = numbers.setdefault((place_of_block, channel), len(numbers))
                    who = channel.signals if word == "waits for" else channel.waits
                    later = f", {channel.turns} rounds before" if channel.turns and word == "waits for" else ""
                    once = " once in all rounds" * channel.once
                    text = f"{word} {who.name.lower()} by semaphore {semaphore}{once}{later}"
                    notes.setdefault(order.rounds.ops[number], []).append(text)
    return _noted(function, lambda op: iter(notes.get(op, [])))


def _noted(function: Function, note: Callable[[Op], Iterator[str]]) -> str:
    """The text of a function with what there is to say of each operation, in its line."""
    version, head, *lines = printed(function).splitlines()
    operations = function.body.walk()
    shown = [version, head]
    for line in lines:
        notes = "" if line.strip() == "}" else "; ".join(note(next(operations)))
        shown.append(f"{line}  ; {notes}" if notes else line)
    return "\n".join(shown) + "\n"
