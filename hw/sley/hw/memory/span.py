"""How a run lies on the bus: the numbers that reader and writer need, each as a beat count minus one or a byte lane."""

from amaranth import Module, Signal, Value, unsigned
from amaranth.lib import data
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.hw.memory.run import RUN_BYTES_BITS


def span_layout(config: ChipConfig) -> data.StructLayout:
    """What ``span`` computes.

    ``beat``: address of the first bus beat, in beats. ``offset``: lane of the run's first byte. ``end``: lane of its
    last byte. ``bus_last``, ``data_last``: number of bus beats and of left-justified beats, minus one. ``tail``: lane
    of the last byte in the last left-justified beat. ``extra``: there is one more bus beat than left-justified ones.
    """
    lanes = exact_log2(config.bus_bytes)
    beats = RUN_BYTES_BITS + 1 - lanes
    return data.StructLayout(
        {
            "beat": 32 - lanes,
            "offset": lanes,
            "end": lanes,
            "bus_last": beats,
            "data_last": beats,
            "tail": lanes,
            "extra": 1,
        }
    )


def span(m: Module, config: ChipConfig, run: data.View) -> data.View:
    """Two adders deep."""
    lanes = exact_log2(config.bus_bytes)
    result = Signal(span_layout(config))
    final = Signal(unsigned(RUN_BYTES_BITS))
    reach = Signal(unsigned(RUN_BYTES_BITS + 1))
    m.d.comb += [
        final.eq(run.bytes - 1),
        reach.eq(run.addr[:lanes] + final),
        result.beat.eq(run.addr[lanes:]),
        result.offset.eq(run.addr[:lanes]),
        result.end.eq(reach[:lanes]),
        result.bus_last.eq(reach[lanes:]),
        result.data_last.eq(final[lanes:]),
        result.tail.eq(final[:lanes]),
        result.extra.eq(result.bus_last != result.data_last),
    ]
    return result


def rotate(m: Module, value: Value, lanes: Value, *, right: bool, name: str) -> Value:
    """The value rotated by a number of bytes; one multiplexer per bit of ``lanes``."""
    for k in range(len(lanes)):
        step = 8 << k
        turned = Signal(len(value), name=f"{name}_{k}")
        with m.If(lanes[k]):
            m.d.comb += turned.eq(value.rotate_right(step) if right else value.rotate_left(step))
        with m.Else():
            m.d.comb += turned.eq(value)
        value = turned
    return value
