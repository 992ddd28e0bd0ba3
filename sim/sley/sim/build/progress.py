"""What a slow step is doing, and how long it will take: on stderr, a bar on a terminal, one plain line elsewhere.

The estimate is what the same step took on this machine for each unit of its input, which the cache keeps; before the
first time it is what a laptop takes.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sley.sim.build.cache import cache_folder

RATES = "rates.json"
LEAST = 1.0
"""Seconds: shorter steps are not announced with an estimate, and none is derived from them, nor from small ones."""


@dataclass(frozen=True)
class Step:
    """A step whose time is estimated: ``size`` units of input, each of ``seconds`` where nothing was measured yet."""

    name: str
    size: float
    seconds: float

    @property
    def expected(self) -> float:
        """Seconds that it will take."""
        return self.size * _rates().get(self.name, self.seconds)

    def took(self, seconds: float) -> None:
        """Keeps for the next time what it took."""
        if seconds >= LEAST and self.size * self.seconds >= LEAST:
            rates = _rates() | {self.name: seconds / self.size}
            with suppress(OSError):
                _file().write_text(json.dumps(rates, indent=1))


@contextmanager
def progress(title: str, step: Step | None = None) -> Iterator[Callable[[str], None]]:
    """Shows ``title`` while the block runs, and an estimate of ``step``. The yielded function says what is done now."""
    expected = step.expected if step else 0.0
    began = time.monotonic()
    if sys.stderr.isatty():
        with _bar(title, expected) as show:
            yield show
    else:
        about = f", about {_text(expected)}" if expected >= LEAST else ""
        print(f"{title}{about} ...", file=sys.stderr, flush=True)
        yield lambda text: None
    if step:
        step.took(time.monotonic() - began)


@contextmanager
def _bar(title: str, expected: float) -> Iterator[Callable[[str], None]]:
    """A bar that fills as the estimated time passes, and stays a little short of its end."""
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.progress_bar import ProgressBar

    class Estimate(ProgressColumn):
        def render(self, task: Task) -> ProgressBar:
            total = expected if expected >= LEAST else None
            return ProgressBar(total, min(task.elapsed or 0.0, 0.98 * expected), 20, pulse=total is None)

    left = [TextColumn(f"of about {_text(expected)}")] if expected >= LEAST else []
    columns = (TextColumn("{task.description}"), Estimate(), TimeElapsedColumn(), *left)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda text: bar.update(task, description=f"{title}: {text}")


def _text(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _file() -> Path:
    return cache_folder() / RATES


def _rates() -> dict[str, float]:
    """Seconds a unit by the name of the step; a file that was damaged is as none."""
    with suppress(OSError, ValueError, AttributeError):
        return {str(name): float(rate) for name, rate in json.loads(_file().read_text()).items()}
    return {}
