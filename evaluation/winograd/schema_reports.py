"""Tables of stored runs beside the paper's own, cases, sheets on schemas, and tasks for lm-evaluation-harness."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, combinations, product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.dataset.columns import json_line
from hapax.evaluation.dataset.formats import group_files
from hapax.evaluation.shared.estimates import Estimate, agreement, share
from hapax.evaluation.shared.lazy import scipy
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.evaluation.votes.sheets import check_voter_names, sheets, write_sheets
from hapax.evaluation.votes.voting_items import subject_id
from hapax.evaluation.votes.voting_questions import (
    SCHEMA,
    SCHEMA_AVAILABLE,
    SCHEMA_LABELS,
    SheetForms,
    SheetKind,
    VotingItem,
    schema_item,
)
from hapax.evaluation.winograd.generation import Generated
from hapax.evaluation.winograd.schema_asking import (
    ABSENT,
    PAPER,
    PROMPTED,
    SCORED,
    Concepts,
    PromptMethod,
    PromptWording,
    Scores,
    Sources,
    StoredRun,
    WordingVariant,
    prompt,
    read_concepts,
    readings_table,
    stored_runs,
)
from hapax.evaluation.winograd.schema_files import HUMAN, MACHINE, WSC273, Pair, read_pairs
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import CALL, Operation, Remedy, Setting
from hapax.kb.files.unfinished import replace_file
from hapax.kb.files.whole_files import atomic_text_file
from hapax.kb.records import CallRecord, content_id
from hapax.kb.store import KnowledgeBase

TABLE_2_MODELS = ("GPT3.5", "Llama3.1", "Mistral-7B")
TABLE_3_METHODS = ("Zero-shot?", "One-shot", "ZS CoT?", "CoT", "AoT")
"""Two headers are missing from our copy of the paper; their names follow from the order of table 2."""

SENTENCES = {WSC273: (272, 136), HUMAN: (102, 51), MACHINE: (410, 205)}
"""Numbers of sentences and pairs that single and pair accuracies are shares of."""

FAMILIES = 51

DISAGREEMENT = 7.5
"""Percentage from appendix E that bounds the disagreement of annotators."""


# --- the paper's own --------------------------------------------------------------------------------------------------

_WIDE, _NARROW = (WSC273, HUMAN, MACHINE), (HUMAN, MACHINE)
"""Sources of table 1, and of the others."""


def _columns(sources: Sequence[str]) -> list[str]:
    return [f"{source} {accuracy}" for source, accuracy in product(sources, ("single", "pair"))]


PRINTED: Mapping[int, tuple[Sequence[str], Sequence[int]]] = {
    1: (_columns(_WIDE), [count for source in _WIDE for count in SENTENCES[source]]),
    2: (
        [f"{model} {column}" for model, column in product(TABLE_2_MODELS, _columns(_NARROW))],
        [count for source in _NARROW for count in SENTENCES[source]] * len(TABLE_2_MODELS),
    ),
    3: (TABLE_3_METHODS, [FAMILIES] * len(TABLE_3_METHODS)),
    5: (_columns(_NARROW), [count for source in _NARROW for count in SENTENCES[source]]),
}
"""By number of a table: its columns, and the number of cases that each is a share of."""


def printed_tables() -> Iterator[ResultTable]:
    """The paper's tables as printed."""
    for number, (columns, _) in PRINTED.items():
        rows = []
        for name, values in PAPER["tables"][number].items():
            # The paper prints two decimals, and three in one cell.
            rows.append([name, *(f"{value:.3f}".removesuffix("0") for value in values)])
        title = f"Reference: the paper's table {number}, for other models and replies"
        yield ResultTable(title, ("", *columns), rows)


def impossible() -> Iterator[str]:
    """Printed percentages that no whole number of right answers can give."""
    for number, (columns, counts) in PRINTED.items():
        for row, values in PAPER["tables"][number].items():
            for column, count, value in zip(columns, counts, values, strict=True):
                if not possible(value, count):
                    yield f"table {number}, {row}, {column}: no k of {count} gives {value}"


def possible(value: float, count: int) -> bool:
    """True if some k of `count` gives the printed percentage, rounded or truncated to its digits."""
    digits = 3 if round(value, 2) != value else 2  # one value has three decimals
    # A truncated percentage may belong to a neighbour of the nearest number.
    nearest = round(value * count / 100)
    shares = [100 * hits / count for hits in (nearest - 1, nearest, nearest + 1) if 0 <= hits <= count]
    return any(abs(round(found, digits) - value) < 1e-9 or 0 <= found - value < 10**-digits for found in shares)


