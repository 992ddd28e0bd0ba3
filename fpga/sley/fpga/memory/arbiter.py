"""Two AXI4 managers on one memory."""

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.hw.memory.axi import BURST_INCR, CACHE_NORMAL, axi4_signature
from sley.hw.stream.buffer import StreamBuffer

MANAGERS = 2
WRITES = 4
"""Write bursts whose address is taken and whose data is not complete."""


class AxiArbiter(wiring.Component):
    """Lets two managers, who use ID 0 and bursts of full width, share one target.

    Parameters
    ----------
    config : ChipConfig
        Of the bus.

    Members
    -------
    managers : In(axi4_signature(config)).array(2)
        Where the managers are connected.
    target : Out(axi4_signature(config))
        To the memory. It sees the number of the manager as ID, must return it with every response, and keeps the order
        within one ID. It may accept write data before the address that they belong to.

    Rules
    -----
    1. Round-robin for read and for write addresses apart: who had the last turn has the next one unless the other
       requests; a turn that changes hands costs a cycle. So neither waits for more than one burst address of the other.
    2. Write data follow in the order of their addresses.

    Latency
    -------
    Addresses 1 cycle, all else none. ``awready``, ``arready`` and all addresses come from registers; data and responses
    pass through one multiplexer or gate.

    Throughput
    ----------
    An address a cycle each way, a beat a cycle.

    Cost
    ----
    2 addresses of flip-flops each way, the multiplexers.
    """

    managers: list[Any]
    target: Any

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        bus = axi4_signature(config)
        super().__init__({"managers": In(bus).array(MANAGERS), "target": Out(bus)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        managers, target = self.managers, self.target
        owners = Signal(WRITES)  # of the write bursts in flight, the oldest lowest
        count = Signal(range(WRITES + 1))
        place = Signal(range(WRITES + 1))
        owner = owners[0]
        open_ = Signal()  # count is not 0
        room = Signal(init=1)  # nor WRITES
        begins = Signal()
        ends = Signal()
        self._addresses(m, "ar", 1)
        turn = self._addresses(m, "aw", room)
        m.d.comb += [
            begins.eq(Mux(turn, managers[1].awvalid, managers[0].awvalid) & Mux(turn, *self._ready("aw"))),
            place.eq(count - ends),
            ends.eq(target.wvalid & target.wready & target.wlast),
        ]
        with m.If(ends):
            m.d.sync += owners.eq(owners >> 1)
        with m.If(begins):
            m.d.sync += owners.bit_select(place, 1).eq(turn)
        with m.If(begins ^ ends):
            m.d.sync += [
                count.eq(Mux(ends, count - 1, count + 1)),
                open_.eq(begins | (count != 1)),
                room.eq(ends | (count != WRITES - 1)),
            ]

        m.d.comb += [
            target.wdata.eq(Mux(owner, managers[1].wdata, managers[0].wdata)),
            target.wstrb.eq(Mux(owner, managers[1].wstrb, managers[0].wstrb)),
            target.wlast.eq(Mux(owner, managers[1].wlast, managers[0].wlast)),
            target.wvalid.eq(Mux(owner, managers[1].wvalid, managers[0].wvalid) & open_),
            target.bready.eq(Mux(target.bid, managers[1].bready, managers[0].bready)),
            target.rready.eq(Mux(target.rid, managers[1].rready, managers[0].rready)),
        ]
        for number, manager in enumerate(managers):
            m.d.comb += [
                manager.wready.eq(target.wready & open_ & (owner == number)),
                manager.bvalid.eq(target.bvalid & (target.bid == number)),
                manager.bresp.eq(target.bresp),
                manager.rvalid.eq(target.rvalid & (target.rid == number)),
                manager.rdata.eq(target.rdata),
                manager.rresp.eq(target.rresp),
                manager.rlast.eq(target.rlast),
            ]
        return m

    def _ready(self, channel: str) -> tuple[Any, Any]:
        """Of the second manager and the first, in the order that ``Mux`` wants."""
        first, second = (getattr(manager, f"{channel}ready") for manager in self.managers)
        return second, first

    def _addresses(self, m: Module, channel: str, room: Any) -> Signal:
        """One address channel; returns the manager whose turn it is."""
        turn = Signal(name=f"{channel}_turn")
        layout = data.StructLayout({"addr": self._config.addr_bits, "len": 8, "id": 1})
        m.submodules[channel] = buffer = StreamBuffer(layout)
        first, second = self.managers
        valid = [getattr(manager, f"{channel}valid") for manager in self.managers]
        asks, other = Signal(name=f"{channel}_asks"), Signal(name=f"{channel}_other")
        m.d.comb += [
            asks.eq(Mux(turn, valid[1], valid[0])),
            other.eq(Mux(turn, valid[0], valid[1])),
            buffer.i.valid.eq(asks & room),
            buffer.i.payload.id.eq(turn),
        ]
        for field in ("addr", "len"):
            choice = Mux(turn, getattr(second, channel + field), getattr(first, channel + field))
            m.d.comb += buffer.i.payload[field].eq(choice)
        for number, manager in enumerate(self.managers):
            m.d.comb += getattr(manager, f"{channel}ready").eq(buffer.i.ready & room & (turn == number))
        with m.If(other & (~asks | (buffer.i.ready & room))):
            m.d.sync += turn.eq(~turn)
        target = self.target
        m.d.comb += [
            getattr(target, f"{channel}valid").eq(buffer.o.valid),
            buffer.o.ready.eq(getattr(target, f"{channel}ready")),
            getattr(target, f"{channel}size").eq(exact_log2(self._config.bus_bytes)),
            getattr(target, f"{channel}burst").eq(BURST_INCR),
            getattr(target, f"{channel}cache").eq(CACHE_NORMAL),
        ]
        for field in ("addr", "len", "id"):
            m.d.comb += getattr(target, channel + field).eq(buffer.o.payload[field])
        return turn
