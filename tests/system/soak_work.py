"""Valid work of a soak, each for some queue: copies, fills, launches, fences, data handed from client to client."""

import numpy as np
import pytest
from soak_client import UNTOUCHED, Line
from soak_mirror import Place
from soak_programs import PRODUCT_ROWS, REGION
from soak_session import SLOT, Session

from sley.abi.errors import SleyError
from sley.abi.packets import FENCE_BYTES
from sley.driver.queue.fence import Fence
from sley.sim.golden.vector import vector_op
from sley.sim.testing.watched_transport import SMALL


def copy(session: Session, line: Line) -> None:
    client, dice = line.client, session.dice
    a, b = dice.sample(line.regions, 2)
    src, source = line.region(a)
    dst, target = line.region(b)
    offset, to, length = dice.randrange(64), dice.randrange(64), dice.choice([1, 5, 64, 300, REGION - 64])
    source = Place(source.area, source.start + offset, length)
    target = Place(target.area, target.start + to, length)
    if dice.random() < 0.2:
        src, source = client.constants.address, Place(client.constant_area, offset, length)
    session.enter(
        line,
        "copy",
        lambda: line.queue.copy(src + offset, dst + to, length),
        done=lambda: target.set(source.data.copy(), source.known.copy()),
        writes=(target,),
    )


def fill(session: Session, line: Line) -> None:
    address, place = line.region(session.dice.choice(line.regions))
    offset, length = session.dice.randrange(256), session.dice.randrange(1, REGION - 256)
    value = session.dice.randrange(256)
    target = Place(place.area, place.start + offset, length)
    session.enter(
        line,
        "fill",
        lambda: line.queue.fill(address + offset, value, length),
        done=lambda: target.set(value, True),
        writes=(target,),
    )


def launch(session: Session, line: Line) -> None:
    client, name = line.client, session.dice.choice(["copy", "late copy", "product", "vector"])
    (src, source), (other, weights), (dst, target) = (
        line.region(index) for index in session.dice.sample(line.regions, 3)
    )
    grid = (4, 1, 1) if "copy" in name else (1, 1, 1)
    bias = session.dice.getrandbits(32)
    args = {
        "copy": [src, dst],
        "late copy": [0] * 6 + [src, dst],
        "product": [src, other, dst],
        "vector": [src, dst, bias],
    }[name]

    def done() -> None:
        if "copy" in name:
            target.set(source.data.copy(), source.known.copy())
        elif name == "vector":
            words = source.data.view(np.int32).reshape(-1, SMALL.array)
            row = np.full(SMALL.array, bias, np.uint32)
            known = np.repeat(source.known.reshape(-1, 4).all(axis=1), 4)
            target.set(vector_op(words, bias=row, relu=True).reshape(-1).view(np.uint8), known)
        else:
            a = source.data[: PRODUCT_ROWS * SMALL.array].view(np.int8).reshape(-1, SMALL.array)
            w = weights.data[: SMALL.array**2].view(np.int8).reshape(SMALL.array, SMALL.array)
            known = source.known[: a.size].all() and weights.known[: w.size].all()
            target.set((a.astype(np.int32) @ w.astype(np.int32)).reshape(-1).view(np.uint8), bool(known))

    program, words, tag = client.programs[name]
    session.enter(
        line,
        f"launch {name}",
        lambda: line.queue.launch(program, words, args, grid, tag),
        done=done,
        writes=(target,),
    )


def nop(session: Session, line: Line) -> None:
    session.enter(line, "nop", line.queue.nop)


def fence(session: Session, line: Line) -> None:
    """A fence at a place of its own, which is written once or, if the fence is lost, let go by the driver."""
    client, made = line.client, []
    if not client.free_fences:
        return nop(session, line)
    index = client.free_fences.popleft()
    offset = FENCE_BYTES * index
    place = Place(client.fence_area, offset, FENCE_BYTES)
    place.forget()
    interrupt = session.dice.random() < 0.5
    begun, resets = session.driver.time, session.driver.statistics.device_resets

    def written() -> tuple[int, int]:
        data = client.fence_area.buffer.read(offset, FENCE_BYTES)
        client.clear_fence(index)
        client.free_fences.append(index)
        return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")

    def done() -> None:
        fence: Fence = made[0]
        assert fence.done
        assert fence.over
        sequence, time = written()
        assert sequence == fence.sequence > line.sequence
        assert resets < session.driver.statistics.device_resets or begun < time <= session.driver.time
        line.sequence = sequence

    def lost(in_flight: bool) -> None:
        fence: Fence = made[0]
        assert fence.over
        with pytest.raises(SleyError) as caught:
            fence.done  # noqa: B018
        assert caught.value is line.queue.lost(fence.position)
        sequence, time = written()
        assert sequence == fence.sequence, "who waits for it is let go"
        assert in_flight or time == int.from_bytes(UNTOUCHED[8:], "little")

    line.interrupts += interrupt
    address = client.fences.address + offset
    session.enter(
        line,
        "fence",
        lambda: made.append(line.queue.fence(address, interrupt)),
        done=done,
        lost=lost,
    )


def hand_over(session: Session, line: Line) -> None:
    """One client fills a slot and signals; another one, or the same in another queue, waits and takes it."""
    free = [slot for slot in session.slots if not slot.users]
    if not free:
        return nop(session, line)
    slot, taker = session.dice.choice(free), session.dice.choice(session.lines)
    if not slot.place.known.all():
        slot.place.area.renew(session.numbers, slot.place.start, slot.place.length)
    slot.users, slot.value = 4, slot.value + session.dice.randrange(1, 1 << 40)
    value, there, here = slot.value, line.client.shared, taker.client.shared
    assert there is not None
    assert here is not None
    word = Place(session.shared, slot.semaphore, 8)

    def leave(in_flight: bool = False) -> None:
        slot.users -= 1

    src, source = line.region(session.dice.choice(line.regions))

    def filled() -> None:
        slot.place.set(source.data[:SLOT].copy(), source.known[:SLOT].copy())
        leave()

    session.enter(
        line,
        "give",
        lambda: line.queue.copy(src, there.address + slot.place.start, SLOT),
        done=filled,
        lost=leave,
        writes=(slot.place,),
    )

    def signalled() -> None:
        word.set(np.frombuffer(value.to_bytes(8, "little"), np.uint8), True)
        leave()

    def let_go(in_flight: bool) -> None:
        session.shared.buffer.write(slot.semaphore, value.to_bytes(8, "little"))
        signalled()

    signal = session.enter(
        line,
        "signal",
        lambda: line.queue.signal(there.address + slot.semaphore, value),
        done=signalled,
        lost=let_go,
    )
    dst, target = taker.region(session.dice.choice(taker.regions))
    target = Place(target.area, target.start, SLOT)

    waited = []

    def arrived() -> None:
        session.settle(line, signal.position)
        waited.append(True)
        leave()

    def taken() -> None:
        if waited:
            target.set(slot.place.data.copy(), slot.place.known.copy())
        else:  # the wait was lost to a fault just before the copy was submitted
            target.forget()
        leave()

    session.enter(
        taker,
        "wait",
        lambda: taker.queue.wait(here.address + slot.semaphore, value),
        done=arrived,
        lost=leave,
    )
    session.enter(
        taker,
        "take",
        lambda: taker.queue.copy(here.address + slot.place.start, dst, SLOT),
        done=taken,
        lost=leave,
        writes=(target,),
    )
