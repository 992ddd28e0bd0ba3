"""The folder for what can be made again."""

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_folder() -> Path:
    """The user's cache folder for Sley, or the folder that the environment variable SLEY_CACHE names."""
    folder = os.environ.get("SLEY_CACHE")
    return Path(folder) if folder else Path(user_cache_dir("sley", appauthor=False))
