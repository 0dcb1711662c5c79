"""Items of sheets from the statements of a knowledge base: drawn for an export or to judge next, and found by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Annotated, NamedTuple

from hapax.engine.answers.derivation import RUN_ID, current_rules, read_statements, statement_by_id
from hapax.engine.certificates import Promise
from hapax.engine.explain import models_of
from hapax.engine.gates.score_maps import ScoreMaps, chained_critics, fact_truths, proposed_atoms
from hapax.engine.inference.proof import By, proof_from_json
from hapax.engine.judgements import (
    DrawKind,
    Judgement,
    Judgements,
    cut_of,
    draw_weights,
    is_given_out,
    random_number,
)
from hapax.engine.kept_rules import kept_rules
from hapax.engine.search.promises import StatementScores, distinct_statements, fact_scores, statement_truths
from hapax.evaluation.link.probing_questions import TEMPLATES, items_of
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mended_share, percent
from hapax.evaluation.shared.stored_statements import (
    StatementChoice,
    draw_order_key,
    draw_sample,
    latest_statements,
    statement_rows,
    stored_library,
)
from hapax.evaluation.votes.voting_questions import (
    BASELINE,
    DECIDING,
    SheetForms,
    SheetKind,
    VotingItem,
    baseline_item,
    predicate_item,
    soundness_item,
    statement_item,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Literal, variable_names
from hapax.grammar.writing.verbalize import literal_text, stated_literals
from hapax.grammar.writing.words import counted
from hapax.kb.atoms.derived_ids import DerivedIds
from hapax.kb.files import system
from hapax.kb.judgement_records import DRAWN_ITEMS, JUDGING_DRAWS, DrawnItem, JudgingDraw
from hapax.kb.records import Distribution, StatementRecord, content_id, fact_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import CRITIC
from hapax.llm_oracle.questions.prompts import sentence

STATEMENT, FACT = "statement:", "fact:"
"""Prefixes of item ids, without which a spreadsheet may take an id for a number."""

ASKED_OF_MODELS = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
"""Kinds of predicates whose facts are audited: those that a critic accepts."""


@checked
@dataclass(frozen=True, slots=True)
class SheetExportOptions(StatementChoice):
    """The kind of sheets, which statements to draw, and who gets the sheets.

    `total`: number of statements over both distributions, None for all; `head`, `long_tail`: numbers of each in its
    place; `rules_drawn`: number of rules whose facts are asked about, as in appendix C, None for all; `derived`: of
    what `derive` concluded, which is in neither distribution. `per_sheet`: largest number of items on a sheet, or None
    for all on one.
    """

    kind: SheetKind = SheetKind.STATEMENTS
    voters: Annotated[tuple[str, ...], Option("Name of a voter; repeat for more.", name="voter")] = (
        "voter-1",
        "voter-2",
        "voter-3",
    )
    total: Annotated[
        int | None, Option("Statements to draw; 0: all.", name="sample", default="200", least=0, none="0")
    ] = None
    head: Annotated[int | None, Option("Head statements to draw; with --long-tail, instead of --sample.", least=0)] = (
        None
    )
    long_tail: Annotated[int | None, Option("Long-tail statements to draw; with --head.", least=0)] = None
    rules_drawn: Annotated[
        int | None, Option("Rules to draw for a sheet of predicates; 0: all.", name="draw-rules", least=0, none="0")
    ] = 3
    per_sheet: Annotated[int | None, Option("Largest number of items on a sheet; default: all on one.", least=1)] = None
    derived: Annotated[bool, Option("Draw from what `derive` concluded instead of from searches.")] = False
    unjudged: Annotated[bool, Option("Leave out items that were voted on before.", name="new")] = False
    seed: Annotated[int, Option("Seed of the draw and of the order of items.")] = 0
    forms: SheetForms = ("json", "csv")

    def __post_init__(self) -> None:
        if self.derived and self.runs:
            raise HapaxError("Derived statements belong to no run. Draw them by their number and rules.")
        if (self.head is None) != (self.long_tail is None) or (self.derived and self.head is not None):
            raise HapaxError(
                "Head and long tail are drawn together, and what was derived is in neither.",
                Remedy("Give both {} and {}, or neither.", Setting("options.head"), Setting("options.long_tail")),
            )


class ItemSource:
    """Makes the items of one kind of sheet from the statements of a knowledge base.

    `derived_by`: the rules of derived statements; None: those that the knowledge base keeps.
    """

    def __init__(self, kb: KnowledgeBase, kind: SheetKind, derived_by: Library | None = None) -> None:
        self._kb, self._kind, self._given_rules = kb, kind, derived_by

    def draw(self, options: SheetExportOptions) -> list[VotingItem]:
        """Draw items. The draw depends on the seed and on each statement alone: a larger sample holds the smaller."""
        if not options.derived:
            statements = self._drawn(options)
        elif self._kind in (SheetKind.STATEMENTS, SheetKind.SOUNDNESS):
            statements = draw_derived(self._kb, self._derived_by, options.seed, options.total, options.rules)
        else:
            raise HapaxError("Derived statements go on sheets of statements or soundness. Name one of these kinds.")
        items = self.items(statements)
        if options.unjudged:
            # A vote in another role, such as a label of a statement, does not answer a baseline.
            prefix = DECIDING.get(self._kind, BASELINE)
            judged = {vote.statement_id for vote in self._kb.votes() if vote.question.startswith(prefix)}
            # After the draw: with and without --new, the same statements are drawn.
            items = [item for item in items if subject_id(item.id) not in judged]
        return items

    def _drawn(self, options: SheetExportOptions) -> list[StatementRecord]:
        """The drawn statements of searches and imports; nobody is asked twice about one text.

        A draw for soundness is even: of each rule and distribution one statement, then of each a second, and so on.
        """
        latest = latest_statements(self._kb, options)
        rows = latest if self._kind is SheetKind.PREDICATES else statement_rows(latest)
        population: dict[str, StatementRecord] = {}
        for of_distribution in rows.values():
            population |= of_distribution
        if self._kind is SheetKind.PREDICATES and not options.rules:
            # Drawn like statements, so that more rules contain the fewer.
            names = {record.rule for record in population.values()}
            drawn = sorted(names, key=lambda name: draw_order_key(options.seed, name))[: options.rules_drawn]
            population = {key: record for key, record in population.items() if record.rule in drawn}
        if self._kind is SheetKind.BASELINE:
            # People are measured by the labels of others, so only labelled statements are of use, if there are any.
            found = Judgements.stored(self._kb)
            population = {key: row for key, row in population.items() if found.of(row.id).typed is not False}
            labelled = {key: row for key, row in population.items() if found.of(row.id).truth}
            population = labelled or population
        taken: Counter[tuple[str, Distribution]] = Counter()
        order = []
        for _, record in draw_sample(population, None, options.seed):
            group = record.rule, record.distribution
            order.append((taken[group] if self._kind is SheetKind.SOUNDNESS else 0, record))
            taken[group] += 1
        # The sort is stable: within a turn statements stay in the order in which they were drawn.
        order.sort(key=lambda entry: entry[0])
        records = [record for _, record in order]
        if options.head is None or options.long_tail is None:
            return records[: options.total]
        head, long_tail = ([record for record in records if record.distribution is end] for end in Distribution)
        return [*head[: options.head], *long_tail[: options.long_tail]]

    def by_id(self, identities: Collection[str]) -> dict[str, VotingItem]:
        """Items by id; ids that the knowledge base does not know are left out."""
        # Every statement once, as the last run stored it.
        statements = list({statement.id: statement for statement in self._kb.statements()}.values())
        if self._kind is not SheetKind.PREDICATES:
            # Chosen first, as a knowledge base has many more statements than a sheet has items.
            statements = [statement for statement in statements if STATEMENT + statement.id in identities]
            searched = {STATEMENT + statement.id for statement in statements}
            others = [subject_id(identity) for identity in identities if identity not in searched]
            statements += derived_records(self._kb, self._derived_by, others)
        found = {item.id: item for item in self.items(statements) if item.id in identities}
        # Models propose facts on which no statement rests.
        missing = [name for name in identities if name not in found and name.startswith(FACT)]
        if self._kind is SheetKind.PREDICATES and missing:
            atoms = proposed_atoms(self._kb, self._library)
            for name in missing:
                if (atom := atoms.get(subject_id(name))) is not None:
                    types = self._library.signature(atom.indicator).argument_types
                    found[name] = predicate_item(
                        name, atom.claim, list(zip(map(str, atom.arguments), types, strict=True))
                    )
        return found

    def items(self, statements: Sequence[StatementRecord]) -> list[VotingItem]:
        """Items about these statements; on a sheet of predicates, each fact once."""
        if self._kind is SheetKind.PREDICATES:
            facts: dict[str, VotingItem] = {}
            for statement in statements:
                facts |= self.facts(statement)
            return list(facts.values())
        if self._kind is SheetKind.BASELINE:
            asked = TEMPLATES[4]  # by premise and conclusion
            probes = items_of(self._kb, statements)[0]
            return [baseline_item(STATEMENT + probe.statement_id, asked.question(probe)) for probe in probes]
        make = self._soundness_item if self._kind is SheetKind.SOUNDNESS else self._statement_item
        return [make(statement) for statement in statements]

    def _soundness_item(self, statement: StatementRecord) -> VotingItem:
        """The item with the facts of the statement's proof in words and their ids; a failed search has none."""
        texts: dict[str, str] = {}
        for part in proof_from_json(statement.proof).parts():
            if part.by in (By.FACT, By.GIVEN, By.NEGATION) and isinstance(part.goal, Literal):
                is_stored = part.by is not By.NEGATION
                text = literal_text(part.goal, self._library_of(statement))
                texts[text] = fact_id(part.goal.atom.predicate, part.goal.atom.values) if is_stored else ""
        return soundness_item(STATEMENT + statement.id, statement.premise, statement.conclusion, texts)

    def _statement_item(self, statement: StatementRecord) -> VotingItem:
        """The item with the searched variables that the statement names, in the order of the rule.

        The paper asks about each variable of the rule (3.3), but shows those that the statement names (table 20).
        """
        rule = self._rule(statement)
        names = variable_names([rule.conclusion])
        for literal in stated_literals(rule, self._library_of(statement)):
            names.update(variable.name for variable in literal.variables)
        values, typed = dict(statement.substitution), []
        for variable in rule.searched:
            if variable.name in names and variable.name in values:
                typed.append((variable.name, str(values[variable.name]), variable.data_type))
        return statement_item(STATEMENT + statement.id, statement.premise, statement.conclusion, tuple(typed))

    def facts(self, statement: StatementRecord) -> dict[str, VotingItem]:
        """By id, the facts behind a statement that are about two values and that a critic accepted (appendix C)."""
        rule, library = self._rule(statement), self._library
        values = {name: value for name, value in statement.substitution if name not in rule.generic}
        bound = {name: Constant(value) for name, value in statement.substitution}
        items = {}
        for literal in rule.literals:
            # Table 6 asks about exactly two arguments, both of them values.
            found = [values[variable.name] for variable in literal.variables if variable.name in values]
            if literal.negated or not len(found) == len(literal.variables) == len(literal.atom.arguments) == 2:
                continue
            signature = library.signature(literal.atom.indicator)
            if signature.kind in ASKED_OF_MODELS:
                typed = list(zip(map(str, found), signature.argument_types, strict=True))
                identity = fact_id(literal.atom.predicate, tuple(found))
                claim = sentence(literal_text(literal, library, bound))
                items[identity] = predicate_item(FACT + identity, claim, typed)
        return items

    @cached_property
    def _derived_by(self) -> Library:
        return derivation_rules(self._kb) if self._given_rules is None else self._given_rules

    @cached_property
    def _library(self) -> Library:
        return stored_library(self._kb)

    def _library_of(self, statement: StatementRecord) -> Library:
        """The predicates of a statement's rule."""
        return self._derived_by if statement.run_id == RUN_ID else self._library

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {rule.name: rule for rule in self._library.rules}

    def _rule(self, statement: StatementRecord) -> Rule:
        if statement.run_id == RUN_ID:
            return self._derived_by.rule(statement.rule)
        if statement.rule not in self._rules:
            raise HapaxError(
                f"{self._kb.place} holds statements of the rule {statement.rule}, but not the rule itself. Search or "
                "import it again."
            )
        return self._rules[statement.rule]


