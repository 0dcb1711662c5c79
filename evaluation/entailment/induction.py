"""Explicit induction: a pair is judged by instances of it, which Hapax's own search finds for the premise.

After Liu, Cheng et al. (2024), "Explicit Inductive Inference using Large Language Models" (Findings of EMNLP): the
arguments of a pair are replaced by others of their types, and the judgements of the instances are averaged, so that a
model that knows an instance's hypothesis by heart decides no pair alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.evaluation.entailment.probabilities import argument_types, triple_name
from hapax.evaluation.entailment.scorers import Direction, Measure, VisibleSides, best_difference, filled
from hapax.evaluation.shared.estimates import Estimate, mean
from hapax.grammar.rules import Library, PredicateSignature, Rule, Templates
from hapax.grammar.terms import Atom, Constant, Literal, Variable
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.profiles import FEW_SHOT
from hapax.llm_oracle.protocols import Models

INSTANCES = 10
"""Instances of a premise, half of them from each end."""

Arguments = tuple[str, str]
"""Subject and object of an instance."""

InstanceFinder = Callable[[Sequence[Triple]], Mapping[Triple, Sequence[Arguments]]]
"""Finds instances of premises."""


@dataclass(frozen=True, slots=True)
class InductionScorer:
    """Scores a pair by the mean over itself and its instances of the best pattern less the best antipattern.

    `notes` takes the number of premises without an instance.
    """

    name: str
    measure: Measure
    find: InstanceFinder
    direction: Direction = Direction.DIRECTIONAL
    sees: VisibleSides = VisibleSides.BOTH
    notes: list[str] = field(default_factory=list)

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [estimate.value for estimate in self.estimates(pairs)]

    def estimates(self, pairs: Sequence[EntailmentPair]) -> list[Estimate]:
        """The mean score of each pair's instances with its interval over them; their number is the count."""
        instances = self.find([pair.premise for pair in pairs if has_instances(pair)])
        lacking = sum(not found for found in instances.values())
        if lacking:
            self.notes.append(f"{self.name}: no instance was found for {lacking} of {len(instances)} premises")
        groups = []
        for pair in pairs:
            found = instances.get(pair.premise, ()) if has_instances(pair) else ()
            # The pair itself is the first of its instances.
            groups.append([pair, *(instantiated(pair, arguments) for arguments in found)])
        texts = [filled(instance, self.direction) for instance in chain.from_iterable(groups)]
        scores = iter(best_difference(texts, self.measure))
        # All groups were measured in one batch; each takes as many scores as it has instances.
        return [mean(list(islice(scores, len(group)))) for group in groups]


def has_instances(pair: EntailmentPair) -> bool:
    """True for an English pair whose premise has a predicate and two arguments."""
    return pair.language == "EN" and all((pair.premise.subject, pair.premise.predicate, pair.premise.object))


def instantiated(pair: EntailmentPair, arguments: Arguments) -> EntailmentPair:
    """The pair with other arguments; the hypothesis keeps those that the premise does not have."""
    subject, _, object_ = pair.premise.key
    places = {subject: arguments[0], object_: arguments[1]}

    def placed(triple: Triple) -> Triple:
        first, _, second = triple.key
        return replace(triple, subject=places.get(first, triple.subject), object=places.get(second, triple.object))

    return replace(pair, premise=placed(pair.premise), hypothesis=placed(pair.hypothesis))


# --- instances by search ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchedInstances:
    """Finds instances by searching the premises' predicates as oracle predicates, head and long tail.

    The arguments of all premises of a predicate are its examples for the model, without any label. Facts and statements
    are forgotten; the journal keeps what was asked, so nothing is asked twice.
    """

    models: Models
    journal: Journal
    most: int = INSTANCES
    distributions: tuple[Distribution, ...] = (Distribution.HEAD, Distribution.LONG_TAIL)
    seed: int = 0

    def __call__(self, premises: Sequence[Triple]) -> dict[Triple, list[Arguments]]:
        rules: dict[tuple[str, tuple[str, str]], Rule] = {}
        signatures: list[PredicateSignature] = []
        examples: dict[object, Atom] = {}
        for premise in premises:
            # Premises with the same predicate and types are one rule, which is searched once.
            kind = (premise.key[1], argument_types(premise))
            if kind not in rules:
                signature, rule = _question(premise, len(rules) + 1)
                signatures.append(signature)
                rules[kind] = rule
            predicate = rules[kind].literals[0].atom.predicate
            examples[predicate, premise.key] = Atom(predicate, (Constant(premise.subject), Constant(premise.object)))
        library = Library(tuple(rules.values()), tuple(signatures), examples=tuple(examples.values()))
        found = self._searched(library)
        instances = {}
        for premise in premises:
            own = (premise.key[0], premise.key[2])
            candidates = found.get(rules[premise.key[1], argument_types(premise)].name, [])
            # The premise's own arguments are no further instance: `estimates` judges the pair itself as well.
            others = [pair for pair in candidates if (pair[0].casefold(), pair[1].casefold()) != own]
            instances[premise] = others[: self.most]
        return instances

    def _searched(self, library: Library) -> dict[str, list[Arguments]]:
        """By rule the arguments of its statements, from both ends in turns."""
        if not library.rules:
            return {}
        settings = SearchSettings(
            distributions=self.distributions,
            beam=4 * self.most,
            calls_per_question=1,
            values_per_call=self.most,
            max_statements=self.most,
            seed=self.seed,
            # A model that was trained on the words of one profile takes no examples.
            profile=FEW_SHOT.name if self.models.knowledge.identity.knows is None else None,
        )
        with KnowledgeBase() as kb:
            report = search(SearchJob(library, library.rules, kb, self.models, settings, self.journal))
        found: dict[str, list[Arguments]] = {}
        for rule in report.rules:
            ends = [list(rule.statements.get(end, ())) for end in self.distributions]
            # One of each end in turn, so that a cut at `most` keeps both ends.
            for place in range(max(map(len, ends), default=0)):
                for statements in ends:
                    if place < len(statements):
                        values = dict(statements[place].substitution)
                        found.setdefault(rule.rule, []).append((str(values["X"]), str(values["Y"])))
        return found


def _question(premise: Triple, number: int) -> tuple[PredicateSignature, Rule]:
    """The premise as an oracle predicate, and a rule that asks for it."""
    first, second = argument_types(premise)
    # Numbered, because the same words may stand between other types.
    name = f"{triple_name(premise)}_{number}"
    # A slot in the words themselves would be filled.
    words = premise.predicate.replace("[", "(").replace("]", ")")
    templates = Templates(
        f"[1] {words} [2]", f"it is not true that [1] {words} [2]", f"is it true that [1] {words} [2]?"
    )
    variables = (Variable("X", first), Variable("Y", second))
    rule = Rule(
        f"instances_{number}",
        (Literal(Atom(name, variables)),),
        Literal(Atom(f"has_instance_{number}", variables)),
    )
    return PredicateSignature(name, (first, second), templates=templates), rule
