"""The Python API: its page runs, its names exist, its results are Python values, and its errors name argument and remedy."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hapax

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z]")
RULES = """
oracle is_in(Food, Dish): "[1] is in [2]"
given eats(Person, Food): "[1] eats [2]"
given may_eat(Person, Dish): "[1] may eat [2]"
@name may
eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)
"""


@pytest.fixture
def rules() -> hapax.Library:
    return hapax.parse_rules(RULES)


@pytest.fixture
def kb(rules: hapax.Library) -> Iterator[hapax.KnowledgeBase]:
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", [("milk", "pancake"), ("flour", "pancake"), ("<b>rye</b>", "bread")], rules)
        yield kb


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of docs/python.md runs, in order, and prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    for number, (kind, text) in enumerate(BLOCK.findall(PAGE.read_text("utf-8"))):
        if kind == "python":
            exec(text, names)  # noqa: S102  # our own page
        else:
            test = doctest.DocTestParser().get_doctest(text, names, f"python.md block {number}", str(PAGE), 0)
            runner.run(test, clear_globs=False)
            names.update(test.globs)

    assert runner.failures == 0
    assert runner.tries > 10


@pytest.mark.parametrize("name", hapax.__all__)
def test_every_exported_name_is_there_and_documented(name: str) -> None:
    """Each name of the front door loads and has a docstring."""
    assert getattr(hapax, name).__doc__


def test_answers_are_python_values(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """Answers are dicts of texts, numbers and lists, behave as a sequence, and become frames; a ground goal has a truth."""
    answers = hapax.query("findall(F, is_in(F, pancake), Foods), length(Foods, Count)", rules, kb)

    assert answers[0] == {"Foods": ["milk", "flour"], "Count": 2}
    assert answers[:1] == [answers[0]]
    assert answers.complete
    assert len(answers.df()) == answers.arrow().num_rows == 1
    assert hapax.query("is_in(milk, pancake)", rules, kb).holds
    assert not hapax.query("is_in(milk, bread)", rules, kb)
    assert hapax.query("may_eat(tom, D)", rules, kb, assume="eats(tom, milk)")[0] == {"D": "pancake"}


def test_a_knowledge_base_answers_goals(rules: hapax.Library, kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`kb.query` answers as `hapax.query`, without rules with those that the knowledge base keeps."""
    assert list(kb.query("may_eat(tom, D)", rules, assume="eats(tom, milk)")) == [{"D": "pancake"}]
    with pytest.raises(hapax.ArgumentRejected, match=r"hapax\.load_rules"):
        kb.query("is_in(F, pancake)", "my.rules")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(hapax.HapaxError, match="no loaded rule file declares it"):
        kb.query("is_in(F, pancake)")

    path = tmp_path / "eats.rules"
    path.write_text(RULES, "utf-8")
    hapax.keep_rules(kb, path)

    assert list(kb.query("is_in(F, pancake)")) == list(hapax.query("is_in(F, pancake)", rules, kb))


def test_statements_and_explanations_unfold_in_a_notebook(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """A statement shows its proof with values escaped; an explanation is a tree of balanced HTML."""
    statements = hapax.derive(rules, kb).statements
    shown = next(statement for statement in statements if "rye" in statement.text)._repr_html_()
    explanation = hapax.why("may_eat(tom, pancake)", rules, kb, assume=["eats(tom, milk)"])
    tree = explanation._repr_html_()

    assert "<b>rye</b>" not in shown
    assert "&lt;b&gt;rye&lt;/b&gt;" in shown
    assert "[by rule may]" in shown
    assert [depth for depth, _, _ in explanation.lines][:2] == [0, 1]
    assert str(explanation).startswith("tom may eat pancake")
    assert tree.count("<ul>") == tree.count("</ul>")
    assert "eats" in str(hapax.why_not("may_eat(tom, pancake)", rules, kb))


def test_rules_and_knowledge_bases_show_what_they_hold(rules: hapax.Library, tmp_path: Path) -> None:
    """Their text is short, their table in a notebook is escaped and cut, and a closed file can be shown."""
    with hapax.KnowledgeBase(tmp_path / "<b>.db") as kb:
        hapax.add_facts(kb, "is_in", [(f"food {number}", "stew") for number in range(200)], rules)
        shown = kb._repr_html_()
        table = hapax.query("is_in(F, stew)", rules, kb, options=hapax.QueryOptions(hapax.QueryLimits(answers=200)))

    assert "1 rule" in repr(rules)
    assert "<td>may</td>" in rules._repr_html_()
    assert "<b>" not in shown
    assert "<td>is_in/2</td><td>200</td>" in shown
    assert "closed" in repr(kb)
    assert table._repr_html_().count("<tr>") < 100
    assert "200 rows" in table._repr_html_()


@pytest.mark.parametrize(
    "row",
    [
        *(("milk",), (1, 2, 3), ("milk", None), ("milk", float("nan")), ("milk", ["tea"]), "ab"),
        {"food": "milk", "dish": "tea"},
    ],
    ids=str,
)
def test_a_row_that_is_no_fact_is_refused_by_its_number(rules: hapax.Library, row: Any) -> None:
    """Wrong lengths, empty cells, lists and texts in a row's place are refused; nothing is stored."""
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError, match="is_in:2"):
            hapax.add_facts(kb, "is_in", [("milk", "tea"), row], rules)

        assert kb.facts() == []


