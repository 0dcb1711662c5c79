"""Mutation testing of grammar, kb and engine: `python -m tools.mutation --count 60 --seed 1`.

A mutant is a module with a single change to its syntax tree, such as `<` for `<=`. It is killed if a test fails, and
survives otherwise; one whose tests reach the time limit is counted apart, for a loop without end looks like slow tests.
A seed draws the mutants, because all of them would take days. The tests run in a temporary copy of the working tree.
Neither mutmut nor cosmic-ray draws a sample or selects tests for each mutant.

By default the nearest test files run: those that import the mutated module or have its name. More precise, and
faster for a large sample, is a record of the tests that execute each line:

    python -m tools.mutation --record build/mutation.coverage --jobs 2
    python -m tools.mutation --count 60 --seed 1 --recorded build/mutation.coverage --jobs 2

With a record, mutants inside functions are tested in forks of one process (`forked_mutants.py`).
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, count, islice
from pathlib import Path
from queue import Queue

from hapax.evaluation.shared.results import markdown_table
from tools.forked_mutants import TIMED_OUT, forked_outcomes

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("grammar", "kb", "engine")
SWAPS: Mapping[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip
MOST_TESTS = 1000
"""Most recorded tests that run for a mutant."""
RAREST_TESTS = 40
"""Of these, the ones that execute the rarest lines beside the changed one."""
BESIDE = 4
"""Lines before and after a changed one that count as beside it."""
WIDEST_TESTS = 60
"""Of these, the ones that execute most lines of the mutant's module."""
TEST_OF_VALUES = "tests/test_limits_and_defaults.py::test_limits_and_defaults_change_only_with_their_list"
"""The test of the numbers that a module defines when it is imported."""

