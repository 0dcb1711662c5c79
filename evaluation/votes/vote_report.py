"""Counts of people's votes: shares of true statements, and LINK's tables 3, 4, 6, 17, 19 and 20."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Annotated, Any

from hapax.engine.inference.proof import proof_from_json, proof_text
from hapax.engine.judgements import (
    ENTAILMENT_QUESTION,
    FALSE_FACTS,
    RULE_BAR,
    SOUND,
    SOUNDNESS_QUESTION,
    UNSOUND_RULE,
    UNSURE,
    Judgements,
    RuleSoundness,
    rule_soundness,
    share_verdicts,
    shared_judgements,
)
from hapax.engine.questions.score_maps import weighed_votes
from hapax.evaluation.link.probing_run import TABLE_4, ProbeReport
from hapax.evaluation.shared.estimates import NOTHING, Estimate, of_groups, percent, share
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    DOMAINS,
    TOTAL,
    DistinctTexts,
    JudgedCounts,
    chosen_statements,
    latest_statements,
)
from hapax.evaluation.votes.sheets import mended_lines
from hapax.evaluation.votes.tally import (
    AUDIT_CORRECT,
    MEASURES,
    METHODS,
    TABLE_3,
    TABLE_6,
    TABLE_17,
    TABLE_19,
    AnnotatorAgreement,
    Audit,
    HumanBaseline,
    VoteCount,
    VotedAccuracy,
    VotedStatement,
    count_votes,
)
from hapax.evaluation.votes.voting_items import ItemSource, derivation_rules, judged_derived, subject_id
from hapax.evaluation.votes.voting_questions import SOUNDNESS_TEXT, SheetKind, visible
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import ChosenRules, ChosenRuns, Option
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.writing.words import counted
from hapax.kb.records import RULES, Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase


@checked
@dataclass(frozen=True, slots=True)
class SoundnessOptions:
    """Statements that count, and the bar: the share of true statements below which a rule is marked."""

    rules: ChosenRules = ()
    runs: ChosenRuns = ()
    bar: Annotated[float, Option("Share of true statements below which a rule is marked.", least=0, most=1)] = RULE_BAR


@dataclass(frozen=True, slots=True)
class SoundnessResult:
    """Counts by rule, and the shares of true statements over rules, with whole rules resampled for the interval.

    `weighted`: each rule by its number of statements in the knowledge base. `by_distribution`: a statement at both ends
    counts at both. `wording`: share of statements in good English.
    """

    rules: tuple[RuleSoundness, ...]
    overall: Estimate
    weighted: Estimate
    by_distribution: Mapping[Distribution, Estimate]
    wording: Estimate
    bar: float
    voters: tuple[str, ...] = ()
    false: Sequence[tuple[StatementRecord, str, str]] = field(default_factory=tuple)

    @property
    def below(self) -> tuple[RuleSoundness, ...]:
        """The rules below the bar."""
        return tuple(rule for rule in self.rules if rule.is_below(self.bar))

    def to_result(self) -> ExperimentResult:
        """The tables, the false statements with the readers' comments, and notes."""
        details = [f"{answer}: {record.text}{f' ({note})' if note else ''}" for record, answer, note in self.false]
        return ExperimentResult((self._summary(), self._by_rule()), self._figures(), details, tuple(self._notes()))

    def _rows(self) -> list[tuple[str, Estimate]]:
        rows = [("statements, drawn evenly over rules", self.overall), ("weighted by the rules' sizes", self.weighted)]
        for distribution, estimate in self.by_distribution.items():
            rows.append((f"{DISTRIBUTION_NAMES[distribution].replace(' ', '-')} statements", estimate))
        return [*rows, ("good English", self.wording)]

    def _summary(self) -> ResultTable:
        rows = [(name, percent(estimate), str(estimate.count)) for name, estimate in self._rows()]
        return ResultTable("Shares with 95 % intervals; whole rules are resampled", ("", "%", "of"), rows)

    def _by_rule(self) -> ResultTable:
        columns = ("rule", "true, %", "judged", "false facts", "does not follow", "unsure", "")
        rows = []
        # The worst rules first; 2 is above every share and puts rules without a verdict last.
        for rule in sorted(self.rules, key=lambda rule: (rule.sound / rule.judged if rule.judged else 2, rule.rule)):
            reasons = [str(rule.reasons.get(reason, 0)) for reason in (FALSE_FACTS, UNSOUND_RULE)]
            estimate = percent(_rule_share(rule))
            mark = f"below {self.bar:g}" if rule.is_below(self.bar) else ""
            rows.append((rule.rule, estimate, str(rule.judged), *reasons, str(rule.unsure), mark))
        return ResultTable("True statements by rule, with Wilson's intervals", columns, rows)

    def _figures(self) -> dict[str, Any]:
        return {
            "bar": self.bar,
            "voters": self.voters,
            "shares": dict(self._rows()),
            "rules": {rule.rule: {"counts": rule, "share": _rule_share(rule)} for rule in self.rules},
            "below": [rule.rule for rule in self.below],
        }

    def _notes(self) -> Iterator[str]:
        readers = ", ".join(self.voters) or "nobody"
        yield f"Judged by {readers}. Statements on which votes are undecided are not counted."
        if self.below:
            names = ", ".join(rule.rule for rule in self.below)
            yield f"{counted(len(self.below), 'rule')} below {self.bar:g}: {names}."


