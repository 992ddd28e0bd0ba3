import pytest

from sley.driver.errors import ContextReset, DeviceReset
from sley.driver.queue.losses import Losses


def test_lost_packets_are_found_by_position() -> None:
    losses, first, second = Losses(), ContextReset("first"), DeviceReset("second")
    losses.add(3, 5, first)
    losses.add(5, 6, second)
    losses.add(9, 11, first)
    assert [losses.error(position) for position in range(12)] == (
        [None] * 3 + [first] * 2 + [second] + [None] * 3 + [first] * 2 + [None]
    )


def test_an_error_is_raised_for_each_of_its_packets_and_besides_once() -> None:
    losses, error = Losses(), ContextReset("lost")
    losses.add(0, 2, error)
    losses.unseen = error
    losses.check(2)
    for _ in range(2):
        with pytest.raises(ContextReset):
            losses.check(1)
    losses.raise_unseen()
    losses.unseen = error
    with pytest.raises(ContextReset):
        losses.raise_unseen()
    losses.raise_unseen()