# --- ours -------------------------------------------------------------------------------------------------------------

NAMES = {
    PromptMethod.ZERO_SHOT: "Zero-shot",
    PromptMethod.ONE_SHOT: "One-shot",
    PromptMethod.WINOWHY: "WinoWhy",
    PromptMethod.ZS_COT: "ZS CoT",
    PromptMethod.COT: "CoT",
    PromptMethod.AOT: "AoT",
    PromptMethod.AOT_STAGED: "AoT, staged",
    PromptMethod.LIKELIHOOD: "Likelihood",
    PromptMethod.LIKELIHOOD_PARTIAL: "Likelihood, partial",
    PromptMethod.LIKELIHOOD_PMI: "Likelihood, PMI",
    PromptMethod.LIKELIHOOD_CHOICE: "Likelihood, choice",
}
"""Methods as table 2 names them."""

SHORT: Mapping[str, str] = {PromptMethod.ZERO_SHOT: "0-s", PromptMethod.ONE_SHOT: "1-s"}
UNAVAILABLE = Remedy(
    "no prompt: neither paper nor release has it; supply one with {}", Setting("settings.own", "NAME=FILE")
)


@checked
def tabulate_schemas(kb: KnowledgeBase) -> Evaluation[list[StoredRun]]:
    """Tables 1, 2, 3 and 5 of the stored answers, McNemar's test between methods, and the paper's own tables."""
    runs = stored_runs(kb)
    # Scores of a part of the pairs cannot be compared with those of all.
    finished = [run for run in runs if run.record.status == "done"]
    readings = readings_table(finished, "Strict and released reading, with 95 % intervals")
    ours = (*_tables(finished), readings, _tests(finished))
    tables, notes = [*(table for table in ours if table.rows), *printed_tables()], []
    for run in runs:
        if run.record.status != "done":
            asked, done = run.settings, f"{len(run.answers) // 2} of {run.settings['pairs']} pairs"
            notes.append(
                f"{asked['method']} on {asked['source']} by {run.model} has {done} and is left out of the tables; run "
                f"the same {CALL} again to finish it"
            )
    if not runs:
        notes.append(f"Nothing was asked yet. Ask with {Operation('ask_schemas', 'FILE', knowledge='MODEL')}.")
    notes += [f"printed, but not possible: {text}" for text in impossible()]
    return Evaluation(runs, tables, [run.figures for run in runs], notes=notes)


def _tables(runs: Sequence[StoredRun]) -> Iterator[ResultTable]:
    """Tables 1, 2, 3 and 5 of finished runs; without rows where nothing was asked for them."""
    # By model, with a mark for unusual wordings; then by method and source.
    scores: dict[str, dict[tuple[str, str], Scores]] = {}
    for run in runs:
        variant = run.settings["variant"]
        model = run.model if variant == "paper" else f"{run.model} [{variant}]"
        scores.setdefault(model, {})[run.settings["method"], run.settings["source"]] = run.scores()
    keys = list(dict.fromkeys(chain.from_iterable(scores.values())))
    # In the order of table 2; users' own prompts come last.
    order = list(map(str, NAMES))
    asked = dict.fromkeys(method for method, _ in keys)
    methods = sorted(asked, key=lambda name: order.index(name) if name in order else len(order))

    def cells(model: str, method: str, sources: Sequence[str]) -> list[str]:
        """Single and pair accuracies of a method on each source."""
        found = [scores[model].get((method, source)) for source in sources]
        pairs = ((own.single, own.pair) if own else (None, None) for own in found)
        return list(map(_percent, chain.from_iterable(pairs)))

    rows: list[list[str]] = []
    for model, (method, short) in product(scores, SHORT.items()):
        rows.append([f"{model} ({short})", *cells(model, method, _WIDE)])
    yield ResultTable(
        "Table 1 (strict reading)", ("", *_columns(_WIDE)), [row for row in rows if set(row[1:]) != {ABSENT}]
    )
    # Columns for each model, as printed, and for other sources than the paper's.
    others = dict.fromkeys(source for _, source in keys if source != WSC273)
    sources, rows = sorted(others, key=[*_NARROW, *others].index), []
    for method in methods:
        rows.append([method_name(method), *chain.from_iterable(cells(model, method, sources) for model in scores)])
    columns = [f"{model} {column}" for model, column in product(scores, _columns(sources))]
    yield ResultTable("Table 2 (strict reading)", ("", *columns), [row for row in rows if set(row[1:]) != {ABSENT}])
    on_machine, rows = [method for method in methods if (method, MACHINE) in keys], []
    for model, own in scores.items():
        if any(source == MACHINE for _, source in own):
            found = [own.get((method, MACHINE)) for method in on_machine]
            rows.append([model, *(_percent(score.consistency if score else None) for score in found)])
    title = f"Table 3 (strict reading): consistency on {MACHINE}"
    yield ResultTable(title, ("", *map(method_name, on_machine)), rows)
    # AoT2 and AoT3 are the names under which users ask with their own prompts.
    variants, rows = {"AoT1": PromptMethod.AOT.value, "AoT2": "AoT2", "AoT3": "AoT3"}, []
    for model, own in scores.items():
        of_model = {method for method, _ in own}
        for name, method in variants.items() if of_model & set(variants.values()) else ():
            remark = str(UNAVAILABLE) if method not in of_model and name != "AoT1" else ""
            rows.append([name, model, *cells(model, method, _NARROW), remark])
    yield ResultTable("Table 5 (strict reading)", ("", "model", *_columns(_NARROW), ""), rows)


