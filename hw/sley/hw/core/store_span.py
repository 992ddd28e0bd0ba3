"""How far the last row of a STORE's runs is from the first."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.hw.memory.run import RUN_BYTES_BITS

STRIDE_BITS = 16


class StoreSpan(wiring.Component):
    """Works out the span of a run's rows for both memories while nobody waits for it, and keeps the one that is asked.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    run_bytes : In(16), stride : In(signed(16))
        Parameters: bytes of a run, rows from chunk to chunk.
    less : Out(16)
        ``run_bytes`` - 1, of the cycle before.
    capture : In(1), space : In(1)
        Keep the span in this memory, of ``stride`` in the cycle before and ``run_bytes`` two cycles before.
    rows : Out(bits of a row number and one more)
        From the first row to the last, in two's complement, modulo its width; from the cycle after ``capture``.
    far : Out(1)
        Likewise: it is further than from one end of the memory to the other, whatever the first row is.

    Latency: three cycles from ``run_bytes`` to ``rows``. Cost: two 16 x 16 multipliers, registers behind them.
    """

    run_bytes: Signal
    stride: Signal
    less: Signal
    capture: Signal
    space: Signal
    rows: Signal
    far: Signal

    def __init__(self, config: ChipConfig) -> None:
        # Scratchpad, accumulator: in the order of ``Space``.
        self._limits = (config.scratchpad_rows, config.accumulator_rows)
        self._row_bytes = (config.row_bytes, config.accumulator_row_bytes)
        super().__init__(
            {
                "run_bytes": In(RUN_BYTES_BITS),
                "stride": In(signed(STRIDE_BITS)),
                "less": Out(RUN_BYTES_BITS),
                "capture": In(1),
                "space": In(1),
                "rows": Out(exact_log2(max(self._limits)) + 1),
                "far": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.less.eq(self.run_bytes - 1)
        spans, fars = [], []
        for space, limit, row_bytes in zip(Space, self._limits, self._row_bytes, strict=True):
            last_chunk, bits = self.less >> exact_log2(row_bytes), exact_log2(limit)
            span = Signal(signed(len(last_chunk) + STRIDE_BITS), name=space.name.lower(), reset_less=True)
            m.d.sync += span.eq(last_chunk * self.stride)
            spans.append(span)
            fars.append((span[bits:-1] ^ span[bits + 1 :]).any())
        in_accumulator = self.space == Space.ACCUMULATOR
        with m.If(self.capture):
            m.d.sync += [
                self.rows.eq(Mux(in_accumulator, *reversed(spans))),
                self.far.eq(Mux(in_accumulator, *reversed(fars))),
            ]
        return m
