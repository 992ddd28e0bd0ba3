"""USB of luna: packets, descriptors, endpoints and links of USB 2 and 3, and its serial interfaces."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Signal
from bench import cases, lockstep
from package import Package
from usb_packets import LINK_PACKETS, PACKETS

utmi = Package("luna.gateware.interface.utmi")


def luna(name: str) -> Package:
    return Package(f"luna.gateware.{name}")


def with_utmi(name: str, kind: str, **options: Any) -> Callable[[], Any]:
    """A block at the bus of a USB 2 transceiver."""
    return lambda: getattr(luna(name), kind)(utmi=utmi.UTMIInterface(), **options)


def descriptors() -> Any:
    emitters = Package("usb_protocol.emitters")
    collection = emitters.DeviceDescriptorCollection()
    with collection.DeviceDescriptor() as device:
        device.idVendor, device.idProduct, device.iProduct, device.bNumConfigurations = 0x1209, 1, "thing", 1
    with collection.ConfigurationDescriptor() as configuration, configuration.InterfaceDescriptor() as interface:
        interface.bInterfaceNumber = 0
        with interface.EndpointDescriptor() as endpoint:
            endpoint.bEndpointAddress, endpoint.wMaxPacketSize = 0x81, 64
    return collection


def phy_pads() -> Any:
    records = Package("amaranth.hdl.rec")
    pin = [("i", 1), ("o", 1), ("oe", 1)]
    return records.Record([("d_p", pin), ("d_n", pin), ("pullup", [("o", 1)])])


def i2c_pads() -> Any:
    records = Package("amaranth.hdl.rec")
    return records.Record([(name, [("i", 1), ("o", 1), ("oe", 1)]) for name in ("scl", "sda")])


def gateware_phy() -> Any:
    made = luna("interface.gateware_phy.phy").GatewarePHY(io=phy_pads())
    made.pads = made._io
    return made


def i2c(kind: str, **options: Any) -> Any:
    pads = i2c_pads()
    made = getattr(luna("interface.i2c"), kind)(pads=pads, period_cyc=8, **options)
    made.pads = pads
    return made


def super_speed(block: str, name: str, **options: Any) -> Any:
    """A block at a transceiver of USB 3."""
    phy = luna("interface.pipe").PIPEInterface(width=4)
    made = getattr(luna(block), name)(phy=phy, **options)
    made.pipe = {key: value for key, value in vars(phy).items() if isinstance(value, Signal)}
    return made


def device() -> Any:
    """A whole device with a control endpoint."""
    made = luna("usb.usb2.device").USBDevice(bus=utmi.UTMIInterface(), handle_clocking=False)
    made.add_standard_control_endpoint(descriptors())
    return made


def shared(block: str, kind: str) -> Any:
    """A block that two others share."""
    made = getattr(luna("usb.usb2.packet"), block)()
    made.interfaces = [getattr(luna("usb.usb2.packet"), kind)() for _ in range(2)]
    for interface in made.interfaces:
        made.add_interface(interface)
    return made


SYMBOLS = (0xF7FBFBFB, 0xFBFBFBF7, 0xF7FEFEFE, 0xFEFEFEF7, 0xF7FDFDFD, 0x5C5C5C5C, 0xF75C5C5C, 0xBCBCBCBC, 0x4A4A4A4A)
"""Beginnings of packets, commands, data and training sets of USB 3."""

WORDS = {
    "sink__payload": SYMBOLS,
    "sink__ctrl": (15, 15, 0, 0, 1, 8),
    "interface__tokenizer__endpoint": (1, 1, 2, 3, 0),
    "interface__tokenizer__pid": (9, 1, 13),
    "tokenizer__pid": (9, 1, 13),
}

DESIGNS: dict[str, Callable[[], Any]] = {
    "tokens": with_utmi("usb.usb2.packet", "USBTokenDetector"),
    "crc_16": lambda: shared("USBDataPacketCRC", "DataCRCInterface"),
    "receiver": with_utmi("usb.usb2.packet", "USBDataPacketReceiver", standalone=True, speed=0),
    "generator": lambda: luna("usb.usb2.packet").USBDataPacketGenerator(standalone=True),
    "transfers": lambda: luna("usb.usb2.transfer").USBInTransferManager(32),
    "isochronous_out": lambda: luna("usb.usb2.endpoints.isochronous_stream_out").USBIsochronousStreamOutEndpoint(
        endpoint_number=2, max_packet_size=32
    ),
    "stream_out": lambda: luna("usb.usb2.endpoints.stream").USBStreamOutEndpoint(endpoint_number=1, max_packet_size=16),
    "device": device,
    "gateware_phy": gateware_phy,
    "i2c_initiator": lambda: i2c("I2CInitiator"),
    "boundaries": lambda: luna("usb.stream").USBOutStreamBoundaryDetector(),
    "phy_sender": lambda: luna("interface.gateware_phy.transmitter").TxPipeline(),
    "phy_clock_recovery": lambda: luna("interface.gateware_phy.receiver").RxClockDataRecovery(Signal(), Signal()),
    "ulpi_sender": lambda: luna("interface.ulpi").ULPITransmitTranslator(),
    "spi_command": lambda: luna("interface.spi").SPICommandInterface(),
    "transactional_fifo": lambda: luna("memory").TransactionalizedFIFO(width=8, depth=13),
    "serializer": lambda: luna("stream.generator").StreamSerializer(data_length=5),
    "logic_analyzer_stream": lambda: luna("debug.ila").StreamILA(
        signals=[Signal(5, name="a"), Signal(12, name="b")], sample_depth=16, o_domain="usb"
    ),
    "link_crc_32": lambda: luna("usb.usb3.link.crc").DataPacketPayloadCRC(),
    "link_receiver": lambda: luna("usb.usb3.link.receiver").HeaderPacketReceiver(),
    "link_data_out": lambda: luna("usb.usb3.link.data").DataPacketTransmitter(),
    "word_aligner": lambda: luna("usb.usb3.physical.alignment").RxWordAligner(),
    "skip_inserter": lambda: luna("usb.usb3.physical.ctc").CTCSkipInserter(),
    "scrambler": lambda: luna("usb.usb3.physical.scrambling").Scrambler(),
    "lfps": lambda: luna("usb.usb3.physical.lfps").LFPSTransceiver(),
}


MORE: dict[str, Callable[[], Any]] = {
    "handshakes": with_utmi("usb.usb2.packet", "USBHandshakeDetector"),
    "deserializer": with_utmi("usb.usb2.packet", "USBDataPacketDeserializer", create_crc_generator=True),
    "handshake_generator": lambda: luna("usb.usb2.packet").USBHandshakeGenerator(),
    "interpacket_timer": lambda: shared("USBInterpacketTimer", "InterpacketTimerInterface"),
    "setup": with_utmi("usb.usb2.request", "USBSetupDecoder"),
    "reset_sequencer": lambda: luna("usb.usb2.reset").USBResetSequencer(),
    "descriptor_block": lambda: luna("usb.usb2.descriptor").GetDescriptorHandlerBlock(descriptors()),
    "descriptor_logic": lambda: luna("usb.usb2.descriptor").GetDescriptorHandlerDistributed(descriptors()),
    "standard_requests": lambda: luna("usb.request.standard").StandardRequestHandler(descriptors()),
    "isochronous_in": lambda: luna("usb.usb2.endpoints.isochronous").USBIsochronousInEndpoint(
        endpoint_number=1, max_packet_size=48
    ),
    "status_in": lambda: luna("usb.usb2.endpoints.status").USBSignalInEndpoint(width=24, endpoint_number=3),
    "stream_in": lambda: luna("usb.usb2.endpoints.stream").USBStreamInEndpoint(endpoint_number=1, max_packet_size=16),
    "bytes_in": lambda: luna("usb.usb2.endpoints.stream").USBMultibyteStreamInEndpoint(
        byte_width=3, endpoint_number=1, max_packet_size=16
    ),
    "i2c_registers": lambda: i2c("I2CRegisterInterface", address=0x1A, data_bytes=2),
    "phy_reset": lambda: luna("architecture.car").PHYResetController(),
    "super_speed_device": lambda: super_speed("usb.usb3.device", "USBSuperSpeedDevice", sync_frequency=60e6),
    "shifter_out": lambda: luna("interface.gateware_phy.transmitter").TxShifter(8),
    "phy_receiver": lambda: luna("interface.gateware_phy.receiver").RxPipeline(),
    "ulpi_registers": lambda: luna("interface.ulpi").ULPIRegisterWindow(),
    "spi_device": lambda: luna("interface.spi").SPIDeviceInterface(word_size=12, clock_polarity=1, clock_phase=1),
    "uart": lambda: luna("interface.uart").UARTTransmitter(divisor=5),
    "uart_words": lambda: luna("interface.uart").UARTMultibyteTransmitter(byte_width=3, divisor=4),
    "constants": lambda: luna("stream.generator").ConstantStreamGenerator(b"constant data", max_length_width=5),
    "logic_analyzer": lambda: luna("debug.ila").IntegratedLogicAnalyzer(
        signals=[Signal(5, name="a"), Signal(12, name="b")], sample_depth=16
    ),
    "link_crc_5_16": lambda: luna("usb.usb3.link.crc").HeaderPacketCRC(),
    "link_states": lambda: luna("usb.usb3.link.ltssm").LTSSMController(ss_clock_frequency=1000),
    "training_detector": lambda: luna("usb.usb3.link.ordered_sets").TSTransceiver(),
    "link_transmitter": lambda: luna("usb.usb3.link.transmitter").PacketTransmitter(),
    "link_data_in": lambda: luna("usb.usb3.link.data").DataPacketReceiver(),
    "link_commands": lambda: luna("usb.usb3.link.command").LinkCommandDetector(),
    "link_idle": lambda: luna("usb.usb3.link.idle").IdleHandshakeHandler(),
    "skip_remover": lambda: luna("usb.usb3.physical.ctc").CTCSkipRemover(),
    "descrambler": lambda: luna("usb.usb3.physical.scrambling").Descrambler(),
    "super_speed_setup": lambda: luna("usb.usb3.application.request").SuperSpeedSetupDecoder(),
    "super_speed_descriptors": lambda: luna("usb.usb3.application.descriptor").GetDescriptorHandler(descriptors()),
    "super_speed_stream_in": lambda: luna("usb.usb3.endpoints.stream").SuperSpeedStreamInEndpoint(endpoint_number=1),
    "transactions": lambda: luna("usb.usb3.protocol.transaction").TransactionPacketGenerator(),
    "super_speed_physical": lambda: super_speed("usb.usb3.physical.layer", "USB3PhysicalLayer", sync_frequency=60e6),
}
"""Those that CI has no time for."""


@pytest.mark.parametrize("name", cases(DESIGNS, MORE))
def test_lockstep(name: str) -> None:
    lockstep((DESIGNS | MORE)[name], words=WORDS, packets=LINK_PACKETS if name.startswith("link_") else PACKETS)