def _percent(estimate: Estimate | None) -> str:
    return ABSENT if estimate is None or math.isnan(estimate.value) else f"{100 * estimate.value:.2f}"


def method_name(method: str) -> str:
    """The method's name in table 2, or the name of a user's own prompt."""
    return NAMES.get(PromptMethod(method), method) if method in set(PromptMethod) else method


def _tests(runs: Sequence[StoredRun]) -> ResultTable:
    """McNemar's exact test between every two methods of a model on a source, by the strict reading.

    Numbers of sentences that only the first and only the second answers right, and the two-sided p-value.
    """
    rows = []
    for first, second in combinations(runs, 2):
        right = {answer.item: answer.right for answer in first.answers}
        outcomes = [(right[answer.item], answer.right) for answer in second.answers if answer.item in right]
        source = first.settings["source"]
        if (first.model, source) == (second.model, second.settings["source"]) and outcomes:
            counts = outcomes.count((True, False)), outcomes.count((False, True))
            # The binomial test needs at least one trial.
            p_value = float(scipy.stats.binomtest(counts[0], sum(counts)).pvalue) if any(counts) else 1.0
            rows.append((first.label, second.label, first.model, source, *counts, f"{p_value:.4g}"))
    columns = ("first", "second", "model", "source", "only first right", "only second right", "p")
    return ResultTable("McNemar's exact test (strict reading)", columns, rows)


# --- cases (appendix F) -----------------------------------------------------------------------------------------------

COMPARED = ("cot", "aot")
"""Methods that the paper compares case by case."""

CASES = 10
"""Most cases of each source that `compare_cases` lists."""

ABSTRACTING = (PromptMethod.AOT, PromptMethod.AOT_STAGED)
"""Methods whose prompts ask for concepts."""

STEM = 4
"""First letters by which two words count as forms of one word, such as weak and weaker."""

_WORD = re.compile(r"[a-z]{3,}")

# Frequent words that describe no quality.
_EMPTY = frozenset(
    ("the", "and", "was", "were", "had", "has", "have", "been", "that", "one", "very", "too", "because", "for")
)


class Failure(StrEnum):
    """The two failures of abstraction in the paper (appendix F), and failures of another kind."""

    FORMAT = "format not kept: concepts or answers could not be read"
    LEVEL = "wrong level of abstraction"
    CUE = "adversarial cue kept"
    OTHER = "neither: the reasoning about sound concepts failed"


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """A pair with the replies of two methods. `failures`: those of the second method, if its answer is wrong."""

    pair: Pair
    methods: tuple[str, str]
    replies: tuple[str, str]
    right: tuple[bool, bool]
    failures: tuple[Failure, ...]

    def lines(self) -> Iterator[str]:
        """The case as text, with an empty line after it."""
        yield f"{self.pair[0].pair}: {self.pair[0].text} / {self.pair[1].text}"
        for method, reply, right in zip(self.methods, self.replies, self.right, strict=True):
            yield f"  {method} ({'right' if right else 'wrong'}):"
            yield from (f"    {line}" for line in reply.strip().splitlines())
        yield from (f"  tag: {failure.value}" for failure in self.failures)
        yield ""

    @property
    def figures(self) -> dict[str, Any]:
        """The case for programs."""
        rows = zip(self.methods, self.replies, self.right, strict=True)
        methods = [dict(zip(("method", "reply", "right"), row, strict=True)) for row in rows]
        sentences = [item.text for item in self.pair]
        return {"pair": self.pair[0].pair, "sentences": sentences, "methods": methods, "failures": self.failures}


