"""What the host's side says when the other side is not as it should be."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from sley.abi.transport import TransportError
from sley.fpga.bridge.frames import HEADER, MAGIC, VERSION, Code, FrameDecoder, Identity, Status, encode_frame
from sley.fpga.bridge.link import LinkError
from sley.fpga.bridge.transport import FpgaTransport

IDENTITY = Identity(MAGIC, VERSION, 4, 240, 511, 8192, 1_000_000)

Answer = Callable[[Code, int, int, int, bytes], bytes]
"""Bytes on the line for a command: code, sequence number, length, address, data."""


class Bridge:
    """A bridge in software that does as it is told; ``log``: commands it got."""

    name = "port"

    def __init__(self, answer: Answer | None = None, identity: Identity = IDENTITY) -> None:
        self.identity, self.answer = identity, answer
        self.log: list[tuple[Code, int]] = []
        self.broken = False
        self._decoder = FrameDecoder()
        self._line = b""

    def write(self, data: bytes) -> None:
        if self.broken:
            raise OSError("unplugged")
        for body in self._decoder.feed(data):
            assert body is not None
            code, sequence, length, address = HEADER.unpack_from(body)
            if code == Code.IDENTIFY:
                self._line += reply(sequence, self.identity.pack())
                continue
            self.log.append((Code(code), sequence))
            if self.answer is not None:
                self._line += self.answer(Code(code), sequence, length, address, body[HEADER.size :])

    def read(self) -> bytes:
        if self.broken:
            raise OSError("unplugged")
        line, self._line = self._line, b""
        return line


def reply(sequence: int, data: bytes = b"", status: Status = Status.OK) -> bytes:
    return encode_frame(bytes([sequence]) + data + bytes([status]))


class Says:
    """A port at which the same is heard again and again."""

    name = "port"

    def __init__(self, line: bytes) -> None:
        self._line = line

    def write(self, data: bytes) -> None:
        pass

    def read(self) -> bytes:
        return self._line


def connect(port: object) -> FpgaTransport:
    return FpgaTransport(port, 1_000_000, timeout=0.002)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "message"), [(b"", "nothing was heard"), (b"login: ", "what it says is not understood")]
)
def test_nobody_there(line: bytes, message: str) -> None:
    with pytest.raises(LinkError, match=f"port: no Sley host bridge answered .*{message}.*baud"):
        connect(Says(line))


def test_somebody_else() -> None:
    with pytest.raises(LinkError, match=r"says b'ELSE', not b'SLEY'"):
        connect(Bridge(identity=replace(IDENTITY, magic=b"ELSE")))
    with pytest.raises(LinkError, match=f"version 9 of the protocol and this host {VERSION}"):
        connect(Bridge(identity=replace(IDENTITY, version=9)))


def test_no_answers() -> None:
    """Commands that are never answered end in an error after a bounded number of tries."""
    bridge = Bridge()
    transport = connect(bridge)
    with pytest.raises(LinkError, match=r"READ_REGISTER at 0x4 was not answered after 16 tries"):
        transport.read32(4)
    with pytest.raises(LinkError, match=r"after 16 tries.*given up"):
        transport.write32(4, 0)
    assert bridge.log == [(Code.READ_REGISTER, 0)] * 17


def test_statuses() -> None:
    for status, text in (
        (Status.BUS_ERROR, "bus error"),
        (Status.BUS_TIMEOUT, "got no answer from the bus.*reset the board"),
        (Status.BAD_COMMAND, "not known to the bridge"),
    ):
        answers = lambda code, sequence, *_, status=status: reply(sequence, bytes(4), status)  # noqa: E731
        with pytest.raises(LinkError, match=f"port: READ_REGISTER at 0x8 .*{text}"):
            connect(Bridge(answers)).read32(8)


def test_replies_of_the_wrong_length_are_none() -> None:
    bridge = Bridge(lambda code, sequence, *_: reply(sequence, bytes(3)))
    with pytest.raises(LinkError, match="was not answered"):
        connect(bridge).read32(8)


def test_a_board_that_was_reset() -> None:
    bridge = Bridge(lambda code, sequence, *_: reply(sequence))
    bridge.identity = replace(IDENTITY, expected=100)
    transport = connect(bridge)
    transport.write32(0, 1)
    transport.barrier()
    bridge.identity, bridge.answer = IDENTITY, None
    transport.write32(0, 1)
    with pytest.raises(LinkError, match=r"the bridge expects command 0, not one of 101 to 102; was the board reset"):
        transport.barrier()


def test_lost_replies() -> None:
    """What was executed is not sent again, but for the last read, which has the same number."""
    silent = Bridge()
    transport = connect(silent)
    transport.write32(0, 1)
    transport.write32(4, 1)
    silent.identity = replace(IDENTITY, expected=2)
    transport.barrier()
    assert silent.log == [(Code.WRITE_REGISTER, 0), (Code.WRITE_REGISTER, 1)]

    def late(code: Code, sequence: int, *_: object) -> bytes:
        silent.identity = replace(IDENTITY, expected=3)
        return b"" if len(silent.log) < 4 else reply(sequence, b"word")

    silent.answer = late
    assert transport.read32(8) == int.from_bytes(b"word", "little")
    assert silent.log[2:] == [(Code.READ_REGISTER, 2)] * 2


def test_lost_replies_of_failed_writes() -> None:
    """The bridge's count of failures tells that there was one."""
    silent = Bridge()
    transport = connect(silent)
    transport.write_memory(0, b"x")
    silent.identity = replace(IDENTITY, expected=1, failures=1)
    with pytest.raises(LinkError, match="WRITE_MEMORY at 0x0 or a command soon after it was"):
        transport.barrier()
    transport.barrier()


