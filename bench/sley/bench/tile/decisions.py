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
    """What is issued a round ahead."""
    early = frozenset[Op]().union(*early_operations(function, place(function, config), config).values())
    return _noted(function, lambda op: iter(["a round ahead"] if op in early else []))


def waits_of(function: Function, config: ChipConfig) -> str:
    """Semaphores: after what each operation comes, and whom it lets go on."""
    placement = place(function, config)
    early = early_operations(function, placement, config)
    numbers: dict[tuple[int, Channel], int] = {}
    notes: dict[Op, list[str]] = {}
    for place_of_block, (block, order) in enumerate(orders(function, placement, early).items()):
        for word, table in (("waits for", order.waits), ("signals", order.signals)):
            for number, channels in table.items():
                for channel in channels:
                    semaphore = numbers.setdefault((place_of_block, channel), len(numbers))
                    first, second, turns = channel[:3]
                    who = first if word == "waits for" else second
                    later = f", {turns} rounds before" if turns and word == "waits for" else ""
                    text = f"{word} {who.name.lower()} by semaphore {semaphore}{later}"
                    notes.setdefault(block.ops[number], []).append(text)
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
