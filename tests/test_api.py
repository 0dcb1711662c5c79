"""The Python API: its page runs, its names exist, and its results are Python values, data frames and notebook tables."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import hapax
from hapax.api.results import ROWS_SHOWN, html_table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

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


def test_the_script_on_the_page_is_short() -> None:
    """The search on the page has at most fifteen lines, its rules not counted."""
    script = next(text for kind, text in BLOCK.findall(PAGE.read_text("utf-8")) if kind == "python")

    assert len(re.sub(r'""".*?"""', '""', script, flags=re.DOTALL).strip().splitlines()) <= 15


@pytest.mark.parametrize("name", hapax.__all__)
def test_every_exported_name_is_there_and_documented(name: str) -> None:
    """Each name of the front door loads and has a docstring."""
    assert getattr(hapax, name).__doc__


def test_the_front_door_exports_what_it_lists() -> None:
    """`__all__`, the table of homes and the imports for type checkers name the same things."""
    tree = ast.parse((ROOT / "hapax" / "__init__.py").read_text("utf-8"))
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hapax.")
        for alias in node.names
    }

    assert set(hapax.__all__) == typed == set(hapax._HOME_OF)
    assert sorted(hapax.__all__) == hapax.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that the front door lacks raises AttributeError, as any module does."""
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hapax.nothing  # noqa: B018