def _rule_share(rule: RuleSoundness) -> Estimate:
    return share([True] * rule.sound + [False] * (rule.judged - rule.sound))


@checked
@extras_named()
def evaluate_soundness(kb: KnowledgeBase, options: SoundnessOptions | None = None) -> Evaluation[SoundnessResult]:
    """Share of the statements that are true, by rule and over rules, from the votes of people.

    `options`: the statements that count, and the bar for rules. `export_sheets` writes sheets of soundness, and
    `import_sheets` reads them.
    """
    return Evaluation.of(measure(kb, options or SoundnessOptions()))


def measure(kb: KnowledgeBase, options: SoundnessOptions) -> SoundnessResult:
    """Count the judgements on all statements of the chosen rules, whichever sheet or draw they come from."""
    texts = DistinctTexts.of(latest_statements(kb, options.rules, options.runs))
    found = Judgements.stored(kb)
    statements: dict[str, StatementRecord] = {}
    for members in texts.statements.values():
        statements |= {found.row(key): record for key, record in members.items()}
    sizes = Counter(record.rule for record in statements.values())
    verdicts = {key: answer for key, answer in share_verdicts(found).items() if key in statements}
    rules = {key: record.rule for key, record in statements.items()}
    by_distribution = {}
    # A statement may stand in both distributions, and then counts in each.
    for distribution, members in texts.statements.items():
        keys = set(map(found.row, members))
        own = {key: answer for key, answer in verdicts.items() if key in keys}
        by_distribution[distribution] = _over_rules(own, rules, {})
    wording = {}
    for key, judgement in found.texts.items():
        if key in statements and judgement.reads_well is not None:
            wording[key] = SOUND if judgement.reads_well else "no"
    false = [(statements[key], answer) for key, answer in verdicts.items() if answer not in (SOUND, UNSURE)]
    comments = _comments(kb, found)
    return SoundnessResult(
        tuple(rule_soundness(rules, verdicts).values()),
        _over_rules(verdicts, rules, {}),
        _over_rules(verdicts, rules, sizes),
        by_distribution,
        _over_rules(wording, rules, {}),
        options.bar,
        tuple(sorted(set().union(*(found.texts[key].voters for key in verdicts)))),
        [(record, answer, comments.get(found.row(record.id), "")) for record, answer in _by_rule_and_text(false)],
    )


