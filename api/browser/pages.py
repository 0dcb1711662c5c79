"""The content of the pages of one entity, predicate, rule or statement, read at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from statistics import fmean
from typing import Any

from hapax.api.browser import tables
from hapax.api.browser.tables import SENTENCE, Page, StoredTable, Wanted
from hapax.engine.inference.theory import Theory
from hapax.engine.judgements import Judgements
from hapax.engine.logic.derive import statement_by_id
from hapax.engine.run_memory import stored_rule, with_stored_predicates
from hapax.engine.search.gates import gates_in_order
from hapax.engine.search.stored_certificates import StoredCertificate, certificates_of, certificates_of_statement
from hapax.engine.stories import Story
from hapax.evaluation.report.drawing import (
    LARGEST,
    Dot,
    DotPlot,
    Funnel,
    Graph,
    Histogram,
    evenly_spread,
    graph,
    histogram,
)
from hapax.evaluation.report.runs import (
    RoleCost,
    RuleSummary,
    RunHeading,
    SearchSummary,
    chosen_run,
    costs_in,
    run_heading,
    search_summary,
)
from hapax.evaluation.report.sections import ShownStatement
from hapax.evaluation.shared.domains import DISTRIBUTION_NAMES
from hapax.evaluation.shared.estimates import difference_of_means
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.verbalize import statement_text
from hapax.kb.records import (
    CANDIDATES,
    PREDICATES,
    QUESTIONS,
    RULES,
    STATEMENTS,
    Distribution,
    RuleRecord,
    RunRecord,
)
from hapax.kb.running import RunFiles, RunState, Wish
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.kb.word_index import WordMatches
from hapax.llm_oracle.budget import CallStatistics

FEW = Page(rows=10)
MOST_SCORED = 25_000
"""Statements of a rule that its plots take at least, where it has more than twice as many."""
MOST_RESAMPLED = 10_000
"""Scores from which on a difference has no interval: resampling a million takes minutes, and the interval is narrow."""


class NotStored(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """The knowledge base holds nothing of this name."""


def entity_tables(kb: KnowledgeBase, name: str, few: Page = FEW) -> dict[str, StoredTable]:
    """Tables of all that is known about a value: facts, statements by end, rejected claims and types.

    `few`: the wanted part of all but facts and types. Raises NotStored if nothing mentions the value.
    """
    about = Wanted(about=name)
    parts = {"facts": tables.facts(kb, about, Page(rows=max(few.rows, 200)))}
    parts |= {end: tables.statements(kb, replace(about, end=end), few) for end in tables.ENDS}
    parts["rejected"] = tables.claims(kb, replace(about, verdict="rejected"), few)
    parts["types"] = tables.types_of(kb, name)
    if not any(table.rows for table in parts.values()):
        raise NotStored(f"Nothing here mentions {name!r}. Search the statements for a part of it.")
    return parts


def search_tables(kb: KnowledgeBase, matches: WordMatches) -> dict[str, StoredTable]:
    """The values and statements of a search, the best first; each statement that stands once."""
    # The index gives few rows, however many match.
    marks = ",".join("?" * len(matches.rows))
    sql = f"SELECT rowid, id, {SENTENCE} FROM statements WHERE {STANDING} AND statements.rowid IN ({marks})"  # noqa: S608
    found = {row: (identity, sentence) for row, identity, sentence in kb.query(sql, matches.rows)}
    # In the order of the matches; a statement at both ends has two rows.
    statements = list(dict(found[row] for row in matches.rows if row in found).items())
    listed = ", ".join(tables.literal(identity) for identity, _ in statements)
    shown = f"SELECT DISTINCT id, {SENTENCE} FROM statements WHERE id IN ({listed});"  # noqa: S608  for reading
    return {
        "values": StoredTable(("value",), [(name,) for name in matches.names], "", Page()),
        "statements": StoredTable(("id", "statement"), statements, shown, Page()),
    }


@dataclass(frozen=True, slots=True)
class StatementPage:
    """A statement with its proof and votes, its ends and values. One that `derive` concluded has no ends.

    `certificates`: promises on the statement and on the facts of its proof; `misses`: claims that failed a gate where
    its facts passed.
    """

    statement: ShownStatement
    ends: list[Distribution]
    values: list[tuple[str, str]]
    certificates: list[StoredCertificate]
    misses: list[NearMiss]

    def tables(self, kb: KnowledgeBase) -> dict[str, StoredTable]:
        """The tables behind the page by name."""
        record = self.statement.record
        return {
            "statement": tables.statement_rows(record, self.ends),
            "proof": story_table(self.statement.story),
            "facts": tables.proof_facts(kb, record.id),
            "votes": tables.votes(kb, record.id),
        }


def statement_page(kb: KnowledgeBase, library: Library, identity: str) -> StatementPage:
    """The page of a statement. Raises NotStored for an unknown id."""
    stored = kb.select(STATEMENTS, f"WHERE statements.id = ? AND {STANDING}", [identity])
    # Of the rows of a statement at several ends or of several runs, the newest.
    record = stored[-1] if stored else statement_by_id(kb, library, identity)
    if record is None:
        raise NotStored(f"No statement has the id {identity}.")
    # In the sentences that the knowledge base has for its predicates.
    theory = with_stored_predicates(Theory(library, kb))
    judged = Judgements.stored(kb)
    row = judged.row(record.id)
    votes = (vote for vote in kb.votes() if judged.row(vote.statement_id) == row)
    shown = ShownStatement.of(theory, record, votes, judged)
    values = [(name, str(value)) for name, value in record.substitution]
    ends = sorted({statement.distribution for statement in stored})
    facts = kb.facts_by_id(text for (text,) in kb.query(_PROOF_FACTS, (record.id,))).values()
    certificates = [*certificates_of_statement(kb, record), *certificates_of(kb, facts)]
    misses = near_misses(kb, [fact.candidate_id for fact in facts if fact.candidate_id])
    return StatementPage(shown, ends, values, certificates, misses)


_PROOF_FACTS = "SELECT fact_id FROM statement_facts WHERE key IN (SELECT key FROM statements WHERE id = ?)"

_RIVALS = """
SELECT DISTINCT rivals.question_id, rivals.id, decisions.gate, decisions.score, decisions.threshold, decisions.reason
FROM candidates JOIN candidates AS rivals ON rivals.question_id = candidates.question_id
JOIN decisions ON decisions.subject = rivals.id
WHERE candidates.id = ? AND decisions.accepted = 0 AND decisions.score < decisions.threshold
AND rivals.value <> candidates.value
ORDER BY decisions.threshold - decisions.score LIMIT ?
"""
"""Other answers to the question of a candidate that a gate rejected by their score, the closest first."""
MISSES = 5


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A claim that a gate rejected by its score, beside facts that passed it."""

    atom: str
    gate: str
    score: float
    threshold: float
    reason: str


