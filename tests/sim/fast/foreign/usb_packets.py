"""Packets of USB 2 as a receiver sees them: a byte a cycle, with their checksums."""

Packet = list[dict[str, int]]
"""Values of inputs, cycle by cycle."""

OUT, IN, SOF, SETUP, DATA0, DATA1, ACK, NAK = 0x1, 0x9, 0x5, 0xD, 0x3, 0xB, 0x2, 0xA


def _checksum(data: int, width: int, size: int, polynomial: int) -> int:
    """Of the bits of ``data``, the lowest first; itself with its first bit lowest, as it is sent."""
    ones = (1 << size) - 1
    register = ones
    for bit in range(width):
        top = register >> (size - 1) ^ data >> bit & 1
        register = register << 1 & ones ^ (polynomial if top else 0)
    return int(f"{register ^ ones:0{size}b}"[::-1], 2)


def _packet(kind: int, body: bytes) -> Packet:
    sent = bytes([kind | (kind ^ 15) << 4]) + body
    quiet = {"utmi__rx_active": 0, "utmi__rx_valid": 0}
    begin = {"utmi__rx_active": 1, "utmi__rx_valid": 0}
    return [quiet, begin, *({"utmi__rx_active": 1, "utmi__rx_valid": 1, "utmi__rx_data": byte} for byte in sent), quiet]


def token(kind: int, address: int, endpoint: int) -> Packet:
    fields = address | endpoint << 7
    return _packet(kind, (fields | _checksum(fields, 11, 5, 0b00101) << 11).to_bytes(2, "little"))


def data(kind: int, body: bytes) -> Packet:
    check = _checksum(int.from_bytes(body, "little"), 8 * len(body), 16, 0x8005)
    return _packet(kind, body + check.to_bytes(2, "little"))


def handshake(kind: int) -> Packet:
    return _packet(kind, b"")


GET_DESCRIPTOR = bytes((0x80, 6, 0, 1, 0, 0, 64, 0))
SET_ADDRESS = bytes((0, 5, 0, 0, 0, 0, 0, 0))
SET_CONFIGURATION = bytes((0, 9, 1, 0, 0, 0, 0, 0))

PACKETS = [
    *(token(SETUP, 0, 0) + data(DATA0, request) for request in (GET_DESCRIPTOR, SET_ADDRESS, SET_CONFIGURATION)),
    *(token(kind, 0, endpoint) for kind in (IN, OUT) for endpoint in (0, 1, 2)),
    token(SOF, 0x55, 3),
    data(DATA1, b""),
    data(DATA0, bytes(range(7))),
    handshake(ACK),
    handshake(NAK),
]
