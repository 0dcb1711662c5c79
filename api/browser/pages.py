"""The content of the pages of one entity, predicate or rule, read at one moment."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from hapax.api.browser import table_pages as tables
from hapax.api.browser.plot_values import LARGEST, Dot, DotPlot, Graph, Histogram, evenly_spread, graph, histogram
from hapax.api.browser.runs import RuleSummary, search_summary
from hapax.api.browser.statement_pages import NotStored
from hapax.api.browser.table_pages import SENTENCE, Page, StoredTable, Wanted
from hapax.engine.run_memory import stored_rule
from hapax.evaluation.shared.estimates import difference_of_means
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES
from hapax.grammar.errors import HapaxError
from hapax.grammar.goal_language import Compound, Goal, GoalVariable, goal_name, goal_text
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Value
from hapax.grammar.writing.prolog_text import prolog_value
from hapax.grammar.writing.verbalize import statement_text
from hapax.kb.exchange.values import decode_value, decode_values
from hapax.kb.records import PATTERNS, PREDICATES, RULES, Distribution, RuleRecord, RunRecord
from hapax.kb.store import STANDING, KnowledgeBase
from hapax.kb.word_index import WordMatches

FEW = Page(rows=10)
STRIKING = 3
"""Statements on the front page, each of another rule."""
MOST_STARTS = 40
"""Predicates that the page for asking lists."""
_ANY_FACT = (
    "SELECT arguments FROM facts WHERE predicate = ? AND json_valid(arguments) "
    "AND json_array_length(arguments) = ? LIMIT 1"
)
MOST_SCORED = 25_000
"""Statements of a rule that its plots take at least, where it has more than twice as many."""
MOST_RESAMPLED = 10_000
"""Scores from which on a difference has no interval: resampling a million takes minutes, and the interval is narrow."""


def front_tables(kb: KnowledgeBase) -> dict[str, StoredTable]:
    """Tables of a knowledge base as a whole: numbers, striking and disputed statements, rules, and the latest runs."""
    rules = tables.rules(kb, Page(order=f"{tables.MINUS}statements"))
    counts = {"statements": sum(row[-1] for row in rules.rows), "facts": sum(kb.fact_counts().values())}
    return {
        "counts": StoredTable(("what", "rows"), list(counts.items()), "", Page()),
        "striking": _striking(kb, [str(rule) for rule, *_ in rules.rows]),
        "disputed": _disputed(kb),
        "rules": rules,
        "runs": tables.runs(kb, Page(rows=5)),
    }


def _striking(kb: KnowledgeBase, rules: Sequence[str]) -> StoredTable:
    """The least likely statement of the long tail of each of some rules; where there is no tail, any statement."""
    orders = {Distribution.LONG_TAIL.value: "log-likelihood", Distribution.HEAD.value: "log-likelihood"}
    orders[tables.DERIVED] = ""
    found: list[tuple[Any, ...]] = []
    for end, order in orders.items():
        for rule in rules[: 2 * STRIKING] if not found else ():
            table = tables.statements(kb, Wanted(rule=rule, end=end), Page(rows=1, order=order))
            found += [(row[0], row[table.columns.index("statement")], rule) for row in table.rows]
    return StoredTable(("id", "statement", "rule"), found[:STRIKING], "", Page())


def _disputed(kb: KnowledgeBase) -> StoredTable:
    """Statements about which voters differ."""
    select = (
        f"SELECT DISTINCT id, {SENTENCE} FROM statements WHERE {STANDING} AND id IN (SELECT statement_id FROM votes "  # noqa: S608  ours
        f"GROUP BY statement_id, question HAVING count(DISTINCT answer) > 1) ORDER BY id LIMIT {FEW.rows}"
    )
    return StoredTable(("id", "statement"), kb.sql(select), f"{select};", Page())


def entity_tables(
    kb: KnowledgeBase, name: str, few: Page, among: Callable[[str], Sequence[int] | None]
) -> dict[str, StoredTable]:
    """Tables of all that is known about a value: facts, statements by end, rejected claims and types.

    `few`: the wanted part of all but facts and types; `among` as in `tables.statements`. Raises
    NotStored if nothing mentions the value.
    """
    about = Wanted(about=name)
    parts = {"facts": tables.facts(kb, about, Page(rows=max(few.rows, 200)))}
    parts |= {end: tables.statements(kb, replace(about, end=end), few, among) for end in tables.ENDS}
    parts["rejected"] = rejected_claims(kb, about, few)
    parts["types"] = tables.types_of(kb, name)
    if not any(table.rows for table in parts.values()):
        raise NotStored(f"Nothing here mentions {name!r}. Search the statements for a part of it.")
    return parts


LOOKED_THROUGH = 1_000
"""Decisions of gates that are looked through for the first rejected claims of a page."""


def rejected_claims(kb: KnowledgeBase, wanted: Wanted, few: Page) -> StoredTable:
    """Values that gates rejected and that are no facts now, each with its newest rejection."""
    most = max(few.rows, LOOKED_THROUGH)
    every = Page(few.number, most, few.order)
    table = tables.claims(kb, replace(wanted, verdict="rejected"), every)
    cells = tables.claim_rows(replace(wanted, verdict="rejected")).window(kb, every, (few.number - 1) * most, most)[0]
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for row, (patterns, value, *_) in zip(table.rows, cells, strict=True):
        if not _is_fact(kb, patterns, value):
            found[patterns, value] = row
    rows = list(found.values())
    return replace(table, rows=rows[: few.rows], more=table.more or len(rows) > few.rows)


def _is_fact(kb: KnowledgeBase, patterns: str, value: str) -> bool:
    """True if a value makes a fact of one of the patterns of its question."""
    try:
        proposed = decode_value(value)
        for pattern in PATTERNS.decode(patterns):
            arguments = tuple(proposed if cell is None else cell for cell in pattern.arguments)
            if kb.fact(pattern.predicate, arguments) is not None:
                return True
    except (ValueError, TypeError, HapaxError):
        return False  # a cell that another program spoiled, which is shown as it is
    return False


def derived_counts(kb: KnowledgeBase, library: Library) -> dict[str, int]:
    """Number of stored derived atoms by predicate; of one that no rule needs, of the statements that conclude it."""
    statements, counts = kb.derived_counts(), Counter[str]()
    for rule in library.rules:
        counts[rule.conclusion.atom.indicator] += statements.get(rule.name, 0)
    found = {**counts, **kb.derived_predicates()}
    return {indicator: count for indicator, count in found.items() if indicator not in library.excepted}


def with_columns(table: StoredTable, names: Sequence[str]) -> StoredTable:
    """A table of the facts of one predicate with a column for each argument that has a name."""
    if not names or any(len(row[1]) != len(names) for row in table.rows):
        return table
    rows = [(*((part,) for part in row[1]), *row[2:]) for row in table.rows]
    return replace(table, columns=(*names, *table.columns[2:]), rows=rows)


def search_tables(kb: KnowledgeBase, matches: WordMatches) -> dict[str, StoredTable]:
    """The values and statements of a search, the best first; each statement that stands once."""
    # The index gives few rows, however many match.
    marks = ",".join("?" * len(matches.rows))
    sql = f"SELECT rowid, id, {SENTENCE} FROM statements WHERE {STANDING} AND statements.rowid IN ({marks})"  # noqa: S608
    found = {row: (identity, sentence) for row, identity, sentence in kb.sql(sql, matches.rows)}
    # In the order of the matches; a statement at both ends has two rows.
    statements = list(dict(found[row] for row in matches.rows if row in found).items())
    listed = ", ".join(tables.literal(identity) for identity, _ in statements)
    shown = f"SELECT DISTINCT id, {SENTENCE} FROM statements WHERE id IN ({listed});"  # noqa: S608  for reading
    return {
        "values": StoredTable(("value",), [(name,) for name in matches.names], "", Page()),
        "statements": StoredTable(("id", "statement"), statements, shown, Page()),
    }


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
    """Statements that `derive` concluded."""


def rule_page(
    kb: KnowledgeBase,
    library: Library,
    name: str,
    statement_url: Callable[[object], str],
    *,
    few: Page = FEW,
    run: RunRecord | None = None,
) -> RulePage:
    """The page of a rule, with so many statements: the likeliest of the head, the least likely of the long tail.

    `statement_url` gives the page of a statement by its id. `run`: the one whose figures and statements are shown;
    None: the newest search's figures, and the statements of all.

    Raises NotStored if the knowledge base holds no rule of this name.
    """
    record = _rule_record(kb, library, name)
    rule = stored_rule(kb, name, library)
    if run is None:
        shown_run, summary = _last_search(kb, name)
    else:
        shown_run, summary = run, search_summary(kb, run).rules.get(name, RuleSummary())
    ((count,),) = kb.sql("SELECT count(*) FROM statements WHERE rule = ?", (name,))
    every = max(1, count // MOST_SCORED)
    scored = {} if shown_run is None else _scored(kb, shown_run.id, name, every)
    scores: dict[str, list[float]] = {}
    for end, pairs in scored.items():
        scores[end] = [score for score, _ in pairs]
    wanted = Wanted(rule=name, run=run.id if run else "")
    typical = {Distribution.HEAD: "-log-likelihood", Distribution.LONG_TAIL: "log-likelihood"}
    ends = {}
    for end, order in typical.items():
        ends[end] = tables.statements(kb, replace(wanted, end=end), replace(few, order=order))
    return RulePage(
        record,
        statement_text(rule, library).sentence if rule else "",
        graph(rule, library) if rule else None,
        summary,
        shown_run,
        histogram(scores, {end.value: title for end, title in DISTRIBUTION_NAMES.items()}) if scores else None,
        _dots(kb, scored, statement_url),
        every,
        _delta(*scores.values()) if scores and all(scores.values()) else "",
        ends[Distribution.HEAD],
        ends[Distribution.LONG_TAIL],
        tables.statements(kb, Wanted(rule=name, end=tables.DERIVED), few),
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
    for end, score, row in kb.sql(sql, (run_id, rule, every)):
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
    texts = {row: (identity, text) for row, identity, text in kb.sql(sql, chosen)}
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


@dataclass(frozen=True, slots=True)
class GoalStart:
    """A goal about a predicate, with what it says, its number of facts, and the same goal about a value of a fact."""

    goal: str
    says: str
    facts: int
    example: str


def goal_starts(kb: KnowledgeBase, library: Library) -> list[GoalStart]:
    """Goals about the predicates of a knowledge base, those with the most facts first."""
    counts, known = Counter(kb.fact_counts()), labels(kb, library)
    counts.update(derived_counts(kb, library))
    starts = []
    for indicator in sorted({*counts, *known}, key=lambda name: (-counts.get(name, 0), name))[:MOST_STARTS]:
        name, _, arity = indicator.rpartition("/")
        types = library.signature(indicator).argument_types if library.knows(indicator) else ("Value",) * int(arity)
        variables = [_variable(types, place) for place in range(len(types))]
        cells = kb.sql(_ANY_FACT, (name, int(arity))) if counts.get(indicator) and len(types) > 1 else []
        goal, example = goal_name(name), ""
        for (cell,) in cells:
            with suppress(ValueError, TypeError, HapaxError):  # a cell that another program spoiled
                # The first argument is a value of this knowledge base, the others are asked for.
                example = f"{goal}({', '.join([prolog_value(decode_values(cell)[0] or ''), *variables[1:]])})"
        if variables:
            goal = f"{goal}({', '.join(variables)})"
        starts.append(GoalStart(goal, known.get(indicator, ""), counts.get(indicator, 0), example))
    return starts


def _variable(types: Sequence[str], place: int) -> str:
    """A variable that is called like its type, with a number where the type occurs again."""
    name = re.sub(r"[^0-9A-Za-z]", "", types[place].title()).lstrip("0123456789") or "Value"
    return f"{name}{place + 1}" if types.count(types[place]) > 1 else name


def atoms_of_answer(goal: Goal, row: Mapping[str, Value], library: Library) -> list[str]:
    """The atoms of a goal that an answer makes ground, each with a proof of its own."""
    term = goal.term
    parts = term.arguments if isinstance(term, Compound) and term.functor == "," else (term,)
    atoms = []
    for part in parts:
        if isinstance(part, Compound) and library.knows(part.indicator):
            arguments = [
                Constant(row[term.name]) if isinstance(term, GoalVariable) and term.name in row else term
                for term in part.arguments
            ]
            if all(isinstance(term, Constant) for term in arguments):
                atoms.append(goal_text(Goal(replace(part, arguments=tuple(arguments)), ())))
    return atoms


def labels(kb: KnowledgeBase, library: Library) -> Mapping[str, str]:
    """The predicates by name/arity, with the sentence of each."""
    known: dict[str, str] = {}
    for record in kb.select(PREDICATES):
        known[record.indicator] = record.affirmative or ""
    for signature in library.signatures:
        if signature.indicator in library.excepted:
            continue  # of Hapax's own, for `unless`
        # Stored declarations come first, since statements were worded by them.
        known.setdefault(signature.indicator, signature.templates.affirmative if signature.templates else "")
    return known