def subject_id(item_id: str) -> str:
    """Id of the statement, fact or schema that an item is about."""
    return item_id.partition(":")[2]


_BATCH = 10_000
"""Statements whose facts are scored at once."""


def derivation_rules(kb: KnowledgeBase) -> Library:
    """The rules of derived statements, which the knowledge base keeps; none where nothing is derived."""
    kept = kept_rules(kb) if any(kb.derived_counts().values()) else None
    return kept or Library()


def derived_records(kb: KnowledgeBase, library: Library, identities: Iterable[str]) -> list[StatementRecord]:
    """The derived statements with these ids, with their proofs; those that are gone or out of date are left out."""
    found = []
    if not any(kb.derived_counts().values()):
        return []
    for identity in identities:
        try:
            record = statement_by_id(kb, library, identity)
        except HapaxError:  # facts have changed since
            record = None
        if record is not None:
            found.append(record)
    return found


def draw_derived(
    kb: KnowledgeBase, library: Library, seed: int, size: int | None, rules: tuple[str, ...]
) -> list[StatementRecord]:
    """At most `size` derived statements, all if it is None, each text once; `rules`: only of these, if any are given.

    The draw depends on the seed and on each statement alone. Raises HapaxError where there are none.
    """
    ids = DerivedIds(kb)
    if not ids.prepare():
        raise HapaxError(
            f"{kb.place}: its derived statements cannot be indexed now.",
            Remedy(
                "Run {} on a file that may be written, and try again when no other command writes to it.",
                Operation("derive"),
            ),
        )
    chosen: dict[str, StatementRecord] = {}
    for identity in sorted(ids.all(rules), key=lambda identity: draw_order_key(seed, identity)):
        if size is not None and len(chosen) == size:
            break
        for record in derived_records(kb, library, [identity]):
            chosen.setdefault(record.text, record)
    if not chosen:
        raise _none_current(kb)
    return list(chosen.values())


