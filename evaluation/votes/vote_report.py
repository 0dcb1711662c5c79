"""Report on people's votes: shares of right statements, and LINK's tables 3, 4, 6, 17, 19 and 20, beside its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, product
from typing import Any

from hapax.engine.inference.proof import proof_from_json, proof_text
from hapax.engine.judgements import (
    DATA_TYPE_QUESTION,
    DENIALS,
    ENTAILMENT_QUESTION,
    LINK_ANNOTATORS,
    SOUNDNESS_QUESTION,
    Judgement,
    Judgements,
    folded,
    rule_soundness,
    shared_judgements,
)
from hapax.evaluation.link.judging import PAPER, conjunction
from hapax.evaluation.link.likelihood import methods_by_run, runs_of
from hapax.evaluation.link.probing import ProbeReport, measure
from hapax.evaluation.link.probing_questions import TEMPLATES, ParsedReply, ProbeAnswer, items_of
from hapax.evaluation.shared.estimates import AnnotatorAgreement, Estimate, agreement, percent, share
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, grouped
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    NO_DOMAIN,
    TOTAL,
    JudgedCounts,
    ordered_domains,
)
from hapax.evaluation.votes.soundness import share_lines
from hapax.evaluation.votes.voting_items import (
    ItemSource,
    derivation_rules,
    judged_derived,
    mended_lines,
    subject_id,
)
from hapax.evaluation.votes.voting_questions import AUDIT, BASELINE, SOUNDNESS_TEXT, SheetKind, visible
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.writing.words import counted
from hapax.kb.judgement_records import VoteRecord
from hapax.kb.records import RULES, Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase

# --- LINK's figures as printed ----------------------------------------------------------------------------------------

MEASURES = ("data type", "factuality", "overall")
"""The rows of tables 3, 17 and 19, in the paper's order."""

METHODS = tuple(name for name, *_ in PAPER["accuracy"][3]["rows"])
"""The columns of tables 3 and 19."""

# Table 3 has a column for each method.
TABLE_3 = dict(zip(MEASURES, zip(*(figures for _, *figures in PAPER["accuracy"][3]["rows"]), strict=True), strict=True))
HUMAN = [printed for printed in PAPER["table_4"] if printed["who"] == "Human"]


# --- ballots ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Ballot:
    """The votes on one question about one statement or fact."""

    votes: list[VoteRecord] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of voters who said yes, and who denied what is asked."""
        answers = Counter(folded(vote.answer) for vote in self.votes)
        return answers["yes"], sum(answers[denial] for denial in DENIALS)

    @property
    def majority(self) -> bool | None:
        """True if more voters said yes, False if more denied; None after a tie, which counts for neither side."""
        yes, no = self.counts
        return None if yes == no else yes > no


Ballots = Mapping[str, Mapping[str, Ballot]]
"""Ballots by statement or fact, then by question."""


def _ballots(votes: Iterable[VoteRecord]) -> Ballots:
    """The votes without those of LINK's annotators, of whom only the noes are known."""
    ballots: dict[str, dict[str, Ballot]] = defaultdict(dict)
    for vote in votes:
        if vote.voter != LINK_ANNOTATORS:
            ballots[vote.statement_id].setdefault(folded(vote.question), Ballot()).votes.append(vote)
    return ballots


@dataclass(frozen=True, slots=True)
class VotedStatement:
    """A statement with its ballots on truth and data types, by question, and what they say together."""

    record: StatementRecord
    domain: str
    ballots: Mapping[str, Ballot]
    judgement: Judgement

    @property
    def parts(self) -> tuple[list[Ballot], list[Ballot]]:
        """The ballots of figure 14: on data types, and on the entailment."""
        types = [ballot for question, ballot in self.ballots.items() if question.startswith(DATA_TYPE_QUESTION)]
        return types, [ballot for question, ballot in self.ballots.items() if question == ENTAILMENT_QUESTION]

    @property
    def ties(self) -> list[str]:
        """Questions with as many yes as no votes."""
        return [question for question, ballot in self.ballots.items() if ballot.majority is None]


# --- sections of the report -------------------------------------------------------------------------------------------


