"""Mining: measure the rules of every conclusion and shape, the short ones first, and keep those that say something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from hapax.engine.expansion.expand import write_proposals
from hapax.engine.expansion.propose import Proposal, statement_of
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
from hapax.engine.run_memory import with_stored_predicates
from hapax.grammar.arguments import checked
from hapax.grammar.checking.subsumption import Matcher
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.printing import signature_text
from hapax.grammar.writing.verbalize import atom_text
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.store import KnowledgeBase

_SECONDS_OF_A_RULE = 30.0
"""The time in which a rule is measured; one that needs more is named as not measured."""

_SECONDS_TO_COMPARE = 60.0
"""The time in which the measured rules are compared with each other."""

_LISTED = 5
"""Conclusions that a note names."""


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
    rule_began: float | None = None

    def check(self) -> None:
        """Raise _TimeUpError if the time is up."""
        now = system.monotonic()
        if now - self.began > self.seconds:
            raise _TimeUpError
        if self.rule_began is not None and now - self.rule_began > _SECONDS_OF_A_RULE:
            raise _TimeUpError

    @contextmanager
    def of_rule(self, *, anew: bool = False) -> Iterator[None]:
        """Limit the time of a rule inside the block; `anew`: even if the time of all is over."""
        self.rule_began = system.monotonic()
        if anew:
            self.began = self.rule_began
        try:
            yield
        finally:
            self.rule_began = None


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
        self._unexplored: dict[str, list[str]] = {}
        self._sampled: dict[str, tuple[int, int]] = {}
        self._hubs: Counter[str] = Counter()
        self._matcher = Matcher(tables.library)
        self._stated = tuple(rule for rule in tables.library.with_closure().rules if rule.aggregate is None)
        self._perfect: dict[tuple[int, int], list[Rule]] = {}
        self._pruned = 0
        self._uncompared = 0

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
        kept, follows, known = self._informative(measured)
        rules = []
        for number, (candidate, rule) in enumerate(kept, 1):
            self._progress(f"examples of rule {number} of {len(kept)}")
            named = replace(rule, name=f"{rule.name}_{number}")
            examples, against = (
                tuple(_sentence(rule, instance, worded) for instance in instances)
                for instances in self._examples(candidate.rule)
            )
            signatures = [self._signature(atom.indicator) for atom in rule.atoms]
            declared = tuple(dict.fromkeys(item for item in signatures if item is not None))
            rules.append(MinedRule(named, measured[candidate], examples, against, declared))
        return MinedRules(tuple(rules), tuple(self._notes(follows, known)))

    def _conclusions(self) -> Iterator[Conclusion]:
        """Predicates to conclude: those of two arguments from the one that determines the other more nearly."""
        for code, predicate in sorted(self._tables.predicates.items()):
            if len(predicate.types) > 1:
                is_functional = self._tables.library.kind(predicate.indicator) is PredicateKind.FUNCTIONAL
                # The argument with more values is the one that determines the other more nearly.
                is_first = predicate.symmetric or is_functional or predicate.subjects >= predicate.objects
                yield Conclusion(predicate, code if is_first else code + 1, False)
            if len(predicate.types) == 1 or self._options.constants:
                yield from (Conclusion(predicate, way, True) for way in predicate.codes)

    def _of_conclusion(self, conclusion: Conclusion, premises: int) -> dict[RuleCandidate, RuleMeasures]:
        """The measured rules with this conclusion and number of premises."""
        found: dict[RuleCandidate, RuleMeasures] = {}
        head = 1 if conclusion.is_label else 2
        wanted = [s for s in shapes(premises) if s.head == head and (self._tables.labels or not s.has_labels)]
        if conclusion.predicate.facts < self._options.min_support:
            return found
        text = str(conclusion)
        try:
            screening = Screening(self._tables, conclusion, self._options)
            while wanted:
                screened = screening.screened(wanted[0])
                del wanted[0]
                # A note names the smallest sample of the conclusion's shapes: the rules most likely to be missed.
                if screened.sampled < screened.facts:
                    least, _ = self._sampled.get(text, (screened.sampled, 0))
                    self._sampled[text] = min(least, screened.sampled), screened.facts
                self._hubs[text] = max(self._hubs[text], screened.hubs)
                found |= self._all_measured(screened.candidates)
        except _TimeUpError:
            for shape in wanted:
                self._unexplored.setdefault(str(shape), []).append(text)
        return found

    def _all_measured(self, candidates: Sequence[RuleCandidate]) -> dict[RuleCandidate, RuleMeasures]:
        """The measures of those with enough support and confidence.

        A rule that never fails makes its special cases superfluous, so these are not measured (AMIE+, "perfect rules").
        """
        found: dict[RuleCandidate, RuleMeasures] = {}
        for candidate in candidates:
            if any(self._matcher.subsumes(general, candidate.rule) for general in _wider(self._perfect, candidate)):
                self._pruned += 1
                continue
            try:
                with self._clock.of_rule():
                    measures = self._measuring.measured(candidate.rule)
            except _TimeUpError:
                self._unmeasured.append(candidate)
                continue
            if measures is not None:
                found[candidate] = measures
                if measures.pca_confidence == 1.0:
                    self._perfect.setdefault(candidate.concluded, []).append(candidate.rule)
        return found

    def _informative(
        self, measured: dict[RuleCandidate, RuleMeasures]
    ) -> tuple[list[tuple[RuleCandidate, Rule]], int, int]:
        """The rules without those that follow from a more general one with no less confidence, that predict the
        same as a shorter one, or that the library states; the number of the former two and that of the latter.
        """
        general: dict[tuple[int, int], list[tuple[Rule, float]]] = {}
        alike: dict[tuple[MinedAtom, RuleMeasures], list[RuleCandidate]] = {}
        kept: list[tuple[RuleCandidate, Rule]] = []
        follows, known = self._pruned, 0
        began = system.monotonic()
        # The general ones first: fewer premises, then fewer constants.
        for candidate in sorted(measured, key=lambda item: (len(item.atoms), item.constants, item.atoms)):
            rule, measures = self._tables.worded(candidate.rule), measured[candidate]
            if system.monotonic() - began > _SECONDS_TO_COMPARE:
                self._uncompared += 1
                kept.append((candidate, rule))
                continue
            if any(self._matcher.subsumes(stated, rule) for stated in self._stated):
                known += 1
                continue
            is_special = any(
                confidence >= measures.pca_confidence and self._matcher.subsumes(wide, rule)
                for wide, confidence in _wider(general, candidate)
            )
            # Rules that are left out have special cases, too.
            general.setdefault(candidate.concluded, []).append((rule, measures.pca_confidence))
            same = alike.setdefault((candidate.atoms[0], measures), [])
            if is_special or self._repeats(candidate, same):
                follows += 1
                continue
            same.append(candidate)
            kept.append((candidate, rule))
        kept.sort(key=lambda pair: (-measured[pair[0]].pca_confidence, -measured[pair[0]].support, str(pair[1])))
        return kept, follows, known

    def _repeats(self, candidate: RuleCandidate, rivals: Sequence[RuleCandidate]) -> bool:
        """True if one of these rules, which have the same measures, predicts the same."""
        for rival in rivals:
            try:
                with self._clock.of_rule(anew=True):
                    if not self._measuring.predicts_more(candidate.rule, rival.rule):
                        return True
            except _TimeUpError:
                return False
        return False

    def _examples(self, rule: Rule) -> tuple[list[Instance], list[Instance]]:
        """Examples and counter-examples; none if they take too long, whatever the time that is left for mining."""
        try:
            with self._clock.of_rule(anew=True):
                return self._measuring.examples(rule, self._options.examples)
        except _TimeUpError:
            return [], []

    def _signature(self, indicator: str) -> PredicateSignature | None:
        """The declaration of a predicate that the library does not know, if all its types are known."""
        if self._tables.library.knows(indicator):
            return None
        places = self._tables.types[indicator]
        types = tuple(data_type for data_type in places if data_type is not None)
        if len(types) < len(places):
            return None
        return PredicateSignature(indicator.rpartition("/")[0], types, PredicateKind.GIVEN)

    def _notes(self, follows: int, known: int) -> Iterator[str]:
        if follows:
            yield f"{counted(follows, 'rule')} left out: a more general or shorter rule says the same"
        if known:
            yield f"{counted(known, 'rule')} left out: the library states as much"
        listed = {
            "not mined, more than two arguments": self._tables.wider,
            "types of rule files that replace different ones of facts": self._tables.clashes,
        }
        yield from (f"{fact}: {_some(names)}" for fact, names in listed.items() if names)
        for text, (sampled, facts) in self._sampled.items():
            yield f"screened by {sampled} of {facts} facts: {text}"
        hubs = {text: count for text, count in self._hubs.items() if count}
        if hubs:
            crowded = _some([f"{text} ({count})" for text, count in hubs.items()])
            yield f"sampled facts left out of the screening because they have too many neighbours: {crowded}"
        if self._uncompared:
            yield f"{counted(self._uncompared, 'rule')} not compared with the others: there are too many"
        limit = counted(self._options.seconds, "second")
        for shape, conclusions in self._unexplored.items():
            yield f"not explored within {limit}: {shape} for h {_some(conclusions)}"
        if self._unmeasured:
            texts = [self._tables.worded(candidate.rule).sentence for candidate in self._unmeasured]
            yield f"not measured in time: {counted(len(texts), 'rule')}: {_some(texts)}"


def _sentence(rule: Rule, values: Instance, library: Library) -> str:
    """An instance of the rule in words: its premises, a colon and its conclusion."""
    premise = " and ".join(atom_text(literal.atom, library, values) for literal in rule.literals)
    return f"{premise}: {atom_text(rule.conclusion.atom, library, values)}"


def _wider(rules: Mapping[tuple[int, int], list[_T]], candidate: RuleCandidate) -> Iterator[_T]:
    """The rules that conclude the same predicate, without a constant or with the same one."""
    code, node = candidate.concluded
    return chain.from_iterable(rules.get((code, constant), ()) for constant in sorted({NOTHING, node}))


def _some(texts: Sequence[str]) -> str:
    """The first of these texts, and the number of the others."""
    more = len(texts) - _LISTED
    return "; ".join(texts[:_LISTED]) + (f" and {more} more" if more > 0 else "")


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