def near_misses(kb: KnowledgeBase, candidate_ids: Iterable[str]) -> list[NearMiss]:
    """Rejected answers to the questions of these candidates that are not facts all the same, the closest first."""
    closest: dict[str, NearMiss] = {}
    for candidate_id in candidate_ids:
        # Twice as many as are shown, since some are facts by another question.
        rivals = kb.query(_RIVALS, (candidate_id, 2 * MISSES))
        question_ids = {question_id for question_id, *_ in rivals}
        rival_ids = {rival_id for _, rival_id, *_ in rivals}
        questions = {row.question.id: row.question for row in kb.select_in(QUESTIONS, "id", question_ids)}
        candidates = {record.id: record for record in kb.select_in(CANDIDATES, "id", rival_ids)}
        for question_id, rival_id, *decision in rivals:
            if question_id in questions and rival_id in candidates:
                # More than one pattern comes from `--compat` alone; the first one names the claim.
                pattern, value = questions[question_id].patterns[0], candidates[rival_id].value
                arguments = tuple(value if argument is None else argument for argument in pattern.arguments)
                if kb.fact(pattern.predicate, arguments) is None:
                    atom = str(Atom(pattern.predicate, tuple(map(Constant, arguments))))
                    closest.setdefault(atom, NearMiss(atom, *decision))
    return sorted(closest.values(), key=lambda miss: miss.threshold - miss.score)[:MISSES]


def story_table(story: Story) -> StoredTable:
    """The lines of a story with their depths, from 0."""
    rows = [(depth, part.text) for depth, part in islice(story.lines(), tables.MOST_ROWS)]
    return StoredTable(("depth", "line"), rows, "", Page(rows=tables.MOST_ROWS))


@dataclass(frozen=True, slots=True)
class RulePage:
    """A rule with its picture, its last search step by step, its scores, and statements of both ends.

    `every`: the plots are of one in so many statements; 1: of all.
    """

    record: RuleRecord
    sentence: str
    graph: Graph | None
    summary: RuleSummary
    run: RunRecord | None
    histogram: Histogram | None
    dots: DotPlot | None
    every: int
    delta: str
    head: StoredTable
    long_tail: StoredTable
    derived: StoredTable
    """Those that `derive` concluded."""


