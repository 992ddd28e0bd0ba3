"""The lock of a device: one thread at a time, and nothing cut in half by Ctrl-C."""

import threading
from types import TracebackType

from sley.abi.ctrl_c import CTRL_C


class OperationLock:
    """A lock for ``with``, which may be taken again by who has it. Ctrl-C in the main thread waits until it is given
    back, see ``sley.abi.ctrl_c``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        CTRL_C.begin()
        try:
            self._lock.acquire()
        except BaseException:  # a second Ctrl-C
            CTRL_C.end()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()
        CTRL_C.end()