def derived_scores(scores: StatementScores) -> dict[str, float]:
    """By id of a derived statement that is up to date, each text once, the product of what its facts are worth.

    Raises HapaxError where there are none.
    """
    kb, library = scores.kb, scores.library
    first: dict[str, tuple[str, float]] = {}
    for rule in current_rules(kb, library):
        records = read_statements(kb, library, rule)
        while batch := list(islice(records, _BATCH)):
            found = scores.scores(batch)
            for record in batch:
                own = (record.id, found[record.id])
                # The smallest id, so that the order of the rules decides nothing.
                first[record.text] = min(first.get(record.text, own), own)
    if not first:
        raise _none_current(kb)
    return dict(first.values())


def _none_current(kb: KnowledgeBase) -> HapaxError:
    return HapaxError(
        f"{kb.place} holds no derived statement that is up to date.", Remedy("Run {} first.", Operation("derive"))
    )


def judged_derived(
    kb: KnowledgeBase, library: Library, found: Judgements, known: Container[str] = ()
) -> dict[str, tuple[StatementRecord, Judgement]]:
    """The derived statements that are judged and up to date, by id; `known`: ids that are counted elsewhere."""
    judged = [identity for identity in found.texts if identity not in known]
    return {record.id: (record, found.texts[record.id]) for record in derived_records(kb, library, judged)}


