"""Random kernels for all units of a core, which end on every chip that has the rows."""

import random

from sley.abi.config import ChipConfig


class RandomKernel:
    """Instructions of all units in random order; every signal has its wait further down, so that it ends."""

    def __init__(self, config: ChipConfig, seed: int) -> None:
        self.config = config
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.signalled: list[int] = []
        self.unused = list(range(16))
        for _ in range(self.rng.randint(6, 22)):
            getattr(self, self.rng.choice(["_load", "_store", "_weights", "_matmul", "_vector", "_scalar"]))()
        self.lines += [f"sync wait={number}" for number in self.signalled]
        self.text = "\n".join(self.lines)

    def _sync(self) -> str:
        """Waits for what was signalled before, signals something new. Each semaphore has one user of a kind."""
        words = []
        if self.signalled and self.rng.random() < 0.5:
            words.append(f"wait={self.signalled.pop(self.rng.randrange(len(self.signalled)))}")
        if self.unused and self.rng.random() < 0.5:
            chosen = self.unused.pop()
            self.signalled.append(chosen)
            words.append(f"signal={chosen}")
        return " ".join(words)

    def _set(self, unit: str, **values: int) -> None:
        self.lines += [f"set {unit}.{name}, #{value}" for name, value in values.items()]

    def _value(self, register: int, low: int, high: int) -> str:
        self.lines.append(f"add r{register}, r0, #{self.rng.randint(low, high)}")
        return f"r{register}"

    def _runs(self, unit: str, row_bytes: int) -> int:
        """Parameters of a transfer; how many runs."""
        rng = self.rng
        chunks, runs, slabs = rng.randint(1, 3), rng.randint(0, 4), rng.randint(0, 2)
        size = rng.randint(0, chunks * row_bytes)
        stride = rng.choice([size, rng.randint(0, 99)])
        self._set(unit, run_bytes=size, mem_stride=stride, mem_stride2=rng.randint(0, 99), count2=slabs)
        self._set(unit, local_stride=chunks, local_stride2=chunks * 4)
        if unit == "load":
            self._set(unit, chunks=chunks, pad_runs=rng.randint(0, 2))
        return runs

    def _transfer(self, unit: str, pointer: str) -> None:
        space = self.rng.choice(["scratchpad", "accumulator"])
        sizes = {"scratchpad": self.config.row_bytes, "accumulator": self.config.accumulator_row_bytes}
        runs = self._runs(unit, sizes[space])
        self.lines.append(f"add r20, {pointer}, #{self.rng.randint(0, 64)}")
        row, count = self._value(21, 0, 64), self._value(22, runs, runs)
        self.lines.append(f"{unit} r20, {row}, {count} space={space} {self._sync()}")

    def _load(self) -> None:
        self._transfer("load", "r8")

    def _store(self) -> None:
        self._transfer("store", "r9")

    def _weights(self) -> None:
        row = self._value(21, 0, 100)
        self.lines.append(f"weights {row}, #{self.config.array} {self._sync()}")

    def _matmul(self) -> None:
        source, target, rows = self._value(21, 0, 100), self._value(22, 0, 60), self._value(23, 0, 20)
        self.lines.append(f"matmul {source}, {target}, {rows} accumulate={self.rng.randrange(2)} {self._sync()}")

    def _vector(self) -> None:
        source, target, rows = self._value(21, 0, 60), self._value(22, 0, 60), self._value(23, 0, 20)
        flags = f"a_space={self.rng.choice(['scratchpad', 'accumulator'])} b_op={self.rng.choice(['none', 'add'])}"
        self.lines.append(f"vector {source}, {target}, {rows} {flags} {self._sync()}")

    def _scalar(self) -> None:
        count = self.rng.randint(0, 20)
        self.lines += [f"loop #{count}, e{len(self.lines)}", f"e{len(self.lines)}: mul r24, r24, #3"]
