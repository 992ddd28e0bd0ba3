"""A simulated board: a design on the fast engine, and the bytes on its serial line."""

from sley.abi.transport import EngineError
from sley.sim.board.host_uart import CHUNK
from sley.sim.fast.run.simulation import Simulation


class SimulatedBoard:
    """Runs the RTLIL of a ``HostedDesign``, whose ports are named without a prefix, and hands bytes over.

    Attributes: ``simulation``, for signals by name, recordings and snapshots.
    """

    def __init__(self, rtlil: str) -> None:
        self.simulation = Simulation(rtlil)

    @property
    def cycles(self) -> int:
        """Clock cycles since reset."""
        return self.simulation.cycle

    def close(self) -> None:
        self.simulation.close()

    def run(self, outgoing: bytearray, cycles: int) -> bytes:
        """Lets time pass: some ``cycles`` at most, less if something arrives or all that is being sent has left.

        Takes from the front of ``outgoing`` what is sent next; returns what arrived.
        """
        simulation = self.simulation
        if outgoing and simulation.peek("idle"):
            chunk = bytes(outgoing[:CHUNK])
            del outgoing[:CHUNK]
            simulation.poke("chunk", int.from_bytes(chunk, "little"))
            simulation.poke("length", len(chunk))
            simulation.poke("load", 1)
        simulation.poke("hungry", bool(outgoing))
        simulation.poke("budget", cycles)
        simulation.poke("take", 1)
        simulation.tick()
        simulation.poke("load", 0)
        simulation.poke("take", 0)
        simulation.run_until("attention", 1, limit=cycles + 8)
        if simulation.peek("broken"):
            raise EngineError("the board sent a byte without a stop bit: its clocks per bit are not the host's")
        if fault := simulation.peek("fault"):
            raise EngineError(f"the board says of itself that it works outside its rules: fault is {fault:#x}")
        count = simulation.peek("count")
        return simulation.peek("received").to_bytes(CHUNK, "little")[CHUNK - count :]
