"""Resolution of a pronoun by parse, abstraction and proof: both readings are proved, and the cheaper one wins.

The cost of a reading is that of its cheapest proof by `commonsense.rules`: 0 by agreement and types, 1 by knowledge
about the kind of event, 2 by defaults. A reading wins if its cost is lower than the other's; otherwise there is no
answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hapax.engine.explain import prove
from hapax.engine.inference.proof import proof_text
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.evaluation.winograd.data import BLANK, STAND_IN
from hapax.evaluation.winograd.reasoner.events import (
    ClauseRelation,
    EventReader,
    ParsedEvent,
    is_pronoun,
    relation_between,
)
from hapax.evaluation.winograd.reasoner.kinds import Abstraction, EntityType
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses, shipped_lexicon
from hapax.evaluation.winograd.reasoner.parsing import Parse, Parser, SpacyParser, Token
from hapax.evaluation.winograd.theories.abstraction import entity_name
from hapax.evaluation.winograd.theories.proving import Judgement, Lack, Resolution, within_reach
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal
from hapax.grammar.verbalize import atom_text, literal_text
from hapax.kb.store import KnowledgeBase

RULES = Path(__file__).with_name("commonsense.rules")
GRADES = ("is_meant_by_type", "is_meant_by_knowledge", "is_meant_by_default")
"""Goals of the theory, cheapest first; the cost of a reading is the place of the first that is proved."""

_WANTING = frozenset({"want", "try", "hope", "wish", "intend", "plan", "need", "attempt", "decide", "like"})
_UNREAL = _WANTING | {"refuse", "fail", "expect", "hesitate", "claim", "pretend", "threaten"}
"""Governors under which what follows has not happened."""
_CORE = ("subject", "object", "dative")


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A parsed sentence with its two entities, as head word and span, and the pronoun."""

    parse: Parse
    heads: tuple[Token, Token]
    spans: tuple[range, range]
    pronoun: Token


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
        clashes = [kind.clash(schema.pronoun.text) for kind in types]
        heads = [head.index for head in schema.heads]
        if schema.pronoun.tag == "PRP" and not schema.pronoun.text.casefold().endswith(("self", "selves")):
            for event in EventReader(schema.parse).events():
                core = {index for role, index in event.roles.items() if role in _CORE}
                for number in (0, 1):
                    if {schema.pronoun.index, heads[number]} <= core:
                        clashes[number] = clashes[number] or "binding: both are roles of one event"
        return (None, None) if all(clashes) else (clashes[0], clashes[1])


@dataclass(frozen=True, slots=True)
class CostedProof:
    """The cheapest proof of a reading, in words."""

    cost: int
    text: str


class Reasoner:
    """Resolves pronouns by a parser and the theory. Use it as a context manager: it starts a Prolog process."""

    def __init__(
        self, parser: Parser | None = None, library: Library | None = None, lexicon: WordClasses | None = None
    ) -> None:
        self.parser = SpacyParser() if parser is None else parser
        self.library = shipped_theory() if library is None else library
        self.lexicon = shipped_lexicon() if lexicon is None else lexicon
        self._agreement = AgreementCheck(self.parser, self.lexicon)
        self._kb = KnowledgeBase()
        self._session = PrologSession()

    def __enter__(self) -> Reasoner:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._kb.close()

    def resolve(self, text: str, options: tuple[str, str], pronoun: str = "", start: int | None = None) -> Resolution:
        """Resolve a pronoun, or a blank `_`. `start`: its place in the text, if the word alone does not tell."""
        blank = pronoun == BLANK
        if blank:
            text, pronoun = text.replace(BLANK, STAND_IN, 1), STAND_IN
        schema = located(self.parser.parse(text), options, pronoun, start)
        if schema is None:
            return Resolution(None, lack=Lack.NOT_NAMED)
        types = self._agreement.types(schema)
        clashes = (None, None) if blank else self._agreement.clashes(schema, types)
        names = (entity_name(options[0]), entity_name(options[1]))
        steps = _abstraction_lines(names, types, clashes, schema.pronoun.text)
        events = EventReader(schema.parse).events()
        stated = _Statements(schema, events, self.lexicon)
        shown = [event for event in events if set(event.roles.values()) & stated.mentioned]
        steps = [*(f"parse: {event.words(schema.parse)}" for event in shown), *steps]
        proofs, said = [], tuple[str, ...]()
        for number in (0, 1):
            atoms = [*stated.atoms(names, number), *_type_atoms(names, number, types, clashes)]
            said = said or tuple(atom_text(atom, self.library) for atom in stated.atoms(names, None))
            proofs.append(None if clashes[number] else self._cheapest(tuple(dict.fromkeys(atoms)), names[number]))
        first, second = proofs
        judgement = Judgement(names, said, (first.text if first else None, second.text if second else None))
        answer = _cheaper(first, second)
        if answer is not None:
            return Resolution(answer, judgement, steps=tuple(steps))
        lack = Lack.NO_MARGIN if first and second else Lack.NOT_PROVED
        return Resolution(None, judgement, lack, steps=tuple(steps))

    def _cheapest(self, atoms: tuple[Atom, ...], candidate: str) -> CostedProof | None:
        library = within_reach(self.library, [_indicator(atom) for atom in atoms])
        provable = {rule.conclusion.atom.predicate for rule in library.rules}
        theory = Theory(library, self._kb, atoms)

        def words(goal: BodyLiteral) -> str:
            return literal_text(goal, self.library) if isinstance(goal, Literal) else str(goal)

        for cost, goal in enumerate(GRADES):
            proof = prove(theory, Atom(goal, (Constant(candidate),)), self._session) if goal in provable else None
            if proof is not None:
                return CostedProof(cost, f"cost {cost}\n{proof_text(proof, words)}")
        return None


