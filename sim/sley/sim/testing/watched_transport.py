"""A watched chip on the fast engine, for tests of what contexts can reach."""

from collections.abc import Iterable

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.sim.engines.design_text import cached_text
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.options import EngineOptions

SMALL = ChipConfig(name="small", queues=8, contexts=8, cores_x=2, gather=True)
"""Two cores as small as those of ``nano``, with as many queues and contexts as the large chips have, and lists."""


class WatchedTransport(FastTransport):
    """The chip of a ``WatchedChip``: a burst to a forbidden page raises ``AssertionError`` from whatever let it run.

    Parameters: ``config``. ``memory``: bytes of device memory. ``record``: as of ``FastTransport``.
    """

    def __init__(self, config: ChipConfig = SMALL, memory: int = 2 << 20, record: int = 0) -> None:
        self.pages = memory // PAGE_BYTES
        text = cached_text("rtlil", "il", _rtlil, config, self.pages)
        super().__init__(text, config.bus_bytes, EngineOptions(memory=memory), record)

    def forbid(self, pages: Iterable[int], beyond: bool = True) -> None:
        """Forbids these pages and no others; with ``beyond`` also whatever is behind the end of memory."""
        self.poke("sley.forbidden", sum(1 << page for page in set(pages)) | beyond << self.pages)


def _rtlil(config: ChipConfig, pages: int) -> str:
    from sley.hw.rtlil import system_rtlil
    from sley.hw.testing.watched_chip import WatchedChip

    return system_rtlil(WatchedChip(config, pages), beside=True)
