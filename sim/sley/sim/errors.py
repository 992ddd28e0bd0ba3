"""The errors of engines that are built here."""

from sley.abi.transport import EngineError


class BuildError(EngineError):
    """A tool is missing or failed."""


class FastError(EngineError):
    """The design cannot be simulated by engine ``fast``, or a name or value given to it is wrong."""
