"""Where the parts of a node that work in address spaces meet its router."""

from typing import Any

from amaranth import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.network import Tag
from sley.hw.memory.node import NodePort
from sley.hw.mmu.tlb import Invalidation
from sley.hw.mmu.translate import Translate
from sley.hw.noc.messages import request_flit, response_flit, response_payload
from sley.hw.stream.buffer import StreamBuffer


def attach(m: Module, part: Any, port: "TranslatedPort", index: int) -> None:
    """Puts a part (``request``, ``response``) that finds out late whether it has a request in its place at a port.

    A stream register is in front, so that no other part waits in the same cycle for what this one finds out. Latency of
    a request 1 cycle, of an answer none.
    """
    m.submodules[f"request_{index}"] = request = StreamBuffer(part.request.payload.shape())
    connect(m, part.request, request.i)
    connect(m, request.o, port.request[index])
    connect(m, port.response[index], part.response)


class TranslatedPort(wiring.Component):
    """A ``NodePort`` with one translator between it and the router, for all parts of the node.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    tags : list of Tag, weights : tuple of int
        As of ``NodePort``.

    Members
    -------
    request : In(stream of request_flit(config)).array(len(tags))
        As of ``NodePort``. A miss of one part holds the requests of all.
    response : Out(stream of response_payload(config)).array(len(tags))
        As of ``NodePort``; combinational.
    request_i : Out(stream of request_flit(config)), response_o : In(stream of response_flit(config))
        As of ``NodePort``.
    invalidate : In(Invalidation)
        To the translator.

    Latency
    -------
    2 cycles of a request while translations are held, none of an answer.

    Throughput
    ----------
    1 flit per cycle, while translations are held.
    """

    request: list[stream.Interface]
    response: list[stream.Interface]
    request_i: stream.Interface
    response_o: stream.Interface
    invalidate: data.View

    def __init__(self, config: ChipConfig, tags: list[Tag], weights: tuple[int, ...] = ()) -> None:
        self._port = NodePort(config, tags, weights)
        self._translate = Translate(config)
        super().__init__(
            {
                "request": In(stream.Signature(request_flit(config))).array(len(tags)),
                "response": Out(stream.Signature(response_payload(config))).array(len(tags)),
                "request_i": Out(stream.Signature(request_flit(config))),
                "response_o": In(stream.Signature(response_flit(config))),
                "invalidate": In(Invalidation),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.port = port = self._port
        m.submodules.translate = translate = self._translate
        for outside, inside in zip(self.request, port.request, strict=True):
            connect(m, flipped(outside), inside)
        for outside, inside in zip(self.response, port.response, strict=True):
            connect(m, inside, flipped(outside))
        connect(m, port.request_i, translate.i)
        connect(m, translate.o, flipped(self.request_i))
        connect(m, flipped(self.response_o), translate.response_i)
        connect(m, translate.response_o, port.response_o)
        m.d.comb += translate.invalidate.eq(self.invalidate)
        return m