def _accuracy(group: str, voted: Iterable[VotedStatement]) -> dict[str, Any]:
    """A column of table 3 or a line of table 17: shares of statements that are right, among those with a verdict.

    Each id counts once. A tie on the type leaves the entailment decided.
    """
    verdicts = []
    for statement in {statement.record.id: statement for statement in voted}.values():
        # None after a tie and if nobody was asked.
        parts = [conjunction(ballot.majority for ballot in part) if part else None for part in statement.parts]
        verdicts.append((*parts, conjunction(parts)))
    shares = {}
    for name, column in zip(("data_type", "factuality", "overall"), range(3), strict=True):
        shares[name] = share([row[column] is True for row in verdicts if row[column] is not None])
    return {"group": group, "statements": len(verdicts), **shares}


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of facts by people, LINK's table 6.

    `errors`: by question Q1 to Q5, the share of facts that a majority denied. `correct`: by distribution, the share of
    statements all of whose facts are right in every question, among those whose facts all have a verdict.
    """

    facts: int
    errors: tuple[Estimate, ...]
    correct: Mapping[Distribution, Estimate]
    ties: int


def _audit(kb: KnowledgeBase, statements: Iterable[StatementRecord], ballots: Ballots) -> tuple[Audit | None, set[str]]:
    """The audit of the facts behind the statements, and the ids of these; None and none if no fact was audited."""
    if set().union(*ballots.values()).isdisjoint(AUDIT_QUESTIONS):
        return None, set()
    source = ItemSource(kb, SheetKind.PREDICATES)
    # By id and distribution of the statement.
    facts_of = {(record.id, record.distribution): list(source.facts(record)) for record in statements}
    known = set(chain.from_iterable(facts_of.values()))
    verdicts: dict[str, list[bool | None]] = {}
    ties = 0
    for fact in known & ballots.keys():
        found = [ballots[fact].get(question) for question in AUDIT_QUESTIONS]
        # A question without votes leaves the fact as undecided as a tie does.
        verdicts[fact] = [None if ballot is None else ballot.majority for ballot in found]
        ties += sum(ballot is not None and ballot.majority is None for ballot in found)
    errors = []
    for answers in zip(*verdicts.values(), strict=True):
        errors.append(share([not answer for answer in answers if answer is not None]))
    correct: dict[Distribution, list[bool]] = {distribution: [] for distribution in Distribution}
    for (_, distribution), facts in facts_of.items():
        right = [conjunction(verdicts.get(fact, [None])) for fact in facts]
        # One undecided fact leaves the statement undecided, even if another fact is wrong.
        if facts and None not in right:
            correct[distribution].append(all(right))
    shares = {end: share(rights) for end, rights in correct.items()}
    return (Audit(len(verdicts), tuple(errors), shares, ties) if verdicts else None), known


AUDIT_QUESTIONS = tuple(f"{AUDIT} Q{number}".casefold() for number in range(1, 6))
"""The questions of table 6, folded like the questions of votes."""


@dataclass(frozen=True, slots=True)
class HumanBaseline:
    """People measured like a model: by majority, and each person alone.

    `both_roles`: voters who also labelled statements; `unlabelled`: statements that nobody labelled.
    """

    majority: ProbeReport
    single: ProbeReport
    ties: int
    unlabelled: int
    both_roles: tuple[str, ...]

    @property
    def figures(self) -> dict[str, Any]:
        """The figures for programs, in the layout of table 4."""
        figures: dict[str, Any] = {name: getattr(self, name) for name in ("ties", "unlabelled", "both_roles")}
        for name, report in (("majority", self.majority), ("one_person", self.single)):
            figures[name] = []
            for cell in report.cells.values():
                numbers = {"statements": cell.statements, "all": cell.every, "accuracy": cell.accuracy}
                figures[name].append({"domain": cell.domain, "distribution": cell.distribution, **numbers})
        return {**figures, "change": list(self.majority.changes.values())}


def _baseline(
    kb: KnowledgeBase, statements: Iterable[StatementRecord], ballots: Ballots, found: Judgements
) -> HumanBaseline | None:
    """Measure people by the labels that a probing uses. Statements with a value of a wrong type are left out."""
    asked = {subject: questions[BASELINE] for subject, questions in ballots.items() if BASELINE in questions}
    records: dict[tuple[str, Distribution], StatementRecord] = {}
    for record in statements:
        if record.id in asked and found.of(record.id).typed is not False:
            records[record.id, record.distribution] = record
    if not records:
        return None
    majority: list[ProbeAnswer] = []
    single: list[ProbeAnswer] = []
    template = TEMPLATES[4]  # by premise and conclusion
    # The judgements give the items the labels by which a model would be measured, too.
    for item in items_of(kb, list(records.values()), found)[0]:
        ballot, question = asked[item.statement_id], template.question(item)
        for vote in ballot.votes:
            single.append(ProbeAnswer(item, template, question, ParsedReply(folded(vote.answer) == "yes")))
        # A tie is an answer off format, as when a model says neither of the two words.
        verdict = ParsedReply(ballot.majority, "tie" if ballot.majority is None else None)
        majority.append(ProbeAnswer(item, template, question, verdict))
    answerers = {vote.voter for ballot in asked.values() for vote in ballot.votes}
    judges = set[str]().union(*(judgement.voters for judgement in found.texts.values()))
    return HumanBaseline(
        measure(majority),
        measure(single),
        sum(answer.verdict.positive is None for answer in majority),
        sum(not found.of(subject).truth for subject, _ in records),
        tuple(sorted(judges & answerers)),
    )


# --- the report -------------------------------------------------------------------------------------------------------

TIES_SHOWN = 5
"""Number of ties that the notes name."""

RULE_NOT_STORED = "not stored"
"""Text of a rule that the knowledge base lacks, such as one whose statements were merged without it."""


@checked
def report_votes(kb: KnowledgeBase, failures: int | None = None) -> Evaluation[None]:
    """Count people's votes: agreement and LINK's tables 3, 4, 6, 17, 19 and 20.

    `failures`: number of wrong statements shown in the text; JSON has all. The figures are shares of 1,
    LINK's printed ones below `link` in percent. Raises HapaxError if there are no votes.
    """
    votes = kb.votes()
    if not votes:
        raise HapaxError(
            f"{kb.place} holds no votes.",
            Remedy(
                "Export sheets with {}, have them filled in, and import them with {}.",
                Operation("export_sheets"),
                Operation("import_sheets"),
            ),
        )
    return _VoteReport(kb, votes).evaluation(failures)


class _VoteReport:
    """All figures about the votes of a knowledge base."""

    def __init__(self, kb: KnowledgeBase, votes: Sequence[VoteRecord]) -> None:
        statements, found = kb.statements(), Judgements.stored(kb)
        known, ballots = {statement.id for statement in statements}, _ballots(votes)
        self._kb, self._found, self._statements = kb, found, statements
        self._rules = {rule.name: rule for rule in kb.select(RULES)}
        self._voted: list[VotedStatement] = []
        for record in statements:
            # Others have only a mark of harm, or answers to a baseline.
            quality = {}
            for question, ballot in ballots.get(record.id, {}).items():
                if question in (ENTAILMENT_QUESTION, SOUNDNESS_QUESTION) or question.startswith(DATA_TYPE_QUESTION):
                    quality[question] = ballot
            if quality:
                domain = self._rules[record.rule].domain if record.rule in self._rules else None
                self._voted.append(VotedStatement(record, domain or NO_DOMAIN, quality, found.of(record.id)))
        # Each text once, even if several distributions, rules or methods have it.
        self._distinct = list({voted.record.text: voted for voted in self._voted}.values())
        self._failed = [voted for voted in self._distinct if voted.judgement.is_wrong]
        on_derived = judged_derived(kb, derivation_rules(kb), found, known)
        self._derived = list(on_derived.values())
        truths = [questions[SOUNDNESS_QUESTION] for questions in ballots.values() if SOUNDNESS_QUESTION in questions]
        self._agreement = agreement([ballot.counts] for ballot in truths)
        self._audit, facts = _audit(kb, statements, ballots)
        self._strays = sum(vote.statement_id not in known.union(facts, on_derived) for vote in votes)
        self._baseline = _baseline(kb, statements, ballots, found)
        judgements = [*shared_judgements(found, known), *(judgement for _, judgement in self._derived)]
        self._counts = JudgedCounts.of(judgements)
        # Labels imported from LINT stand for a majority of LINK's annotators; they are nobody's votes.
        people = [vote.voter for vote in votes if vote.voter != LINK_ANNOTATORS]
        self._own, self._people, self._imported = len(people), len(set(people)), len(votes) - len(people)

    def evaluation(self, shown: int | None) -> Evaluation[None]:
        """Tables, ours before LINK's, figures, the first wrong statements, and notes."""
        statements, failures = self._statement_figures(), self._failures()
        notes = [*self._notes(statements), self._counts.sentence(), *share_lines(self._kb)]
        tables: list[ResultTable] = []
        if self._agreement.questions:
            tables.append(_agreement_table("Agreement on whether statements are true", {"truth": self._agreement}))
        accuracies, domains, agreements = self._sections()
        tables += _accuracy_tables(accuracies, domains, agreements) if domains else ()
        tables += _audit_tables(self._audit) if self._audit else ()
        tables += _baseline_tables(self._baseline) if self._baseline else ()
        derived = self._derived_figures()
        if derived:
            rows = [tuple(rule.values()) for rule in derived]
            tables.append(ResultTable("Derived statements, by majority", tuple(derived[0]), rows))
        figures = {
            "votes": self._own,
            "voters": self._people,
            "statements": statements,
            "ties": [{"statement": row.record.id, "questions": row.ties} for row in self._distinct if row.ties],
            "table_3": accuracies,
            "table_17": domains,
            "agreement": self._agreement,
            "table_19": agreements,
            "table_6": self._audit,
            "baseline": self._baseline.figures if self._baseline else None,
            "failures": failures,
            "remarks": notes,
            "link": {
                "methods": METHODS,
                "table_3": TABLE_3,
                "table_6": PAPER["table_6"],
                "audit_correct": PAPER["audit_correct"],
                "table_17": PAPER["table_17"],
                "table_19": PAPER["table_19"],
                "human": HUMAN,
            },
            "derived": derived,
        }
        details = [visible(line) for failure in failures[:shown] for line in _failure_lines(failure)]
        return Evaluation(None, tables, figures, details, [*notes, *mended_lines(self._kb)])

    def _sections(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, AnnotatorAgreement]]:
        """Tables 3, 17 and 19, by the statements that were asked about on LINK's sheet; empty without any."""
        voted = [statement for statement in self._voted if any(statement.parts)]
        if not voted:
            return [], [], {}
        methods = {run: method.name for run, method in methods_by_run(runs_of(self._kb, self._statements)).items()}
        # Columns of table 3: for each method head, long tail and both.
        ends = {name: (end,) for end, name in DISTRIBUTION_NAMES.items()} | {"both": tuple(Distribution)}
        accuracies = []
        for method, (name, of) in product(dict.fromkeys(methods.values()), ends.items()):
            own = [row for row in voted if methods[row.record.run_id] == method and row.record.distribution in of]
            accuracies += [_accuracy(f"{method}: {name}", own)] if own else []
        domains = []
        for domain in ordered_domains(row.domain for row in voted):
            domains.append(_accuracy(domain, [row for row in voted if row.domain == domain]))
        domains.append(_accuracy(TOTAL, voted))
        # Each statement once, whatever distributions it is in: its votes are the same.
        counts = []
        for statement in {row.record.id: row for row in voted}.values():
            types, entailment = ([ballot.counts for ballot in part] for part in statement.parts)
            counts.append((types, entailment, types + entailment))
        agreements = {name: agreement(row[place] for row in counts) for place, name in enumerate(MEASURES)}
        return accuracies, domains, agreements

    def _statement_figures(self) -> dict[str, Any]:
        """Numbers of statements, and the effect of the votes on a probing: flipped labels, and those left out."""
        remaining = dict.fromkeys(Distribution, 0)
        flipped, wrong_type = set(), 0
        # A statement of both distributions is probed in each, but it has one label; one of several runs counts once.
        for identity, distribution in {(record.id, record.distribution) for record in self._statements}:
            judgement = self._found.of(identity)
            wrong_type += judgement.typed is False
            remaining[distribution] += judgement.typed is not False
            if judgement.typed is not False and judgement.is_true is False:
                flipped.add(identity)
        derived = [judgement for _, judgement in self._derived]
        return {
            "judged": len(self._distinct) + sum(judgement.truth is not None for judgement in derived),
            "found_wrong": len(self._failed) + sum(judgement.is_wrong for judgement in derived),
            **asdict(self._counts),
            "labels_turned": len(flipped),
            "wrong_type_left_out": wrong_type,
            "remaining": remaining,
            "harmful": sorted(row for row, judgement in self._found.texts.items() if judgement.is_harmful),
        }

    def _derived_figures(self) -> list[dict[str, Any]]:
        """Verdicts on derived statements by rule."""
        judged = {record.id: (record.rule, judgement.truth) for record, judgement in self._derived}
        rules = {identity: rule for identity, (rule, _) in judged.items()}
        truths = {identity: truth for identity, (_, truth) in judged.items() if truth}
        figures = []
        for rule in rule_soundness(rules, truths).values():
            counts = {"right": rule.sound, "wrong": rule.judged - rule.sound, "undecided": rule.unsure}
            figures.append({"rule": rule.rule, **counts})
        return figures

    def _notes(self, statements: Mapping[str, Any]) -> Iterator[str]:
        """Notes on how to read the figures. `statements`: those of `_statement_figures`."""
        yield (
            f"{counted(self._own, 'vote')} of {counted(self._people, 'voter')}; "
            f"{counted(statements['judged'], 'statement')} judged, {statements['found_wrong']} found wrong, "
            f"{len(statements['harmful'])} marked as harmful"
        )
        left_out = statements["wrong_type_left_out"]
        numbers = [f"{number} {DISTRIBUTION_NAMES[end]}" for end, number in statements["remaining"].items()]
        yield (
            f"for {Operation('evaluate_probe')}: {counted(statements['labels_turned'], 'label is', 'labels are')} "
            f"flipped, {counted(left_out, 'statement has', 'statements have')} a value of a wrong type and "
            f"{'is' if left_out == 1 else 'are'} left out; {' and '.join(numbers)} statements remain"
        )
        ties = [f"{question} of {voted.record.id}" for voted in self._distinct for question in voted.ties]
        if ties:
            more = "; ..." if len(ties) > TIES_SHOWN else ""
            yield f"{counted(len(ties), 'tie')}, counted for neither side: {'; '.join(ties[:TIES_SHOWN])}{more}"
        if self._imported:
            yield (
                f"{counted(self._imported, 'label was', 'labels were')} flipped by LINK's annotators. Only these of "
                "their votes are known, so they flip labels but are not in the tables."
            )
        if self._strays:
            yield (
                f"{counted(self._strays, 'vote is', 'votes are')} on statements or facts that this knowledge base does "
                "not hold"
            )
        if (baseline := self._baseline) is None:
            return
        if baseline.unlabelled:
            yield (
                f"{counted(baseline.unlabelled, 'statement')} of the human baseline without a label by people, taken "
                "as entailed because the rule says so"
            )
        if baseline.both_roles:
            yield (
                f"{', '.join(map(visible, baseline.both_roles))} labelled statements and also answered the baseline; "
                "in the paper these are different people (section 4)"
            )

    def _failures(self) -> list[dict[str, Any]]:
        """The statements found wrong, with rule, values, votes and proof (table 20)."""
        # Votes store the short form of a question only; people have read the long one.
        wordings = {(failure.record.id, SOUNDNESS_QUESTION): SOUNDNESS_TEXT for failure in self._failed}
        for item in ItemSource(self._kb, SheetKind.STATEMENTS).items([failure.record for failure in self._failed]):
            for item_question in item.questions:
                wordings[subject_id(item.id), item_question.key.casefold()] = item_question.text
        failures = []
        for failure in self._failed:
            record, votes = failure.record, []
            for question, ballot in failure.ballots.items():
                asked = wordings.get((record.id, question), question)
                for vote in ballot.votes:
                    own = {name: getattr(vote, name) for name in ("question", "voter", "answer", "comment")}
                    votes.append({**own, "asked": asked})
            # A rule in one line; statements may have been merged without their rule.
            rule = self._rules[record.rule].text if record.rule in self._rules else RULE_NOT_STORED
            failures.append(
                {
                    "statement": record.id,
                    "rule": record.rule,
                    "rule_text": " ".join(rule.split()),
                    "domain": failure.domain,
                    "distribution": record.distribution.value,
                    "values": {name: str(value) for name, value in record.substitution},
                    "premise": record.premise,
                    "conclusion": record.conclusion,
                    "votes": votes,
                    "proof": _proof_lines(record),
                }
            )
        return failures


