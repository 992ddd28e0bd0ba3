"""Which start of nextpnr's placer is worth its routing."""

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sley.fpga.toolchain import run_tool

OUTPUTS = ("--report", "--log", "--textcfg", "--asc")
"""Options of nextpnr that name a file which it writes."""
ESTIMATE = r"Max frequency for clock .*: ([\d.]+) MHz"
"""What its log says of each clock; its report is of routed designs alone."""


def with_seed(command: Sequence[str], seed: int) -> list[str]:
    """A command of nextpnr that starts from another seed."""
    return _with(command, {"--seed": str(seed)})


def best_seed(command: Sequence[str], seeds: int, folder: Path) -> int:
    """The seed, from 1 to ``seeds``, whose placement has the highest clock by nextpnr's estimate; the first of equals.

    ``command`` of nextpnr is run in ``folder`` for each, as many at once as there are processors, without routing,
    which takes most of the time and decides less. A placement that fails is a ``FlowError``.
    """
    with ThreadPoolExecutor(os.cpu_count()) as runs:
        estimates = list(runs.map(lambda seed: _estimate(command, seed, folder), range(1, seeds + 1)))
    return 1 + estimates.index(max(estimates))


def _estimate(command: Sequence[str], seed: int, folder: Path) -> float:
    """MHz of the slowest clock."""
    files = {option: f"seed{seed}.{option[2:]}" for option in OUTPUTS if option in command}
    placing = [*_with(command, {**files, "--seed": str(seed)}), "--no-route", "--timing-allow-fail"]
    log = folder / files["--log"]
    run_tool("placement", placing, folder, log)
    return min(map(float, re.findall(ESTIMATE, log.read_text())))


def _with(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    return [values.get(option, word) for option, word in zip(("", *command), command, strict=False)]