def _by_rule_and_text(false: list[tuple[StatementRecord, str]]) -> list[tuple[StatementRecord, str]]:
    return sorted(false, key=lambda entry: (entry[0].rule, entry[0].text))


def _comments(kb: KnowledgeBase, found: Judgements) -> dict[str, str]:
    """A comment on the truth of each statement, by row."""
    questions = (SOUNDNESS_QUESTION, ENTAILMENT_QUESTION)
    return {found.row(vote.statement_id): vote.comment for vote in kb.votes() if vote.question in questions}


def truth_lines(kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()) -> list[str]:
    """The number of these statements that people judged, and the share of true ones, in sentences.

    The card of a dataset, the page about a run and the report on votes all show these.
    """
    latest = chosen_statements(kb, rules, runs)
    if not any(latest.values()):
        return []
    judged = shared_judgements(Judgements.stored(kb), chain.from_iterable(latest.values()))
    return [JudgedCounts.of(judged).sentence(), *share_lines(kb, rules, runs)]


def share_lines(kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()) -> list[str]:
    """The share of true statements with its interval, in a sentence; none where votes decide nothing."""
    if not any(chosen_statements(kb, rules, runs).values()):
        return []
    result = measure(kb, SoundnessOptions(rules=tuple(rules), runs=tuple(runs)))
    if not result.overall.count:
        return []
    return [
        f"Of the {counted(result.overall.count, 'statement')} that votes decide {percent(result.overall)} % "
        f"are true, and {percent(result.weighted)} % weighted by the rules' sizes, with 95 % intervals over "
        f"rules ({Operation('evaluate_soundness')})."
    ]


def _over_rules(verdicts: Mapping[str, str], rules: Mapping[str, str], sizes: Mapping[str, int]) -> Estimate:
    """Share of true statements with whole rules resampled. `sizes`: weights of rules; without any all statements weigh
    the same.
    """
    by_rule: dict[str, list[bool]] = {}
    for key, answer in verdicts.items():
        if answer != UNSURE:
            by_rule.setdefault(rules[key], []).append(answer == SOUND)
    if not by_rule:
        return NOTHING
    groups = []
    for rule, hits in sorted(by_rule.items()):
        # Each judged statement stands for `weight` statements of its rule.
        weight = sizes[rule] / len(hits) if sizes else 1.0
        # Rows of (hit, weight), a group for each rule.
        groups.append(np.array([(float(hit), weight) for hit in hits]))
    estimate = of_groups(lambda rows: float(np.average(rows[:, 0], weights=rows[:, 1])), groups)
    if estimate.value in (0.0, 1.0):
        # Resamples of equal answers are all equal; Wilson's interval takes each rule for a single case.
        wilson = share([bool(estimate.value)] * len(groups))
        estimate = Estimate(estimate.value, wilson.low, wilson.high, len(groups))
    # The count is that of statements, although rules were resampled.
    return Estimate(estimate.value, estimate.low, estimate.high, sum(map(len, groups)))


TIES_SHOWN = 5
"""Number of ties that the notes name."""

RULE_NOT_STORED = "not stored"
"""Text of a rule that the knowledge base lacks, such as one whose statements were merged without it."""


