"""C header: addresses, masks and shifts of registers, packets and instructions, and all enumerations."""

from collections.abc import Iterable
from enum import IntEnum

from sley.abi.config import ABI_MAJOR, ABI_MINOR
from sley.abi.counters import COUNTERS, CounterGroup
from sley.abi.faults import FaultCode, QueueState, Unit, UnitState
from sley.abi.instructions import FORMATS, Op
from sley.abi.layout import Layout
from sley.abi.packets import PACKET_BYTES, PACKETS, PacketOp
from sley.abi.parameters import Param
from sley.abi.registers import RegisterMap

_ENUMS: tuple[type[IntEnum], ...] = (FaultCode, Unit, UnitState, QueueState, PacketOp, Op, Param, CounterGroup)


def _snake(name: str) -> str:
    return "".join("_" + c if c.isupper() and i else c for i, c in enumerate(name)).upper()


def _layout(prefix: str, layout: Layout) -> Iterable[str]:
    for name, placed in layout.fields.items():
        yield f"#define {prefix}_{name.upper()}_LSB {placed.lsb}u"
        yield f"#define {prefix}_{name.upper()}_WIDTH {placed.width}u"


def c_header(registers: RegisterMap) -> str:
    """Text of ``sley.h``; fields are given as lowest bit and width because packets are wider than any C integer."""
    lines = ["/* Generated from sley.abi. Do not edit. */", "#ifndef SLEY_H", "#define SLEY_H", ""]
    lines += [f"#define SLEY_ABI_MAJOR {ABI_MAJOR}u", f"#define SLEY_ABI_MINOR {ABI_MINOR}u"]
    lines += [f"#define SLEY_PACKET_BYTES {PACKET_BYTES}u", ""]
    for enum in _ENUMS:
        lines += [f"#define SLEY_{_snake(enum.__name__)}_{member.name} {member.value}u" for member in enum] + [""]
    for group, counters in COUNTERS.items():
        lines += [f"#define SLEY_COUNTER_{group.name}_{c.name} {c.value}u" for c in counters] + [""]
    for block in registers.blocks:
        prefix = f"SLEY_{block.name}"
        lines += [f"/* {block.doc} */", f"#define {prefix}_BLOCK_BASE {block.base:#x}u"]
        lines += [f"#define {prefix}_BLOCK_STRIDE {block.stride:#x}u", f"#define {prefix}_BLOCK_COUNT {block.count}u"]
        for register in block.registers:
            lines.append(f"#define {prefix}_{register.name} {register.offset:#x}u")
            lines += _layout(f"{prefix}_{register.name}", register.layout)
        lines.append("")
    for packet in PACKETS.values():
        lines += [f"/* {packet.doc} */", *_layout(f"SLEY_PACKET_{packet.op.name}", packet.layout), ""]
    for form in FORMATS.values():
        lines += [f"/* {form.doc} */", *_layout(f"SLEY_INSTRUCTION_{form.op.name}", form.layout), ""]
    return "\n".join([*lines, "#endif", ""])
