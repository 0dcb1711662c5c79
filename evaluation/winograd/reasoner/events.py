"""Events from dependencies: who does what to whom, with polarity, modality, degree and the relation between clauses.

Voice, tense, control ("tried to", "had to"), relative clauses and adverbs vanish here: an event holds the lemma of its
predicate and its roles, whatever the sentence's form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

from hapax.evaluation.winograd.reasoner.kinds import SUBJECT_PRONOUNS
from hapax.evaluation.winograd.reasoner.parsing import Parse, Token


class ClauseRelation(StrEnum):
    """Relation of the clause of the pronoun to the event that names both entities."""

    CAUSE = "is_given_as_reason"
    RESULT = "is_given_as_result"
    CONCESSION = "is_conceded"
    CONTRAST = "is_set_against_it"
    BEFORE = "is_said_to_come_before"
    AFTER = "is_said_to_come_after"
    ADDED = "is_added"
    CONTENT = "is_told_in_it"


_AFTER_EVENT = {
    "because": ClauseRelation.CAUSE,
    "since": ClauseRelation.CAUSE,
    "as": ClauseRelation.CAUSE,
    "so": ClauseRelation.RESULT,
    "therefore": ClauseRelation.RESULT,
    "thus": ClauseRelation.RESULT,
    "hence": ClauseRelation.RESULT,
    "consequently": ClauseRelation.RESULT,
    "although": ClauseRelation.CONCESSION,
    "though": ClauseRelation.CONCESSION,
    "despite": ClauseRelation.CONCESSION,
    "but": ClauseRelation.CONTRAST,
    "however": ClauseRelation.CONTRAST,
    "yet": ClauseRelation.CONTRAST,
    "after": ClauseRelation.BEFORE,
    "when": ClauseRelation.BEFORE,
    "while": ClauseRelation.BEFORE,
    "whenever": ClauseRelation.BEFORE,
    "if": ClauseRelation.BEFORE,
    "before": ClauseRelation.AFTER,
    "until": ClauseRelation.AFTER,
    "and": ClauseRelation.AFTER,
    ".": ClauseRelation.ADDED,
    ";": ClauseRelation.ADDED,
}
"""Relations by the connective between the event and a later clause."""

_OPENING = {
    ClauseRelation.RESULT: ClauseRelation.CAUSE,
    ClauseRelation.CAUSE: ClauseRelation.RESULT,
    ClauseRelation.CONCESSION: ClauseRelation.CONTRAST,
    ClauseRelation.BEFORE: ClauseRelation.AFTER,
    ClauseRelation.AFTER: ClauseRelation.BEFORE,
}
"""The relation of the main clause if the event stands in the clause that the connective opens."""

COPULAS = frozenset({"be", "seem", "feel", "become", "get", "look", "remain", "appear", "grow", "stay", "sound"})
_CONTROLLERS = """
    ask tell order force help let make want allow persuade teach warn urge enable cause invite expect see
    hear watch encourage convince beg advise remind permit get require challenge instruct command feel find
    keep
