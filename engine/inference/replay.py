"""Replay stored proofs: each step is compared with the facts and the rules that the knowledge base keeps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain

from hapax.engine.inference.derive import fact_key
from hapax.engine.inference.proof import By, Proof, proof_from_json
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import SAME_AS, PredicateKind
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import BodyLiteral, Comparison, Constant, Expression, Literal, Variable
from hapax.grammar.values.functions import evaluated, holds
from hapax.grammar.writing.verbalize import StatementText
from hapax.kb.exchange.values import ValueRefused
from hapax.kb.files.backups import Damage
from hapax.kb.records import RULES, content_id, fact_id
from hapax.kb.rows import BINDINGS, TREE
from hapax.kb.store import KnowledgeBase

BATCH = 2_000
"""Statements that are in memory at a time: a proof takes 1 to 5 kB."""

ROUNDED = Fraction(1, 10**12)
"""Largest relative difference of a stored decimal from the fraction that it stands for."""

Bindings = Mapping[str, Constant | Variable]


class StepFault(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A step that does not follow from what the knowledge base keeps."""


@dataclass
class Replay:
    """The proofs of a knowledge base that were replayed.

    `library`: the rules that it keeps, None without any. `rewritten`: rules that no stored step fits, so they were
    rewritten after their statements were derived; only the facts and comparisons of these steps are checked.
    """

    kb: KnowledgeBase
    library: Library | None
    statements: int = 0
    rewritten: set[str] = field(default_factory=set)

    def damages(self) -> Iterator[Damage]:
        """Statements whose proof is unreadable or does not follow, each once with its first such step."""
        checker = StepChecker(self.kb, self.library)
        misfits: dict[tuple[str, str], list[Damage]] = {}
        for key, identity, rule, run, premise, conclusion, substitution, text in self._rows():
            self.statements += 1
            sentence = StatementText(str(premise), str(conclusion)).sentence
            try:
                misfit = checker.misfit(str(rule), str(run), substitution, text)
            except HapaxError as fault:
                yield Damage("statements", str(identity or key), str(fault), sentence)
                continue
            if misfit is not None:
                group, reason = misfit
                misfits.setdefault(group, []).append(Damage("statements", str(identity), reason, sentence))
        for group, found in misfits.items():
            # Where other steps of the run fit the rule, it was not rewritten: these are damages.
            if group in checker.fitting or checker.is_certain(group[1]):
                yield from found
            else:
                self.rewritten.add(group[1])

    def _rows(self) -> Iterator[Sequence[object]]:
        """The statements in batches."""
        columns = "key, id, rule, run_id, premise, conclusion, substitution, proof"
        select = f"SELECT {columns} FROM statements"  # noqa: S608  ours
        # By key instead of OFFSET, which would pass over all earlier rows each time.
        batch = self.kb.sql(f"{select} ORDER BY key LIMIT {BATCH}")
        while batch:
            yield from batch
            batch = self.kb.sql(f"{select} WHERE key > ? ORDER BY key LIMIT {BATCH}", (batch[-1][0],))


class StepChecker:
    """Compares steps with facts and rules. `fitting`: (run, rule) of steps that fit their rule."""

    def __init__(self, kb: KnowledgeBase, library: Library | None) -> None:
        self.kb = kb
        self.fitting: set[tuple[str, str]] = set()
        # Deleted facts are among the withdrawals: their statements have fallen, but are not damaged.
        known = kb.sql("SELECT id FROM facts UNION SELECT fact_id FROM withdrawals")
        self._facts = {identity for (identity,) in known}
        self._denials = {denial.id for denial in kb.denials()}
        self._rules: defaultdict[str, list[Rule]] = defaultdict(list)
        self._searches: Counter[str] = Counter()
        for record in kb.select(RULES):
            # Another version of the language may have written it.
            with suppress(HapaxError):
                self._rules[record.name].extend(parse_library([(f"rule {record.name}", record.text)]).rules)
        for run in kb.runs():
            if run.command == "search":
                self._searches.update(map(str, run.settings.get("rules", ())))
        self._kinds: dict[str, PredicateKind] = {}
        if library is not None:
            for rule in library.with_closure().rules:
                self._rules[rule.name].append(rule)
            self._kinds = {item.indicator: item.kind for item in library.completed().signatures}

    def is_certain(self, rule: str) -> bool:
        """True if only one search used the rule, so that its stored text is certainly that of its statements."""
        return self._searches[rule] == 1

    def misfit(self, rule: str, run: str, substitution: object, text: object) -> tuple[tuple[str, str], str] | None:
        """The (run, rule) of the first step that does not fit its rule, with the reason; None if all fit.

        Raises StepFault or HapaxError for a proof that is wrong by whatever rule.
        """
        try:
            root = proof_from_json(TREE.decode(text))
            values = {name: Constant(value) for name, value in BINDINGS.decode(substitution)}
        except (ValueError, TypeError, RecursionError, ValueRefused) as fault:
            raise StepFault(f"its proof cannot be read ({fault})") from None
        if root.by is not By.RULE or root.rule != rule:
            raise StepFault(f"its proof ends with {_named(root)}, not with a step of rule {rule}")
        # Goes on after the first misfit: further steps may show that other rules fit.
        found = None
        for part in root.parts():
            self._check_leaf(part)
            if part.by in (By.RULE, By.DECLARATION):
                reason = self._rule_fault(part, values if part is root else None)
                if reason is None:
                    self.fitting.add((run, str(part.rule)))
                elif found is None:
                    found = (run, str(part.rule)), reason
        return found

    def _check_leaf(self, part: Proof) -> None:
        """Raise StepFault for a fact, denial or comparison that is not so."""
        goal = part.goal
        if part.by not in (By.RULE, By.DECLARATION) and part.children:
            raise StepFault(f"{_named(part)} has premises, which only a step by a rule can have")
        if part.by in (By.FACT, By.GIVEN):
            self._check_fact(part)
        elif part.by is By.DENIAL:
            if not isinstance(goal, Literal) or not goal.negated:
                raise StepFault(f"{_named(part)} is not negated")
            name, arguments = fact_key(goal.atom)
            if content_id("denial", name, list(arguments)) not in self._denials:
                raise StepFault(f"no critic denied {goal.atom}")
        elif part.by is By.COMPUTED:
            self._check_computed(goal)

    def _check_computed(self, goal: BodyLiteral) -> None:
        if isinstance(goal, Comparison):
            if not goal.variables and not _is_true(goal):
                raise StepFault(f"{goal} does not hold")
        elif goal.atom.indicator == SAME_AS:
            if len(set(goal.atom.arguments)) > 1:
                raise StepFault(f"{goal} does not hold")
        elif self._kinds.get(goal.atom.indicator, PredicateKind.COMPUTED) is not PredicateKind.COMPUTED:
            raise StepFault(f"{goal} is not a computed predicate")

    def _check_fact(self, part: Proof) -> None:
        goal = part.goal
        if not isinstance(goal, Literal) or goal.negated or not goal.atom.is_ground or part.fact_id is None:
            raise StepFault(f"{_named(part)} names no fact")
        name, arguments = fact_key(goal.atom)
        if part.fact_id != fact_id(name, arguments):
            raise StepFault(f"{goal} names a fact of other content")
        # Facts of rule files are stored nowhere.
        if part.by is By.FACT and part.fact_id not in self._facts:
            raise StepFault(f"the fact {goal} is not in the knowledge base")

    def _rule_fault(self, part: Proof, values: Mapping[str, Constant] | None) -> str | None:
        """The reason why a step does not follow from the rule that it names; None if it does, or no rule is known.

        `values`: of a statement's own step, the statement's values.
        """
        rules = self._rules.get(str(part.rule))
        if not rules:
            return None
        reasons = [_misfit_of(rule, part, values) for rule in rules]
        return None if None in reasons else reasons[0]


