"""Mutation testing: the changes of a module, the choice of tests, and the outcome in a small project."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools import mutation
from tools.mutation import Mutant, Workplace, all_mutants, nearest_tests, sites

SOURCE = '''"""Docs 1."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    x = 1


def positive(number: "int | 2") -> bool:
    """Docs 2."""
    if not isinstance(number, int):
        raise TypeError(f"{number + 1}")
    return number > 0
'''


def changed(source: str) -> list[str]:
    """The last line of each mutant of a module."""
    found = []
    for number in range(len(list(sites(ast.parse(source))))):
        tree = ast.parse(source)
        list(sites(tree))[number][2]()
        found.append(ast.unparse(tree).splitlines()[-1].strip())
    return found


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a <= 1", ["a < 1", "a <= 2", "a <= 0"]),
        ("a and not b", ["a or not b", "a and b"]),
        ("a + b", ["a - b"]),
        ("x = [a for a in b if a]", ["x = [a for a in b]"]),
        ("x = a if b else c", ["x = a if True else c", "x = a if False else c"]),
        ("f(a)", ["pass"]),
        ("x = 'text'", []),
        ("def f():\n    return False", ["return True"]),
        ("for pair in zip(a, b, strict=True):\n    continue", ["break"]),
    ],
)
def test_changes(source: str, mutants: list[str]) -> None:
    """Each kind of change, made one at a time."""
    assert changed(source) == mutants


def test_no_change_where_a_test_should_not_notice() -> None:
    """Docstrings, annotations, type checking and messages stay as they are."""
    changes = [change for _, change, _ in sites(ast.parse(SOURCE))]

    assert changes == [
        "if not isinstance(number, int)  ->  if True",
        "if not isinstance(number, int)  ->  if False",
        "not isinstance(number, int)  ->  isinstance(number, int)",
        "return number > 0  ->  return None",
        "number > 0  ->  number >= 0",
        "0  ->  1",
        "0  ->  -1",
    ]


def test_the_most_specific_test_files_come_first() -> None:
    """Files that import the module itself come before those that import it through others."""
    tests = nearest_tests(Path("engine/search/gates.py"), 100)

    assert "hapax.engine.search.gates" in Path(mutation.ROOT / tests[0]).read_text("utf-8")
    assert "tests/test_mutation.py" not in tests


@pytest.mark.slow
def test_a_mutant_is_killed_or_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests decide in a copy; one that fails anyway kills nothing, and the project itself stays as it is."""
    project = tmp_path / "project"
    (project / "kb").mkdir(parents=True)
    (project / "kb" / "signs.py").write_text(SOURCE, "utf-8")
    (project / "test_signs.py").write_text(
        "import pytest\nfrom kb.signs import positive\n\n\ndef test_broken():\n    assert False\n\n\n"
        "@pytest.mark.parametrize('case', ['a [b - c'])\n"
        "def test_sign(case):\n    assert positive(1) and not positive(0)\n",
        "utf-8",
    )
    subprocess.run(["git", "init", "-q", project], check=True)
    monkeypatch.setattr(mutation, "ROOT", project)
    (tmp_path / "copy").mkdir()
    place = Workplace.copied(tmp_path / "copy", 60)
    mutants = {mutant.change: mutant for mutant in all_mutants(["kb"])}

    def outcome(mutant: Mutant) -> str:
        return place.outcome(mutant, ["test_signs.py"])

    assert outcome(mutants["number > 0  ->  number >= 0"]) == "killed by test_signs.py::test_sign"
    assert outcome(mutants["if not isinstance(number, int)  ->  if False"]) == "survived"
    assert (project / "kb" / "signs.py").read_text("utf-8") == SOURCE


def test_tests_that_reach_the_time_limit_kill_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant whose tests reach the time limit is counted apart from those that a test killed."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "signs.py").write_text(SOURCE, "utf-8")
    (tmp_path / "test_signs.py").write_text("import time\n\n\ndef test_sign():\n    time.sleep(600)\n", "utf-8")
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    mutant = all_mutants(["kb"])[0]

    assert Workplace(tmp_path, 0.5).outcome(mutant, ["test_signs.py"]) == "timed out"
    assert (tmp_path / "kb" / "signs.py").read_text("utf-8") == SOURCE


FORKED = """
from tools.forked_mutants import forked_outcomes
from tools.mutation import all_mutants

WORDS = "tests/test_grammar_words.py::test_only_one_is_singular"
names = [f"{WORDS}[0-words0-0 calls]", f"{WORDS}[1.0-words2-1 second]"]
of_counted = [mutant for mutant in all_mutants(["grammar"]) if mutant.path.name == "words.py"]
constant = next(mutant for mutant in all_mutants(["grammar"]) if mutant.text == "MAXIMUM_IMPORTS = 1000")
outcomes = forked_outcomes([*of_counted, constant], lambda _: names, 60, 2, ["tests/test_grammar_words.py"])
print("OUTCOMES", *outcomes, sep="\\n")
"""


CACHED = """
from hapax.engine.mining.shapes import shapes
from tools.forked_mutants import forked_outcomes
from tools.mutation import all_mutants

SHAPES = "tests/test_rule_mining.py::test_shapes_are_closed_and_connected"
shapes(1), shapes(2), shapes(3)
of_shapes = [mutant for mutant in all_mutants(["engine"]) if mutant.path.name == "shapes.py"]
chosen = [mutant for mutant in of_shapes if mutant.change.endswith("_is_connected(head, chosen)  ->  if False")]
print("OUTCOMES", *forked_outcomes(chosen, lambda _: [SHAPES], 60, 1, ["tests/test_rule_mining.py"]), sep="\\n")
"""


def outcomes(code: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", code], cwd=mutation.ROOT, capture_output=True, text=True, check=True)
    return run.stdout.partition("OUTCOMES\n")[2].splitlines()


def test_a_mutant_of_a_function_with_a_cache_is_killed() -> None:
    """A value that the function returned before the change, as where tests are collected, is computed anew in the fork."""
    assert outcomes(CACHED) == ["killed by tests/test_rule_mining.py::test_shapes_are_closed_and_connected"]


def test_mutants_of_functions_are_tested_in_forks() -> None:
    """A fork has the changed function and the original has not; a constant outside functions has no outcome there."""
    words = "tests/test_grammar_words.py::test_only_one_is_singular"
    assert outcomes(FORKED) == [
        "survived",  # 0 looks the same in the notation of floats
        f"killed by {words}[1.0-words2-1 second]",
        f"killed by {words}[0-words0-0 calls]",
        "None",
    ]
