"""The Python API: its page runs, its names exist, and its results are Python values, data frames and notebook tables."""

from __future__ import annotations

import ast
import doctest
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import hapax
from hapax.api.python_calls import ARGUMENT_OF_OPTION, EXPECTED, OPERATION_OF_COMMAND, in_python
from hapax.grammar.notebook import ROWS_SHOWN, html_table

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
    assert shown.endswith("<p>21 rows, the first 20 shown</p>")
    assert html_table(["n"], [(number,) for number in range(ROWS_SHOWN)]).endswith("</table>")


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


@pytest.mark.parametrize(("row", "fault"), [(("milk",), "is_in:2: .*1 argument .* 2"), ((1, 2, 3), "3 arguments")])
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


def test_a_predicate_with_its_arity_is_no_name(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """`owns/2` is refused with the name to give; no line with a slash is proposed for the rules."""
    with pytest.raises(hapax.HapaxError, match=r"owns/2 is not the name of a predicate\. Give the name alone, 'owns'"):
        hapax.add_facts(kb, "owns/2", [("Ada", "plough")], rules)


def test_a_simulated_model_asks_for_its_rules() -> None:
    """Without a library the error names the argument that gives it."""
    with pytest.raises(hapax.HapaxError, match="`library=rules`"):
        hapax.open_models("simulated:1")


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
        (("milk", None), "is empty"),
        (("milk", float("nan")), "is empty"),
        (("milk", True), "bool is neither"),
        (("milk", ["tea"]), "list is neither"),
        ("ab", "is a str, not a row"),
        ({"food": "milk", "dish": "tea"}, "is a dict, not a row"),
    ],
)
def test_cells_that_are_no_values_are_refused(rules: hapax.Library, row: Sequence[object], fault: str) -> None:
    """Empty cells, truth values, lists and texts in a row's place are refused with the row's number."""
    with hapax.KnowledgeBase() as kb:
        with pytest.raises(hapax.HapaxError, match=f"is_in:2: .*{fault}.*\nNothing was imported"):
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
    with pytest.raises(
        hapax.HapaxError, match=r"models is a str .*, not a Models. Open models with hapax\.open_models"
    ):
        hapax.search(rules, kb, "simulated")  # type: ignore[arg-type]  # the mistake that is tried


WRONG_ARGUMENTS = {
    "search: rules is a str .*, not a Library. Read rules with hapax.parse_rules": lambda rules, kb: hapax.search(
        RULES, kb, None
    ),
    "check_rules: rules is a str": lambda rules, kb: hapax.check_rules(RULES),
    "parse_rules: text is None, not a str": lambda rules, kb: hapax.parse_rules(None),
    "parse_rules: text is a PosixPath.*hapax.load_rules": lambda rules, kb: hapax.parse_rules(Path("my.rules")),
    "load_rules: paths is a list.*an argument of its own": lambda rules, kb: hapax.load_rules(["my.rules"]),
    "load_rules: paths is None": lambda rules, kb: hapax.load_rules(None),
    "query: kb is a str .'hapax.db'., not a KnowledgeBase": lambda rules, kb: hapax.query(
        "is_in(A, B)", rules, "hapax.db"
    ),
    "query: goal is a Rule": lambda rules, kb: hapax.query(rules.rules[0], rules, kb),
    "query: assume is an int": lambda rules, kb: hapax.query("is_in(A, B)", rules, kb, assume=3),
    "query: options is an int": lambda rules, kb: hapax.query("is_in(A, B)", rules, kb, options=10),
    "query: .*missing a required argument: 'rules'": lambda rules, kb: hapax.query("is_in(A, B)"),
    "why: .*unexpected keyword argument 'asume'": lambda rules, kb: hapax.why("is_in(A, B)", rules, kb, asume="x"),
    "export_facts: stream is a str.*open": lambda rules, kb: hapax.export_facts(kb, "facts.csv"),
    "import_facts: source is a list": lambda rules, kb: hapax.import_facts(kb, ["facts.csv"]),
    "derive: only is an int": lambda rules, kb: hapax.derive(rules, kb, only=1),
    "search: progress is a bool": lambda rules, kb: hapax.search(rules, kb, simulated(rules), progress=True),
    "search: settings is a dict": lambda rules, kb: hapax.search(rules, kb, simulated(rules), {"beam": 3}),
    "add_facts: rows is an int": lambda rules, kb: hapax.add_facts(kb, "is_in", 3, rules),
}
"""Mistakes in types, by the pattern of the message."""

