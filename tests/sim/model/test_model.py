"""The golden model, driven through registers, rings and packets alone."""

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import preset
from sley.abi.counters import CounterGroup, MatrixCycle, Traffic
from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.instructions import SEMAPHORE_MAX
from sley.abi.packets import INLINE_ARGS, PACKET_BYTES, PacketOp, encode_packet
from sley.abi.pages import AddressMode
from sley.sim.model.chip import ModelChip

RING, FENCE, PROGRAM, ARGS, DATA = 0x1000, 0x2000, 0x4000, 0x8000, 0x10000


class Bench:
    """A chip with queue 0 enabled, and the bare minimum to talk to it."""

    compiled = True

    def __init__(self, name: str):
        self.chip = ModelChip(preset(name), 1 << 20, self.compiled)
        self.index = 0
        self.poke("CONTEXT0.ROOT", AddressMode.PHYSICAL)
        self.poke("QUEUE0.BASE", RING)
        self.poke("QUEUE0.SIZE", 3)
        self.poke("QUEUE0.CONTROL", 1)
        self.poke("CHIP.IRQ_ENABLE", 0xFFFF)

    def poke(self, name: str, value: int) -> None:
        self.chip.write(self.chip.map[name].address, value)

    def peek(self, name: str) -> int:
        return self.chip.read(self.chip.map[name].address)

    def submit(self, packet: bytes) -> None:
        self.store(RING + PACKET_BYTES * (self.index % 8), packet)
        self.index = (self.index + 1) % 16
        self.poke("DOORBELL0.WRITE_INDEX", self.index)
        self.chip.run(100_000)

    def store(self, address: int, data: bytes) -> None:
        self.chip.memory.view(address, len(data))[:] = np.frombuffer(data, np.uint8)

    def launch(
        self, text: str, *args: int, grid: tuple[int, int, int] = (1, 1, 1), tag: int = 0, gang: bool = False
    ) -> None:
        words = assemble(text)
        self.store(PROGRAM, words_to_bytes(words))
        self.store(ARGS, np.array(args, np.uint32).tobytes())
        sizes = {"program_words": len(words), "arg_words": len(args), "tag": tag, "gang": gang}
        if len(args) > INLINE_ARGS:
            sizes["args"] = ARGS
        else:
            sizes |= {f"arg{k}": value for k, value in enumerate(args)}
        grids = dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True))
        self.submit(encode_packet(PacketOp.LAUNCH, program=PROGRAM, **sizes, **grids))


