"""Buffers of several pieces: which bytes are where, and which are none of the buffer's."""

import random
from collections.abc import Iterator

import pytest

from sley.abi.pages import PAGE_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, BufferFreed
from sley.driver.memory.buffer import BufferObject
from sley.driver.memory.pages import Extent


@pytest.fixture
def context() -> Iterator[Context]:
    with Driver.open("model:nano?memory=256K") as driver:
        yield driver.context()


@pytest.fixture
def scattered(context: Context) -> BufferObject:
    """Of the memory that is left when every other page is taken."""
    pages = [context.allocate(PAGE_BYTES) for _ in range(context.driver.pages.statistics().free // PAGE_BYTES)]
    for page in pages[::2][:4]:
        page.release()
    buffer = context.allocate(4 * PAGE_BYTES)
    assert [extent.length for extent in buffer.extents] == [PAGE_BYTES] * 4
    return buffer


def test_bytes_are_where_the_pieces_say(scattered: BufferObject) -> None:
    source, host = random.Random(4), bytearray(scattered.read(0, scattered.length))
    read = scattered._source.hardware.transport.read_memory
    for _ in range(200):
        offset = source.choice([0, 1, PAGE_BYTES - 1, PAGE_BYTES, source.randrange(scattered.length)])
        length = min(source.choice([0, 1, 2, PAGE_BYTES, 2 * PAGE_BYTES + 1]), scattered.length - offset)
        data = source.randbytes(length)
        scattered.write(offset, memoryview(data))
        host[offset : offset + length] = data
        pieces = list(scattered.pieces(offset, length))
        assert sum(piece.length for piece in pieces) == length
        assert b"".join(read(piece.address, piece.length) for piece in pieces) == data
        assert all(piece.length for piece in pieces)
    assert scattered.read(0, scattered.length) == host
    assert list(scattered.pieces(PAGE_BYTES - 1, 2)) == [
        Extent(scattered.extents[0].address + PAGE_BYTES - 1, 1),
        Extent(scattered.extents[1].address, 1),
    ]


def test_bounds(scattered: BufferObject) -> None:
    end = scattered.length
    for offset in (0, 1, PAGE_BYTES, end):
        assert scattered.read(offset, 0) == b""
    assert len(scattered.read(end - 1, 1)) == 1
    for offset, length in ((-1, 1), (0, -1), (1, -1), (end, 1), (end - 1, 2), (0, end + 1), (end + 1, 0)):
        with pytest.raises(BadRequest, match="are outside the buffer's 0x4000"):
            scattered.read(offset, length)
    with pytest.raises(BadRequest, match=r"0x3fff\.\.0x4001"):
        scattered.write(end - 1, b"xx")
    assert scattered.read(end - 1, 1) == b"\0"


def test_references(context: Context) -> None:
    buffer = context.allocate(1)
    assert (buffer.references, buffer.held, buffer.length) == (1, True, PAGE_BYTES)
    assert context.driver.buffers[buffer.number] is buffer
    mapping, handle = context.map(buffer), buffer.export()
    assert repr(buffer) == f"BufferObject({buffer.number}, 0x1000 bytes, 3 references)"
    buffer.release()
    context.driver.revoke(handle)
    assert (buffer.references, buffer.held) == (1, False)
    context.unmap(mapping)
    assert buffer.number not in context.driver.buffers
    for call in (buffer.retain, buffer.drop, buffer.export, buffer.check, lambda: buffer.read(0, 1)):
        with pytest.raises(BufferFreed, match=f"buffer {buffer.number} was freed"):
            call()
    assert context.allocate(1).number == buffer.number + 1