# --- the items to judge next ------------------------------------------------------------------------------------------

DRAWN: Mapping[DrawKind, str] = {"predicates": "facts", "soundness": "statements", "derived": "derived statements"}
"""Names of what is judged, by the kind of its draw."""

ENOUGH = 1e12
"""Reach of a draw that has given out all its items."""


@checked
@dataclass(frozen=True, slots=True)
class NextOptions:
    """Options of a draw. `promise`: the one that the labels are meant for. `anew`: begin another draw."""

    kind: DrawKind
    count: int = 50
    promise: Promise = field(default_factory=Promise)
    anew: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise HapaxError(f"count is {self.count}. Ask for 1 item or more.")

    @classmethod
    def of(cls, kind: str, count: int, precision: float, anew: bool, derived: bool = False) -> NextOptions:
        """The options of a draw of `facts` or `statements` by those of the command line."""
        if derived and kind == "facts":
            raise HapaxError(
                "`derive` concludes statements.",
                Remedy("Draw statements, or omit {}.", Setting("options.derived")),
            )
        statements: DrawKind = "derived" if derived else "soundness"
        return cls("predicates" if kind == "facts" else statements, count, Promise(precision), anew)


class JudgingPool(NamedTuple):
    """The facts or statements that can be judged. `truths`: of those that were judged or labelled already."""

    critic: str
    probabilities: Mapping[str, float]
    truths: Mapping[str, bool]


