"""Mining: measure the rules of every conclusion and shape, the short ones first, and keep those that say something."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from hapax.engine.expansion.expand import write_proposals
from hapax.engine.expansion.propose import Proposal, statement_of
from hapax.engine.explain import with_stored_predicates
from hapax.engine.inference.theory import Theory
from hapax.engine.kept_rules import sound_rules
from hapax.engine.mining.fact_tables import (
    NOTHING,
    MinedAtom,
    MiningOptions,
    MiningTables,
    RuleCandidate,
    shapes,
)
from hapax.engine.mining.rule_measures import (
    Conclusion,
    Instance,
    RuleMeasures,
    RuleMeasuring,
    Screening,
)
from hapax.grammar.arguments import checked
from hapax.grammar.checking.subsumption import Matcher
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import grouped
from hapax.grammar.writing.printing import signature_text
from hapax.grammar.writing.verbalize import atom_text
from hapax.grammar.writing.words import counted, some
from hapax.kb.files import system
from hapax.kb.store import KnowledgeBase

_SECONDS_OF_A_RULE = 30.0
"""The time in which a rule is measured; one that needs more is named as not measured."""

_SECONDS_TO_COMPARE = 60.0
"""The time in which the measured rules are compared with each other."""


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A mined rule with its measures. Examples and counter-examples are sentences, by the templates there are."""

    rule: Rule
    measures: RuleMeasures
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()
    signatures: tuple[PredicateSignature, ...] = ()
    """Declarations of its predicates that the library has not."""


