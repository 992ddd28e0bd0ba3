"""Several clients on one device: what each can reach, what happens to the others, and what is left when one goes."""

import json
from collections.abc import Callable, Iterator

import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.errors import SleyError
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.abi.pages import PAGE_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import (
    BadRequest,
    BufferFreed,
    ContextClosed,
    ContextHang,
    ContextReset,
    DeviceCorrupt,
    DeviceReset,
    NoRoom,
    QueueFault,
)
from sley.driver.memory.buffer import ALL_RIGHTS, READ_WRITE, Rights
from sley.driver.queue.fence import import_fence, wait_all, wait_any
from sley.sim.engines.options import default_engine

Check = Callable[[], None]
Pair = tuple[Context, Context]
ENGINES = ["model:nano?memory=1M", *(["fast:nano?memory=1M"] if default_engine() == "fast" else [])]


@pytest.fixture(params=ENGINES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two clients with a queue each."""
    with Driver.open(request.param, log2_ring=3, hang_cycles=5_000) as driver:
        clients = driver.context(), driver.context()
        for client in clients:
            client.queue()
        yield clients


def filled(context: Context, value: int) -> None:
    """Asserts that the context can work."""
    place = context.heap.allocate(32)
    context.queues[0].fill(place, value, 32)
    context.queues[0].fence().wait()
    assert context.space.read(place, 32) == bytes([value]) * 32
    context.heap.free(place)


def test_no_context_reaches_what_is_anothers(pair: Pair) -> None:
    victim, thief = pair
    secret = victim.map(victim.allocate(PAGE_BYTES))
    victim.space.write(secret.address, b"secret")
    mine = thief.heap.allocate(64)
    targets = {m.address for m in victim.space.mappings} - {m.address for m in thief.space.mappings}
    assert targets
    for address in targets:
        for packet in (
            encode_packet(PacketOp.COPY, src=address, dst=mine, bytes=8),
            encode_packet(PacketOp.COPY, src=mine, dst=address, bytes=8),
            encode_packet(PacketOp.WAIT, address=address, value=0),
            encode_packet(PacketOp.LAUNCH, program=address, program_words=1, grid_x=1, grid_y=1, grid_z=1),
        ):
            thief.queues[0].raw(packet)
            with pytest.raises(QueueFault) as caught:
                thief.queues[0].fence().wait()
            assert caught.value.code in (FaultCode.PAGE_FAULT, FaultCode.PERMISSION)
            assert (caught.value.context, caught.value.queue) == (thief.number, thief.queues[0].index)
    assert victim.space.read(secret.address, 6) == b"secret"
    assert not victim.events
    filled(victim, 1)
    filled(thief, 2)


def test_a_fault_is_reported_to_its_context_alone(pair: Pair) -> None:
    guilty, other = pair
    heard: list[SleyError] = []
    guilty.on_error = heard.append
    guilty.queues[0].nop()
    kept = other.queues[0].fence()
    guilty.queues[0].raw(bytes(PACKET_BYTES))
    lost = guilty.queues[0].fence()
    kept.wait()
    with pytest.raises(QueueFault) as caught:
        lost.wait()
    fault = caught.value
    assert (fault.context, fault.queue, fault.position) == (guilty.number, guilty.queues[0].index, 1)
    assert (fault.code, fault.unit) == (FaultCode.BAD_PACKET, Unit.COMMAND)
    assert list(guilty.events) == heard == [fault]
    assert not other.events
    assert guilty.driver.statistics.errors == {"QueueFault BAD_PACKET": 1}
    assert guilty.driver.statistics.interrupts[f"error of queue {guilty.queues[0].index}"] == 1
    filled(guilty, 3)


def test_a_hang_resets_its_context_alone(pair: Pair) -> None:
    stuck, other = pair
    gate = other.heap.allocate(8)
    other.space.write(gate, bytes(8))
    other.queues[0].wait(gate, 1)
    kept = other.queues[0].fence()
    mine = stuck.heap.allocate(8)
    stuck.space.write(mine, bytes(8))
    stuck.queues[0].wait(mine, 1)
    lost = stuck.queues[0].fence()
    with pytest.raises(ContextHang, match=f"context {stuck.number} was reset"):
        lost.wait()
    assert isinstance(stuck.events[-1], ContextHang)
    assert not kept.done
    other.signal(gate, 1)
    kept.wait()
    assert not other.events
    filled(stuck, 4)


def test_reset_of_a_context(pair: Pair) -> None:
    mine, other = pair
    gates = [context.heap.allocate(8) for context in pair]
    fences = []
    for context, gate in zip(pair, gates, strict=True):
        context.space.write(gate, bytes(8))
        context.queues[0].wait(gate, 1)
        fences.append(context.queues[0].fence())
    mine.reset()
    with pytest.raises(ContextReset, match="submit it again"):
        fences[0].wait()
    assert not fences[1].done
    other.signal(gates[1], 1)
    fences[1].wait()
    filled(mine, 5)
    filled(other, 6)


def test_reset_of_the_device_sets_everybody_up_again(pair: Pair) -> None:
    lost = []
    for context in pair:
        gate = context.heap.allocate(8)
        context.space.write(gate, bytes(8))
        context.queues[0].wait(gate, 1)
        lost.append(context.queues[0].fence())
    pair[0].driver.reset()
    for fence, context in zip(lost, pair, strict=True):
        with pytest.raises(DeviceReset):
            fence.wait()
        assert isinstance(context.events[-1], DeviceReset)
        filled(context, 7)


def test_closing_gives_everything_back(pair: Pair) -> None:
    mine, other = pair
    driver = mine.driver
    gate = mine.heap.allocate(8)
    mine.space.write(gate, bytes(8))
    mine.queues[0].wait(gate, 1)
    lost = mine.queues[0].fence()
    number, queue = mine.number, mine.queues[0]
    mine.map(mine.allocate(3 * PAGE_BYTES))
    mine.allocate(PAGE_BYTES)
    used = driver.pages.statistics().used
    mine.close()
    mine.close()
    assert driver.pages.statistics().used < used
    with pytest.raises(ContextReset, match="closed before"):
        lost.wait()
    for call in (lambda: mine.allocate(1), queue.nop, mine.queue, lambda: mine.when_done(print)):
        with pytest.raises(ContextClosed):
            call()
    filled(other, 8)
    again = driver.context()
    assert again.number == number
    assert again.queue().index == queue.index
    filled(again, 9)
    again.close()
    other.close()
    assert driver.pages.statistics().used == 0
    assert not driver.buffers
    assert not driver.handles


def test_numbers_of_contexts_and_queues_run_out(pair: Pair) -> None:
    driver = pair[0].driver
    with pytest.raises(NoRoom, match="queues"):
        pair[0].queue()
    while len(driver.contexts) < driver.config.contexts:
        driver.context()
    with pytest.raises(NoRoom, match="contexts"):
        driver.context()
    for bad in ({"priority": 4}, {"watchdog": -1}, {"log2_length": 16}):
        with pytest.raises(BadRequest, match=next(iter(bad))):
            pair[0].queue(**bad)


def test_a_buffer_is_shared_by_handle_with_rights(pair: Pair) -> None:
    giver, taker = pair
    buffer = giver.allocate(PAGE_BYTES)
    there = giver.map(buffer)
    handle = buffer.export(Rights.READ)
    with pytest.raises(BadRequest, match="grants"):
        taker.import_buffer(handle, READ_WRITE)
    here = taker.import_buffer(handle)
    mine = taker.heap.allocate(16)
    giver.space.write(there.address, b"hello")
    taker.queues[0].copy(here.address, mine, 5)
    taker.queues[0].fence().wait()
    assert taker.space.read(mine, 5) == b"hello"
    with pytest.raises(BadRequest, match="right to write"):
        taker.queues[0].fill(here.address, 0, 1)
    taker.queues[0].raw(encode_packet(PacketOp.FILL, dst=here.address, bytes=4))
    with pytest.raises(QueueFault, match="PERMISSION"):
        taker.queues[0].fence().wait()
    giver.driver.revoke(handle)
    with pytest.raises(BadRequest, match="revoked"):
        taker.import_buffer(handle)
    giver.unmap(there)
    buffer.release()
    assert taker.space.read(here.address, 5) == b"hello"
    taker.unmap(here)
    with pytest.raises(BufferFreed, match="nobody refers"):
        buffer.read(0, 1)
    with pytest.raises(BufferFreed, match="released before"):
        buffer.release()


def test_fresh_memory_never_shows_what_others_left(pair: Pair) -> None:
    first, second = pair
    size = first.driver.pages.statistics().free // PAGE_BYTES // 2 * PAGE_BYTES
    mapping = first.map(buffer := first.allocate(size))
    first.queues[0].fill(mapping.address, 0xAA, size)
    first.queues[0].fence().wait()
    first.unmap(mapping)
    first.driver.wait(lambda: not first.deferred, timeout=1000)
    buffer.release()
    buffer = second.allocate(size)
    assert buffer.read(0, size) == bytes(size)


def test_memory_in_use_by_work_in_flight_is_not_given_away(pair: Pair) -> None:
    context, _ = pair
    queue = context.queues[0]
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    mapping = context.map(buffer := context.allocate(PAGE_BYTES))
    buffer.release()
    queue.wait(gate, 1)
    queue.fill(mapping.address, 0x55, 64)
    fence = queue.fence()
    context.unmap(mapping)
    assert context.deferred == 1
    assert buffer.references
    order: list[int] = []
    context.when_done(lambda: order.append(1))
    context.when_done(lambda: order.append(2))
    context.signal(gate, 1)
    fence.wait()
    assert context.driver.wait(lambda: not context.deferred, timeout=1000)
    assert order == [1, 2]
    assert not buffer.references
    context.when_done(lambda: order.append(3))
    assert order[-1] == 3


def test_a_forged_read_index_harms_nobody_else(pair: Pair) -> None:
    """A client can write the word in its memory that says how far its queue is."""
    forger, other = pair
    queue = forger.queues[0]
    gate = forger.heap.allocate(8)
    forger.space.write(gate, bytes(8))
    mapping = forger.map(buffer := forger.allocate(PAGE_BYTES))
    buffer.release()
    queue.wait(gate, 1)
    queue.fill(mapping.address, 1, 64)
    fence = queue.fence()
    place = forger.driver.registers.value(f"QUEUE{queue.index}.READBACK")
    forger.space.write(place, (3).to_bytes(4, "little"))
    forger.unmap(mapping)
    filled(other, 1)
    assert forger.deferred == 1
    assert buffer.references
    forger.space.write(place, (0xFFFFFFFF).to_bytes(4, "little"))
    filled(other, 2)
    forger.signal(gate, 1)
    assert forger.driver.wait(lambda: fence.passed(), timeout=2_000)
    assert forger.driver.wait(lambda: not forger.deferred, timeout=2_000)
    assert not buffer.references
    assert not other.events


def test_errors_of_one_clients_functions_do_not_reach_another(pair: Pair) -> None:
    bad, other = pair

    def fail(error: SleyError) -> None:
        raise ValueError(error)

    bad.on_error = fail
    bad.queues[0].raw(bytes(PACKET_BYTES))
    gate = bad.heap.allocate(8)
    bad.driver.wait(lambda: bool(bad.events), timeout=1_000)
    bad.space.write(gate, bytes(8))
    with pytest.raises(QueueFault):
        bad.queues[0].nop()
    bad.queues[0].wait(gate, 1)
    bad.when_done(lambda: bad.heap.free(12345))
    bad.signal(gate, 1)
    while bad.deferred:
        filled(other, 3)
    assert isinstance(bad.events[-1], BufferFreed)
    assert bad.driver.statistics.errors["on_error raised"] == 2


def test_any_and_all(pair: Pair) -> None:
    gates, fences = [], []
    for context in pair:
        gates.append(context.heap.allocate(8))
        context.space.write(gates[-1], bytes(8))
        context.queues[0].wait(gates[-1], 1)
        fences.append(context.queues[0].fence())
    with pytest.raises(TimeoutError, match="none of 2"):
        wait_any(fences, timeout=500)
    pair[1].signal(gates[1], 1)
    assert wait_any(fences) is fences[1]
    with pytest.raises(TimeoutError):
        wait_all(fences, timeout=500)
    pair[0].signal(gates[0], 1)
    wait_all(fences)
    assert all(fence.done for fence in fences)
    with pytest.raises(BadRequest):
        wait_any([])
    wait_all([])


@pytest.mark.parametrize("end", ["pass", "reset", "close", "fault"])
def test_a_fence_orders_queues_of_two_contexts(pair: Pair, end: str) -> None:
    """Who imports a fence goes on when it has passed, and also when it never will."""
    first, second = pair
    gate = first.heap.allocate(8)
    first.space.write(gate, bytes(8))
    first.queues[0].wait(gate, 1)
    fence = first.queues[0].fence()
    with pytest.raises(BadRequest, match="export it"):
        second.queues[0].wait_fence(fence)
    imported = import_fence(second, fence.export())
    assert import_fence(second, fence.export()) == imported
    with pytest.raises(BadRequest, match="right to write"):
        second.queues[0].signal(imported.address, 9)
    second.queues[0].wait_fence(imported)
    behind = second.queues[0].fence()
    with pytest.raises(TimeoutError):
        behind.wait(timeout=500)
    place = first.heap.allocate(16)
    with pytest.raises(BadRequest, match="shares a buffer"):
        first.queues[0].fence(place).export()
    if end == "pass":
        first.signal(gate, 1)
    elif end == "fault":
        first.space.unmap(first.space.find(gate, 8, "gate"))
    else:
        getattr(first, end)()
    behind.wait()


def test_dump_of_two_clients(pair: Pair) -> None:
    context, other = pair
    other.queues[0].fence().wait()
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    context.queues[0].wait(gate, 1)
    context.driver.transport.advance(1_000)
    dump = context.driver.dump()
    assert f"queue 0 of context {context.number}: BLOCKED" in str(dump)
    assert f"context {context.number}: 2 mappings" in str(dump)
    data = json.loads(dump.json())
    assert data["queues"][0]["state"] == "BLOCKED"
    assert data["queues"][0]["packets"][0].startswith("WAIT")
    assert data["registers"]["CONTEXT0.ROOT"].startswith("mode=PAGED")
    assert len(data["contexts"]) == 2
    assert data["cores"][0]["units"]["load"] == "IDLE"
    assert data["memory"]["used"] == context.driver.pages.statistics().used
    assert data["events"]["invalidations"] > 2
    assert data["events"]["interrupts"] == {f"fence of queue {other.queues[0].index}": 1}
    assert data["counters"]["memory bus"]["read"]


def write_and_go_on(context: Context, address: int, word: int) -> None:
    """Runs a program that writes a word of memory and never ends."""
    mapping = context.map(context.allocate(PAGE_BYTES), ALL_RIGHTS)
    code = words_to_bytes(
        assemble(
            """
            add r9, r0, #1
            set load.run_bytes, #4
            set store.run_bytes, #4
            load r10, r0, r9 signal=1
            sync wait=1
            store r8, r0, r9
            again: load r10, r0, r9
            beq r0, r0, again
            end
            """
        )
    )
    source = mapping.address + PAGE_BYTES - 4
    context.space.write(mapping.address, code)
    context.space.write(source, word.to_bytes(4, "little"))
    length = len(code) // INSTRUCTION_BYTES
    context.queues[0].launch(mapping.address, length, [address, 0, source], (1, 1, 1))
    context.driver.transport.advance(1_000)


def test_who_writes_ones_own_read_index_harms_nobody_else(pair: Pair) -> None:
    """Nonsense is there while memory waits for the work to end."""
    guilty, other = pair
    index = guilty.driver.registers.value("QUEUE0.READBACK")
    gate = guilty.heap.allocate(8)
    guilty.space.write(gate, bytes(8))
    guilty.queues[0].wait(gate, 1)
    guilty.when_done(lambda: None)
    guilty.queues[0].fence()
    guilty.signal(gate, 1)
    write_and_go_on(guilty, index, 0xEEEE)
    filled(other, 10)
    assert isinstance(guilty.events[-1], DeviceCorrupt)
    assert not other.events
    assert not guilty.deferred
    filled(guilty, 11)


def test_memory_stays_with_work_that_lies_about_its_end(pair: Pair) -> None:
    """A program writes the read index that would stand there after it, and goes on."""
    liar, other = pair
    index = liar.driver.registers.value("QUEUE0.READBACK")
    mapping = liar.map(buffer := liar.allocate(PAGE_BYTES))
    buffer.release()
    write_and_go_on(liar, index, 1)
    assert not liar.queues[0].pending
    liar.unmap(mapping)
    assert liar.deferred == 1
    filled(other, 10)
    assert liar.deferred == 1
    assert buffer.references
    liar.reset()
    assert not liar.deferred
    assert not buffer.references
    filled(liar, 11)


def test_the_host_signals_as_a_queue_does(driver: Driver, context: Context) -> None:
    """The same requests are refused, by either, and change nothing."""
    queue, space = context.queues[0], context.space
    place = space.map(context.allocate(64)).address
    code = space.map(context.allocate(64), Rights.EXECUTE).address
    refused: list[tuple[int, int, type[Exception], str]] = [
        (place, -1, BadRequest, "value is -1; it must be in 0.."),
        (place, 1 << 64, BadRequest, "value is 18446744073709551616; it must be in 0.."),
        (place + 4, 1, BadRequest, "no multiple of 8"),
        (code, 1, BadRequest, "right to write"),
        (place + (1 << 20), 1, BufferFreed, "nothing is mapped"),
        (1 << 40, 1, BadRequest, "end past the address space"),
    ]
    for signal in (context.signal, queue.signal):
        for address, value, kind, message in refused:
            with pytest.raises(kind, match=message):
                signal(address, value)
    assert space.read(place, 64) == bytes(64)
    context.signal(place + 8, (1 << 64) - 1)
    queue.wait(place + 8, (1 << 64) - 1)
    queue.fence().wait()
    context.close()
    for signal in (context.signal, queue.signal):
        with pytest.raises(ContextClosed, match="was closed"):
            signal(place, 1)


def test_settings_are_checked_when_they_are_made(driver: Driver) -> None:
    with pytest.raises(BadRequest, match="hang_cycles is 0; it must be at least 1"):
        driver.hang_cycles = 0
    for count, cycles in ((-1, 0), (1 << 32, 0), (0, -1), (0, 1 << 32)):
        with pytest.raises(BadRequest, match=r"it must be in 0\.\."):
            driver.coalesce(count, cycles)
