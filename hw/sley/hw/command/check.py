"""Checks a packet before it executes."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import INSTRUCTION_BYTES, MAX_ARGS
from sley.abi.layout import Layout
from sley.abi.packets import FENCE_BYTES, INLINE_ARGS, PACKET_BYTES, PACKETS, SEMAPHORE_BYTES, PacketOp
from sley.hw.command.records import GRID_BITS
from sley.hw.layouts import struct

WORD_BITS = 32
WORDS = 8 * PACKET_BYTES // WORD_BITS


AddressRange = data.StructLayout({"addr": 64, "bytes": 32})
"""A range of memory that a packet names: a 64-bit address, and how many bytes from there."""


class PacketCheck(wiring.Component):
    """Finds the first thing wrong with a packet, in the order of this list:

    1. BAD_PACKET: the opcode is not defined; address = the first 32-bit word of the packet.
    2. BAD_FIELD: a reserved bit is set, or a field is outside its range or not aligned; address = the number (0 to 15)
       of the first 32-bit word with such a bit or field (of a 64-bit field, its low word). A dimension of a grid is 1
       to 65535, of gangs the first two are the chip's columns and rows of cores. An INDIRECT packet that is ``nested``
       has a bad first word.
    3. BAD_ADDRESS: a range of memory that the packet names does not end at or below 2^addr_bits; address = the low
       half of the first such address field.

    Members: ``packet``, ``nested``: it is in a buffer; ``start``: check what is there now; ``done``: high in the
    next cycle, after which ``code`` (NONE when all is well), ``bad`` (it is not NONE) and ``address`` hold until the
    next check ends.
    """

    packet: Signal
    nested: Signal
    start: Signal
    done: Signal
    code: Signal
    bad: Signal
    address: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "packet": In(8 * PACKET_BYTES),
                "nested": In(1),
                "start": In(1),
                "done": Out(1),
                "code": Out(8),
                "bad": Out(1),
                "address": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.done.eq(self.start)

        # First cycle: the fields of each word, and which ranges of memory the packet names.
        known = Signal(reset_less=True)
        bad_words = Signal(WORDS, reset_less=True)
        ranges = [Signal(AddressRange, reset_less=True, name=f"range{k}") for k in range(2)]
        first_word = Signal(32, reset_less=True)
        m.d.sync += [known.eq(0), first_word.eq(self.packet[:32]), *(r.eq(0) for r in ranges)]
        with m.Switch(self.packet[:8]):
            for op, form in PACKETS.items():
                with m.Case(op):
                    m.d.sync += [known.eq(1), bad_words.eq(self._bad_words(op, form.layout))]
                    for register, (addr, size) in zip(ranges, self._ranges(op, form.layout), strict=False):
                        m.d.sync += [register.addr.eq(addr), register.bytes.eq(size)]

        # Second cycle: the ends of the ranges, and the verdict.
        outside = [self._outside(r) for r in ranges]
        with m.If(self.done):
            m.d.sync += self.bad.eq(1)
            with m.If(~known):
                m.d.sync += [self.code.eq(FaultCode.BAD_PACKET), self.address.eq(first_word)]
            with m.Elif(bad_words.any()):
                m.d.sync += self.code.eq(FaultCode.BAD_FIELD)
                for word in reversed(range(WORDS)):
                    with m.If(bad_words[word]):
                        m.d.sync += self.address.eq(word)
            with m.Elif(outside[0] | outside[1]):
                m.d.sync += [
                    self.code.eq(FaultCode.BAD_ADDRESS),
                    self.address.eq(Mux(outside[0], ranges[0].addr[:32], ranges[1].addr[:32])),
                ]
            with m.Else():
                m.d.sync += [self.code.eq(FaultCode.NONE), self.bad.eq(0)]
        return m

    def _outside(self, where: Any) -> Value:
        """Whether the range reaches beyond the chip's address width."""
        bits = self._config.addr_bits
        end = where.addr[:33] + where.bytes
        return where.addr[33:].any() | end[bits + 1 :].any() | (end[bits] & end[:bits].any())

    def _bad_words(self, op: PacketOp, layout: Layout) -> Value:
        """One bit per word of the packet: something in it is not allowed."""
        reserved = self.packet & Const(~layout.mask & ((1 << layout.width) - 1), layout.width)
        bad = [reserved.word_select(word, WORD_BITS).any() for word in range(WORDS)]
        fields: Any = data.View(struct(layout), self.packet)

        def reject(field: str, condition: Value) -> None:
            word = layout.fields[field].lsb // WORD_BITS
            bad[word] = bad[word] | condition

        def aligned(field: str, size: int) -> None:
            reject(field, (fields[field] & (size - 1)).any())

        match op:
            case PacketOp.LAUNCH:
                reject("program_words", fields.program_words == 0)
                reject("program_words", fields.program_words > self._config.program_words)
                reject("arg_words", fields.arg_words > MAX_ARGS)
                for field in ("grid_x", "grid_y", "grid_z"):
                    reject(field, (fields[field] == 0) | fields[field][GRID_BITS:].any())
                reject("grid_x", fields.gang & (fields.grid_x != self._config.cores_x))
                reject("grid_y", fields.gang & (fields.grid_y != self._config.cores_y))
                aligned("program", INSTRUCTION_BYTES)
                aligned("args", WORD_BITS // 8)
                # Of the places for arguments, those that are not used are zero.
                in_memory = fields.arg_words > INLINE_ARGS
                reject("args", ~in_memory & fields.args.any())
                for k in range(INLINE_ARGS):
                    reject(f"arg{k}", (in_memory | (fields.arg_words <= k)) & fields[f"arg{k}"].any())
            case PacketOp.FENCE:
                aligned("address", FENCE_BYTES)
            case PacketOp.WAIT | PacketOp.SIGNAL:
                aligned("address", SEMAPHORE_BYTES)
            case PacketOp.INDIRECT:
                aligned("address", PACKET_BYTES)
                reject("op", self.nested)
        return Cat(bad)

    def _ranges(self, op: PacketOp, layout: Layout) -> list[tuple[Value, Value | int]]:
        """The ranges of memory the packet names."""
        fields: Any = data.View(struct(layout), self.packet)
        match op:
            case PacketOp.LAUNCH:
                return [
                    (fields.program, fields.program_words * INSTRUCTION_BYTES),
                    (fields.args, fields.arg_words * (WORD_BITS // 8)),
                ]
            case PacketOp.COPY:
                return [(fields.src, fields.bytes), (fields.dst, fields.bytes)]
            case PacketOp.FILL:
                return [(fields.dst, fields.bytes)]
            case PacketOp.FENCE:
                return [(fields.address, FENCE_BYTES)]
            case PacketOp.WAIT | PacketOp.SIGNAL:
                return [(fields.address, SEMAPHORE_BYTES)]
            case PacketOp.INDIRECT:
                return [(fields.address, fields.packets * PACKET_BYTES)]
        return []
