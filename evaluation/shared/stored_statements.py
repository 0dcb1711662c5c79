"""Stored statements as experiments share them: selection, draws, domains, experiments' runs, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, Self, TypeVar

from hapax.engine.judgements import LINK_ANNOTATORS, Judgement
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import ChosenRules, ChosenRuns
from hapax.grammar.parsing.declarations import Domain, PredicateKind, PredicateSignature, Templates
from hapax.grammar.parsing.parser import parse_rule
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.writing.words import counted
from hapax.kb.records import PREDICATES, RULES, Distribution, StatementRecord, content_id
from hapax.kb.store import KnowledgeBase, StatementPlace

DOMAINS = (Domain.NATURAL.value, Domain.TEMPORAL.value, Domain.OUTCOMES.value, Domain.LOCATIONAL.value)
"""In the order of LINK's table 4."""

TOTAL = "total"
"""Name of the row over all domains."""

NO_DOMAIN = "no domain"
"""Name of the row for rules that declare no domain."""

DISTRIBUTION_NAMES = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "long tail"}


def ordered_domains(domains: Iterable[str]) -> list[str]:
    """LINK's four domains in the order of its table 4, then others by name; each once."""
    present = set(domains)
    return [domain for domain in DOMAINS if domain in present] + sorted(present.difference(DOMAINS))


INSTRUCT = "evaluate instruct"
"""Command of runs by instruction only."""

RUNS_LISTED = 5
"""Runs that an error message lists."""


def skipped_runs(kb: KnowledgeBase, beginnings: Sequence[str]) -> set[str]:
    """Ids of the runs to leave out: all whose ids begin with none of `beginnings`; without any, all experiments.

    Raises HapaxError if a beginning matches no run.
    """
    runs = kb.runs()
    for beginning in beginnings:
        if not any(run.id.startswith(beginning) for run in runs):
            latest = ", ".join(f"{run.id[:8]} ({run.command})" for run in runs[-RUNS_LISTED:])
            raise HapaxError(
                f"{kb.place}: no run whose id begins with {beginning!r}. The latest runs are: {latest or 'none'}."
            )
    # Named runs are wanted whatever they are, experiments included.
    if beginnings:
        return {run.id for run in runs if not run.id.startswith(tuple(beginnings))}
    experiments = set()
    for run in runs:
        # Imports lack these settings.
        ungated = run.settings.get("critic") is False or run.settings.get("likelihood", "model") != "model"
        if ungated or run.command == INSTRUCT:
            experiments.add(run.id)
    return experiments


@dataclass(frozen=True, slots=True)
class JudgedCounts:
    """Numbers of statements by their judgement. `people`: voters; `link_denied`: denied by LINK's annotators alone."""

    true: int = 0
    false: int = 0
    undecided: int = 0
    people: int = 0
    link_denied: int = 0

    @classmethod
    def of(cls, found: Iterable[Judgement]) -> Self:
        """Count judgements, of which each is on another text."""
        words, link_denied = {"true": 0, "false": 0, "undecided": 0}, 0
        people: set[str] = set()
        for judgement in found:
            if judgement.word is None:
                continue
            people |= judgement.voters
            if judgement.in_shares:
                words[judgement.word] += 1
            else:
                link_denied += judgement.is_true is False
        return cls(**words, people=len(people - {LINK_ANNOTATORS}), link_denied=link_denied)

    @property
    def judged(self) -> int:
        """Number of statements that people of whom every answer is known judged."""
        return self.true + self.false + self.undecided

    def sentence(self) -> str:
        """The counts in words, for every place that speaks of them."""
        parts = []
        if self.judged:
            parts.append(
                f"{counted(self.people, 'person has', 'people have')} judged {counted(self.judged, 'statement')}: "
                f"by majority {self.true} true, {self.false} false, {self.undecided} undecided."
            )
        if self.link_denied:
            noun = "further statement" if self.judged else "statement"
            parts.append(
                f"LINK's annotators denied {counted(self.link_denied, noun)}; what they affirmed is not known."
            )
        return " ".join(parts) or "Nobody has judged these statements. How many of them are false is not known."

    def to_json(self) -> dict[str, Any]:
        return {"judged": self.judged, **asdict(self)}


def judgement_text(judgement: Judgement) -> str:
    """The judgement on one statement in words; empty if nobody judged it."""
    parts = []
    if judgement.word is not None:
        parts.append("undecided" if judgement.is_true is None else f"{judgement.word} by majority")
    if judgement.typed is False:
        parts.append("with a value of a wrong type")
    return f"People's judgement: {', '.join(parts)}." if parts else ""


S = TypeVar("S", StatementRecord, StatementPlace)
"""A statement, or the place of one."""


@checked
@dataclass(frozen=True, slots=True)
class StatementChoice:
    """Which statements to take: those of these rules, or of all; and of runs by the beginnings of their ids, or of
    whole searches and imports.
    """

    rules: ChosenRules = ()
    runs: ChosenRuns = ()


EVERY_STATEMENT = StatementChoice()


def latest_statements(kb: KnowledgeBase, choice: StatementChoice) -> dict[Distribution, dict[str, StatementRecord]]:
    """The chosen statements by distribution and id. Raises HapaxError for an unknown rule, and if there are none."""
    latest = chosen_statements(kb, choice, kb.statements())
    if not any(latest.values()):
        raise HapaxError(
            f"{kb.place} holds no statement to ask about.",
            Remedy(
                "Search for some ({}) or import LINT's ({}); use {} to take the statements of an "
                "experiment. {} takes what {} concluded.",
                Operation("search"),
                Operation("import_lint"),
                Setting("options.runs"),
                Operation("export_sheets", derived=True),
                Operation("derive"),
            ),
        )
    return latest


