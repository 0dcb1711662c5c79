"""A model as the mapper: it says which atoms of the theories a sentence states, and never learns the entities.

The model sees the sentence with ENTITY1 and ENTITY2, numbered as they come, so sentences that differ in their entities
alone are one question. Its reply is read strictly: lines of known atoms, one link, or `none`; anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from evaluation.winograd.data import WinogradItem
from evaluation.winograd.theories.abstraction import AbstractSentence, abstracted
from evaluation.winograd.theories.patterns import PRONOUN, Argument, PatternBook, StatedAtom
from evaluation.winograd.theories.proving import Lack, Referee, Resolution, settled
from grammar.errors import HapaxError
from grammar.rules import Library
from grammar.terms import Atom, Constant
from grammar.verbalize import atom_text
from llm_oracle.calls import JournaledGenerator
from llm_oracle.protocols import GenerationParameters, GenerationRequest

ROLE = "mapper"
"""Whose calls these are in the statistics."""

REPLY_TOKENS = 120
MOST_ATOMS = 8
"""A sentence states an event, a link and a property; what lists more than this does not map but list."""

ENTITIES = ("ENTITY1", "ENTITY2")
_LINE = re.compile(r"([a-z]\w*)\(\s*(ENTITY1|ENTITY2|PRONOUN)\s*(?:,\s*(ENTITY1|ENTITY2|PRONOUN)\s*)?\)")

_PROMPT = """Atoms that a sentence can state:
{atoms}

Which of them does the sentence below state about {first}, {second} and PRONOUN, its pronoun "{pronoun}"? Write one \
atom on each line, with {first}, {second} and PRONOUN in place of A and B, and nothing else: what happened, what is \
said of PRONOUN, and exactly one of
{links}
Do not say what the pronoun means. If the atoms cannot say what the sentence says, write: none

Sentence: {sentence}
Atoms:
"""


class UnreadableMapping(HapaxError):  # noqa: N818  # an outcome that is planned for: the item has no answer
    """A reply that is no list of the theories' atoms."""


class Vocabulary:
    """The atoms that a sentence may state: what patterns state, and what theories declare and do not derive."""

    def __init__(self, library: Library, patterns: PatternBook) -> None:
        self.links = _indicators(one.atoms for one in patterns.links)
        stated = _indicators(one.atoms for one in patterns.patterns)
        declared = [one.indicator for one in library.signatures if one.indicator not in library.derived]
        self.others = [one for one in dict.fromkeys([*stated, *declared]) if one not in self.links]
        self.library = library

    def prompt(self, sentence: AbstractSentence, pronoun: str) -> str:
        """What the model is asked. The same for sentences that differ in their entities alone."""
        names = [""] * 2
        for name, number in zip(ENTITIES, sentence.order, strict=True):
            names[number] = name
        return _PROMPT.format(
            atoms=self._listed(self.others),
            links=self._listed(self.links),
            first=ENTITIES[0],
            second=ENTITIES[1],
            pronoun=pronoun,
            sentence=sentence.shown((names[0], names[1])),
        )

    def _listed(self, indicators: Iterable[str]) -> str:
        lines = []
        for indicator in indicators:
            name, _, arity = indicator.rpartition("/")
            atom = Atom(name, tuple(Constant(letter) for letter in "AB"[: int(arity)]))
            arguments = ", ".join("AB"[: int(arity)])
            lines.append(f"{name}({arguments}): {atom_text(atom, self.library)}")
        return "\n".join(lines)

    def read(self, reply: str, sentence: AbstractSentence) -> tuple[StatedAtom, ...]:
        """The atoms of a reply; none if it says `none`. Raises UnreadableMapping."""
        lines = [line.strip() for line in reply.split("\n") if line.strip()]
        if [line.casefold() for line in lines] == ["none"]:
            return ()
        if len(lines) > MOST_ATOMS:
            raise UnreadableMapping(f"{len(lines)} lines, and {MOST_ATOMS} are the most")
        atoms = tuple(self._atom(line, sentence) for line in lines)
        self._check(atoms)
        return atoms

    def _atom(self, line: str, sentence: AbstractSentence) -> StatedAtom:
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnreadableMapping(f"{line[:60]!r} is no atom")
        places = [one for one in match.groups()[1:] if one]
        indicator = f"{match[1]}/{len(places)}"
        if indicator not in self.links and indicator not in self.others:
            raise UnreadableMapping(f"{indicator} is no atom that a sentence states")
        numbers: dict[str, Argument] = {"PRONOUN": PRONOUN, **dict(zip(ENTITIES, sentence.order, strict=True))}
        return StatedAtom(match[1], tuple(numbers[one] for one in places))

    def _check(self, atoms: tuple[StatedAtom, ...]) -> None:
        links = [one for one in atoms if f"{one.predicate}/{len(one.arguments)}" in self.links]
        if len(set(atoms)) < len(atoms):
            raise UnreadableMapping("an atom stands twice")
        if len(links) != 1 or links[0].arguments != (PRONOUN,):
            raise UnreadableMapping("it does not hold exactly one link, about PRONOUN")
        rest = [one for one in atoms if one not in links]
        if not any(PRONOUN in one.arguments for one in rest) or all(PRONOUN in one.arguments for one in rest):
            raise UnreadableMapping("it does not say both what happened and what is said of PRONOUN")


def _indicators(groups: Iterable[tuple[tuple[str, tuple[str, ...]], ...]]) -> list[str]:
    return list(dict.fromkeys(f"{name}/{len(letters)}" for atoms in groups for name, letters in atoms))


def mapped_by(
    generator: JournaledGenerator, referee: Referee, items: Iterable[WinogradItem], seed: int = 0
) -> Callable[[WinogradItem], Resolution]:
    """Asks the model about all items at once, each abstract sentence once; gives what resolves one item.

    It also resolves items that differ from these in their entities alone. Raises BudgetReached; what was answered until
    then is in the journal.
    """
    vocabulary = Vocabulary(referee.library, referee.patterns)
    sentences = [(abstracted(item.text, item.options), item.pronoun) for item in items]
    asked = list(dict.fromkeys(vocabulary.prompt(one, pronoun) for one, pronoun in sentences if one is not None))
    parameters = GenerationParameters(temperature=0.0, max_tokens=REPLY_TOKENS, seed=seed)
    replies = generator.generate([GenerationRequest(prompt) for prompt in asked], parameters)
    texts = {prompt: reply.text for prompt, reply in zip(asked, replies, strict=True)}

    def resolve(item: WinogradItem) -> Resolution:
        sentence = abstracted(item.text, item.options)
        if sentence is None:
            return Resolution(None, lack=Lack.NOT_NAMED)
        try:
            atoms = vocabulary.read(texts[vocabulary.prompt(sentence, item.pronoun)], sentence)
        except UnreadableMapping as fault:
            return Resolution(None, lack=Lack.REFUSED, detail=str(fault))
        return settled([referee.judge(atoms)]) if atoms else Resolution(None, lack=Lack.NOT_READ)

    return resolve
