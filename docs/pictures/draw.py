"""The pictures of the README and of the pages.

``python docs/pictures/draw.py`` writes them beside this file; with ``--check`` it fails if one differs from the file.
"""

import sys
from math import log10
from pathlib import Path

from svg import Picture

from sley.abi.config import preset

FOLDER = Path(__file__).parent


def chip() -> Picture:
    p = Picture(860, 400, "The chip: host, command processor, mesh of cores, memory port")
    p.box(20, 60, 130, 70, "Host", "driver, runtime", kind="host")
    p.text(93, 315, "interrupt", small=True)
    p.box(195, 60, 130, 70, "Register bank", "queues, faults")
    p.box(195, 180, 130, 170, "Command", "packets", "block scheduler", "watchdog", kind="unit")
    p.arrow((150, 95), (195, 95), both=True)
    p.text(151, 50, "AXI4-Lite", small=True)
    p.arrow((260, 130), (260, 180), both=True)
    p.arrow((195, 325), (85, 325), (85, 130))
    p.box(375, 180, 300, 26, "request network")
    p.box(375, 324, 300, 26, "response network")
    p.arrow((325, 193), (375, 193))
    p.arrow((375, 337), (325, 337))
    for index, name in enumerate(("Core 0", "Core 1", "…")):
        x = 375 + 105 * index
        p.box(x, 235, 90, 60, name, "" if name == "…" else "translator", kind="unit")
        p.arrow((x + 30, 235), (x + 30, 206))
        p.arrow((x + 60, 324), (x + 60, 295))
    p.box(725, 180, 115, 170, "Memory port", "page walker", "one AXI ID", kind="unit")
    p.arrow((675, 193), (725, 193))
    p.arrow((725, 337), (675, 337))
    p.box(725, 60, 115, 70, "DRAM", "device memory", kind="store")
    p.arrow((782, 180), (782, 130), both=True)
    p.text(792, 160, "AXI4", small=True)
    p.box(360, 165, 495, 200, kind="frame")
    p.text(375, 385, "a node of the mesh is a core, the command processor or the memory port", small=True)
    p.text(20, 30, "Chip")
    return p


def core() -> Picture:
    p = Picture(860, 380, "A core: sequencer, queues, four units, two memories")
    p.text(20, 30, "Core")
    p.box(20, 140, 130, 100, "Sequencer", "program memory", "scalar registers", kind="unit")
    p.box(20, 290, 130, 50, "Semaphores", "order the units")
    p.arrow((85, 240), (85, 290), both=True)
    units = [("Load", "align, transpose"), ("Matrix", "N x N array"), ("Vector", "fp32 lanes"), ("Store", "align")]
    p.line((150, 190), (180, 190), (180, 85))
    p.line((180, 190), (180, 295))
    for index, (name, what) in enumerate(units):
        y = 60 + 70 * index
        p.arrow((180, y + 25), (205, y + 25))
        p.box(205, y, 80, 50, "queue")
        p.arrow((285, y + 25), (315, y + 25))
        p.box(315, y, 150, 50, name, what, kind="unit")
    p.box(600, 60, 170, 110, "Scratchpad", "rows of N operand lanes", "banks", kind="store")
    p.box(600, 220, 170, 110, "Accumulators", "rows of N sums of 32 bits", "banks", kind="store")
    p.arrow((465, 75), (600, 75))
    p.arrow((465, 95), (575, 95), (575, 235), (600, 235))
    p.arrow((600, 145), (465, 145))
    p.arrow((465, 165), (560, 165), (560, 255), (600, 255), both=True)
    p.arrow((465, 225), (540, 225), (540, 275), (600, 275), both=True)
    p.arrow((600, 310), (465, 310))
    p.text(480, 68, "operands", small=True)
    p.text(480, 138, "rows", small=True)
    p.text(480, 326, "results", small=True)
    p.text(315, 360, "Vector and Store also use the scratchpad; memory is reached through the mesh", small=True)
    return p


def layers() -> Picture:
    p = Picture(860, 450, "The layers of the stack and what each may import")
    p.text(20, 30, "Layers: each imports only what is named at its right, and itself")
    rows = [
        ("sley.runtime", "arrays · blas.gemm · kernels · streams", "driver, abi", "host"),
        ("sley.driver", "probe · buffers · queues · fences · faults", "abi", "host"),
        ("registers, doorbells, rings in memory, interrupt", "the boundary between software and chip", "", "box"),
        ("sley.hw", "command processor · mesh · cores · memory port", "abi", "unit"),
        ("sley.sim", "fast · rtl (Verilator) · pysim · golden model", "hw, abi", "store"),
        ("sley.fpga", "boards · host bridge · SDRAM · bitstreams", "hw, abi", "store"),
        ("sley.abi", "registers, packets, instructions, described once", "the standard library", "box"),
    ]
    for index, (name, what, imports, kind) in enumerate(rows):
        y = 50 + 52 * index
        p.box(20, y, 600, 42, name, what, kind=kind)
        if imports:
            p.text(640, y + 25, f"imports {imports}", small=True)
    p.text(
        20,
        436,
        "sley.explore, above runtime, sim and fpga: sweeps; sley.bench, sley.examples: commands on top of all of these",
        small=True,
    )
    return p


