"""What address spaces cost on ``base``: a stream through large and through small pages, a miss, and a change of
context.

Runs on the engine ``fast``; cycles do not depend on the machine that simulates. Fails when a stream whose translations
are held takes longer than without translation, but for its first access.
"""

from rich.console import Console
from rich.table import Table

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.driver import ALL_RIGHTS, Context, Driver, Queue

ENGINE = "fast:base?memory=64M"
SIZE = 1 << 20
"""Bytes that are read; a multiple of the pages' sizes that fits into one large page."""
RUN = 4096


def program(address: int, size: int, row_bytes: int) -> str:
    """Reads ``size`` bytes, all to the same rows of the scratchpad."""
    return f"""
    set load.run_bytes, #{RUN}
    set load.chunks, #{RUN // row_bytes}
    set load.mem_stride, #{RUN}
    add r1, r0, #{address}
    add r2, r0, #{size // RUN}
    load r1, r0, r2 signal=0
    sync wait=0
    end
    """


class Client:
    """A context with a queue and a page for its program."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.context: Context = driver.context()
        self.queue: Queue = self.context.queue()
        self.code = self.map(PAGE_BYTES)

    def map(self, length: int) -> int:
        """Address of fresh memory; of a large page if it is that long."""
        buffer = self.context.allocate(length)
        mapping = self.context.map(buffer, ALL_RIGHTS)
        buffer.release()
        return mapping.address

    def cycles(self, text: str, repeat: int = 1) -> int:
        """From the doorbell to the fence behind the last of some launches."""
        code = words_to_bytes(assemble(text))
        self.context.space.write(self.code, code)
        with self.queue.batch():
            for _ in range(repeat):
                self.queue.launch(self.code, len(code) // INSTRUCTION_BYTES, [], (1, 1, 1))
            fence = self.queue.fence()
        fence.wait()
        return fence.time - self.queue.doorbell_time


def measure() -> list[str]:
    """Prints the table; returns what was missed."""
    with Driver.open(ENGINE) as driver:
        config = driver.config
        client, other = Client(driver), Client(driver)
        large, small = client.map(LARGE_PAGE_BYTES), client.map(SIZE)
        beats = SIZE // config.bus_bytes
        nothing = client.cycles("end"), client.cycles("end")
        other.cycles("end")
        changed = client.cycles("end")
        streams = {}
        for name, address in (("large", large), ("small", small)):
            client.cycles(program(address, RUN, config.row_bytes))
            streams[name] = client.cycles(program(address, SIZE, config.row_bytes))
        first = client.cycles(program(large, RUN, config.row_bytes)) - RUN // config.bus_bytes
    misses = SIZE // PAGE_BYTES
    table = Table("what", "cycles", title=f"{ENGINE}, {beats:,} beats of {config.bus_bytes} bytes")
    table.add_row("read 1 MiB of a large page", f"{streams['large']:,}")
    table.add_row("read 1 MiB of small pages", f"{streams['small']:,}")
    table.add_row("a miss in a stream through small pages", f"{(streams['small'] - streams['large']) / misses:.1f}")
    table.add_row("an empty launch, doorbell to fence", f"{nothing[1]:,}")
    table.add_row("after a block of another context", f"{changed:,}")
    Console().print(table)
    lost = streams["large"] - first - beats
    return [f"{lost} cycles lost in a stream through a large page"] if lost > 0 else []
