"""Every block's docstring is its data sheet, in one form: the sections below in their order, each parameter and each
port by its name and with its direction."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATEWARE = sorted(path for portion in ("hw", "fpga") for path in (ROOT / portion / "sley").rglob("*.py"))
SECTIONS = ("Parameters", "Members", "Raises", "Rules", "Latency", "Throughput", "Cost", "Source")
TITLE = re.compile(r"^(\S[^\n]*)\n-{3,}$", re.MULTILINE)
PROSE_TITLE = re.compile(rf"^\s*({'|'.join(SECTIONS)})\b[^.\n]*:", re.MULTILINE)
"""A section that is a paragraph: the form that is not wanted."""
ENTRY = re.compile(r"([A-Za-z_]\w*)(?:\[\w+\])?(?=(?:, [A-Za-z_]\w*(?:\[\w+\])?)* : (\w+))")
"""The names of an entry of Parameters or Members, and the first word of their type."""


def base_names(node: ast.ClassDef) -> set[str]:
    return {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}


def components() -> Iterator[tuple[str, ast.ClassDef]]:
    """Public subclasses of ``wiring.Component``, direct or not."""
    classes = [
        (path.relative_to(ROOT).as_posix(), node)
        for path in GATEWARE
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    known, before = {"Component"}, 0
    while len(known) != before:
        before = len(known)
        known |= {node.name for _, node in classes if base_names(node) & known}
    return ((path, node) for path, node in classes if base_names(node) & known and not node.name.startswith("_"))


COMPONENTS = [pytest.param(node, id=f"{path}:{node.name}") for path, node in components()]


def sections(node: ast.ClassDef) -> dict[str, str]:
    """Text by title, in the order of the docstring; what is before the first title is at ''."""
    text = ast.get_docstring(node) or ""
    found = list(TITLE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    parts = {"": text[: found[0].start()] if found else text}
    parts |= {match[1]: text[match.end() : end] for match, end in zip(found, ends, strict=True)}
    assert len(parts) == 1 + len(found), f"{node.name}: a section comes twice"
    return parts


def entries(section: str) -> dict[str, str]:
    """The names of a section, and how the type of each begins."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {match[1]: match[2] for line in lines for match in ENTRY.finditer(line)}


def init_of(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)


def parameters(node: ast.ClassDef) -> list[str]:
    init = init_of(node)
    return [arg.arg for arg in [*init.args.args[1:], *init.args.kwonlyargs]] if init else []


def ports(node: ast.ClassDef) -> dict[str, str | None]:
    """Annotated members, and those of the signature as far as it names them; with the direction if it is there."""
    named: dict[str, str | None] = {
        item.target.id: None
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    init = init_of(node)
    for display in ast.walk(init) if init else ():
        if isinstance(display, ast.Dict):
            for key, value in zip(display.keys, display.values, strict=True):
                direction = re.match(r"(In|Out)\(", ast.unparse(value))
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and direction:
                    named[key.value] = direction[1]
    return named


@pytest.mark.parametrize("node", COMPONENTS)
def test_sections(node: ast.ClassDef) -> None:
    """Titles from the fixed set, in its order; no section hides in a paragraph."""
    titles = [title for title in sections(node) if title]
    assert titles == [title for title in SECTIONS if title in titles], f"{node.name} has {titles}"
    hidden = PROSE_TITLE.search(ast.get_docstring(node) or "")
    assert not hidden, f"{node.name}: {hidden and hidden[0].strip()!r} must be a section"
    assert sections(node)[""].strip(), f"{node.name} has no summary"


@pytest.mark.parametrize("node", COMPONENTS)
def test_parameters_are_named(node: ast.ClassDef) -> None:
    found = entries(sections(node).get("Parameters", ""))
    missing = [name for name in parameters(node) if name not in found]
    assert not missing, f"{node.name} does not describe its parameters {missing}"


@pytest.mark.parametrize("node", COMPONENTS)
def test_ports_are_named(node: ast.ClassDef) -> None:
    found = entries(sections(node).get("Members", ""))
    for name, direction in ports(node).items():
        assert name in found, f"{node.name} does not describe its port {name}"
        if direction:
            assert found[name] == direction, f"{node.name}: {name} is an {direction}, not an {found[name]}"


@pytest.mark.parametrize("node", COMPONENTS)
def test_checks_are_named(node: ast.ClassDef) -> None:
    """Who checks parameters says what is raised."""
    init = init_of(node)
    if init and any(isinstance(n, ast.Raise) for n in ast.walk(init)):
        assert "Raises" in sections(node), f"{node.name} has no section Raises"
