"""The bridge in simulation, bytes on its line against what must be behind it; without and with faults on the line."""

import random

import pytest

from sley.abi.config import ChipConfig, preset
from sley.fpga.bridge.bridge import HostBridge
from sley.fpga.bridge.frames import (
    FLAG,
    HEADER,
    IDENTITY_BYTES,
    IRQ,
    MAGIC,
    VERSION,
    Code,
    FrameDecoder,
    Identity,
    Status,
    encode_frame,
)
from sley.fpga.bridge.link import LinkError
from sley.fpga.bridge.transport import FpgaTransport
from sley.fpga.testing.bridged import BAUD, MEMORY_BYTES, Register
from sley.hw.testing.parameters import rejects
from sley.sim.board.board import SimulatedBoard
from sley.sim.board.port import BoardPort
from sley.sim.testing.faulty_line import FaultyLine

CLOCKS = 4


class Raw:
    """Bytes to and from a board, without a link."""

    def __init__(self, board: SimulatedBoard) -> None:
        self.port = BoardPort(board)
        self.decoder = FrameDecoder()

    def say(self, line: bytes) -> list[bytes | None]:
        """What comes back until the line has been silent for a while."""
        self.port.write(line)
        bodies: list[bytes | None] = []
        silent = -len(line) // 20
        while silent < 3:
            data = self.port.read()
            bodies += self.decoder.feed(data)
            silent = 0 if data else silent + 1
        return bodies

    def command(
        self, code: int, sequence: int, address: int = 0, data: bytes = b"", length: int | None = None
    ) -> list[bytes | None]:
        return self.say(command(code, sequence, address, data, length))


def command(code: int, sequence: int, address: int = 0, data: bytes = b"", length: int | None = None) -> bytes:
    return encode_frame(HEADER.pack(code, sequence, len(data) if length is None else length, address) + data)


def word(value: int) -> bytes:
    return value.to_bytes(4, "little")


def test_identify(board: SimulatedBoard, config: ChipConfig) -> None:
    raw = Raw(board)
    for sequence in (0, 200):
        (reply,) = raw.command(Code.IDENTIFY, sequence, length=IDENTITY_BYTES)
        assert reply is not None
        assert (reply[0], reply[-1]) == (sequence, Status.OK)
        assert Identity.unpack(reply[1:-1]) == Identity(
            magic=MAGIC,
            version=VERSION,
            bus_bytes=config.bus_bytes,
            payload_bytes=240 // config.bus_bytes * config.bus_bytes,
            buffer_bytes=511,
            memory_bytes=2 * MEMORY_BYTES,
            clock_hz=CLOCKS * BAUD,
        )


@pytest.mark.parametrize("config", ["nano"], indirect=True)
def test_commands_by_hand(board: SimulatedBoard) -> None:
    raw = Raw(board)
    assert raw.command(Code.WRITE_REGISTER, 0, Register.LAST, word(0x12345678)) == [bytes([0, Status.OK])]
    assert raw.command(Code.READ_REGISTER, 1, Register.LAST, length=4) == [b"\x01\x78\x56\x34\x12\x00"]
    assert raw.command(Code.READ_REGISTER, 2, 0x100, length=4) == [b"\x02\0\0\0\0" + bytes([Status.BUS_ERROR])]
    assert raw.command(Code.WRITE_REGISTER, 3, 0x100, word(1)) == [bytes([3, Status.BUS_ERROR])]
    assert raw.command(Code.WRITE_MEMORY, 4, 5, b"abcdef") == [bytes([4, Status.OK])]
    assert raw.command(Code.READ_MEMORY, 5, 3, length=10) == [b"\x05\0\0abcdef\0\0\0"]
    assert raw.command(Code.CLEAR_MEMORY, 6, 6, length=3) == [bytes([6, Status.OK])]
    assert raw.command(Code.READ_MEMORY, 7, 5, length=6) == [b"\x07a\0\0\0ef\0"]
    assert raw.command(Code.READ_MEMORY, 8, MEMORY_BYTES - 2, length=6) == [b"\x08\0\0" + bytes([Status.BUS_ERROR])]
    assert raw.command(Code.WRITE_MEMORY, 9, MEMORY_BYTES - 1, b"xy") == [bytes([9, Status.BUS_ERROR])]
    (reply,) = raw.command(Code.IDENTIFY, 0, length=IDENTITY_BYTES)
    assert reply is not None
    assert Identity.unpack(reply[1:-1]).expected == 10
    assert Identity.unpack(reply[1:-1]).failures == 4


