"""Rules acquired from labelled sentences: proposed by induction or by a model, and judged by counting.

A rule says of an event between two entities, the relation of the clauses and what is said of the pronoun, which role is
meant. It is taken if it holds in enough sentences, fails in no source of sentences and for no type of entity, and says
something that the theory does not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hapax.evaluation.shared.lazy import scipy
from hapax.evaluation.winograd.reasoner.events import ClauseRelation
from hapax.evaluation.winograd.reasoner.learning import Observation
from hapax.evaluation.winograd.reasoner.reasoning import StatedSentence
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_rule
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.verbalize import atom_text
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator

CONCLUSION = "is_meant_by_induction"
LEAST_SUPPORT = 4
LEAST_FAMILIES = 2
"""Families of schemas in which a rule must be right, so that none fits a single schema."""

LEAST_PRECISION = 0.6
"""Lower end of the 90 % interval of a rule's share of right sentences."""

_TYPES = ("is_a_name", "names_no_being", "is_usually_an_object")
# Atoms that hold of a candidate by its type or form, not by what the sentence says.
_NOT_SAID = frozenset(
    {"agrees_with_the_pronoun", "does_not_agree_with_the_pronoun", "needs_a_mind", "suits_an_object", *_TYPES}
)


@dataclass(frozen=True, slots=True, order=True)
class AcquiredRule:
    """`event(P, Q)`, or `event(Q, P)` if not `first`, with a relation of clauses and what is said of P, means P."""

    event: str
    first: bool
    relation: str
    said: str

    @property
    def name(self) -> str:
        return f"acquired_{self.event}_{'first' if self.first else 'second'}_{self.relation}_{self.said}"

    def text(self) -> str:
        """The rule in the rule language."""
        roles = "Object P, Object B" if self.first else "Object A, Object P"
        premise = f"{self.event}({roles}) & {self.relation}(Object P) & {self.said}(Object P)"
        return f"@name {self.name}\n@generic none\n{premise} -> {CONCLUSION}(Object P)\n"

    def words(self, library: Library) -> str:
        """The rule as people read it."""
        roles = ("it", "the other one") if self.first else ("the other one", "it")
        parts = [Atom(self.event, (Constant(roles[0]), Constant(roles[1])))]
        parts += [Atom(name, (Constant("it"),)) for name in (self.relation, self.said)]
        return "; ".join(atom_text(part, library) for part in parts)


@dataclass(slots=True)
class AcquiredRuleRecord:
    """Results of a proposed rule: sentences that it reads rightly and wrongly, by source and candidate type."""

    rule: AcquiredRule
    proposed_by: str
    support: int = 0
    exceptions: int = 0
    new: int = 0
    example: str = ""
    verdict: str = ""

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"


def readings_of(stated: StatedSentence | None) -> tuple[set[AcquiredRule], set[AcquiredRule]]:
    """The rules whose premise holds of either reading."""
    first, second = (set[AcquiredRule](), set[AcquiredRule]())
    if stated is not None:
        for found, atoms, name in zip((first, second), stated.atoms, stated.names, strict=True):
            found.update(_rules_in(atoms or (), name))
    return first, second


def _rules_in(atoms: Sequence[Atom], candidate: str) -> Iterable[AcquiredRule]:
    own = Constant(candidate)
    relations = [atom.predicate for atom in atoms if atom.predicate in set(ClauseRelation)]
    events = [
        atom for atom in atoms if len(atom.arguments) == 2 and atom.predicate not in ("differs_from", "abstracts_to")
    ]
    said = [
        atom.predicate
        for atom in atoms
        if atom.arguments == (own,) and atom.predicate not in _NOT_SAID and atom.predicate not in relations
    ]
    for event in events:
        for relation in relations:
            for name in said:
                yield AcquiredRule(event.predicate, event.arguments[0] == own, relation, name)


def induced(observations: Iterable[Observation]) -> list[AcquiredRule]:
    """Rules that hold of the right reading alone in enough sentences."""
    counts = Counter[AcquiredRule]()
    for observation in observations:
        readings = readings_of(observation.stated)
        right = readings[observation.item.answer]
        counts.update(right - readings[1 - observation.item.answer])
    return sorted(rule for rule, count in counts.items() if count >= LEAST_SUPPORT)


def judged(
    proposals: Iterable[tuple[AcquiredRule, str]], observations: Sequence[Observation]
) -> list[AcquiredRuleRecord]:
    """Each proposed rule with its record and the verdict."""
    preferred: dict[AcquiredRule, list[tuple[Observation, int]]] = {}
    for observation in observations:
        first, second = readings_of(observation.stated)
        # A rule that holds of both readings, or of neither, prefers none.
        for number, found in enumerate((first - second, second - first)):
            for rule in found:
                preferred.setdefault(rule, []).append((observation, number))
    return [_judged(rule, proposed_by, preferred.get(rule, ())) for rule, proposed_by in proposals]


def _judged(rule: AcquiredRule, proposed_by: str, preferred: Sequence[tuple[Observation, int]]) -> AcquiredRuleRecord:
    """Judgement of a rule by the sentences in which it prefers a reading, each with the reading's number."""
    record = AcquiredRuleRecord(rule, proposed_by)
    groups: dict[str, Counter[bool]] = {}
    families: set[str] = set()
    for observation, number in preferred:
        right = number == observation.item.answer
        record.support += right
        record.exceptions += not right
        if right:
            families.add(observation.item.family)
        # Where the theory already prefers a reading, the rule says nothing new.
        record.new += right and len(observation.evidence[number]) <= len(observation.evidence[1 - number])
        if right and not record.example:
            record.example = observation.item.text
        for group in (f"in {observation.item.source}", _type_of(observation.stated, number)):
            groups.setdefault(group, Counter())[right] += 1
    record.verdict = _verdict(record, groups)
    if record.accepted and len(families) < LEAST_FAMILIES:
        record.verdict = "right in one family of schemas only"
    return record


