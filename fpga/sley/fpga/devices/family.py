"""FPGA families: how Yosys synthesises for them, and which resource each cell takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Resources:
    """LUTs with those that carry chains and distributed RAM take, flip-flops, DSP blocks, block RAMs."""

    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


OWN_RESET = 8
"""From so many flip-flops on a reset is theirs, not one in LUTs: the eight of an ECP5's tile share one or have none."""


@dataclass(frozen=True)
class Dense:
    """How Yosys saves LUTs and makes flip-flops that lie well together, and how nextpnr places what fills a device.

    ``options`` are those of the family's command, ``mapper`` is the command in place of its own. Carry chains of at
    most ``gates`` bits are made of LUTs, which can be joined with the logic around them. ``registers`` makes the
    flip-flops; an enable that fewer than ``enables`` of them share is in LUTs, as is a reset of fewer than the device
    says. ``placer`` is nextpnr's; what it has placed is refined before it is routed.
    """

    options: str
    mapper: str
    gates: int
    registers: str
    enables: int
    placer: str


@dataclass(frozen=True)
class Family:
    """A family of FPGAs.

    ``script`` is Yosys' command for it, ``cells`` the resources that a cell of the netlist takes; cells that are not
    there take none. ``units`` says what DSP and block RAM are counted in. ``bitstream``: how the file of one is called,
    for families whose tools pip has. ``guarded``: Yosys may give the register of a sum to two DSP blocks, unless what
    has a multiplier in it is a module of its own while DSP blocks are made. ``dense``: how to make a netlist of fewer
    LUTs and more levels of them. ``late``: cells whose outputs follow the clock as late as behind so many LUTs.
    """

    name: str
    about: str
    script: str
    cells: Mapping[str, Resources]
    units: str
    bitstream: str = ""
    guarded: bool = False
    dense: Dense | None = None
    late: Mapping[str, int] = field(default_factory=dict)


def _cells(
    lut: Mapping[str, int], ff: tuple[str, ...], dsp: Mapping[str, int], bram: Mapping[str, int]
) -> dict[str, Resources]:
    return (
        {name: Resources(lut=count) for name, count in lut.items()}
        | {name: Resources(ff=1) for name in ff}
        | {name: Resources(dsp=count) for name, count in dsp.items()}
        | {name: Resources(bram=count) for name, count in bram.items()}
    )


_XILINX_LUT = {
    **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
    "INV": 1,
    "SRL16E": 1,
    "SRLC32E": 1,
    **{"RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2},
    **{"RAM256X1S": 4, "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM512X1S": 8, "RAM32X16DR8": 8},
    **{"RAM64X8SW": 8},
}
_XILINX_FF = ("FDRE", "FDSE", "FDCE", "FDPE", "FDRE_1", "FDSE_1", "FDCE_1", "FDPE_1")
_ECP5_REGISTERS = (
    "dfflegalize -cell $_DFF_?_ 01 -cell $_DFF_?P?_ r -cell $_SDFF_?P?_ r "
    "-cell $_DFFE_??_ 01 -cell $_DFFE_?P??_ r -cell $_SDFFE_?P??_ r"
)
"""The flip-flops of an ECP5, as Yosys' own command for it knows them."""
_SHALLOW = (
    "strash; &get -n; &fraig -x; &put; scorr; balance; strash; if -g -K 6 -C 8; strash; if -g -K 6 -C 8; strash; "
    "dch -f; if -C 16 -F 4 -A 4; mfs2; lutpack -S 1"
).replace(" ", ",")
"""Yosys' script for LUTs of one size. In place of ``dc2``, which restructures logic for fewer gates and lets paths grow
by one or two LUTs, it has ``balance`` and twice balanced sums of products of six inputs, which make paths shorter by
one or two; and more cuts and more rounds of the area recovery that keeps depth."""

FAMILIES = {
    family.name: family
    for family in (
        Family(
            "ecp5",
            "Lattice ECP5",
            "synth_ecp5 -abc9",
            _cells(
                {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
                ("TRELLIS_FF",),
                {"MULT18X18D": 1},
                {"DP16KD": 1, "PDPW16KD": 1},
            ),
            "MULT18X18D; 18 Kbit",
            bitstream=".bit",
            dense=Dense("-nowidelut", f'abc -lut 4 -dress -script "+{_SHALLOW}"', 8, _ECP5_REGISTERS, 4, "static"),
            late={"DP16KD": 4, "PDPW16KD": 4},  # 5.8 ns, speed grade 6
        ),
        Family(
            "ice40",
            "Lattice iCE40 UltraPlus",
            "synth_ice40 -device u -dsp",
            _cells(
                {"SB_LUT4": 1},
                tuple(
                    f"SB_DFF{edge}{enable}{reset}"
                    for edge in ("", "N")
                    for enable in ("", "E")
                    for reset in ("", "R", "S", "SR", "SS")
                ),
                {"SB_MAC16": 1},
                {f"SB_RAM40_4K{edge}": 1 for edge in ("", "NR", "NW", "NRNW")},
            ),
            "SB_MAC16; 4 Kbit",
            bitstream=".bin",
            guarded=True,
        ),
        Family(
            "gowin",
            "Gowin GW2A",
            "synth_gowin -family gw2a -noiopads",
            _cells(
                {**{f"LUT{inputs}": 1 for inputs in range(1, 5)}, "ALU": 1}
                | {"RAM16SDP4": 4, "RAM16SDP2": 2, "RAM16SDP1": 1, "RAM16S4": 4, "RAM16S2": 2, "RAM16S1": 1},
                tuple(
                    f"DFF{edge}{kind}"
                    for edge in ("", "N")
                    for kind in ("", "E", "S", "SE", "R", "RE", "P", "PE", "C", "CE")
                ),
                {"MULT9X9": 1, "MULT18X18": 2, "MULTALU18X18": 2, "MULTADDALU18X18": 4, "MULT36X36": 8},
                {name: 1 for name in ("SP", "SPX9", "SDPB", "SDPX9B", "DPB", "DPX9B", "pROM", "pROMX9")},
            ),
            "9 x 9 multiplier; 18 Kbit",
        ),
        Family(
            "xc7",
            "AMD 7 series",
            "synth_xilinx -family xc7 -flatten -abc9 -noiopad",
            _cells(_XILINX_LUT, _XILINX_FF, {"DSP48E1": 1}, {"RAMB18E1": 1, "RAMB36E1": 2}),
            "DSP48E1; 18 Kbit",
        ),
        Family(
            "xcu",
            "AMD UltraScale",
            "synth_xilinx -family xcu -flatten -noiopad",
            _cells(_XILINX_LUT, _XILINX_FF, {"DSP48E2": 1}, {"RAMB18E2": 1, "RAMB36E2": 2}),
            "DSP48E2; 18 Kbit",
        ),
    )
}
