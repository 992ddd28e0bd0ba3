"""What any unit of a core has around it in a bench: commands, signals and the fault record, under the rules of a unit.

bench = UnitBench(compiled(VectorUnit, config), seed=1)
bench.send(bench.dut.command, payloads)       # as with any StreamBench
bench.run()
assert bench.faults == [(FaultCode.LOCAL_ADDRESS, pc, row)]
"""

from collections.abc import Iterable
from typing import Any

from sley.hw.testing.streams import Design, StreamBench


class UnitRuleError(AssertionError):
    """A unit broke a rule of ``sley.hw.core.unit``."""


class UnitBench(StreamBench):
    """A block with the ports of ``unit_signature``; what else it has, the benches of its kind play.

    Parameters
    ----------
    dut, seed, timeout
        As in ``StreamBench``.

    Members
    -------
    faults : list of (code, pc, address)
        Fault records, in the order in which they were raised.
    busy_cycles : int
        Cycles with ``busy``.

    Raises
    ------
    UnitRuleError
        ``retired`` is not high in just the cycles in which a signal set is accepted (rule 3), or a signal set is
        offered while the unit is not busy (rule 6).
    """

    def __init__(self, dut: Any | Design, *, seed: int = 0, timeout: int = 10_000) -> None:
        super().__init__(dut, seed=seed, timeout=timeout)
        self.faults: list[tuple[int, int, int]] = []
        self.busy_cycles = 0
        self.add(self._watch_unit)

    async def _watch_unit(self, ctx: Any) -> None:
        dut, fault = self.dut, self.dut.fault
        record = (fault.valid, fault.code, fault.pc, fault.address)
        streams = [bit for port in dut.signal for bit in (port.valid, port.ready)]
        async for _, _, valid, code, pc, address, busy, retired, *pairs in ctx.tick().sample(
            *record, dut.busy, dut.retired, *streams
        ):
            self.busy_cycles += busy
            if valid:
                self.faults.append((int(code), int(pc), int(address)))
            for k, (offered, taken) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
                if offered and not busy:
                    raise UnitRuleError(
                        f"signal {k} is offered by a unit that is not busy, cycle {self.cycle} (rule 6)"
                    )
                if (offered and taken) != (retired >> k & 1):
                    raise UnitRuleError(f"signal {k}: retired is {retired:b}, cycle {self.cycle} (rule 3)")

    async def give(self, ctx: Any, commands: Iterable[Any]) -> None:
        """Hands over commands, one in each cycle in which the unit takes one; for use inside a process of a test."""
        port = self.dut.command
        for command in commands:
            ctx.set(port.payload, command)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def clear(self, ctx: Any) -> None:
        """Raises ``clear`` for a cycle, as before a block starts (rule 7)."""
        ctx.set(self.dut.clear, 1)
        await ctx.tick()
        ctx.set(self.dut.clear, 0)

    async def finish(self, ctx: Any) -> None:
        """Waits until the unit is quiet."""
        while (await ctx.tick().sample(self.dut.busy))[-1]:
            pass
