"""Resolution of a pronoun by parse, abstraction and proof: both readings are proved, the better supported wins.

The support of a reading is the sum of the weights (`weights.toml`) of the rules of `commonsense.rules` that prove it.
The difference of the supports, what speaks for the other reading, and the clauses' relation give the probability of an
answer; below the least probability there is no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from hapax.engine.inference.derive import RuleInstance
from hapax.engine.inference.proof import proof_text
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.proofs import derive_every_way
from hapax.evaluation.winograd.data import BLANK, STAND_IN, WinogradItem
from hapax.evaluation.winograd.reasoner.events import ClauseRelation, EventReader, ParsedEvent, is_pronoun
from hapax.evaluation.winograd.reasoner.kinds import SUBJECT_PRONOUNS, Abstraction, EntityType
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses, shipped_lexicon
from hapax.evaluation.winograd.reasoner.parsing import ConlluParser, Parse, Parser, SpacyParser, Token
from hapax.evaluation.winograd.reasoner.roles import CORE
from hapax.evaluation.winograd.reasoner.stand_ins import with_stand_ins
from hapax.evaluation.winograd.reasoner.stating import ParsedSchema, SentenceStatements
from hapax.evaluation.winograd.reasoner.weighing import (
    READINGS,
    RuleWeights,
    evidence,
    evidence_priors,
    shipped_weights,
)
from hapax.evaluation.winograd.theories.abstraction import entity_name
from hapax.evaluation.winograd.theories.proving import Lack, PairJudgement, Resolution, within_reach
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Term
from hapax.grammar.verbalize import atom_text, literal_text
from hapax.kb.store import KnowledgeBase

RULES = Path(__file__).with_name("commonsense.rules")
ACQUIRED = Path(__file__).with_name("acquired.rules")

ABSTRACTION = "abstracts_to"
_CANDIDATE, _OTHER = "\ue000", "\ue001"
"""Stand-ins for the two entities in proofs: private characters, which no sentence has."""


class AgreementCheck:
    """Types of the entities of parsed sentences, and the features in which a pronoun does not agree with them."""

    def __init__(self, parser: Parser | None = None, lexicon: WordClasses | None = None) -> None:
        self._parser = SpacyParser() if parser is None else parser
        lexicon = shipped_lexicon() if lexicon is None else lexicon
        self._abstraction = Abstraction(lexicon.wordnet, lexicon.genders)

    def __call__(self, text: str, options: tuple[str, str], pronoun: str = "") -> tuple[str | None, str | None]:
        """For each option, the feature in which the pronoun does not agree with it, or None."""
        schema = located(self._parser.parse(text), options, pronoun, None)
        return (None, None) if schema is None else self.clashes(schema, self.types(schema))

    def types(self, schema: ParsedSchema) -> tuple[EntityType, EntityType]:
        """Types of the two entities."""
        first, second = (
            self._abstraction.of(schema.parse, head, span)
            for head, span in zip(schema.heads, schema.spans, strict=True)
        )
        return first, second

    @staticmethod
    def clashes(schema: ParsedSchema, types: tuple[EntityType, EntityType]) -> tuple[str | None, str | None]:
        """Features without agreement; none if no candidate would be left, since a wrong parse is likelier then."""
        pronoun = schema.pronoun.text
        clashes = [kind.clash(pronoun) for kind in types]
        for number in (0, 1):
            # "Software ... they": a singular noun is barred only where the other one is a plural beyond doubt.
            if clashes[number] == "number" and not types[1 - number].has_number_of(pronoun):
                clashes[number] = None
        heads = [head.index for head in schema.heads]
        if schema.pronoun.tag == "PRP" and not schema.pronoun.text.casefold().endswith(("self", "selves")):
            for event in EventReader(schema.parse).events():
                # "A saw him": A and the pronoun are two roles of one event, so it does not mean A.
                core = {index for role, index in event.roles.items() if role in CORE}
                for number in (0, 1):
                    if {schema.pronoun.index, heads[number]} <= core:
                        clashes[number] = clashes[number] or "binding: both are roles of one event"
        return (None, None) if all(clashes) else (clashes[0], clashes[1])


@dataclass(frozen=True, slots=True)
class SupportedReading:
    """The support of a reading: names of rules, the sum of their weights, and a proof by the weightiest, in words."""

    evidence: tuple[str, ...] = ()
    support: float = 0.0
    text: str | None = None


@dataclass(frozen=True, slots=True)
class StatedSentence:
    """A sentence as the theory sees it. `atoms`: what is assumed for each candidate; None for one that is barred."""

    names: tuple[str, str]
    said: tuple[str, ...]
    atoms: tuple[tuple[Atom, ...] | None, tuple[Atom, ...] | None]
    steps: tuple[str, ...]

    @property
    def is_earlier(self) -> bool:
        """True if what is said of the pronoun comes before the event, or is its condition."""
        return any(atom.predicate == ClauseRelation.BEFORE for atoms in self.atoms for atom in atoms or ())


class Reasoner:
    """Resolves pronouns by a parser and the theory. Use it as a context manager: it starts a Prolog process.

    `least`: the least probability at which an answer is given; None: that of the weights.
    """

    def __init__(
        self,
        parser: Parser | None = None,
        library: Library | None = None,
        lexicon: WordClasses | None = None,
        weights: RuleWeights | None = None,
        least: float | None = None,
    ) -> None:
        self.parser = SpacyParser() if parser is None else parser
        self.library = shipped_theory() if library is None else library
        self.lexicon = shipped_lexicon() if lexicon is None else lexicon
        self.weights = shipped_weights() if weights is None else weights
        self.least = self.weights.least if least is None else least
        self._agreement = AgreementCheck(self.parser, self.lexicon)
        self._kb = KnowledgeBase()
        self._concepts = asked_concepts(self.library)
        # Sentences that differ in nothing that the theory knows have the same readings.
        self._read: dict[frozenset[Atom], SupportedReading] = {}

    def __enter__(self) -> Reasoner:
        return self

    def __exit__(self, *_: object) -> None:
        self._kb.close()

    def resolve(self, text: str, options: tuple[str, str], pronoun: str = "", start: int | None = None) -> Resolution:
        """Resolve a pronoun, or a blank `_`. `start`: its place in the text, if the word alone does not tell."""
        stated = self.stated(text, options, pronoun, start)
        if stated is None:
            return Resolution(None, lack=Lack.NOT_NAMED)
        first, second = self.readings(stated)
        judgement = PairJudgement(stated.names, stated.said, (first.text, second.text))
        difference = first.support - second.support
        signs = self.weights.signs((first.evidence, second.evidence), stated.is_earlier)
        sureness = self.weights.sureness(signs)
        number = int(difference < 0)
        open_answer = Resolution(
            None,
            judgement,
            Lack.NOT_PROVED,
            steps=stated.steps,
            probability=sureness if first.evidence or second.evidence else None,
            preferred=number if difference else None,
            barred=(stated.atoms[0] is None, stated.atoms[1] is None),
        )
        if open_answer.probability is None:
            return open_answer
        if not difference or sureness < self.least:
            return replace(open_answer, lack=Lack.NO_MARGIN)
        # The losing reading may have no proof; the winning one always has, unless all its rules weigh against it.
        if judgement.proofs[number] is None:
            return open_answer
        return replace(open_answer, answer=number, lack=None)

    def resolved(self, item: WinogradItem) -> Resolution:
        """Resolve the pronoun of an item."""
        return self.resolve(item.text, item.options, item.pronoun, item.pronoun_start)

    def stated(self, text: str, options: tuple[str, str], pronoun: str, start: int | None) -> StatedSentence | None:
        """The statements of a sentence about either candidate; None if an option or the pronoun is not found in it."""
        blank = pronoun == BLANK
        if blank:
            text, pronoun = text.replace(BLANK, STAND_IN, 1), STAND_IN
        schema = located(self.parser.parse(text), options, pronoun, start)
        if schema is None:
            return None
        types = self._agreement.types(schema)
        # A stand-in for a blank has no gender or number of its own to agree with.
        clashes = (None, None) if blank else self._agreement.clashes(schema, types)
        names = (entity_name(options[0]), entity_name(options[1]))
        events = EventReader(schema.parse).events()
        statements = SentenceStatements(schema, events, self.lexicon)
        if not statements.classified:
            schema, events, statements = self._parsed_again(text, schema) or (schema, events, statements)
        shown = [event for event in events if set(event.roles.values()) & statements.mentioned]
        steps = [f"parse: {event.words(schema.parse)}" for event in shown]
        steps += _abstraction_lines(names, types, clashes, schema.pronoun.text)
        assumed: list[tuple[Atom, ...] | None] = []
        for number in (0, 1):
            atoms = [*statements.atoms(names, number), *_type_atoms(names, number, types, clashes)]
            if SUBJECT_PRONOUNS[schema.pronoun.text.casefold()][1] in ("male", "female"):
                atoms.append(Atom("needs_a_mind", (Constant(names[number]),)))
            assumed.append(None if clashes[number] else tuple(dict.fromkeys(atoms)))
        said = tuple(atom_text(atom, self.library) for atom in statements.atoms(names, None))
        return StatedSentence(names, said, (assumed[0], assumed[1]), tuple(steps))

    def _parsed_again(
        self, text: str, schema: ParsedSchema
    ) -> tuple[ParsedSchema, list[ParsedEvent], SentenceStatements] | None:
        """The sentence as parsed with stand-ins for its entities; None if no event between these has a class either."""
        # Written parses are of the sentences as they stand.
        simple = None if isinstance(self.parser, ConlluParser) else with_stand_ins(text, schema)
        if simple is None:
            return None
        found = located(self.parser.parse(simple.text), simple.options, "", simple.pronoun_start)
        if found is None:
            return None
        events = EventReader(found.parse).events()
        statements = SentenceStatements(found, events, self.lexicon)
        return (found, events, statements) if statements.classified else None

    def readings(self, stated: StatedSentence) -> tuple[SupportedReading, SupportedReading]:
        """The support of either candidate."""
        first, second = (
            SupportedReading() if atoms is None else self._reading(atoms, stated.names, number)
            for number, atoms in enumerate(stated.atoms)
        )
        return first, second

    def _reading(self, atoms: tuple[Atom, ...], names: tuple[str, str], candidate: int) -> SupportedReading:
        """A reading by the proof of its form: proofs see no names, and of types only those that rules ask for."""
        forms: dict[Term, Term] = {
            Constant(names[candidate]): Constant(_CANDIDATE),
            Constant(names[1 - candidate]): Constant(_OTHER),
        }
        form = frozenset(
            Atom(atom.predicate, tuple(forms.get(argument, argument) for argument in atom.arguments))
            for atom in atoms
            if atom.predicate != ABSTRACTION or atom.arguments[-1] in self._concepts
        )
        if form not in self._read:
            self._read[form] = self._supported(tuple(sorted(form, key=str)))
        read = self._read[form]
        if read.text is None:
            return read
        text = read.text.replace(_CANDIDATE, names[candidate]).replace(_OTHER, names[1 - candidate])
        return replace(read, text=text)

    def _supported(self, atoms: tuple[Atom, ...]) -> SupportedReading:
        library = within_reach(self.library, [_indicator(atom) for atom in atoms])
        provable = {rule.conclusion.atom.predicate for rule in library.rules}
        # Kinds of reasons that no rule within reach concludes are no goals.
        goals = [Atom(name, (Constant(_CANDIDATE),)) for name in READINGS if name in provable]
        if not goals:
            return SupportedReading()
        derivation = derive_every_way(Theory(library, self._kb, atoms), goals)
        rules = evidence(derivation, goals)
        if not rules:
            return SupportedReading()
        support = self.weights.support(rules)
        strongest = max(rules, key=lambda name: self.weights.weights.get(name, 0.0))
        # The proof that is shown goes by the weightiest rule alone.
        others = set(evidence_priors(library)) - {strongest}

        def kept(instance: RuleInstance) -> bool:
            return instance.rule.name not in others

        def words(goal: BodyLiteral) -> str:
            return literal_text(goal, self.library) if isinstance(goal, Literal) else str(goal)

        shown = [proof_text(proof, words) for goal in goals if (proof := derivation.proof(goal, kept)) is not None]
        weighed = ", ".join(f"{name} {self.weights.weights.get(name, 0.0):+.2f}" for name in rules)
        return SupportedReading(rules, support, "\n".join([f"support {support:.2f}: {weighed}", *shown[:1]]))


def located(parse: Parse, options: tuple[str, str], pronoun: str, start: int | None) -> ParsedSchema | None:
    """The entities and the pronoun in the parse; None if one of them is not in it."""
    spans = [_span(parse, option) for option in options]
    if not all(spans) or spans[0] == spans[1]:
        return None
    first, second = (_head(parse, span) for span in spans)
    place = _pronoun(parse, spans, pronoun, start)
    if place is None or first.index == second.index:
        return None
    return ParsedSchema(parse, (first, second), (spans[0], spans[1]), place)


def _span(parse: Parse, option: str) -> range:
    name = entity_name(option).casefold()
    texts = [token.text.casefold() for token in parse]
    # Nouns with hyphens are several words of a parse, qualities one.
    forms = [form.split() for form in (name.replace("-", " - "), name)]
    plurals = [[*words[:-1], f"{words[-1]}s"] for words in forms if words]
    for phrase in (*forms, *plurals):
        for at in range(len(texts) - len(phrase) + 1):
            if phrase and texts[at : at + len(phrase)] == phrase:
                return range(at, at + len(phrase))
    return range(0)


def _head(parse: Parse, span: range) -> Token:
    """The last noun of the phrase before a preposition or a clause, which may be parsed as part of another phrase."""
    head = None
    for index in span:
        if parse[index].tag in ("IN", "TO", "WDT", "WP", ",") and head is not None:
            break
        if parse[index].relation == "acl" and head is not None:  # "a man juggling melons"
            break
        if head is None or parse[index].tag.startswith(("NN", "JJ", "CD")):
            head = parse[index]
    head = parse[span[-1]] if head is None else head
    # "Ann and Eve" has the roles of "Ann".
    while head.relation == "conj" and head.head in span:
        head = parse[head.head]
    return head


def _pronoun(parse: Parse, spans: list[range], pronoun: str, start: int | None) -> Token | None:
    fitting = [token for token in parse if is_pronoun(token)]
    if start is not None:
        return next((token for token in fitting if token.start == start), None)
    if pronoun:
        fitting = [token for token in fitting if token.text.casefold() == pronoun.casefold()]
    # A pronoun behind both entities is preferred: it can mean either.
    end = max(span.stop for span in spans)
    after = [token for token in fitting if token.index >= end]
    return next(iter(after or fitting), None)


def asked_concepts(library: Library) -> frozenset[Term]:
    """The concepts that rules of the theory ask for."""
    concepts: set[Term] = set()
    for rule in library.rules:
        concepts |= {item.atom.arguments[-1] for item in rule.literals if item.atom.predicate == ABSTRACTION}
    return frozenset(concepts)


def _indicator(atom: Atom) -> str:
    return f"{atom.predicate}/{len(atom.arguments)}"


def _type_atoms(
    names: tuple[str, str], candidate: int, types: tuple[EntityType, EntityType], clashes: tuple[str | None, str | None]
) -> Iterator[Atom]:
    yield Atom("differs_from", (Constant(names[candidate]), Constant(names[1 - candidate])))
    for name, kind, clash in zip(names, types, clashes, strict=True):
        own = (Constant(name),)
        # A clash in number bars a candidate, but proves nothing of the other: "the company ... they" is common.
        if clash != "number":
            yield Atom("does_not_agree_with_the_pronoun" if clash else "agrees_with_the_pronoun", own)
        if not kind.beings:
            yield Atom("names_no_being", own)
        elif not kind.concepts:
            yield Atom("is_a_name", own)
        if kind.is_usually_an_object:
            yield Atom("is_usually_an_object", own)
        for concept in kind.concepts:
            yield Atom(ABSTRACTION, (*own, Constant(concept)))


def _abstraction_lines(
    names: tuple[str, str], types: tuple[EntityType, EntityType], clashes: tuple[str | None, str | None], pronoun: str
) -> list[str]:
    lines = []
    for name, kind, clash in zip(names, types, clashes, strict=True):
        levels = ", ".join(kind.concepts[:6]) or "a name of unknown type"
        agreement = f"; does not agree with {pronoun!r} in {clash}" if clash else ""
        lines.append(f"abstraction: {name} is {levels}{agreement}")
    return lines


@lru_cache(maxsize=1)
def shipped_theory() -> Library:
    """The theory of this folder, with the rules that were acquired."""
    return load_library([RULES, ACQUIRED])
