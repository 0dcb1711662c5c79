"""Hapax from Python: what is imported, what calls give and print, and faults."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from money_fixture import RULES as MONEY_RULES

import hapax

# --- api --------------------------------------------------------------------------------------------------------------


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


# --- front door -------------------------------------------------------------------------------------------------------


TESTS = Path(__file__).parents[2]
UNIT = TESTS / "unit"
COMMAND_LINE = {"hapax.cli", "hapax.cli.main"}


def imported(path: Path) -> Iterator[str]:
    """Names that a file imports, or replaces by their full names."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            yield from (name.value for name in node.args[:1] if isinstance(name, ast.Constant))


def test_only_unit_tests_import_inner_names() -> None:
    """No other test imports or replaces anything below the front door, nor a name with an underscore."""
    exported = {"hapax", *COMMAND_LINE, *(f"hapax.{name}" for name in hapax.__all__)}
    files = [path for path in sorted(TESTS.rglob("*.py")) if UNIT not in path.parents]

    names = [(path.name, name) for path in files for name in imported(path)]
    inner = [(file, name) for file, name in names if name.split(".")[0] == "hapax" and name not in exported]
    marked = [(file, name) for file, name in names if name.rpartition(".")[2].startswith("_")]

    assert len(files) > 50
    assert inner == []
    assert [row for row in marked if row[1] != "__future__.annotations"] == []


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outputs_kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hapax.KnowledgeBase]:
    """A knowledge base that holds a search with simulated models."""
    path = tmp_path_factory.mktemp("outputs") / "money.db"
    rules = hapax.parse_rules(MONEY_RULES)
    with hapax.KnowledgeBase(path) as outputs_kb:
        hapax.search(rules, outputs_kb, hapax.open_models("simulated:3", library=rules))
        yield outputs_kb


@pytest.fixture
def _silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No operation prints."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("_silent")
def test_contents_are_counted(outputs_kb: hapax.KnowledgeBase) -> None:
    """`stats` gives the rows of each table and the calls by role, as a frame and as JSON."""
    contents = hapax.stats(outputs_kb)

    assert contents.counts["statements"] == len(outputs_kb.statements())
    assert contents.to_json()["calls_by_role"] == outputs_kb.call_counts()
    assert contents.df().set_index("table").loc["facts", "rows"] == len(outputs_kb.facts())


@pytest.mark.usefixtures("_silent")
def test_a_report_is_a_page(outputs_kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`report` gives the page as text and as values; a notebook shows it in a frame that cannot reach the notebook."""
    page = hapax.report(outputs_kb, hapax.parse_rules(MONEY_RULES), hapax.ReportOptions(outputs_kb.place, statements=1))
    page.write(tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text("utf-8") == page.html
    shown = page._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"')
    assert shown.count("<") == 2


@pytest.mark.usefixtures("_silent")
def test_a_dataset_is_written_with_its_table(outputs_kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`write_dataset` writes the formats of its target and gives LINK's table 16."""
    target = hapax.Target(tmp_path / "out", ("jsonl",))
    written = hapax.write_dataset(outputs_kb, target, hapax.SelectionOptions(sample=5))

    assert list((tmp_path / "out").glob("**/*.jsonl"))
    assert written.value.formats == ("jsonl",)
    assert len(written.tables[0].df()) > 0
    assert written.to_json()


@pytest.mark.usefixtures("_silent")
def test_shipped_rules_have_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shipped` names the rules that ship, beside own files; a file of that name in the working folder comes first."""
    monkeypatch.chdir(tmp_path)
    mine = "@name mine\nis_ingredient_in(Ingredient A, Dish B) -> is_in(Ingredient A, Dish B)\n"
    (tmp_path / "my.rules").write_text(mine, "utf-8")
    shipped, own = hapax.load_rules(), hapax.load_rules("my.rules")

    assert hapax.load_rules("shipped") == shipped
    assert len(hapax.load_rules("my.rules", "shipped").rules) == len(own.rules) + len(shipped.rules)
    assert len(hapax.load_rules("shipped/library").rules) > 400
    (tmp_path / "shipped").write_text(mine, "utf-8")
    assert hapax.load_rules("shipped") == own


@pytest.mark.usefixtures("_silent")
def test_answers_come_out_as_data_frames() -> None:
    """Whole numbers are int64 and others float64, thirds too; a number with more digits than a float stays as it is."""
    program = hapax.program("""
        weighs(ann, 61.5). weighs(bob, 70). lives_in(ann, 3). lives_in(bob, 4). owes(ann, 0.1). owes(bob, 12345678901234567.89).
    """)
    frame = program.query("weighs(N, K), lives_in(N, F), owes(N, M)").df()
    table = program.query("weighs(N, K), lives_in(N, F)").arrow()

    thirds = program.query("weighs(ann, K), lives_in(ann, F), T = F / 9").df()

    assert list(thirds["T"] * 1.5) == [0.5]
    assert sorted(frame["K"]) == [61.5, 70.0]
    assert [str(frame[name].dtype) for name in ("K", "F", "M")] == ["float64", "int64", "object"]
    assert [str(table.schema.field(name).type) for name in ("N", "K", "F")] == ["string", "double", "int64"]
