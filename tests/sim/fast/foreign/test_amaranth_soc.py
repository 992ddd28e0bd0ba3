"""Buses, registers and peripherals of amaranth-soc and amaranth-stdio as luna-soc brings them, and its own cores."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module
from bench import cases, lockstep
from found_ports import found_ports
from package import Package

VENDOR = "luna_soc.gateware.vendor"
csr, event = Package(f"{VENDOR}.amaranth_soc.csr"), Package(f"{VENDOR}.amaranth_soc.event")
gpio, maps = Package(f"{VENDOR}.amaranth_soc.gpio"), Package(f"{VENDOR}.amaranth_soc.memory")
wishbone, sram = Package(f"{VENDOR}.amaranth_soc.wishbone"), Package(f"{VENDOR}.amaranth_soc.wishbone.sram")
bridge, serial = Package(f"{VENDOR}.amaranth_soc.csr.wishbone"), Package(f"{VENDOR}.amaranth_stdio.serial")
cpu = Package("luna_soc.gateware.cpu.ic")


def core(name: str) -> Package:
    return Package(f"luna_soc.gateware.core.{name}")


def register_bank(data_width: int) -> Any:
    action, field = csr.action, csr.Field
    builder = csr.Builder(addr_width=6, data_width=data_width)
    fields = {"go": field(action.W, 1), "mode": field(action.RW, 5, init=9), "state": field(action.R, 7)}
    builder.add("control", csr.Register(fields, access="rw"))
    builder.add("flags", csr.Register({"set": field(action.RW1S, 3), "clear": field(action.RW1C, 4)}, access="rw"))
    wide = {"words": [field(action.RW, 20, init=number) for number in range(3)], "_": field(action.ResR0W0, 2)}
    builder.add("wide", csr.Register(wide, access="rw"), offset=16)
    return csr.Bridge(builder.as_memory_map())


def csr_decoder() -> Any:
    decoder = csr.Decoder(addr_width=9, data_width=8)
    banks = [register_bank(8) for _ in range(3)]
    for number, bank in enumerate(banks):
        decoder.add(bank.bus, name=f"bank{number}")
    return Together(decoder, banks)


def events(trigger: str) -> Any:
    table = event.EventMap()
    sources = [event.Source(trigger=kind, path=(f"s{n}",)) for n, kind in enumerate(("level", "rise", "fall"))]
    for source in sources:
        table.add(source)
    return Together(csr.event.EventMonitor(table, trigger=trigger, data_width=8), [], sources=sources)


def wishbone_decoder() -> Any:
    decoder = wishbone.Decoder(addr_width=10, data_width=32, granularity=8, features={"err", "stall", "lock"})
    memories = [sram.WishboneSRAM(size=size, data_width=32, granularity=8) for size in (64, 128)]
    for number, memory in enumerate(memories):
        decoder.add(memory.wb_bus, name=f"memory{number}")
    return Together(decoder, memories)


def wishbone_arbiter() -> Any:
    shape = {"addr_width": 8, "data_width": 16, "granularity": 8}
    arbiter = wishbone.Arbiter(**shape, features={"err", "lock", "cti", "bte"})
    buses = [
        wishbone.Interface(**shape, features=features)
        for features in ({"err"}, {"err", "lock"}, {"err", "lock", "cti", "bte"})
    ]
    for bus in buses:
        arbiter.add(bus)
    return Together(arbiter, [], buses=buses)


def wishbone_to_csr() -> Any:
    bank = register_bank(8)
    return Together(bridge.WishboneCSRBridge(bank.bus, data_width=32), [bank])


class Together(Elaboratable):
    """A bus and what hangs on it. All their ports are ports; those that are connected are outputs."""

    def __init__(self, head: Any, parts: list[Any], **members: Any) -> None:
        self._head, self._parts = head, parts
        self.head = {name: getattr(head, name) for name in head.signature.members}
        self.parts = [{name: getattr(part, name) for name in part.signature.members} for part in parts]
        self.members = members

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.head = self._head
        for number, part in enumerate(self._parts):
            m.submodules[f"part{number}"] = part
        return m


DESIGNS: dict[str, Callable[[], Any]] = {
    "registers_8": lambda: register_bank(8),
    "events_level": lambda: events("level"),
    "gpio": lambda: gpio.Peripheral(pin_count=11, addr_width=4, data_width=8),
    "wishbone_memory": lambda: sram.WishboneSRAM(size=64, data_width=32, granularity=8, init=[1, 2, 3]),
    "wishbone_decoder": wishbone_decoder,
    "wishbone_arbiter": wishbone_arbiter,
    "wishbone_to_csr": wishbone_to_csr,
    "serial_both": lambda: serial.AsyncSerial(divisor=7, divisor_bits=9, parity="mark"),
    "uart": lambda: core("uart").Peripheral(divisor=5),
    "spi_memory": lambda: core("spiflash.mmap").SPIFlashMemoryMap(size=1024, name="flash"),
    "spi_crossbar": lambda: core("spiflash.port").SPIControlPortCrossbar(num_ports=3),
    "usb_device": lambda: core("usb2.device").Peripheral(),
    "usb_out": lambda: core("usb2.ep_out").Peripheral(max_packet_size=16),
}


MORE: dict[str, Callable[[], Any]] = {
    "registers_32": lambda: register_bank(32),
    "csr_decoder": csr_decoder,
    "events_rise": lambda: events("rise"),
    "gpio_no_stages": lambda: gpio.Peripheral(pin_count=3, addr_width=2, data_width=16, input_stages=0),
    "wishbone_rom": lambda: sram.WishboneSRAM(size=16, data_width=16, writable=False, init=range(16)),
    "serial_receiver": lambda: serial.AsyncSerialRX(divisor=5, parity="even"),
    "serial_sender": lambda: serial.AsyncSerialTX(divisor=3, data_bits=7, parity="odd"),
    "timer": lambda: core("timer").Peripheral(width=24),
    "block_ram": lambda: core("blockram").Peripheral(size=128),
    "spi_controller": lambda: core("spiflash").SPIController(rx_depth=4, tx_depth=4),
    "spi_turns": lambda: core("spiflash.utils").RoundRobin(count=5),
    "usb_control": lambda: core("usb2.ep_control").Peripheral(),
    "usb_in": lambda: core("usb2.ep_in").Peripheral(max_packet_size=16),
}
"""Those that CI has no time for."""


WITHIN = {"spi_memory", "usb_device", "usb_control", "usb_in", "usb_out"}
"""Those whose other half is an attribute and no member of the signature."""


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name], ports=found_ports if name in WITHIN else None)