def failures_of(pair: Pair, concepts: Concepts | None, answered: bool = True) -> tuple[Failure, ...]:
    """Failures of an abstraction that led to a wrong answer, judged by its words.

    The format is not kept if no concepts are stated, or if the answers are not read (`answered`); that says nothing
    about the abstraction. The level is wrong if a concept names the very quality in which the two sentences differ (a
    "weak individual" where one "was so weak"). A cue is kept if a concept repeats a word of its entity.
    """
    if concepts is None:
        return (Failure.FORMAT,)
    failures = [] if answered else [Failure.FORMAT]
    # Words of one sentence alone: the quality that the two answers turn on.
    differing = _words(pair[0].text) ^ _words(pair[1].text)
    if any(_share_stem(_words(concept), differing) for concept in concepts):
        failures.append(Failure.LEVEL)
    if any(_share_stem(_words(concepts[place]), _words(pair[0].options[place])) for place in (0, 1)):
        failures.append(Failure.CUE)
    return tuple(failures) or (Failure.OTHER,)


@checked
def compare_cases(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    methods: tuple[str, str] = COMPARED,
    *,
    model: Annotated[str | None, Option("Only runs of models whose name begins with this text.", short="-m")] = None,
    sources: Sources = (),
    most: Annotated[int, Option("Maximum number of pairs to show of each source.", least=1)] = CASES,
) -> Evaluation[dict[tuple[str, str], list[CaseComparison]]]:
    """Stored replies of two methods to the same pairs, by model and source, with the failures of the second tagged.

    `model`: the beginning of the models' names. The tables list at most `most` cases of each source. Raises HapaxError
    if no model was asked by both methods.
    """
    pairs = {pair[0].pair: pair for pair in read_pairs(paths)}
    # Runs in the same wording are compared; a method with a single wording has that which was asked for beside it.
    runs: dict[tuple[str, str, str], dict[str, StoredRun]] = {}
    for run in stored_runs(kb):
        settings = run.settings
        if (not sources or settings["source"] in sources) and (model is None or run.model.startswith(model)):
            runs.setdefault((run.model, settings["source"], settings["variant"]), {})[settings["method"]] = run
    by_run: dict[tuple[str, str], list[CaseComparison]] = {}
    for (name, source, _), by_method in runs.items():
        if by_method.keys() >= set(methods):
            first, second = (by_method[method] for method in methods)
            by_run.setdefault((name, source), []).extend(cases(kb, pairs, first, second))
    if not any(by_run.values()):
        raise HapaxError(
            f"{kb.place}: no pairs of these files were asked by both {methods[0]} and {methods[1]}.",
            Remedy("Ask first, with {}.", Operation("ask_schemas")),
        )
    shown = [case for run_cases in by_run.values() for case in run_cases[:most]]
    lines = list(chain.from_iterable(case.lines() for case in shown))
    return Evaluation(by_run, (), [case.figures for case in shown], details=lines)


def cases(kb: KnowledgeBase, pairs: dict[str, Pair], first: StoredRun, second: StoredRun) -> Iterator[CaseComparison]:
    """Pairs that both runs answered: first those that the second fails on, then those that the first fails on."""
    calls = kb.calls([identity for run in (first, second) for ids in run.calls.values() for identity in ids])
    comparisons, methods = [], (first.settings["method"], second.settings["method"])
    for name in second.calls:
        # A budget may have ended one of the runs, and the files may hold only some of the pairs.
        if name not in first.calls or name not in pairs:
            continue
        pair = pairs[name]
        replies = _reply(calls, first, pair), _reply(calls, second, pair)
        answers = [[answer for answer in run.answers if answer.pair == name] for run in (first, second)]
        right = all(answer.right for answer in answers[0]), all(answer.right for answer in answers[1])
        failures: tuple[Failure, ...] = ()
        # Scores have no format, and say nothing of concepts.
        if not right[1] and methods[1] not in SCORED:
            answered = all(answer.strict is not None for answer in answers[1])
            concepts = read_concepts(replies[1], pair[0].options)
            if methods[1] in ABSTRACTING or concepts is not None:
                failures = failures_of(pair, concepts, answered)
            elif not answered:
                # A method that asks for no concepts fails by its format alone.
                failures = (Failure.FORMAT,)
        comparisons.append(CaseComparison(pair, methods, replies, right, failures))
    # False sorts before True.
    yield from sorted(comparisons, key=lambda case: (case.right[1], case.right[0]))


