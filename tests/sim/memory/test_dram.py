"""The DRAM model: the published rule checked by hand, and Python against C in lock step."""

import ctypes
import random
from collections import deque
from dataclasses import astuple
from pathlib import Path

import pytest

from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines.library import CompiledTiming
from sley.sim.memory import dram as dram_module
from sley.sim.memory.dram import Dram, DramTiming, ProtocolError

WRAPPER = """
#include "dram.h"
Dram* create(uint64_t bytes, const DramTiming* timing) {
    Dram* dram = (Dram*)malloc(sizeof(Dram));
    dram_create(dram, bytes, *timing);
    return dram;
}
void destroy(Dram* dram) {
    dram_destroy(dram);
    free(dram);
}
uint8_t* memory(Dram* dram) { return dram->memory; }
static AddressBeat beat(const uint64_t* a) {
    const AddressBeat result = {a[0] != 0, (uint8_t)a[1], a[2], (uint8_t)a[3], (uint8_t)a[4], (uint8_t)a[5]};
    return result;
}
void edge(Dram* m, const uint64_t* aw, const uint64_t* w, const uint8_t* wdata, const uint8_t* wstrb, int bready,
          const uint64_t* ar, int rready, uint64_t* out, uint8_t* rdata) {
    dram_edge(m, beat(aw), w[0], wdata, wstrb, w[1], bready, beat(ar), rready);
    const uint64_t values[] = {m->awready, m->wready, m->bvalid, m->bid, m->bresp, m->arready, m->rvalid,
                               m->rid, m->rresp, m->rlast, m->violation != 0};
    for (int i = 0; i < 11; i++) out[i] = values[i];
    memcpy(rdata, m->rdata, BUS_BYTES);
}
"""


