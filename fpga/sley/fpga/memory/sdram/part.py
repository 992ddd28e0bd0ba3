"""Times and sizes of SDRAM parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

BANK_BITS = 2
WORD_BYTES = 2


@dataclass(frozen=True)
class SdramPart:
    """A single data rate SDRAM of 4 banks and 16 data bits. Times are in nanoseconds, least ones unless said otherwise.

    ``activate_to_activate`` is of one bank (tRC), ``bank_to_bank`` of two (tRRD); ``activate_to_precharge`` is tRAS,
    ``activate_to_column`` tRCD, ``precharge`` tRP, ``write_recovery`` tWR, ``refresh`` tRFC, ``mode_set`` tMRD.
    ``open_at_most`` is the greatest tRAS. All of ``refreshes`` rows are refreshed within ``refresh_period``.
    ``clock_period`` gives for each CAS latency the shortest clock period, ``access`` the greatest time from a clock
    edge to the data (tAC).
    """

    name: str
    row_bits: int = 13
    column_bits: int = 9
    activate_to_activate: float = 66
    activate_to_precharge: float = 45
    activate_to_column: float = 21
    precharge: float = 21
    bank_to_bank: float = 15
    write_recovery: float = 15
    refresh: float = 70
    mode_set: float = 15
    open_at_most: float = 100_000
    refreshes: int = 8192
    refresh_period: float = 64e6
    power_up: float = 200_000
    clock_period: Mapping[int, float] = field(default_factory=lambda: {2: 10.0, 3: 7.5})
    access: Mapping[int, float] = field(default_factory=lambda: {2: 6.0, 3: 5.4})

    def __post_init__(self) -> None:
        row_cycle = self.activate_to_precharge + self.precharge
        if self.activate_to_activate > row_cycle:
            raise ValueError(
                f"activate_to_activate of {self.name} is {self.activate_to_activate} ns; it must be at most "
                f"activate_to_precharge + precharge = {row_cycle} ns: raise activate_to_precharge"
            )

    @property
    def memory_bytes(self) -> int:
        return WORD_BYTES << (BANK_BITS + self.row_bits + self.column_bits)


COMMON_32M = SdramPart("the common 32 MiB SDRAM")
"""What is right for each part that boards with a 32 MiB SDRAM carry: AS4C16M16SA-7 and AS4C32M16SB-7 (Alliance data
sheets of 2015, table 16; half of each row of the latter), W9825G6KH-75, IS42S16160-7, MT48LC16M16A2-75. The greatest of
each time. Those of the last three parts were not all compared with their data sheets."""
