"""Memory that clients share, and what is left of it for whoever has its pages next."""

from collections.abc import Iterator

import pytest

from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BITS, PAGE_BYTES, PAGE_ENTRY
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, BufferFreed
from sley.driver.memory.buffer import READ_WRITE, Rights
from sley.driver.queue.fence import import_fence


@pytest.fixture
def pair() -> Iterator[tuple[Context, Context]]:
    """Two clients with a queue each."""
    with Driver.open("model:nano?memory=32M", hang_cycles=5_000) as driver:
        clients = driver.context(), driver.context()
        for client in clients:
            client.queue()
        yield clients


@pytest.mark.parametrize("who", [0, 1])
def test_pages_that_were_shared_are_zero_for_their_next_owner(pair: tuple[Context, Context], who: int) -> None:
    """Also if that is the same one as before: the other may have written to them."""
    giver, taker = pair
    buffer = giver.allocate(PAGE_BYTES)
    handle = buffer.export()
    mapping = taker.import_buffer(handle)
    taker.queues[0].fill(mapping.address, 0x5A, PAGE_BYTES)
    taker.queues[0].fence().wait()
    taker.driver.wait(lambda: not taker.queues[0].pending, timeout=1_000)
    taker.unmap(mapping)
    giver.driver.revoke(handle)
    buffer.release()
    again = pair[who].allocate(PAGE_BYTES)
    assert again.extents == buffer.extents
    assert again.read(0, PAGE_BYTES) == bytes(PAGE_BYTES)


def test_pages_that_nobody_else_had_stay_what_they_were(pair: tuple[Context, Context]) -> None:
    buffer = pair[0].allocate(PAGE_BYTES)
    buffer.write(0, b"mine")
    buffer.release()
    assert pair[0].allocate(PAGE_BYTES).read(0, 4) == b"mine"


@pytest.mark.parametrize("rights", [Rights.NONE, Rights(8), READ_WRITE | Rights(16)])
def test_no_mapping_without_rights(pair: tuple[Context, Context], rights: Rights) -> None:
    """To the chip, a large page without rights is a table: its owner would write what it maps."""
    thief, victim = pair
    secret = victim.allocate(PAGE_BYTES)
    secret.write(0, b"secret")
    table = thief.allocate(LARGE_PAGE_BYTES)
    page = secret.extents[0].address >> PAGE_BITS
    table.write(0, PAGE_ENTRY.pack(valid=1, page=page, read=1, write=1, execute=0).to_bytes(4, "little"))
    with pytest.raises(BadRequest, match="the rights are"):
        thief.map(table, rights)
    with pytest.raises(BadRequest, match="the rights are"):
        table.export(rights)
    with pytest.raises(BadRequest, match=r"the rights are|besides"):
        thief.import_buffer(table.export(), rights)
    assert table.references == 2


def test_a_map_of_what_was_freed_leaves_nothing_behind(pair: tuple[Context, Context]) -> None:
    context = pair[0]
    freed = context.allocate(PAGE_BYTES)
    freed.release()
    expected = context.map(context.allocate(PAGE_BYTES))
    context.unmap(expected)
    expected.buffer.release()
    for _ in range(3):
        with pytest.raises(BufferFreed, match="nobody refers to it"):
            context.map(freed)
    assert context.map(context.allocate(PAGE_BYTES)).address == expected.address


def test_a_page_of_fences_is_exported_again_after_its_handle_was_revoked(pair: tuple[Context, Context]) -> None:
    giver, taker = pair
    fence = giver.queues[0].fence()
    first = fence.export()
    assert fence.export() == first
    giver.driver.revoke(first.buffer)
    with pytest.raises(BadRequest, match="was it revoked"):
        import_fence(taker, first)
    second = fence.export()
    assert second.buffer != first.buffer
    taker.queues[0].wait_fence(import_fence(taker, second))
    taker.queues[0].fence().wait()
    giver.driver.revoke(second.buffer)
    giver.close()
    taker.close()
    assert giver.driver.pages.statistics().used == 0
