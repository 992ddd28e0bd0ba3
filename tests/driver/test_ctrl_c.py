"""Ctrl-C in the middle of the driver: nothing is lost, the device stays usable, and a reset cancels what is queued."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from sley.abi.ctrl_c import CTRL_C
from sley.driver import ContextReset, Driver, Fence, wait_all, wait_any
from sley.driver.context import Context
from sley.driver.queue.queue import Queue
from sley.sim.engines.options import default_engine

Check = Callable[[], None]
FIRST, SECOND = 7, 9
COMPILED = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


@pytest.fixture(autouse=True)
def python_handles_sigint() -> Iterator[None]:
    """Also where pytest runs in the background of a shell, which has the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def held(context: Context) -> tuple[Queue, int, Fence]:
    """A queue that waits for a word, fills a place when the word is written, and then passes a fence."""
    queue, (word, place) = context.queues[0], (context.heap.allocate(64) for _ in range(2))
    context.space.write(word, bytes(64))
    context.space.write(place, bytes(64))
    queue.wait(word, 1)
    queue.fill(place, FIRST, 64)
    return queue, word, queue.fence()


@pytest.fixture
def pressed_while_waiting(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ctrl-C while the device runs, the second time that somebody waits for its interrupt. The cycles of all waits."""
    waits: list[int] = []
    wait_irq = driver.transport.wait_irq

    def waiting(cycles: int) -> bool:
        waits.append(cycles)
        if len(waits) == 2:
            press()
        return wait_irq(cycles)

    monkeypatch.setattr(driver.transport, "wait_irq", waiting)
    return waits


WAYS: dict[str, Callable[[Fence], Any]] = {
    "wait": lambda fence: fence.wait(),
    "time": lambda fence: fence.time,
    "wait_all": lambda fence: wait_all([fence]),
    "wait_any": lambda fence: wait_any([fence]),
    "timeout": lambda fence: fence.wait(100_000),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_second_wait(
    driver: Driver, context: Context, usable: Check, pressed_while_waiting: list[int], way: str
) -> None:
    driver.hang_cycles = 1 << 30
    _queue, word, fence = held(context)
    with pytest.raises(KeyboardInterrupt):
        WAYS[way](fence)
    assert len(pressed_while_waiting) == 2
    assert not fence.done
    context.signal(word, 1)
    fence.wait()
    assert fence.done
    assert fence.time
    assert not context.events
    usable()


def test_reset_cancels(driver: Driver, context: Context, usable: Check, pressed_while_waiting: list[int]) -> None:
    driver.hang_cycles = 1 << 30
    queue, word, fence = held(context)
    with pytest.raises(KeyboardInterrupt):
        fence.wait()
    driver.hang_cycles = 5_000
    context.reset()
    assert queue.pending == 0
    with pytest.raises(ContextReset, match="submit it again"):
        fence.wait()
    context.signal(word, 1)
    usable()


def test_what_a_caught_ctrl_c_leaves_goes_on(
    driver: Driver, context: Context, pressed_while_waiting: list[int]
) -> None:
    """Packets that come after are executed behind those that were waited for."""
    driver.hang_cycles = 1 << 30
    queue, word, fence = held(context)
    with pytest.raises(KeyboardInterrupt):
        fence.wait()
    place = context.heap.allocate(64)
    queue.fill(place, SECOND, 64)
    context.signal(word, 1)
    queue.fence().wait()
    assert fence.done
    assert context.space.read(place, 64) == bytes([SECOND]) * 64


def test_a_handler_that_does_not_raise(driver: Driver, context: Context, pressed_while_waiting: list[int]) -> None:
    """The wait goes on; the handler runs between two operations, not in one."""
    driver.hang_cycles = 1 << 30
    _queue, word, fence = held(context)
    depths = []

    def handler(number: int, frame: FrameType | None) -> None:
        depths.append(CTRL_C._depth)
        context.signal(word, 1)

    before = signal.signal(signal.SIGINT, handler)
    try:
        fence.wait()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert depths == [0]


def test_sigint_is_left_alone_where_python_does_not_handle_it(context: Context) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with CTRL_C.postponed():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            press()
        context.queues[0].fence().wait()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_does_not_wait() -> None:
    steps = []

    def operation() -> None:
        with CTRL_C.postponed(), CTRL_C.postponed():
            for step in range(3):
                steps.append(step)
                press()

    with pytest.raises(KeyboardInterrupt):
        operation()
    assert steps == [0, 1]
    with pytest.raises(KeyboardInterrupt):
        press()
    with CTRL_C.postponed():
        pass  # the first one is forgotten


def test_in_a_callback(context: Context, usable: Check) -> None:
    """The function is cut short; the queue goes on, and says so."""
    queue = context.queues[0]
    done = []

    def function() -> None:
        press()
        done.append("not reached")

    queue.callback(function)
    place = context.heap.allocate(64)
    queue.fill(place, FIRST, 64)
    fence = queue.fence()
    with pytest.raises(KeyboardInterrupt):
        fence.wait()
    fence.wait()
    assert context.space.read(place, 64) == bytes([FIRST]) * 64
    assert not done
    assert "callback 1 of queue 0 raised KeyboardInterrupt()" in str(context.events[-1])
    with pytest.raises(Exception, match="raised KeyboardInterrupt"):
        queue.nop()
    usable()


def test_while_another_thread_waits(driver: Driver, context: Context, usable: Check) -> None:
    """Signals come to the main thread; the wait of another one goes on."""
    driver.hang_cycles = 1 << 30
    _queue, word, fence = held(context)
    thread = threading.Thread(target=fence.wait)
    thread.start()
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            press()
        with pytest.raises(KeyboardInterrupt), driver.lock:
            press()
    assert thread.is_alive()
    context.signal(word, 1)
    thread.join(60)
    assert not thread.is_alive()
    usable()


def test_in_a_coroutine(driver: Driver, context: Context, usable: Check) -> None:
    """asyncio cancels the main task; the fence can be awaited again."""
    driver.hang_cycles = 1 << 30
    _queue, word, fence = held(context)

    async def interrupted() -> None:
        asyncio.get_running_loop().call_later(0.05, press)
        await fence

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted())

    async def again() -> None:
        await fence

    context.signal(word, 1)
    asyncio.run(again())
    assert fence.done
    usable()


class PressedAt:
    """Ctrl-C at one line of those of the driver and of the engine, which are counted."""

    def __init__(self, line: int) -> None:
        self.lines, self._line = 0, line

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        if f"{os.sep}driver{os.sep}sley" not in name and f"{os.sep}engines{os.sep}" not in name:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._line + 1:
                press()
        return self.trace

    def run(self, action: Check) -> bool:
        """Whether Ctrl-C cut the action short."""
        sys.settrace(self.trace)
        try:
            action()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


def test_at_any_line_of_a_wait(driver: Driver, context: Context, usable: Check) -> None:
    """Wherever it comes, a second wait ends well, a callback runs once, and pages are given back."""
    queue, place, runs = context.queues[0], context.heap.allocate(64), []
    line, cut = 0, 0
    while True:
        runs.clear()
        queue.callback(lambda: runs.append(1))
        queue.fill(place, FIRST, 64)
        fence = queue.fence()
        pressed = PressedAt(line)
        cut += pressed.run(fence.wait)
        fence.wait()
        assert runs == [1], line
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if pressed.lines <= line:
            break
        line += 1 + line // 8
    assert cut > 20
    usable()


def test_at_any_line_of_memory_and_reset(driver: Driver, context: Context, usable: Check) -> None:
    """What was cut short is done or not; what is left is given back in the end."""

    def mapped_and_reset() -> None:
        buffer = context.allocate(5000)
        mapping = context.map(buffer)
        buffer.release()
        context.reset()
        context.unmap(mapping)

    line, cut = 0, 0
    while True:
        pressed = PressedAt(line)
        cut += pressed.run(mapped_and_reset)
        if pressed.lines <= line:
            break
        usable()
        line += 1 + line // 8
    assert cut > 20
    for mapping in context.space.mappings:
        assert mapping.buffer.references >= 1
    context.close()
    driver.context().close()


REAL = """
import os, signal, sys, threading
import numpy as np
from sley.driver import ContextReset
from sley.runtime import Device, blas

def later():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

with Device.open(sys.argv[1], hang_cycles=1 << 30) as device:
    word = device.array(np.zeros(1, np.uint64).view(np.int32))
    a = np.arange(16, dtype=np.int8).reshape(4, 4)
    x = device.array(a)
    device.stream.queue.wait(word.address, 1)
    out = blas.gemm(x, x)
    event = device.stream.record()
    for action in (event.wait, device.synchronize, out.numpy):
        later()
        try:
            action()
        except KeyboardInterrupt:
            print("interrupted", event.done)
    if sys.argv[2] == "reset":
        device.driver.hang_cycles = 5000
        device.context.reset()
        try:
            event.wait()
        except ContextReset:
            print("cancelled")
        out = blas.gemm(x, x)
        event = device.stream.record()
    else:
        device.context.signal(word.address, 1)
    event.wait()
    print(np.array_equal(out.numpy(), a.astype(np.int32) @ a), event.done)
"""


@pytest.mark.parametrize(
    ("engine", "way"),
    [
        *(pytest.param("fast:nano?memory=1M", way, marks=COMPILED) for way in ("again", "reset")),
        pytest.param("pysim:nano?memory=1M", "again", marks=pytest.mark.campaign),
        pytest.param("pysim:nano?memory=1M", "reset", marks=pytest.mark.slow),
    ],
)
def test_a_real_signal(engine: str, way: str) -> None:
    """In a process of its own, from outside of whatever it does."""
    ended = subprocess.run([sys.executable, "-c", REAL, engine, way], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    cancelled = ["cancelled"] if way == "reset" else []
    assert ended.stdout.splitlines() == ["interrupted False"] * 3 + cancelled + ["True True"]
