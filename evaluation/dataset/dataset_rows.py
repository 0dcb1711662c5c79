"""Contents of a dataset: its statements, block list, folder and formats, and the rows, made chunk by chunk."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, TypeVar, get_args
from typing import Literal as OneOf

from hapax.engine.explain import circular_judge, identities_of, models_of
from hapax.engine.inference.proof import By, Proof, proof_from_json, proof_text
from hapax.engine.judgements import Judgements, shared_judgements
from hapax.evaluation.dataset.columns import CONTRADICTS, ENTAILS, Row, probe_rows
from hapax.evaluation.link.probing_questions import ConclusionForms, rule_forms
from hapax.evaluation.shared.stored_statements import (
    JudgedCounts,
    SameText,
    StatementChoice,
    by_distribution,
    chosen_statements,
    draw_order_key,
    same_texts,
    stored_library,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.parsing.declarations import default_principle
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal
from hapax.grammar.writing.verbalize import atom_text, literal_text
from hapax.grammar.writing.words import counted
from hapax.kb.files.whole_files import read_text
from hapax.kb.records import RULES, Distribution, FactRecord, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase, StatementPlace
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity
from hapax.llm_oracle.rankers.word_frequency import words, zipf_frequency


@checked
@dataclass(frozen=True, slots=True)
class BlockList:
    """Patterns from a file with a term or `/regular expression/` per line, blank lines and `#` comments.

    A term matches whole words. Case and compatibility forms of letters (NFKC) are ignored.
    """

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    @checked
    def read(cls, path: Path) -> BlockList:
        """Raises HapaxError for a file that cannot be read and, with its line, for an invalid regular expression."""
        patterns = []
        for number, line in enumerate(read_text(path, "Name a block list.").splitlines(), 1):
            text = line.strip()
            if text and not text.startswith("#"):
                patterns.append(_pattern(path, number, text))
        return cls(tuple(patterns))

    def blocks(self, texts: Iterable[str]) -> bool:
        """Return True if a pattern matches one of the texts."""
        if not self.patterns:
            return False
        folded = [_folded(text) for text in texts]
        return any(any(map(pattern.search, folded)) for pattern in self.patterns)


def _pattern(path: Path, number: int, text: str) -> re.Pattern[str]:
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        try:
            return re.compile(text[1:-1], re.IGNORECASE)
        # Python raises the last two for absurd repetitions and nesting.
        except (re.error, OverflowError, RecursionError) as fault:
            raise HapaxError(
                f"{path}:{number}: {text} is not a valid regular expression ({fault}). Fix it, or write a term without "
                "slashes."
            ) from None
    # Any blanks may stand between the words of a term: "hot dog" matches across a line end, too.
    words = r"\s+".join(map(re.escape, _folded(text).split()))
    # Not \b: a term may begin or end with a sign that is not a letter.
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


T = TypeVar("T")

CHUNK = 500
"""Statements that are read together with their proofs."""

JudgedChoice = OneOf["drop", "mark", "keep"]
"""Leave out the statements that people deny, flip their labels, or keep them as their rules say."""


@checked
@dataclass(frozen=True, slots=True)
class SelectionOptions(StatementChoice):
    """Which statements to take.

    `sample`: largest number per distribution; `shared`: True keeps statements that are in both distributions; `judged`:
    `drop` leaves out the statements that people deny, `mark` flips their labels, `keep` leaves them the labels of their
    rules.
    """

    sample: Annotated[
        int | None,
        Option("Largest number of statements per distribution; 0: all.", default="0", least=0, none="0"),
    ] = None
    seed: Annotated[int, Option("Seed of the sample and of the order of rows.")] = 0
    shared: bool = False
    blocked: BlockList = field(default_factory=BlockList)
    judged: Annotated[
        JudgedChoice,
        Option("Statements that people deny: leave out, label as contradiction, or keep."),
    ] = "drop"

    def __post_init__(self) -> None:
        if self.judged not in get_args(JudgedChoice):
            raise HapaxError(f"judged is {self.judged!r}. Choose one of {', '.join(get_args(JudgedChoice))}.")


DatasetText = SameText[StatementPlace]
"""A row of the dataset, with all its proofs."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen texts in the order of the rows, and how many were left out by reason.

    Head comes before long tail. Within a distribution, texts stand in the order in which a sample is drawn, so that
    the first rows of a split are a fair sample of it. `counts`: people's judgements on all statements of these rules
    and runs, also on those that were left out.
    """

    texts: tuple[DatasetText, ...]
    judgements: Judgements
    counts: JudgedCounts
    rules: tuple[str, ...]
    left_out: dict[str, int]

    @property
    def places(self) -> Iterator[StatementPlace]:
        """The statements of all texts."""
        return chain.from_iterable(text.statements for text in self.texts)

    @property
    def denied(self) -> int:
        """Number of chosen texts that people deny."""
        return sum(self.judgements.of(text.id).is_true is False for text in self.texts)

    @property
    def repeats(self) -> int:
        """Number of statements beyond the first of each text."""
        return sum(len(text.statements) - 1 for text in self.texts)


REASONS = ("other_runs", "wrong_type", "harmful", "denied", "shared", "blocked", "not_in_the_sample")
"""Reasons to leave a text (for other runs: a statement) out. Only the first that applies is counted."""


_CHOICES = Setting("selection.judged"), Setting("selection.shared")


def select(kb: KnowledgeBase, options: SelectionOptions) -> Selection:
    """Choose statements, as the last run stored them; those of one text and distribution are one row.

    Raises HapaxError if no statement is left to write.
    """
    left_out: Counter[str] = Counter()
    texts = same_texts(_latest(kb, options, left_out), lambda place: place.text_id)
    judgements = Judgements.stored(kb)
    chosen: list[DatasetText] = []
    for distribution in Distribution:
        of_distribution = [text for text in texts if text.distribution is distribution]
        in_order = sorted(of_distribution, key=lambda text: draw_order_key(options.seed, text.id))
        fitting = _fitting(in_order, options, judgements, left_out)
        # The sample is drawn last, so that it has its full size whatever else is left out.
        unblocked = list(_unblocked(kb, fitting, options.blocked, left_out))
        sampled = unblocked[: options.sample]
        chosen += sampled
        left_out["not_in_the_sample"] += len(unblocked) - len(sampled)
    if not chosen and (left_out.total() or not any(kb.derived_counts().values())):
        reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items() if count)
        raise HapaxError(
            f"{kb.place}: all {left_out.total()} statements were left out: {reasons}.",
            Remedy("Use {} mark or {} keep, or relax the options that choose statements.", *_CHOICES),
        )
    counts = JudgedCounts.of(shared_judgements(judgements, (text.id for text in texts)))
    rules = sorted(
        {place.rule for text in texts for place in text.statements} & {rule.name for rule in kb.select(RULES)}
    )
    return Selection(tuple(chosen), judgements, counts, tuple(rules), {reason: left_out[reason] for reason in REASONS})


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts of at most CHUNK items."""
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


