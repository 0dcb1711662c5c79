"""Every public operation and class refuses arguments of the wrong type by an error of Hapax."""

import dataclasses
import inspect
import io
import pickle
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

import hapax
from hapax.evaluation.entailment.consistency import consistency
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.evaluation.entailment.scorers import RandomScorer
from hapax.grammar.arguments import checked, fits, in_words, remedy_of

RESULTS = {
    *("MinedRule", "MinedRules", "PredicateLinks"),
    *(
        "AnsweredQuestions",
        "Answers",
        "AskedSchemas",
        "Contents",
        "Derivation",
        "Diagnostic",
        "FaultExplanation",
        "EntailmentChains",
        "EntailmentsJudged",
        "Evaluation",
        "Examination",
        "Explanation",
        "FactChange",
        "Library",
    ),
    *("ModelListings", "ProposedRules", "Reconciliation", "ReportPage", "Rule", "RulesKept", "SearchAccount"),
    *("SearchResult", "SpendingLedger", "Verification"),
    *("Statement", "Statements"),
}
"""Classes of values that operations make; nobody calls them."""

VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

FREE = {"open_models.options"}
"""Arguments that pass on others."""


def public_calls() -> dict[str, Callable[..., Any]]:
    """Operations, classes that a script makes, and their class methods, by name."""
    calls: dict[str, Callable[..., Any]] = {}
    for name in hapax.__all__:
        public = getattr(hapax, name)
        if isinstance(public, type) and (name in RESULTS or issubclass(public, Exception | Enum)):
            continue
        calls[name] = public
    calls |= {
        "CriticRule.parse": hapax.CriticRule.parse,
        "CriticRule.at": hapax.CriticRule.at,
        "BlockList.read": hapax.BlockList.read,
        "TableMapping.of": hapax.TableMapping.of,
        "TableMapping.read": hapax.TableMapping.read,
    }
    return calls


def arguments() -> list[tuple[str, str]]:
    pairs = []
    for name, call in public_calls().items():
        pairs += [(name, argument) for argument in inspect.signature(call).parameters]
    return [(name, argument) for name, argument in pairs if f"{name}.{argument}" not in FREE]


