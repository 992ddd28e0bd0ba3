"""Random programs of nested loops, whose ends come at all moments of what units do."""

import random

from sley.abi.config import ChipConfig
from sley.abi.instructions import LOOP_DEPTH

PLACES = 1 << 14
"""Bytes in which a transfer begins."""
BYTES = 2 * PLACES
"""Bytes that a program reads and writes from its first argument on."""
LONGEST, MOST, FARTHEST = 4, 12, 300
"""Rows of a run, runs of a transfer, and bytes from one to the next."""


class LoopingProgram:
    """Loads and stores in nested loops, some of which have another number of rounds each time they begin.

    Any instruction may be the last one of a loop, and queues of units are full where runs are many. Each program ends.
    ``text``: its assembly.
    """

    def __init__(self, config: ChipConfig, seed: int) -> None:
        self._rng = rng = random.Random(seed)
        most = min(MOST, config.scratchpad_rows // 2)
        self._rows = min(config.scratchpad_rows - most, 64) - LONGEST
        self._labels = 0
        size = rng.choice([1, config.row_bytes, rng.randrange(1, LONGEST * config.row_bytes + 1)])
        self._lines = [
            f"add r11, r0, #{rng.choice([1, 3, most])}",
            f"add r12, r0, #{rng.choice([0, 4, size, 4096])}",
            *(f"add r{register}, r0, #{rng.randrange(8)}" for register in (13, 14)),
            f"set load.run_bytes, #{size}",
            f"set store.run_bytes, #{size}",
            f"set load.chunks, #{-(-size // config.row_bytes)}",
        ]
        self._lines += [f"set {unit}.mem_stride, #{rng.choice([0, size, FARTHEST])}" for unit in ("load", "store")]
        for _ in range(rng.randrange(1, 4)):
            self._loop(1, rng.choice([20, 60, 200]))
        self._lines.append("end")
        self.text = "\n".join(self._lines)

    def _label(self) -> str:
        self._labels += 1
        return f"label{self._labels}"

    def _loop(self, depth: int, rounds: int) -> None:
        """With the loops in it at most so many rounds, 7 where it counts by a register."""
        rng, last = self._rng, self._label()
        count, most = "r13", 7
        if rounds < most or rng.random() < 0.7:
            most = min(rounds, rng.choice([1, 2, 5, rounds, rng.randrange(1, rounds + 1)]))
            count = f"#{most}"
        self._lines.append(f"loop {count}, {last}")
        for _ in range(rng.randrange(1, 3)):
            self._step()
        if depth < LOOP_DEPTH and rng.random() < 0.6:
            self._loop(depth + 1, rounds // most)
        if rng.random() < 0.3:
            self._branch()
        self._step(f"{last}: ")

    def _branch(self) -> None:
        """Over an instruction, or not, and what loops count by changes."""
        over = self._label()
        self._lines += [
            f"{self._rng.choice(['beq', 'bne', 'blt', 'bge'])} r13, r14, {over}",
            f"add r13, r13, #{self._rng.randrange(1, 8)}",
            f"{over}: and r13, r13, #7",
        ]

    def _step(self, label: str = "") -> None:
        rng = self._rng
        kind = rng.choice(["load", "load", "store", "add", "mul", "sync"])
        if kind in ("add", "mul"):
            self._lines.append(f"{label}{kind} r15, r15, #{rng.randrange(9)}")
            return
        self._lines += [
            "add r18, r18, r12",
            f"and r18, r18, #{PLACES - 1}",
            "add r16, r8, r18",
            f"add r17, r0, #{rng.randrange(self._rows)}",
        ]
        if kind == "sync":
            self._lines += ["load r16, r17, r11 signal=0", f"{label}sync wait=0"]
        else:
            self._lines.append(f"{label}{kind} r16, r17, r11 step=r{rng.choice([0, 12])}")
