"""The reports of all cores of a device, until the host hears of them."""

from sley.sim.errors import SanitizerError
from sley.sim.model.memory import AccessError, AddressSpaces
from sley.sim.model.sanitize.kinds import Sanitizer
from sley.sim.model.sanitize.report import Report
from sley.sim.model.sanitize.shadow import Allocations

LIMIT = 20
"""Reports in one error."""


class Reports:
    """Keeps reports, each fault of a program once.

    Parameters: ``sanitizers``: which look. ``allocations``: what is known of device memory.

    Attributes: ``more``: how many were left out, at least.
    """

    def __init__(self, sanitizers: frozenset[Sanitizer], allocations: Allocations) -> None:
        self.sanitizers, self._allocations = sanitizers, allocations
        self._reports: dict[tuple[object, ...], Report] = {}
        self.more = 0

    def add(self, report: Report) -> None:
        """A fault was found."""
        if report.key in self._reports:
            return
        if len(self._reports) < LIMIT:
            self._reports[report.key] = report
        else:
            self.more += 1

    def program(self, spaces: AddressSpaces, context: int, address: int) -> str:
        """What a program is called."""
        try:
            name = self._allocations.name(spaces[context].physical(address))
        except AccessError:
            name = None
        return f"program {name or f'at {address:#x}'}"

    def allocation(self, physical: int) -> str:
        """Where a byte lies that belongs to nobody."""
        return self._allocations.describe(physical)

    def raise_found(self) -> None:
        """Raises ``SanitizerError`` if there are reports, which are forgotten."""
        if self._reports:
            found, more = tuple(self._reports.values()), self.more
            self._reports, self.more = {}, 0
            raise SanitizerError(found, more)
