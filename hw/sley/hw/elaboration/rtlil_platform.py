"""The platform of an emission to RTLIL."""

import hashlib

from amaranth.hdl import Instance
from amaranth.lib.memory import Memory

from sley.hw.elaboration.memory_text import memory_instance, memory_text
from sley.hw.elaboration.shared import EmissionPlatform


class RtlilPlatform(EmissionPlatform):
    """Writes the modules of memories itself, equal ones once, and makes modules of units.

    For designs whose domains all have their rising edge active, as the chip's has: a memory does not know its edge yet.
    """

    splits = True

    def get_memory(self, memory: Memory) -> Instance:
        """Amaranth asks for this in place of a memory of its own."""
        text = memory_text(memory)
        name = f"sley_memory_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        self.written[name] = f"module \\{name}\n{text}"
        return memory_instance(memory, name)