class NextItems(NamedTuple):
    """Ids to judge next, with the number of them above the cut, and the share of true items of the whole pool.

    `share`: by the labels that the draw has brought, mended for its weights; `judged`: their number.
    """

    ids: tuple[str, ...]
    above: int
    cut: float
    pool: int
    judged: int
    share: Estimate


def next_items(kb: KnowledgeBase, options: NextOptions) -> NextItems:
    """Give out the next items of the draw of a kind, which begins with the first call, and store their chances."""
    pool = judging_pool(kb, options.kind)
    probabilities = list(pool.probabilities.values())
    draw = None if options.anew else kb.first(JUDGING_DRAWS, kind=options.kind)
    # Another critic's probabilities give other weights, so its items need a draw of their own.
    if draw is None or draw.settings.get("critic") != pool.critic:
        created = system.now().isoformat(timespec="microseconds")
        cut = cut_of(probabilities, options.promise.risk)
        settings = {"critic": pool.critic, "cut": cut, "low": draw_weights(probabilities, cut)[1]}
        salt = content_id("judging", options.kind, created)
        draw = JudgingDraw(options.kind, salt, settings, 0.0, created)
    known = {item.item_id: item for item in kb.matching(DRAWN_ITEMS, salt=draw.salt)}
    cut = float(draw.settings["cut"])
    weights, _ = draw_weights(probabilities, cut, float(draw.settings["low"]))
    new = []
    for (identity, probability), weight in zip(pool.probabilities.items(), weights, strict=True):
        if identity not in known:
            # It depends on the draw's salt alone, so new items join an old draw without changing it.
            number = random_number(draw.salt, identity)
            new.append(DrawnItem(draw.salt, identity, probability, weight, number))
    items = [*known.values(), *new]
    # Priority sampling (Duffield, Lund, Thorup 2007): the smallest quotients of random number and weight come first.
    order = sorted(items, key=lambda item: item.draw / item.weight)
    waiting = [item for item in order if item.item_id in pool.probabilities and item.item_id not in pool.truths]
    chosen, later = waiting[: options.count], waiting[options.count :]
    # The first item that is not given out bounds the draw, so that each item's chance depends on the others alone.
    reach = later[0].draw / later[0].weight if later else ENOUGH
    # The reach never shrinks: what was given out stays given out, also after its labels are in.
    draw = replace(draw, reach=max(draw.reach, reach))
    kb.set_judging_draw(draw, new)
    share, judged = _share(kb, draw, items, pool.truths)
    above = sum(item.score >= cut for item in chosen)
    return NextItems(tuple(item.item_id for item in chosen), above, cut, len(items), judged, share)


