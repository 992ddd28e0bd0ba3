"""Turns and interrupts of the golden model, which the chip's are compared with."""

from sley.abi.registers import PATIENCE
from sley.sim.model.interrupts import InterruptsModel
from sley.sim.model.turn import Turn


def test_round_robin_within_a_level() -> None:
    turn, same = Turn(3), [1, 1, 1]
    assert [turn.take([0, 1, 2], same) for _ in range(5)] == [0, 1, 2, 0, 1]
    assert turn.next([0, 1], same) == 0
    assert turn.take([1, 2], same) == 2
    assert turn.take([0, 2], same) == 0
    assert turn.take([0], same) == 0
    assert turn.take([0, 2], same) == 2


def test_priority_and_patience() -> None:
    """The urgent one, until the other was passed as often as it bears; each level has a round of its own."""
    turn = Turn(2)
    served = [turn.take([0, 1], [0, 3]) for _ in range(2 * PATIENCE + 2)]
    assert served == [*[1] * PATIENCE, 0] * 2


def test_fences_are_told_together() -> None:
    """With the number that was asked for, or so many cycles after the first; what was told does not count again."""
    line = InterruptsModel()
    line.enabled_fence, line.count, line.cycles = 0b11, 2, 100
    assert line.due is None
    for begin in (10, 500):
        line.fence_written(0, begin)
        assert line.due == begin + 100
        assert not line.line(begin + 99)
        assert line.line(begin + 100)
        line.fence_written(1, begin + 5)
        assert line.due == begin
        assert line.line(begin + 5)
        line.clear(0b01, 0)
        assert line.line(begin + 5)
        line.clear(0b10, 0)
        assert line.due is None


def test_errors_are_told_at_once_and_what_is_not_enabled_is_not() -> None:
    line = InterruptsModel()
    line.enabled_error, line.error = 0b10, 0b01
    line.fence_written(0, 3)
    assert not line.line(1000)
    line.error |= 0b10
    assert line.line(0)
    line.clear(0, 0b10)
    assert not line.line(1000)
