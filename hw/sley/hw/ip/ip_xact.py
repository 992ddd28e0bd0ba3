"""IP-XACT (IEEE 1685-2014) of a chip: interfaces with the port maps of the AMBA standard, registers, ports, files."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from amaranth.lib import wiring

from sley.abi.config import ChipConfig
from sley.hw.elaboration.emission import TOP
from sley.hw.ip.registers import memory_maps

STANDARD = "1685-2014"
NAMESPACE = f"http://www.accellera.org/XMLSchema/IPXACT/{STANDARD}"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
LIBRARY = "npu"
AMBA = ("amba.com", "AMBA4", "r0p0_0")
SIGNAL = ("xilinx.com", "signal", "1.0")
"""Clock, reset and interrupt have no definition of a standards body; this vendor's are the ones that tools know."""

Port = tuple[str, int]
"""Direction (``in`` or ``out``) and width."""


def module_ports(signature: wiring.Signature) -> dict[str, Port]:
    """Ports of a component's module by name, clock and reset first."""
    ports: dict[str, Port] = {"clk": ("in", 1), "rst": ("in", 1)}
    for path, member, value in signature.flatten(signature.create()):
        name = "_".join(str(part) for part in path)
        ports[name] = ("in" if member.flow == wiring.In else "out", len(value))
    return ports


def ip_xact(
    config: ChipConfig, ports: Mapping[str, Port], systemrdl: str, files: Mapping[str, Sequence[tuple[str, str]]]
) -> str:
    """Text of the description. ``files``: path and IP-XACT file type of every file, by name of the file set."""
    ET.register_namespace("ipxact", NAMESPACE)
    ET.register_namespace("xsi", INSTANCE)
    component = _node(
        "component",
        *_identifier("sley", LIBRARY, f"{TOP}_{config.name}", version("sley")),
        _node(
            "busInterfaces",
            _bus("s_axil", "Registers.", (*AMBA, "AXI4-Lite"), _slave(), _amba_ports("s_axil", ports)),
            _bus("m_axi", "Device memory.", (*AMBA, "AXI4"), _master(), _amba_ports("m_axi", ports)),
            _bus(
                "clk",
                "Clock of everything.",
                (*SIGNAL, "clock"),
                _node("slave"),
                {"CLK": "clk"},
                {"ASSOCIATED_BUSIF": "s_axil:m_axi", "ASSOCIATED_RESET": "rst"},
            ),
            _bus(
                "rst",
                "Synchronous reset.",
                (*SIGNAL, "reset"),
                _node("slave"),
                {"RST": "rst"},
                {"POLARITY": "ACTIVE_HIGH"},
            ),
            _bus(
                "irq",
                "Interrupt.",
                (*SIGNAL, "interrupt"),
                _node("master"),
                {"INTERRUPT": "irq"},
                {"SENSITIVITY": "LEVEL_HIGH"},
            ),
        ),
        _node(
            "addressSpaces",
            _node(
                "addressSpace",
                _node("name", "memory"),
                _node("description", "Device memory, as the chip's physical addresses name it."),
                _node("range", f"'h{1 << config.addr_bits:x}"),
                _node("width", str(8 * config.bus_bytes)),
            ),
        ),
        memory_maps(systemrdl, NAMESPACE),
        _node(
            "model",
            _node(
                "views",
                _node(
                    "view",
                    _node("name", "rtl"),
                    _node("envIdentifier", "verilog:synthesis:"),
                    _node("envIdentifier", "verilog:simulation:"),
                    _node("componentInstantiationRef", "verilog"),
                ),
            ),
            _node(
                "instantiations",
                _node(
                    "componentInstantiation",
                    _node("name", "verilog"),
                    _node("language", "verilog"),
                    _node("moduleName", TOP),
                    _node("fileSetRef", _node("localName", "rtl")),
                ),
            ),
            _node("ports", *(_port(name, *port) for name, port in ports.items())),
        ),
        _node("fileSets", *(_file_set(name, entries) for name, entries in files.items())),
        _node("description", f"Sley neural processing unit, configuration {config.name}, hash {config.hash:08x}."),
        _node(
            "parameters",
            *(
                _parameter(name, str(value), parameterId=name, type="int", resolve="immediate")
                for name, value in config.capabilities.items()
            ),
        ),
    )
    component.set(f"{{{INSTANCE}}}schemaLocation", f"{NAMESPACE} {NAMESPACE}/index.xsd")
    ET.indent(component)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(component, encoding="unicode")}\n'


def _node(tag: str, *children: ET.Element | str, **attributes: str) -> ET.Element:
    element = ET.Element(f"{{{NAMESPACE}}}{tag}", attributes)
    for child in children:
        if isinstance(child, str):
            element.text = child
        else:
            element.append(child)
    return element


def _identifier(vendor: str, library: str, name: str, number: str) -> list[ET.Element]:
    return [_node("vendor", vendor), _node("library", library), _node("name", name), _node("version", number)]


def _bus(
    name: str,
    description: str,
    definition: tuple[str, str, str, str],
    mode: ET.Element,
    port_map: Mapping[str, str],
    parameters: Mapping[str, str] | None = None,
) -> ET.Element:
    """``port_map``: physical names by the logical ones of the bus definition."""
    vendor, library, number, bus = definition
    reference = {"vendor": vendor, "library": library, "version": number}
    maps = (
        _node(
            "portMap",
            _node("logicalPort", _node("name", logical)),
            _node("physicalPort", _node("name", physical)),
        )
        for logical, physical in port_map.items()
    )
    return _node(
        "busInterface",
        _node("name", name),
        _node("description", description),
        _node("busType", name=bus, **reference),
        _node(
            "abstractionTypes",
            _node(
                "abstractionType",
                _node("abstractionRef", name=f"{bus}_rtl", **reference),
                _node("portMaps", *maps),
            ),
        ),
        mode,
        *([_node("parameters", *(_parameter(*item) for item in parameters.items()))] if parameters else []),
    )


def _slave() -> ET.Element:
    return _node("slave", _node("memoryMapRef", memoryMapRef="registers"))


def _master() -> ET.Element:
    return _node("master", _node("addressSpaceRef", addressSpaceRef="memory"))


def _amba_ports(prefix: str, ports: Mapping[str, Port]) -> dict[str, str]:
    """The standard's names are those of the ports behind the prefix, in capitals."""
    return {name.removeprefix(f"{prefix}_").upper(): name for name in ports if name.startswith(f"{prefix}_")}


def _port(name: str, direction: str, width: int) -> ET.Element:
    wire = _node("wire", _node("direction", direction))
    if width > 1:
        wire.append(
            _node("vectors", _node("vector", _node("left", str(width - 1)), _node("right", "0"))),
        )
    return _node("port", _node("name", name), wire)


def _parameter(name: str, value: str, **attributes: str) -> ET.Element:
    return _node("parameter", _node("name", name), _node("value", value), **attributes)


def _file_set(name: str, entries: Sequence[tuple[str, str]]) -> ET.Element:
    return _node(
        "fileSet",
        _node("name", name),
        *(
            _node(
                "file",
                _node("name", path),
                _node("fileType", kind, **({"user": path.rpartition(".")[2]} if kind == "user" else {})),
            )
            for path, kind in entries
        ),
    )
