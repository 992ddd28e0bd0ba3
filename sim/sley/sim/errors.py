"""The error of all engines."""


class EngineError(OSError):
    """The engine could not be built or opened, or could not answer an access. Says what to do about it."""
