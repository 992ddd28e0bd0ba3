"""The blocks of code in README and docs, and what their shell commands name."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main

from sley.runtime.cli import app

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md", *(ROOT / "docs").rglob("*.md")]
PAGES = sorted(file.relative_to(ROOT).as_posix() for file in FILES)
LANGUAGES = ("python", "sh", "text")
BY_HAND = {"board", "long"}
"""Marks of blocks that no test runs: they need a board, or minutes, a network or a second shell. ``sh long`` or, where
mkdocs reads it, ``{.sh .long}``. The record of documents says when each of their commands last ran."""
MARKS = {*BY_HAND, "slow"}
"""Blocks of shell commands marked slow take up to some minutes; ``pytest -m slow`` runs them."""

BENCH = ROOT / "hw/sley/hw/ip"
"""It has the files of an exported chip's bench, with the suffix .txt."""

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```[ ]*$", re.DOTALL | re.MULTILINE)
_OTHERS = {"verilator", "iverilog", "openFPGALoader"}
"""Commands that are not of this repository."""


@dataclass(frozen=True)
class Block:
    """A block of code: where it begins, its language and marks."""

    place: str
    language: str
    marks: frozenset[str]
    text: str


def page_blocks(page: str, language: str | None = None) -> list[Block]:
    """Blocks of a page; of one language those that run in a test: all of ``sh``, of others those without a mark."""
    text = (ROOT / page).read_text()
    blocks = []
    for match in _FENCE.finditer(text):
        words = re.findall(r"\w+", re.sub(r'\w+="[^"]*"', "", match[2])) or [""]
        place = f"{page}:{text.count(chr(10), 0, match.start()) + 1}"
        blocks.append(Block(place, words[0], frozenset(words[1:]), match[3]))
    if language is None:
        return blocks
    return [block for block in blocks if block.language == language and (language == "sh" or not block.marks)]


def run_by_tests() -> list[Block]:
    """Blocks of shell commands of all pages, but for those that are run by hand."""
    return [block for page in PAGES for block in page_blocks(page, "sh") if not block.marks & BY_HAND]


def run_by_hand(page: str) -> list[tuple[str, bool]]:
    """The lines of a page's blocks that no test runs, without comments, and whether they need a board. Of Python the
    first line stands for the block."""
    found = []
    for block in page_blocks(page):
        if block.marks & BY_HAND:
            lines = block.text.replace("\\\n", " ").splitlines()
            for line in lines[:1] if block.language == "python" else lines:
                if text := line.partition(" #")[0].strip():
                    found.append((text, "board" in block.marks))
    return found


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command, without settings of variables in front."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(re.sub(r'"?\$\((.*?)\)"?', r"; \1", line), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|"):
                while words and re.match(r"[A-Z_]+=", words[0]):
                    words.pop(0)
                if words:
                    yield words
                words = []
            else:
                words.append(word)


def check_commands(text: str, place: str) -> None:
    """Asserts that all commands exist, as in a shell that starts in the repository."""
    folder = ROOT
    for words in commands(text):
        folder = check_command(words, folder, place)


def check_command(words: list[str], folder: Path, place: str) -> Path:
    """Asserts that a command, its options and the files it names exist. The folder that the next one runs in."""
    name, *arguments = words
    name = name.rpartition("/")[2] if name.startswith(".venv/bin/") else name
    if name == "sley":
        _parse(arguments, place)
    elif name == "cd":
        if arguments:
            assert (folder / arguments[0]).is_dir(), f"{place}: {arguments[0]} does not exist"
            return folder / arguments[0]
    elif name == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extra in re.findall(r"\w+", " ".join(re.findall(r"\[(.*?)\]", " ".join(arguments)))):
            assert extra in known, f"{place}: there is no extra {extra}"
    elif name == "git":
        if arguments[:1] == ["apply"]:
            _check_files(arguments, folder, place)
    elif name in ("pytest", "python", "python3", "."):
        if arguments[:1] not in (["-m"], [".venv/bin/activate"]) or name == "pytest":
            _check_files(arguments, folder, place)
    else:
        assert name in _OTHERS, f"{place}: no test knows the command {name}"
    return folder


def _check_files(arguments: list[str], folder: Path, place: str) -> None:
    for argument in arguments:
        file = argument.partition("::")[0]
        if "/" in file or file.endswith(".py"):
            exists = (folder / file).exists() or any(BENCH.rglob(f"{Path(file).name}.txt"))
            assert exists, f"{place}: {file} does not exist"


def _parse(arguments: list[str], place: str) -> None:
    """Asserts that the command line is one of ``sley``, without running it."""
    command: Any = typer.main.get_command(app)
    name, context = "sley", None
    try:
        while True:
            context = command.make_context(name, list(arguments), parent=context)
            if not hasattr(command, "resolve_command"):
                return
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            name, command, arguments = command.resolve_command(context, rest)
    except Exception as error:
        raise AssertionError(
            f"{place}: sley {name} {arguments}: {type(error).__name__} {getattr(error, 'message', error)}"
        ) from None