def _latest(
    kb: KnowledgeBase, options: SelectionOptions, left_out: Counter[str]
) -> dict[Distribution, dict[str, StatementPlace]]:
    """Statements of the chosen rules and runs by distribution and id."""
    places = list(kb.statement_places())
    latest = chosen_statements(kb, options, places)
    # Statements that are in a chosen run as well are not left out.
    stored = by_distribution(places, options.rules)
    left_out["other_runs"] = sum(len(stored[end]) - len(latest[end]) for end in Distribution)
    # What `derive` concluded is at neither end, and has a file of its own.
    if not any(latest.values()) and not any(kb.derived_counts().values()):
        raise HapaxError(
            f"{kb.place} holds no statement for a dataset.",
            Remedy(
                "Run {}, import LINT with {}, or name the run of an experiment with {}.",
                Operation("search"),
                Operation("import_lint"),
                Setting("selection.runs"),
            ),
        )
    return latest


def _fitting(
    texts: Iterable[DatasetText], options: SelectionOptions, judgements: Judgements, left_out: Counter[str]
) -> list[DatasetText]:
    """The texts that neither votes nor options leave out; the others are counted."""
    fitting = []
    for text in texts:
        judgement = judgements.of(text.id)
        # In the order of REASONS: only the first that applies is counted.
        reasons = {
            "wrong_type": judgement.typed is False,
            "harmful": judgement.is_harmful,
            "denied": judgement.is_true is False and options.judged == "drop",
            "shared": text.in_both and not options.shared,
        }
        reason = next((name for name, applies in reasons.items() if applies), None)
        if reason is None:
            fitting.append(text)
        else:
            left_out[reason] += 1
    return fitting


def _unblocked(
    kb: KnowledgeBase, texts: Sequence[DatasetText], blocked: BlockList, left_out: Counter[str]
) -> Iterator[DatasetText]:
    """The texts whose statements match no pattern of the block list; the others are counted."""
    if not blocked.patterns:  # spares reading all statements
        yield from texts
        return
    for part in chunks(texts):
        for text, records in zip(part, records_of(kb, part), strict=True):
            if any(blocked.blocks(_texts(record)) for record in records):
                left_out["blocked"] += 1
            else:
                yield text