def simulated(rules: hapax.Library) -> hapax.Models:
    return hapax.open_models("simulated", library=rules)


Call = Callable[[hapax.Library, hapax.KnowledgeBase], object]
FAULTY = "is_in(Food A, Dish B) -> may_eat(Person X, Dish B)"
MISTAKES: dict[str, tuple[type[Exception], list[str], Call]] = {
    "a path for text": (hapax.ArgumentRejected, ["text", "load_rules"], lambda rules, kb: hapax.parse_rules(Path("my.rules"))),  # type: ignore[arg-type]
    "a misspelt argument": (hapax.ArgumentRejected, ["asume"], lambda rules, kb: hapax.why("is_in(A, B)", rules, kb, asume="x")),  # type: ignore[call-arg]
    "an unknown end": (hapax.HapaxError, ["tail", "head", "long_tail"], lambda rules, kb: hapax.derive(rules, kb).statements.of("tail")),
    "a cost that is no number": (hapax.HapaxError, ["max_cost", "nan"], lambda rules, kb: hapax.Budget(max_cost=float("nan"))),
    "an unknown plan": (hapax.HapaxError, ["plan", "cheapest", "premise-first"], lambda rules, kb: hapax.SearchSettings(plan="best")),  # type: ignore[arg-type]
    "an unknown option of a model": (hapax.HapaxError, ["sed", "seed"], lambda rules, kb: hapax.open_models("simulated", sed=3)),
    "a simulated model without rules": (hapax.HapaxError, ["library=rules"], lambda rules, kb: hapax.open_models("simulated:1")),
    "an undeclared predicate": (hapax.HapaxError, ["given owns(Type, Type)"], lambda rules, kb: hapax.add_facts(kb, "owns", [("Ada", "plough")], rules)),
    "a name with its arity": (hapax.HapaxError, ["'owns'"], lambda rules, kb: hapax.add_facts(kb, "owns/2", [("Ada", "plough")], rules)),
    "faulty rules": (hapax.RulesRejected, ["HPX101"], lambda rules, kb: hapax.search(hapax.parse_rules(FAULTY), kb, simulated(rules))),
    "a goal of other rules": (hapax.GoalRejected, ["`rules`"], lambda rules, kb: hapax.query("eats(tom, X)", hapax.parse_rules("given knows(Person, Person)"), kb)),
}  # fmt: skip
"""The error, words of its place and remedy, and the call."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_with_its_place_and_remedy(
    rules: hapax.Library, kb: hapax.KnowledgeBase, mistake: str
) -> None:
    """It is a HapaxError of its kind that names argument and remedy, never an option of the command line."""
    kind, words, call = MISTAKES[mistake]
    hapax.add_facts(kb, "eats", [("tom", "milk")], rules)
    with pytest.raises(kind) as raised:
        call(rules, kb)

    text = str(raised.value)
    assert isinstance(raised.value, hapax.HapaxError)
    assert [word for word in words if word not in text] == [], text
    assert not OPTION.search(text)


def test_a_limit_of_a_goal_names_its_argument(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """A goal over its time says which argument gives it more."""
    options = hapax.QueryOptions(hapax.QueryLimits(seconds=0.2))
    with pytest.raises(hapax.LimitExceeded, match=r"limits\.seconds"):
        hapax.query("findall(X, (between(1, 100000000, X), X < 0), Xs)", rules, kb, options=options)
