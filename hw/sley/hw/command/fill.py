"""Beats of one repeated byte."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.hw.memory.run import Run, beat


class FillSource(wiring.Component):
    """Stands in for a memory reader: answers each run with its beats, every byte of them ``value``.

    Parameters
    ----------
    config : ChipConfig
        Sets the width of a beat.
    longest : int
        Bytes of the longest run.

    Members
    -------
    i : In(stream of Run)
        Runs; the address does not matter.
    o : Out(stream of beat(config))
        Beats, padding included.
    value : In(8)
        The byte; constant while a run is here.

    Latency
    -------
    1 cycle.

    Throughput
    ----------
    1 beat per cycle within a run, one idle cycle between runs.
    """

    i: stream.Interface
    o: stream.Interface
    value: Signal

    def __init__(self, config: ChipConfig, longest: int) -> None:
        self._bus = config.bus_bytes
        self._longest = longest
        super().__init__(
            {"i": In(stream.Signature(Run)), "o": Out(stream.Signature(beat(config))), "value": In(8)},
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shift = exact_log2(self._bus)
        left = Signal(range(-(-self._longest // self._bus) + 1))
        payload: data.View = self.o.payload
        m.d.comb += [
            self.i.ready.eq(left == 0),
            self.o.valid.eq(left != 0),
            payload.data.eq(self.value.replicate(self._bus)),
            payload.last.eq(left == 1),
        ]
        with m.If(self.i.ready), m.If(self.i.valid):
            m.d.sync += left.eq((self.i.payload.bytes + self._bus - 1) >> shift)
        with m.Elif(self.o.ready):
            m.d.sync += left.eq(left - 1)
        return m
