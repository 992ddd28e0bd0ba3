"""Memory and host link: what a token of SmolLM2 waits for."""

from sley.abi import PRESETS
from sley.examples.studies.study import Line, Result, Study
from sley.examples.studies.workloads import KEYS, token

MEMORY = (4, 8, 16, 32)
LINKS = {
    "no cost": "",
    "16 bytes a cycle, latency 200": "&link_bytes=16&link_latency=200",
    "1 byte a cycle": "&link_bytes=1",
}


def run(small: bool) -> Result:
    config, rows, lines = PRESETS["base"], [], []
    for name, link in LINKS.items():
        bandwidths, cycles = MEMORY if not link else MEMORY[-1:], []
        for bandwidth in bandwidths:
            found = token(config, small, f"&bandwidth={bandwidth}{link}")
            cycles.append(found.whole)
            rows.append((bandwidth, name, found.launch, found.whole, 100e6 / found.whole))
        lines.append(Line(f"link: {name}", bandwidths, cycles))
    columns = ("bytes a cycle of memory", "host link", "cycles, launch", "with the host", "tokens a second at 100 MHz")
    return Result(columns, rows, lines, "bytes a cycle of memory", "cycles of a token", MEMORY)


TEXT = f"""\
One token of SmolLM2-135M on int8 that sees {KEYS} keys, on `base`: from the first byte that the host writes for
it to the last of 49,152 logits that it reads. Memory moves 4 to 32 bytes a cycle; at 32 the link has no cost, 16
bytes a cycle with 200 cycles of latency, or a byte a cycle, as a serial bridge has."""
STUDY = Study("bandwidth", "What does a token of SmolLM2 wait for: memory, or the host link?", TEXT, run)