def rule_page(
    kb: KnowledgeBase, library: Library, name: str, statement_url: Callable[[object], str], few: Page = FEW
) -> RulePage:
    """The page of a rule, with so many statements. `statement_url` gives the page of a statement by its id.

    Raises NotStored if the knowledge base holds no rule of this name.
    """
    record = _rule_record(kb, library, name)
    rule = stored_rule(kb, name, library)
    run, summary = _last_search(kb, name)
    ((count,),) = kb.query("SELECT count(*) FROM statements WHERE rule = ?", (name,))
    every = max(1, count // MOST_SCORED)
    scored = {} if run is None else _scored(kb, run.id, name, every)
    scores: dict[str, list[float]] = {}
    for end, pairs in scored.items():
        scores[end] = [score for score, _ in pairs]
    ends = [tables.statements(kb, Wanted(rule=name, end=end), few) for end in tables.ENDS]
    return RulePage(
        record,
        statement_text(rule, library).sentence if rule else "",
        graph(rule, library) if rule else None,
        summary,
        run,
        histogram(scores, {end.value: title for end, title in DISTRIBUTION_NAMES.items()}) if scores else None,
        _dots(kb, scored, statement_url),
        every,
        _delta(*scores.values()) if scores and all(scores.values()) else "",
        *ends,
    )


def _rule_record(kb: KnowledgeBase, library: Library, name: str) -> RuleRecord:
    """The rule as searches stored it, else as `derive` used it. Raises NotStored for any other name."""
    stored = next((record for record in kb.select(RULES) if record.name == name), None)
    if stored is not None:
        return stored
    if name not in kb.derived_counts():
        raise NotStored(f"The knowledge base holds no rule {name!r}.")
    used = next((rule for rule in library.rules if rule.name == name), None)
    return RuleRecord.of(used) if used else RuleRecord(name, "")


def _scored(kb: KnowledgeBase, run_id: str, rule: str, every: int) -> dict[str, list[tuple[float, int]]]:
    """Finite log-likelihoods of a rule's statements with their rows, lowest first, by end; {} without any.

    Numbers alone: with a million statements their texts would take seconds and a gigabyte.
    """
    sql = (
        "SELECT distribution, log_likelihood, statements.rowid FROM statements "  # noqa: S608  ours
        # By rowid, so that a page that is opened again shows the same statements.
        f"WHERE run_id = ? AND rule = ? AND statements.rowid % ? = 0 AND abs(log_likelihood) < {LARGEST} "
        f"AND {STANDING} ORDER BY log_likelihood, id"
    )
    scored: dict[str, list[tuple[float, int]]] = {end.value: [] for end in Distribution}
    for end, score, row in kb.query(sql, (run_id, rule, every)):
        if end in scored:  # another program may write other ends
            scored[end].append((score, row))
    return scored if any(scored.values()) else {}


def _delta(head: Sequence[float], long_tail: Sequence[float]) -> str:
    """Mean of head less that of the long tail, with its interval where resampling is quick."""
    if len(head) + len(long_tail) > MOST_RESAMPLED:
        return f"{fmean(head) - fmean(long_tail):.2f}"
    return str(difference_of_means(head, long_tail))


def _dots(
    kb: KnowledgeBase, scored: Mapping[str, Sequence[tuple[float, int]]], statement_url: Callable[[object], str]
) -> DotPlot | None:
    """Some statements of each end as dots, evenly spread over their ranks."""
    picked = {end: evenly_spread(pairs) for end, pairs in scored.items()}
    chosen: list[int] = []
    for pairs in picked.values():
        chosen += [row for _, row in pairs]
    # The chosen rows alone are read with their texts.
    marks = ",".join("?" * len(chosen))
    sql = f"SELECT rowid, id, {SENTENCE} FROM statements WHERE rowid IN ({marks})"  # noqa: S608  ours
    texts = {row: (identity, text) for row, identity, text in kb.query(sql, chosen)}
    dots = []
    for end, pairs in picked.items():
        for score, row in pairs:
            identity, text = texts[row]
            dots.append(Dot(end, score, text, statement_url(identity)))
    return DotPlot(tuple(dots), sum(map(len, scored.values()))) if dots else None


def _last_search(kb: KnowledgeBase, rule: str) -> tuple[RunRecord | None, RuleSummary]:
    """The newest search that says how it went with the rule."""
    for run in reversed(kb.runs()):
        summary = search_summary(kb, run).rules.get(rule)
        if summary is not None:
            return run, summary
    return None, RuleSummary()


# Of several verdicts on one value the last one holds; with a lone max(), SQLite takes the columns of its row.
_GATES = (
    "SELECT gate, sum(accepted), sum(NOT accepted) FROM (SELECT gate, accepted, max(rowid) FROM decisions "
    "WHERE rule IS NULL AND run_id = %s GROUP BY subject) GROUP BY gate;"
)


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run: its settings, and how far it is. `statements`: rows, of which a statement at both ends has two.

    `state`: of a running search, as it has written it itself; None if it has not, or has ended. `wish`: what it was
    asked to do last.
    """

    run: RunRecord
    heading: RunHeading
    costs: tuple[RoleCost, ...]
    verdicts: list[tuple[str, int, int]]
    statements: int
    facts: int
    state: RunState | None
    wish: Wish | None

    @property
    def is_running(self) -> bool:
        """True if the run has not ended, as far as this machine can tell."""
        return self.run.status == "running" and (self.state is None or self.state.is_alive)

    @property
    def is_watched(self) -> bool:
        """True if the search says itself where it stands, so that it also reads what it is asked to do."""
        return self.is_running and self.state is not None

    @property
    def warning(self) -> str:
        """A warning about how the run ended; empty for one that is complete, or that says where it stands."""
        if self.is_watched:
            return ""
        if self.run.status == "running" and self.state is not None:
            return f"The process of this search has ended before its end. Run the same {CALL} again to continue."
        return self.heading.state

    @property
    def spent(self) -> float | None:
        """The cost of all roles; None if a price is unknown."""
        return sum((line.sent for line in self.costs), CallStatistics()).cost

    def tables(self) -> dict[str, StoredTable]:
        """The tables behind the page by name."""
        costs = []
        for line in self.costs:
            sent = line.sent
            costs.append((line.role, line.model, sent.calls, sent.prompt_tokens, sent.completion_tokens, sent.cost))
        columns = ("role", "model", "requests", "prompt tokens", "completion tokens", "cost")
        sql = _GATES % tables.literal(self.run.id)
        return {
            "gates": StoredTable(("gate", "accepted", "rejected"), self.verdicts, sql, Page()),
            "costs": StoredTable(columns, costs, "", Page()),
        }

    @property
    def funnel(self) -> Funnel:
        """The verdicts as a plot."""
        return Funnel(tuple(self.verdicts))

    def to_json(self) -> dict[str, Any]:
        """The figures of the page."""
        gates = [{"gate": gate, "accepted": accepted, "rejected": stopped} for gate, accepted, stopped in self.verdicts]
        return {
            "run": self.run.id,
            "command": self.run.command,
            "status": self.run.status,
            "is_running": self.is_running,
            "state": None if self.state is None else self.state.to_json(),
            "gates": gates,
            "costs": [asdict(line) for line in self.costs],
            "statements": self.statements,
            "facts": self.facts,
        }


def run_page(kb: KnowledgeBase, identity: str) -> RunPage:
    """The page of a run, counted from what is stored so far. Raises HapaxError for an unknown run."""
    run = chosen_run(kb, identity)
    counts = {row[0]: row for row in kb.query(_GATES % tables.literal(run.id))}
    ((statements,),) = kb.query("SELECT count(*) FROM statements WHERE run_id = ?", (run.id,))
    ((facts,),) = kb.query("SELECT count(*) FROM facts WHERE run_id = ?", (run.id,))
    compat = run.settings.get("compat")
    order = [gate.name for gate in gates_in_order(compat if isinstance(compat, str) else None) if gate.name in counts]
    # A gate of another version of Hapax comes last.
    order += [name for name in counts if name not in order]
    verdicts = [counts[gate] for gate in order]
    files = None if kb.path is None else RunFiles(kb.path, run.id)
    state = files.read() if files and run.status == "running" else None
    # Without a state nobody would read a wish.
    wish = files.wish() if files and state else None
    # The summary comes when the run ends; until then the search itself tells its calls.
    costs = costs_in(run, search_summary(kb, run)) or _costs_so_far(run, state)
    return RunPage(run, run_heading(run), costs, verdicts, statements, facts, state, wish)


def _costs_so_far(run: RunRecord, state: RunState | None) -> tuple[RoleCost, ...]:
    """The calls of a running search, by role."""
    try:
        sent = {} if state is None else {role: CallStatistics(**counts) for role, counts in state.sent.items()}
    except TypeError:  # written by another version
        return ()
    return costs_in(run, SearchSummary(sent=sent))


def ask_run(kb: KnowledgeBase, identity: str, wish: Wish | None) -> None:
    """Ask a running search to pause, to end, or, with None, to go on. Raises HapaxError if none is running."""
    shown = run_page(kb, identity)
    if kb.path is None or not shown.is_watched:
        raise HapaxError(f"The search {shown.run.id} is not running. Run its command again to continue.")
    RunFiles(kb.path, shown.run.id).ask(wish)


def labels(kb: KnowledgeBase, library: Library) -> Mapping[str, str]:
    """The predicates by name/arity, with the sentence of each."""
    known: dict[str, str] = {}
    for record in kb.select(PREDICATES):
        known[record.indicator] = record.affirmative or ""
    for signature in library.signatures:
        # Stored declarations come first, since statements were worded by them.
        known.setdefault(signature.indicator, signature.templates.affirmative if signature.templates else "")
    return known