def _misfit_of(rule: Rule, part: Proof, values: Mapping[str, Constant] | None) -> str | None:
    bindings: dict[str, Constant | Variable] = {}
    if values is not None:
        bindings.update(values)
        # Not what the statement speaks about: that is never bound.
        bindings.update({variable.name: variable for variable in rule.variables if variable.name in rule.generic})
    if not _matches(rule.conclusion, part.goal, bindings):
        return f"{part.goal} is not what rule {rule.name} concludes"
    if rule.aggregate is not None:
        # The rows of a group are any number of premises, and each row has its own values.
        for child in part.children:
            if not any(_matches(item, child.goal, dict(bindings)) for item in rule.aggregate.premise):
                return f"{child.goal} is not a premise of rule {rule.name}"
        return None
    if len(part.children) != len(rule.premise):
        return f"{len(part.children)} of the {len(rule.premise)} premises of rule {rule.name} are there"
    for item, child in zip(rule.premise, part.children, strict=True):
        if not _matches(item, child.goal, bindings):
            return f"{child.goal} is not the premise {item} of rule {rule.name}"
        is_hypothesis = values is not None and rule.is_information(item)
        if child.by not in _justifications(item, is_hypothesis=is_hypothesis):
            return f"{_named(child)} cannot justify the premise {item} of rule {rule.name}"
    return None


def _justifications(item: BodyLiteral, *, is_hypothesis: bool) -> tuple[By, ...]:
    if is_hypothesis:
        return (By.ASSUMPTION,)
    if isinstance(item, Comparison):
        return (By.COMPUTED,)
    if item.negated:
        return By.NEGATION, By.DENIAL
    return By.FACT, By.GIVEN, By.RULE, By.DECLARATION, By.COMPUTED


def _matches(item: BodyLiteral, goal: BodyLiteral, bindings: dict[str, Constant | Variable]) -> bool:
    """True if the goal is the item under the bindings, which are extended."""
    own, stored = _parts(item), _parts(goal)
    return len(own) == len(stored) and all(_same(*pair, bindings) for pair in zip(own, stored, strict=True))


def _parts(item: BodyLiteral | Expression) -> list[object]:
    """The signs, names and terms of an item of a premise, in order."""
    if isinstance(item, Literal):
        return [item.negated, item.atom.indicator, *item.atom.arguments]
    if isinstance(item, Variable | Constant):
        return [item]
    operands = item.sides if isinstance(item, Comparison) else item.operands
    return [item.operator, len(operands), *chain.from_iterable(map(_parts, operands))]


def _same(part: object, stored: object, bindings: dict[str, Constant | Variable]) -> bool:
    if not isinstance(part, Variable) or not isinstance(stored, Constant | Variable):
        return part == stored
    bound = bindings.setdefault(part.name, stored)
    if isinstance(bound, Variable) and isinstance(stored, Variable):
        return bound.name == stored.name  # its type may be written differently in the rule files
    return bound == stored


def _is_true(comparison: Comparison) -> bool:
    if holds(comparison, {}):
        return True
    left, right = evaluated(comparison.left, {}), evaluated(comparison.right, {})
    if not isinstance(left, Fraction) or not isinstance(right, Fraction):
        return False
    # A third is stored as a decimal of many digits.
    is_rounded = abs(left - right) <= ROUNDED * max(abs(left), abs(right))
    return is_rounded and comparison.operator in ("=", "=<", ">=")


def _named(part: Proof) -> str:
    return f'the step "{part.goal}" ({part.by.value})'