def _type_of(stated: StatedSentence | None, number: int) -> str:
    """The type of a candidate for which a rule may fail."""
    atoms = () if stated is None else stated.atoms[number] or ()
    name = Constant("" if stated is None else stated.names[number])
    if Atom("is_a_name", (name,)) in atoms:
        return "for names"
    kinds = ("person", "animal", "social group")
    return next(
        (f"for {kind}" for kind in kinds if Atom("abstracts_to", (name, Constant(kind))) in atoms), "for things"
    )


def _verdict(record: AcquiredRuleRecord, groups: dict[str, Counter[bool]]) -> str:
    total = record.support + record.exceptions
    if record.support < LEAST_SUPPORT:
        return f"holds in {record.support} sentences only"
    low = float(scipy.stats.binomtest(record.support, total).proportion_ci(0.9, method="wilson").low)
    if low < LEAST_PRECISION:
        return f"right in {record.support} of {total}, which may be less than {LEAST_PRECISION:.0%}"
    for group, counts in groups.items():
        # A single exception, which may be a wrong parse, fails no group.
        if counts[False] >= 2 and counts[False] >= counts[True]:
            return f"fails {group}"
    return "accepted" if record.new else "says nothing that the theory does not"


def with_rules(observations: Iterable[Observation], rules: Sequence[AcquiredRule]) -> list[Observation]:
    """The observations with the acquired rules among the evidence of the readings where their premises hold."""
    chosen = set(rules)
    extended = []
    for observation in observations:
        evidence = []
        for names, found in zip(observation.evidence, readings_of(observation.stated), strict=True):
            acquired = sorted(rule.name for rule in found & chosen)
            evidence.append((*names, *acquired))
        extended.append(replace(observation, evidence=(evidence[0], evidence[1])))
    return extended


# --- proposals by a model ---------------------------------------------------------------------------------------------

_PROMPT = """A sentence has an event between A and B, and a clause about a pronoun P that means A or B.
Events: {events}
Relations: {relations}
What is said: {said}
Give general rules about who is meant, one a line, as in:
harms(Object A, Object P) & is_given_as_reason(Object P) & acts_badly(Object P)
Sentence: {sentence}
Rules:"""


def proposed(
    generator: Generator, observations: Iterable[Observation], library: Library, parameters: GenerationParameters
) -> tuple[list[AcquiredRule], list[str]]:
    """Rules that a model proposes for sentences without proof, and the lines of its replies that are none."""
    prompts = []
    for seen in observations:
        rules = set[AcquiredRule]().union(*readings_of(seen.stated))
        # Only sentences for which no rule of the theory speaks can teach something new.
        if rules and not any(seen.evidence):
            prompts.append(_prompt(seen, rules))
    found: dict[AcquiredRule, None] = {}
    refused = []
    for reply in generator.generate([GenerationRequest(prompt) for prompt in prompts], parameters):
        for line in filter(str.strip, reply.text.splitlines()):
            rule = _read(line, library)
            if rule is None:
                refused.append(line)
            else:
                found[rule] = None
    return list(found), refused


def _prompt(seen: Observation, rules: Iterable[AcquiredRule]) -> str:
    return _PROMPT.format(
        sentence=seen.item.text,
        events=", ".join(sorted({rule.event for rule in rules})),
        relations=", ".join(sorted({rule.relation for rule in rules})),
        said=", ".join(sorted({rule.said for rule in rules})),
    )


def _read(line: str, library: Library) -> AcquiredRule | None:
    """The rule of a line; None for anything but an event, a relation and a class of what is said about P."""
    premise = line.partition("->")[0].strip()
    try:
        rule = parse_rule(f"{premise} -> {CONCLUSION}(Object P)", library)
    except HapaxError:
        return None
    atoms = [item.atom for item in rule.literals if not item.negated and library.knows(item.atom.indicator)]
    events = [atom for atom in atoms if len(atom.arguments) == 2]
    about = [atom.predicate for atom in atoms if list(map(str, atom.arguments)) == ["Object P"]]
    relations = [name for name in about if name in set(ClauseRelation)]
    said = [name for name in about if name not in relations]
    # `atoms` lacks negated and unknown literals, which still count here.
    if len(rule.literals) != 3 or not len(events) == len(relations) == len(said) == 1:
        return None
    roles = [str(argument) == "Object P" for argument in events[0].arguments]
    # P has exactly one of the two roles.
    return AcquiredRule(events[0].predicate, roles[0], relations[0], said[0]) if sum(roles) == 1 else None


# --- files ------------------------------------------------------------------------------------------------------------


def rules_text(records: Iterable[AcquiredRuleRecord]) -> str:
    """Accepted rules in the rule language, each with its record."""
    parts = [
        "# Rules acquired by `hapax evaluate winograd learn`: proposed by induction or a model, judged by counting.\n"
    ]
    for record in records:
        if record.accepted:
            counted = f"{record.support} right, {record.exceptions} wrong, proposed by {record.proposed_by}"
            parts.append(f"# {counted}: {record.example}\n{record.rule.text()}")
    return "\n".join(parts)