def test_a_failure_is_counted_once() -> None:
    """One that is told twice, because its reply was lost, is not taken for a second one."""
    bridge = Bridge()
    bridge.answer = lambda code, sequence, *_: (
        reply(sequence, bytes(4), Status.BUS_ERROR) if bridge.log.count((code, sequence)) > 1 else b""
    )
    transport = connect(bridge)
    bridge.identity = replace(IDENTITY, expected=1, failures=1)
    with pytest.raises(LinkError, match="READ_REGISTER at 0x8"):
        transport.read32(8)
    transport.write32(0, 1)
    bridge.identity = replace(IDENTITY, expected=2, failures=1)
    transport.barrier()


def test_bursts() -> None:
    """As long as they may be, from beat to beat; zeros without data; no more in flight than fit."""
    memory = bytearray(8192)
    waiting: list[bytes] = []

    def write(code: Code, sequence: int, length: int, address: int, data: bytes) -> bytes:
        memory[address : address + length] = data or bytes(length)
        waiting.append(encode_frame(HEADER.pack(code, sequence, length, address) + data)[1:])
        assert sum(map(len, waiting)) <= IDENTITY.buffer_bytes
        return reply(sequence)

    bridge = Bridge(write)
    read = bridge.read

    def read_all() -> bytes:
        waiting.clear()
        return read()

    bridge.read = read_all  # type: ignore[method-assign]
    transport = connect(bridge)
    data = bytes(1000) + b"\x7e" * 1000 + b"."
    transport.write_memory(3, data)
    transport.barrier()
    assert memory[3 : 3 + len(data)] == data
    codes = [code for code, _ in bridge.log]
    assert len(codes) == 1 + -(-(len(data) - 237) // 240)
    assert codes[:4] == [Code.CLEAR_MEMORY] * 4
    assert set(codes[4:]) == {Code.WRITE_MEMORY}


def test_bad_arguments() -> None:
    transport = connect(Bridge())
    for address in (-4, 2, 1 << 16):
        with pytest.raises(TransportError, match=r"is not a multiple of 4 in 0x0\.\.0xfffc"):
            transport.read32(address)
        with pytest.raises(TransportError, match=r"is not a multiple of 4 in 0x0\.\.0xfffc"):
            transport.write32(address, 0)
    for address, length in ((-1, 2), (8190, 3), (9000, 0)):
        with pytest.raises(TransportError, match=re.escape("are outside the device's 0x2000 bytes")):
            transport.read_memory(address, length)
    with pytest.raises(TransportError, match="are outside"):
        transport.write_memory(8192, b"x")


def test_unplugged_and_closed() -> None:
    bridge = Bridge()
    transport = connect(bridge)
    bridge.broken = True
    with pytest.raises(LinkError, match=r"port takes no more bytes: unplugged; is the board still connected\?"):
        transport.read32(0)
    bridge.broken = False
    with pytest.raises(LinkError, match=r"unplugged.*given up: open the device again"):
        transport.barrier()
    transport.close()
    for call in (transport.barrier, lambda: transport.read32(0), lambda: transport.wait_irq(1)):
        with pytest.raises(LinkError, match="port is closed; open the device again"):
            call()


def test_close_waits_for_what_was_posted() -> None:
    bridge = Bridge(lambda code, sequence, *_: reply(sequence, status=Status.BUS_ERROR))
    transport = connect(bridge)
    transport.write32(0, 1)
    with pytest.raises(LinkError, match="WRITE_REGISTER at 0x0 was answered with a bus error"):
        transport.close()
    transport.close()


def test_numbers_after_a_loss() -> None:
    """A burst of reads that finds no room, while the replies to those before are lost, has a number of its own."""
    lost = 1

    def answer(code: Code, sequence: int, length: int, *_: object) -> bytes:
        nonlocal lost
        expected = bridge.identity.expected
        assert sequence == expected, "a number was used twice or left out"
        bridge.identity = replace(IDENTITY, expected=(expected + 1) % 256)
        lost -= 1
        return b"" if lost == 0 else reply(sequence, bytes([sequence]) * length)

    bridge = Bridge(answer)
    transport = connect(bridge)
    for lost in range(1, 25, 3):  # noqa: B007
        assert len(transport.read_memory(0, 8000)) == 8000


def test_the_host_needs_no_hdl() -> None:
    program = (
        "import sys; sys.modules['amaranth'] = None; import sley.fpga.bridge.transport as t\n"
        "try: t.open_transport('/dev/absent', {})\n"
        "except OSError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "/dev/absent cannot be opened" in done.stdout
