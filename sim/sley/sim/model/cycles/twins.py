"""Twins beside their gateware: whatever bench a block runs in, its twin gets the same inputs and must say the same.

``TWINS`` lists the blocks that have one. A port of a twin is named by its path in the block, ``i.payload.op``, its
32-bit word k by ``i.payload.data@k``. An output that means something only while another one is high has that one's path
behind a question mark, ``o.payload.op?o.valid``. A port with ``~`` in front may be missing: as an input it is 0. One
with ``.`` in front is the twin's alone, for others to be compared only while it is high, ``request.payload?.head``.
"""

import ctypes
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from weakref import finalize

from amaranth.hdl import Const, Value
from amaranth.lib import data

from sley.abi.command import SHARED
from sley.abi.config import ChipConfig, preset
from sley.abi.network import COORDINATE_BITS
from sley.abi.packets import PACKET_BYTES
from sley.abi.placement import Node, command_node, core_node, memory_node
from sley.abi.types import ElementType
from sley.abi.vector.chains import FUNCTION_BITS
from sley.hw.bus.axi_lite import AxiLiteTarget
from sley.hw.bus.register_bank import RegisterBank
from sley.hw.command.check import PacketCheck
from sley.hw.command.copies import CopyScheduler
from sley.hw.command.copy import CopyEngine
from sley.hw.command.executor import Executor
from sley.hw.command.grids.scheduler import BlockScheduler
from sley.hw.command.interrupts import Interrupts
from sley.hw.command.processor import CommandProcessor
from sley.hw.command.queue import Queue
from sley.hw.command.queue_records import QueueRecords
from sley.hw.command.words import WordAccess
from sley.hw.core.list_addresses import ListAddresses
from sley.hw.core.load.transposer import BlockTransposer
from sley.hw.core.load.unit import LoadUnit
from sley.hw.core.matrix.hazards import Hazards
from sley.hw.core.matrix.unit import MatrixUnit
from sley.hw.core.scrub import Scrub
from sley.hw.core.semaphores import Semaphores
from sley.hw.core.sequencer import fetch
from sley.hw.core.sequencer.sequencer import Sequencer
from sley.hw.core.sram.sram import BankedSram
from sley.hw.core.store.unit import StoreUnit
from sley.hw.core.unit_front import UnitFront
from sley.hw.core.vector.tail import function_cycles
from sley.hw.core.vector.unit import VectorUnit
from sley.hw.core.vector.writes import output_rows
from sley.hw.counters.bus import BusCounters
from sley.hw.counters.core import CoreCounters
from sley.hw.memory.combine import ReadCombiner
from sley.hw.memory.node import NodePort
from sley.hw.memory.port import MemoryPort
from sley.hw.memory.reader import MemoryReader
from sley.hw.memory.writer import MemoryWriter
from sley.hw.mmu.gateway import MemoryGateway
from sley.hw.mmu.port import TranslatedPort
from sley.hw.noc.direction import Direction, Turn
from sley.hw.noc.mesh import Mesh
from sley.hw.noc.multicast import MulticastRouter
from sley.hw.noc.router import Router
from sley.hw.noc.routes import request_pairs, response_pairs, turns
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.fast.run.simulation import Simulation
from sley.sim.model.compiled.header import header
from sley.sim.model.compiled.library import SOON_DONE, build

FOLDER = Path(__file__).parent
_COMPARED, _UNSEEN = -1, -2
"""When an output is compared: always, never. See ``twin.h``."""
_BEFORE = 2
"""Clock and reset come before the samples of a tick."""


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


def _packet_in_beat(dut: Any) -> bool:
    """No beat of the bus has more than a packet."""
    return bool(dut._config.bus_bytes <= PACKET_BYTES)


def _shares(dut: RegisterBank) -> bool:
    """Those registers are shared that are in a chip."""
    return dut.shared == frozenset(SHARED)


def _reader_fits(dut: MemoryReader) -> bool:
    """Its rings hold as many items."""
    return dut._depth <= 126 and dut._beats <= 254