def _failure_lines(failure: Mapping[str, Any]) -> Iterator[str]:
    """A statement found wrong as text."""
    yield "{distribution}, rule {rule}, {domain}, statement {statement}".format(**failure)
    yield f"  rule: {failure['rule_text']}"
    yield f"  values: {', '.join(f'{name} = {value}' for name, value in failure['values'].items())}"
    yield f"  premise: {failure['premise']}"
    yield f"  conclusion: {failure['conclusion']}"
    for asked, votes in grouped(failure["votes"], lambda vote: str(vote["asked"])).items():
        answers = [folded(vote["answer"]) for vote in votes]
        yes, no = answers.count("yes"), sum(answer in DENIALS for answer in answers)
        yield f"  {asked} {'tie' if yes == no else 'yes' if yes > no else 'no'} ({yes} yes, {no} no)"
        yield from (f"    {vote['voter']}: {vote['comment']}" for vote in votes if vote["comment"])
    yield from (f"  proof: {line}" for line in failure["proof"])


def _proof_lines(record: StatementRecord) -> list[str]:
    """Lines of the proof; none for an imported statement without one."""
    if not record.proof.get("steps"):
        return []
    return proof_text(proof_from_json(record.proof), str).splitlines()


# --- tables: ours, each followed by the paper's -----------------------------------------------------------------------


