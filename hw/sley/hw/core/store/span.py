"""How far the last row of a STORE's runs is from the first."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.hw.core.store.reads import STRIDE_BITS
from sley.hw.memory.run import RUN_BYTES_BITS


class StoreSpan(wiring.Component):
    """Works out the span of a run's rows in two steps, the first of them while the STORE is taken.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    run_bytes : In(16), stride : In(signed(16))
        Bytes of a run, rows from chunk to chunk.
    less : Out(16)
        ``run_bytes`` - 1, of the cycle before.
    start : In(1), space : In(1)
        Work it out for this memory, ``less`` and ``stride``.
    rows : Out(bits of a row number and one more)
        From the first row to the last, in two's complement, modulo its width.
    far : Out(1)
        It is further than from one end of the memory to the other, whatever the first row is.

    Latency
    -------
    Two cycles from ``start`` to ``rows`` and ``far``, which stay.

    Cost
    ----
    A 16 x 16 multiplier, a register behind it.
    """

    run_bytes: Signal
    stride: Signal
    less: Signal
    start: Signal
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
                "start": In(1),
                "space": In(1),
                "rows": Out(exact_log2(max(self._limits)) + 1),
                "far": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.less.eq(self.run_bytes - 1)
        in_accumulator = self.space == Space.ACCUMULATOR
        last_chunk = self.less >> Mux(in_accumulator, *(exact_log2(size) for size in reversed(self._row_bytes)))
        product = Signal(signed(len(last_chunk) + STRIDE_BITS), reset_less=True)
        of_accumulator, started = Signal(reset_less=True), Signal()
        m.d.sync += started.eq(self.start)
        with m.If(self.start):
            m.d.sync += [product.eq(last_chunk * self.stride), of_accumulator.eq(in_accumulator)]
        fars = [(product[bits:-1] ^ product[bits + 1 :]).any() for bits in map(exact_log2, self._limits)]
        with m.If(started):
            m.d.sync += [self.rows.eq(product), self.far.eq(Mux(of_accumulator, *reversed(fars)))]
        return m
