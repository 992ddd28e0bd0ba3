"""The memory map of IP-XACT, made of the register map's SystemRDL by PeakRDL."""

import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from sley.abi import install
from sley.abi.errors import SleyError


class MissingToolError(SleyError):
    """A package of the extra ``ip`` is not installed."""


def memory_maps(systemrdl: str, namespace: str) -> ET.Element:
    """The element ``memoryMaps`` for the SystemRDL of a chip; its one map has the name ``registers``."""
    try:
        from peakrdl_ipxact.exporter import IPXACTExporter
        from systemrdl import RDLCompiler
    except ImportError as error:
        raise MissingToolError(f"{error}; the export needs the extra ip: {install.extra('ip')}") from None
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "sley.rdl"), Path(folder, "sley.xml")
        source.write_text(systemrdl)
        compiler = RDLCompiler()
        compiler.compile_file(str(source))
        IPXACTExporter().export(compiler.elaborate(), str(result))
        maps = ET.parse(result).getroot().find(f"{{{namespace}}}memoryMaps")
    assert maps is not None
    names = [*maps.iter(f"{{{namespace}}}memoryMap")]
    (map_name,) = (entry.find(f"{{{namespace}}}name") for entry in names)
    assert map_name is not None
    map_name.text = "registers"
    return maps
