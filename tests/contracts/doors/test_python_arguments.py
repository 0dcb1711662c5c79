"""Every public operation and class refuses arguments of the wrong type by an error of Hapax that names the argument."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import hapax

RESULTS = {
    "AnsweredQuestion",
    "AnsweredQuestions",
    "Answers",
    "Contents",
    "Derivation",
    "Diagnostic",
    "Evaluation",
    "Examination",
    "Explanation",
    "FactChange",
    "FaultExplanation",
    "Library",
    "MinedRule",
    "MinedRules",
    "ModelListings",
    "ProposedRules",
    "ReportPage",
    "Rule",
    "RulesKept",
    "SearchAccount",
    "SearchResult",
    "SpendingLedger",
    "Statement",
    "Statements",
    "Verification",
}
"""Classes of values that operations make; nobody calls them."""
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def public_calls() -> dict[str, Callable[..., Any]]:
    """Operations, classes that a script makes, and their class methods, by name."""
    calls: dict[str, Callable[..., Any]] = {}
    for name in hapax.__all__:
        public = getattr(hapax, name)
        if not (isinstance(public, type) and (name in RESULTS or issubclass(public, Exception | Enum))):
            calls[name] = public
    methods = {hapax.CriticRule: ("parse", "at"), hapax.BlockList: ("read",), hapax.TableMapping: ("of", "read")}
    return calls | {f"{kind.__name__}.{name}": getattr(kind, name) for kind, names in methods.items() for name in names}


@pytest.fixture(scope="module")
def fitting(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Values that fit required arguments, by name; nothing is done with them."""
    rules, kb = hapax.parse_rules(""), hapax.KnowledgeBase()
    models = hapax.open_models("simulated", library=rules)
    grid = tmp_path_factory.mktemp("grid") / "grid.yaml"
    grid.write_text("models: [{name: small, knowledge: embedded}]", encoding="utf-8")
    sheets = {"kind": hapax.SheetKind.STATEMENTS}
    return {
        **dict.fromkeys(("text", "goal", "atom", "predicate", "source", "sentence", "model", "variable"), "text"),
        **dict.fromkeys(("path", "target", "database"), "a"),
        **dict.fromkeys(("folder", "sheet", "train", "dev", "meta", "output"), Path("a")),
        **{key: [] for key in ("rows", "entailments", "items", "judges", "facts")},
        **{key: ["a"] for key in ("files", "corpus", "columns", "paths", "annotators")},
        **dict.fromkeys(("at_least", "value"), 0.5),
        **{role: getattr(models, role) for role in ("knowledge", "critic", "likelihood", "evaluator")},
        **sheets,
        "rules": rules,
        "kb": kb,
        "models": models,
        "start": 1,
        "below": 2,
        "sets": {},
        "settings": hapax.ExpansionSettings("X"),
        "options": ("a", "b"),
        "stream": io.StringIO(),
        "callback": print,
        "base": "embedded",
        "copy": "copy.db",
        "grid": hapax.read_grid(grid),
        "evaluation": hapax.count_schemas(),
        "SchemaGenerationOptions.likelihood": "embedded",
        "expand_rules.files": hapax.ExpansionFiles(Path("meta.rules"), Path("out.rules")),
        "export_sheets.options": hapax.SheetExportOptions(**sheets),
        "export_schema_sheets.options": hapax.SchemaSheetOptions(("ann",)),
        "generate_schemas.options": hapax.SchemaGenerationOptions("embedded", "embedded", "embedded"),
    }


def refusal(call: Callable[..., Any], argument: str, others: dict[str, Any]) -> str:
    """The message of a call about an object in the place of one argument."""
    signature = inspect.signature(call)
    bound = signature.bind_partial()
    bound.arguments.update({**others, argument: object()})
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = (value,)
    try:
        call(*bound.args, **bound.kwargs)
    except hapax.ArgumentRejected as error:
        return str(error)
    return ""


def test_a_wrong_type_is_refused_by_name(fitting: dict[str, Any]) -> None:
    """For any argument of any public callable; the error says what was given, what fits, and what to do."""
    assert issubclass(hapax.ArgumentRejected, hapax.HapaxError)
    assert issubclass(hapax.ArgumentRejected, TypeError)
    checked, silent = 0, []
    for name, call in public_calls().items():
        required = {
            other: fitting.get(f"{name}.{other}", fitting.get(other))
            for other, parameter in inspect.signature(call).parameters.items()
            if parameter.default is parameter.empty and parameter.kind not in VARIABLE
        }
        for argument in inspect.signature(call).parameters:
            others = {other: value for other, value in required.items() if other != argument}
            if f"{name}.{argument}" == "open_models.options" or None in others.values():
                continue  # passes on arguments of others; needs a value that only a long operation makes
            checked += 1
            said = refusal(call, argument, others)
            if f"{argument} is an object, not " not in said or not said.endswith("."):
                silent.append(f"{name}.{argument}: {said}")

    assert not silent, chr(10).join(silent)
    assert checked > 400


@pytest.mark.parametrize(
    ("call", "unfit"),
    [
        (lambda value: hapax.SearchSettings(seed=value), (2.5, True, "3", None)),
        (lambda value: hapax.SearchSettings(temperature=value), (False, "2.5", 1j)),
        (hapax.parse_rules, (b"a", 1, ["a"], Path("a"))),
        (lambda value: hapax.OpeningOptions(retry_unusable=value), (1, "true")),
        (lambda value: hapax.TableMapping.of("p", value), ("a", {"a": 1}, ["a", 1.5])),
    ],
    ids=["int", "float", "str", "bool", "list"],
)
def test_values_that_python_takes_for_others_are_refused(call: Callable[[Any], Any], unfit: tuple[Any, ...]) -> None:
    """A truth value is no number, a number no text, and a text no list of texts."""
    for value in unfit:
        with pytest.raises(hapax.HapaxError):
            call(value)


def test_settings_work_in_a_checkout_on_the_import_path() -> None:
    """A class that is imported from its room's folder, and not below `hapax`, takes and refuses the same values."""
    program = "from engine.search.settings import SearchSettings; print(SearchSettings(compat={!r}).compat)"
    root = Path(hapax.__file__).resolve().parents[1]

    def told(compat: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program.format(compat)]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    assert told("released").stdout.split() == ["released"]
    assert "ArgumentRejected" in told(3).stderr