def test_importing_hapax_loads_nothing_heavy() -> None:
    """`import hapax` alone loads no library beside Python's own."""
    program = (
        "import sys, hapax; print([name for name in ('torch', 'lark', 'sqlite_utils', 'click') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_answers_are_python_values(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """Answers are dicts of texts, numbers and lists; a slice, a row and their truth work as in any sequence."""
    answers = hapax.query("findall(F, is_in(F, pancake), Foods), length(Foods, Count)", rules, kb)

    assert answers[0] == {"Foods": ["milk", "flour"], "Count": 2}
    assert answers[:1] == [answers[0]]
    assert answers.complete
    assert answers.to_arrow().num_rows == 1


def test_a_goal_without_variables_has_a_truth(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """A ground goal holds or does not."""
    assert hapax.query("is_in(milk, pancake)", rules, kb).holds
    assert not hapax.query("is_in(milk, bread)", rules, kb)


def test_a_goal_with_models_asks_and_stores(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """With models, a goal that lacks facts asks for them; under a spent budget it says that it is incomplete."""
    models = hapax.open_models("simulated", library=rules)
    stingy = hapax.open_models("simulated", library=rules, budget=hapax.Budget(max_calls=0))
    cut = hapax.query("is_in(F, soup)", rules, kb, models=stingy)

    assert not cut.complete
    assert "call" in cut.stopped

    asked = hapax.query("is_in(F, soup)", rules, kb, models=models)

    assert asked.complete
    assert list(kb.call_counts())


def test_statements_show_their_proof(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """A statement in a notebook unfolds to its proof; hostile values are escaped."""
    statements = hapax.derive(rules, kb).statements
    shown = next(statement for statement in statements if "rye" in statement.text)._repr_html_()

    assert "<b>rye</b>" not in shown
    assert "&lt;b&gt;rye&lt;/b&gt;" in shown
    assert "[by rule may]" in shown
    assert statements[0].values.keys() == {"A", "B"}


def test_long_tables_are_cut_and_counted() -> None:
    """A table in a notebook shows its first rows and says how many there are."""
    shown = html_table(["n"], [(number,) for number in range(ROWS_SHOWN + 1)])

    assert f"<td>{ROWS_SHOWN - 1}</td>" in shown
    assert f"<td>{ROWS_SHOWN}</td>" not in shown
    assert "21 rows" in shown


def test_an_explanation_is_a_tree(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """An explanation has lines with depths, text and balanced HTML."""
    explanation = hapax.why("may_eat(tom, pancake)", rules, kb, assume=["eats(tom, milk)"])
    shown = explanation._repr_html_()

    assert [depth for depth, _, _ in explanation.lines][:2] == [0, 1]
    assert str(explanation).startswith("tom may eat pancake")
    assert shown.count("<ul>") == shown.count("</ul>")
    assert shown.count("<details") == shown.count("</details>")


def test_why_not_names_the_missing_premise(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """`why_not` says which premise has no fact."""
    assert "eats" in str(hapax.why_not("may_eat(tom, pancake)", rules, kb))


def test_faulty_rules_are_not_searched(kb: hapax.KnowledgeBase) -> None:
    """Rules with errors raise RulesRejected before anything is asked."""
    faulty = hapax.parse_rules("is_in(Food A, Dish B) -> may_eat(Person X, Dish B)")

    with pytest.raises(hapax.RulesRejected):
        hapax.search(faulty, kb, hapax.open_models("simulated", library=faulty))


@pytest.mark.parametrize(("row", "fault"), [(("milk",), "row 2 has 1 value, expected 2"), ((1, 2, 3), "has 3 values")])
def test_rows_of_a_wrong_length_store_nothing(rules: hapax.Library, row: tuple[object, ...], fault: str) -> None:
    """A row that does not fit the declaration is refused, and no row before it is kept."""
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError, match=fault):
            hapax.add_facts(kb, "is_in", [("milk", "tea"), row], rules)

        assert kb.facts() == []


def test_an_undeclared_predicate_is_named(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """Facts of a predicate that the rules do not declare are refused, with the line to add."""
    with pytest.raises(hapax.HapaxError, match=r"given owns\(Type, Type\)"):
        hapax.add_facts(kb, "owns", [("Ada", "plough")], rules)


def test_facts_travel(rules: hapax.Library, kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """Exported facts import into another knowledge base, and a knowledge base merges into another."""
    with (tmp_path / "facts.csv").open("w", encoding="utf-8") as stream:
        written = hapax.export_facts(kb, stream, form="csv").written
    with hapax.KnowledgeBase(tmp_path / "first.db") as first:
        assert hapax.import_facts(first, tmp_path / "facts.csv").added == written == 3
    with hapax.KnowledgeBase() as second:
        assert hapax.merge(second, tmp_path / "first.db").added["facts"] == 3


def test_a_missing_extra_is_named(
    rules: hapax.Library, kb: hapax.KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a library of an extra is missing, the error names the extra."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(hapax.HapaxError, match=r"pandas is not installed. Run `pip install 'hapax-kb\[evaluation\]'`"):
        hapax.query("is_in(F, D)", rules, kb).to_pandas()


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (("milk", None), "the cell is empty"),
        (("milk", float("nan")), "the cell is empty"),
        (("milk", True), "bool is not a value"),
        (("milk", ["tea"]), "list is not a value"),
        ("ab", "is a str, not a row"),
        ({"food": "milk", "dish": "tea"}, "is a dict, not a row"),
    ],
)
def test_cells_that_are_no_values_are_refused(rules: hapax.Library, row: Sequence[object], fault: str) -> None:
    """Empty cells, truth values, lists and texts in a row's place are refused with the row's number."""
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError, match=f"row 2.*{fault}.*Nothing was stored"):
            hapax.add_facts(kb, "is_in", [("milk", "tea"), row], rules)

        assert kb.facts() == []


def test_numbers_of_a_data_frame_are_exact(rules: hapax.Library) -> None:
    """Integers and floating-point numbers of a frame become the numbers that a person reads in it."""
    frame = pd.DataFrame({"food": ["a", "b"], "dish": [1.1, 2.5]})
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_in", frame, rules)
        hapax.add_facts(kb, "is_in", pd.DataFrame({"food": ["c"], "dish": [3]}), rules)

        assert [fact.arguments[1] for fact in kb.facts()] == [Decimal("1.1"), Decimal("2.5"), 3]


def test_an_unknown_engine_is_refused(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """`derive` names its engines."""
    with pytest.raises(hapax.HapaxError, match="Choose auto or sql or prolog"):
        hapax.derive(rules, kb, engine="duck")  # type: ignore[arg-type]  # the mistake that is tried


def test_the_command_line_uses_the_api() -> None:
    """Commands call the operations of the API, not the functions of the rooms behind them."""
    behind = {
        "hapax.engine.search.search": {"search"},
        "hapax.engine.inference.theory": {"run_query"},
        "hapax.engine.search.demand": {"run_demand"},
        "hapax.engine.inference.bulk_derivation": {"derive_all"},
        "hapax.engine.explain": {"why", "why_not"},
        "hapax.kb.exchange": {"import_facts", "export_facts"},
        "hapax.kb.merge": {"merge"},
        "hapax.grammar.parser": {"load_library"},
        "hapax.llm_oracle.registry": {"open_models"},
    }
    found = []
    for path in (ROOT / "commands").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                taken = behind.get(node.module or "", set()).intersection(alias.name for alias in node.names)
                found += [(path.name, name) for name in taken]

    assert found == []


def test_a_single_assumption_may_be_a_text(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """`assume` takes one atom or several."""
    assert hapax.query("may_eat(tom, D)", rules, kb, assume="eats(tom, milk)")[0] == {"D": "pancake"}


def test_a_model_string_is_not_a_model(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """A search with a model string says how to open it."""
    with pytest.raises(hapax.HapaxError, match=r"hapax\.open_models\('simulated'\)"):
        hapax.search(rules, kb, "simulated")  # type: ignore[arg-type]  # the mistake that is tried
