"""Checks of a self-test: what was looked at, what came of it, and what differs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from sley.abi.errors import SleyError

KEPT = 8
"""Differences that a check keeps; more are only counted."""


class Outcome(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Difference:
    """Something that is not as it must be: the address or operation, what was expected, what was found."""

    where: str
    expected: str
    found: str


@dataclass
class Check:
    """A check.

    Attributes: ``group``: what is checked, such as ``memory``. ``about``: what was done, or why it was left out.
    ``differences``: the first ``KEPT``; ``count``: how many there are.
    """

    group: str
    name: str
    outcome: Outcome = Outcome.PASSED
    about: str = ""
    seconds: float = 0.0
    count: int = 0
    differences: list[Difference] = field(default_factory=list)

    def differs(self, where: str, expected: object, found: object) -> None:
        """Enters a difference: the check has failed."""
        self.outcome = Outcome.FAILED
        self.count += 1
        if len(self.differences) < KEPT:
            self.differences.append(Difference(where, str(expected), str(found)))

    def expect(self, where: str, expected: object, found: object) -> None:
        """Enters a difference if there is one."""
        if expected != found:
            self.differs(where, expected, found)


class Checks:
    """All checks so far. ``notify`` is called with the name of each as it begins."""

    def __init__(self, notify: Callable[[str], None] = lambda name: None) -> None:
        self.all: list[Check] = []
        self._notify = notify

    @contextmanager
    def check(self, group: str, name: str) -> Iterator[Check]:
        """A check, whose body enters what differs. An error of the device is a difference, and ends the check alone."""
        self._notify(f"{group}: {name}")
        check = Check(group, name)
        begin = time.monotonic()
        try:
            yield check
        except (SleyError, OSError) as error:
            check.differs(name, "no error", f"{type(error).__name__}: {error}")
        finally:
            check.seconds = time.monotonic() - begin
            self.all.append(check)

    def leave_out(self, group: str, name: str, why: str) -> None:
        """Enters a check that cannot be made here."""
        self.all.append(Check(group, name, Outcome.LEFT_OUT, why))

    def failed(self, group: str | None = None) -> bool:
        """Whether a check failed, of a group or of all."""
        return any(c.outcome is Outcome.FAILED for c in self.all if group in (None, c.group))
