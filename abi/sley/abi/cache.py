"""What the user is told when the cache cannot be used, the same by all that keep something there."""

import os
from pathlib import Path


def unusable(folder: Path, error: OSError) -> str:
    """The error message for a cache folder in which nothing can be made."""
    origin = "SLEY_CACHE is" if os.environ.get("SLEY_CACHE") else "the cache folder is"
    return (
        f"{origin} {folder}, where nothing can be written ({error.strerror or error}); "
        "set SLEY_CACHE to a folder that you may write to, or to one that does not exist yet"
    )
