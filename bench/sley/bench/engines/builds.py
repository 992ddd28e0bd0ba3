"""What it costs to build a compiled engine, and to start it later."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sley.abi.transport import EngineError
from sley.bench.engines.contenders import Contender
from sley.bench.engines.figures import LATER, LIBRARY, START, TEXT

TEXTS = {"fast": "rtlil", "rtl": "verilog"}
"""The kind of entry of the cache that an engine's library is compiled from."""


def build_times(contender: Contender, preset: str, cache: Path) -> Iterator[tuple[str, float]]:
    """Starts in processes of their own: without library, without text (it is the same every time), with both."""
    url = f"{contender.engine}:{preset}"
    text = cache / TEXTS[contender.engine]
    shutil.rmtree(cache / "code", ignore_errors=True)  # each tier is built from the text
    fresh = not text.exists()
    first, wall = start_times(url, contender)
    again = 0.0
    if fresh:
        shutil.rmtree(text)
        again, _ = start_times(url, contender)  # the C is known by its text
    last, later = start_times(url, contender)
    if fresh:
        yield TEXT, again - last
        yield START, wall
    yield LIBRARY, first - max(again, last)
    yield LATER, later


def start_times(url: str, contender: Contender) -> tuple[float, float]:
    """Processor and wall seconds of a process that opens the engine and ends."""
    code = "import sys; from sley.driver import open_transport; open_transport(sys.argv[1]).close()"
    before, start = os.times(), time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", code, url],
        env=os.environ | dict(contender.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    after, wall = os.times(), time.perf_counter() - start
    if result.returncode:
        raise EngineError(f"{url} could not be opened: {(result.stderr.strip().splitlines() or [''])[-1]}")
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return processor, wall