def chosen_statements(
    kb: KnowledgeBase, choice: StatementChoice, statements: Iterable[S]
) -> dict[Distribution, dict[str, S]]:
    """The chosen ones of these statements by distribution and id, each as the last run wrote it.

    Raises HapaxError for an unknown rule.
    """
    names = {*(rule.name for rule in kb.select(RULES)), *kb.derived_counts()}
    for name in choice.rules:
        if name not in names:
            raise HapaxError(
                f"{kb.place}: no rule {name!r}.",
                Remedy("Without {}, all rules that it holds are used.", Setting("options.rules")),
            )
    return by_distribution(statements, choice.rules, skipped_runs(kb, choice.runs))


def by_distribution(
    statements: Iterable[S], rules: Container[str] = (), skipped: Container[str] = ()
) -> dict[Distribution, dict[str, S]]:
    """Statements of these rules, all without any, by distribution and id, but for those of the runs `skipped`."""
    latest: dict[Distribution, dict[str, S]] = {distribution: {} for distribution in Distribution}
    for statement in statements:
        if statement.run_id not in skipped and (not rules or statement.rule in rules):
            # Statements come in the order of their runs, so that a later run's replaces an earlier one's.
            latest[statement.distribution][statement.id] = statement
    return latest


@dataclass(frozen=True, slots=True)
class SameText(Generic[S]):
    """Statements of one distribution that read the same: one row of a dataset, one item of a sheet or a probing.

    `id`: the smallest id of the statements of either distribution with this text. `statements`: in the order of their
    ids. `in_both`: the text, or a statement of it, is in both distributions.
    """

    id: str
    statements: tuple[S, ...]
    in_both: bool

    @property
    def distribution(self) -> Distribution:
        return self.statements[0].distribution


def same_texts(latest: Mapping[Distribution, Mapping[str, S]], text_of: Callable[[S], str]) -> list[SameText[S]]:
    """The statements by distribution and text, in the order of their first statements."""
    by_text: dict[tuple[Distribution, str], list[S]] = {}
    row_ids: dict[str, str] = {}
    for distribution, statements in latest.items():
        for identity, statement in statements.items():
            text = text_of(statement)
            by_text.setdefault((distribution, text), []).append(statement)
            # The minimum over both distributions: the two rows of a shared text have the same id.
            row_ids[text] = min(identity, row_ids.get(text, identity))
    # Taken before anything is left out: a text is in both even if only one of its rows is used. Templates may have
    # changed between two runs, so the same values may read otherwise in the other distribution.
    ids_in_both = frozenset.intersection(*map(frozenset, latest.values()))
    texts = []
    for (_, text), members in by_text.items():
        in_order = tuple(sorted(members, key=lambda statement: statement.id))
        in_both = all((distribution, text) in by_text for distribution in Distribution)
        in_both = in_both or any(statement.id in ids_in_both for statement in in_order)
        texts.append(SameText(row_ids[text], in_order, in_both))
    return texts


def statement_rows(
    latest: Mapping[Distribution, Mapping[str, StatementRecord]],
) -> dict[Distribution, dict[str, StatementRecord]]:
    """The first statement of each text by distribution and the id of its row, the same at either end."""
    distinct: dict[Distribution, dict[str, StatementRecord]] = {distribution: {} for distribution in latest}
    for text in same_texts(latest, lambda statement: statement.text):
        distinct[text.distribution][text.id] = text.statements[0]
    return distinct


def draw_sample(
    statements: Mapping[str, StatementRecord], size: int | None, seed: int
) -> list[tuple[str, StatementRecord]]:
    """At most `size` statements with their ids, all if `size` is None; a larger sample contains the smaller ones."""
    # A prefix of one fixed order: a larger sample extends the smaller one.
    return sorted(statements.items(), key=lambda entry: draw_order_key(seed, entry[0]))[:size]


def draw_order_key(seed: int, identity: str) -> str:
    """Sort key of an item in a drawn order; depends on the seed and the item's identity alone."""
    # A hash instead of a shuffle: new statements do not change the order of the others.
    return content_id("draw", seed, identity)


def stored_library(kb: KnowledgeBase, rules: Container[str] | None = None) -> Library:
    """The rules of a knowledge base with their predicates, as its last run read them; `rules` None: all."""
    signatures = []
    for predicate in kb.select(PREDICATES):
        templates = None
        if predicate.affirmative:
            templates = Templates(predicate.affirmative, predicate.negated, predicate.question)
        try:
            kind = PredicateKind(predicate.kind)
        except ValueError:
            kinds = ", ".join(PredicateKind)
            fault = HapaxError(f"{predicate.kind!r} is none of {kinds}. Search with its rules again.")
            # Stored by a newer version or damaged; the other predicates stay usable.
            kb.leave_out(fault, f"The kind of the stored predicate {predicate.indicator} cannot be read: ")
            continue
        signatures.append(PredicateSignature(predicate.name, predicate.argument_types, kind, templates))
    # Rules are parsed with the signatures, which say what kinds of predicates they use.
    library = Library(signatures=tuple(signatures))
    parsed = []
    for record in kb.select(RULES):
        if rules is None or record.name in rules:
            try:
                rule = parse_rule(record.text, library, f"rule {record.name}")
                parsed.append(replace(rule, name=record.name))
            except HapaxError as fault:
                kb.leave_out(fault, "A stored rule cannot be read: ")
    return replace(library, rules=tuple(parsed))
