"""Atoms that a sentence states: the event between its entities, the relation of the clauses, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hapax.evaluation.winograd.reasoner.events import (
    COPULAS,
    ClauseRelation,
    EventReader,
    ParsedEvent,
    is_pronoun,
    relation_between,
)
from hapax.evaluation.winograd.reasoner.kinds import SUBJECT_PRONOUNS
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses
from hapax.evaluation.winograd.reasoner.parsing import Parse, Token
from hapax.evaluation.winograd.reasoner.roles import CORE, OWNED, base_role, last_marker, role_of
from hapax.grammar.terms import Atom, Constant

WANTING = frozenset({"want", "try", "hope", "wish", "intend", "plan", "need", "attempt", "decide", "like"})
UNREAL = WANTING | {"refuse", "fail", "expect", "hesitate", "claim", "pretend", "threaten"}
"""Governors under which what follows has not happened."""

WISHING = frozenset(
    {"want", "hope", "wish", "expect", "need", "like", "prefer", "love", "desire", "let", "help", "make"}
)
"""Verbs by which somebody wants something of another one: "wanted her to stay"."""

ELSEWHERE = "elsewhere"
"""Role of an entity that is named beside the event of the other one."""

ANY_EVENT = "does_something_to"
"""Class of every event with a subject and another role, whatever the verb."""

_LIGHT = frozenset(
    {"have", "get", "own", "show", "possess", "suffer", "catch", "use", "bring", "carry", "gain", "display"}
)
"""Verbs whose object tells what is said of the subject: "had a cold"."""
_WITH_DATIVE = frozenset(("gives", "sells", "tells", "asks", "refuses", "rewards", "sanctions", "helps"))

_PASSIVE = frozenset(
    {
        "shows_suffering",
        "is_caught",
        "is_in_need",
        "is_pleased",
        "fails",
        "is_liked",
        "is_disliked",
        "is_timid",
        "is_lucky",
        "is_praised",
        "is_turned_away",
        "is_damaged",
    }
)
"""Qualities that a passive without agent says of its subject; those of the active voice are its agent's."""

_OF_THE_OBJECT = frozenset({"is_caught", "gets_away", "is_liked", "is_disliked", "shows_suffering"})
"""Qualities that a transitive verb says of its object alone."""

_LITTLE = frozenset({"less", "fewer", "few", "little", "least", "fewest"})
"""Words by which there is little of an object."""

_DENIALS = frozenset({"no", "never"})
_ASKING = frozenset({"ask", "wonder", "know", "see", "inquire", "question", "doubt", "tell", "find", "check"})
"""Verbs after which "if" opens what is asked or told."""

_OF_SIZE = frozenset({"is_big", "is_small", "is_heavy", "is_low", "is_frightening"})
"""Qualities that say nothing of somebody who is a help, a problem or another abstraction of that size."""

_BEARING = frozenset({"bear", "stand", "take", "tolerate", "stomach", "resist", "help", "see", "wait", "believe"})
"""Verbs that tell of feelings, not of abilities, after "could not"."""

_STRONGLY = frozenset({"need", "want", "hurt", "injure", "wound", "miss"})
"""Verbs with which "badly" means very much."""

_FEEDING = frozenset(
    {"feed", "serve", "supply", "equip", "pay", "treat", "water", "provide", "award", "reward", "tip", "fund", "spoil"}
)
"""Verbs of giving whose object is the one who gets something, and not what is given."""

TRYING = frozenset({"try", "attempt"})
"""Governors that tell of an act, which others may answer, and not of a wish alone."""


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """A parsed sentence with its two entities, as head word and span, and the pronoun."""

    parse: Parse
    heads: tuple[Token, Token]
    spans: tuple[range, range]
    pronoun: Token


