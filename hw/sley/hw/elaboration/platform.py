"""The FPGA family that a design is elaborated for."""


def is_ecp5(platform: object) -> bool:
    """Whether it is an ECP5; a platform without ``dsp_family`` is of no family."""
    return getattr(platform, "dsp_family", None) == "ecp5"
