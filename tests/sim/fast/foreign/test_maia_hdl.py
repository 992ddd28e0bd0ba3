"""Signal processing of maia-hdl: multipliers, filters, FFTs, and its ways between clocks."""

from collections.abc import Callable
from typing import Any

import pytest
from bench import cases, lockstep
from package import Package


def maia(name: str) -> Package:
    return Package(f"maia_hdl.{name}")


def registers() -> Any:
    register = maia("register")
    field, access = register.Field, register.Access
    fields = [field("go", access.Wpulse, 1, 0), field("mode", access.RW, 5, 9), field("state", access.R, 7, 0)]
    sticky = [field("full", access.Rsticky, 1, 0)]
    return register.Registers(
        "map", {0: register.Register("control", fields), 2: register.Register("flags", sticky, interrupt=True)}, 2
    )


DESIGNS: dict[str, Callable[[], Any]] = {
    "registers": registers,
    "skid_buffer": lambda: maia("buffer").SkidBuffer(13),
    "register_crossing": lambda: maia("cdc").RegisterCDC("sync", "other", 4),
    "complex_product": lambda: maia("cmult").Cmult(12, 17, truncate=3),
    "complex_product_3x": lambda: maia("cmult").Cmult3x("clk3x", 16, 12),
    "product_2x": lambda: maia("mult2x").Mult2x("clk2x", 16, 18),
    "fft_stage_4": lambda: maia("fft").R4SDF(4, 10),
    "fft_64_3x": lambda: maia("fft").FFT(12, 6, "R22", cmult3x=True, domain_3x="clk3x"),
    "multiply_accumulate": lambda: maia("fir").Macc(16, 18, truncate_round=17),
    "fir_decimator": lambda: maia("fir").FIRDecimator3Stage(),
    "to_floating_point": lambda: maia("floating_point").IQToFloatingPoint(24, 12),
    "common_exponent": lambda: maia("floating_point").MakeCommonExponent(18, 24, 4, 9, a_complex=True, b_power=True),
    "down_converter": lambda: maia("ddc").DDC("clk3x"),
    "pack_12": lambda: maia("packer").Pack12IQto32(),
    "pack_twice": lambda: maia("packer").PackFifoTwice(),
    "pulse": lambda: maia("pulse").PulseStretcher(4),
    "dma_stream": lambda: maia("dma").DmaStreamWrite(0x1000_0000, 0x1000_4000),
    "integrator": lambda: maia("spectrum_integrator").SpectrumIntegrator("clk3x", 16, 12, 5, 5),
}


MORE: dict[str, Callable[[], Any]] = {
    "register_bridge": lambda: maia("axi4_lite").Axi4LiteRegisterBridge(5),
    "clock_edges": lambda: maia("clknx").ClkNxCommonEdge("sync", "clk3x", 3),
    "power": lambda: maia("cpwr").Cpwr(14, add_width=20, add_shift=2, truncate=1),
    "fft_stage_2": lambda: maia("fft").R2SDF(5, 12, truncate=1),
    "fft_stage_22": lambda: maia("fft").R22SDF(4, 10, truncate=[0, 1], storage="bram", use_bram_reg=True),
    "twiddle_i": lambda: maia("fft").TwiddleI(12),
    "twiddle": lambda: maia("fft").Twiddle(5, 2, 12, 14),
    "window": lambda: maia("fft").Window("clk2x", 5, 12, 14),
    "fft_64": lambda: maia("fft").FFT(12, 6, 4),
    "fft_32": lambda: maia("fft").FFT(10, 5, 2, window="blackmanharris", domain_2x="clk2x"),
    "samples": lambda: maia("fir").SampleBuffer(16, awidth=6),
    "coefficients": lambda: maia("fir").Coefficients(awidth=5),
    "fir_4": lambda: maia("fir").FIR4DSP(len_log2=5),
    "fir_2": lambda: maia("fir").FIR2DSP(len_log2=4),
    "shift_right": lambda: maia("floating_point").ShiftRight(17, 4, 13),
    "mixer": lambda: maia("mixer").Mixer("clk3x", 16),
    "pack_16": lambda: maia("packer").Pack16IQto32(),
    "pack_8": lambda: maia("packer").Pack8IQto32(),
    "dma_memory": lambda: maia("dma").DmaBRAMWrite(0x1000_0000, 2, 8),
    "spectrometer": lambda: maia("spectrometer").Spectrometer(0x1000_0000, 2),
    "power_peak": lambda: maia("cpwr").CpwrPeak("clk3x", 12, real_width=20, real_shift=3),
}
"""Those that CI has no time for."""


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name])
