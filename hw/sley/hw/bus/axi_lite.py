"""AXI4-Lite: the bus the host reaches the registers through, and the target that serves it."""

from enum import IntEnum

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, Signature

DATA_BITS = 32
STROBE_BITS = DATA_BITS // 8


class AxiResponse(IntEnum):
    """BRESP and RRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class AxiLite(Signature):
    """AXI4-Lite with 32-bit data, seen from the manager. ``address_bits``: width of a byte address."""

    def __init__(self, address_bits: int = 16) -> None:
        if not 3 <= address_bits <= 64:
            raise ValueError(f"address_bits is {address_bits}; it must be in 3..64")
        self.address_bits = address_bits
        super().__init__(
            {
                "awaddr": Out(address_bits),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(DATA_BITS),
                "wstrb": Out(STROBE_BITS),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(address_bits),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(DATA_BITS),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class RegisterBus(Signature):
    """Access to registers, seen from the side that asks: two independent one-cycle commands.

    * ``read`` high for a cycle reads ``read_address``. From the next cycle on, until the next read, ``read_data`` and
      ``read_error`` hold the answer.
    * ``write`` high for a cycle writes ``write_data`` to ``write_address``. From the next cycle on, until the next
      write, ``write_error`` tells whether that address exists.
    """

    def __init__(self, address_bits: int = 16) -> None:
        super().__init__(
            {
                "read": Out(1),
                "read_address": Out(address_bits),
                "read_data": In(DATA_BITS),
                "read_error": In(1),
                "write": Out(1),
                "write_address": Out(address_bits),
                "write_data": Out(DATA_BITS),
                "write_error": In(1),
            }
        )


class AxiLiteTarget(wiring.Component):
    """AXI4-Lite target in front of a register bus.

    ``awprot`` and ``arprot`` are ignored: protection is the business of the page tables that map the registers.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.

    Members
    -------
    bus : In(AxiLite(address_bits))
        The host's side. All outputs come from registers (``ready`` through an inverter), but for ``rdata``, which is
        that of the register bus.
    registers : Out(RegisterBus(address_bits))
        The registers.

    Rules
    -----
    1. Address and data of a write may arrive in any order and at any distance.
    2. A write with a strobe other than all ones is answered with SLVERR and does not reach the registers.
    3. An error of the register bus is answered with SLVERR, and with zero data.
    4. Reads and writes are independent of each other.

    Latency
    -------
    A write reaches the registers in the cycle after the later of its two handshakes and is answered in the cycle after
    that; a read is answered two cycles after its handshake.

    Throughput
    ----------
    A transfer each way every three cycles.

    Cost
    ----
    The addresses, one data word and a few bits of state.
    """

    bus: wiring.PureInterface
    registers: wiring.PureInterface

    def __init__(self, address_bits: int = 16) -> None:
        bus = AxiLite(address_bits)
        super().__init__({"bus": In(bus), "registers": Out(RegisterBus(address_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, registers = self.bus, self.registers

        address_full, data_full = Signal(), Signal()
        address = Signal.like(bus.awaddr, reset_less=True)
        word = Signal(DATA_BITS, reset_less=True)
        partial = Signal(reset_less=True)
        refused = Signal(reset_less=True)
        execute = Signal()
        m.d.comb += [
            bus.awready.eq(~address_full),
            bus.wready.eq(~data_full),
            execute.eq(address_full & data_full & ~bus.bvalid),
            registers.write.eq(execute & ~partial),
            registers.write_address.eq(address),
            registers.write_data.eq(word),
            bus.bresp.eq(_response(refused | registers.write_error)),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [address_full.eq(1), address.eq(bus.awaddr)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [data_full.eq(1), word.eq(bus.wdata), partial.eq(~bus.wstrb.all())]
        with m.If(execute):
            m.d.sync += [address_full.eq(0), data_full.eq(0), bus.bvalid.eq(1), refused.eq(partial)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += bus.bvalid.eq(0)

        read_full = Signal()
        m.d.comb += [
            bus.arready.eq(~read_full),
            registers.read.eq(read_full & ~bus.rvalid),
            bus.rdata.eq(registers.read_data),
            bus.rresp.eq(_response(registers.read_error)),
        ]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [read_full.eq(1), registers.read_address.eq(bus.araddr)]
        with m.If(registers.read):
            m.d.sync += [read_full.eq(0), bus.rvalid.eq(1)]
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        return m


def _response(error: Value) -> Value:
    """BRESP or RRESP."""
    return Mux(error, AxiResponse.SLVERR, AxiResponse.OKAY)