def records_of(kb: KnowledgeBase, texts: Sequence[DatasetText]) -> list[list[StatementRecord]]:
    """The statements of each text."""
    # Read with one query, then cut into the groups again.
    records = iter(kb.statements_at(list(chain.from_iterable(text.statements for text in texts))))
    return [list(islice(records, len(text.statements))) for text in texts]


def _texts(record: StatementRecord) -> Iterator[str]:
    """All texts of a statement that a reader of the dataset sees."""
    yield record.premise
    yield record.conclusion
    for _, value in record.substitution:
        yield str(value)
    for part in proof_from_json(record.proof).parts():
        if isinstance(part.goal, Literal):
            for term in part.goal.atom.arguments:
                if isinstance(term, Constant):
                    yield str(term.value)


_ROOM = "hapax.evaluation.dataset"

FORMATS = {
    "jsonl": f"{_ROOM}.formats:JsonlSink",
    "hf": f"{_ROOM}.formats:HubSink",
    "lm-eval": f"{_ROOM}.formats:HarnessSink",
    "inspect": f"{_ROOM}.formats:InspectSink",
}
"""Subclasses of Sink by the names of `--format`, in the order in which they are written."""


@checked
@dataclass(frozen=True, slots=True)
class Target:
    """Where a dataset is written, in which formats, and whether it may replace an older one there.

    `name` is the title of the card and the first part of the names of tasks; without one, the title is the name of the
    folder, and tasks begin with `hapax`. `version` distinguishes it from other datasets of this name.
    """

    folder: Path
    formats: Annotated[
        tuple[str, ...], Option("Format to write; default: all.", name="format", choices=tuple(FORMATS))
    ] = tuple(FORMATS)
    name: Annotated[
        str | None,
        Option("Name of card and tasks; default: the folder's name, for tasks hapax."),
    ] = None
    force: Annotated[bool, Option("Replace the dataset in the folder.")] = False
    version: Annotated[str, Option("Version of the dataset, for its card.")] = "1"

    def __post_init__(self) -> None:
        if self.name is not None and not (self.name.isascii() and self.name.isidentifier()):
            raise HapaxError(f"{self.name!r} cannot begin the names of tasks. Use letters, digits and underscores.")
        if not self.version.strip() or not self.version.isprintable():
            raise HapaxError(f"{self.version!r} is not a version. Use a text such as 1.0.")

    @property
    def title(self) -> str:
        """Title of the card."""
        return self.name or self.folder.resolve().name or "hapax"

    @property
    def tasks(self) -> str:
        """First part of the names of tasks, and the name in `metadata.json`."""
        return self.name or "hapax"