class SentenceStatements:
    """Atoms that a sentence states, over candidates. `main`: the event between them, by number of first and second."""

    def __init__(self, schema: ParsedSchema, events: list[ParsedEvent], lexicon: WordClasses) -> None:
        self._schema, self._lexicon = schema, lexicon
        self._reader = EventReader(schema.parse)
        heads = {head.index: number for number, head in enumerate(schema.heads)}
        self.mentioned = {*heads, schema.pronoun.index}
        self.main: list[tuple[str, int, int]] = []
        self.said: list[str] = []
        self.relation: ClauseRelation | None = None
        place = None
        for event, roles in self._main_events(events):
            for name, first, second in self._between(event, roles):
                self.main.append((name, first, second))
                place = event.place
        if place is not None:
            self.relation = self._relation(place)
        for event in events:
            role = role_of(schema.parse, event, schema.pronoun.index)
            if role is not None and event.place != place:
                self.said += self._of_pronoun(event, role)
        self.main, self.said = list(dict.fromkeys(self.main)), list(dict.fromkeys(self.said))

    def atoms(self, names: tuple[str, str], candidate: int | None) -> list[Atom]:
        """The atoms with this candidate in the pronoun's place; without, they say `the pronoun`, for people to read."""
        meant = Constant("the pronoun" if candidate is None else names[candidate])
        atoms = [Atom(name, (Constant(names[first]), Constant(names[second]))) for name, first, second in self.main]
        if self.relation is not None and self.main:
            atoms.append(Atom(self.relation, (meant,)))
        return [*atoms, *(Atom(name, (meant,)) for name in self.said)]

    @property
    def classified(self) -> bool:
        """True if the event between the entities has a class of the lexicon."""
        return any(name != ANY_EVENT for name, _, _ in self.main)

    def _relation(self, place: int) -> ClauseRelation | None:
        """Relation of the pronoun's clause to the event: what is told, or as the connective says."""
        parse, token = self._schema.parse, self._schema.pronoun
        # Up the tree to the clause that hangs on the event.
        while token.head not in (token.index, place):
            token = parse[token.head]
        if token.head == place and token.index > place:
            # "Asked if they could" may be parsed as a condition of asking.
            asked = parse[place].lemma in _ASKING and any(
                child.lemma == "if" for child in self._reader.children(token.index, "mark")
            )
            if token.relation == "ccomp" or asked:
                return ClauseRelation.CONTENT
        return relation_between(parse, place, self._schema.pronoun.index)

    # --- the event between the entities ---

    def _main_events(self, events: list[ParsedEvent]) -> list[tuple[ParsedEvent, tuple[str, str]]]:
        """Events in which both entities have roles of their own, and the roles; direct roles are preferred."""
        found = []
        for event in events:
            # What is said of the pronoun is no event between the entities.
            if self._schema.pronoun.index in event.roles.values():
                continue
            first, second = (role_of(self._schema.parse, event, head.index) for head in self._schema.heads)
            if first is not None and second is not None and first != second:
                found.append((event, (first, second)))
        # An entity inside another's phrase, as an owner, takes part less directly.
        direct = [(event, roles) for event, roles in found if not any(map(last_marker, roles))]
        return direct or found[:1] or self._compared(events) or self._instrument(events) or self._loose_event(events)

    def _than(self) -> Token | None:
        """The word before what something is compared with; "then" is a common misspelling."""
        return next(
            (token for token in self._schema.parse if token.lemma in ("than", "then") and token.tag == "IN"), None
        )

    def _compared(self, events: list[ParsedEvent]) -> list[tuple[ParsedEvent, tuple[str, str]]]:
        """A comparison by its word order, where the parser hangs `than` elsewhere: "sells better than B"."""
        than = self._than()
        if than is None:
            return []
        first, second = (head.index > than.index for head in self._schema.heads)
        before = [event for event in events if event.place < than.index]
        if first is second or not before or self._schema.pronoun.index < than.index:
            return []
        return [(before[-1], ("than", "subject") if first else ("subject", "than"))]

    def _instrument(self, events: list[ParsedEvent]) -> list[tuple[ParsedEvent, tuple[str, str]]]:
        """The deed of somebody with one entity upon the other: "used the axe to cut the tree"."""
        parse = self._schema.parse
        first, second = (head.index for head in self._schema.heads)
        tools = {
            event.roles["object"]: event.place for event in events if event.lemma == "use" and "object" in event.roles
        }
        for event in events:
            patient = event.roles.get("object")
            for tool, target in ((first, second), (second, first)):
                if patient == target and tools.get(tool) == parse[event.place].head:
                    return [(event, ("with", "object") if tool == first else ("object", "with"))]
        return []

    def _loose_event(self, events: list[ParsedEvent]) -> list[tuple[ParsedEvent, tuple[str, str]]]:
        """An event with one entity as its subject, where the other one is named elsewhere, as no subject."""
        first, second = (head.index for head in self._schema.heads)
        pronoun = self._schema.pronoun.index
        # Reversed, so that the first event of each subject is the one that stays.
        subjects = {event.roles.get("subject"): event for event in reversed(events) if event.part == "verb"}
        if (first in subjects) is (second in subjects) or (first < pronoun) is not (second < pronoun):
            return []
        event = subjects[first if first in subjects else second]
        return [(event, ("subject", ELSEWHERE) if first in subjects else (ELSEWHERE, "subject"))]

    def _between(self, event: ParsedEvent, roles: tuple[str, str]) -> Iterator[tuple[str, int, int]]:
        # "refused to help" denies the help, "did not refuse to help" affirms it.
        negative = event.negative ^ ("fail" in event.under or "refuse" in event.under)
        subject = next((number for number in (0, 1) if base_role(roles[number]) == "subject"), None)
        if subject is None:
            yield from self._between_themes(event, roles)
            return
        partner, role = 1 - subject, roles[1 - subject]
        if base_role(role) == "subject":
            return
        if role == "than":
            yield from self._comparison(event, subject, partner)
            return
        if event.part == "verb" and event.lemma not in ("be", "have"):
            yield ANY_EVENT, subject, partner
        for name, is_reversed in self._classes(event, role, negative):
            yield (name, partner, subject) if is_reversed else (name, subject, partner)

    def _between_themes(self, event: ParsedEvent, roles: tuple[str, str]) -> Iterator[tuple[str, int, int]]:
        """Events of somebody else: "prefer A to B"."""
        if "object" in roles:
            yield from self._between_object(event, roles)
        if event.lemma in ("prefer", "choose", "pick", "favor", "like", "love", "select", "enjoy", "use"):
            for number in (0, 1):
                if roles[number] == "object" and roles[1 - number] in ("to", "over", "than", "instead of"):
                    yield ("surpasses", 1 - number, number) if event.negative else ("surpasses", number, 1 - number)

    def _between_object(self, event: ParsedEvent, roles: tuple[str, str]) -> Iterator[tuple[str, int, int]]:
        """An object with a tool, a place or a receiver: "cut B with A", "put A into B", "gave A to B"."""
        theme = roles.index("object")
        partner, role = 1 - theme, roles[1 - theme]
        if role == "with":
            # What is done with a tool is what the tool does.
            yield ANY_EVENT, partner, theme
            classes = self._classes(event, "object", event.negative)
            yield from ((name, partner, theme) for name, flip in classes if not flip and name in _BY_TOOLS)
        elif classes := self._of_participle(event, role):
            yield from ((name, theme, partner) for name, _ in classes)
        elif role in ("to", "dative"):
            yield "goes_to", theme, partner
        else:
            classes = self._lexicon.event_classes(f"{event.lemma} {role}", "", event.negative)
            yield from ((name, theme, partner) for name, _ in classes if name in ("fits", "does_not_fit"))

    def _of_participle(self, event: ParsedEvent, role: str) -> list[tuple[str, bool]]:
        """Classes of "A is attracted to B", which is parsed as a passive without agent."""
        word = self._schema.parse[event.place]
        if word.tag != "VBN" or "subject" in event.roles:
            return []
        return self._lexicon.event_classes(f"{word.text.casefold()} {role}", "", event.negative)

    def _classes(self, event: ParsedEvent, role: str, negative: bool) -> list[tuple[str, bool]]:
        """Classes of an event between its subject and this role: by whole phrases first, then by its words."""
        for entry in self._event_phrases(event, role):
            if classes := self._lexicon.event_classes(entry, "", negative):
                return classes
        return self._by_words(event, role, negative)

    def _by_words(self, event: ParsedEvent, role: str, negative: bool) -> list[tuple[str, bool]]:
        lexicon = self._lexicon
        marker = last_marker(role)
        if marker and base_role(role) in CORE and marker not in (OWNED, "of"):
            role = marker  # "read a book to B" may be parsed as a book to B
        elif marker in (OWNED, "of") and base_role(role) == "object":
            owned = self._schema.parse[event.roles["object"]].lemma
            classes = lexicon.event_classes(event.lemma, event.lemma, negative)
            # "Broke Tom's heart", "took care of Tom": the phrase tells before its verb.
            return lexicon.event_classes(f"{event.lemma} {owned} of", "", negative) or [
                (name, flip) for name, flip in classes if name in _BY_OWNED
            ]
        elif marker == OWNED and base_role(role) not in CORE:  # "paid for B's education"
            classes = self._classes(event, base_role(role), negative)
            return [(name, flip) for name, flip in classes if name in _BY_OWNED]
        if role not in CORE:
            patient = self._schema.parse[event.roles["object"]].lemma if "object" in event.roles else ""
            classes = lexicon.event_classes(f"{event.lemma} {patient} {role}", "", negative)
            classes = classes or lexicon.event_classes(f"{event.lemma} {role}", event.lemma, negative)
            if not classes and role == "for" and event.part == "verb":
                return [("refuses" if negative else "helps", False)]
            return classes
        classes = lexicon.event_classes(event.lemma, event.lemma, negative)
        if role != "dative":
            # "Gave William money" may be parsed as one phrase; an entity that is the object itself is what is given.
            if event.roles.get("object") in self.mentioned and not ("theme" in event.roles or event.lemma in _FEEDING):
                classes = [(name, flip) for name, flip in classes if name not in ("gives", "sells")]
            # With a dative the object is what is given, told or asked.
            return [] if "dative" in event.roles and event.roles["dative"] != event.roles["object"] else classes
        for preposition in ("for", "to"):
            classes += lexicon.event_classes(f"{event.lemma} {preposition}", event.lemma, negative)
        return [(name, flip) for name, flip in dict.fromkeys(classes) if name in _WITH_DATIVE]

    def _event_phrases(self, event: ParsedEvent, role: str) -> Iterator[str]:
        """Phrases around the partner that may be listed: "run away from B", "put B in jail", "keep B company"."""
        parse, base, marker = self._schema.parse, base_role(role), last_marker(role)
        children = self._reader.children
        if marker and base not in CORE and base in event.roles:
            # "Gets on B's nerves" is "get on nerve of".
            yield f"{event.lemma} {base} {parse[event.roles[base]].lemma} {'of' if marker == OWNED else marker}"
        # The parser takes "away" for an adverb, not for a particle as "up"; "speak highly of B" has one as well.
        ways = [child.lemma for child in children(event.place, "advmod", "acomp", "oprd")]
        preposition = marker if marker not in ("", OWNED) else role
        yield from (f"{event.lemma} {way}" + ("" if role in CORE else f" {preposition}") for way in ways)
        if role not in CORE:
            # "Is terrified of B" is listed as it stands; its lemma is "terrify".
            if parse[event.place].tag == "VBN":
                yield f"{parse[event.place].text.casefold()} {preposition}"
            return
        for name, index in event.roles.items():
            if name not in (role, "subject") and index not in self.mentioned:
                within = "" if name in (*CORE, "theme") else f" {name}"
                phrase = f"{event.lemma}{within} {parse[index].lemma}"
                yield from (phrase, f"{phrase} to") if role == "dative" else (phrase,)

    def _comparison(self, event: ParsedEvent, subject: int, partner: int) -> Iterator[tuple[str, int, int]]:
        """Who surpasses whom by a comparative: `better`, `more famous`, `less noise`."""
        qualities, degrees = set[str](), set[str]()
        than = self._than()
        for token in self._schema.parse[: than.index if than is not None else None]:
            if token.tag in ("JJR", "RBR") or token.lemma in ("more", "less", "few"):
                head = self._schema.parse[token.head]
                word = head if token.lemma in ("more", "less", "few", "many", "much", "little") else token
                degrees.add("less" if token.lemma in ("less", "few", "little") else "more")
                qualities |= set(self._lexicon.qualities(word.lemma, "adj", False))
                qualities |= (
                    {f"does_{self._lexicon.manners[word.text.casefold()]}"}
                    if word.text.casefold() in self._lexicon.manners
                    else set()
                )
        better, worse = bool(qualities & _BETTER), bool(qualities & _WORSE)
        if qualities & _LOW_ENDS and not better:
            degrees = {"less" if degree == "more" else "more" for degree in degrees}
            worse = False
        if qualities & _OF_TASTE:
            better = worse = False
        if not degrees or (better and worse):
            return
        # "not more" and "less" point downwards, "not less" upwards.
        upward = (degrees == {"more"}) is not event.negative
        if better or worse:
            upward = upward is better
            yield ("surpasses", subject, partner) if upward else ("surpasses", partner, subject)
        else:
            yield ("exceeds", subject, partner) if upward else ("exceeds", partner, subject)

    # --- what is said of the pronoun ---

    def _of_pronoun(self, event: ParsedEvent, role: str) -> Iterator[str]:
        wanting = WANTING & {event.lemma, *event.under}
        governs = bool(self._reader.children(event.place, "xcomp")) and event.part == "verb"
        if role == "subject" and wanting and (governs or event.under):
            yield "tries_to_act" if wanting <= TRYING else "wants_to_act"
            yield from self._minds(["wants_to_act"], event)
        if event.under and event.under[-1] == "refuse" and role == "subject":
            yield "declines"
        if role == "subject":
            yield from self._obligation(event)
            yield from self._conduct(event)
        if (wanting and governs) or self._is_unreal(event):
            return
        # "not less strong" is strong.
        negative = event.negative ^ (event.degree == "less" or self._is_little(event))
        classes: list[str] = []
        if role == "subject":
            classes = self._of_subject(event, negative)
            yield from self._minds(classes, event)
        elif role == f"subject/{OWNED}":
            classes = self._qualities(event, negative) + self._manner(event, negative)
        elif role == "object":
            classes = list(self._undergone(event, negative))
        if role in event.roles:
            classes += self._projected(event, role, negative)
        yield from classes

    @staticmethod
    def _is_unreal(event: ParsedEvent) -> bool:
        """True of what is wanted or would be: it need not be so. "Would not" tells of a refusal."""
        return bool(UNREAL & set(event.under)) or (event.modal == "would" and not event.negative)

    def _of_subject(self, event: ParsedEvent, negative: bool) -> list[str]:
        """Qualities and manner of the subject, and whether it is unable."""
        classes = self._qualities(event, negative)
        word = self._schema.parse[event.place]
        if word.relation == "amod" and self._is_no_possession(self._schema.parse[word.head]):
            # "A big help" is not big.
            classes = [name for name in classes if name not in _OF_SIZE]
        if "have" in event.under:
            # "Had to be content with silver" tells of no pleasure.
            classes = [name for name in classes if name != "is_pleased"]
        tells_of_ability = event.modal == "can" and event.lemma not in _BEARING
        if negative and (tells_of_ability or event.lemma in ("know", "understand")):
            classes.append("is_unable")
        return classes + self._manner(event, negative)

    def _is_little(self, event: ParsedEvent) -> bool:
        """True if there is little of the object: "makes less noise", but not "has a little money"."""
        if "object" not in event.roles:
            return False
        near = self._reader.children(event.roles["object"], "amod", "det", "quantmod", "nummod", "advmod")
        texts = {child.text.casefold() for child in near}
        return bool(texts & _LITTLE) and "a" not in texts

    def _obligation(self, event: ParsedEvent) -> Iterator[str]:
        """The duty or permission of the subject by an auxiliary or governor."""
        modals = {child.text.casefold() for child in self._reader.children(event.place, "aux")}
        if modals & {"should", "must"} or (event.under and event.under[0] in ("have", "need", "ought")):
            yield "has_to_act"
        if modals & {"could", "can", "may", "might"}:
            yield "may_act"

    def _conduct(self, event: ParsedEvent) -> Iterator[str]:
        """The deed of the subject by the form of its clause alone, whatever the verb says."""
        if event.part == "verb" and event.lemma not in ("be", "have"):
            tags = {child.tag for child in self._reader.children(event.place, "aux") if child.lemma in ("have", "be")}
            if event.negative and not event.modal:
                yield "leaves_it_undone"
            elif self._schema.parse[event.place].tag == "VBN" and tags:
                yield "has_acted"
            elif self._schema.parse[event.place].tag == "VBG" and tags:
                yield "is_about_it"
            if event.negative and event.modal == "would":
                yield "will_not_do_it"
        if event.lemma in WISHING and any(self._means_the_other(index) for index in self._wanted(event)):
            yield "wants_it_of_the_other"
        if any(self._means_the_other(index) for index in event.roles.values()):
            yield "acts_on_the_other"
        if event.degree:
            yield f"is_{event.degree}_so"

    def _wanted(self, event: ParsedEvent) -> Iterator[int]:
        """Subjects of what is wanted: "wants them to come"."""
        for clause in self._reader.children(event.place, "ccomp", "xcomp"):
            yield from (child.index for child in self._reader.children(clause.index, "nsubj"))
            if "object" in event.roles:
                yield event.roles["object"]

    def _means_the_other(self, index: int) -> bool:
        """True for a pronoun that can mean the other entity, as one of the same number and kind, and for an entity."""
        token, pronoun = self._schema.parse[index], self._schema.pronoun
        if not is_pronoun(token):
            return any(token.index == head.index for head in self._schema.heads)
        return (
            index != pronoun.index
            and SUBJECT_PRONOUNS[token.text.casefold()] == (SUBJECT_PRONOUNS[pronoun.text.casefold()])
        )

    def _undergone(self, event: ParsedEvent, negative: bool) -> Iterator[str]:
        """Statements about somebody to whom a third party, or nobody named, does something: "she was promoted"."""
        parse, lexicon = self._schema.parse, self._lexicon
        classes: list[str] = []
        if self._means_the_other(event.roles.get("subject", event.roles["object"])):
            yield "is_acted_on_by_the_other"
        for name, index in event.roles.items():
            if name not in CORE:
                classes += lexicon.qualities(f"{name} {parse[index].lemma}", "phrase", negative)
        if "subject" not in event.roles:
            classes += lexicon.qualities(event.lemma, "participle", negative)
        for phrase in self._participle_phrases(event):
            yield from lexicon.qualities(phrase, "phrase", negative)
        yield from (name for name in classes if name in _PASSIVE)

    def _participle_phrases(self, event: ParsedEvent) -> Iterator[str]:
        """Phrases that may be listed as they stand: "accused of", "forced to", "knocked out"."""
        word, children = self._schema.parse[event.place], self._reader.children
        if word.tag == "VBN":
            text = word.text.casefold()
            yield from (f"{text} {name}" for name in event.roles if name not in CORE)
            yield from (f"{text} {child.lemma}" for child in children(word.index, "prt", "advmod"))
            if children(word.index, "xcomp"):
                yield f"{text} to"

    def _phrases(self, event: ParsedEvent) -> Iterator[str]:
        """Whole phrases that the lexicon may list, those with most words first."""
        parse, children = self._schema.parse, self._reader.children
        above = parse[parse[event.place].head]
        if event.part != "verb" and above.lemma != "be" and above.lemma in COPULAS:
            yield f"{above.lemma} {event.lemma}"  # who feels guilty need not be guilty
        yield from (f"{child.lemma} {event.lemma}" for child in children(event.place, "advmod", "neg"))
        yield from self._object_phrases(event)
        within = [(name, index) for name, index in event.roles.items() if name not in CORE]
        for name, index in within:
            yield f"{event.lemma} {name} {parse[index].lemma}"
            for adjective in children(index, "amod", "compound"):  # "in a bad mood"
                yield f"{name} {adjective.lemma} {parse[index].lemma}"
        yield from (f"{name} {parse[index].lemma}" for name, index in within)
        yield from (f"{event.lemma} {name}" for name, _ in within)
        for child in children(event.place, "advmod", "acomp"):
            if self._is_too_much(child):
                yield f"{event.lemma} too {child.lemma}"
            yield f"{event.lemma} {child.lemma}"
        yield from (f"{child.lemma} {event.lemma}" for child in children(event.place, "compound", "amod"))

    def _object_phrases(self, event: ParsedEvent) -> Iterator[str]:
        parse, children = self._schema.parse, self._reader.children
        if "object" not in event.roles:
            return
        patient = parse[event.roles["object"]]
        if any(child.lemma == "no" for child in children(patient.index, "det")):
            yield f"{event.lemma} no {patient.lemma}"
        for amount in (patient, *children(patient.index, "amod")):
            if self._is_too_much(amount):  # "ate too much", "has too many toys"
                yield f"{event.lemma} too {amount.lemma}"
        for adjective in children(patient.index, "amod", "compound"):
            yield f"{event.lemma} {adjective.lemma} {patient.lemma}"
            # "Had a bad knee", "with a bad knee": what is had is said.
            if event.lemma in _LIGHT:
                yield f"{adjective.lemma} {patient.lemma}"
        yield f"{event.lemma} {patient.lemma}"

    def _is_too_much(self, word: Token) -> bool:
        return any(child.lemma == "too" for child in self._reader.children(word.index, "advmod"))

    def _qualities(self, event: ParsedEvent, negative: bool) -> list[str]:
        """Classes of what is said of the subject: by whole phrases first, then by the word."""
        parse, lexicon = self._schema.parse, self._lexicon
        for phrase in self._phrases(event):
            # A listed phrase says what it says, and its denial nothing that its words would say.
            if lexicon.qualities(phrase, "phrase", False):
                # "Has no home" is not the denial of a phrase that has the "no" in it.
                return lexicon.qualities(phrase, "phrase", negative ^ bool(_DENIALS.intersection(phrase.split())))
        if event.lemma in _LIGHT and "object" in event.roles:
            patient = parse[event.roles["object"]]
            # "Owns one": only nouns say what is had.
            part = "noun" if patient.tag.startswith("NN") else "listed"
            classes = lexicon.qualities(patient.lemma, part, negative)
            for adjective in self._reader.children(patient.index, "amod"):
                classes += lexicon.qualities(adjective.lemma, "adj", negative)
            if classes:
                return classes
        if event.part == "verb":
            classes = lexicon.qualities(event.lemma, event.part, negative)
            has_object = "object" in event.roles and event.lemma != "suffer"
            if has_object and event.lemma == "have" and self._is_no_possession(parse[event.roles["object"]]):
                classes = [name for name in classes if name not in ("has_it", "is_in_need")]
            # Who catches somebody is not caught.
            return [name for name in classes if not has_object or name not in _OF_THE_OBJECT]
        # "better" and "bored" are listed as they stand; their lemmas are "well" and "bore".
        own = lexicon.qualities(parse[event.place].text.casefold(), "listed", negative) or lexicon.qualities(
            event.lemma, event.part, negative
        )
        # Who is too weak is weak as well as unable.
        return own + lexicon.qualities(f"{event.degree} {event.lemma}", "phrase", negative) if event.degree else own

    def _is_no_possession(self, noun: Token) -> bool:
        """True for what can be had without being owned: "had orders", "had an idea"."""
        chain = next(iter(self._lexicon.wordnet.kinds(noun.lemma, 1)), ()) if noun.tag.startswith("NN") else ()
        return "abstraction" in chain and "possession" not in chain

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
            if word.text.casefold() in self._lexicon.manners and word.text.casefold() not in _LITTLE
        }
        if event.lemma in _STRONGLY:
            manners.discard("badly")
        # "well" beside "badly" says neither.
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
        """True if the other role is a person of the sentence, or the pronoun has the object's role."""
        others = [index for name, index in event.roles.items() if name != role]
        heads = {head.index for head in self._schema.heads}
        return role == "object" or any(index in heads or self._means_the_other(index) for index in others)

    def _minds(self, classes: list[str], event: ParsedEvent) -> Iterator[str]:
        if set(classes) & self._lexicon.mind_classes or event.lemma in self._lexicon.mind_words:
            yield "needs_a_mind"
        if set(classes) & self._lexicon.object_classes:
            yield "suits_an_object"


_BY_OWNED = frozenset({"harms", "sanctions", "helps", "rewards", "likes", "dislikes", "copies", "refuses", "envies"})
"""Classes that hold of an owner where the event is done to what is owned: "praised Tom's book"."""

_BY_TOOLS = frozenset(
    {"damages", "harms", "discards", "lifts", "reaches", "cannot_damage", "cannot_lift", "cannot_reach"}
)
"""Classes that hold of a tool where somebody does something with it."""

_LOW_ENDS = frozenset({"is_small", "is_low"})
"""Qualities of which more is less: "lighter"."""

_OF_TASTE = frozenset({"is_costly", "is_frightening"})
"""Qualities of which more is neither better nor worse by itself: "more expensive"."""

_BETTER = frozenset(
    {
        "is_good",
        "is_strong",
        "succeeds",
        "is_fun",
        "is_lucky",
        "is_liked",
        "is_tasty",
        "knows_it",
        "is_cheap",
        "is_sturdy",
        "does_well",
    }
)
_WORSE = frozenset(
    {"is_bad", "is_weak", "fails", "is_dull", "is_in_need", "is_disliked", "is_costly", "is_fragile", "does_badly"}
)
