"""Plants faults into the source at random, and counts those that the default tests of its folder notice.

    pip install -e '.[test,mutation]'
    python tests/mutation/mutation_campaign.py --mutants 200 --seed 1

It changes files of this checkout, one at a time, and puts them back: use a clone in which nobody works. Mutants are
those of cosmic-ray, one at each place that is drawn; annotations and protocols, which nothing runs, are left out. What
is done is kept in the session file, and a campaign that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationSpec, mutate_and_test
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome

ROOT = Path(__file__).parents[2]
SKIPPED = ("core/VariableInserter", "core/VariableReplacer")
"""Operators that need names to insert."""
SECONDS = 600
"""A mutant that hangs is noticed, too."""
RANDOM = ("tests/driver/test_random_use.py", "tests/runtime/device/test_random_arrays.py")
PYTEST = """
import sys, pytest
class NoShrinking:
    def pytest_collection_finish(self):
        import hypothesis.internal.conjecture.engine as engine
        engine.MAX_SHRINKS = 0
sys.exit(pytest.main(sys.argv[1:], [NoShrinking()]))
"""
"""Runs tests; a random script that fails is not shortened."""


@dataclass(frozen=True)
class Folder:
    """Source, and the tests that mirror it: those to run first are in the folder of the same name."""

    source: str
    tests: tuple[str, ...]


FOLDERS = {
    "driver": Folder("driver/sley/driver", ("tests/driver",)),
    "runtime/device": Folder("runtime/sley/runtime/device", ("tests/runtime/device",)),
    "runtime/assembler": Folder("runtime/sley/runtime/assembler", ("tests/runtime/assembler",)),
    "runtime/blas": Folder(
        "runtime/sley/runtime/nn/gemm.py",
        ("tests/runtime/nn/test_gemm.py", "tests/runtime/device/test_owners.py", "tests/runtime/kernels/gemm"),
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One mutation of cosmic-ray, and where it is."""

    folder: str
    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def key(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.operator}"


def never_run(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations and protocols begin and end."""
    found: list[ast.expr | ast.ClassDef] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            found.append(node.annotation)
        elif isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
            found.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found]


def mutants(name: str, folder: Folder) -> Iterator[Mutant]:
    """All of a folder."""
    source = ROOT / folder.source
    for path in [source] if source.is_file() else sorted(source.rglob("*.py")):
        left_out, nodes = never_run(path), list(ast_nodes(get_ast(path.read_text())))
        for operator in (name for name in operator_names() if name not in SKIPPED):
            planter = get_operator(operator)()
            places = [start for node in nodes for start, _ in planter.mutation_positions(node)]
            for occurrence, start in enumerate(places):
                if not any(first <= start < last for first, last in left_out):
                    yield Mutant(name, path.relative_to(ROOT).as_posix(), *start, operator, occurrence)


def sample(count: int, seed: int, only: str | None) -> list[Mutant]:
    """One mutant at each of so many places."""
    places: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    for name, folder in FOLDERS.items():
        if only in (None, name):
            for mutant in mutants(name, folder):
                places[mutant.path, mutant.line, mutant.column].append(mutant)
    source = random.Random(seed)
    chosen = source.sample(sorted(places), min(count, len(places)))
    print(f"{sum(map(len, places.values()))} mutants at {len(places)} places; {len(chosen)} of them, seed {seed}")
    return [source.choice(places[place]) for place in chosen]


def command(name: str, path: Path, quick: bool) -> str:
    """The tests of a folder, those of a file's own folder and name first."""
    folder = FOLDERS[name]
    tests = list(folder.tests)
    if path.parent.as_posix() != folder.source and not folder.source.endswith(".py"):
        near = ROOT / folder.tests[0] / path.parent.relative_to(folder.source)
        tests.insert(0, near.relative_to(ROOT).as_posix()) if near.exists() else None
    own = [found.relative_to(ROOT).as_posix() for found in (ROOT / folder.tests[0]).rglob(f"test_{path.stem}.py")]
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "40", *own, *tests]
    if quick:
        arguments += [f"--deselect={path}" for path in RANDOM]
    return shlex.join([sys.executable, "-c", PYTEST, *arguments])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=FOLDERS)
    parser.add_argument("--session", type=Path, default=Path("mutation.jsonl"))
    parser.add_argument("--again", action="store_true", help="run those that survived before once more")
    parser.add_argument("--quick", action="store_true", help="leave the random tests out, which take the longest")
    options = parser.parse_args()
    done: dict[str, dict[str, str]] = {}
    if options.session.exists():
        done = {entry["mutant"]: entry for entry in map(json.loads, options.session.read_text().splitlines())}
    if options.again:
        done = {key: entry for key, entry in done.items() if entry["outcome"] == "killed"}
    chosen = sample(options.mutants, options.seed, options.only)
    for name in () if done else sorted({mutant.folder for mutant in chosen}):
        outcome, output = run_tests(command(name, Path(FOLDERS[name].source, "any.py"), options.quick), SECONDS)
        if outcome is not TestOutcome.SURVIVED:
            raise SystemExit(f"the tests of {name} fail without a mutant:\n{output}")
    for number, mutant in enumerate(chosen, 1):
        if mutant.key in done:
            continue
        spec = MutationSpec(
            ROOT / mutant.path, mutant.operator, mutant.occurrence, (mutant.line, mutant.column), (mutant.line + 1, 0)
        )
        result = mutate_and_test([spec], command(mutant.folder, Path(mutant.path), options.quick), SECONDS)
        outcome = "survived" if result.test_outcome is TestOutcome.SURVIVED else "killed"
        done[mutant.key] = {"mutant": mutant.key, "outcome": outcome, "diff": result.diff or result.output or ""}
        with options.session.open("a") as session:
            session.write(json.dumps(done[mutant.key]) + "\n")
        print(f"{number}/{len(chosen)} {outcome}: {mutant.key}", flush=True)
    for name in FOLDERS:
        entries = [done[mutant.key] for mutant in chosen if mutant.folder == name]
        survivors = [entry for entry in entries if entry["outcome"] == "survived"]
        if entries:
            killed = len(entries) - len(survivors)
            print(f"\n{name}: {killed} of {len(entries)} noticed, {killed / len(entries):.1%}")
        for entry in survivors:
            print(f"\n{entry['mutant']}\n{entry['diff']}")


if __name__ == "__main__":
    main()