"""
_OBJECT_CONTROL = frozenset(_CONTROLLERS.split())
"""Verbs whose object does what the complement says: "A asked B to leave"."""

_MODALS = {"can": "can", "could": "can", "ca": "can", "would": "would", "'d": "would"}
_DENIERS = frozenset({"never", "hardly", "barely", "scarcely", "nobody", "nothing", "none", "neither"})
_OBJECTS = ("dobj", "dative", "obj", "iobj", "oprd")
_SUBJECTS = ("nsubj", "csubj")


@dataclass(frozen=True, slots=True)
class ParsedEvent:
    """A predicate with its roles: indices of words by `subject`, `object`, `dative` or a preposition.

    `lemma` has a particle or the preposition of an adjective with it: `turn down`. `modal` is `can`, `would` or "",
    `degree` `too`, `more`, `less` or "". `under`: lemmas that govern it by control, such as `try`, nearest last.
    """

    place: int
    lemma: str
    part: str
    roles: dict[str, int] = field(hash=False)
    negative: bool
    modal: str
    degree: str
    under: tuple[str, ...]

    def words(self, parse: Parse) -> str:
        """The event as people read it: `lift (subject: bodybuilder, object: senior), not, can`."""
        roles = ", ".join(f"{role}: {parse[index].text}" for role, index in self.roles.items())
        marks = ["not"] if self.negative else []
        marks += [mark for mark in (self.modal, self.degree) if mark]
        marks += [f"under {lemma}" for lemma in self.under]
        return ", ".join([f"{self.lemma} ({roles})", *marks])


class EventReader:
    """Events of one parse."""

    def __init__(self, parse: Parse) -> None:
        self.parse = parse
        self._children: dict[int, list[Token]] = {token.index: [] for token in parse}
        for token in parse:
            if token.head != token.index:
                self._children[token.head].append(token)

    def events(self) -> list[ParsedEvent]:
        """All events, in the order of their predicates."""
        return list(chain.from_iterable(map(self._event, self.parse)))

    def children(self, index: int, *relations: str) -> list[Token]:
        """Dependents of a word by these relations."""
        return [child for child in self._children[index] if child.relation in relations]

    def _event(self, token: Token) -> Iterator[ParsedEvent]:
        if token.relation in ("aux", "auxpass") or not token.tag.startswith(("VB", "MD")):
            return
        complement = next(iter(self.children(token.index, "acomp", "attr", "oprd")), None)
        roles = self._roles(token)
        # "is strong and brave": each quality is an event of its own.
        if token.lemma in COPULAS and complement is not None:
            yield from self._quality(token, complement, roles)
            for joined in self.children(complement.index, "conj"):
                yield from self._quality(token, joined, roles)
            return
        lemma = " ".join([token.lemma, *(child.lemma for child in self.children(token.index, "prt"))])
        yield self._made(token, token, lemma, "verb", roles)

    def _quality(self, copula: Token, quality: Token, roles: dict[str, int]) -> Iterator[ParsedEvent]:
        part = "adj" if quality.tag.startswith(("JJ", "VB", "RB")) else "noun"
        own = {"subject": roles["subject"]} if "subject" in roles else {}
        own |= {role: index for role, index in roles.items() if role not in ("subject", "object", "dative")}
        own |= dict(self._prepositions(quality.index))
        yield self._made(copula, quality, quality.lemma, part, own)
        if part == "noun":
            for adjective in self.children(quality.index, "amod"):
                yield self._made(copula, adjective, adjective.lemma, "adj", own)

    def _made(self, verb: Token, word: Token, lemma: str, part: str, roles: dict[str, int]) -> ParsedEvent:
        near = [*self._children[verb.index], *(self._children[word.index] if word is not verb else ())]
        denied = any(child.relation == "neg" or child.lemma in _DENIERS for child in near)
        # "did not lift no stone": a second negation cancels the first.
        denied ^= any(child.relation == "det" and child.lemma == "no" for child in self._grandchildren(verb))
        modals = [child.text.casefold() for child in near if child.relation == "aux" and child.tag == "MD"]
        modal = next((_MODALS[name] for name in modals if name in _MODALS), "")
        degree = next((child.lemma for child in near if child.lemma in ("too", "more", "less")), "")
        # "stronger": a comparative without `more`.
        if word.tag in ("JJR", "RBR"):
            degree = degree or "more"
        return ParsedEvent(word.index, lemma, part, roles, denied, modal, degree, self._governors(verb))

    def _grandchildren(self, verb: Token) -> list[Token]:
        objects = self.children(verb.index, "dobj", "attr")
        return list(chain.from_iterable(self._children[child.index] for child in objects))

    def _governors(self, verb: Token) -> tuple[str, ...]:
        above: list[str] = []
        while verb.relation == "xcomp" and verb.head != verb.index:
            verb = self.parse[verb.head]
            # Outermost first, so that the nearest governor stands last.
            above.insert(0, verb.lemma)
        return tuple(above)

    def _roles(self, verb: Token) -> dict[str, int]:
        roles: dict[str, int] = {}
        passive = bool(self.children(verb.index, "nsubjpass", "auxpass"))
        subject = self._subject(verb)
        if subject is not None:
            # The grammatical subject of a passive undergoes the event.
            roles[self._stranded(verb) or "object" if passive else "subject"] = subject
        for child in self.children(verb.index, *_OBJECTS):
            if child.relation == "dative" and child.tag == "IN":
                for inner in self.children(child.index, "pobj"):
                    roles["dative"] = inner.index
            elif child.tag.startswith(("NN", "PRP", "CD", "DT", "WP")):
                role = "dative" if child.relation in ("dative", "iobj") else "object"
                # "was given a book": the object of a passive is a second one.
                roles.setdefault("theme" if passive and role == "object" else role, child.index)
        for preposition, index in self._prepositions(verb.index):
            # The agent of a passive.
            roles.setdefault("subject" if passive and preposition == "by" else preposition, index)
        if passive and "subject" not in roles:
            roles |= self._nested_agent(verb)
        return {role: self._antecedent(index) for role, index in roles.items()}

    def _stranded(self, verb: Token) -> str | None:
        """The preposition of a passive whose noun became the subject: "was laughed at by B"."""
        prepositions = self.children(verb.index, "prep")
        return next((child.lemma for child in prepositions if not self._children[child.index]), None)

    def _nested_agent(self, verb: Token) -> dict[str, int]:
        """The agent of "were refused a permit by X", which may be parsed as part of the permit."""
        for child in self.children(verb.index, "dobj", "oprd"):
            for name, index in self._prepositions(child.index):
                if name == "by":
                    return {"subject": index}
        return {}

    def _prepositions(self, index: int) -> Iterator[tuple[str, int]]:
        for child in self.children(index, "prep", "agent"):
            for inner in self.children(child.index, "pobj"):
                yield child.lemma, inner.index
            for nested in self.children(child.index, "prep"):  # "out of the box"
                for inner in self.children(nested.index, "pobj"):
                    yield f"{child.lemma} {nested.lemma}", inner.index

    def _subject(self, verb: Token) -> int | None:
        own = self.children(verb.index, *_SUBJECTS, "nsubjpass")
        if own:
            return own[-1].index
        above = self.parse[verb.head]
        # "A hit B and cried": a joined verb shares the subject of the first.
        if verb.relation == "conj" and above.tag.startswith(("VB", "MD")):
            if verb.tag == "VBN" and self.children(verb.index, "auxpass"):
                return None
            inherited = self._roles(above)
            passive = bool(self.children(above.index, "nsubjpass"))
            return inherited.get(self._stranded(above) or "object" if passive else "subject")
        # "A asked B to leave", "A tried to leave": the verb above controls whose act it is.
        if verb.relation == "xcomp" and above is not verb:
            if above.tag.startswith("JJ"):  # "eager to win"
                above = self.parse[above.head]
            roles = self._roles(above)
            if above.lemma in _OBJECT_CONTROL and "object" in roles:
                return roles["object"]
            return roles.get("subject", roles.get("object"))
        # "the man running away": the noun is the subject.
        if verb.relation in ("relcl", "acl") and verb.tag == "VBG":
            return above.index
        return None

    def _antecedent(self, index: int) -> int:
        """The noun of a relative pronoun, and the word itself otherwise."""
        token = self.parse[index]
        if token.tag not in ("WP", "WDT"):
            return index
        clause = self.parse[token.head]
        while clause.relation not in ("relcl", "ROOT") and clause.head != clause.index:
            clause = self.parse[clause.head]
        return clause.head if clause.relation == "relcl" else index


def relation_between(parse: Parse, event: int, pronoun: int) -> ClauseRelation | None:
    """Relation of the clause of the pronoun to that of the event; None if no known connective tells."""
    first, last = sorted((event, pronoun))
    between = [token for token in parse[first:last] if _joins(parse, token)]
    # The connective nearest to the later of the two joins their clauses.
    if between:
        nearest = between[-1]
        relation = _AFTER_EVENT[nearest.lemma if nearest.lemma in _AFTER_EVENT else nearest.text]
        if pronoun > event:
            return relation
        # The pronoun's clause comes first, so the relation is seen from the other side.
        return _OPENING.get(relation, relation)
    # The connective stands at the head of the first clause: "Because A hit B, he cried."
    for token in parse[:first]:
        if _joins(parse, token) and token.lemma in (
            "because",
            "since",
            "as",
            "although",
            "though",
            "when",
            "while",
            "whenever",
            "if",
            "after",
            "before",
        ):
            relation = _AFTER_EVENT[token.lemma]
            return _OPENING[relation] if pronoun > event else relation
    return None


def _joins(parse: Parse, token: Token) -> bool:
    if token.lemma not in _AFTER_EVENT and token.text not in _AFTER_EVENT:
        return False
    # Signs have relations of punctuation, so their text alone decides.
    if token.tag in (".", ":"):
        return token.lemma in _AFTER_EVENT or token.text in _AFTER_EVENT
    # "so weak", "as well", "after lunch" join no clauses; the parser's relation tells.
    adverb = token.relation == "advmod" and parse[token.head].tag.startswith(("VB", "MD"))
    if token.relation == "cc":
        # "John and Mary" joins no clauses either.
        return parse[token.head].tag.startswith(("VB", "MD", "JJ"))
    return token.relation == "mark" or adverb


def is_pronoun(token: Token) -> bool:
    """True for third-person pronouns."""
    return token.text.casefold() in SUBJECT_PRONOUNS