def _places(dut: BlockScheduler | CommandProcessor) -> list[int]:
    places = [core_node(dut._config, core) for core in range(dut._config.cores)]
    return [place[axis] for axis in (0, 1) for place in places]


def _processor(dut: CommandProcessor) -> list[int]:
    config: ChipConfig = dut._config
    return [_number(command_node(config)), _number(memory_node(config)), *_places(dut)]


def _parts(dut: NodePort) -> list[int]:
    weights = dut._weights or (1,) * len(dut._tags)
    return [len(dut._tags), *dut._tags, *weights]


def _number(node: Node) -> int:
    """Of a node, as in a flit."""
    return node[0] | node[1] << COORDINATE_BITS


def _asks(dut: Any) -> list[int]:
    """Of a part of a node that asks memory: where it is, where memory is, the tag of its answers."""
    return [_number(dut._source), _number(memory_node(dut._config)), int(dut._tag)]


def _cores(config: ChipConfig) -> list[int]:
    return [_number(core_node(config, index)) for index in range(config.cores)]


def _gateway_nodes(dut: MemoryGateway) -> list[int]:
    c = dut._config
    return [_number(memory_node(c)), _number(command_node(c)), *_cores(c)]


def _router(copies: bool, node: Node, turns: Collection[Turn]) -> list[int]:
    sides = list(Direction)
    return [copies, *node, *(sum(1 << k for k, to in enumerate(sides) if (side, to) in turns) for side in sides)]


def _mesh(dut: Mesh) -> list[int]:
    """Of each network how many routers it has, and the parameters of each."""
    numbers, config = [], dut._config
    for pairs, copies in ((request_pairs(config), False), (response_pairs(config), config.cores > 1)):
        routers = [_router(copies, node, taken) for node, taken in turns(pairs).items()]
        numbers += [len(routers), *(number for router in routers for number in router)]
    return numbers


def _nodes(config: ChipConfig) -> str:
    """The text of ``nodes.h`` for a chip: its nodes, whose ports a mesh has."""
    nodes = [command_node(config), memory_node(config), *(core_node(config, index) for index in range(config.cores))]
    calls = " ".join(f"NODE(PORT, {k}, {x}, {y})" for k, (x, y) in enumerate(nodes))
    return f"#define MESH_NODES(NODE, PORT) {calls}\n"


def _memory(dut: BankedSram) -> list[int]:
    return [dut._rows, dut._banks, len(dut.read), len(dut.write)]


def _vector(dut: VectorUnit) -> list[int]:
    cycles = {1 + function: function_cycles(function) for function in dut._config.vector_functions}
    return [output_rows(dut._config), *(cycles.get(code, 0) for code in range(1 << FUNCTION_BITS))]


