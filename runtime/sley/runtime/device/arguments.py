"""Arguments of a launch: given by name or in order, and as the words that a kernel gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import index

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client
from sley.runtime.device.program import Program
from sley.runtime.errors import KernelError

Argument = Buffer | int | float


def in_order(program: Program, args: Mapping[str, Argument] | Sequence[Argument]) -> list[Argument]:
    """All arguments of a program in its order, whichever way they are given. Raises ``KernelError``."""
    if isinstance(args, Mapping):
        if set(args) != set(program.args):
            raise KernelError(
                f"{program.name} takes the arguments {', '.join(program.args) or 'none'}; "
                f"given were {', '.join(args) or 'none'}"
            )
        return [args[name] for name in program.args]
    if program.args and len(args) != len(program.args):
        raise KernelError(f"{program.name} takes {len(program.args)} arguments; given were {len(args)}")
    return list(args)


def _named(program: Program, values: Sequence[Argument]) -> Iterator[tuple[str, Buffer]]:
    """Arrays among arguments in order; those without a name have none."""
    names = (*program.args, *[""] * (len(values) - len(program.args)))
    yield from ((name, value) for name, value in zip(names, values, strict=True) if isinstance(value, Buffer))


def bounded(program: Program, values: Sequence[Argument]) -> Iterator[tuple[str, Buffer]]:
    """Arrays that have a bound (``Program.bounds``), by name."""
    bounds = dict(program.bounds)
    yield from ((name, array) for name, array in _named(program, values) if name in bounds)


def check_bounds(program: Program, values: Sequence[Argument]) -> None:
    """Raises ``BadRequest`` if an array that has a bound holds more; see ``Buffer.check_bound``."""
    for name, array in bounded(program, values):
        array.check_bound(dict(program.bounds)[name], f"{name} of {program.name}")


def written(program: Program, values: Sequence[Argument]) -> Iterator[Buffer]:
    """Arrays that the program may write: all but those that it is known to read only."""
    reads = program.reads | {name for name, _ in program.bounds}
    yield from (array for name, array in _named(program, values) if name not in reads)


def word(device: Client, program: Program, number: int, value: Argument) -> int:
    """An argument as a kernel gets it: the address of an array, an integer of 32 bits, a float as fp32 bits. Raises
    ``BadRequest`` for what is none of these, an array of another device, and for one whose strides the program would
    have to know."""
    if isinstance(value, Buffer):
        device.check_owner(value)
        name = program.args[number] if number < len(program.args) else str(number)
        if name in program.strided:
            return value.address
        return value.dense_address(f"argument {name} of {program.name}")
    if isinstance(value, float | np.floating):
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    try:
        return index(value)
    except TypeError:
        raise BadRequest(
            f"argument {number} of {program.name} is {value!r}; it must be a device array, an integer of 32 bits or a "
            "float"
        ) from None