class _Statements:
    """Atoms that a sentence states, over candidates."""

    def __init__(self, schema: ParsedSchema, events: list[ParsedEvent], lexicon: WordClasses) -> None:
        self._schema, self._lexicon = schema, lexicon
        self._reader = EventReader(schema.parse)
        heads = {head.index: number for number, head in enumerate(schema.heads)}
        self.mentioned = {*heads, schema.pronoun.index}
        self._main: list[tuple[str, int, int]] = []
        self._said: list[str] = []
        self._relation: ClauseRelation | None = None
        place = None
        for event in events:
            if schema.pronoun.index not in event.roles.values():
                for name, first, second in self._between(event, heads):
                    self._main.append((name, first, second))
                    place = event.place
        if place is not None:
            self._relation = relation_between(schema.parse, place, schema.pronoun.index)
        for event in events:
            if schema.pronoun.index in event.roles.values():
                self._said += self._of_pronoun(event)
        self._said = list(dict.fromkeys(self._said))

    def atoms(self, names: tuple[str, str], candidate: int | None) -> list[Atom]:
        """The atoms if the pronoun is this candidate; None: with `the pronoun` in its place, for people."""
        meant = Constant("the pronoun" if candidate is None else names[candidate])
        atoms = [Atom(name, (Constant(names[first]), Constant(names[second]))) for name, first, second in self._main]
        if self._relation is not None and self._main:
            atoms.append(Atom(self._relation, (meant,)))
        return [*atoms, *(Atom(name, (meant,)) for name in self._said)]

    def _between(self, event: ParsedEvent, heads: dict[int, int]) -> Iterator[tuple[str, int, int]]:
        subject = heads.get(event.roles.get("subject", -1))
        negative = event.negative ^ ("fail" in event.under or "refuse" in event.under)
        # Of two listed roles the lexicon's preposition decides; the object comes before the dative.
        for role, index in event.roles.items():
            partner = heads.get(index)
            if role == "subject" or partner is None or subject is None or partner == subject:
                continue
            if event.part == "verb" and event.lemma not in ("be", "have"):
                yield "does_something_to", subject, partner
            for name, is_reversed in self._classes(event, role, negative):
                yield (name, partner, subject) if is_reversed else (name, subject, partner)
            if role == "than" and event.part == "adj" and event.degree == "more":
                yield from self._comparison(event, subject, partner)

    def _classes(self, event: ParsedEvent, role: str, negative: bool) -> list[tuple[str, bool]]:
        """Classes of an event between its subject and this role."""
        if role not in _CORE:
            return self._lexicon.event_classes(f"{event.lemma} {role}", event.lemma, negative)
        classes = self._lexicon.event_classes(event.lemma, event.lemma, negative)
        if role != "dative":
            # With a dative the object is what is given, told or asked.
            return [] if "dative" in event.roles and event.roles["dative"] != event.roles["object"] else classes
        for preposition in ("for", "to"):
            classes += self._lexicon.event_classes(f"{event.lemma} {preposition}", event.lemma, negative)
        return [(name, flip) for name, flip in dict.fromkeys(classes) if name in _WITH_DATIVE]

    def _comparison(self, event: ParsedEvent, subject: int, partner: int) -> Iterator[tuple[str, int, int]]:
        if set(self._lexicon.qualities(event.lemma, "adj", event.negative)) & {"is_good", "is_strong"}:
            yield "surpasses", subject, partner

    def _of_pronoun(self, event: ParsedEvent) -> Iterator[str]:
        index = self._schema.pronoun.index
        role = next(name for name, filler in event.roles.items() if filler == index)
        wanting = _WANTING & {event.lemma, *event.under}
        governs = bool(self._reader.children(event.place, "xcomp")) and event.part == "verb"
        if role == "subject" and wanting and (governs or event.under):
            yield "wants_to_act"
            yield from self._minds(["wants_to_act"], event)
        if event.under and event.under[-1] == "refuse" and role == "subject":
            yield "declines"
        if (wanting and governs) or _UNREAL & set(event.under):
            return
        negative = event.negative ^ (event.degree == "less")
        classes: list[str] = []
        if role == "subject":
            classes = self._lexicon.qualities(event.lemma, event.part, negative)
            if negative and (event.modal == "can" or event.lemma in ("know", "understand")):
                classes.append("is_unable")
            classes += self._manner(event, negative)
            yield from self._minds(classes, event)
        elif role == "object" and "subject" not in event.roles:
            # Said in the passive, without an agent: "he was injured", "she was promoted".
            classes = self._lexicon.qualities(event.lemma, "listed", negative)
            classes = [name for name in classes if name in _PASSIVE]
        classes += self._projected(event, role, negative)
        yield from classes

    def _manner(self, event: ParsedEvent, negative: bool) -> list[str]:
        """`does_well` or `does_badly`, by adverbs of a verb and adjectives of its object."""
        if event.part != "verb":
            return []
        words = self._reader.children(event.place, "advmod")
        for theme in self._reader.children(event.place, "dobj"):
            words += self._reader.children(theme.index, "amod")
        manners = {
            self._lexicon.manners[word.text.casefold()]
            for word in words
            if word.text.casefold() in self._lexicon.manners
        }
        if len(manners) != 1:
            return []
        return ["does_well" if (manners == {"well"}) is not negative else "does_badly"]

    def _projected(self, event: ParsedEvent, role: str, negative: bool) -> Iterator[str]:
        # A second role, which may be the other pronoun, or any for a passive.
        for partner, _ in event.roles.items():
            if partner == role and role == "subject":
                continue
            for name, is_reversed in self._classes(event, "object" if partner == "subject" else partner, negative):
                place = self._lexicon.first if (role == "subject") is not is_reversed else self._lexicon.second
                involves_people = self._involves_candidate(event, role)
                if name in place and involves_people and role in ("subject", partner):
                    yield place[name]

    def _involves_candidate(self, event: ParsedEvent, role: str) -> bool:
        """True if the other role is a person of the sentence, or is left out by a passive."""
        others = [index for name, index in event.roles.items() if name != role]
        heads = {head.index for head in self._schema.heads}
        people = [index for index in others if index in heads or is_pronoun(self._schema.parse[index])]
        return bool(people) or (role == "object" and not others)

    def _minds(self, classes: list[str], event: ParsedEvent) -> Iterator[str]:
        if set(classes) & self._lexicon.mind_classes or event.lemma in self._lexicon.mind_words:
            yield "needs_a_mind"


