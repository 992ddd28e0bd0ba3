"""The errors of engines that are built here."""

from collections.abc import Sequence

from sley.abi.transport import EngineError


class BuildError(EngineError):
    """A tool is missing or failed."""


class FastError(EngineError):
    """The design cannot be simulated by engine ``fast``, or a name or value given to it is wrong."""


class SanitizerError(EngineError):
    """Sanitizers found faults in programs that have run; the device goes on.

    Attributes: ``reports``: each fault once, in the order in which they were found. ``more``: how many were left
    out, at least.
    """

    def __init__(self, reports: Sequence[object], more: int = 0) -> None:
        self.reports, self.more = tuple(reports), more
        count = len(self.reports) + more
        found = "\n".join(f"  {report}" for report in self.reports)
        rest = f"\n  and {more} more" if more else ""
        super().__init__(f"sanitizers found {count} fault{'s' if count > 1 else ''} in programs\n{found}{rest}")
