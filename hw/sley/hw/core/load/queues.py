"""What the request side of the load unit tells the others, in queues."""

from amaranth import Module, Signal, Value, signed, unsigned
from amaranth.lib import data, stream

from sley.abi.faults import PC_BITS
from sley.abi.parameters import PARAMS, Param

FEED = data.StructLayout(
    {
        "space": 1,
        "work": 1,  # it writes rows; otherwise it only completes
        "illegal": 1,  # it completes with ILLEGAL_INSTRUCTION
        "bad": 1,  # it completes with BAD_PARAMETER
        "interleave": 1,
        "transpose": 1,
        "empty": 1,  # its runs have no bytes: no requests, all padding
        "chunks": 1,  # a SET, of CHUNKS
        "count2": 1,
        "run_bytes": 1,
        "fill": 1,
        "runs": 32,  # with the runs of padding, without those that fill the last unit; or a SET's value
    }
)
"""A command, as far as it says what rows are made of."""
TARGET = data.StructLayout(
    {
        "pc": PC_BITS,
        "space": 1,
        "work": 1,
        "interleave": 1,
        "chunk_stride": 1,  # a SET, of CHUNK_STRIDE
        "local_stride": 1,
        "local_stride2": 1,
        "row": 32,  # the first one; a SET's value; or the address of the fault
    }
)
"""The same command, as far as it says where its rows go."""
PENDING = data.StructLayout(
    {
        "addr": 32,
        "bad": 1,
        "slab_end": 1,  # the last one of its slab that has data
        "final": 1,  # the last one of its command
    }
)
"""A run that was requested; or, if ``bad``, one that was not, and after which nothing of its command is."""
FEED_PARAMS = (Param.CHUNKS, Param.COUNT2, Param.RUN_BYTES, Param.FILL)
TARGET_PARAMS = (Param.CHUNK_STRIDE, Param.LOCAL_STRIDE, Param.LOCAL_STRIDE2)


def params_of(
    m: Module, names: tuple[Param, ...], commands: stream.Interface, value: Value, clear: Value
) -> list[Signal]:
    """The parameters that a queue's reader needs, as of the command that it has."""
    made = []
    for name in names:
        info = PARAMS[name]
        shape = signed(info.width) if info.signed else unsigned(info.width)
        register = Signal(shape, init=info.reset, name=f"{name.name.lower()}", reset_less=True)
        with m.If(commands.valid & commands.ready & commands.payload[name.name.lower()]):
            m.d.sync += register.eq(value)
        with m.If(clear):
            m.d.sync += register.eq(info.reset)
        made.append(register)
    return made