@dataclass(frozen=True, slots=True)
class MinedRules:
    """The mined rules, the most confident first. `notes`: what was left out, sampled or not explored.

    `added`: proposals that were added to the output.
    """

    rules: tuple[MinedRule, ...]
    notes: tuple[str, ...]
    added: tuple[Proposal, ...] = ()

    @property
    def text(self) -> str:
        """All mined rules as rule text, with their figures as comments."""
        # Several rules may declare one predicate.
        declared: dict[str, None] = {}
        for mined in self.rules:
            declared.update(dict.fromkeys(map(signature_text, mined.signatures)))
        blocks = ["\n".join(declared)]
        blocks += [f"# {summary(mined)}\n{mined.rule}" for mined in self.rules]
        return "\n\n".join(filter(None, blocks)) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Rules with their figures and examples, and the notes."""
        return {"rules": [figures(mined) for mined in self.rules], "notes": list(self.notes)}


_T = TypeVar("_T")


class _TimeUpError(Exception):
    """The time for a SELECT, or for all, is over."""


@dataclass
class _Clock:
    """The time limits of all and of the rule that is being measured."""

    seconds: float
    began: float = field(default_factory=system.monotonic)
    rule_began: float = math.inf

    def check(self) -> None:
        """Raise _TimeUpError if the time is up."""
        now = system.monotonic()
        if now - self.began > self.seconds or now - self.rule_began > _SECONDS_OF_A_RULE:
            raise _TimeUpError

    def limited(self, measure: Callable[[], _T], late: _T, *, anew: bool = False) -> _T:
        """The result for a rule, or `late` if it takes too long; `anew`: even if the time of all is over."""
        self.rule_began = system.monotonic()
        if anew:
            self.began = self.rule_began
        try:
            return measure()
        except _TimeUpError:
            return late
        finally:
            self.rule_began = math.inf


def mine(
    kb: KnowledgeBase, library: Library, options: MiningOptions, progress: Callable[[str], None] = lambda _: None
) -> MinedRules:
    """Mine closed rules from the facts of a knowledge base. `library`: gives types, and rules that need no mining."""
    clock = _Clock(options.seconds)
    progress("reading facts")
    try:
        tables = MiningTables(kb, library, options, clock.check)
    except _TimeUpError:
        spent = f"The time limit of {counted(options.seconds, 'second')} was over before all facts were read"
        raise HapaxError(f"{spent}. Allow more seconds.") from None
    worded = with_stored_predicates(Theory(library, kb), thorough=True).library
    with closing(tables):
        return _Miner(tables, options, clock, progress).mined(worded)


class _Miner:
    def __init__(
        self, tables: MiningTables, options: MiningOptions, clock: _Clock, progress: Callable[[str], None]
    ) -> None:
        self._tables, self._options, self._clock, self._progress = tables, options, clock, progress
        self._measuring = RuleMeasuring(tables, options)
        self._unmeasured: list[RuleCandidate] = []
        self._unexplored: list[tuple[str, str]] = []
        """Shapes with the conclusions for which they were not looked at."""
        self._sampled: dict[str, tuple[int, int]] = {}
        self._hubs: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        """Rules by the reason why they are left out or not compared."""
        self._matcher = Matcher(tables.library)
        self._stated = tuple(rule for rule in tables.library.with_closure().rules if rule.aggregate is None)
        self._perfect: dict[tuple[int, int], list[Rule]] = {}

    def mined(self, worded: Library) -> MinedRules:
        """The rules that are left of those with enough support and confidence. `worded`: has the templates."""
        measured: dict[RuleCandidate, RuleMeasures] = {}
        conclusions = list(self._conclusions())
        # The short rules first: one that never fails makes its longer special cases superfluous.
        for premises in range(1, self._options.premises + 1):
            for number, conclusion in enumerate(conclusions, 1):
                text = f"{conclusion}, {counted(premises, 'premise')}"
                self._progress(f"{text}: conclusion {number} of {len(conclusions)}, {counted(len(measured), 'rule')}")
                measured |= self._of_conclusion(conclusion, premises)
        kept = self._informative(measured)
        rules = []
        for number, (candidate, rule) in enumerate(kept, 1):
            self._progress(f"examples of rule {number} of {len(kept)}")
            shown = partial(self._measuring.examples, candidate.rule)
            examples, against = self._clock.limited(shown, _NO_EXAMPLES, anew=True)
            signatures = (self._signature(atom.indicator) for atom in rule.atoms)
            rules.append(
                MinedRule(
                    replace(rule, name=f"{rule.name}_{number}"),
                    measured[candidate],
                    tuple(_sentence(rule, instance, worded) for instance in examples),
                    tuple(_sentence(rule, instance, worded) for instance in against),
                    tuple(dict.fromkeys(filter(None, signatures))),
                )
            )
        return MinedRules(tuple(rules), tuple(self._notes()))

    def _conclusions(self) -> Iterator[Conclusion]:
        """Predicates to conclude. One of two arguments is predicted from the argument with more values."""
        for code, predicate in sorted(self._tables.predicates.items()):
            if len(predicate.types) > 1:
                is_functional = self._tables.library.kind(predicate.indicator) is PredicateKind.FUNCTIONAL
                # The argument with more values comes closer to determining the other one.
                is_first = predicate.symmetric or is_functional or predicate.subjects >= predicate.objects
                yield Conclusion(predicate, code if is_first else code + 1, False)
            if len(predicate.types) == 1 or self._options.constants:
                yield from (Conclusion(predicate, way, True) for way in predicate.codes)

    def _of_conclusion(self, conclusion: Conclusion, premises: int) -> dict[RuleCandidate, RuleMeasures]:
        """The measured rules with this conclusion and number of premises."""
        found: dict[RuleCandidate, RuleMeasures] = {}
        head, text = (1 if conclusion.is_label else 2), str(conclusion)
        wanted = [s for s in shapes(premises) if s.head == head and (self._tables.labels or not s.has_labels)]
        if conclusion.predicate.facts < self._options.min_support:
            return found
        try:
            screening = Screening(self._tables, conclusion, self._options)
            while wanted:
                candidates = screening.screened(wanted[0])
                del wanted[0]
                # A note names the smallest sample of the conclusion's shapes: the rules most likely to be missed.
                if screening.sampled < screening.facts:
                    sample = screening.sampled, screening.facts
                    self._sampled[text] = min(sample, self._sampled.get(text, sample))
                self._hubs[text] = max(self._hubs[text], screening.hubs)
                for candidate in candidates:
                    if (measures := self._measures(candidate)) is not None:
                        found[candidate] = measures
        except _TimeUpError:
            self._unexplored += ((str(shape), text) for shape in wanted)
        return found

    def _measures(self, candidate: RuleCandidate) -> RuleMeasures | None:
        """The measures of a rule with enough support and confidence; None for another one.

        A rule that never fails makes its special cases superfluous, so these are not measured (AMIE+, "perfect rules").
        """
        if any(self._matcher.subsumes(general, candidate.rule) for general in _wider(self._perfect, candidate)):
            self._left_out[_FOLLOWS] += 1
            return None
        late: RuleMeasures | None = _LATE
        measures = self._clock.limited(partial(self._measuring.measured, candidate.rule), late)
        if measures is _LATE:
            self._unmeasured.append(candidate)
            return None
        if measures is not None and measures.pca_confidence == 1.0:
            self._perfect.setdefault(candidate.concluded, []).append(candidate.rule)
        return measures

    def _informative(self, measured: dict[RuleCandidate, RuleMeasures]) -> list[tuple[RuleCandidate, Rule]]:
        """The rules without those that follow from a more general one with no less confidence, that predict the
        same as a shorter one, or that the library states.
        """
        general: dict[tuple[int, int], list[tuple[Rule, float]]] = {}
        alike: defaultdict[tuple[MinedAtom, RuleMeasures], list[RuleCandidate]] = defaultdict(list)
        kept: list[tuple[RuleCandidate, Rule]] = []
        began = system.monotonic()
        # The general ones first: fewer premises, then fewer constants.
        for candidate in sorted(measured, key=lambda item: (len(item.atoms), item.constants, item.atoms)):
            rule, measures = self._tables.worded(candidate.rule), measured[candidate]
            if system.monotonic() - began > _SECONDS_TO_COMPARE:
                self._left_out[_UNCOMPARED] += 1
                kept.append((candidate, rule))
                continue
            if any(self._matcher.subsumes(stated, rule) for stated in self._stated):
                self._left_out[_STATED] += 1
                continue
            is_special = any(
                confidence >= measures.pca_confidence and self._matcher.subsumes(wide, rule)
                for wide, confidence in _wider(general, candidate)
            )
            # Rules that are left out have special cases, too.
            general.setdefault(candidate.concluded, []).append((rule, measures.pca_confidence))
            same = alike[candidate.atoms[0], measures]
            if is_special or any(self._predicts_the_same(candidate, rival) for rival in same):
                self._left_out[_FOLLOWS] += 1
                continue
            same.append(candidate)
            kept.append((candidate, rule))
        return sorted(
            kept, key=lambda pair: (-measured[pair[0]].pca_confidence, -measured[pair[0]].support, str(pair[1]))
        )

    def _predicts_the_same(self, candidate: RuleCandidate, rival: RuleCandidate) -> bool:
        """True if a rule with the same measures predicts the same."""
        compare = partial(self._measuring.predicts_more, candidate.rule, rival.rule)
        return not self._clock.limited(compare, True, anew=True)

    def _signature(self, indicator: str) -> PredicateSignature | None:
        """The declaration of a predicate that the library does not know, if all its types are known."""
        places = self._tables.types[indicator]
        types = tuple(data_type for data_type in places if data_type is not None)
        if self._tables.library.knows(indicator) or len(types) < len(places):
            return None
        return PredicateSignature(indicator.rpartition("/")[0], types, PredicateKind.GIVEN)

    def _notes(self) -> Iterator[str]:
        for reason in (_FOLLOWS, _STATED):
            if self._left_out[reason]:
                yield f"{counted(self._left_out[reason], 'rule')} {reason}"
        hubs = [f"{text} ({count})" for text, count in self._hubs.items() if count]
        if self._tables.wider:
            yield f"not mined, more than two arguments: {some(self._tables.wider, between='; ')}"
        if self._tables.clashes:
            clashes = some(self._tables.clashes, between="; ")
            yield f"types of rule files that replace different ones of facts: {clashes}"
        for text, (sampled, facts) in self._sampled.items():
            yield f"screened by {sampled} of {facts} facts: {text}"
        if hubs:
            crowded = some(hubs, between="; ")
            yield f"sampled facts left out of the screening because they have too many neighbours: {crowded}"
        if self._left_out[_UNCOMPARED]:
            yield f"{counted(self._left_out[_UNCOMPARED], 'rule')} {_UNCOMPARED}"
        limit = counted(self._options.seconds, "second")
        for shape, pairs in grouped(self._unexplored, itemgetter(0)).items():
            conclusions = some((conclusion for _, conclusion in pairs), between="; ")
            yield f"not explored within {limit}: {shape} for h {conclusions}"
        if self._unmeasured:
            texts = [self._tables.worded(candidate.rule).sentence for candidate in self._unmeasured]
            yield f"not measured in time: {counted(len(texts), 'rule')}: {some(texts, between='; ')}"


_FOLLOWS = "left out: a more general or shorter rule says the same"
_STATED = "left out: the library states as much"
_UNCOMPARED = "not compared with the others: there are too many"

_LATE = RuleMeasures(0, 0, 0, 0, 0)
"""The measures of a rule that is not measured in time."""

_NO_EXAMPLES: tuple[list[Instance], list[Instance]] = ([], [])


def _sentence(rule: Rule, values: Instance, library: Library) -> str:
    """An instance of the rule in words: its premises, a colon and its conclusion."""
    premise = " and ".join(atom_text(literal.atom, library, values) for literal in rule.literals)
    return f"{premise}: {atom_text(rule.conclusion.atom, library, values)}"


def _wider(rules: Mapping[tuple[int, int], list[_T]], candidate: RuleCandidate) -> Iterator[_T]:
    """The rules that conclude the same predicate, without a constant or with the same one."""
    code, node = candidate.concluded
    return chain.from_iterable(rules.get((code, constant), ()) for constant in sorted({NOTHING, node}))


# --- proposals --------------------------------------------------------------------------------------------------------


@checked
def mine_rules(
    rules: Library,
    kb: KnowledgeBase,
    options: MiningOptions | None = None,
    *,
    output: str | Path | None = None,
    accept: bool = False,
    progress: Callable[[str], None] | None = None,
) -> MinedRules:
    """Mine closed rules from the facts of a knowledge base, with values that a critic rejected as counter-examples.

    `rules`: give types and templates; what they state is left out. `output`: a rule file to which the rules are added,
    as comments, of which you remove the `#` of those that you accept; with `accept` as rules. `progress` takes a line
    of text now and then.
    """
    library = sound_rules(rules)
    found = mine(kb, library, options or MiningOptions(), progress or (lambda _: None))
    if output is None:
        return found
    proposals = [_proposal(item, library) for item in found.rules]
    return replace(found, added=tuple(write_proposals(Path(output), proposals, library, library, accept=accept)))


def _proposal(mined: MinedRule, library: Library) -> Proposal:
    addition = Library(rules=(mined.rule,), signatures=mined.signatures)
    notes = []
    for name, texts in (("for", mined.examples), ("against", mined.counter_examples)):
        notes += [f"{name} it: {text}" for text in texts]
    return Proposal(
        addition, mined.rule.sentence, statement_of(addition, library), f"mined: {summary(mined)}", tuple(notes)
    )


def summary(mined: MinedRule) -> str:
    """The figures on one line."""
    measures = mined.measures
    rejected = f", {counted(measures.rejected, 'prediction')} rejected" if measures.rejected else ""
    return (
        f"support {measures.support}, head coverage {measures.head_coverage:.2f}, "
        f"confidence {measures.confidence:.2f}, PCA confidence {measures.pca_confidence:.2f}{rejected}"
    )


def figures(mined: MinedRule) -> dict[str, Any]:
    """The rule with its figures and examples, for JSON."""
    measures = mined.measures
    return {
        "name": mined.rule.name,
        "rule": mined.rule.sentence,
        "support": measures.support,
        "head_coverage": round(measures.head_coverage, 6),
        "confidence": round(measures.confidence, 6),
        "pca_confidence": round(measures.pca_confidence, 6),
        "predictions": measures.predictions,
        "counted": measures.counted,
        "rejected": measures.rejected,
        "examples": list(mined.examples),
        "counter_examples": list(mined.counter_examples),
    }
