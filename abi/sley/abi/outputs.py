"""Files that a command is told to write: whether that can work is known before the work begins."""

import os
from pathlib import Path

from sley.abi.errors import SleyError


class OutputError(SleyError):
    """A file that a command was told to write cannot be written."""


def check_output(*paths: Path | None) -> None:
    """Raises ``OutputError`` for a file that cannot be made or overwritten. ``None`` stands for no file."""
    for path in paths:
        if path is None:
            continue
        folder = path.parent
        if not folder.is_dir():
            raise OutputError(f"{path} cannot be written: there is no folder {folder}; make it, or name another file")
        if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
            why = "it is a folder" if path.is_dir() else "you may not write there"
            raise OutputError(f"{path} cannot be written: {why}; name another file")