def _accuracy_tables(
    methods: Sequence[Mapping[str, Any]],
    domains: Sequence[Mapping[str, Any]],
    agreements: Mapping[str, AnnotatorAgreement],
) -> Iterator[ResultTable]:
    """Tables 3, 17 and 19."""
    # The paper's table 3 has a column for each method, so the rows are turned into columns.
    by_method = []
    for found in methods:
        group, count, *shares = found.values()
        by_method.append((group, *map(percent, shares), str(count)))
    columns, *rows = zip(("accuracy", *MEASURES, "statements"), *by_method, strict=True)
    yield ResultTable("Ours, in the layout of LINK's table 3: accuracy by majority", columns, rows)
    yield _printed("LINK's table 3 as printed: other statements", ("", *METHODS), TABLE_3)
    by_domain = []
    for found in domains:
        group, count, *shares = found.values()
        by_domain.append((group, count, *map(percent, shares)))
    columns = ("domain", "statements", *MEASURES)
    yield ResultTable("Ours, in the layout of LINK's table 17: accuracy by domain", columns, by_domain)
    yield _printed("LINK's table 17 as printed", ("domain", *MEASURES), PAPER["table_17"])
    yield _agreement_table("Ours, in the layout of LINK's table 19: agreement", agreements)
    yield _printed("LINK's table 19 as printed; it does not name its measure", ("", *METHODS), PAPER["table_19"])