class CompiledDram:
    """``dram.h`` behind the interface of ``Dram``, outputs as one tuple."""

    def __init__(self, library: ctypes.CDLL, size: int, bus_bytes: int, timing: DramTiming) -> None:
        library.create.restype = library.memory.restype = ctypes.c_void_p
        library.create.argtypes = [ctypes.c_uint64, ctypes.POINTER(CompiledTiming)]
        self._library, self._bus = library, bus_bytes
        self._model = ctypes.c_void_p(library.create(size, CompiledTiming(*astuple(timing))))
        self.memory = (ctypes.c_uint8 * size).from_address(library.memory(self._model))
        self._out, self._rdata = (ctypes.c_uint64 * 11)(), (ctypes.c_uint8 * bus_bytes)()

    def close(self) -> None:
        self._library.destroy(self._model)

    def edge(self, aw, w, bready, ar, rready):
        def address(beat):
            return (ctypes.c_uint64 * 6)(*((1, *beat) if beat else (0,) * 6))

        data, strobes, last = w or (0, 0, 0)
        self._library.edge(
            self._model,
            address(aw),
            (ctypes.c_uint64 * 2)(w is not None, last),
            data.to_bytes(self._bus, "little"),
            strobes.to_bytes((self._bus + 7) // 8, "little"),
            bready,
            address(ar),
            rready,
            self._out,
            self._rdata,
        )
        return (*self._out[:10], int.from_bytes(bytes(self._rdata), "little"))


def outputs(model: Dram) -> tuple[int, ...]:
    return (
        *(model.awready, model.wready, model.bvalid, model.bid, model.bresp),
        *(model.arready, model.rvalid, model.rid, model.rresp, model.rlast, model.rdata),
    )


def compiled(tmp_path: Path, bus_bytes: int) -> ctypes.CDLL:
    compiler = find_c_compiler()
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "wrapper.c", tmp_path / "wrapper.so"
    source.write_text(WRAPPER)
    include = str(Path(dram_module.__file__).parent)
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", f"-DBUS_BYTES={bus_bytes}", "-I", include]
    compiler.run(*flags, *compiler.flags, source, "-o", library, folder=tmp_path)
    return ctypes.CDLL(str(library))


def burst(rng: random.Random, bus_bytes: int, size: int) -> tuple[int, int, int, int, int]:
    """A legal burst, now and then beyond the end of memory."""
    page = rng.choice((0, 0, 4096, size & -4096, 1 << 31))
    beats = min(rng.choice((1, 1, 2, 3, 16, 256)), 4096 // bus_bytes)
    offset = rng.randrange(4096 // bus_bytes - beats + 1) * bus_bytes
    return rng.randrange(2), page + offset, beats - 1, bus_bytes.bit_length() - 1, 1


@pytest.mark.parametrize(
    ("bus_bytes", "timing"),
    [
        (4, DramTiming()),
        (16, DramTiming(1, 0, 1)),
        (32, DramTiming(7, 5, 3)),
        (128, DramTiming(200, 1, 16)),
        (4, DramTiming(9, 1, 4, bandwidth=3)),
        (32, DramTiming(20, 0, 8, bandwidth=24, channels=3, banks=2, row_miss=17)),
        (8, DramTiming(1, 2, 64, channels=2, refresh=300, refresh_cycles=60)),
        (128, DramTiming(30, 1, 64, bandwidth=64, channels=16, banks=16, row_miss=30, refresh=777, refresh_cycles=99)),
    ],
)
def test_python_equals_c(tmp_path: Path, bus_bytes: int, timing: DramTiming) -> None:
    rng = random.Random(bus_bytes)
    size = 3 * 4096 + bus_bytes * 5
    model = Dram(bytearray(size), bus_bytes, timing)
    judge = CompiledDram(compiled(tmp_path, bus_bytes), size, bus_bytes, timing)
    initial = rng.randbytes(size)
    model.memory[:] = initial
    judge.memory[:] = initial
    aw = ar = w = None
    beats: deque[tuple[int, int, int]] = deque()
    continues = 0
    reads = writes = 0
    for cycle in range(12000):
        busy = 0.8 if cycle // 1000 % 2 else 0.05
        if aw is None and len(beats) < 64 and rng.random() < busy:
            aw = burst(rng, bus_bytes, size)
            if rng.random() < 0.3 and continues % 4096:  # continue the burst before
                aw = (0, continues, 0, aw[3], 1)
            continues = aw[1] + (aw[2] + 1) * bus_bytes
            full = (1 << bus_bytes) - 1
            for left in range(aw[2], -1, -1):
                strobes = full if rng.random() < 0.5 else rng.getrandbits(bus_bytes)
                beats.append((rng.getrandbits(8 * bus_bytes), strobes, int(left == 0)))
        if ar is None and rng.random() < busy:
            ar = burst(rng, bus_bytes, size)
        if w is None and beats and rng.random() < 0.9:
            w = beats.popleft()
        bready, rready = int(rng.random() < 0.7), int(rng.random() < 0.7)
        taken = (aw is not None and model.awready, w is not None and model.wready, ar is not None and model.arready)
        reads += model.rvalid and rready
        writes += model.bvalid and bready
        model.edge(aw, w, bready, ar, rready)
        judged = judge.edge(aw, w, bready, ar, rready)
        assert judged == outputs(model), f"cycle {cycle}"
        aw, w, ar = (None if done else beat for done, beat in zip(taken, (aw, w, ar), strict=True))
    assert bytes(judge.memory) == bytes(model.memory)
    assert reads > 500
    assert writes > 20
    judge.close()


def run_reads(timing: DramTiming, bursts: list[tuple[int, int]], bus_bytes: int = 4) -> list[int]:
    """Cycles in which the beats of these (address, beats) bursts arrive, addresses issued as early as possible."""
    model, pending, arrivals = Dram(bytearray(8192), bus_bytes, timing), deque(bursts), []
    for _ in range(1000):
        ar = (0, pending[0][0], pending[0][1] - 1, bus_bytes.bit_length() - 1, 1) if pending else None
        if ar and model.arready:
            pending.popleft()
        if model.rvalid:
            arrivals.append(model.cycle)
        model.edge(None, None, 1, ar, 1)
    return arrivals


def test_read_timing_by_the_rule() -> None:
    assert run_reads(DramTiming(32, 1), [(0, 3)]) == [32, 33, 34]
    # A burst that continues the one before follows without a gap, any other costs burst_gap.
    assert run_reads(DramTiming(10, 4), [(0, 2), (8, 2), (64, 1)]) == [10, 11, 12, 13, 18]
    # Latency counts from the acceptance of the address: short bursts a cycle apart stay a cycle apart.
    assert run_reads(DramTiming(5, 0), [(0, 1), (64, 1), (0, 1)]) == [5, 6, 7]
    # With room for one burst the next address waits until the last beat was accepted.
    assert run_reads(DramTiming(5, 0, 1), [(0, 2), (8, 1)]) == [5, 6, 12]


def test_write_timing_by_the_rule() -> None:
    model = Dram(bytearray(64), 4, DramTiming(latency=6, burst_gap=2))
    accepted, answered = [], []
    addresses, left = deque([0, 4, 32]), 3
    while len(answered) < 3:
        aw = (0, addresses[0], 0, 2, 1) if addresses else None
        if aw and model.awready:
            addresses.popleft()
        w = (0xA5A5A5A5, 0b0101, 1) if left else None
        if w and model.wready:
            accepted.append(model.cycle)
            left -= 1
        if model.bvalid:
            answered.append(model.cycle)
        model.edge(aw, w, 1, None, 0)
    assert accepted == [1, 2, 5]  # the cycle after the address; continues; gap of 2
    assert answered == [7, 8, 11]
    assert model.memory[:8] == bytes.fromhex("a500a500a500a500")
    assert model.idle


def test_beyond_the_memory() -> None:
    model = Dram(bytearray(b"\xff" * 6), 4, DramTiming(latency=1))
    model.edge((1, 0, 1, 2, 1), None, 1, (0, 0, 1, 2, 1), 1)
    seen = []
    for beat in range(2):
        while not model.wready:
            model.edge(None, None, 1, None, 0)
        model.edge(None, (0, 15, beat), 1, None, 0)
    while not model.bvalid:
        model.edge(None, None, 1, None, 0)
    assert (model.bid, model.bresp) == (1, 3)
    while len(seen) < 2:
        if model.rvalid:
            seen.append((model.rresp, model.rdata, model.rlast))
        model.edge(None, None, 1, None, 1)
    assert seen == [(0, 0xFFFFFFFF, 0), (3, 0, 1)]
    assert model.memory == bytes(4) + b"\xff\xff"  # the beat that passes the end wrote nothing


@pytest.mark.parametrize(
    ("burst", "message"),
    [
        ((0, 0, 0, 1, 1), "not INCR or not of the full bus width"),
        ((0, 0, 0, 2, 0), "not INCR or not of the full bus width"),
        ((0, 4092, 1, 2, 1), "across a 4096-byte boundary"),
    ],
)
def test_violations(burst: tuple[int, int, int, int, int], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        Dram(bytearray(8192), 4, DramTiming()).edge(None, None, 1, burst, 1)
    with pytest.raises(ProtocolError, match=message):
        Dram(bytearray(8192), 4, DramTiming()).edge(burst, None, 1, None, 1)


@pytest.mark.parametrize("last", [0, 1])
def test_last_of_a_write_where_it_must_not_be(last: int) -> None:
    dram = Dram(bytearray(64), 4, DramTiming())
    dram.edge((0, 0, last, 2, 1), None, 1, None, 1)  # one beat, or two
    while not dram.wready:
        dram.edge(None, None, 1, None, 1)
    with pytest.raises(ProtocolError, match="wlast"):
        dram.edge(None, (0, 15, last), 1, None, 1)


def test_channels_by_the_rule() -> None:
    """Beats of 4 bytes; pieces of 256 bytes."""
    # Two bytes a cycle: a beat every other cycle, and the first one after the second half of its transfer.
    assert run_reads(DramTiming(10, 0, bandwidth=2), [(0, 4)]) == [11, 13, 15, 17]
    # Two channels of that, side by side: the second piece is at hand when the first one is through.
    times = run_reads(DramTiming(10, 0, bandwidth=2, channels=2), [(0, 64), (256, 64)])
    assert times[:64] == list(range(11, 139, 2))
    assert times[64:] == list(range(138, 202))
    # A row is opened once; a second bank opens its row while the first one moves data.
    row = DramTiming(10, 0, banks=2, row_miss=20)
    assert run_reads(row, [(0, 1), (4, 1), (2048, 1), (2052, 1), (4096, 1)]) == [30, 31, 32, 33, 52]
    # Cycles 100 to 119 are those of a refresh: the second piece began before, the third begins behind.
    rest = run_reads(DramTiming(1, 0, refresh=100, refresh_cycles=20), [(0, 64), (256, 64), (512, 2)])
    assert rest == [*range(1, 129), 129, 130]
    rest = run_reads(DramTiming(1, 0, refresh=100, refresh_cycles=40), [(0, 64), (256, 32), (384, 4), (512, 2)])
    assert rest[96:] == [97, 98, 99, 100, 141, 142]


def test_timing_bounds() -> None:
    with pytest.raises(ValueError, match="latency is 0; it must be in 1"):
        DramTiming(latency=0)
    with pytest.raises(ValueError, match="refresh is 10: it must be more than refresh_cycles, 128"):
        DramTiming(refresh=10)