@checked
@extras_named()
def report_votes(kb: KnowledgeBase, failures: int | None = None) -> Evaluation[None]:
    """Count people's votes: agreement and LINK's tables 3, 4, 6, 17, 19 and 20.

    `failures`: number of wrong statements shown in the text; JSON has all. The figures are shares of 1,
    LINK's printed ones below `link` in percent. Raises HapaxError if there are no votes.
    """
    votes, found = kb.votes(), Judgements.stored(kb)
    if not votes:
        raise HapaxError(
            f"{kb.place} holds no votes.",
            Remedy(
                "Export sheets with {}, have them filled in, and import them with {}.",
                Operation("export_sheets"),
                Operation("import_sheets"),
            ),
        )
    statements = kb.statements()
    count = count_votes(kb, statements, found)
    known = {statement.id for statement in statements}
    on_derived = judged_derived(kb, derivation_rules(kb), found, known)
    rules = {identity: record.rule for identity, (record, _) in on_derived.items()}
    truths = {identity: judgement.truth for identity, (_, judgement) in on_derived.items() if judgement.truth}
    derived = []
    for rule in rule_soundness(rules, truths).values():
        counts = {"right": rule.sound, "wrong": rule.judged - rule.sound, "undecided": rule.unsure}
        derived.append({"rule": rule.rule, **counts})
    strays = count.strays - sum(vote.statement_id in on_derived for vote in votes)
    count = replace(count, strays=strays, derived=tuple(judgement for _, judgement in on_derived.values()))
    effect = _effect(found, statements)
    failed = _FailedStatements(kb, count.failures)
    notes = [*_notes(count, effect), count.counts.sentence(), *share_lines(kb)]
    result = ExperimentResult(
        tables=[*_tables(count), *_derived_table(derived), *_voter_rates(kb)],
        figures={**_figures(count, effect, failed, notes), "derived": derived},
        details=list(failed.lines(failures)),
        notes=[*notes, *mended_lines(kb)],
    )
    return Evaluation(None, result)


def _derived_table(judged: Sequence[Mapping[str, object]]) -> Iterator[ResultTable]:
    if judged:
        rows = [tuple(map(str, rule.values())) for rule in judged]
        yield ResultTable("Derived statements, by majority", tuple(judged[0]), rows)


def _voter_rates(kb: KnowledgeBase) -> Iterator[ResultTable]:
    """The estimated rates of right votes of each person, where enough people judged the same facts."""
    weighed = weighed_votes(kb)
    if weighed is not None:
        title = "Right votes on facts in percent, estimated (Dawid and Skene 1979); labels are weighed by them"
        rows = [
            (voter, str(rates.votes), f"{rates.on_true:.1%}", f"{rates.on_false:.1%}")
            for voter, rates in sorted(weighed.voters.items())
        ]
        yield ResultTable(title, ("voter", "votes", "on true facts", "on false facts"), rows)


@dataclass(frozen=True, slots=True)
class _ProbingEffect:
    """Effect of the votes on a probing: flipped labels, statements left out, and statements that remain."""

    flipped: int
    wrong_type: int
    remaining: Mapping[Distribution, int]


def _effect(found: Judgements, statements: Sequence[StatementRecord]) -> _ProbingEffect:
    # A statement of both distributions is probed in each, but it has one label.
    # `kb.statements()` may hold one statement of several runs, which is probed once.
    probed = {(statement.id, statement.distribution) for statement in statements}
    remaining = dict.fromkeys(Distribution, 0)
    flipped = set()
    for identity, distribution in probed:
        judgement = found.of(identity)
        if judgement.typed is not False:
            remaining[distribution] += 1
            if judgement.is_true is False:
                flipped.add(identity)
    return _ProbingEffect(len(flipped), len(probed) - sum(remaining.values()), remaining)


# -- tables


def _tables(count: VoteCount) -> Iterator[ResultTable]:
    """Our tables, each followed by the paper's."""
    if count.in_tables:
        yield _table_3(list(count.by_method()))
        yield _printed("LINK's table 3 as printed: other statements", ("", *METHODS), TABLE_3)
        yield _table_17(list(count.by_domain()))
        yield _printed("LINK's table 17 as printed", ("domain", *MEASURES), TABLE_17)
        yield _table_19(count.agreements)
        title = "LINK's table 19 as printed; it does not name its measure"
        yield _printed(title, ("", *METHODS), TABLE_19)
    if count.audit is not None:
        yield from _table_6(count.audit)
    if count.baseline is not None:
        yield _table_4(count.baseline)
        yield _printed_table_4()


