"""Cycles of the device by operator: a context in which each operator of PyTorch is timed, one after the other."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.table import Table
from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

from sley.driver import NoCycleCounts
from sley.runtime.frameworks.torch_device.engine import device
from sley.runtime.frameworks.torch_device.tensors import handles


class profile(TorchDispatchMode):  # noqa: N801 (named like torch.profiler's)
    """``with torch.sley.profile() as found``: cycles and calls of each operator on the device, forward and backward.

    Each waits for the one before, so nothing overlaps; from its first packet to the fence behind it. Under
    ``torch.profiler`` each is a range with its cycles behind the operator's own. Raises ``NoCycleCounts`` on an engine
    without cycles.

    Attributes: ``cycles``, ``calls``: by operator.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cycles: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __enter__(self) -> profile:
        if not device().driver.has_cycles:
            raise NoCycleCounts
        super().__enter__()
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        stream = device().stream
        stream.synchronize()
        start = stream.record()
        found = func(*args, **(kwargs or {}))
        end = stream.record()
        end.wait()
        values = found if isinstance(found, list | tuple) else [found]
        if handles(values) or handles(args):
            name, cycles = str(func), end.since(start)
            self.cycles[name] += cycles
            self.calls[name] += 1
            with record_function(f"sley::{name} {cycles:,} cycles"):
                pass
        return found

    def table(self) -> Table:
        """Operators with most cycles first, for ``rich.print``."""
        table = Table("operator", "calls", "cycles", title="cycles of the device")
        for name, cycles in self.cycles.most_common():
            table.add_row(name, f"{self.calls[name]:,}", f"{cycles:,}")
        return table