def _agreement_table(title: str, agreements: Mapping[str, AnnotatorAgreement]) -> ResultTable:
    """The agreement of voters on some questions, of those that two or more of them answered."""
    rows = []
    for name, found in agreements.items():
        # Coefficients run from -1 to 1, so they are not shown in percent.
        coefficients = [estimate.text(3, 3) for estimate in (found.fleiss, found.krippendorff)]
        rows.append((name, found.questions, percent(found.percent), *coefficients))
    columns = ("agreement on", "questions", "percent of pairs", "Fleiss", "Krippendorff")
    return ResultTable(title, columns, rows)


def _audit_tables(audit: Audit) -> Iterator[ResultTable]:
    """Table 6."""
    asked = ("Q1 first reference", "Q2 second reference", "Q3 truth", "Q4 first type", "Q5 second type")
    columns = ("facts", *asked, "head correct", "long tail correct")
    title = "Ours, in the layout of LINK's table 6: error rates, and statements all of whose facts are right"
    shares = (*audit.errors, *audit.correct.values())
    yield ResultTable(title, columns, [(audit.facts, *map(percent, shares))])
    first, *others = PAPER["table_6"]
    printed = {f"{first:.2f}": (*others, *PAPER["audit_correct"])}
    yield _printed("LINK's table 6 and appendix C as printed", columns[1:], printed)


