"""Cores that only pretend to work: they take launch messages and answer that their blocks are done."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.network import LaunchWord, Tag
from sley.abi.packets import INLINE_ARGS
from sley.abi.placement import command_node, core_node
from sley.hw.testing.memory import to
from sley.hw.testing.streams import StreamBench, StreamError


def _arguments(words: list[int]) -> int:
    """Their number, from a launch message."""
    return words[LaunchWord.SIZES] >> 16 & 0xFF


@dataclass
class BlockRun:
    """A block that a core was asked to run: the words of the message, and when it was running."""

    core: int
    words: list[int]
    start: int
    end: int
    fault: tuple[FaultCode, Unit, int, int] | None = None
    """Code, unit, pc, address."""
    reported: int = 0
    """Position of its done message among all, from 1; 0 before that."""

    @property
    def in_memory(self) -> bool:
        """Whether the message brings the address of the arguments."""
        return _arguments(self.words) > INLINE_ARGS

    @property
    def gang(self) -> bool:
        return bool(self.words[LaunchWord.SIZES] >> 31 & 1)

    def __getitem__(self, word: LaunchWord) -> int:
        return self.words[int(word) - (word > LaunchWord.ARGS and not self.in_memory)]

    @property
    def inline(self) -> list[int]:
        """Arguments that the message brings."""
        return [] if self.in_memory else self.words[len(LaunchWord) - 1 :]


@dataclass
class FakeCores:
    """Cores that answer launch messages: after a random delay in ``delay``, with the fault that ``judge`` gives."""

    bench: StreamBench
    config: ChipConfig
    messages: list[tuple[Any, list[int]]]
    delay: tuple[int, int]
    judge: Callable[[BlockRun], tuple[FaultCode, Unit, int, int] | None]
    runs: list[BlockRun] = field(default_factory=list)

    def answers(self) -> Iterator[dict[str, Any] | None]:
        """Items for the stream of done messages."""
        numbers = {core_node(self.config, k): k for k in range(self.config.cores)}
        while True:
            while len(self.runs) < len(self.messages):
                node, words = self.messages[len(self.runs)]
                core = numbers[node]
                count = _arguments(words)
                if len(words) != (len(LaunchWord) if count > INLINE_ARGS else len(LaunchWord) - 1 + count):
                    raise StreamError(f"launch message of {len(words)} words for {count} arguments")
                if any(run.core == core and not run.reported for run in self.runs):
                    raise StreamError(f"block sent to core {core}, which runs one")
                now = self.bench.cycle
                run = BlockRun(core, words, now, now + self.bench.rng.randint(*self.delay))
                run.fault = self.judge(run)
                self.runs.append(run)
            over = [run for run in self.runs if not run.reported and run.end <= self.bench.cycle]
            if not over:
                yield None
                continue
            run = self.bench.rng.choice(over)
            run.reported = 1 + max(other.reported for other in self.runs)
            code, unit, pc, address = run.fault or (FaultCode.NONE, Unit.SEQUENCER, 0, 0)
            x, y = command_node(self.config)
            for k, word in enumerate((run.core | code << 8 | unit << 16, pc, address)):
                tag: Any = Tag.MESSAGE
                payload = {"data": word, "tag": tag, "error": 0, "walk": 0}
                yield {"payload": payload, **to(self.config, (x, y)), "last": k == 2}