WRONG_VALUES = {
    "There is no distribution 'tail'. Choose head or long_tail": lambda rules, kb: hapax.derive(
        rules, kb
    ).statements.of("tail"),
    "max_calls is -1. Set it to a number from 0": lambda rules, kb: hapax.Budget(max_calls=-1),
    "max_cost is nan": lambda rules, kb: hapax.Budget(max_cost=float("nan")),
    "Budget: max_tokens is a str .'5'., not an int or None. Give a whole number": lambda rules, kb: hapax.Budget(
        max_tokens="5"
    ),
    "Budget: max_tokens is a bool .True., not an int or None. Give a whole number": lambda rules, kb: hapax.Budget(
        max_tokens=True
    ),
    "seconds is 0. Set it to a number above 0": lambda rules, kb: hapax.QueryLimits(seconds=0),
    "SearchSettings: beam is a str .'3'., not an int or None. Give a whole number": lambda rules, kb: (
        hapax.SearchSettings(beam="3")
    ),
    "plan is 'best'. Choose cheapest or premise-first": lambda rules, kb: hapax.SearchSettings(plan="best"),
    "SearchSettings: distributions is a str .'head'., .* Give a tuple of hapax.Distribution": lambda rules, kb: (
        hapax.SearchSettings(distributions="head")
    ),
    "temperature is -1. Set it to a number from 0": lambda rules, kb: hapax.SearchSettings(temperature=-1),
    "open_models has no option sed. Its options are library, seed": lambda rules, kb: hapax.open_models(
        "simulated", sed=3
    ),
}
"""Mistakes in values, by the pattern of the message."""


def simulated(rules: hapax.Library) -> hapax.Models:
    return hapax.open_models("simulated", library=rules)


@pytest.mark.parametrize("message", WRONG_ARGUMENTS)
def test_an_argument_of_a_wrong_type_is_named_with_its_remedy(
    rules: hapax.Library, kb: hapax.KnowledgeBase, message: str
) -> None:
    """A wrong argument is a HapaxError and a TypeError with operation, argument, type and remedy, before any work."""
    with pytest.raises(hapax.ArgumentRejected, match=f"^{message}") as raised:
        WRONG_ARGUMENTS[message](rules, kb)

    assert isinstance(raised.value, hapax.HapaxError)
    assert isinstance(raised.value, TypeError)


@pytest.mark.parametrize("message", WRONG_VALUES)
def test_a_wrong_value_is_named_with_its_remedy(rules: hapax.Library, kb: hapax.KnowledgeBase, message: str) -> None:
    """A value outside its range, or a name that is not among the choices, is a HapaxError that says what fits."""
    with pytest.raises(hapax.HapaxError, match=f"^{message}"):
        WRONG_VALUES[message](rules, kb)


def test_numbers_of_numpy_are_numbers() -> None:
    """A number that comes from an array or a data frame is accepted where Python's own is."""
    numpy = pytest.importorskip("numpy")

    settings = hapax.SearchSettings(beam=numpy.int64(3), temperature=numpy.float32(0.5))

    assert (settings.beam, settings.temperature) == (3, 0.5)


