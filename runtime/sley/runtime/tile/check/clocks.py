"""What must have happened before a command begins, whatever the units' speed.

Units take their commands in order. The i-th wait of a unit for a semaphore comes behind the j-th signal of another
one if without that signal there would be fewer than i: others give all but i - j of them at most. So much is known of
each unit, and with it what that unit knew: a vector clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORES, Op
from sley.runtime.tile.check.commands import Command


class Agent(IntEnum):
    """Who does commands one after the other. The two engines of the matrix unit work beside each other."""

    SEQUENCER = 0
    LOAD = 1
    STORE = 2
    MATMUL = 3
    WEIGHTS = 4
    VECTOR = 5


Clock = tuple[int, ...]
"""Commands that each agent has completed."""
START: Clock = (0,) * len(Agent)
_AGENTS = {
    Unit.SEQUENCER: Agent.SEQUENCER,
    Unit.LOAD: Agent.LOAD,
    Unit.STORE: Agent.STORE,
    Unit.MATRIX: Agent.MATMUL,
    Unit.VECTOR: Agent.VECTOR,
}


def agent_of(command: Command) -> Agent:
    """Who does it."""
    return Agent.WEIGHTS if command.op is Op.WEIGHTS else _AGENTS[command.unit]


def semaphores(mask: int) -> list[int]:
    """The numbers in a mask."""
    return [number for number in range(SEMAPHORES) if mask >> number & 1]


def _joined(a: Clock, b: Clock) -> Clock:
    return tuple(map(max, a, b))


@dataclass
class Clocks:
    """The clocks of a block's commands, in an order in which they can happen.

    Parameters
    ----------
    stream: all commands of the block.
    """

    stream: Sequence[Command]
    signals: dict[tuple[int, Agent], list[int]] = field(default_factory=lambda: defaultdict(list))
    totals: list[int] = field(default_factory=lambda: [0] * SEMAPHORES)

    def __post_init__(self) -> None:
        counts = [0] * len(Agent)
        for command in self.stream:
            agent = agent_of(command)
            for number in semaphores(command.signal):
                self.signals[number, agent].append(counts[agent])
                self.totals[number] += 1
            counts[agent] += 1
        self._fronts: dict[Unit, Clock] = dict.fromkeys(Unit, START)
        self._done: dict[Agent, list[Clock]] = {agent: [] for agent in Agent}
        self._waits: dict[tuple[int, Unit], int] = defaultdict(int)
        self._signallers = [[a for a in Agent if (number, a) in self.signals] for number in range(SEMAPHORES)]

    @property
    def issued(self) -> Clock:
        """What the sequencer knows when it hands on a command now."""
        return self._fronts[Unit.SEQUENCER]

    def begin(self, command: Command, issued: Clock) -> tuple[Clock, int]:
        """The clock of a command as it begins, and its number among those of its agent. ``issued``: what was known
        when it was handed on."""
        unit, agent = command.unit, agent_of(command)
        clock = _joined(self._fronts[unit], issued)
        for number in semaphores(command.wait):
            self._waits[number, unit] += 1
            for other in self._signallers[number]:
                given = self.signals[number, other]
                needed = self._waits[number, unit] - (self.totals[number] - len(given))
                if needed > 0:
                    clock = _joined(clock, self._done[other][given[needed - 1]])
        self._fronts[unit] = clock
        count = len(self._done[agent])
        after = list(clock)
        after[agent] = count + 1
        if agent is Agent.MATMUL:  # whose weights have been read
            after[Agent.WEIGHTS] = len(self._done[Agent.WEIGHTS])
        if agent is Agent.SEQUENCER:
            self._fronts[unit] = tuple(after)
        self._done[agent].append(tuple(after))
        return clock, count
