"""The errors of all engines."""


class EngineError(OSError):
    """The engine could not be built or opened, or could not answer an access. Says what to do about it."""


class BuildError(EngineError):
    """A tool is missing or failed."""


class FastError(EngineError):
    """The design cannot be simulated by engine ``fast``, or a name or value given to it is wrong."""
