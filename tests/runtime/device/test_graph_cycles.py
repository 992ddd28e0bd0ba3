"""A graph launch by launch: cycles of each, with the arguments that it has now."""

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device, nn


def test_each_launch_has_its_cycles() -> None:
    with Device.open("model:base?memory=16M&cycles=on") as device:
        x = device.array(np.arange(-8, 8, dtype=np.float32).reshape(4, 4))
        with device.stream.capture() as graph:
            y = nn.relu(x)
            z = nn.add(y, y)
        cycles = graph.cycles()
        assert len(cycles) == len(graph.launches) == 2
        assert min(cycles) > 50
        np.testing.assert_array_equal(z.numpy(), 2 * np.maximum(x.numpy(), 0))
        assert graph.cycles()[1:] == cycles[1:]  # the first time translations are cold
        other = device.array(np.ones((4, 4), np.float32))
        values = graph.launches[0].values
        assert sum(value.base is x for value in values) == 1
        graph.update(0, [other.strided(v.shape, v.strides) if v.base is x else v for v in values])
        graph.cycles()
        np.testing.assert_array_equal(z.numpy(), np.full((4, 4), 2, np.float32))


def test_an_array_at_another_place() -> None:
    with Device.open("model:base?memory=16M") as device:
        home = device.zeros(64, np.uint8)
        x = device.empty((3, 4), np.float32).T
        moved = x.placed(home, 16)
        assert (moved.shape, moved.strides, moved.dtype) == (x.shape, x.strides, x.dtype)
        assert moved.address == home.address + 16
        moved.write(np.full((4, 3), 1.5, np.float32))
        np.testing.assert_array_equal(home.numpy()[16:].view(np.float32), np.full(12, 1.5))
        for offset in (-4, 20):
            with pytest.raises(BadRequest, match=f"does not fit at byte {offset} of"):
                x.placed(home, offset)
