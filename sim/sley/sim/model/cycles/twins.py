"""Twins beside their gateware: whatever bench a block runs in, its twin gets the same inputs and must say the same.

``TWINS`` lists the blocks that have one. A port of a twin is named by its path in the block, ``i.payload.op``, and its
word k of 32 bits by ``i.payload.data@k``. An output that means something only while another one is high has the path of
that one behind a question mark, ``o.payload.op?o.valid``.
"""

import ctypes
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.hdl import Value

from sley.abi.config import ChipConfig, preset
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.sequencer import fetch
from sley.hw.core.sequencer.sequencer import Sequencer
from sley.hw.core.unit_front import UnitFront
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.model.compiled.header import header
from sley.sim.model.compiled.library import build
from sley.sim.model.cycles.messages import messages

FOLDER = Path(__file__).parent
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Twin:
    """A block's twin: the name of its functions, and what of a block decides it.

    ``parameters``: numbers that its reset takes; ``config``: the chip whose sizes it has; ``fits``: whether the twin is
    one of this block.
    """

    name: str
    parameters: Callable[[Any], list[int]] = lambda dut: []
    config: Callable[[Any], ChipConfig] = lambda dut: dut._config
    fits: Callable[[Any], bool] = lambda dut: True


def _some_chip(dut: Any) -> ChipConfig:
    """For blocks whose twins take all they need from their parameters."""
    return preset("base")


TWINS: dict[type, Twin] = {
    Sequencer: Twin("sequencer", lambda dut: [fetch.SPLIT_BYTES]),
    Semaphores: Twin("semaphores", config=_some_chip, fits=lambda dut: (len(dut.wait), len(dut.signal)) == (5, 6)),
    UnitFront: Twin("unit_front", lambda dut: [dut._depth], _some_chip),
}


class TwinError(AssertionError):
    """A block and its twin differ."""


@cache
def _library(config: ChipConfig) -> ctypes.CDLL:
    generated = {"abi.h": header(config), "messages.h": messages()}
    return ctypes.CDLL(str(build(FOLDER / "twins.c", generated)))


Part = Callable[[Any], Awaitable[None]]
"""Of a bench."""


def watch(dut: Any) -> list[Part]:
    """Parts of a bench that run twins in lock-step: of the block, and of those that are its attributes."""
    if not find_c_compiler():
        return []
    blocks = [dut, *vars(dut).values()]
    return [
        _lock_step(block, TWINS[type(block)])
        for block in blocks
        if type(block) in TWINS and TWINS[type(block)].fits(block)
    ]


def _lock_step(dut: Any, twin: Twin) -> Part:
    library, parameters = _library(twin.config(dut)), twin.parameters(dut)
    ports = _ports(library, twin.name)
    inputs, outputs = ([path for kind, path in ports if kind == which] for which in "IO")
    conditions = [outputs.index(path.partition("?")[2]) if "?" in path else None for path in outputs]
    signals, pieces = _pieces(dut, [path.partition("?")[0] for path in (*inputs, *outputs)])
    create, set_inputs, tick, destroy = (
        library[f"{twin.name}_twin_{function}"] for function in ("create", "outputs", "tick", "destroy")
    )
    create.restype = ctypes.c_void_p

    async def lock_step(ctx: Any) -> None:
        handle = ctypes.c_void_p(create((ctypes.c_uint32 * max(1, len(parameters)))(*parameters)))
        values_of, results = ctypes.c_uint32 * len(inputs), (ctypes.c_uint32 * len(outputs))()
        cycle = 0
        try:
            async for sampled in ctx.tick().sample(*signals):
                seen = [int(value) for value in sampled[2:]]
                words = [seen[signal] >> shift & _WORD for signal, shift in pieces]
                real = words[len(inputs) :]
                set_inputs(handle, values_of(*words[: len(inputs)]))
                tick(handle, results)
                for k, path in enumerate(outputs):
                    condition = conditions[k]
                    if real[k] != results[k] and (condition is None or real[condition]):
                        name = f"{path.partition('?')[0]} of {type(dut).__name__}"
                        raise TwinError(f"cycle {cycle}: {name} is {real[k]:#x}, of its twin {results[k]:#x}")
                cycle += 1
        finally:
            destroy(handle)

    return lock_step


def _ports(library: ctypes.CDLL, name: str) -> list[tuple[str, str]]:
    """I or O, and the path of each port in the order of the twin's list."""
    text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, f"{name}_twin_ports"))).decode()
    return [(line[0], line[1:]) for line in text.splitlines()]


def _pieces(dut: Any, paths: list[str]) -> tuple[list[Value], list[tuple[int, int]]]:
    """The signals with these paths, each once; for each path which of them it is, and how far its word is shifted."""
    places: dict[str, int] = {}
    pieces = []
    for path in paths:
        name, _, word = path.partition("@")
        pieces.append((places.setdefault(name, len(places)), 32 * int(word or 0)))
    return [Value.cast(_port(dut, name)) for name in places], pieces


def _port(dut: Any, path: str) -> Any:
    """The port with a path such as ``wait[0].payload``."""
    value = dut
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        value = getattr(value, name) if name else value[int(index)]
    return value
