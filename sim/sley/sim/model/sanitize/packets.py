"""What packets do with device memory, as sanitizers see it."""

from sley.abi.faults import Unit
from sley.abi.packets import PacketOp
from sley.abi.pages import Permission
from sley.sim.model.memory import AddressSpaces
from sley.sim.model.sanitize.kinds import Finding, Sanitizer
from sley.sim.model.sanitize.report import Access, Report, Where
from sley.sim.model.sanitize.reports import Reports
from sley.sim.model.sanitize.shadow import ShadowMemory


class Packets:
    """Reports bytes of COPY and FILL that belong to nobody."""

    def __init__(self, spaces: AddressSpaces, shadow: ShadowMemory, reports: Reports) -> None:
        self._spaces, self._shadow, self._reports = spaces, shadow, reports

    def used(self, queue: int, context: int, op: PacketOp, address: int, length: int, writes: bool) -> None:
        """A packet has read or written bytes of a context, which it may."""
        if Sanitizer.MEMORY not in self._reports.sanitizers:
            return
        need = Permission.WRITE if writes else Permission.READ
        for physical, size in self._spaces[context].pieces(address, length, need):
            usable = self._shadow.usable(physical, size)
            if usable < size:
                where = Where(queue, (0, 0, 0), context, f"packet {op.name}", Unit.COMMAND, 0, None)
                detail = self._reports.allocation(physical + usable)
                self._reports.add(Report(Finding.OUTSIDE, Access(where, writes), None, None, address + usable, detail))
                return
            address += size
