"""Ctrl-C, put off to the end of what must not be cut in half.

Python raises ``KeyboardInterrupt`` in the main thread between any two of its instructions. In the middle of an
operation of the driver that would leave page tables, rings or a simulated chip half changed. So while such an operation
runs, SIGINT is only noted; its handler is called when the outermost operation has ended. A second Ctrl-C does not wait.
Whatever handler the program has is kept: Python's own, which raises, that of ``asyncio.run``, or another.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import get_ident, main_thread
from types import FrameType
from typing import Any

_SIGINT = int(signal.SIGINT)


def _quick_setter() -> Callable[[int, Any], Any]:
    """``signal.signal`` without its conversion to enumerations, which takes twenty times as long as all the rest."""
    try:
        setter: Callable[[int, Any], Any] = import_module("_signal").signal
    except ImportError:  # another Python than CPython
        return signal.signal
    return setter


_set_handler = _quick_setter()


class CtrlC:
    """What is known of Ctrl-C in this process. Only the main thread changes it: signals are handled there."""

    def __init__(self) -> None:
        self._depth = 0
        self._asked = False
        self._handler: Any = None
        self.find_main_thread()

    def find_main_thread(self) -> None:
        """It is another one in a child process."""
        self._main = main_thread().ident

    def begin(self) -> None:
        """An operation begins that must not be cut in half; it may be part of another one."""
        if get_ident() != self._main:
            return
        if not self._depth:
            self._install()
        self._depth += 1

    def end(self) -> None:
        """It has ended. After the outermost one the program's handler is called, if Ctrl-C was pressed."""
        if get_ident() != self._main:
            return
        self._depth -= 1
        if not self._depth and self._handler is not None:
            self._remove()
            if self._asked:
                self._asked = False
                self._handler(_SIGINT, sys._getframe())

    def _install(self) -> None:
        self._asked = False
        before = _set_handler(_SIGINT, self._note)
        self._handler = before if callable(before) else None
        if self._handler is None:  # the system's own action, or none at all
            _set_handler(_SIGINT, before)

    def _remove(self) -> None:
        _set_handler(_SIGINT, self._handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            self._handler(number, frame)
        self._asked = True

    @contextmanager
    def postponed(self) -> Iterator[None]:
        """Around an operation that must not be cut in half."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Around code of the program itself inside of one operation, but not inside of two: it can be interrupted."""
        if self._depth != 1 or self._handler is None or get_ident() != self._main:
            yield
            return
        try:
            self._remove()
            yield
        finally:
            asked = self._asked
            self._install()
            self._asked |= asked

    def asked(self, operations: int) -> bool:
        """Whether Ctrl-C was pressed, and no more than so many operations wait for their end: one that only waits for
        the device may come to its end early."""
        return self._asked and self._depth <= operations and get_ident() == self._main


CTRL_C = CtrlC()
"""There is one keyboard."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=CTRL_C.find_main_thread)
