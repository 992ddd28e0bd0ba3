"""Faults that are planted in a portion of the project, and whether the tests of their folder notice.

A fault is a text in a file that is replaced by another. It is never planted in place: the portion is copied, and the
tests run with the copy in front of the path on which Python looks for modules.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
PORTIONS = sorted(path.stem for path in Path(__file__).parent.glob("*.toml"))
FAILED = 1
"""Exit status of pytest: a test failed."""
UNIMPORTABLE = 2
"""Another one: a file of tests failed as it was read."""


@dataclass(frozen=True)
class Fault:
    """``tests``: the folder whose tests must notice, behind those of it that are to run first. ``equivalent``: why
    nothing that a test may look at changes; if empty, a test must notice."""

    file: str
    tests: str
    what: str
    old: str
    new: str
    equivalent: str = ""

    @property
    def portion(self) -> str:
        return self.file.partition("/")[0]

    @property
    def source(self) -> str:
        return (ROOT / self.file).read_text()

    @property
    def planted(self) -> str:
        """The file with the fault."""
        if self.source.count(self.old) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {self.source.count(self.old)} times; it must be there once")
        return self.source.replace(self.old, self.new)

    def paths(self) -> list[Path]:
        """What of the tests must notice."""
        return [ROOT / path for path in self.tests.split()]


def read_faults(portion: str) -> list[Fault]:
    text = (Path(__file__).parent / f"{portion}.toml").read_text()
    return [Fault(**entry) for entry in tomllib.loads(text)["fault"]]


@contextmanager
def copied(fault: Fault) -> Iterator[Path]:
    """A copy of the fault's portion, with the fault in it."""
    with TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder) / fault.portion
        shutil.copytree(ROOT / fault.portion, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / Path(fault.file).relative_to(fault.portion)).write_text(fault.planted)
        yield copy


def first_failure(fault: Fault, seconds: int = 1200) -> str:
    """Runs the default tests of the fault's folder up to the first that fails: its name, or nothing."""
    with copied(fault) as copy:
        path = os.pathsep.join([str(copy), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no"]
        command += [f"--rootdir={ROOT}", *map(str, fault.paths())]
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            run = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no end in {seconds} s"
    if run.returncode not in (0, FAILED, UNIMPORTABLE):
        raise RuntimeError(f"pytest ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    named = [line.split()[1] for line in run.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return named[0] if run.returncode and named else "a test" if run.returncode else ""