@pytest.fixture(autouse=True, params=[True, False], ids=["compiled", "numpy"])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test with either kind of cores."""
    monkeypatch.setattr(Bench, "compiled", request.param)


@pytest.mark.parametrize("name", ["nano", "edge", "base"])
def test_one_fold(name: str) -> None:
    bench = Bench(name)
    c = bench.chip.config
    rng = np.random.default_rng(3)
    m = 11
    a = rng.integers(-128, 128, (m, c.fold_depth()), np.int8)
    b = rng.integers(-128, 128, (c.fold_depth(), c.array), np.int8)
    bench.store(DATA, a.tobytes())
    lanes = b.reshape(c.array, c.lane_elements(), c.array).transpose(0, 2, 1)
    bench.store(DATA + 0x1000, lanes.tobytes())
    bench.launch(
        f"""
        set load.run_bytes, #{c.row_bytes}
        set load.mem_stride, #{c.row_bytes}
        load r8, r0, r11 signal=0
        load r9, r11, r12 signal=1
        weights r11, r12 wait=1
        matmul r0, r0, r11 wait=0 signal=2
        set store.run_bytes, #{c.accumulator_row_bytes}
        set store.mem_stride, #{c.accumulator_row_bytes}
        store r10, r0, r11 space=accumulator wait=2
        end
        """,
        DATA,
        DATA + 0x1000,
        DATA + 0x2000,
        m,
        c.array,
    )
    assert bench.peek("QUEUE0.STATE") == QueueState.READY
    result = bench.chip.memory.view(DATA + 0x2000, 4 * m * c.array).view(np.int32).reshape(m, c.array)
    np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32))
    counts = bench.chip.command.cores[0].counts.values
    assert counts[CounterGroup.MATRIX][MatrixCycle.ROW_INT8] == m + 1  # and one in the scrub of the first block
    assert counts[CounterGroup.TRAFFIC][Traffic.STORE_BYTES] == result.nbytes
    assert counts[CounterGroup.TRAFFIC][Traffic.STORE_BEATS] == result.nbytes // c.bus_bytes


def test_grid_loops_and_fence() -> None:
    """Every block of a 3 x 2 x 2 grid adds its mark through scalar code alone: x + 4y + 16z via STORE of a splat."""
    bench = Bench("quad")
    bench.launch(
        """
        mul r20, r2, #4
        mul r21, r3, #16
        add r22, r1, r20
        add r22, r22, r21
        mul r23, r22, #4
        add r23, r8, r23
        vrow r22 splat=1
        set store.run_bytes, #4
        vector r0, r0, r9 dtype=int32 bias=1 b_op=none out=int32 a_space=scratchpad signal=0
        store r23, r0, r9 space=accumulator wait=0
        end
        """,
        DATA,
        1,
        grid=(3, 2, 2),
    )
    marks = bench.chip.memory.view(DATA, 4 * 32).view(np.int32)
    for z in range(2):
        for y in range(2):
            for x in range(3):
                assert marks[x + 4 * y + 16 * z] == x + 4 * y + 16 * z
    bench.submit(encode_packet(PacketOp.FENCE, address=FENCE, sequence=7, interrupt=1))
    assert bench.chip.memory.read_word(FENCE, 8) == 7
    assert bench.chip.irq
    bench.poke("CHIP.IRQ_STATUS", 1)
    assert not bench.chip.irq


@pytest.mark.parametrize(
    ("text", "code", "unit", "pc", "address"),
    [
        ("end\nend\nadd r1,r0,r0", FaultCode.NONE, 0, 0, 0),
        ("add r1, r0, #1", FaultCode.PC_OUT_OF_RANGE, Unit.SEQUENCER, 1, 1),
        ("sync signal=3\nend", FaultCode.SEMAPHORE_LEFTOVER, Unit.SEQUENCER, 1, 8),
        ("add r5, r0, #512\nadd r6, r0, #1\nmatmul r5, r0, r6\nend", FaultCode.LOCAL_ADDRESS, Unit.MATRIX, 2, 512),
        ("set load.run_bytes, #70000\nend", FaultCode.BAD_PARAMETER, Unit.LOAD, 0, 0),
        ("".join(f"loop #2, {x}\n" for x in "abcde") + "sync\ne:sync\nd:sync\nc:sync\nb:sync\na:sync\nend",
         FaultCode.LOOP_OVERFLOW, Unit.SEQUENCER, 4, 6),
    ],
)  # fmt: skip
def test_faults(text: str, code: FaultCode, unit: int, pc: int, address: int) -> None:
    bench = Bench("nano")
    bench.launch(text)
    assert bench.chip.map["QUEUE0.ERROR"].layout.unpack(bench.peek("QUEUE0.ERROR")) == {
        "code": code,
        "unit": unit,
        "core": 0,
    }
    assert (bench.peek("QUEUE0.ERROR_PC"), bench.peek("QUEUE0.ERROR_ADDRESS")) == (pc, address)


def test_held_program() -> None:
    """A program with the tag, address and length of the one before is not read again, unless there was a fault or a
    reset."""
    bench = Bench("nano")
    good, bad = "sync\nend", "add r1, r0, #1\nadd r1, r0, #1"
    for text, tag, faulty in [
        (good, 5, False),
        (bad, 5, False),
        (bad, 0, True),
        (good, 5, False),
        (bad, 4, True),
        (good, 4, False),
        (bad, 4, False),
    ]:
        bench.launch(text, tag=tag)
        assert (bench.peek("QUEUE0.STATE") == QueueState.ERROR) == faulty
        if faulty:
            bench.poke("QUEUE0.CONTROL", 0)
            bench.poke("QUEUE0.CONTROL", 1)
            bench.index = 0
    bench.poke("CHIP.CONTROL", 1)
    bench.index = 0
    bench.launch(bad, tag=4)
    assert bench.peek("QUEUE0.STATE") == QueueState.ERROR


def test_arguments() -> None:
    """As many as the packet carries, and one more."""
    for count in (0, 1, 6, 7, 24):
        bench = Bench("nano")
        args = [DATA, *(0x1234_5678 ^ k for k in range(count - 1))][:count]
        bench.launch("end", *args)
        assert bench.peek("QUEUE0.STATE") == QueueState.READY
        expected = [*args, *[0] * (24 - count)]
        assert bench.chip.command.cores[0].registers[8:] == expected


def test_unknown_packet_stops_only_its_queue() -> None:
    bench = Bench("nano")
    bench.submit(bytes(64))
    assert bench.peek("QUEUE0.STATE") == QueueState.ERROR
    assert bench.chip.irq
    bench.poke("QUEUE0.CONTROL", 0)
    bench.poke("QUEUE0.CONTROL", 1)
    bench.index = 0
    bench.submit(encode_packet(PacketOp.FILL, dst=DATA, bytes=5, value=9))
    assert bench.chip.memory.view(DATA, 6).tolist() == [9] * 5 + [0]


def test_deadlock_stays_launched() -> None:
    bench = Bench("nano")
    bench.launch("sync wait=4\nend")
    assert bench.peek("QUEUE0.STATE") == QueueState.LAUNCHED
    progress = bench.peek("CHIP.PROGRESS")
    bench.chip.run(1000)
    assert bench.peek("CHIP.PROGRESS") == progress
    bench.poke("CHIP.CONTROL", 1)
    assert bench.peek("QUEUE0.STATE") == QueueState.READY
    assert bench.peek("QUEUE0.WRITE_INDEX") == 0


def test_gangs() -> None:
    """Block (x, y, z) runs on the core in column x and row y; the grid must fit the cores. Sharing changes nothing."""
    bench = Bench("quad")
    program = """
        set load.run_bytes, #32
        load r8, r0, r9 share=all signal=0
        mul r20, r3, #4
        mul r21, r2, #2
        add r20, r20, r21
        add r20, r20, r1
        mul r20, r20, #32
        add r10, r10, r20
        set store.run_bytes, #32
        store r10, r0, r9 wait=0
        end
        """
    values = np.arange(32, dtype=np.uint8)
    bench.store(DATA, values.tobytes())
    bench.launch(program, DATA, 1, DATA + 0x1000, grid=(2, 2, 3), gang=True)
    assert bench.peek("QUEUE0.STATE") == QueueState.READY
    np.testing.assert_array_equal(bench.chip.memory.view(DATA + 0x1000, 12 * 32).reshape(12, 32), [values] * 12)
    assert [core.retired for core in bench.chip.command.cores] == [3 * 5] * 4

    stops = "beq r3, r0, 2\n bne r2, r0, 3\n end\n beq r1, r0, 2\n sync\n load r0, r8, r9\n end"
    bench.launch(stops, 1 << 20, 1, grid=(2, 2, 2), gang=True)
    assert bench.peek("QUEUE0.STATE") == QueueState.ERROR
    record = bench.chip.map["QUEUE0.ERROR"].layout.unpack(bench.peek("QUEUE0.ERROR"))
    assert (record["code"], record["core"]) == (FaultCode.LOCAL_ADDRESS, 3)
    assert bench.peek("QUEUE0.ERROR_BLOCK") == 7


@pytest.mark.parametrize(("grid", "word"), [((4, 1, 1), 2), ((2, 1, 2), 3), ((1, 2, 1), 2)])
def test_the_grid_of_a_gang(grid: tuple[int, int, int], word: int) -> None:
    bench = Bench("quad")
    bench.launch("end", grid=grid, gang=True)
    record = bench.chip.map["QUEUE0.ERROR"].layout.unpack(bench.peek("QUEUE0.ERROR"))
    assert (record["code"], bench.peek("QUEUE0.ERROR_ADDRESS")) == (FaultCode.BAD_FIELD, word)


def test_the_first_bad_word_of_a_packet_is_reported() -> None:
    bench = Bench("nano")
    packet = bytearray(encode_packet(PacketOp.NOP))
    packet[4 * 5], packet[4 * 9] = 1, 1
    bench.submit(bytes(packet))
    record = bench.chip.map["QUEUE0.ERROR"].layout.unpack(bench.peek("QUEUE0.ERROR"))
    assert (record["code"], bench.peek("QUEUE0.ERROR_ADDRESS")) == (FaultCode.BAD_FIELD, 5)


def test_reserved_bits_of_a_doorbell_mean_nothing() -> None:
    bench = Bench("nano")
    bench.store(RING, encode_packet(PacketOp.FILL, dst=DATA, bytes=3, value=9))
    bench.poke("DOORBELL0.WRITE_INDEX", 1 | 1 << 16)
    bench.chip.run(1000)
    assert bench.peek("QUEUE0.STATE") == QueueState.READY
    assert bench.chip.memory.view(DATA, 4).tolist() == [9] * 3 + [0]


def test_a_sync_whose_signal_waits_has_waited() -> None:
    """Semaphore 2, which it signals, is full until Vector takes one; semaphore 1, which it waited for, has no more."""
    bench = Bench("nano")
    text = ["sync signal=2"] * SEMAPHORE_MAX + ["sync signal=1", *["vrow r0 splat=1"] * 6, "vrow r0 splat=1 wait=2"]
    text += ["sync wait=1 signal=2", *["sync wait=2"] * SEMAPHORE_MAX, "end"]
    bench.launch("\n".join(text))
    assert bench.peek("QUEUE0.STATE") == QueueState.READY
