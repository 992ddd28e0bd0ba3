"""The error of implementing a design."""


class FlowError(OSError):
    """A design could not be implemented. Says which step failed and what to do about it."""