@pytest.mark.parametrize("config", ["nano"], indirect=True)
def test_a_command_is_executed_once(board: SimulatedBoard) -> None:
    """The last one again gets the same reply; any other sequence number a refusal."""
    raw = Raw(board)
    for sequence in range(3):
        for _ in range(3):
            assert raw.command(Code.READ_REGISTER, sequence, Register.READS, length=4) == [
                bytes([sequence]) + word(sequence) + b"\0"
            ]
    for _ in range(3):
        assert raw.command(Code.WRITE_REGISTER, 3, Register.LAST, word(7)) == [bytes([3, Status.OK])]
    for _ in range(2):
        assert raw.command(Code.WRITE_REGISTER, 4, 0x104, word(7)) == [bytes([4, Status.BUS_ERROR])]
    for sequence in (3, 6, 255):
        assert raw.command(Code.WRITE_REGISTER, sequence, Register.LAST, word(8)) == [
            bytes([sequence, Status.OUT_OF_SEQUENCE])
        ]
    assert raw.command(Code.READ_REGISTER, 5, Register.WRITES, length=4) == [b"\x05" + word(2) + b"\0"]
    (reply,) = raw.command(Code.IDENTIFY, 0, length=IDENTITY_BYTES)
    assert reply is not None
    assert Identity.unpack(reply[1:-1]).failures == 1
    assert raw.command(Code.READ_REGISTER, 5, Register.WRITES, length=4) == [b"\x05" + word(2) + b"\0"]


@pytest.mark.parametrize("config", ["nano"], indirect=True)
def test_bad_commands(board: SimulatedBoard) -> None:
    """Intact frames that mean nothing change nothing, and what follows is understood."""
    raw = Raw(board)
    bad = [bytes([0, Status.BAD_COMMAND])]
    assert raw.command(8, 0) == bad
    assert raw.command(0x81, 0, 0, b"abcd") == bad
    assert raw.command(Code.WRITE_REGISTER, 0, Register.LAST, b"abcde") == bad
    assert raw.command(Code.READ_REGISTER, 0, Register.READS, length=3) == bad
    (short,) = raw.say(encode_frame(b"\x01"))
    assert short is not None
    assert short[-1] == Status.BAD_COMMAND
    assert raw.command(Code.WRITE_MEMORY, 0, 0, b"abc", length=200) == bad
    assert raw.command(Code.WRITE_MEMORY, 1, 8, b"abcdefgh", length=2) == [bytes([1, Status.OK])]
    assert raw.command(Code.READ_MEMORY, 2, 8, length=4) == [b"\x02ab\0\0\0"]
    assert raw.command(Code.READ_MEMORY, 3, 8, length=0) == [b"\x03\0"]
    assert raw.command(Code.READ_REGISTER, 4, Register.WRITES, length=4) == [b"\x04" + word(0) + b"\0"]


@pytest.mark.parametrize("config", ["nano"], indirect=True)
def test_time(board: SimulatedBoard) -> None:
    raw = Raw(board)

    def cycles(sequence: int) -> int:
        (reply,) = raw.command(Code.READ_REGISTER, sequence, Register.CYCLES, length=4)
        assert reply is not None
        return int.from_bytes(reply[1:5], "little")

    def took(code: Code, sequence: int, count: int) -> tuple[int, int]:
        """Cycles without those of the bytes on the line, and a constant; the status."""
        frame = command(code, sequence, -count % (1 << 32))
        raw.port.write(frame)
        before, bodies = board.cycles, []
        while not bodies:
            bodies += raw.decoder.feed(raw.port.read())
        (body,) = bodies
        assert body is not None
        line = len(frame) * 10 * CLOCKS + len(encode_frame(body)) * (10 * CLOCKS + 1)
        return board.cycles - before - line, body[-1]

    first = cycles(0)
    again = cycles(1)
    short, status = took(Code.ADVANCE, 2, 1)
    assert status == Status.OK
    for number, count in enumerate((2, 1000, 70_000)):
        long, status = took(Code.ADVANCE, 3 + number, count)
        assert (long - short, status) == (count - 1, Status.OK)
    assert again > first
    assert took(Code.WAIT_IRQ, 6, 500)[1] == Status.OK
    raw.command(Code.WRITE_REGISTER, 7, Register.ALARM, word(20_000))
    length, status = took(Code.WAIT_IRQ, 8, 100_000)
    assert status == Status.OK | IRQ
    assert 5_000 < length < 20_000 + short
    assert took(Code.WAIT_IRQ, 8, 100_000)[1] == Status.OK | IRQ  # again
    long, status = took(Code.ADVANCE, 9, 700)  # does not care
    assert (long - short, status) == (699, Status.OK | IRQ)
    raw.command(Code.WRITE_REGISTER, 10, Register.ALARM, word(0))
    assert took(Code.WAIT_IRQ, 11, 10)[1] == Status.OK


