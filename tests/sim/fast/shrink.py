"""Makes the text of a failing design smaller."""

import ast
import copy
import itertools
import time
from collections.abc import Callable, Iterator

STAND_INS = ("Const(0, 1)", "Const(1, 1)", "Const(-1, 8)")
"""What may take the place of any expression."""


def shrink(source: str, fails: Callable[[str], bool], seconds: float) -> str:
    """The smallest text found, within so many seconds, that still ``fails``, which must not raise."""
    end = time.monotonic() + seconds
    tree, tried = ast.parse(source), {source}
    improved = True
    while improved:
        improved = False
        for edits in (_results, _removals, _unwrappings, _replacements, _numbers):
            position = 0
            while True:
                candidate = copy.deepcopy(tree)
                edit = next(itertools.islice(edits(candidate), position, None), None)
                if edit is None:
                    break
                if time.monotonic() > end:
                    return _text(tree)
                edit()
                text = _text(candidate)
                if text not in tried and fails(text):
                    tree, improved = ast.parse(text), True
                else:
                    position += 1
                tried.add(text)
    return _text(tree)


def _text(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


Edit = Callable[[], None]


def _results(tree: ast.Module) -> Iterator[Edit]:
    """Leaves out what the design returns, first many items at once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return):
            inputs, outputs, memories = node.value.elts
            for items in ((memories.keys, memories.values), (outputs.elts,), (inputs.elts,)):
                size = len(items[0])
                while size:
                    for start in range(0, len(items[0]), size):
                        yield lambda items=items, start=start, size=size: [
                            item.__delitem__(slice(start, start + size)) for item in items
                        ]
                    size //= 2


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and not isinstance(node, ast.Module):
                yield body


def _removals(tree: ast.Module) -> Iterator[Edit]:
    """Leaves out statements, first many at once."""
    for body in _bodies(tree):
        size = len(body)
        while size:
            for start in range(len(body) - size, -1, -size):
                if not any(isinstance(statement, ast.Return | ast.Pass) for statement in body[start : start + size]):

                    def remove(body=body, start=start, size=size) -> None:
                        body[start : start + size] = [] if len(body) > size else [ast.Pass()]

                    yield remove
            size //= 2


def _unwrappings(tree: ast.Module) -> Iterator[Edit]:
    """Puts the statements below a condition in its place, and drops elements of lists and arguments of calls."""
    for body in _bodies(tree):
        for index, statement in enumerate(body):
            if isinstance(statement, ast.With | ast.If):

                def unwrap(body=body, index=index, statement=statement) -> None:
                    body[index : index + 1] = statement.body

                yield unwrap
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Call):
            items = node.elts if isinstance(node, ast.List) else node.args
            for index in range(len(items)):
                yield lambda items=items, index=index: items.pop(index)
        if isinstance(node, ast.Call):
            for index in range(len(node.keywords)):
                yield lambda node=node, index=index: node.keywords.pop(index)


def _places(tree: ast.Module) -> Iterator[tuple[ast.expr, Callable[[ast.expr], None]]]:
    """Expressions that others may replace, and how."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                yield value, lambda new, node=node, name=name: setattr(node, name, new)
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield item, lambda new, value=value, index=index: value.__setitem__(index, new)


def _replacements(tree: ast.Module) -> Iterator[Edit]:
    """Replaces expressions by simple ones or by parts of themselves."""
    for old, put in _places(tree):
        if not isinstance(old, ast.BinOp | ast.UnaryOp | ast.Call | ast.Subscript | ast.Compare | ast.IfExp):
            continue
        if not (isinstance(old, ast.Call) and isinstance(old.func, ast.Name) and old.func.id in ("Const", "Signal")):
            for text in STAND_INS:
                yield lambda put=put, text=text: put(ast.parse(text, mode="eval").body)
        parts = [part for part in ast.iter_child_nodes(old) if isinstance(part, ast.expr)]
        for part in parts:
            if isinstance(part, ast.Attribute):
                part = part.value
            if not isinstance(part, ast.Slice | ast.Constant | ast.Name) or isinstance(
                old, ast.Subscript | ast.BinOp | ast.Call
            ):
                yield lambda put=put, part=part: put(part)


def _numbers(tree: ast.Module) -> Iterator[Edit]:
    """Makes numbers smaller, first all that are equal at once."""
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int]
    groups = [[node for node in constants if node.value == value] for value in {node.value for node in constants}]
    for nodes in [*groups, *([node] for node in constants)]:
        old = nodes[0].value
        for value in (0, 1, old // 2, old - 1):
            if abs(value) < abs(old):
                yield lambda nodes=nodes, value=value: [setattr(node, "value", value) for node in nodes]
