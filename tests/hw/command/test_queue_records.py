"""Records of queues against a dictionary, with doorbells, faults and reads in the same cycles."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.command import ErrorAddress
from sley.abi.config import preset
from sley.abi.faults import FaultCode, Unit
from sley.hw.command.queue_records import QueueRecords
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.streams import Design

COVERAGE = Coverage(
    "queue records",
    {
        "address": [address.name for address in ErrorAddress],
        "rung": (0, 1),
        "in one cycle": [
            (rings, faulted, same)
            for rings in (0, 1)
            for faulted in (0, 1)
            for same in (0, 1)
            if rings & faulted or not same
        ],
    },
)


@pytest.mark.parametrize("queues", [1, 3, 8])
def test_random(queues: int) -> None:
    dut, rng = QueueRecords(preset("nano").replace(queues=queues)), random.Random(queues)
    bells = {k: (0, 0) for k in range(queues)}
    faults: dict[int, dict[str, int]] = {k: {} for k in range(queues)}

    def fault() -> dict[str, int]:
        widths = {"code": 8, "unit": 4, "core": 8, "pc": 16, "block": 32, "address": 32}
        return {name: rng.choice([0, (1 << n) - 1, rng.getrandbits(n)]) for name, n in widths.items()}

    async def test(ctx: Any) -> None:
        rung: set[int] = set()
        r = dut.registers
        for _ in range(600):
            ringing, owner, faulted = rng.randrange(2 * queues), rng.randrange(queues), rng.random() < 0.4
            if not rung:
                ringing = 0  # so that there is something to read
            told, record = (rng.getrandbits(64), rng.getrandbits(16)), fault()
            ctx.set(dut.rings, 1 << ringing if ringing < queues else 0)
            ctx.set(dut.time, told[0])
            ctx.set(dut.doorbell, told[1])
            ctx.set(dut.owner, 1 << owner)
            ctx.set(dut.faulted, faulted)
            ctx.set(dut.fault, record)
            COVERAGE.hit("in one cycle", (ringing < queues, faulted, ringing == owner and faulted))
            assert ctx.get(r.index) == owner
            await ctx.tick()
            if ringing < queues:
                bells[ringing] = told
                rung.add(ringing)
            if faulted:
                faults[owner] = record
            ctx.set(dut.rings, 0)
            ctx.set(dut.faulted, 0)

            queue, readback = rng.randrange(queues), rng.getrandbits(32)
            address = rng.choice([ErrorAddress.NONE, ErrorAddress.READBACK])
            if queue in rung and rng.random() < 0.4:
                address = ErrorAddress.DOORBELL
            elif faults[queue] and rng.random() < 0.6:
                address = ErrorAddress.FAULT
            code = (
                rng.choice([FaultCode.NONE, FaultCode.ABORTED])
                if address is ErrorAddress.NONE
                else rng.randrange(1, 256)
            )
            ctx.set(r.read_index, queue)
            ctx.set(r.readback_read, {"address": readback})
            ctx.set(dut.rung, sum(1 << k for k in rung))
            for k in range(queues):
                ctx.set(dut.errors[k], {"code": code if k == queue else 0x55, "address": address if k == queue else 3})
            COVERAGE.hit("address", address.name)
            COVERAGE.hit("rung", int(queue in rung))
            expected = {"unit": Unit.COMMAND if code else 0, "core": 0, "pc": 0, "block": 0, "address": 0}
            if address is ErrorAddress.FAULT:
                expected = faults[queue]
            elif address is not ErrorAddress.NONE:
                expected["address"] = bells[queue][1] if address is ErrorAddress.DOORBELL else readback & ~3
            read = {name: ctx.get(getattr(r.error, name)) for name in ("code", "unit", "core")} | {
                "pc": ctx.get(r.error_pc.pc),
                "block": ctx.get(r.error_block.block),
                "address": ctx.get(r.error_address.address),
            }
            assert read == expected | {"code": code}
            time = bells[queue][0] if queue in rung else 0
            assert ctx.get(r.doorbell_time_lo.cycles) | ctx.get(r.doorbell_time_hi.cycles) << 32 == time
            if rng.random() < 0.05:  # turned off
                rung.discard(queue)

    Design(dut).run([test])


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