def _table_3(groups: Sequence[VotedAccuracy]) -> ResultTable:
    # The paper's table has a column for each method, so the rows are turned into columns.
    by_group = []
    for group in groups:
        shares = map(percent, (group.data_type, group.factuality, group.overall))
        by_group.append((group.group, *shares, str(group.statements)))
    # Transposed: each tuple becomes a column, the first one the labels of the rows.
    columns, *rows = zip(("accuracy", *MEASURES, "statements"), *by_group, strict=True)
    return ResultTable("Ours, in the layout of LINK's table 3: accuracy by majority", columns, rows)


def _table_17(domains: Sequence[VotedAccuracy]) -> ResultTable:
    rows = []
    for domain in domains:
        shares = (domain.data_type, domain.factuality, domain.overall)
        rows.append((domain.group, str(domain.statements), *map(percent, shares)))
    columns = ("domain", "statements", *MEASURES)
    return ResultTable("Ours, in the layout of LINK's table 17: accuracy by domain", columns, rows)


def _table_19(agreements: Mapping[str, AnnotatorAgreement]) -> ResultTable:
    rows = []
    for name, agreement in agreements.items():
        shares = map(percent, (agreement.percent, agreement.unanimous))
        # Coefficients run from -1 to 1, so they are not shown in percent.
        coefficients = [estimate.text(3, 3) for estimate in (agreement.fleiss, agreement.krippendorff)]
        rows.append((name, str(agreement.questions), *shares, *coefficients))
    columns = ("agreement on", "questions", "percent of pairs", "unanimous", "Fleiss", "Krippendorff")
    return ResultTable("Ours, in the layout of LINK's table 19: agreement", columns, rows)


def _table_6(audit: Audit) -> Iterator[ResultTable]:
    """Our table 6 and the printed one."""
    correct = [f"{DISTRIBUTION_NAMES[distribution]} correct" for distribution in audit.correct]
    columns = ("facts", "Q1", "Q2", "Q3", "Q4", "Q5", *correct)
    title = "Ours, in the layout of LINK's table 6: error rates, and statements all of whose facts are right"
    shares = (*audit.errors, *audit.correct.values())
    yield ResultTable(title, columns, [(str(audit.facts), *map(percent, shares))])
    printed = tuple(f"{figure:.2f}" for figure in (*TABLE_6, *AUDIT_CORRECT))
    yield ResultTable("LINK's table 6 and appendix C as printed", columns[1:], [printed])


def _table_4(baseline: HumanBaseline) -> ResultTable:
    rows = []
    for cell in baseline.majority.cells:
        single = baseline.single.cell(cell.domain, cell.distribution)
        shares = (cell.every, cell.accuracy, single.accuracy)
        name = DISTRIBUTION_NAMES[cell.distribution]
        rows.append((cell.domain, name, str(cell.statements), *map(percent, shares)))
        # The long tail is the last line of a domain, so delta follows it.
        if cell.distribution is Distribution.LONG_TAIL:
            change, single_change = baseline.majority.change(cell.domain), baseline.single.change(cell.domain)
            deltas = (change.every, change.accuracy, single_change.accuracy)
            rows.append((cell.domain, "delta", "", *map(percent, deltas)))
    templates = "template " + " and ".join(map(str, baseline.templates))
    columns = ("domain", "distribution", "statements", "all, by majority", "accuracy, by majority", "one person")
    return ResultTable(f"Ours: people, in the layout of LINK's table 4 ({templates})", columns, rows)


def _printed_table_4() -> ResultTable:
    # The paper's row of people in a table about models.
    human = {figures.domain: figures for figures in TABLE_4 if figures.who == "Human"}
    rows = []
    for domain in (*DOMAINS, TOTAL):
        head, long_tail = human[domain].head[2], human[domain].long_tail[2]
        rows.append((domain, f"{head:.2f}", f"{long_tail:.2f}", f"{human[domain].delta:.2f}"))
    return ResultTable("LINK's table 4 as printed: people", ("domain", "head", "long tail", "delta"), rows)


