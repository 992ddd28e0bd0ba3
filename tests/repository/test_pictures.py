"""The committed pictures are what their script draws."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_pictures_are_current() -> None:
    command = [sys.executable, str(ROOT / "docs" / "pictures" / "draw.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_every_picture_is_on_a_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"pictures/([\w-]+\.svg)", page.read_text())}
    assert shown == {path.name for path in PICTURES}
