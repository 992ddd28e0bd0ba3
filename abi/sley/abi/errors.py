"""The root of Sley's errors. Each portion derives its own from it; every message names value, bound and remedy."""


class SleyError(Exception):
    """Root of every error that Sley raises for what a user can do something about."""
