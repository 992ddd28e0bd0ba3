"""The folder for what can be made again."""

import os
from pathlib import Path

from platformdirs import user_cache_dir

from sley.driver import BadRequest


def cache_folder() -> Path:
    """The user's cache folder for Sley, or the folder that the environment variable SLEY_CACHE names. Raises
    ``BadRequest`` if that is a file."""
    folder = os.environ.get("SLEY_CACHE")
    if folder and Path(folder).is_file():
        raise BadRequest(f"SLEY_CACHE={folder} is a file; name a folder, which need not exist, or unset the variable")
    return Path(folder) if folder else Path(user_cache_dir("sley", appauthor=False))