def mended_lines(kb: KnowledgeBase) -> list[str]:
    """The shares of true facts and statements by the draws of `votes next`, mended for their weights, in words."""
    lines = []
    for kind, name in DRAWN.items():
        draw = kb.first(JUDGING_DRAWS, kind=kind)
        if draw is not None:
            share, judged = _share(kb, draw, kb.matching(DRAWN_ITEMS, salt=draw.salt), _truths(kb, kind))
            if judged:
                lines.append(
                    f"Of all {name} of the draw by `hapax votes next`, {percent(share)} % are true, with a 95 % "
                    f"interval: mended for its chances, by {counted(judged, 'label')}."
                )
    return lines


def judging_pool(kb: KnowledgeBase, kind: DrawKind) -> JudgingPool:
    """The facts that the last search's critic judged, or the statements that stand, with their probabilities.

    Raises HapaxError where there are none.
    """
    chains = [models_of(run).get(CRITIC) for run in kb.runs() if run.command == "search"]
    last = next(filter(None, reversed(chains)), None)
    # NAME@REVISION of the critics of the last search; none without a search.
    critics = chained_critics(str(last)) if last else []
    maps, truths = ScoreMaps.stored(kb), _truths(kb, kind)
    critic = ",".join(critics)
    if kind == "derived":
        # Without a search nothing tells one fact from another, and the draw is even.
        scores = StatementScores(kb, derivation_rules(kb), critics, maps)
        return JudgingPool(critic, derived_scores(scores), truths)
    if not critics:
        raise HapaxError(
            f"{kb.place}: no search has stored anything to judge.",
            Remedy(
                "Run {} first, or draw from what {} concluded: `hapax votes next 50 statements --derived`.",
                Operation("search"),
                Operation("derive"),
            ),
        )
    library = stored_library(kb)
    if kind == "predicates":
        critic = critics[-1]
        found = fact_scores(kb, proposed_atoms(kb, library), critic, maps)
    else:
        distinct = distinct_statements(kb, {rule.name for rule in library.rules})
        found = StatementScores(kb, library, critics, maps).scores(distinct.values())
    if not found:
        raise HapaxError(f"{kb.place}: its last critic has scored nothing to judge. Search with another.")
    return JudgingPool(critic, found, truths)


def _truths(kb: KnowledgeBase, kind: DrawKind) -> dict[str, bool]:
    """Truth by id of the facts or statements that were judged."""
    if kind == "predicates":
        return fact_truths(kb)
    return statement_truths(kb, distinct_statements(kb, {rule.name for rule in stored_library(kb).rules}))


def _share(
    kb: KnowledgeBase, draw: JudgingDraw, items: Sequence[DrawnItem], truths: Mapping[str, bool]
) -> tuple[Estimate, int]:
    """The share of true items of a draw's pool, mended for its weights, and the number of its labels."""
    # Facts that stored labels decide, which are not votes.
    labelled = {label.fact_id for label in kb.labels()} if draw.kind == "predicates" else set()
    given = [item for item in items if is_given_out(draw, item)]
    # People have not answered all that was given out yet; the answered part is taken for a random one. Labels of other
    # sources, which may well be of the true values only, are all there before and are no part of what is answered.
    asked = [item for item in given if item.item_id not in labelled]
    answered = sum(item.item_id in truths for item in asked)
    if asked and not answered:
        return NOTHING, 0
    rows = []
    for item in given:
        if item.item_id in truths:
            part = 1.0 if item.item_id in labelled else answered / len(asked)
            rows.append((item.score, truths[item.item_id], min(1.0, draw.reach * item.weight) * part))
    return mended_share([item.score for item in items], rows), len(rows)