@pytest.mark.parametrize("config", ["nano"], indirect=True)
def test_damaged_frames_and_pauses(board: SimulatedBoard) -> None:
    raw = Raw(board)
    frame = command(Code.WRITE_REGISTER, 0, Register.LAST, word(0x55))
    refused = []
    for place in range(1, len(frame) - 1):
        refused += raw.say(frame[:place] + frame[place + 1 :])
        refused += raw.say(frame[:place] + bytes([frame[place] ^ 4]) + frame[place + 1 :])
    assert all(body is not None and body[-1] == Status.BAD_FRAME for body in refused)
    assert len(refused) >= 2 * (len(frame) - 2)
    assert raw.say(frame[:7]) == []
    board.simulation.tick(count=100_000)
    assert raw.say(frame[7:]) == [bytes([0, Status.OK])]
    assert raw.say(bytes([FLAG]) * 50) == []
    assert raw.command(Code.READ_REGISTER, 1, Register.WRITES, length=4) == [b"\x01" + word(1) + b"\0"]


class Model:
    """What must be behind the bridge."""

    def __init__(self, transport: FpgaTransport, rng: random.Random) -> None:
        self.rng = rng
        self.start(transport)

    def start(self, transport: FpgaTransport) -> None:
        """Takes things as they are."""
        self.transport = transport
        self.memory = bytearray(transport.read_memory(0, MEMORY_BYTES))
        self.writes, self.last = (transport.read32(register) for register in (Register.WRITES, Register.LAST))
        self.reads = transport.read32(Register.READS) + 1

    def step(self) -> None:
        """A random access, checked."""
        rng, transport = self.rng, self.transport
        kind = rng.choices(["write", "clear", "read", "write32", "read32", "count", "wait", "barrier"], k=1)[0]
        size = rng.choice([1, 3, 16, rng.randint(1, 300), rng.randint(1, 1500)])
        start = rng.randrange(MEMORY_BYTES - size)
        if kind in ("write", "clear"):
            data = bytes(size) if kind == "clear" else rng.choice([rng.randbytes(size), b"\x7e\x7d" * (size // 2 + 1)])
            transport.write_memory(start, data[:size])
            self.memory[start : start + size] = data[:size]
        elif kind == "read":
            assert transport.read_memory(start, size) == self.memory[start : start + size]
        elif kind == "write32":
            self.last = rng.getrandbits(32)
            transport.write32(Register.LAST, self.last)
            self.writes += 1
        elif kind == "read32":
            assert transport.read32(Register.READS) == self.reads
            self.reads += 1
        elif kind == "count":
            assert transport.read32(Register.LAST) == self.last
            assert transport.read32(Register.WRITES) == self.writes
        elif kind == "wait":
            transport.write32(Register.ALARM, cycles := rng.randint(1, 2000))
            self.last, self.writes = cycles, self.writes + 1
            assert transport.wait_irq(100_000)
            transport.write32(Register.ALARM, 0)
            self.last, self.writes = 0, self.writes + 1
            assert not transport.wait_irq(rng.randint(0, 50))
        else:
            transport.barrier()

    def check(self) -> None:
        assert self.transport.read_memory(0, MEMORY_BYTES) == self.memory
        assert self.transport.read32(Register.WRITES) == self.writes
        assert self.transport.read32(Register.READS) == self.reads


def test_random_accesses(board: SimulatedBoard) -> None:
    model = Model(FpgaTransport(BoardPort(board), BAUD), random.Random(1))
    for _ in range(150):
        model.step()
    model.check()


FAULTS = [(rate, seed) for rate in (0.0003, 0.002) for seed in range(3)]


@pytest.mark.some(3, "campaign")
@pytest.mark.parametrize("config", ["nano"], indirect=True)
@pytest.mark.parametrize(("rate", "seed"), FAULTS)
def test_faults_on_the_line(board: SimulatedBoard, rate: float, seed: int) -> None:
    """Every access has its right result, exactly once."""
    line = FaultyLine(BoardPort(board), 0.0, seed)
    model = Model(FpgaTransport(line, BAUD), random.Random(seed))
    line.rate = rate
    for _ in range(400):
        model.step()
    line.rate = 0.0
    model.check()
    assert sum(line.faults.values()) > 5


@pytest.mark.slow
@pytest.mark.parametrize("config", ["nano", "edge"], indirect=True)
@pytest.mark.parametrize("seed", range(100, 112))
def test_many_faults_on_the_line(board: SimulatedBoard, seed: int) -> None:
    """A right result or an error that says that the line is too bad, and then the next link works."""
    line = FaultyLine(BoardPort(board), 0.0, seed)
    model = Model(FpgaTransport(line, BAUD), random.Random(seed))
    line.rate = 0.0005 * 1.25 ** (seed - 100) % 0.01
    for _ in range(600):
        try:
            model.step()
        except LinkError as error:
            if "the line loses bytes" not in str(error) and "no Sley host bridge answered" not in str(error):
                raise
            line.rate, rate = 0.0, line.rate / 2
            model.start(FpgaTransport(line, BAUD))
            line.rate = rate
    line.rate = 0.0
    model.check()


@pytest.mark.parametrize("config", ["nano"], indirect=True)
def test_a_line_that_is_too_bad(board: SimulatedBoard) -> None:
    """An error, not a wrong result; and when the line is good again, so is a new link."""
    line = FaultyLine(BoardPort(board), 0.0, 5)
    model = Model(FpgaTransport(line, BAUD), random.Random(5))
    model.step()
    line.rate = 0.2

    def read_on() -> None:
        for _ in range(1000):
            model.transport.read32(Register.CYCLES)

    with pytest.raises(LinkError, match="simulated board: "):
        read_on()
    line.rate = 0.0
    transport = FpgaTransport(line, BAUD)
    transport.write_memory(0, b"well again")
    assert transport.read_memory(0, 10) == b"well again"


@pytest.mark.parametrize("config", ["nano"], indirect=True)
@pytest.mark.parametrize("rate", [0.0, 0.002])
def test_errors_of_the_bus(board: SimulatedBoard, rate: float) -> None:
    """A posted write tells of its error later, and always; with faults on the line too."""
    line = FaultyLine(BoardPort(board), 0.0, 3)
    transport = FpgaTransport(line, BAUD)
    line.rate = rate
    for number in range(40):
        with pytest.raises(LinkError, match=r"READ_REGISTER at 0x200 was answered with a bus error"):
            transport.read32(0x200)
        transport.write_memory(0, bytes([number]) * 600)
        transport.write32(0x200 + 4 * number, 1)
        transport.write_memory(1000, b"later")
        with pytest.raises(LinkError, match="was answered with a bus error"):
            transport.barrier()
        transport.barrier()
        assert transport.read_memory(998, 8) == b"\0\0later\0"
        transport.write_memory(1000, bytes(5))
        with pytest.raises(LinkError, match="READ_MEMORY" if rate == 0 else "bus error"):
            transport.read_memory(MEMORY_BYTES - 100, 1000)


def test_parameters() -> None:
    config = preset("nano")
    good = {"clock_hz": 24_000_000, "baud": 1_000_000}
    for memory in (0, 5000, 1 << 33):
        with rejects(f"memory_bytes is {memory}; it must be a multiple of 4096"):
            HostBridge(config, memory, **good)
    for size in (128, 300, 1 << 16):
        with rejects(f"buffer_bytes is {size}; it must be a power of two in 256..32768"):
            HostBridge(config, 4096, **good, buffer_bytes=size)
    with rejects("buffer_bytes is 256; a beat of 128 bytes needs more"):
        HostBridge(config.replace(array=64, operand_types=("int8", "bf16")), 4096, **good, buffer_bytes=256)
    with rejects("baud is 900000; with a clock of 3500000 Hz the nearest rate is 875000"):
        HostBridge(config, 4096, clock_hz=3_500_000, baud=900_000)