def _printed(title: str, columns: Sequence[str], table: Mapping[str, Sequence[float]]) -> ResultTable:
    rows = []
    for name, figures in table.items():
        rows.append((name, *(f"{figure:.2f}" for figure in figures)))
    return ResultTable(title, columns, rows)


# -- statements found wrong


class _FailedStatements:
    """Statements that a majority found wrong, with rule, values, votes and proof (table 20)."""

    def __init__(self, kb: KnowledgeBase, failures: Sequence[VotedStatement]) -> None:
        self._kb, self._failures = kb, failures
        # A rule in one line; line ends become blanks first, or `visible` would show them by their codes.
        self._rules = {rule.name: " ".join(visible(rule.text.replace("\n", " ")).split()) for rule in kb.select(RULES)}

    def lines(self, most: int | None) -> Iterator[str]:
        """The first `most` statements as indented lines."""
        failures = self._failures[:most]
        # Votes store the short form of a question only; people have read the long one.
        wordings = {(failure.record.id, SOUNDNESS_QUESTION): SOUNDNESS_TEXT for failure in failures}
        for item in ItemSource(self._kb, SheetKind.STATEMENTS).items([failure.record for failure in failures]):
            for item_question in item.questions:
                wordings[subject_id(item.id), item_question.key.casefold()] = item_question.text
        for failure in failures:
            record = failure.record
            name = DISTRIBUTION_NAMES[record.distribution]
            values = ", ".join(f"{variable} = {visible(str(value))}" for variable, value in record.substitution)
            yield f"{name}, rule {record.rule}, {failure.domain}, statement {record.id}"
            yield f"  rule: {self._rules.get(record.rule, RULE_NOT_STORED)}"
            yield f"  values: {values}"
            yield f"  premise: {visible(record.premise)}"
            yield f"  conclusion: {visible(record.conclusion)}"
            for question, ballot in failure.of_quality.items():
                yes, no = ballot.counts
                yield f"  {wordings.get((record.id, question), question)} {ballot.majority} ({yes} yes, {no} no)"
                for vote in ballot.votes:
                    if vote.comment:
                        yield f"    {visible(vote.voter)}: {visible(vote.comment)}"
            for line in _proof_lines(record):
                yield f"  proof: {line}"

    def figures(self) -> list[dict[str, Any]]:
        """All statements for JSON."""
        figures = []
        for failure in self._failures:
            record = failure.record
            votes = []
            for ballot in failure.of_quality.values():
                for vote in ballot.votes:
                    votes.append({name: getattr(vote, name) for name in ("question", "voter", "answer", "comment")})
            figures.append(
                {
                    "statement": record.id,
                    "rule": record.rule,
                    "rule_text": self._rules.get(record.rule, RULE_NOT_STORED),
                    "domain": failure.domain,
                    "distribution": record.distribution.value,
                    "values": {name: str(value) for name, value in record.substitution},
                    "premise": record.premise,
                    "conclusion": record.conclusion,
                    "votes": votes,
                    "proof": _proof_lines(record),
                }
            )
        return figures


def _proof_lines(record: StatementRecord) -> list[str]:
    """Lines of the proof; none for an imported statement without one."""
    if not record.proof.get("steps"):
        return []
    return proof_text(proof_from_json(record.proof), lambda goal: visible(str(goal))).splitlines()


# -- notes and figures