def test_one_name_stands_for_a_list_of_names(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """`only` takes the name of one rule as it is, not as a list of its letters."""
    assert [rule.rule for rule in hapax.derive(rules, kb, only="may").report.rules] == ["may"]


OPTION = re.compile(r"(?<![\w-])--[a-z]")


def test_remedies_name_arguments(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """An error raised to Python speaks of arguments and operations, also in its diagnostics; the command line does not."""
    from hapax.api import operations

    hapax.add_facts(kb, "eats", [("tom", "milk")], rules)
    other = hapax.parse_rules("given knows(Person, Person)")
    with pytest.raises(hapax.GoalRejected, match="with `rules`") as raised:
        hapax.query("eats(tom, X)", other, kb)
    with pytest.raises(hapax.GoalRejected, match="with --rules"):
        operations.query("eats(tom, X)", other, kb)

    assert not OPTION.search(str(raised.value.diagnostics))
    limits = hapax.QueryLimits(seconds=0.2)
    with pytest.raises(hapax.LimitExceeded, match=r"Raise the limit with `limits.seconds`"):
        hapax.query(
            "member(_, [a]), findall(X, (between(1, 100000000, X), X < 0), Xs)",
            rules,
            kb,
            options=hapax.QueryOptions(limits),
        )


def test_a_spent_budget_speaks_of_calls_of_functions(rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    """A search that its budget ended says so in `stopped`, and what continues it, without naming a command."""
    stingy = hapax.open_models("simulated", library=rules, budget=hapax.Budget(max_calls=1))
    more = hapax.parse_rules("@name part\nis_in(Food A, Dish B) & is_in(Spice C, Dish B) -> may_have(Food A, Spice C)")
    result = hapax.search(more, kb, stingy)

    assert not result.complete
    assert "make the same call" in result.stopped or "the same call" in result.stopped
    assert "command" not in result.stopped


def test_every_option_in_a_message_has_its_argument() -> None:
    """Each option that a message of the rooms below the API names has an argument, or no operation can lead to it."""
    elsewhere = {
        "no-",
        "ask",
        "workers",
        "worker-gpus",
        "ray-address",
        "shards",
        "results",
        "version",
        "variable",
        "include",
        "head",
    }
    found: dict[str, str] = {}
    for room in ("grammar", "kb", "llm_oracle", "engine"):
        for path in (ROOT / room).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    for option in re.findall(r"(?<![\w-])--([a-z][a-z-]*)", node.value):
                        found[option] = path.name

    assert {option: file for option, file in found.items() if option not in ARGUMENT_OF_OPTION.keys() | elsewhere} == {}


def test_remedies_name_operations_that_exist() -> None:
    """Operations that take the place of commands in remedies are names of the front door."""
    assert set(OPERATION_OF_COMMAND.values()) <= set(hapax.__all__)
    assert in_python("Run `hapax why-not 'a(b)'`, or `hapax doctor`.") == "Run `hapax.why_not`, or `hapax doctor`."
    assert in_python("Name it with -m openai:x or --critic.") == "Name it with `knowledge` openai:x or `critic`."


def test_expectations_name_arguments_of_operations() -> None:
    """The table of argument types holds no name that no operation has."""
    operations = [getattr(hapax, name) for name in hapax.__all__ if not isinstance(getattr(hapax, name), type)]
    names = {name for operation in operations for name in inspect.signature(operation).parameters}

    assert {name.rpartition(".")[2].removeprefix("*") for name in EXPECTED} - names == set()


def test_operations_can_be_sent_to_other_processes() -> None:
    """An operation is pickled by its name, as a pool of processes needs."""
    assert pickle.loads(pickle.dumps(hapax.query)) is hapax.query  # noqa: S301  # our own


def test_rules_and_knowledge_bases_show_what_they_hold(rules: hapax.Library, tmp_path: Path) -> None:
    """Their text is short, their table in a notebook escapes what it shows, and a closed file can be shown."""
    kb = hapax.KnowledgeBase(tmp_path / "<b>.db")
    hapax.add_facts(kb, "is_in", [("milk", "pancake")], rules)

    assert repr(rules) == "<library of 1 rule, 3 declared predicates>"
    assert "<td>may</td>" in rules._repr_html_()
    assert "&lt;b&gt;.db: 1 fact, 0 statements&gt;" in kb._repr_html_()
    assert "<td>is_in/2</td><td>1</td>" in kb._repr_html_()
    kb.close()
    assert repr(kb) == f"<knowledge base {tmp_path / '<b>.db'}, closed>"