_WITH_DATIVE = frozenset(("gives", "tells", "asks", "refuses", "rewards", "sanctions"))

_PASSIVE = frozenset(
    {"shows_suffering", "is_caught", "is_in_need", "is_pleased", "fails", "is_liked", "is_disliked", "is_timid"}
)
"""Qualities that a passive without agent says of its subject; those of the active voice are its agent's."""


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
    words = entity_name(option).casefold().replace("-", " - ").split()
    plural = [*words[:-1], f"{words[-1]}s"] if words else []
    texts = [token.text.casefold() for token in parse]
    for phrase in (words, plural):
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
    after = [token for token in fitting if all(token.index >= span.stop for span in spans)]
    return next(iter(after or fitting), None)


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
        for concept in kind.concepts:
            yield Atom("abstracts_to", (*own, Constant(concept)))


def _abstraction_lines(
    names: tuple[str, str], types: tuple[EntityType, EntityType], clashes: tuple[str | None, str | None], pronoun: str
) -> list[str]:
    lines = []
    for name, kind, clash in zip(names, types, clashes, strict=True):
        levels = ", ".join(kind.concepts[:6]) or "a name of unknown type"
        agreement = f"; does not agree with {pronoun!r} in {clash}" if clash else ""
        lines.append(f"abstraction: {name} is {levels}{agreement}")
    return lines


def _cheaper(first: CostedProof | None, second: CostedProof | None) -> int | None:
    if first is None or second is None:
        return 0 if first else 1 if second else None
    return None if first.cost == second.cost else int(second.cost < first.cost)


@lru_cache(maxsize=1)
def shipped_theory() -> Library:
    """The theory of this folder."""
    return load_library([RULES])
