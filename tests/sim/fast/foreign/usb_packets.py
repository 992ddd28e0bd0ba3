"""Packets as a receiver sees them, with checksums: of USB 2, a byte a cycle, and of a USB 3 link, a word a cycle."""

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


def _words(*words: tuple[int, int]) -> Packet:
    """Four symbols a cycle and which of them are control symbols."""
    return [{"sink__valid": 1, "sink__payload": data, "sink__ctrl": control} for data, control in words]


def _protected(bits: int) -> int:
    return bits | _checksum(bits, 11, 5, 0b00101) << 11


def link_command(command: int, subtype: int) -> Packet:
    word = _protected(subtype | command << 7)
    return _words((0xF7FEFEFE, 15), (word | word << 16, 0))


def header(kind: int, number: int) -> Packet:
    first, second, third = kind | 0x60, 0x00080080, 0x12345678
    check = _checksum(first | second << 32 | third << 64, 96, 16, 0x100B)
    return _words((0xF7FBFBFB, 15), (first, 0), (second, 0), (third, 0), (check | _protected(number) << 16, 0))


def payload(*words: int) -> Packet:
    check = _checksum(sum(word << 32 * place for place, word in enumerate(words)), 32 * len(words), 32, 0x04C11DB7)
    return _words((0xF75C5C5C, 15), *((word, 0) for word in words), (check, 0), (0xF7FDFDFD, 15))


LINK_PACKETS = [
    *(link_command(command, subtype) for command in (0, 1, 2, 3, 4, 8, 11) for subtype in (0, 1)),
    *(header(kind, number) for kind in (0, 4, 8, 12) for number in (0, 1)),
    *(header(8, number) + payload(0x04030201, 0x08070605) for number in (0, 1)),
]
