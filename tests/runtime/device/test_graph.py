"""Graphs: recorded once, replayed with one doorbell, with arguments that change."""

import numpy as np
import pytest

from sley.abi.asm import assemble
from sley.driver import BadRequest, BufferFreed, QueueFault
from sley.runtime import Device, Program, blas

TEXT = """
    set    store.run_bytes, #4
    vrow   r9 row=bias splat=1
    set    load.run_bytes, #0
    add    r10, r0, #1
    load   r0, r0, r10 space=accumulator signal=0
    vector r0, r0, r10 a_space=accumulator dtype=int32 bias=1 out=int32 wait=0 signal=1
    store  r8, r0, r10 space=accumulator wait=1
    end
"""


def writer(extra: int = 0) -> Program:
    """Writes its argument ``value`` to ``to``; ``extra`` more arguments so that they do not fit into the packet."""
    return Program("writer", tuple(assemble(TEXT)), ("to", "value", *(f"unused{k}" for k in range(extra))))


def test_one_doorbell_for_everything(device: Device) -> None:
    random = np.random.default_rng(1)
    a, b = (device.array(random.integers(-128, 128, (9, 9), np.int8)) for _ in range(2))
    c, d = device.empty((9, 9), np.int32), device.empty((9, 9), np.int32)
    expected = a.numpy().astype(np.int32) @ b.numpy()
    with device.stream.capture() as graph:
        for _ in range(30):
            blas.gemm(a, b, out=c)
            device.stream.copy(d, c)
            device.stream.fill(c, 0)
    assert len(graph) == 90
    assert not (d.numpy() == expected).all()
    lines: list[str] = []
    device.driver.registers.log = lines.append
    graph.launch()
    assert len(lines) == 1
    assert lines[0].startswith("write DOORBELL0.WRITE_INDEX")
    device.driver.registers.log = None
    device.synchronize()
    assert np.array_equal(d.numpy(), expected)
    assert not c.numpy().any()
    graph.launch(device.streams[1])
    device.synchronize()
    graph.free()
    with pytest.raises(BadRequest, match="closed"):
        graph.launch()


@pytest.mark.parametrize("extra", [0, 9])
def test_arguments_change_between_launches_in_flight(device: Device, extra: int) -> None:
    """Ten launches of the graph wait behind a gate; each executes what the graph was when it was submitted."""
    gate = device.array(np.zeros(8, np.uint8))
    results = device.array(np.zeros(20, np.int32))
    program = writer(extra)
    names = program.args
    with device.stream.capture() as graph:
        for _ in range(2):
            device.stream.launch(program, {**dict.fromkeys(names, 0), "to": results.address})
    device.stream.queue.wait(gate.address, 1)
    for turn in range(10):
        for place in range(2):
            graph.update(place, {"to": results.address + 4 * (2 * turn + place), "value": 100 * turn + place})
        graph.launch()
    device.context.signal(gate.address, 1)
    assert results.numpy().tolist() == [100 * turn + place for turn in range(10) for place in range(2)]
    memory = len(graph._recording._copies)
    for turn in range(10):
        graph.update(0, {"value": turn, "to": results.address})
        graph.launch()
        device.synchronize()
        assert results.numpy()[0] == turn
    assert len(graph._recording._copies) == memory


def test_views(device: Device) -> None:
    """A graph keeps the arrays of its views; another view takes the place of one only with the same strides."""
    rng = np.random.default_rng(3)
    x, w = rng.integers(-128, 128, (6, 20), np.int8), rng.integers(-128, 128, (8, 5), np.int8)
    array, weights = device.array(x), device.array(w)
    out = device.array(np.zeros((6, 10), np.int32))
    with device.stream.capture() as graph:
        blas.gemm(device.array(x)[:, :8], weights, out=out[:, 2:7])
    others = [device.array(np.zeros_like(x)) for _ in range(4)]
    expected = np.zeros((6, 10), np.int32)
    for start in (None, 3, 12):
        if start is not None:
            graph.update(0, {"a": array[:, start : start + 8]})
        graph.launch()
        expected[:, 2:7] = x[:, start or 0 :][:, :8].astype(np.int32) @ w
        assert np.array_equal(out.numpy(), expected)
    assert not any(other.numpy().any() for other in others)
    for name, other in (
        ("a", device.array(x[:, :8])),  # dense
        ("a", array[:5, :8]),
        ("a", array[::2, :8]),
        ("b", device.array(w.T).T),
        ("c", device.empty((6, 5), np.int32)),
    ):
        with pytest.raises(
            BadRequest, match=r"gemm_6x5x8 was captured with .*; .* cannot take its place: capture it again"
        ):
            graph.update(0, {name: other})
    graph.update(0, {"b": device.array(w + 1)})
    graph.launch()
    expected[:, 2:7] = x[:, 12:].astype(np.int32) @ (w + 1)
    assert np.array_equal(out.numpy(), expected)


def test_a_graph_keeps_its_arrays(device: Device) -> None:
    results = device.array(np.zeros(4, np.uint8))
    with device.stream.capture() as graph:
        device.stream.copy(results, device.array(np.arange(4, dtype=np.uint8)))
    more = [device.array(np.full(4, 9, np.uint8)) for _ in range(8)]
    graph.launch()
    assert results.numpy().tolist() == [0, 1, 2, 3]
    assert all((array.numpy() == 9).all() for array in more)


def test_faults_in_a_graph_name_its_packet(device: Device) -> None:
    results = device.array(np.zeros(4, np.uint8))
    with device.stream.capture() as graph:
        device.stream.fill(results, 1)
        device.stream.launch(Program("junk", (0x77,)))
        device.stream.fill(results, 2)
    graph.launch()
    with pytest.raises(QueueFault, match=r"1 of its buffer: LAUNCH") as caught:
        device.synchronize()
    assert caught.value.buffer_index == 1
    assert results.numpy().tolist() == [1] * 4
    with device.stream.capture() as graph:
        device.stream.fill(results, 3)
    graph.launch()
    assert results.numpy().tolist() == [3] * 4


def test_what_cannot_be_captured(device: Device) -> None:
    array = device.array(np.zeros(4, np.uint8))
    program = writer()
    with device.stream.capture() as graph:
        device.stream.launch(program, {"to": array, "value": 1})
        for call in (
            device.stream.record,
            lambda: device.stream.callback(print),
            device.stream.queue.record().__enter__,
        ):
            with pytest.raises(BadRequest, match="cannot be recorded"):
                call()
    with pytest.raises(BadRequest, match="launch 1 of a graph that has 1"):
        graph.update(1, [])
    with pytest.raises(BadRequest, match="no argument wrong"):
        graph.update(0, {"wrong": 1})
    with pytest.raises(BadRequest, match="has 2 arguments; given were 1"):
        graph.update(0, [1])
    with Device.open("model:nano?memory=256K") as other, pytest.raises(BadRequest, match="another device"):
        graph.launch(other.stream)
    array.free()
    with pytest.raises(BufferFreed):
        graph.update(0, {"to": array})