def _notes(count: VoteCount, effect: _ProbingEffect) -> Iterator[str]:
    """Notes on how to read the figures."""
    yield (
        f"{counted(count.votes, 'vote')} of {counted(count.voters, 'voter')}; "
        f"{counted(count.judged_total, 'statement')} judged, {count.wrong_total} found wrong, "
        f"{len(count.harmful)} marked as harmful"
    )
    numbers = [f"{number} {DISTRIBUTION_NAMES[distribution]}" for distribution, number in effect.remaining.items()]
    yield (
        f"for {Operation('evaluate_probe')}: {counted(effect.flipped, 'label is', 'labels are')} flipped, "
        f"{counted(effect.wrong_type, 'statement has', 'statements have')} a value of a wrong type and "
        f"{'is' if effect.wrong_type == 1 else 'are'} left out; {' and '.join(numbers)} statements remain"
    )
    ties = []
    for voted in count.distinct:
        ties += [f"{question} of {voted.record.id}" for question in voted.ties]
    if ties:
        more = "; ..." if len(ties) > TIES_SHOWN else ""
        yield f"{counted(len(ties), 'tie')}, counted for neither side: {'; '.join(ties[:TIES_SHOWN])}{more}"
    if count.audit is not None and count.audit.ties:
        yield f"{counted(count.audit.ties, 'tie')} in the audit of facts, counted for neither side"
    if count.imported:
        yield (
            f"{counted(count.imported, 'label was', 'labels were')} flipped by LINK's annotators. Only these of their "
            "votes are known, so they flip labels but are not in the tables."
        )
    if count.strays:
        yield (
            f"{counted(count.strays, 'vote is', 'votes are')} on statements or facts that this knowledge base does not "
            "hold"
        )
    if count.baseline is not None:
        yield from _baseline_notes(count.baseline)


def _baseline_notes(baseline: HumanBaseline) -> Iterator[str]:
    if baseline.ties:
        yield f"{counted(baseline.ties, 'tie')} in the human baseline, counted as wrong and as off format"
    if baseline.unlabelled:
        yield (
            f"{counted(baseline.unlabelled, 'statement')} of the human baseline without a label by people, taken as "
            "entailed because the rule says so"
        )
    if baseline.both_roles:
        yield (
            f"{', '.join(map(visible, baseline.both_roles))} labelled statements and also answered the baseline; in "
            "the paper these are different people (section 4)"
        )


def _figures(
    count: VoteCount, effect: _ProbingEffect, failed: _FailedStatements, notes: Sequence[str]
) -> dict[str, Any]:
    ties = [{"statement": voted.record.id, "questions": voted.ties} for voted in count.distinct if voted.ties]
    baseline = None
    if count.baseline is not None:
        baseline = {
            "templates": count.baseline.templates,
            "majority": _cell_figures(count.baseline.majority),
            "one_person": _cell_figures(count.baseline.single),
            "change": count.baseline.majority.changes,
            "ties": count.baseline.ties,
            "unlabelled": count.baseline.unlabelled,
            "both_roles": count.baseline.both_roles,
        }
    return {
        "votes": count.votes,
        "voters": count.voters,
        "statements": {
            "judged": count.judged_total,
            "found_wrong": count.wrong_total,
            **asdict(count.counts),
            "labels_turned": effect.flipped,
            "wrong_type_left_out": effect.wrong_type,
            "remaining": effect.remaining,
            "harmful": sorted(count.harmful),
        },
        "ties": ties,
        "table_3": list(count.by_method()),
        "table_17": list(count.by_domain()) if count.in_tables else [],
        "table_19": count.agreements if count.in_tables else {},
        "table_6": count.audit,
        "baseline": baseline,
        "failures": failed.figures(),
        "remarks": notes,
        "link": {
            "methods": METHODS,
            "table_3": TABLE_3,
            "table_6": TABLE_6,
            "audit_correct": AUDIT_CORRECT,
            "table_17": TABLE_17,
            "table_19": TABLE_19,
            "human": [figures for figures in TABLE_4 if figures.who == "Human"],
        },
    }


def _cell_figures(report: ProbeReport) -> list[dict[str, Any]]:
    cells = []
    for cell in report.cells:
        numbers = {"statements": cell.statements, "all": cell.every, "accuracy": cell.accuracy}
        cells.append({"domain": cell.domain, "distribution": cell.distribution, **numbers})
    return cells