def rarest_word(values: Iterable[str]) -> float | None:
    """Zipf frequency of the rarest word: log10 of its count per billion words, 0 for an unknown word.

    None if no value has a word that contains a letter.
    """
    counted_words: set[str] = set()
    for value in values:
        # Between blanks, letters and digits of ASCII are words as well; splitting is much faster.
        plain = value.isascii() and value.replace(" ", "").isalnum()
        # The frequency of a number is a guess, so numbers do not count.
        found = value.lower().split(" ") if plain else words(value)
        counted_words.update(word for word in found if any(map(str.isalpha, word)))
    return min(map(zipf_frequency, counted_words), default=None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One text of the dataset: its row, the questions about it, and the ids of the facts that its proofs rest on.

    `record`: the first of the statements with this text.
    """

    record: StatementRecord
    rule: Rule
    row: Row
    probes: tuple[Row, ...]
    fact_ids: tuple[str, ...]


_Derivation = tuple[StatementRecord, Proof]
"""A statement with its proof as a tree."""


@dataclass(frozen=True)
class DatasetSource:
    """A knowledge base, the statements selected from it, and the use of people's judgements for their labels."""

    kb: KnowledgeBase
    selection: Selection
    judged: JudgedChoice = "drop"

    @cached_property
    def library(self) -> Library:
        """Rules of the chosen statements, with the predicates of the knowledge base."""
        return stored_library(self.kb, {place.rule for place in self.selection.places})

    @cached_property
    def forms(self) -> dict[str, ConclusionForms]:
        """Domain, polarity and forms of the conclusion by rule."""
        return rule_forms(self.kb, {place.rule for place in self.selection.places})

    @cached_property
    def runs(self) -> dict[str, RunRecord]:
        """Runs that derived the chosen statements, in the order of their start; runs without a record are left out."""
        run_ids = {place.run_id for place in self.selection.places}
        runs = sorted(self.kb.runs(), key=lambda run: (run.started, run.id))
        return {run.id: run for run in runs if run.id in run_ids}

    @property
    def judged_notes(self) -> list[str]:
        """A sentence on the statements that people deny; none without such statements."""
        outcomes = {
            "drop": "left out, counted once per distribution",
            "mark": "marked by the label `contradiction`",
            "keep": "kept with the labels of their rules; the column `judgement` says `false`",
        }
        denied = self.selection.left_out["denied"] if self.judged == "drop" else self.selection.denied
        note = (
            f"{counted(denied, 'statement')} that people deny: {outcomes[self.judged]} "
            f"({Setting('selection.judged')} {self.judged})."
        )
        return [note] if denied else []

    @property
    def rankers(self) -> list[ModelIdentity]:
        """Models that divided the chosen statements into head and long tail, each once."""
        rankers = filter(None, (identities_of(run).get(LIKELIHOOD) for run in self.runs.values()))
        return list({ranker.name: ranker for ranker in rankers}.values())

    @property
    def circular_evaluators(self) -> list[str]:
        """Names of evaluators that ranked their run, taught its ranker or learned from it."""
        return sorted(filter(None, set(map(circular_judge, self.runs.values()))))

    @cached_property
    def _models(self) -> dict[str, dict[str, str]]:
        """Models by role, by run."""
        return {name: run_models(run) for name, run in self.runs.items()}

    def entries(self) -> Iterator[Entry]:
        """Make the entries of the chosen statements, in order."""
        for part in chunks(self.selection.texts):
            groups = records_of(self.kb, part)
            derivations = []
            for records in groups:
                derivations.append([(record, proof_from_json(record.proof)) for record in records])
            # One query per chunk instead of one per statement.
            facts = self.kb.facts_by_id(_fact_ids(chain.from_iterable(derivations)))
            for text, group in zip(part, derivations, strict=True):
                yield self._entry(text, group, facts)

    def facts(self, fact_ids: Iterable[str]) -> Iterator[Row]:
        """Rows of facts, in the order of their ids; ids without a fact are skipped."""
        ids = sorted(set(fact_ids))
        for part in chunks(ids):
            for _, fact in sorted(self.kb.facts_by_id(part).items()):
                yield {
                    "id": fact.id,
                    "predicate": fact.predicate,
                    "arguments": [str(value) for value in fact.arguments],
                    "types": list(fact.types),
                    "text": worded_fact(fact, self.library),
                    "source": fact.source.value,
                    "probability": fact.probability,
                    "run": fact.run_id,
                }

    def annotations(self) -> Iterator[Row]:
        """Rows of the votes on the chosen statements, with numbers instead of the voters' names."""
        row_of = self.selection.judgements.row
        # Votes on all statements that read as a row, by its id.
        row_ids = {row_of(text.id): text.id for text in self.selection.texts}
        votes = []
        for vote in self.kb.votes():
            row_id = row_ids.get(row_of(vote.statement_id))
            if row_id is not None:
                votes.append(replace(vote, statement_id=row_id))
        # Numbers follow the names' order, so that they do not depend on who voted first.
        voters = sorted({vote.voter for vote in votes})
        numbers = {voter: number for number, voter in enumerate(voters, 1)}
        for vote in sorted(votes, key=lambda vote: (vote.statement_id, vote.question, vote.voter)):
            yield {
                "statement": vote.statement_id,
                "question": vote.question,
                "annotator": numbers[vote.voter],
                "answer": vote.answer,
            }

    def _entry(
        self,
        text: DatasetText,
        derivations: Sequence[_Derivation],
        facts: Mapping[str, FactRecord],
    ) -> Entry:
        record, proof = derivations[0]
        rule, judgement = self.library.rule(record.rule), self.selection.judgements.of(text.id)
        forms = self.forms[record.rule]
        # As many for as against leave the statement to the rule.
        is_voted = judgement.is_true is not None and self.judged != "keep"
        entailed = not is_voted or judgement.is_true is True
        # A row may bear the id of a statement of the other distribution (`DatasetText.id`).
        item = replace(forms.item(record, entailed=entailed), statement_id=text.id)
        # Proofs share facts; each is listed once, in the order of the first proof that uses it.
        fact_ids = tuple(dict.fromkeys(_fact_ids(derivations)))
        used = []
        for fact in (facts[fact_id] for fact_id in fact_ids if fact_id in facts):
            cell = {"source": fact.source.value, "probability": fact.probability}
            used.append({"id": fact.id, "fact": worded_fact(fact, self.library), **cell})
        other_proofs = []
        for further, _ in derivations[1:]:
            place = {"id": further.id, "rule": further.rule, "run": further.run_id}
            bindings = _bindings(self.library.rule(further.rule), further)
            other_proofs.append({**place, "substitution": bindings, "proof": further.proof})
        models = self._models.get(record.run_id, {})
        searched = [str(value) for name, value in record.substitution if name not in rule.generic]

        def goal_text(goal: BodyLiteral) -> str:
            return literal_text(goal, self.library, {}, rule.generic) if isinstance(goal, Literal) else str(goal)

        row = {
            "id": text.id,
            "distribution": record.distribution.value,
            "in_both": text.in_both,
            "rule": record.rule,
            "domain": forms.domain,
            "principle": (rule.principle or default_principle(forms.polarity)).value,
            "polarity": forms.polarity.value,
            "premise": record.premise,
            "conclusion": record.conclusion,
            "negation": item.negation,
            "question": item.question,
            "label": ENTAILS if entailed else CONTRADICTS,
            "label_source": "votes" if is_voted else "rule",
            "judgement": judgement.word,
            "substitution": _bindings(rule, record),
            # JSON holds neither infinity nor NaN.
            "log_likelihood": record.log_likelihood if math.isfinite(record.log_likelihood or 0) else None,
            "facts": used,
            "least_probability": _least_probability(derivations, facts),
            "rarest_word_zipf": rarest_word(searched),
            "proof": record.proof,
            "proof_text": proof_text(proof, goal_text),
            "other_proofs": other_proofs,
            # Every proof has steps by rule; their premises are what it rests on.
            "sources": sorted({part.by.value for part in proof.parts() if part.by not in (By.RULE, By.DECLARATION)}),
            "run": record.run_id,
            "knowledge_model": models.get(KNOWLEDGE),
            "critic_model": models.get(CRITIC),
            "critic_auc": self._critic_area(record.run_id),
            "likelihood_model": models.get(LIKELIHOOD),
            "evaluator_model": models.get(EVALUATOR),
        }
        return Entry(record, rule, row, tuple(probe_rows(item)), fact_ids)

    def _critic_area(self, run_id: str) -> float | None:
        """The AUC that the critic of a search had."""
        run = self.runs.get(run_id)
        worth = run.summary.get("critic") if run is not None else None
        area = worth.get("auc") if isinstance(worth, dict) else None
        return float(area) if isinstance(area, float | int) else None


def _fact_ids(derivations: Iterable[_Derivation]) -> Iterator[str]:
    """Ids of the facts of all proofs."""
    for _, proof in derivations:
        yield from proof.fact_ids()


def _least_probability(derivations: Iterable[_Derivation], facts: Mapping[str, FactRecord]) -> float | None:
    """The least probability among the facts of a text's surest proof; None if no fact has one."""
    lowest = []
    for _, proof in derivations:
        found = [facts[fact_id].probability for fact_id in proof.fact_ids() if fact_id in facts]
        known = [probability for probability in found if probability is not None]
        lowest += [min(known)] if known else []
    # One proof suffices, so the text is as sure as the surest of its proofs.
    return max(lowest, default=None)


def run_models(run: RunRecord) -> dict[str, str]:
    """Models of a run by role. A critic that was switched off is left out; an import has its evaluator only."""
    models = models_of(run)
    # A run names a critic even if it was switched off.
    if run.settings.get("critic") is False:
        models.pop(CRITIC, None)
    # An import ran no role; its evaluator stands directly in the settings, as a name.
    if not models and isinstance(run.settings.get("evaluator"), str):
        models[EVALUATOR] = run.settings["evaluator"]
    return models


def worded_fact(fact: FactRecord, library: Library) -> str:
    """The fact in the words of its predicate."""
    return atom_text(Atom(fact.predicate, tuple(map(Constant, fact.arguments))), library)


def _bindings(rule: Rule, record: StatementRecord) -> list[Row]:
    types = {variable.name: variable.data_type for variable in rule.variables}
    bindings: list[Row] = []
    for name, value in record.substitution:
        # Values are texts because a column of Parquet has one type; `kind` says what they were.
        kind = "text" if isinstance(value, str) else "decimal" if isinstance(value, Decimal) else "integer"
        bindings.append({"variable": name, "data_type": types.get(name), "value": str(value), "kind": kind})
    return bindings