def _reply(calls: Mapping[str, CallRecord], run: StoredRun, pair: Pair) -> str:
    """Replies about a pair; those that are not in the journal are left out. Methods that score have chosen options."""
    if run.settings["method"] not in SCORED:
        return "\n\n".join(str(calls[call].response["text"]) for call in run.calls[pair[0].pair] if call in calls)
    chosen = {answer.item: answer.strict for answer in run.answers}
    options = [(item.options, chosen.get(item.id)) for item in pair]
    return "\n".join("no option" if place is None else names[place] for names, place in options)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY


def _share_stem(words: frozenset[str], others: frozenset[str]) -> bool:
    """True if a word of each set is equal, or a form of the same word."""
    stems = {word[:STEM] for word in words if len(word) >= STEM}
    return bool(words & others) or any(len(word) >= STEM and word[:STEM] in stems for word in others)


# --- tasks for lm-evaluation-harness, and sheets for annotators -------------------------------------------------------

_AVERAGED = ("single", "pair", "unparsed")
"""Metrics whose value for a group of tasks is the mean over all documents."""

CHOOSING = (PromptMethod.ZERO_SHOT, PromptMethod.ONE_SHOT)
"""Methods without reasoning before the answer, so that the likeliest of the four answers can be chosen."""

# Files of a task folder that are the same for all schemas. The harness treats every file that ends in .yaml as a task,
# so those that tasks include have no such suffix.
_SHIPPED = {
    "utils.py": "shipped_lm_eval.py",
    "reading.py": "reply_reading.py",
    "_written_yaml": "tasks_written.yaml",
    "_choice_yaml": "tasks_choice.yaml",
    "README.md": "tasks.md",
}


@checked
@dataclass(frozen=True, slots=True)
class SchemaExportOptions:
    """Options of an export."""

    name: Annotated[str, Option("First part of the task names.")] = "winograd"
    variant: WordingVariant = PromptWording.PAPER
    sources: Sources = ()


@checked
def export_schemas(
    paths: Sequence[str | Path], folder: str | Path, options: SchemaExportOptions | None = None
) -> list[Path]:
    """Write the pairs of files as tasks for lm-evaluation-harness, and return the paths of the tasks.

    The same files and options give the same bytes. Raises HapaxError if there are no pairs.
    """
    folder, options = Path(folder), options or SchemaExportOptions()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", options.name):
        raise HapaxError(f"{options.name!r} is not a valid task name. Use lower-case letters, digits and underscores.")
    by_slug: dict[str, list[Pair]] = {}
    for pair in read_pairs(paths):
        if not options.sources or pair[0].source in options.sources:
            # The harness takes lower-case letters, digits and underscores in the names of tasks.
            slug = re.sub(r"[^a-z0-9]+", "_", pair[0].source.lower()).strip("_") or "pairs"
            by_slug.setdefault(slug, []).append(pair)
    if not by_slug:
        raise HapaxError(
            f"{', '.join(map(str, paths))}: no pairs to export.",
            Remedy("Name another file, or another {}.", Setting("options.sources")),
        )
    tasks = folder / "lm_eval"
    tasks.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in _files(by_slug, options):
        written.append(tasks / name)
        replace_file(written[-1], text)
    return written


def _column(method: PromptMethod) -> str:
    return f"prompt_{method.value.replace('-', '_')}"


def _files(by_slug: Mapping[str, Sequence[Pair]], options: SchemaExportOptions) -> Iterator[tuple[str, str]]:
    for slug, pairs in by_slug.items():
        yield f"{slug}.jsonl", "".join(json_line(_document(pair, options.variant)) for pair in pairs)
    for name, shipped in _SHIPPED.items():
        text = Path(__file__).with_name(shipped).read_text(encoding="utf-8")
        yield name, text.format(name=options.name) if name == "README.md" else text
    for ending, base, methods in (("", "_written_yaml", PROMPTED), ("_choice", "_choice_yaml", CHOOSING)):
        tasks = {}
        for slug, method in product(by_slug, methods):
            text = f"{{{{{_column(method)}}}}}"  # a template of the harness: {{prompt_aot}}
            content = {"dataset_kwargs": {"data_file": f"{slug}.jsonl"}, "doc_to_text": text}
            tasks[f"{options.name}{ending}_{slug}_{method.value.replace('-', '_')}"] = content
        yield from group_files(f"{options.name}{ending}", base, tasks, _AVERAGED)


