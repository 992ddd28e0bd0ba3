"""The packet check against a reading of the packet descriptions in Python."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.faults import FaultCode
from sley.abi.packets import PACKET_BYTES, PACKETS, PacketOp, encode_packet
from sley.hw.command.check import PacketCheck
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.pins import Pins
from sley.hw.testing.streams import compiled

CONFIG = preset("nano").replace(addr_bits=24)
LIMIT = 1 << CONFIG.addr_bits
LAUNCH = {"program": 0x100, "program_words": 3, "grid_x": 1, "grid_y": 1, "grid_z": 1}


# BAD_ADDRESS needs an address, and most packets have one.
WITHOUT_ADDRESS = {PacketOp.NOP}
COVERAGE = Coverage(
    "packet check",
    {
        "packet": [
            (op.name, code, where)
            for op in PacketOp
            for code in ("NONE", "BAD_FIELD", *([] if op in WITHOUT_ADDRESS else ["BAD_ADDRESS"]))
            for where in ("ring", "buffer")
            if (op, where) != (PacketOp.INDIRECT, "buffer") or code == "BAD_FIELD"
        ],
        "opcode": ["zero", "above"],
    },
)


def launch(**fields: int) -> bytes:
    return encode_packet(PacketOp.LAUNCH, **{**LAUNCH, **fields})


def indirect(address: int, packets: int) -> bytes:
    return encode_packet(PacketOp.INDIRECT, address=address, packets=packets)


def with_bit(packet: bytes, bit: int) -> bytes:
    return (int.from_bytes(packet, "little") | 1 << bit).to_bytes(PACKET_BYTES, "little")


def check(config: ChipConfig, packets: list[bytes], nested: int = 0) -> list[tuple[int, int]]:
    """Code and address for each packet."""
    design = compiled(PacketCheck, config)
    dut, size = design.dut, len(design.dut.beat.data) // 8
    rng = random.Random(size)
    got: list[tuple[int, int]] = []

    async def test(ctx: Any) -> None:
        beat = Pins(dut.restart, dut.beat.valid, dut.beat.index, dut.beat.data)

        def noise() -> int:
            return rng.getrandbits(8 * size)

        ctx.set(dut.nested, nested)
        for packet in packets:
            beat.set(ctx, 1, 0, 0, noise())
            await ctx.tick()
            for index, first in enumerate(range(0, PACKET_BYTES, size)):
                while rng.random() < 0.2:
                    beat.set(ctx, 0, 0, index, noise())
                    await ctx.tick()
                    assert not ctx.get(dut.done)
                beat.set(ctx, 0, 1, index, int.from_bytes(packet[first : first + size], "little"))
                assert not ctx.get(dut.done)
                await ctx.tick()
            beat.set(ctx, 0, 0, 0, noise())
            assert ctx.get(dut.done)
            await ctx.tick()
            assert not ctx.get(dut.done)
            got.append((ctx.get(dut.code), ctx.get(dut.address)))
            assert ctx.get(dut.bad) == (got[-1][0] != FaultCode.NONE)
            await ctx.tick()

    design.run([test])
    for packet, (code, _) in zip(packets, got, strict=True):
        if code == FaultCode.BAD_PACKET:
            COVERAGE.hit("opcode", "above" if packet[0] else "zero")
        else:
            where = "buffer" if nested else "ring"
            COVERAGE.hit("packet", (PacketOp(packet[0]).name, FaultCode(code).name, where))
    return got


CASES = {
    "zeros": (bytes(64), FaultCode.BAD_PACKET, 0),
    "opcode 9": (b"\x09" + bytes(3) + b"\xff" * 60, FaultCode.BAD_PACKET, 9),
    "opcode 255": (b"\xff\x01" + bytes(62), FaultCode.BAD_PACKET, 0x1FF),
    "reserved bit": (with_bit(encode_packet(PacketOp.NOP), 511), FaultCode.BAD_FIELD, 15),
    "first bad word": (with_bit(with_bit(encode_packet(PacketOp.NOP), 200), 63), FaultCode.BAD_FIELD, 1),
    "nothing": (encode_packet(PacketOp.NOP), FaultCode.NONE, 0),
    "wait": (encode_packet(PacketOp.WAIT, address=0xA8), FaultCode.NONE, 0),
    "signal": (encode_packet(PacketOp.SIGNAL, address=LIMIT - 8), FaultCode.NONE, 0),
    "fill": (encode_packet(PacketOp.FILL, dst=LIMIT - 3, bytes=3), FaultCode.NONE, 0),
    "fill and more": (with_bit(encode_packet(PacketOp.FILL), 511), FaultCode.BAD_FIELD, 15),
    "copy and more": (with_bit(encode_packet(PacketOp.COPY), 480), FaultCode.BAD_FIELD, 15),
    "no program": (launch(program_words=0), FaultCode.BAD_FIELD, 1),
    "long program": (launch(program_words=CONFIG.program_words + 1), FaultCode.BAD_FIELD, 1),
    "longest program": (launch(program_words=CONFIG.program_words), FaultCode.NONE, 0),
    "arguments": (launch(arg_words=25), FaultCode.BAD_FIELD, 1),
    "most arguments": (launch(arg_words=24), FaultCode.NONE, 0),
    "most inline arguments": (launch(arg_words=6, **{f"arg{k}": 1 << 5 * k for k in range(6)}), FaultCode.NONE, 0),
    "unused inline argument": (launch(arg_words=3, arg3=1), FaultCode.BAD_FIELD, 13),
    "last inline argument": (launch(arg_words=5, arg5=1 << 31), FaultCode.BAD_FIELD, 15),
    "inline argument and memory": (launch(arg_words=7, arg0=1), FaultCode.BAD_FIELD, 10),
    "address of inline arguments": (launch(arg_words=6, args=4), FaultCode.BAD_FIELD, 8),
    "any tag": (launch(tag=0xFFFF_FFFF), FaultCode.NONE, 0),
    "no x": (launch(grid_x=0), FaultCode.BAD_FIELD, 2),
    "no y": (launch(grid_y=0), FaultCode.BAD_FIELD, 3),
    "large z": (launch(grid_z=65536), FaultCode.BAD_FIELD, 4),
    "largest": (launch(grid_x=65535, grid_y=65535, grid_z=65535), FaultCode.NONE, 0),
    "gang": (launch(gang=1, grid_z=9), FaultCode.NONE, 0),
    "gang across": (launch(gang=1, grid_x=2), FaultCode.BAD_FIELD, 2),
    "gang down": (launch(gang=1, grid_y=2), FaultCode.BAD_FIELD, 3),
    "program aligned": (launch(program=0x108), FaultCode.BAD_FIELD, 6),
    "args aligned": (launch(args=0x102), FaultCode.BAD_FIELD, 8),
    "program outside": (launch(program=LIMIT - 32), FaultCode.BAD_ADDRESS, LIMIT - 32),
    "program at the end": (launch(program=LIMIT - 48), FaultCode.NONE, 0),
    "args outside": (launch(args=LIMIT - 24, arg_words=7), FaultCode.BAD_ADDRESS, LIMIT - 24),
    "args at the end": (launch(args=LIMIT - 28, arg_words=7), FaultCode.NONE, 0),
    "no args at the end": (launch(args=LIMIT, arg_words=0), FaultCode.BAD_FIELD, 8),
    "both outside": (launch(args=1 << 40, program=1 << 36 | 32, arg_words=9), FaultCode.BAD_ADDRESS, 32),
    "fence aligned": (encode_packet(PacketOp.FENCE, address=0xA8), FaultCode.BAD_FIELD, 2),
    "fence outside": (encode_packet(PacketOp.FENCE, address=LIMIT), FaultCode.BAD_ADDRESS, LIMIT),
    "fence at the end": (encode_packet(PacketOp.FENCE, address=LIMIT - 16), FaultCode.NONE, 0),
    "wait aligned": (encode_packet(PacketOp.WAIT, address=0xA4), FaultCode.BAD_FIELD, 2),
    "wait outside": (encode_packet(PacketOp.WAIT, address=1 << 40), FaultCode.BAD_ADDRESS, 0),
    "signal aligned": (encode_packet(PacketOp.SIGNAL, address=0xA1), FaultCode.BAD_FIELD, 2),
    "signal outside": (encode_packet(PacketOp.SIGNAL, address=LIMIT + 8), FaultCode.BAD_ADDRESS, LIMIT + 8),
    "copy from": (encode_packet(PacketOp.COPY, src=LIMIT - 3, bytes=4), FaultCode.BAD_ADDRESS, LIMIT - 3),
    "copy to": (encode_packet(PacketOp.COPY, dst=32, bytes=LIMIT), FaultCode.BAD_ADDRESS, 32),
    "copy all": (encode_packet(PacketOp.COPY, bytes=LIMIT), FaultCode.NONE, 0),
    "copy nothing": (encode_packet(PacketOp.COPY, src=LIMIT, dst=LIMIT), FaultCode.NONE, 0),
    "fill outside": (encode_packet(PacketOp.FILL, dst=1, bytes=0xFFFF_FFFF), FaultCode.BAD_ADDRESS, 1),
    "buffer aligned": (encode_packet(PacketOp.INDIRECT, address=0x20, packets=1), FaultCode.BAD_FIELD, 2),
    "buffer outside": (indirect(LIMIT - 64 * 9, 10), FaultCode.BAD_ADDRESS, LIMIT - 64 * 9),
    "buffer at the end": (indirect(LIMIT - 64 * 9, 9), FaultCode.NONE, 0),
    "buffer far": (indirect(1 << 40, 0), FaultCode.BAD_ADDRESS, 0),
    "largest buffer": (indirect(64, 0xFFFF), FaultCode.NONE, 0),
    "fill far": (encode_packet(PacketOp.FILL, dst=(1 << 64) - 1), FaultCode.BAD_ADDRESS, 0xFFFF_FFFF),
}


@pytest.mark.parametrize("array", [4, 8, 16, 32, 64])
def test_named_cases(array: int) -> None:
    """For each width of the memory bus, from 4 to 64 bytes."""
    got = check(CONFIG.replace(array=array), [packet for packet, _, _ in CASES.values()])
    for (name, (_, code, address)), (found, where) in zip(CASES.items(), got, strict=True):
        assert found == code, name
        assert code == FaultCode.NONE or where == address, name


def test_nested() -> None:
    """In a buffer all is as elsewhere, but for INDIRECT."""
    packets = [indirect(0x100, 1), indirect(0x120, 1), indirect(0x100, 0), *(p for p, _, _ in CASES.values())]
    expected: list[tuple[int, int]] = [(FaultCode.BAD_FIELD, 0)] * 3
    for packet, code, address in CASES.values():
        expected.append((FaultCode.BAD_FIELD, 0) if packet[0] == PacketOp.INDIRECT else (code, address))
    got = check(CONFIG, packets, nested=1)
    assert [c for c, _ in got] == [c for c, _ in expected]
    assert [a for c, a in got if c] == [a for c, a in expected if c]


def test_gangs_fill_the_chip() -> None:
    grids = [(x, y, z) for x in range(1, 5) for y in range(1, 5) for z in (1, 7)]
    packets = [launch(gang=1, grid_x=x, grid_y=y, grid_z=z) for x, y, z in grids]
    got = check(CONFIG.replace(cores_x=3, cores_y=2), packets)
    assert [code == FaultCode.NONE for code, _ in got] == [grid[:2] == (3, 2) for grid in grids]


@pytest.mark.some(4)
@pytest.mark.parametrize("array", [4, 16, 32])
@pytest.mark.parametrize("addr_bits", [20, 31, 32])
def test_ends_of_the_address_space(addr_bits: int, array: int) -> None:
    limit = 1 << addr_bits
    rng = random.Random(addr_bits)
    packets, expected = [], []
    for _ in range(60):
        size = rng.choice([0, 1, 2, rng.getrandbits(32), rng.randrange(limit)])
        dst = max(0, limit - size + rng.choice([-1, 0, 1, rng.randrange(limit)]))
        packets.append(encode_packet(PacketOp.FILL, dst=dst, bytes=size))
        expected.append(FaultCode.BAD_ADDRESS if dst + size > limit else FaultCode.NONE)
    got = check(preset("nano").replace(addr_bits=addr_bits, array=array), packets)
    assert [code for code, _ in got] == expected


@pytest.mark.some(1)
@pytest.mark.parametrize("array", [4, 16, 64])
def test_every_reserved_bit(array: int) -> None:
    packets, expected = [], []
    for op, form in PACKETS.items():
        good = launch() if op is PacketOp.LAUNCH else encode_packet(op)
        reserved = [bit for bit in range(8, 8 * PACKET_BYTES) if not form.layout.mask >> bit & 1]
        for bit in random.Random(op).sample(reserved, min(40, len(reserved))):
            packets.append(with_bit(good, bit))
            expected.append((FaultCode.BAD_FIELD, bit // 32))
    assert check(CONFIG.replace(array=array), packets) == expected


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
