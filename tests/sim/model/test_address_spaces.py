"""Contexts in the golden model: everything a queue does goes through its page tables, and nothing stays behind."""

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import preset
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.abi.pages import ENTRY_BYTES, PAGE_BYTES, PAGE_ENTRY, AddressMode, table_index
from sley.sim.model.chip import ModelChip

UPPER, LOWER = 0x1000, 0x2000
"""Tables of a context; those of context 1 lie ``TABLES`` above."""
TABLES = 0x2000
RING, CODE, DATA, HIDDEN = 0x40_0000, 0x40_1000, 0x40_2000, 0x40_5000
"""Virtual addresses. DATA and the page behind it lie apart in memory."""
PLACES = {RING: 0x11000, CODE: 0x12000, DATA: 0x1A000, DATA + PAGE_BYTES: 0x14000, HIDDEN: 0x15000}
RIGHTS = {RING: "read write", CODE: "execute", DATA: "read write", DATA + PAGE_BYTES: "read write", HIDDEN: ""}
STRIDE = 0x10000
"""Memory of context 1 lies so much above."""


class Bench:
    """Two contexts with a queue each and the same addresses, which lead to places of their own."""

    compiled = True

    def __init__(self) -> None:
        self.chip = ModelChip(preset("nano"), 1 << 20, self.compiled)
        self.index = [0, 0]
        for context in range(2):
            self.entry(UPPER + context * TABLES, table_index(RING)[0], LOWER + context * TABLES, "")
            for address, place in PLACES.items():
                self.map(address, place + context * STRIDE, RIGHTS[address], context)
            root = self.chip.map[f"CONTEXT{context}.ROOT"].layout
            self.poke(
                f"CONTEXT{context}.ROOT", root.pack(mode=AddressMode.PAGED, page=(UPPER + context * TABLES) >> 12)
            )
            self.poke(f"QUEUE{context}.OWNER", context)
            self.poke(f"QUEUE{context}.BASE", RING)
            self.poke(f"QUEUE{context}.SIZE", 3)
            self.poke(f"QUEUE{context}.READBACK", RING + 0x800)
            self.poke(f"QUEUE{context}.CONTROL", 1)

    def poke(self, name: str, value: int) -> None:
        self.chip.write(self.chip.map[name].address, value)

    def peek(self, name: str) -> int:
        return self.chip.read(self.chip.map[name].address)

    def entry(self, table: int, index: int, place: int, rights: str, **fields: int) -> None:
        word = PAGE_ENTRY.pack(**{"valid": 1, "page": place >> 12, **dict.fromkeys(rights.split(), 1), **fields})
        self.store(table + ENTRY_BYTES * index, word.to_bytes(ENTRY_BYTES, "little"))

    def map(self, address: int, place: int, rights: str, context: int = 0, **fields: int) -> None:
        self.entry(LOWER + context * TABLES, table_index(address)[1], place, rights, **fields)

    def store(self, place: int, data: bytes) -> None:
        self.chip.memory.write(place, np.frombuffer(data, np.uint8))

    def bytes(self, place: int, length: int) -> bytes:
        return self.chip.memory.read(place, length).tobytes()

    def submit(self, packet: bytes, queue: int = 0) -> tuple[FaultCode, Unit, int] | None:
        """The fault, if there is one: code, unit and address."""
        self.store(PLACES[RING] + queue * STRIDE + PACKET_BYTES * (self.index[queue] % 8), packet)
        self.index[queue] = (self.index[queue] + 1) % 16
        self.poke(f"DOORBELL{queue}.WRITE_INDEX", self.index[queue])
        self.chip.run(10_000)
        if self.peek(f"QUEUE{queue}.STATE") != QueueState.ERROR:
            assert self.bytes(PLACES[RING] + queue * STRIDE + 0x800, 4) == self.index[queue].to_bytes(4, "little")
            return None
        record = self.chip.map[f"QUEUE{queue}.ERROR"].layout.unpack(self.peek(f"QUEUE{queue}.ERROR"))
        address = self.peek(f"QUEUE{queue}.ERROR_ADDRESS")
        self.poke(f"QUEUE{queue}.CONTROL", 0)
        self.poke(f"QUEUE{queue}.CONTROL", 1)
        self.index[queue] = 0
        return FaultCode(record["code"]), Unit(record["unit"]), address

    def launch(self, text: str, queue: int = 0, tag: int = 0) -> tuple[FaultCode, Unit, int] | None:
        code = words_to_bytes(assemble(text))
        self.store(PLACES[CODE] + queue * STRIDE, code)
        fields = {"program": CODE, "program_words": len(code) // 16, "grid_x": 1, "grid_y": 1, "grid_z": 1, "tag": tag}
        return self.submit(encode_packet(PacketOp.LAUNCH, **fields), queue)


@pytest.fixture(autouse=True, params=[True, False], ids=["compiled", "numpy"])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test with either kind of cores."""
    monkeypatch.setattr(Bench, "compiled", request.param)


def copy(src: int, dst: int, length: int) -> bytes:
    return encode_packet(PacketOp.COPY, src=src, dst=dst, bytes=length)


def test_pages_that_lie_apart_are_one_range() -> None:
    bench = Bench()
    data = np.random.default_rng(1).bytes(PAGE_BYTES)
    bench.store(PLACES[DATA], data)
    assert bench.submit(copy(DATA, DATA + PAGE_BYTES - 16, 16)) is None
    assert bench.submit(copy(DATA + 100, DATA + PAGE_BYTES + 100, 1000)) is None
    assert bench.bytes(PLACES[DATA] + PAGE_BYTES - 16, 16) == data[:16]
    assert bench.bytes(PLACES[DATA + PAGE_BYTES] + 100, 1000) == data[100:1100]
    assert bench.submit(encode_packet(PacketOp.FILL, dst=DATA + PAGE_BYTES - 8, bytes=16, value=7)) is None
    assert bench.bytes(PLACES[DATA] + PAGE_BYTES - 8, 8) == bench.bytes(PLACES[DATA + PAGE_BYTES], 8) == bytes([7]) * 8
    assert bench.bytes(PLACES[DATA] + STRIDE, PAGE_BYTES) == bytes(PAGE_BYTES)


LOAD = """
    add  r1, r0, #{address}
    add  r2, r0, #1
    set  load.run_bytes, #4
    set  store.run_bytes, #4
    {op} r1, r0, r2
    end
"""


@pytest.mark.parametrize(
    ("address", "code", "before"),
    [
        (HIDDEN, FaultCode.PERMISSION, FaultCode.PAGE_FAULT),
        (HIDDEN + PAGE_BYTES, FaultCode.PAGE_FAULT, FaultCode.PERMISSION),
    ],
)
def test_faults_name_what_the_access_was_for(address: int, code: FaultCode, before: FaultCode) -> None:
    """``before``: of the page in front, which decides about a range that begins there."""
    bench = Bench()
    assert bench.submit(copy(address, DATA, 8)) == (code, Unit.COMMAND, address)
    assert bench.submit(copy(DATA, address - 8, 16)) == (before, Unit.COMMAND, address - 8)
    for op in (PacketOp.WAIT, PacketOp.SIGNAL, PacketOp.FENCE):
        assert bench.submit(encode_packet(op, address=address)) == (code, Unit.COMMAND, address)
    assert bench.launch(LOAD.format(op="load", address=address)) == (code, Unit.LOAD, address)
    assert bench.launch(LOAD.format(op="store", address=address)) == (code, Unit.STORE, address)
    assert bench.launch(LOAD.format(op="load", address=DATA)) is None
    launch = {"program_words": 1, "grid_x": 1, "grid_y": 1, "grid_z": 1}
    for program in (address, address + 64):
        packet = encode_packet(PacketOp.LAUNCH, program=program, **launch)
        assert bench.submit(packet) == (code, Unit.SEQUENCER, program)
    packet = encode_packet(PacketOp.LAUNCH, program=CODE, args=address, arg_words=7, **launch)
    assert bench.submit(packet) == (code, Unit.SEQUENCER, address)


def test_each_right_is_asked_for() -> None:
    bench = Bench()
    launch = encode_packet(PacketOp.LAUNCH, program=DATA, program_words=1, grid_x=1, grid_y=1, grid_z=1)
    assert bench.submit(launch) == (FaultCode.PERMISSION, Unit.SEQUENCER, DATA)
    assert bench.submit(copy(CODE, DATA, 8)) == (FaultCode.PERMISSION, Unit.COMMAND, CODE)
    assert bench.submit(copy(DATA, CODE, 8)) == (FaultCode.PERMISSION, Unit.COMMAND, CODE)


def test_the_ring_and_its_read_index_are_translated_too() -> None:
    bench = Bench()
    bench.map(RING, PLACES[RING], "write")
    bench.poke("CHIP.INVALIDATE", 0)
    assert bench.submit(encode_packet(PacketOp.NOP)) == (FaultCode.PERMISSION, Unit.COMMAND, RING)
    bench.map(RING, PLACES[RING], "read")
    bench.poke("CHIP.INVALIDATE", 0)
    assert bench.submit(encode_packet(PacketOp.NOP)) == (FaultCode.PERMISSION, Unit.COMMAND, RING + 0x800)
    assert bench.submit(encode_packet(PacketOp.NOP), 1) is None


def test_a_context_is_off_after_reset_and_a_missing_one_always() -> None:
    bench = Bench()
    for owner in (2, 15):
        bench.poke("QUEUE0.CONTROL", 0)
        bench.poke("QUEUE0.OWNER", owner)
        bench.poke("QUEUE0.CONTROL", 1)
        assert bench.submit(encode_packet(PacketOp.NOP)) == (FaultCode.PAGE_FAULT, Unit.COMMAND, RING)


def test_the_set_up_of_a_queue_that_is_on_does_not_change() -> None:
    bench = Bench()
    for name in ("OWNER", "BASE", "SIZE", "READBACK"):
        bench.poke(f"QUEUE0.{name}", 0x41)
    assert bench.submit(encode_packet(PacketOp.NOP)) is None


def test_large_pages_and_entries_that_are_not_valid() -> None:
    bench = Bench()
    large = 0x80_0000
    index = table_index(large)[0]

    def attempt(place: int, rights: str, **fields: int) -> FaultCode | None:
        bench.entry(UPPER, index, place, rights, **fields)
        bench.poke("CHIP.INVALIDATE", 0)
        fault = bench.submit(copy(large + 0x1A000, DATA + PAGE_BYTES, 4))
        return fault and fault[0]

    bench.store(PLACES[DATA], b"here")
    assert attempt(0, "read") is None
    assert bench.bytes(PLACES[DATA + PAGE_BYTES], 4) == b"here"
    assert attempt(0, "write") is FaultCode.PERMISSION
    assert attempt(0x1000, "read") is FaultCode.PAGE_FAULT
    assert attempt(0, "read", valid=0) is FaultCode.PAGE_FAULT
    assert attempt(0x40_0000, "read") is FaultCode.BUS_ERROR
    assert attempt(0x40_0000, "") is FaultCode.PAGE_FAULT
    bench.store(UPPER + ENTRY_BYTES * index, (0x13).to_bytes(4, "little"))
    bench.poke("CHIP.INVALIDATE", 0)
    assert bench.submit(copy(large + 0x1A000, DATA, 4)) == (FaultCode.PAGE_FAULT, Unit.COMMAND, large + 0x1A000)


def test_translations_hold_until_they_are_invalidated() -> None:
    bench = Bench()
    assert bench.submit(copy(DATA, DATA + PAGE_BYTES, 4)) is None
    bench.map(DATA, PLACES[HIDDEN], "read")
    bench.store(PLACES[HIDDEN], b"new!")
    bench.poke("CHIP.INVALIDATE", 1)
    assert bench.submit(copy(DATA, DATA + PAGE_BYTES, 4)) is None
    assert bench.bytes(PLACES[DATA + PAGE_BYTES], 4) == bytes(4)
    bench.poke("CHIP.INVALIDATE", 0)
    assert bench.submit(copy(DATA, DATA + PAGE_BYTES, 4)) is None
    assert bench.bytes(PLACES[DATA + PAGE_BYTES], 4) == b"new!"


PLANT = """
    add  r1, r0, #{data}
    add  r2, r0, #1
    set  load.run_bytes, #4
    load r1, r0, r2 signal=0
    sync wait=0
    load r1, r0, r2 space=accumulator signal=0
    sync wait=0
    weights r0, #1
    end
"""
SHOW = """
    add  r1, r0, #{data}
    add  r2, r0, #1
    add  r3, r1, #4
    set  store.run_bytes, #4
    store r1, r0, r2
    store r3, r0, r2 space=accumulator
    end
"""


def test_nothing_stays_in_a_core_for_another_context() -> None:
    bench = Bench()
    secret = b"\x11\x22\x33\x44"
    for place in (0, STRIDE):
        bench.store(PLACES[DATA] + place, secret)

    def found(queue: int) -> bytes:
        assert bench.launch(SHOW.format(data=DATA), queue) is None
        return bench.bytes(PLACES[DATA] + queue * STRIDE, 8)

    assert bench.launch(PLANT.format(data=DATA)) is None
    assert bench.chip.command.cores[0].weights.any()
    assert found(0) == 2 * secret
    assert found(1) == bytes(8)
    assert not bench.chip.command.cores[0].weights.any()
    bench.store(PLACES[DATA], secret)
    assert bench.launch(PLANT.format(data=DATA)) is None
    assert found(0) == 2 * secret
    layout = bench.chip.map["CHIP.INVALIDATE"].layout
    bench.poke("CHIP.INVALIDATE", layout.pack(context=0, contents=1))
    assert found(0) == bytes(8)


def test_a_held_program_is_not_run_for_another_context() -> None:
    bench = Bench()
    assert bench.launch("sync\nend", tag=5) is None
    assert bench.launch("sync\nsync", queue=1, tag=5) is not None
