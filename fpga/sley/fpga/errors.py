"""The error of implementing a design."""

from sley.abi.errors import SleyError


class FlowError(SleyError, OSError):
    """A design could not be implemented. Says which step failed and what to do about it."""
