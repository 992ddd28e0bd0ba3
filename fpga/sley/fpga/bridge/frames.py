"""Wire format of the host bridge: what a frame looks like on the serial line, and what commands and replies are in it.

A frame is a body and the CRC-32 of the body between two flag bytes; see ``docs/theory/host-bridge.md``. Needs the
standard library alone: a host without the HDL talks to the bridge with it.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from sley.abi.pages import PAGE_BYTES

VERSION = 1
MAGIC = b"SLEY"

FLAG = 0x7E
"""Begins and ends a frame, and occurs nowhere else."""
ESCAPE = 0x7D
"""Stands before a byte of a frame that would be FLAG or ESCAPE; that byte is sent with ``ESCAPED`` toggled."""
ESCAPED = 0x20

CRC_BYTES = 4
CRC_POLYNOMIAL = 0xEDB88320
"""CRC-32 of Ethernet and zlib, lowest bit first."""
CRC_RESIDUE = 0xDEBB20E3
"""What the CRC register holds, before the final inversion, after an intact body and its CRC."""

HEADER = struct.Struct("<BBBI")
"""A command: code, sequence number, bytes of data, address. The data of a write follows."""

SEQUENCES = 256
WORD_BYTES = 4
DEFAULT_BAUD = 1_000_000


class Code(IntEnum):
    """What a command asks for. Write and read of a burst have the codes of LiteX's UARTBone."""

    IDENTIFY = 0
    WRITE_MEMORY = 1
    READ_MEMORY = 2
    WRITE_REGISTER = 3
    READ_REGISTER = 4
    ADVANCE = 5
    WAIT_IRQ = 6
    CLEAR_MEMORY = 7
    """A write of as many zeros as the length says, without data."""


class Status(IntEnum):
    """Last byte of a reply's body, without ``IRQ``."""

    OK = 0
    BUS_ERROR = 1
    """The bus answered with SLVERR or DECERR."""
    BUS_TIMEOUT = 2
    """The bus did not answer; it will not be asked again before a reset."""
    BAD_COMMAND = 3
    """No such command, or its length is not what the code asks for."""
    BAD_FRAME = 4
    """A frame was damaged. Nothing was executed; the sequence number of this reply means nothing."""
    OUT_OF_SEQUENCE = 5
    """The command is neither the next one nor the last one again. It was not executed."""


IRQ = 0x80
"""Bit of a status: the interrupt line was high when the last ADVANCE or WAIT_IRQ ended."""


@dataclass(frozen=True)
class Identity:
    """What IDENTIFY answers."""

    magic: bytes
    version: int
    bus_bytes: int
    payload_bytes: int
    """Most data bytes of a command or reply."""
    buffer_bytes: int
    """What all unanswered frames may have together, each as it is on the line without its first flag."""
    memory_bytes: int
    clock_hz: int
    expected: int = 0
    """Sequence number of the next command."""
    failures: int = 0
    """Commands that ended with BUS_ERROR or BUS_TIMEOUT, modulo 256."""

    def pack(self) -> bytes:
        """As the data of a reply."""
        return _IDENTITY.pack(
            self.magic,
            self.version,
            self.bus_bytes,
            self.payload_bytes,
            self.buffer_bytes,
            self.memory_bytes // PAGE_BYTES,
            self.clock_hz,
            self.expected,
            self.failures,
        )

    @classmethod
    def unpack(cls, data: bytes) -> "Identity":
        magic, version, bus, payload, buffer, pages, clock, expected, failures = _IDENTITY.unpack(data)
        return cls(magic, version, bus, payload, buffer, pages * PAGE_BYTES, clock, expected, failures)


_IDENTITY = struct.Struct("<4sBBBHIIBB")
IDENTITY_BYTES = _IDENTITY.size
EXPECTED_AT, FAILURES_AT = IDENTITY_BYTES - 2, IDENTITY_BYTES - 1
"""Where in an identity the bridge puts what changes."""


def payload_bytes(buffer_bytes: int, bus_bytes: int) -> int:
    """Most data bytes of a frame: a write must fit into the buffer even if every byte is escaped; whole beats."""
    most = min(240, (buffer_bytes - 2) // 2 - HEADER.size - CRC_BYTES)
    return most - most % bus_bytes


def encode_frame(body: bytes) -> bytes:
    """The bytes on the line for a frame with this body, both flags included."""
    raw = body + zlib.crc32(body).to_bytes(CRC_BYTES, "little")
    flag, escape = bytes([FLAG]), bytes([ESCAPE])
    escaped = raw.replace(escape, bytes([ESCAPE, ESCAPE ^ ESCAPED])).replace(flag, bytes([ESCAPE, FLAG ^ ESCAPED]))
    return flag + escaped + flag


class FrameDecoder:
    """Finds the frames in what arrives on the line.

    ``feed`` yields the body of each intact frame and ``None`` for each damaged one, as they end.
    """

    def __init__(self) -> None:
        self._begun = b""

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        *ended, self._begun = (self._begun + data).split(bytes([FLAG]))
        for frame in ended:
            if frame:
                yield _body(frame)


def _body(frame: bytes) -> bytes | None:
    flag, escape = bytes([FLAG]), bytes([ESCAPE])
    raw = frame.replace(bytes([ESCAPE, FLAG ^ ESCAPED]), flag).replace(bytes([ESCAPE, ESCAPE ^ ESCAPED]), escape)
    body, crc = raw[:-CRC_BYTES], raw[-CRC_BYTES:]
    return body if body and crc == zlib.crc32(body).to_bytes(CRC_BYTES, "little") else None
