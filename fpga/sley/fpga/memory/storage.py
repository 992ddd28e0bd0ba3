"""On-chip RAM as ``BlockMemory`` uses it: the ports, and the kind that every FPGA has."""

from typing import Any, Protocol

from amaranth import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature


def storage_signature(depth: int, width: int) -> Signature:
    """RAM of ``depth`` rows as its user sees it.

    A read of ``read_row`` happens in each cycle with ``read``. ``advance`` moves the row read before into ``data``, a
    register of its own. ``strobe`` has a bit for each byte to be written.
    """
    rows = range(depth)
    return Signature(
        {
            "read": Out(1),
            "read_row": Out(rows),
            "advance": Out(1),
            "data": In(width),
            "write_row": Out(rows),
            "write_data": Out(width),
            "strobe": Out(width // 8),
        }
    )


class Storage(Protocol):
    """Makes RAM of a size: a component whose member ``port`` has the signature above."""

    single_port: bool
    """A cycle either reads or writes; the user sees to that."""

    def __call__(self, depth: int, width: int) -> Any: ...


class BlockRam(wiring.Component):
    """Block RAM that tools infer, with the memory's own read register and an output register after it.

    Parameters
    ----------
    depth, width : int
        Rows and bits of a row.

    Members
    -------
    port : In(storage_signature(depth, width))
        Its user.

    Rules
    -----
    1. A read and a write of one row in one cycle are a race.

    Cost
    ----
    On ECP5 a DP16KD for 2 KiB, on iCE40 an SB_RAM40_4K for 512 bytes; ``width`` flip-flops where the RAM has no second
    register.
    """

    single_port = False

    port: Any

    def __init__(self, depth: int, width: int) -> None:
        self._depth, self._width = depth, width
        super().__init__({"port": In(storage_signature(depth, width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port = self.port
        m.submodules.memory = memory = Memory(
            shape=unsigned(self._width), depth=self._depth, init=[], attrs={"no_rw_check": 1}
        )
        read, write = memory.read_port(), memory.write_port(granularity=8)
        output = Signal(self._width, reset_less=True)
        m.d.comb += [
            read.addr.eq(port.read_row),
            read.en.eq(port.read),
            port.data.eq(output),
            write.addr.eq(port.write_row),
            write.data.eq(port.write_data),
            write.en.eq(port.strobe),
        ]
        with m.If(port.advance):
            m.d.sync += output.eq(read.data)
        return m