TWINS: dict[type, Twin] = {
    AxiLiteTarget: Twin("axi_lite", config=_some_chip),
    RegisterBank: Twin("register_bank", config=lambda dut: dut.map.config, fits=_shares),
    BlockScheduler: Twin("block_scheduler", _places),
    BusCounters: Twin("bus_counters", config=_some_chip),
    CoreCounters: Twin("core_counters", config=_some_chip),
    CopyEngine: Twin("copy_engine"),
    CommandProcessor: Twin("command_processor", _processor, fits=_packet_in_beat),
    CopyScheduler: Twin("copy_scheduler"),
    Executor: Twin("executor", _asks, fits=_packet_in_beat),
    Interrupts: Twin("interrupts", config=_some_chip),
    PacketCheck: Twin("packet_check"),
    QueueRecords: Twin("queue_records", config=_some_chip),
    WordAccess: Twin("word_access", _asks, fits=_packet_in_beat),
    Queue: Twin("command_queue", config=_some_chip),
    BankedSram: Twin("sram", _memory, _some_chip),
    Hazards: Twin("hazards", fits=lambda dut: dut._config.has(ElementType.BF16)),
    MatrixUnit: Twin("matrix_unit"),
    Sequencer: Twin("sequencer", lambda dut: [fetch.SPLIT_BYTES]),
    BlockTransposer: Twin("transposer", lambda dut: [dut._size, dut._columns], _some_chip),
    ListAddresses: Twin("list_addresses"),
    LoadUnit: Twin("load_unit"),
    Scrub: Twin("scrub"),
    Semaphores: Twin("semaphores", config=_some_chip, fits=lambda dut: (len(dut.wait), len(dut.signal)) == (5, 6)),
    StoreUnit: Twin("store_unit"),
    VectorUnit: Twin("vector_unit", _vector),
    UnitFront: Twin("unit_front", lambda dut: [dut._depth], _some_chip),
    MemoryReader: Twin("memory_reader", lambda dut: [dut._depth, dut._beats], fits=_reader_fits),
    MemoryWriter: Twin("memory_writer"),
    Mesh: Twin("mesh", _mesh),
    Router: Twin("router", lambda dut: _router(False, dut._node, dut._turns), _some_chip),
    MulticastRouter: Twin("router", lambda dut: _router(True, dut._node, dut._turns), _some_chip),
    NodePort: Twin("node_port", _parts),
    ReadCombiner: Twin("read_combiner", lambda dut: _cores(dut._config)),
    MemoryPort: Twin("memory_port", lambda dut: [_number(command_node(dut._config)), *_cores(dut._config)]),
    MemoryGateway: Twin("memory_gateway", _gateway_nodes),
    TranslatedPort: Twin("translated_port", lambda dut: _parts(dut._port), lambda dut: dut._port._config),
}


class TwinError(AssertionError):
    """A block and its twin differ."""


@cache
def _library(config: ChipConfig, name: str) -> ctypes.CDLL:
    """The twin alone: to compile them all takes longer than most benches run."""
    block, ports = name.title().replace("_", ""), f"{name.upper()}_PORTS"
    chosen = f'#include "{name}.h"\nTWIN({block}, {name}, {ports})\n'
    sources = {"abi.h": header(config), "nodes.h": _nodes(config), "chosen.h": chosen}
    return ctypes.CDLL(str(build(FOLDER / "twins.c", sources, SOON_DONE, (FOLDER,))))


Part = Callable[[Any], Awaitable[None]]
"""Of a bench."""


def watch(dut: Any) -> Part | None:
    """The part of a bench that runs a block's twin in lock-step; None if it has none."""
    beside = twin_of(dut)
    if beside is None:
        return None

    async def lock_step(ctx: Any) -> None:
        beside.reset()
        async for sampled in ctx.tick().sample(*beside.signals.values()):
            beside.cycle(sampled[_BEFORE:])

    return lock_step


def twin_of(dut: Any) -> "Beside | None":
    """A block's twin, for benches that step it themselves; None if it has none."""
    twin = TWINS.get(type(dut))
    return Beside(dut, twin) if twin and twin.fits(dut) and find_c_compiler() else None


