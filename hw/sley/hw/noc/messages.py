"""What travels on the network: flits of the request network and of the response network.

Every flit carries its destination, so one router serves both networks. A packet is a sequence of flits to one
destination of which only the final one has ``last`` set; packets are never interleaved on a link.

Request packets (first flit: ``RequestHead``):

* READ: the head alone. Memory answers with ``beats`` response flits.
* WRITE: the head, then ``beats`` flits of ``RequestData``. Memory answers with one response flit.
* WALK: the head alone: how ``addr`` of ``context`` is mapped. Answered with one response flit, ``walk`` set, whose data
  is a ``walk_answer``.
* MESSAGE: the head, then flits whose data holds one 32-bit word each in the low bits. To a core:
  ``sley.abi.network.LaunchWord``, and ``addr`` of the head is the WATCHDOG of the block's queue.

Response packets: flits of ``ResponsePayload``. For reads one flit per beat, the last beat of the burst has
``last``. Answers to requests of one source and tag arrive in the order of the requests. In a chip with several cores a
flit of a response goes to all nodes of a rectangle, from ``dest`` to ``far``; to one node if both are the same.
"""

# mypy: disable-error-code="valid-type, call-arg"

from typing import Any

from amaranth.hdl import ShapeLike, ValueLike
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.instructions import FORMATS, Op
from sley.abi.network import COORDINATE_BITS, WALK_ANSWER, RequestKind, Tag
from sley.abi.pages import CONTEXT_BITS
from sley.abi.placement import memory_node
from sley.hw.elaboration.layouts import struct
from sley.hw.noc.access import ERROR_BITS

TAG_BITS = 3
BEATS_BITS = 8
Source = tuple[ValueLike, ValueLike]
"""x and y of a node, as numbers or as signals."""
SHARE_BITS = FORMATS[Op.LOAD].layout.fields["share"].width


class Coordinate(data.Struct):
    """A node of the mesh."""

    x: COORDINATE_BITS
    y: COORDINATE_BITS


def request_head(config: ChipConfig) -> data.StructLayout:
    """First flit of a request: ``addr`` is a byte address aligned to the bus, ``beats`` is the length minus one.

    On its way through the translator ``addr`` turns from an address of ``context`` into one of memory; ``execute``
    tells a fetch of instructions from other reads. ``error`` (``AccessError``): what the translator found wrong; memory
    does not see the request and its answer carries the error. In a chip with several cores a READ has a ``share``:
    which cores of a gang make this request together.
    """
    fields: dict[str, ShapeLike] = {
        "kind": RequestKind,
        "tag": Tag,
        "src": Coordinate,
        "beats": BEATS_BITS,
        "addr": 32,
        "context": CONTEXT_BITS,
        "execute": 1,
        "error": ERROR_BITS,
    }
    return data.StructLayout(fields if config.cores == 1 else {**fields, "share": SHARE_BITS})


def request_data(config: ChipConfig) -> data.StructLayout:
    """Further flits of a request: one beat, one strobe bit per byte."""
    return data.StructLayout({"data": 8 * config.bus_bytes, "strobe": config.bus_bytes})


def request_payload(config: ChipConfig) -> data.UnionLayout:
    return data.UnionLayout({"head": request_head(config), "beat": request_data(config)})


def response_payload(config: ChipConfig) -> data.StructLayout:
    """One beat of an answer; ``error`` is an ``AccessError``. ``walk``: it is the answer to a WALK, whose ``data`` is a
    ``walk_answer``."""
    return data.StructLayout({"data": 8 * config.bus_bytes, "tag": Tag, "error": ERROR_BITS, "walk": 1})


walk_answer = struct(WALK_ANSWER)


def flit(payload: data.Layout) -> data.StructLayout:
    """A payload with its destination and the end-of-packet mark."""
    return data.StructLayout({"payload": payload, "dest": Coordinate, "last": 1})


def request_flit(config: ChipConfig) -> data.StructLayout:
    return flit(request_payload(config))


def response_flit(config: ChipConfig) -> data.StructLayout:
    """A chip with one core has no use for ``far``."""
    layout = flit(response_payload(config))
    return layout if config.cores == 1 else data.StructLayout({**layout.members, "far": Coordinate})


def to_node(flit: data.View, x: ValueLike, y: ValueLike) -> list[Any]:
    """Assignments that address a flit of any network to one node."""
    ends = [flit.dest, *([flit.far] if "far" in flit.shape().members else [])]
    return [statement for end in ends for statement in (end.x.eq(x), end.y.eq(y))]


def ask_memory(flit: data.View, config: ChipConfig, source: Source, **fields: ValueLike) -> list[Any]:
    """Assignments that make a flit the head of a request of ``source`` to memory, with these ``fields``."""
    head = flit.payload.head
    return [
        *to_node(flit, *memory_node(config)),
        head.src.x.eq(source[0]),
        head.src.y.eq(source[1]),
        *(head[name].eq(value) for name, value in fields.items()),
    ]