@pytest.fixture(scope="module")
def fitting(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Values that fit required arguments, by name; nothing is done with them."""
    rules, kb = hapax.parse_rules(""), hapax.KnowledgeBase()
    models = hapax.open_models("simulated", library=rules)
    texts = dict.fromkeys(("text", "goal", "atom", "predicate", "source", "sentence", "model", "variable"), "text")
    texts |= dict.fromkeys(("path", "target", "database"), "folder")
    parts = {role: getattr(models, role) for role in ("knowledge", "critic", "likelihood", "evaluator")}
    sheets = {"kind": hapax.SheetKind.STATEMENTS, "sample": hapax.SampleOptions(), "voters": ("ann",)}
    pairs = [EntailmentPair(Triple("a", "b", "c"), Triple("a", "d", "c"), True)]
    grid = tmp_path_factory.mktemp("grid") / "grid.yaml"
    grid.write_text("models: [{name: small, knowledge: embedded}]", encoding="utf-8")
    files = hapax.ExpansionFiles(Path("meta.rules"), Path("out.rules"))
    return {
        "files": ["sheet.csv"],
        "sheet": Path("sheet.csv"),
        "folder": Path("folder"),
        "leaderboard.dataset": Path("folder"),
        "train": Path("train.txt"),
        "dev": Path("dev.txt"),
        "corpus": ["triples.jsonl"],
        "sets": {},
        "start": 1,
        "below": 2,
        "entailments": [],
        "train_entailment.options": hapax.TrainingOptions("checkpoint"),
        "audit": consistency(RandomScorer(), pairs),
        "draw_audit.evaluation": hapax.resolve_schemas([]),
        "draw_entailments.evaluation": hapax.resolve_schemas([]),
        "write_answers.evaluation": hapax.resolve_schemas([]),
        "write_entailment_splits.evaluation": hapax.resolve_schemas([]),
        "rules": rules,
        "kb": kb,
        "models": models,
        "rows": [],
        "at_least": 0.5,
        "value": 0.5,
        "columns": ["a"],
        "settings": hapax.ExpansionSettings("X"),
        "items": [],
        "options": ("a", "b"),
        "meta": Path("a"),
        "output": Path("b"),
        "judges": [],
        "stream": io.StringIO(),
        "callback": print,
        "facts": [],
        "grid": hapax.read_grid(grid),
        "expand_rules.files": files,
        "export_sheets.options": hapax.SheetExportOptions(**sheets),
        **texts,
        **parts,
        **sheets,
        "base": "embedded",
        "SchemaGenerationOptions.likelihood": "embedded",
        "paths": ["schemas.csv"],
        "annotators": ("ann",),
        "generate_schemas.options": hapax.SchemaGenerationOptions("embedded", "embedded", "embedded"),
        "export_schema_sheets.options": hapax.SchemaSheetOptions(("ann",)),
        "restore_backup.copy": "copy.db",
        "backup.database": "kb.db",
        "datasette_metadata.database": "kb.db",
        "write_rewordings.evaluation": hapax.resolve_schemas([]),
        "write_schemas.evaluation": hapax.resolve_schemas([]),
    }


@pytest.mark.parametrize(("name", "argument"), arguments())
def test_a_wrong_type_is_refused_by_name(name: str, argument: str, fitting: dict[str, Any]) -> None:
    """A wrong type for any argument of any public callable is a HapaxError with argument, type and remedy."""
    call = public_calls()[name]
    given: dict[str, Any] = {}
    for other, parameter in inspect.signature(call).parameters.items():
        if other == argument:
            given[other] = object()
        elif parameter.default is parameter.empty and parameter.kind not in VARIABLE:
            given[other] = fitting.get(f"{name}.{other}", fitting.get(other))
    bound = inspect.signature(call).bind_partial()
    bound.arguments.update(
        {
            key: (value,) if inspect.signature(call).parameters[key].kind is inspect.Parameter.VAR_POSITIONAL else value
            for key, value in given.items()
        }
    )

    with pytest.raises(hapax.ArgumentRejected, match=rf"{argument} is an object, not .+\. \w+ .+\.$") as raised:
        call(*bound.args, **bound.kwargs)

    assert isinstance(raised.value, hapax.HapaxError)


def test_a_class_is_still_a_class() -> None:
    """Checked classes are pickled, replaced and subclassed as before."""
    settings = hapax.SearchSettings(seed=3)

    copied = pickle.loads(pickle.dumps(settings))  # noqa: S301  # our own
    assert copied == dataclasses.replace(hapax.SearchSettings(), seed=3)
    assert isinstance(hapax.KnowledgeBase(), hapax.KnowledgeBase)


@pytest.mark.parametrize(
    ("kind", "fitting", "unfit"),
    [
        (int, [3, -1, 0], [2.5, True, "3", None]),
        (float, [2.5, 3], [False, "2.5", 1j]),
        (bool, [True, False], [1, 0, "true"]),
        (str, ["a", ""], [b"a", 1, ["a"]]),
        (str | None, ["a", None], [1]),
        (Literal["a", "b"], ["a", "c"], [1, None]),  # which of them is checked by the operation
        (typing.Annotated[int, "positive"], [1], [1.5]),
        (Sequence[str], [["a"], ("a", "b"), [], {"a"}], ["a", b"a", {"a": 1}, ["a", 1]]),
        (tuple[str, ...], [("a",), ["a"], ()], ["a", ("a", 1), 3]),
        (Iterable[str], ["a", ["a"], iter([])], [1]),
        (Mapping[str, int], [{"a": 1}], [["a"], [("a", 1)]]),
        (Callable[[], int], [print], ["print", 3]),
        (typing.IO[str], [io.StringIO()], ["text", Path("text")]),
        (Path, [Path("a")], ["a"]),
        (typing.ForwardRef("Path"), [Path("a")], ["a"]),
    ],
)
def test_values_fit_a_type(kind: Any, fitting: list[Any], unfit: list[Any]) -> None:
    """A value fits if Python's typing allows it; a truth value is no number, and a text is no list."""
    assert [value for value in fitting if not fits(value, kind)] == []
    assert [value for value in unfit if fits(value, kind)] == []


@pytest.mark.parametrize(
    ("kind", "words", "remedy"),
    [
        (int, "an int", "Give a whole number"),
        (str | None, "a str or None", "Give a text"),
        (str | Path, "a str or Path", "Give the name of a file or folder"),
        (Sequence[str], "a list of str", "Give a list of str"),
        (Sequence[str | Path], "a list of str or Path", "Give a list of str or Path"),
        (Mapping[str, int], "a Mapping", "Give a Mapping"),
        (Literal["a", "b"], "a str", "Give a text"),
        (typing.Annotated[int, "positive"], "an int", "Give a whole number"),
        (typing.ForwardRef("Image"), "an Image", "Give an Image"),
    ],
)
def test_a_type_has_words_and_a_remedy(kind: Any, words: str, remedy: str) -> None:
    """Messages name a type with its article and say what to give."""
    assert (in_words(kind), remedy_of(kind)) == (words, remedy)


def test_annotations_that_are_types_are_checked() -> None:
    """A function whose annotations are types instead of texts, as in a script, is checked by them."""

    @checked
    def asked(times: int, text: str | None = None, *, limit: Any = None, anything=0, **more: int) -> int:
        return times

    assert asked(2) == asked(2, None, limit=None, anything="x", other="y") == 2
    with pytest.raises(
        hapax.ArgumentRejected, match=r"asked: times is a str \('2'\), not an int\. Give a whole number\."
    ):
        asked("2")
    with pytest.raises(hapax.ArgumentRejected, match=r"times is None, not an int"):
        asked(None)


def test_a_table_is_mapped_by_a_call() -> None:
    """A mapping of a table is made by its class, whose annotations Pydantic has read already."""
    mapping = hapax.TableMapping.of("eats", ["dog", "food"], table="meals")

    assert hapax.TableMapping(facts=mapping.facts, table="meals", delimiter=None) == mapping