Site = tuple[ast.AST, str, Callable[[], None]]
"""A node, the change in words, and the function that makes it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change to a module. `number` is its place among the changes of the module."""

    path: Path
    number: int
    line: int
    text: str
    """The line before the change."""

    change: str

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the changed module."""
        tree = ast.parse((ROOT / self.path).read_text("utf-8"))
        before = set(ast.walk(tree))
        node, _, apply = list(sites(tree))[self.number]
        apply()
        for new in set(ast.walk(tree)) - before:
            if "lineno" in new._attributes:
                ast.copy_location(new, node)
        return ast.fix_missing_locations(tree)

    @property
    def source(self) -> str:
        """The text of the changed module."""
        return ast.unparse(self.tree) + "\n"


def sites(node: ast.AST) -> Iterator[Site]:
    """The possible changes below a node, in a fixed order, without those that no test should notice."""
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for place, child in enumerate(children):
            if not isinstance(child, ast.AST) or _is_left_out(field, child):
                continue

            def put(new: ast.AST, field: str = field, value: object = value, place: int = place) -> None:
                if isinstance(value, list):
                    value[place] = new
                else:
                    setattr(node, field, new)

            yield from _changes(child, put)
            yield from sites(child)


def _is_left_out(field: str, child: ast.AST) -> bool:
    """True for annotations, decorators, type checking, messages, texts, and what only asserts."""
    if isinstance(child, ast.keyword) and child.arg == "strict":  # of `zip`, whose arguments are of one length
        return True
    if field in ("annotation", "returns", "decorator_list", "type_comment"):
        return True
    if isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
        return True
    return isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)


def _changes(node: ast.AST, put: Callable[[ast.AST], None]) -> Iterator[Site]:
    """The changes of a node itself; `put` replaces it in its parent."""
    for new in _replacements(node):
        yield node, f"{_short(node)}  ->  {_short(new)}", lambda new=new: put(new)  # type: ignore[misc]
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        for truth in (True, False):
            if isinstance(node.test, ast.Constant) and node.test.value is truth:
                continue  # `while True`
            yield node, f"if {_short(node.test)}  ->  if {truth}", partial(setattr, node, "test", ast.Constant(truth))
    if isinstance(node, ast.comprehension) and node.ifs:
        yield node.ifs[0], f"if {_short(node.ifs[0])}  dropped", node.ifs.clear


def _replacements(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.Compare(left, [operator], rights):
            return [ast.Compare(left, [SWAPS[type(operator)]()], rights)]
        case ast.BoolOp(operator, values):
            return [ast.BoolOp(SWAPS[type(operator)](), values)]
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            return [ast.BinOp(left, SWAPS[type(operator)](), right)]
        case ast.UnaryOp(ast.Not(), operand):
            return [operand]
        case ast.Constant(bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(int(value)):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        # In place of False, None is no less false.
        case ast.Return(ast.expr() as value) if ast.unparse(value) not in ("None", "False"):
            return [ast.Return(ast.Constant(None))]
        case ast.Break() | ast.Continue():
            return [SWAPS[type(node)]()]
        case ast.Expr(ast.Call()):
            return [ast.Pass()]
    return []


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def all_mutants(rooms: Sequence[str] = ROOMS) -> list[Mutant]:
    """All mutants of the rooms."""
    mutants = []
    for path in sorted(chain.from_iterable((ROOT / room).rglob("*.py") for room in rooms)):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        for number, (node, change, _) in enumerate(sites(ast.parse(source))):
            line = node.lineno  # type: ignore[attr-defined]  # all nodes that change have a place
            mutants.append(Mutant(path.relative_to(ROOT), number, line, lines[line - 1].strip(), change))
    return mutants


def nearest_tests(path: Path, most: int) -> list[str]:
    """The test files for a module, the nearest first.

    These are the files that import it, directly or through others, in the order of the imports between; then those
    with words of its name in theirs, for tests of the command line and of `import hapax` name no module.
    """
    imports: dict[str, set[str]] = {}
    for file in chain.from_iterable((ROOT / folder).rglob("*.py") for folder in (*ROOMS, "llm_oracle", "tests")):
        names = re.findall(r"^\s*(?:from|import) ([\w.]+)", file.read_text("utf-8"), re.M)
        imports[_module(file.relative_to(ROOT))] = {name.removeprefix("hapax.") for name in names}
    found: list[str] = []
    reached = level = {_module(path)}
    while level:
        level = {module for module, used in imports.items() if used & level} - reached
        reached = reached | level
        found += _by_name(path, (module for module in level if module.startswith("tests.test_")))
    others = (module for module in imports if module.startswith("tests.test_") and module not in reached)
    found += _by_name(path, (module for module in others if _likeness(path, module)))
    return [f"{module.replace('.', '/')}.py" for module in found[:most]]


def _by_name(path: Path, tests: Iterable[str]) -> list[str]:
    return sorted(tests, key=lambda test: (-_likeness(path, test), test))


def _likeness(path: Path, test: str) -> int:
    """Words that the name of a test shares with a module; those of its file count more than those of its folders."""
    own = _words(test)
    return 3 * len(own & _words(path.stem)) + len(own & _words(_module(path.parent)))


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _words(module: str) -> set[str]:
    return {word.rstrip("s") for word in re.split(r"[._]", module)}


def recorded_tests(record: Path, mutant: Mutant) -> list[str]:
    """The tests that execute the line of a mutant, according to a record; of the whole module if only imports do.

    First those that execute the rarest lines beside it, such as the body of a condition; then those that execute most
    of the module's lines; then those in the nearest files.
    """
    by_line = _recorded_contexts(record, mutant.path)
    tests = by_line.get(mutant.line, frozenset())
    if mutant.line not in by_line:
        return []  # it may run in another process
    executed = Counter(chain.from_iterable(by_line.values()))
    if not tests:
        return [TEST_OF_VALUES, *sorted(executed, key=lambda test: (-executed[test], test))[:WIDEST_TESTS]]
    beside = [tests & by_line.get(mutant.line + step, frozenset()) for step in range(-BESIDE, BESIDE + 1)]
    rarest = chain.from_iterable(sorted(found) for found in sorted(beside, key=len) if found != tests)
    widest = sorted(tests, key=lambda test: (-executed[test], test))[:WIDEST_TESTS]
    nearest = {file: place for place, file in enumerate(nearest_tests(mutant.path, sys.maxsize))}
    # A line that hundreds of tests execute is held by those about its module; the others only pass over it.
    others = sorted(tests, key=lambda test: (nearest.get(test.partition("::")[0], len(nearest)), test))
    return list(dict.fromkeys([*islice(rarest, RAREST_TESTS), *widest, *others]))[:MOST_TESTS]


@cache
def _recorded_contexts(record: Path, path: Path) -> Mapping[int, frozenset[str]]:
    """The tests that execute each line of a module; none for a line that only its import executes."""
    from coverage import CoverageData

    data = CoverageData(str(record))
    data.read()
    contexts = data.contexts_by_lineno(str(ROOT / path))
    return {
        line: frozenset(name.rpartition("|")[0] for name in names if "::" in name) for line, names in contexts.items()
    }


@dataclass(frozen=True, slots=True)
class Workplace:
    """A copy of the working tree in which tests run."""

    folder: Path
    seconds: float
    """Time limit for the tests of a mutant."""

    @classmethod
    def copied(cls, folder: Path, seconds: float) -> Workplace:
        """Copy the files that git tracks or would track."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
        return cls(folder, seconds)

    def outcome(self, mutant: Mutant, tests: Sequence[str]) -> str:
        """`survived`, `timed out`, or the test that killed the mutant.

        A test that also fails without the change does not count.
        """
        file = self.folder / mutant.path
        original = file.read_text("utf-8")
        skipped: list[str] = []
        for _ in count():
            file.write_text(mutant.source, "utf-8")
            try:
                killer = self._first_failure(tests, skipped)
            finally:
                file.write_text(original, "utf-8")
            if killer is None:
                return "survived"
            if killer == TIMED_OUT:
                return TIMED_OUT
            if "::" not in killer:  # the change lets no test be collected, or a recorded test is gone
                collected = self._first_failure(["--collect-only", *tests], []) is None
                return f"killed by {killer}" if collected else "survived: its tests cannot be collected"
            if self._first_failure([killer], []) is None:
                return f"killed by {killer}"
            skipped.append(killer)
        raise AssertionError

    def _first_failure(self, tests: Sequence[str], skipped: Sequence[str]) -> str | None:
        # Without bytecode: a cached module might be taken for the mutant, which can have its size and time.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", *(f"--deselect={name}" for name in skipped)]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also the processes that tests have left behind
        if process.returncode == 0:
            return None
        # Without the parameters of the test, which may contain anything.
        failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", output, re.M)
        return failed[1] if failed else f"pytest's exit code {process.returncode}"


