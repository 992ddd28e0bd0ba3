"""The interrupt line of the golden model."""


class InterruptsModel:
    """Causes that are pending, and whether the line is high; times are steps."""

    def __init__(self) -> None:
        self.fence = self.error = 0
        self.enabled_fence = self.enabled_error = 0
        self.count = self.cycles = 0
        """IRQ_COALESCE."""
        self._raised = 0
        self._since = 0

    def fence_written(self, queue: int, time: int) -> None:
        """A fence of this queue asks for an interrupt."""
        self.fence |= 1 << queue
        if self.enabled_fence >> queue & 1:
            if not self._raised:
                self._since = time
            self._raised += 1

    def clear(self, fence: int, error: int) -> None:
        """Software has seen these."""
        self.fence &= ~fence
        self.error &= ~error
        if not self.fence & self.enabled_fence:
            self._raised = 0

    @property
    def due(self) -> int | None:
        """When pending fences raise the line; None if there are none."""
        if not self.fence & self.enabled_fence:
            return None
        return self._since + (self.cycles if self._raised < self.count else 0)

    def line(self, time: int) -> bool:
        return bool(self.error & self.enabled_error) or (self.due is not None and time >= self.due)