def pipeline() -> Picture:
    p = Picture(860, 330, "Pipeline of a chunked matrix product: units over time")
    p.text(20, 30, "A macro tile of three chunks, two slots: who works when (schematic, not to scale)")
    lanes = ["Load", "WEIGHTS", "MATMUL", "Vector", "Store"]
    for index, name in enumerate(lanes):
        y = 55 + 46 * index
        p.text(20, y + 21, name)
        p.line((105, y + 38), (840, y + 38), kind="thin")
    p.box(110, 55, 120, 32, "chunk 0", kind="store")
    p.box(236, 55, 120, 32, "chunk 1", kind="store")
    p.box(432, 55, 120, 32, "chunk 2", kind="store")
    p.box(592, 55, 120, 32, "next tile", kind="store")
    for chunk in range(3):
        for fold in range(2):
            x = 236 + 160 * chunk + 80 * fold
            p.box(x - 4, 101, 36, 32, f"{chunk}.{fold}")
            p.box(x + 34, 147, 78, 32, f"rows {chunk}.{fold}", kind="unit")
    p.box(752, 193, 60, 32, "scale", kind="host")
    p.box(772, 239, 66, 32, "rows", kind="store")
    p.arrow((440, 147), (440, 88))
    p.arrow((600, 147), (600, 88))
    p.text(
        20,
        306,
        "c.f is fold f of chunk c. WEIGHTS run during the MATMUL before; arrows: a slot is free again;",
        small=True,
    )
    p.text(
        20,
        321,
        "the array is never idle while loads keep up; results of a tile are written out during the next.",
        small=True,
    )
    return p


MEASURED = [  # of the README: M, N, K, and the share of peak MACs or of the bus's cycles
    ("1024³", 1024, 1024, 1024, "peak", 0.999),
    ("512³", 512, 512, 512, "peak", 0.995),
    ("256³", 256, 256, 256, "peak", 0.970),
    ("GEMV, M = 1, K = N = 4096", 1, 4096, 4096, "bus", 0.973),
]


def roofline() -> Picture:
    config = preset("base")
    peak, bus = config.peak_macs, config.bus_bytes
    p = Picture(860, 420, "Roofline of base for int8: MACs a cycle over MACs for each byte")
    p.text(20, 30, "Roofline of base, int8 to int32 (sley bench gemm)")

    def at(intensity: float, macs: float) -> tuple[float, float]:
        return 80 + 250 * log10(intensity / 0.5), 370 - 200 * log10(macs / 16)

    for macs in (16, 32, 64, 128, 256, 512):
        p.line(at(0.5, macs), at(512, macs), kind="thin")
        p.text(70, at(0.5, macs)[1] + 4, str(macs), small=True, anchor="end")
    for intensity in (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        p.text(at(intensity, 16)[0], 390, f"{intensity:g}", small=True, anchor="middle")
    p.text(460, 409, "MACs for each byte that the busier channel must move", small=True, anchor="middle")
    p.text(80, 56, "MACs a cycle", small=True)
    p.line(at(0.5, 0.5 * bus), at(peak / bus, peak), at(512, peak), kind="bold")
    p.text(at(3, 96)[0] - 12, at(3, 96)[1] - 12, f"{bus} bytes a cycle", anchor="end")
    p.text(at(24, 512)[0], at(24, 512)[1] - 12, f"{peak} MACs a cycle")
    for name, m, n, k, of, share in MEASURED:
        intensity = m * n * k / max(m * k + k * n, 4 * m * n)
        roof = peak if of == "peak" else intensity * bus
        x, y = at(intensity, share * roof)
        p.dot(x, y)
        p.text(x + 10, y + (36 if k == 512 else 20), f"{name}: {100 * share:.1f} %", small=True)
    return p


PICTURES = {"chip": chip, "core": core, "layers": layers, "pipeline": pipeline, "roofline": roofline}


def main(check: bool) -> int:
    stale = []
    for name, draw in PICTURES.items():
        path, text = FOLDER / f"{name}.svg", draw().svg()
        if check and (not path.exists() or path.read_text() != text):
            stale.append(path.name)
        if not check:
            path.write_text(text)
    if stale:
        print(f"not what docs/pictures/draw.py writes: {', '.join(stale)}", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
