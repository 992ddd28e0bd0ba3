import random

import pytest

from sley.fpga.bridge.frames import ESCAPE, FLAG, IDENTITY_BYTES, FrameDecoder, Identity, encode_frame, payload_bytes

SPECIAL = bytes([FLAG, ESCAPE, FLAG ^ 0x20, ESCAPE ^ 0x20])


def bodies(rng: random.Random, count: int) -> list[bytes]:
    """Random bodies, many with bytes that are escaped."""
    return [
        bytes(rng.choice(SPECIAL) if rng.random() < 0.4 else rng.getrandbits(8) for _ in range(rng.randint(1, 60)))
        for _ in range(count)
    ]


def test_what_is_encoded_is_decoded() -> None:
    rng = random.Random(1)
    sent = bodies(rng, 300)
    line = b"".join(encode_frame(body) for body in sent)
    decoder, got = FrameDecoder(), []
    while line:
        cut = rng.randint(1, 100)
        got += list(decoder.feed(line[:cut]))
        line = line[cut:]
    assert got == sent


def test_a_frame_by_hand() -> None:
    # CRC-32 of "123456789" is the check value of its catalogue entry.
    assert encode_frame(b"123456789") == b"\x7e123456789" + 0xCBF43926.to_bytes(4, "little") + b"\x7e"
    assert encode_frame(b"\x7e\x7d")[:5] == b"\x7e\x7d\x5e\x7d\x5d"


@pytest.mark.parametrize("fault", ["lost", "flipped", "added"])
def test_a_damaged_frame_is_noticed(fault: str) -> None:
    """At every place; the frames around it are not harmed, but for one that lost its only flag."""
    rng = random.Random(2)
    before, body, after = b"before", bodies(rng, 1)[0] + SPECIAL, b"after"
    frame = encode_frame(body)
    for place in range(len(frame)):
        damaged = bytearray(frame)
        if fault == "lost":
            del damaged[place]
        elif fault == "flipped":
            damaged[place] ^= 1 << rng.randrange(8)
        else:
            damaged.insert(place, rng.getrandbits(8))
        got = list(FrameDecoder().feed(encode_frame(before) + damaged + encode_frame(after)))
        assert [body for body in got if body is not None] in (
            [before, after],
            [before, body, after],  # a flag of two, or in front of one
        )


def test_identity() -> None:
    identity = Identity(b"SLEY", 1, 16, 240, 511, 1 << 20, 50_000_000, 7, 3)
    data = identity.pack()
    assert len(data) == IDENTITY_BYTES
    assert Identity.unpack(data) == identity


@pytest.mark.parametrize("bus_bytes", [4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("buffer_bytes", [256, 512, 2048])
def test_a_payload_fits_however_it_is_escaped(bus_bytes: int, buffer_bytes: int) -> None:
    size = payload_bytes(buffer_bytes, bus_bytes)
    assert size % bus_bytes == 0
    worst = encode_frame(bytes([FLAG]) * (7 + size))
    assert 2 * (7 + size + 4) + 1 <= buffer_bytes - 1
    assert len(worst) - 1 <= buffer_bytes - 1
