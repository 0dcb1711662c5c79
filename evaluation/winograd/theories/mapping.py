"""Mapping by a model: it lists the atoms of the theories that a sentence states, and never sees the entities.

The model sees the sentence with ENTITY1 and ENTITY2, numbered by position, so sentences that differ only in their
entities share one question. Its reply is read strictly: lines of known atoms with one link, or `none`; any other reply
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.theories.abstraction import AbstractSentence, abstracted
from hapax.evaluation.winograd.theories.patterns import PRONOUN, Argument, EventPattern, PatternBook, StatedAtom
from hapax.evaluation.winograd.theories.proving import Lack, Referee, Resolution, settled
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.verbalize import atom_text
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest

ROLE = "mapper"
"""Role under which these calls are counted."""

REPLY_TOKENS = 120
MOST_ATOMS = 8
"""A sentence states an event, a link and a property; a longer reply merely repeats the list of atoms."""

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


class UnreadableMapping(HapaxError):  # noqa: N818  # an expected outcome: the item has no answer
    """A reply that is not a list of the theories' atoms."""


class Vocabulary:
    """Atoms that a sentence may state: those in patterns, and those that theories declare and do not derive."""

    def __init__(self, library: Library, patterns: PatternBook) -> None:
        self.links = _indicators(patterns.links)
        stated = _indicators(patterns.patterns)
        declared = [signature.indicator for signature in library.signatures]
        underived = [indicator for indicator in declared if indicator not in library.derived]
        self.properties = [
            indicator for indicator in dict.fromkeys([*stated, *underived]) if indicator not in self.links
        ]
        self.library = library

    def prompt(self, sentence: AbstractSentence, pronoun: str) -> str:
        """The question to the model, equal for sentences that differ only in their entities."""
        names = [""] * 2
        for name, number in zip(ENTITIES, sentence.order, strict=True):
            names[number] = name
        return _PROMPT.format(
            atoms=self._listed(self.properties),
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
        """Atoms of a reply; empty if it says `none`. Raises UnreadableMapping."""
        lines = [line.strip() for line in reply.split("\n") if line.strip()]
        if [line.casefold() for line in lines] == ["none"]:
            return ()
        if len(lines) > MOST_ATOMS:
            raise UnreadableMapping(f"{len(lines)} lines; at most {MOST_ATOMS} are allowed")
        atoms = tuple(self._atom(line, sentence) for line in lines)
        self._check(atoms)
        return atoms

    def _atom(self, line: str, sentence: AbstractSentence) -> StatedAtom:
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnreadableMapping(f"{line[:60]!r} is not an atom")
        places = [place for place in match.groups()[1:] if place]
        indicator = f"{match[1]}/{len(places)}"
        if indicator not in self.links and indicator not in self.properties:
            raise UnreadableMapping(f"{indicator} is not an atom that a sentence states")
        numbers: dict[str, Argument] = {"PRONOUN": PRONOUN, **dict(zip(ENTITIES, sentence.order, strict=True))}
        return StatedAtom(match[1], tuple(numbers[place] for place in places))

    def _check(self, atoms: tuple[StatedAtom, ...]) -> None:
        links = [atom for atom in atoms if f"{atom.predicate}/{len(atom.arguments)}" in self.links]
        if len(set(atoms)) < len(atoms):
            raise UnreadableMapping("an atom is repeated")
        if len(links) != 1 or links[0].arguments != (PRONOUN,):
            raise UnreadableMapping("it does not have exactly one link, about PRONOUN")
        # An event without the pronoun and a property of the pronoun are needed to resolve it.
        about_pronoun = [PRONOUN in atom.arguments for atom in atoms if atom not in links]
        if not any(about_pronoun) or all(about_pronoun):
            raise UnreadableMapping("it does not state both an event and a property of PRONOUN")


def _indicators(patterns: Iterable[EventPattern]) -> list[str]:
    indicators: dict[str, None] = {}
    for pattern in patterns:
        for name, letters in pattern.atoms:
            indicators[f"{name}/{len(letters)}"] = None
    return list(indicators)


def mapped_by(
    generator: JournaledGenerator, referee: Referee, items: Iterable[WinogradItem], seed: int = 0
) -> Callable[[WinogradItem], Resolution]:
    """Ask the model about all items in one batch; returns a function that resolves one item.

    The function also resolves items that differ from these only in their entities. Raises BudgetReached; earlier
    answers are in the journal then.
    """
    vocabulary = Vocabulary(referee.library, referee.patterns)
    prompts: dict[str, None] = {}
    for item in items:
        sentence = abstracted(item.text, item.options)
        if sentence is not None:
            # Equal for sentences that differ in their entities alone, which are asked once.
            prompts[vocabulary.prompt(sentence, item.pronoun)] = None
    parameters = GenerationParameters(temperature=0.0, max_tokens=REPLY_TOKENS, seed=seed)
    replies = generator.generate([GenerationRequest(prompt) for prompt in prompts], parameters)
    texts = {prompt: reply.text for prompt, reply in zip(prompts, replies, strict=True)}

    def resolve(item: WinogradItem) -> Resolution:
        sentence = abstracted(item.text, item.options)
        if sentence is None:
            return Resolution(None, lack=Lack.NOT_NAMED)
        try:
            atoms = vocabulary.read(texts[vocabulary.prompt(sentence, item.pronoun)], sentence)
        except UnreadableMapping as fault:
            return Resolution(None, lack=Lack.REFUSED, detail=str(fault))
        # Without atoms the model has answered `none`.
        return settled([referee.judge(atoms)]) if atoms else Resolution(None, lack=Lack.NOT_READ)

    return resolve
