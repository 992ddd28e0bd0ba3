"""Frames from bytes: only those that arrived intact come out."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.fpga.bridge.crc import SerialCrc
from sley.fpga.bridge.frames import ESCAPE, ESCAPED, FLAG
from sley.fpga.bridge.uart import received_byte

_TOGGLED = exact_log2(ESCAPED)

frame_item = data.StructLayout({"data": 8, "end": 1})


class FrameReceiver(wiring.Component):
    """Keeps received bytes until their CRC was checked, then delivers the frame.

    It waits for nothing but a flag: any flag ends what came before, and the next frame is received whatever that was.

    Parameters
    ----------
    buffer_bytes : int
        A power of two. Frames that were not delivered yet may have ``buffer_bytes - 1`` bytes together, each as it is
        on the line without its first flag.

    Members
    -------
    i : In(stream.Signature(received_byte, always_ready=True))
        Bytes of the line, at least 9 cycles apart.
    o : Out(stream.Signature(frame_item))
        The bytes of each intact frame, its CRC included, then an item with ``end``.
    bad : Out(1)
        High for a cycle when a frame is dropped: the CRC was wrong, a byte had no stop bit, an escape had no byte, or
        there was no room.

    Raises
    ------
    ValueError
        For a size of the buffer that is not allowed.

    Throughput
    ----------
    An item every three cycles.

    Cost
    ----
    One memory of ``buffer_bytes``, three pointers, a CRC.
    """

    i: stream.Interface
    o: stream.Interface
    bad: Signal

    def __init__(self, buffer_bytes: int) -> None:
        if buffer_bytes < 64 or buffer_bytes & (buffer_bytes - 1):
            raise ValueError(f"buffer_bytes is {buffer_bytes}; it must be a power of two, at least 64")
        self._bytes = buffer_bytes
        super().__init__(
            {
                "i": In(stream.Signature(received_byte, always_ready=True)),
                "o": Out(stream.Signature(frame_item)),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = Memory(shape=8, depth=self._bytes, init=[], attrs={"no_rw_check": 1})
        m.submodules.crc = crc = SerialCrc()
        write, read = buffer.write_port(), buffer.read_port()
        complete = Signal(range(self._bytes))  # behind the last intact frame
        self._receive(m, write, read.addr, crc, complete)
        self._give(m, read, complete)
        return m

    def _receive(self, m: Module, write: wiring.Component, taken: Signal, crc: SerialCrc, complete: Signal) -> None:
        byte = self.i.payload.data
        place = Signal(range(self._bytes))
        following = Signal(range(self._bytes))
        begun, broken, escaped, flag = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            flag.eq((byte == FLAG) & ~self.i.payload.error),
            following.eq(place + 1),
            write.addr.eq(place),
            write.data.eq(byte),
            write.en.eq(self.i.valid),
            crc.byte.eq(byte),
            crc.byte[_TOGGLED].eq(byte[_TOGGLED] ^ escaped),
        ]
        m.d.sync += self.bad.eq(0)
        with m.If(self.i.valid):
            with m.If(flag):
                m.d.comb += crc.clear.eq(1)
                m.d.sync += [begun.eq(0), broken.eq(0), escaped.eq(0)]
                with m.If(begun & crc.intact & ~broken & ~escaped & (following != taken)):
                    m.d.sync += [place.eq(following), complete.eq(following)]
                with m.Else():
                    m.d.sync += [place.eq(complete), self.bad.eq(begun)]
            with m.Else():
                m.d.sync += [begun.eq(1), escaped.eq(byte == ESCAPE)]
                with m.If(byte != ESCAPE):
                    m.d.comb += crc.start.eq(1)
                with m.If(self.i.payload.error | (following == taken)):
                    m.d.sync += broken.eq(1)
                with m.Elif(~broken):
                    m.d.sync += place.eq(following)

    def _give(self, m: Module, read: wiring.Component, complete: Signal) -> None:
        index = Signal(range(self._bytes))
        fetch, fetched = Signal(), Signal()
        byte, full = Signal(8, reset_less=True), Signal()
        escape, escaped = Signal(), Signal()
        m.d.comb += [
            fetch.eq(~full & ~fetched & (index != complete)),
            read.addr.eq(index),
            read.en.eq(fetch),
            escape.eq(byte == ESCAPE),
            self.o.valid.eq(full & ~escape),
            self.o.payload.end.eq(byte == FLAG),
            self.o.payload.data.eq(byte),
            self.o.payload.data[_TOGGLED].eq(byte[_TOGGLED] ^ escaped),
        ]
        with m.If(fetch):
            m.d.sync += index.eq(index + 1)
        with m.If(~full):
            m.d.sync += [byte.eq(read.data), full.eq(fetched), fetched.eq(fetch)]
        with m.Elif(escape | self.o.ready):
            m.d.sync += [full.eq(0), escaped.eq(escape)]
