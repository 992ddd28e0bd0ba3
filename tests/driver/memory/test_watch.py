"""What the driver tells a transport that wants to know whose memory is."""

from collections.abc import Iterator

import pytest

from sley.abi.config import preset
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.sim.engines.model import ModelTransport


class Watch:
    """Keeps a letter for each byte: ``.`` of nobody, ``a`` allocated."""

    red_zone = 64

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(b"." * size)
        self.names: dict[int, str] = {}

    def allocated(self, address: int, length: int) -> None:
        self.bytes[address : address + length] = b"a" * length

    def withheld(self, address: int, length: int) -> None:
        self.freed(address, length)

    def freed(self, address: int, length: int) -> None:
        self.bytes[address : address + length] = b"." * length

    def named(self, address: int, name: str) -> None:
        self.names[address] = name

    def of(self, context: Context, address: int, length: int) -> str:
        """The letters of bytes of a context."""
        pieces = context.space.pieces(address, length)
        return b"".join(self.bytes[piece.address : piece.address + piece.length] for piece in pieces).decode()


@pytest.fixture
def watch() -> Watch:
    return Watch(1 << 20)


@pytest.fixture
def context(watch: Watch) -> Iterator[Context]:
    transport = ModelTransport(preset("nano"), 1 << 20, compiled=False)
    transport.chip.watch = watch
    with Driver(transport) as driver:
        yield driver.context()


def test_a_heap_has_red_zones(context: Context, watch: Watch) -> None:
    first, second = context.heap.allocate(100), context.heap.allocate(64)
    assert watch.of(context, first, 192) == "a" * 100 + "." * 92
    assert watch.of(context, second, 128) == "a" * 64 + "." * 64
    assert second >= first + 164


def test_what_is_freed_is_of_nobody(context: Context, watch: Watch) -> None:
    kept, freed = context.heap.allocate(100), context.heap.allocate(100)
    context.heap.free(freed)
    assert watch.of(context, kept, 100) == "a" * 100
    assert watch.of(context, freed, 128) == "." * 128
    assert context.heap.allocate(30) == freed
    assert watch.of(context, freed, 64) == "a" * 30 + "." * 34


def test_the_heap_counts_what_it_takes(context: Context, watch: Watch) -> None:
    before = context.heap.statistics().used
    context.heap.free(context.heap.allocate(1000))
    assert context.heap.statistics().used == before


def test_buffers_are_whole_pages(context: Context, watch: Watch) -> None:
    buffer = context.allocate(5000)
    (extent,) = buffer.extents
    assert set(watch.bytes[extent.address : extent.address + buffer.length]) == {ord("a")}
    buffer.release()
    assert set(watch.bytes[extent.address : extent.address + extent.length]) == {ord(".")}


def test_names(context: Context, watch: Watch) -> None:
    address = context.heap.allocate(64)
    context.space.name(address, "silu")
    assert watch.names[context.space.physical(address, 1)] == "silu"
