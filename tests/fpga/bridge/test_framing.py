"""Receiver and transmitter of frames against ``frames``."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from sley.fpga.bridge.frames import ESCAPE, FLAG, encode_frame
from sley.fpga.bridge.receiver import FrameReceiver
from sley.fpga.bridge.transmitter import FrameTransmitter
from sley.hw.testing.parameters import rejects
from sley.hw.testing.simulation.engine import QuickEngine
from sley.hw.testing.streams import StreamBench

SPACING = 9


def body(rng: random.Random, size: int) -> bytes:
    return bytes(rng.choice([FLAG, ESCAPE, rng.getrandbits(8)]) for _ in range(size))


def receive(items: list[tuple[int, int]], *, pause: float = 0.0, buffer_bytes: int = 64, seed: int = 0) -> Any:
    """Sends bytes and errors to a receiver; the intact frames it gave out, and how often it dropped one."""
    rng = random.Random(seed)
    dut = FrameReceiver(buffer_bytes)
    frames: list[bytes] = []
    bad = 0
    sent = False

    async def source(ctx: Any) -> None:
        nonlocal sent
        for data, error in items:
            ctx.set(dut.i.payload, {"data": data, "error": error})
            ctx.set(dut.i.valid, 1)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)
            ctx.set(dut.i.payload, {"data": rng.getrandbits(8), "error": rng.getrandbits(1)})
            await ctx.tick().repeat(SPACING - 1 + rng.choice([0, 0, 5]))
        sent = True

    async def sink(ctx: Any) -> None:
        nonlocal bad
        frame = bytearray()
        quiet = 0
        while not sent or quiet < 300:
            ready = rng.random() >= pause
            ctx.set(dut.o.ready, ready)
            *_, valid, item, drop = await ctx.tick().sample(dut.o.valid, dut.o.payload, dut.bad)
            bad += drop
            quiet = 0 if valid else quiet + 1
            if valid and ready and item.end:
                frames.append(bytes(frame[:-4]))
                frame.clear()
            elif valid and ready:
                frame.append(int(item.data))

    sim = Simulator(dut, engine=QuickEngine)
    sim.add_clock(1e-6)
    sim.add_testbench(source)
    sim.add_testbench(sink)
    sim.run()
    return frames, bad


def good(data: bytes) -> list[tuple[int, int]]:
    return [(byte, 0) for byte in data]


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_intact_frames(pause: float) -> None:
    rng = random.Random(3)
    sent = [body(rng, rng.randint(1, 20)) for _ in range(40)]
    line = b"".join(encode_frame(x) + bytes([FLAG]) * rng.randint(0, 2) for x in sent)
    assert receive(good(line), pause=pause) == (sent, 0)


def test_damaged_frames_are_dropped() -> None:
    """Whatever happens to the second of three frames, the others come, and nothing else."""
    rng = random.Random(4)
    items: list[tuple[int, int]] = []
    expected, drops = [], 0
    for number in range(40):
        first, middle = body(rng, 6), body(rng, rng.randint(1, 12))
        frame = good(encode_frame(middle))
        place = rng.randrange(1, len(frame) - 1)
        kind = number % 5
        if kind == 0:
            del frame[place]
        elif kind == 1:
            frame[place] = (frame[place][0] ^ 1 << rng.randrange(8), 0)
        elif kind == 2:
            frame.insert(place, (rng.getrandbits(8), 0))
        elif kind == 3:
            frame[place] = (frame[place][0], 1)
        else:
            frame[-1:-1] = [(ESCAPE, 0)]
        items += good(encode_frame(first)) + frame
        expected.append(first)
        drops += 1
    items += good(encode_frame(b"end"))
    frames, bad = receive(items)
    assert frames == [*expected, b"end"]
    assert bad >= drops  # a byte may have become a flag, which makes two frames of one


def test_frame_without_room_is_dropped() -> None:
    """63 bytes fit: body, CRC and flag."""
    for size in range(55, 66):
        long = bytes([size]) * size
        frames = [long] if len(encode_frame(long)) - 1 <= 63 else []
        line = encode_frame(long) + encode_frame(b"x")
        assert receive(good(line)) == ([*frames, b"x"], 1 - len(frames))


def test_full_buffer_drops_what_comes_last() -> None:
    """Frames wait until they are taken; one that does not fit is lost, those that wait are not."""
    sent = [bytes([k]) * 20 for k in range(6)]
    line = b"".join(encode_frame(x) for x in sent)
    frames, bad = receive(good(line), pause=0.997)
    assert bad > 0
    assert frames == [x for x in sent if x in frames]
    assert len(frames) + bad == len(sent)
    assert len(frames) >= 2


@pytest.mark.parametrize("idle", [0.0, 0.7])
@pytest.mark.parametrize("pause", [0.0, 0.9])
def test_transmitter(idle: float, pause: float) -> None:
    rng = random.Random(5)
    sent = [body(rng, rng.randint(1, 30)) for _ in range(12)]
    items = [{"data": byte, "last": k == len(x) - 1} for x in sent for k, byte in enumerate(x)]
    line = b"".join(encode_frame(x) for x in sent)
    bench = StreamBench(FrameTransmitter(), seed=6, timeout=200_000)
    bench.send(bench.dut.i, items, idle=idle)
    got = bench.receive(bench.dut.o, len(line), pause=pause)
    bench.run()
    assert bytes(int(x) for x in got.items) == line


def test_buffer_sizes() -> None:
    for size in (96, 32):
        with rejects(f"buffer_bytes is {size}; it must be a power of two, at least 64"):
            FrameReceiver(size)
