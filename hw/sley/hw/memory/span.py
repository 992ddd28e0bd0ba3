"""How a run lies on the bus: the numbers that reader and writer need, and the byte shifters of both."""

from collections.abc import Iterable

from amaranth import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.hw.memory.run import RUN_BYTES_BITS
from sley.hw.stream.count import step


def span_layout(config: ChipConfig) -> data.StructLayout:
    """What ``span`` computes. A window is what the longest burst reads, at a multiple of its length.

    ``window``: number of the window in which the run begins. ``position``: its first bus beat therein. ``offset``:
    lane of its first byte. ``windows``: number of windows that it touches, minus one. ``last``: its last bus beat in
    the last of them. ``end``: lane of its last byte. ``data_last``: number of left-justified beats, minus one.
    ``tail``: lane of the last byte in the last of these. ``extra``: there is one more bus beat than left-justified
    ones.
    """
    lanes, burst = exact_log2(config.bus_bytes), exact_log2(config.max_burst)
    return data.StructLayout(
        {
            "window": 32 - lanes - burst,
            "position": burst,
            "offset": lanes,
            "windows": RUN_BYTES_BITS + 1 - lanes - burst,
            "last": burst,
            "end": lanes,
            "data_last": RUN_BYTES_BITS - lanes,
            "tail": lanes,
            "extra": 1,
        }
    )


def span(m: Module, config: ChipConfig, run: data.View, up: Value, down: Value) -> data.View:
    """Two adders deep. ``windows`` has one more with ``up``, one less with ``down``."""
    lanes, burst = exact_log2(config.bus_bytes), exact_log2(config.max_burst)
    result = Signal(span_layout(config))
    final = Signal(unsigned(RUN_BYTES_BITS))
    reach = Signal(unsigned(RUN_BYTES_BITS + 1))
    m.d.comb += [
        final.eq(run.bytes - 1),
        reach.eq(Cat(run.addr[: lanes + burst], step(up, down, len(result.windows))) + final),
        result.window.eq(run.addr[lanes + burst :]),
        result.position.eq(run.addr[lanes:][:burst]),
        result.offset.eq(run.addr[:lanes]),
        result.windows.eq(reach[lanes + burst :]),
        result.last.eq(reach[lanes:][:burst]),
        result.end.eq(reach[:lanes]),
        result.data_last.eq(final[lanes:]),
        result.tail.eq(final[:lanes]),
        result.extra.eq(result.end < result.offset),
    ]
    return result


def reaches_further(config: ChipConfig, run: data.View) -> Value:
    """Whether a run touches more than one bus beat, before ``span`` knows where it ends."""
    offset = run.addr[: exact_log2(config.bus_bytes)]
    low = len(offset) + 1
    return run.bytes[low:].any() | (offset + run.bytes[:low] > config.bus_bytes)


def shift_right(value: Value, amount: Value, lanes: int, stages: Iterable[int]) -> Value:
    """The stages, from the highest, of a shift of two beats by bytes of which the lower beat is wanted: one multiplexer
    per bit of what the stages behind can still reach."""
    for k in stages:
        width = 8 * (lanes + (1 << k) - 1)
        value = Mux(amount[k], value[8 << k :][:width], value[:width])
    return value


def shift_left(value: Value, amount: Value, lanes: int) -> Value:
    """Two beats shifted by bytes, of which the upper beat is wanted."""
    for k in reversed(range(len(amount))):
        width = 8 * (lanes + (1 << k) - 1)
        value = Mux(amount[k], value[: len(value) - (8 << k)][-width:], value[-width:])
    return value