def _baseline_tables(baseline: HumanBaseline) -> Iterator[ResultTable]:
    """People in table 4, whose other rows are models."""
    rows: list[tuple[object, ...]] = []
    for domain, change in baseline.majority.changes.items():
        for distribution, name in DISTRIBUTION_NAMES.items():
            cell, single = (report.cells[domain, distribution] for report in (baseline.majority, baseline.single))
            rows.append((domain, name, cell.statements, *map(percent, (cell.every, cell.accuracy, single.accuracy))))
        deltas = (change.every, change.accuracy, baseline.single.changes[domain].accuracy)
        rows.append((domain, "delta", "", *map(percent, deltas)))
    columns = ("domain", "distribution", "statements", "all, by majority", "accuracy, by majority", "one person")
    yield ResultTable("Ours: people, in the layout of LINK's table 4 (template 5)", columns, rows)
    figures = {row["domain"]: (row["head"][2], row["long_tail"][2], row["delta"]) for row in HUMAN}
    yield _printed("LINK's table 4 as printed: people", ("domain", "head", "long tail", "delta"), figures)


def _printed(title: str, columns: Sequence[str], table: Mapping[str, Sequence[float]]) -> ResultTable:
    rows = [(name, *(f"{figure:.2f}" for figure in figures)) for name, figures in table.items()]
    return ResultTable(title, columns, rows)
