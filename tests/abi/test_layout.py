"""Layouts refuse what does not fit and name it."""

import pytest

from sley.abi.config import ChipConfig, ConfigError, preset
from sley.abi.instructions import Op, decode, encode
from sley.abi.layout import Field, Layout, LayoutError
from sley.abi.packets import PacketOp, decode_packet, encode_packet

WORD = Layout("W", 16, (Field("a", 3, "."), Field("s", 4, ".", lsb=8, signed=True)))


def test_pack_and_unpack() -> None:
    assert WORD.pack(a=5, s=-8) == 0x805
    assert WORD.unpack(0xF805) == {"a": 5, "s": -8}
    assert WORD.mask == 0xF07


@pytest.mark.parametrize("values", [{"a": 8}, {"a": -1}, {"s": 8}, {"s": -9}, {"x": 0}])
def test_values_that_do_not_fit(values: dict[str, int]) -> None:
    with pytest.raises(LayoutError):
        WORD.pack(**values)


def test_layouts_that_contradict_themselves() -> None:
    with pytest.raises(LayoutError, match="overlaps"):
        Layout("X", 8, (Field("a", 4, "."), Field("b", 2, ".", lsb=3)))
    with pytest.raises(LayoutError, match="needs 9 bits"):
        Layout("X", 8, (Field("a", 9, "."),))


def test_packets_refuse_garbage() -> None:
    data = encode_packet(PacketOp.FILL, value=1, bytes=2, dst=3)
    assert decode_packet(data) == (PacketOp.FILL, {"value": 1, "bytes": 2, "dst": 3})
    with pytest.raises(LayoutError, match="opcode 0x00"):
        decode_packet(bytes(64))
    with pytest.raises(LayoutError, match="reserved"):
        decode_packet(data[:63] + b"\x01")


def test_instructions_refuse_garbage() -> None:
    assert decode(encode(Op.ADD, rd=1, ra=2, use_imm=1, imm=-3))[1]["imm"] == -3
    with pytest.raises(LayoutError, match="opcode 0x00"):
        decode(0)
    with pytest.raises(LayoutError, match="reserved"):
        decode(encode(Op.END) | 1 << 127)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"array": 5}, "array is 5; it must be a power of two"),
        ({"queues": 9}, "queues is 9"),
        ({"max_burst": 256, "array": 32}, "max_burst is 256"),
        ({"scratchpad_banks": 16, "scratchpad_rows": 16}, "scratchpad_banks is 16"),
    ],
)
def test_bad_configurations(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChipConfig().replace(**changes)


def test_unknown_preset() -> None:
    with pytest.raises(ConfigError, match="nano, edge, base, quad"):
        preset("huge")
