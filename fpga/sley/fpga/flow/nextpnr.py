"""nextpnr in two steps, placement, that of a chip on an ECP5 refined, and routing; which of several is routed."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sley.fpga.flow.toolchain import run_tool
from sley.fpga.placement.annealing import anneal, tight
from sley.fpga.placement.delays import critical_path_ns
from sley.fpga.placement.placement import Placement
from sley.fpga.placement.refinement import refine

OUTPUTS = ("--report", "--log", "--textcfg", "--asc")
"""Options of nextpnr that name a file which it writes."""
ESTIMATE = r"Max frequency for clock .*: ([\d.]+) MHz"
"""What its log says of each clock; its report is of routed designs alone."""


def with_seed(command: Sequence[str], seed: int) -> list[str]:
    """A command of nextpnr that starts from another seed."""
    return _with(command, {"--seed": str(seed)})


def place(command: Sequence[str], seed: int, folder: Path) -> float:
    """Runs ``command`` in ``folder`` as far as placement, which is left in ``seed<seed>.json``.

    Returns the MHz of the slowest clock by nextpnr's estimate. A placement that fails is a ``FlowError``.
    """
    files = {option: f"seed{seed}.{option[2:]}" for option in OUTPUTS if option in command}
    placing = [word for word in _with(command, {**files, "--seed": str(seed)}) if word != "--timing-allow-fail"]
    log = folder / files["--log"]
    run_tool("placement", [*placing, "--no-route", "--timing-allow-fail", "--write", _placed(seed)], folder, log)
    return min(map(float, re.findall(ESTIMATE, log.read_text())))


def place_refined(command: Sequence[str], seed: int, folder: Path) -> float:
    """``place``, ``anneal`` where wires are tight, and ``refine``, for a chip on an ECP5. The MHz are of the longest
    path by ``Delays``, at speed 8.

    Where wires are scarce even then, nothing is refined, which takes more of them, and nextpnr is told not to mind
    timing: otherwise its router lets what is on long paths take the wires of all others, again and again.
    """
    place(command, seed, folder)
    placement = Placement.read(folder / _placed(seed))
    scarce = tight(placement) and anneal(placement).scarce
    longest = critical_path_ns(placement) if scarce else refine(placement).after
    placement.write(folder / _placed(seed), timing=not scarce)
    return 1000 / longest


def routing(command: Sequence[str], seed: int, mhz: float) -> list[str]:
    """The command that goes on from ``place_refined``: nextpnr checks the places, and routes.

    ``mhz`` is asked for of each clock: nextpnr does not write down what its constraints were. Of its placers the usual
    one checks what is fixed.
    """
    values = {"--json": _placed(seed), "--seed": str(seed), "--placer": "heap"}
    return [*_with(command, values), "--no-pack", "--freq", f"{mhz:g}"]


def best_seed(estimate: Callable[[int], float], seeds: int) -> int:
    """The seed, from 1 to ``seeds``, with the highest estimate; the first of equals.

    As many are placed at once as there are processors. Routing takes most of the time and decides less.
    """
    with ThreadPoolExecutor(os.cpu_count()) as runs:
        estimates = list(runs.map(estimate, range(1, seeds + 1)))
    return 1 + estimates.index(max(estimates))


def _placed(seed: int) -> str:
    return f"seed{seed}.json"


def _with(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    return [values.get(option, word) for option, word in zip(("", *command), command, strict=False)]