def record_tests(record: Path, rooms: Sequence[str], jobs: int) -> int:
    """Run all tests once and record which of them execute each line of the rooms."""
    record.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "COVERAGE_FILE": str(record.resolve())}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"-n{jobs}", "--dist=loadfile"]
    # Not the project's settings: they also record the branches, and what other processes execute for no known test.
    command += [
        *(f"--cov={room}" for room in rooms),
        "--cov-context=test",
        f"--cov-config={os.devnull}",
        "--cov-report=",
    ]
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


def run(mutants: Sequence[Mutant], options: argparse.Namespace) -> list[str]:
    """The outcome of each mutant, in order."""
    places: Queue[Workplace] = Queue()
    forked: dict[Mutant, str | None] = {}
    if options.recorded is not None:
        tests = partial(recorded_tests, options.recorded)
        forked = dict(zip(mutants, forked_outcomes(mutants, tests, options.seconds, options.jobs), strict=True))

    def work(mutant: Mutant) -> str:
        if outcome := forked.get(mutant):
            return outcome
        recorded = [] if options.recorded is None else recorded_tests(options.recorded, mutant)
        tests = recorded or [*nearest_tests(mutant.path, options.files), TEST_OF_VALUES]
        place = places.get()
        began = time.monotonic()
        try:
            outcome = place.outcome(mutant, tests) if tests else "survived: no test imports the module"
        finally:
            places.put(place)
        print(f"{mutant.path}:{mutant.line} {outcome} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
        return outcome

    with tempfile.TemporaryDirectory(prefix="mutation-") as name, ThreadPoolExecutor(options.jobs) as pool:
        if (shared := ROOT.parent / "shared").exists():  # tests read what lies beside the working tree
            (Path(name) / "shared").symlink_to(shared)
        for number in range(options.jobs):
            places.put(Workplace.copied(Path(name) / str(number), options.seconds))
        return list(pool.map(work, mutants))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", default=ROOMS, help="folders to mutate (default: grammar kb engine)")
    parser.add_argument("--count", type=int, default=60, help="mutants to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tested at the same time (default: %(default)s)")
    parser.add_argument("--files", type=int, default=12, help="nearest test files to run (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600, help="time limit for a mutant (default: %(default)s)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="run all tests, record the lines that they execute")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="select tests by this record")
    parser.add_argument("--list", action="store_true", help="print the mutants without running tests")
    options = parser.parse_args(arguments)
    if options.record is not None:
        return record_tests(options.record, options.rooms, options.jobs)
    mutants = all_mutants(options.rooms)
    drawn = sorted(random.Random(options.seed).sample(range(len(mutants)), min(options.count, len(mutants))))  # noqa: S311
    chosen = [mutants[number] for number in drawn]
    outcomes = ["not run"] * len(chosen) if options.list else run(chosen, options)
    rows = [
        (f"{mutant.path}:{mutant.line}", f"`{mutant.text}`", f"`{mutant.change}`", outcome)
        for mutant, outcome in zip(chosen, outcomes, strict=True)
    ]
    print(markdown_table(("place", "line", "change", "outcome"), rows))
    killed = sum(outcome.startswith("killed") for outcome in outcomes)
    timed_out = outcomes.count(TIMED_OUT)
    print(f"\n{killed} of {len(chosen)} mutants killed, {timed_out} timed out; {len(mutants)} are possible.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
