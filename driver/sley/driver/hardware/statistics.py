"""What has happened to a device since it was opened."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Statistics:
    """Counts of interrupts and errors.

    ``interrupts``: by cause, such as ``fence of queue 0``; ``lost`` are those whose cause was found by looking, and
    ``spurious`` those without a cause. ``errors``: by name, a fault with its code. ``invalidations``: of address
    spaces. ``context_resets``, ``device_resets``.
    """

    interrupts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    invalidations: int = 0
    context_resets: int = 0
    device_resets: int = 0