def _document(pair: Pair, variant: PromptWording) -> dict[str, Any]:
    options = pair[0].options
    return {
        "pair": pair[0].pair,
        "family": pair[0].family,
        "sentences": [item.text for item in pair],
        "options": list(options),
        "gold": [item.answer for item in pair],
        # Place in `choices`, in which the second answer runs fastest.
        "label": 2 * pair[0].answer + pair[1].answer,
        "choices": [f"1. {first} 2. {second}" for first, second in product(options, repeat=2)],
        # The harness puts a blank between prompt and answer.
        **{_column(method): prompt(pair, method, variant).rstrip(" ") for method in PROMPTED},
    }


LABELS = tuple(f"{SCHEMA} label {number}" for number in (1, 2))
AVAILABLE = tuple(f"{SCHEMA} {key}" for key in SCHEMA_AVAILABLE)
FEWEST = 2
"""Minimum number of annotators for each schema, as in the paper."""


def item_of(pair: Pair) -> VotingItem:
    """The schema as an item of a sheet. Its id depends only on what annotators read there."""
    first, second = pair
    # Not the label: correcting it in the file must not detach the votes.
    identity = content_id("schema", first.text, second.text, first.pronoun, second.pronoun, *first.options)
    return schema_item(f"schema:{identity}", (first.text, second.text), (first.pronoun, second.pronoun), first.options)


@dataclass(frozen=True, slots=True)
class VotedSchema:
    """A schema with its votes, by question and annotator."""

    pair: Pair
    votes: Mapping[str, Mapping[str, str]]

    @property
    def annotators(self) -> int:
        return len(set(chain.from_iterable(self.votes.values())))

    @property
    def disputed(self) -> bool:
        """True if annotators differ on any question."""
        return any(len(set(by_voter.values())) > 1 for by_voter in self.votes.values())

    def decided(self, question: str) -> str | None:
        """The answer of more than half of the annotators, if there is one."""
        answers = Counter(self.votes.get(question, {}).values())
        # Half of the votes is not a majority: with two annotators, both must agree.
        return next((answer for answer, count in answers.items() if 2 * count > answers.total()), None)

    @property
    def discarded(self) -> str:
        """Reason why the schema is discarded; empty if it is kept."""
        if self.annotators < FEWEST:
            return "fewer than two annotators"
        answers = list(map(self.decided, (*LABELS, *AVAILABLE)))
        if None in answers:
            return "annotators disagree"
        if answers[: len(LABELS)] != [SCHEMA_LABELS[item.answer] for item in self.pair]:
            return "people give another label"
        return "" if set(answers[len(LABELS) :]) == {"yes"} else "not available"


@dataclass(frozen=True)
class AnnotatedSchemas:
    """Schemas of a file with all votes on them."""

    judged: tuple[VotedSchema, ...]

    @property
    def kept(self) -> list[Pair]:
        return [schema.pair for schema in self.judged if not schema.discarded]

    def evaluation(self) -> Evaluation[AnnotatedSchemas]:
        """Agreement by question, and numbers of kept and discarded schemas."""
        outcomes = dict(sorted(Counter(schema.discarded or "kept" for schema in self.judged).items()))
        # Among those with two annotators or more.
        disputed = share([schema.disputed for schema in self.judged if schema.annotators >= FEWEST])
        reference = f"disagreement {disputed}; the paper's is below {DISAGREEMENT} %"
        rows = []
        agreements: dict[str, Any] = {}
        for question in (*LABELS, *AVAILABLE):
            choices = SCHEMA_LABELS if question in LABELS else ("yes", "no")
            # Each schema is a subject with a single question.
            counts = []
            for schema in self.judged:
                answers = list(schema.votes.get(question, {}).values())
                counts.append([[answers.count(choice) for choice in choices]])
            measures = agreement(counts)
            agreements[question] = {name: getattr(measures, name) for name in ("questions", "percent", "krippendorff")}
            rows.append((question, *agreements[question].values()))
        tables = [
            ResultTable("Agreement", ("question", "schemas", "same answer", "Krippendorff's alpha"), rows),
            ResultTable("Schemas", ("", "count"), list(outcomes.items())),
            ResultTable("Disagreement on any question", ("share of schemas",), [(reference,)]),
        ]
        for_programs = {
            "schemas": len(self.judged),
            "kept": len(self.kept),
            "disagreement": disputed,
            "agreement": agreements,
            "fates": outcomes,  # the key that was always written
        }
        return Evaluation(self, tables, for_programs)

    def lines(self) -> Iterator[str]:
        """The schemas that are kept, as lines of JSONL."""
        for item in chain.from_iterable(self.kept):
            yield json.dumps(item.to_json(), ensure_ascii=False) + "\n"