class Beside:
    """A twin, and where the block has its ports.

    Attributes: ``signals``: by path, those that ``cycle`` takes as numbers in their order.
    """

    def __init__(self, dut: Any, twin: Twin) -> None:
        self._name, self._parameters = type(dut).__name__, twin.parameters(dut)
        library = _library(twin.config(dut), twin.name)
        ports = _ports(library, twin.name)
        inputs, outputs = ([path for kind, path in ports if kind == which] for which in "IO")
        names = [path.partition("?")[0] for path in (*inputs, *outputs)]
        self.signals, self._pieces = _pieces(dut, names)
        self._signals = [re.sub(r"\W+", "__", path.rstrip(".")) for path in self.signals]  # as ``Simulation`` has them
        self._conditions = (ctypes.c_int32 * len(outputs))(*(_condition(dut, path, names) for path in outputs))
        self._names, self._inputs = names, len(inputs)
        self._ports, self._results = ctypes.c_uint32 * len(names), (ctypes.c_uint32 * len(outputs))()
        self._create, self._compare, self._destroy = (
            library[f"{twin.name}_twin_{function}"] for function in ("create", "cycle", "destroy")
        )
        self._create.restype = ctypes.c_void_p
        self._finished: Callable[[], object] = lambda: None

    def reset(self) -> None:
        """From here on the twin is one that was just reset."""
        parameters = (ctypes.c_uint32 * max(1, len(self._parameters)))(*self._parameters)
        self._handle, self._cycle = ctypes.c_void_p(self._create(parameters)), 0
        self._finished()
        self._finished = finalize(self, self._destroy, self._handle)

    def peeked(self, simulation: Simulation) -> None:
        """A clock edge that the simulation of the block is about to make."""
        self.cycle([simulation.peek(name) for name in self._signals])

    def cycle(self, values: Sequence[int]) -> None:
        """A clock edge of both. Raises ``TwinError``."""
        words = self._ports(*[values[place] >> shift & mask for place, shift, mask in self._pieces])
        which = self._compare(self._handle, words, self._conditions, self._results)
        if which >= 0:
            port, real = self._names[self._inputs + which].strip("~."), words[self._inputs + which]
            twin = self._results[which]
            raise TwinError(f"cycle {self._cycle}: {port} of {self._name} is {real:#x}, of its twin {twin:#x}")
        self._cycle += 1


def _condition(dut: Any, path: str, names: list[str]) -> int:
    """When an output is compared, as in ``twin.h``."""
    if path[0] == "." or not _has(dut, path):
        return _UNSEEN
    return names.index(path.partition("?")[2]) if "?" in path else _COMPARED


def _ports(library: ctypes.CDLL, name: str) -> list[tuple[str, str]]:
    """I or O, and the path of each port in the order of the twin's list."""
    text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, f"{name}_twin_ports"))).decode()
    return [(line[0], line[1:]) for line in text.splitlines()]


def _pieces(dut: Any, paths: list[str]) -> tuple[dict[str, Value], list[tuple[int, int, int]]]:
    """The signals in which the ports with these paths are, each once; for each port which of them that is, how far it
    is shifted in there, and a mask."""
    signals: dict[str, Value] = {}
    places: dict[str, int] = {}
    pieces = []
    for path in paths:
        name, _, word = path.partition("@")
        port = _find(dut, name) if name[0] != "." and _has(dut, name) else _Port(name, Const(0), 0, 1)
        if port.whole not in places:
            places[port.whole] = len(signals)
            signals[port.whole] = port.signal
        behind = 32 * int(word or 0)
        width = max(0, min(32, port.width - behind))
        pieces.append((places[port.whole], port.shift + behind, (1 << width) - 1))
    return signals, pieces


@dataclass(frozen=True)
class _Port:
    """Where a port is: bits of a signal, whose path is ``whole``."""

    whole: str
    signal: Value
    shift: int
    width: int


def _has(dut: Any, path: str) -> bool:
    """Whether there is such a port; only one with ``~`` in front may be missing."""
    try:
        _find(dut, re.split("[@?]", path)[0])
    except (AttributeError, IndexError, KeyError):
        if path[0] != "~":
            raise
        return False
    return True


def _find(dut: Any, path: str) -> _Port:
    """The port with a path such as ``wait[0].payload``. All fields of a payload are in one signal."""
    value, whole, shift = dut, "", 0
    signal: Value | None = None
    for step in re.finditer(r"(\w+)|\[(\d+)\]", path):
        key: Any = step[1] or int(step[2])
        if isinstance(value, data.View):
            if signal is None:
                signal, whole = value.as_value(), path[: step.start()]
            shift += data.Layout.cast(value.shape())[key].offset
        value = getattr(value, key) if step[1] else value[key]
    bits = Value.cast(value)
    return _Port(path, bits, 0, len(bits)) if signal is None else _Port(whole, signal, shift, len(bits))
