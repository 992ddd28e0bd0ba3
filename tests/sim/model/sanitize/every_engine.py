"""A plugin of pytest: whatever a test opens is the engine ``model`` with all sanitizers, and with the size of memory
that was asked for."""

from sley.abi.transport import Transport
from sley.driver import device
from sley.driver.hardware import engines

_open = engines.open_transport


def open_transport(url: str) -> Transport:
    """``fast:nano?memory=1M`` as ``model:nano?memory=1M&sanitize=...``."""
    engine, spec, options = engines.parse_url(url)
    if engine not in ("fast", "model", "pysim") or options.get("values") == "numpy":
        return _open(url)
    memory = f"memory={options['memory']}&" if "memory" in options else ""
    return _open(f"model:{spec or 'base'}?{memory}sanitize=init,race,memory,sync")


device.open_transport = open_transport