def schemas_of(path: Path) -> dict[str, Pair]:
    """Pairs of a file by their ids on sheets. Raises HapaxError if there are none."""
    schemas = {item_of(pair).id: pair for pair in read_pairs([path])}
    if not schemas:
        raise HapaxError(f"{path}: no pairs to judge. Name a file with pairs of sentences.")
    return schemas


@checked
def schema_items(path: str | Path) -> dict[str, VotingItem]:
    """The schemas of a file as items of sheets, by id, for `import_sheets`. Raises HapaxError if there are none."""
    return {identity: item_of(pair) for identity, pair in schemas_of(Path(path)).items()}


@checked
@dataclass(frozen=True, slots=True)
class SchemaSheetOptions:
    """Options of sheets. `disputed`: only schemas on which the votes so far differ."""

    annotators: Annotated[tuple[str, ...], Option("Annotators; two, as in the paper.", name="annotator")] = (
        "annotator-1",
        "annotator-2",
    )
    disputed: Annotated[bool, Option("Only schemas on which annotators differ, for an adjudicator.")] = False
    per_sheet: Annotated[
        int | None, Option("Maximum number of schemas on a sheet; default: all on one sheet.", least=1)
    ] = None
    forms: SheetForms = ("json", "csv")
    seed: Annotated[int, Option("Seed of the order of schemas.")] = 0


@checked
def export_schema_sheets(
    kb: KnowledgeBase, path: str | Path, options: SchemaSheetOptions, folder: str | Path
) -> list[Path]:
    """Write a sheet about the schemas of a file for each annotator, and return the paths of the sheets.

    The same file and options give the same bytes.
    """
    path = Path(path)
    check_voter_names(options.annotators)
    pairs = list(schemas_of(path).values())
    # Adjudication: further annotators see only what the first ones differ on.
    if options.disputed:
        pairs = [schema.pair for schema in annotated(kb, path).judged if schema.disputed]
    if not pairs:
        raise HapaxError(
            f"{path}: annotators agree on all schemas.",
            Remedy("Omit {} to have every schema judged.", Setting("options.disputed")),
        )
    items = [item_of(pair) for pair in pairs]
    schema_sheets = sheets(SheetKind.SCHEMAS, items, options.annotators, options.seed, options.per_sheet)
    return write_sheets(schema_sheets, options.forms, Path(folder))


@checked
def judge_schemas(kb: KnowledgeBase, path: str | Path) -> Evaluation[AnnotatedSchemas]:
    """The annotators' agreement on the schemas of a file, and the schemas to keep, which `write_schemas` writes."""
    return annotated(kb, Path(path)).evaluation()


@checked
def write_schemas(evaluation: Evaluation[Generated] | Evaluation[AnnotatedSchemas], target: str | Path) -> None:
    """Write the accepted pairs of a generation, or the schemas that people keep, to a JSONL file."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with atomic_text_file(str(target)) as stream:
        stream.writelines(evaluation.value.lines())


def annotated(kb: KnowledgeBase, path: Path) -> AnnotatedSchemas:
    """The schemas of a file with all votes on them."""
    schemas = schemas_of(path)
    votes: dict[str, dict[str, dict[str, str]]] = {}
    for vote in kb.votes():
        # A knowledge base may also hold votes on statements and facts.
        if vote.question in (*LABELS, *AVAILABLE):
            votes.setdefault(vote.statement_id, {}).setdefault(vote.question, {})[vote.voter] = vote.answer
    return AnnotatedSchemas(
        tuple(VotedSchema(pair, votes.get(subject_id(identity), {})) for identity, pair in schemas.items())
    )
