"""The referent of a pronoun, proved: each entity is tried in its abstract role, and one alone may have a proof.

What a sentence states is assumed of roles (`cannot_lift("the lifter", "the load")`), named after the types that the
theory declares. Then the pronoun is taken for either role. The referent is the entity of whose role alone the theories
prove that it is meant; both, or neither, is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from engine.explain import prove
from engine.proof import proof_text
from engine.query import Theory
from engine.session import PrologSession
from evaluation.winograd.theories.abstraction import abstracted
from evaluation.winograd.theories.patterns import PRONOUN, Argument, PatternBook, StatedAtom, load_patterns
from grammar.errors import HapaxError
from grammar.parser import load_library
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import Atom, BodyLiteral, Constant, Literal
from grammar.verbalize import atom_text, literal_text
from kb.store import KnowledgeBase

FOLDER = Path(__file__).parent
"""Where the shipped theories (`*.rules`) and patterns (`*.toml`) lie."""

MEANT = "is_meant"
"""The predicate that a theory derives of the role which the pronoun means."""


class Lack(StrEnum):
    """Why a sentence has no answer."""

    NOT_NAMED = "an option does not stand in the sentence"
    NOT_READ = "no pattern reads the sentence"
    OTHER_PRONOUN = "the patterns read another pronoun than the one asked for"
    NOT_PROVED = "the theories prove neither candidate"
    BOTH_PROVED = "the theories prove both candidates"
    AMBIGUOUS = "two readings of the sentence disagree"
    REFUSED = "the model's mapping was refused"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the theories say of one reading: the roles, what is assumed, and for each candidate its proof or None."""

    roles: tuple[str, str]
    assumed: tuple[str, ...]
    proofs: tuple[str | None, str | None]

    @property
    def meant(self) -> int | None:
        """The candidate that alone has a proof."""
        proved = [number for number, proof in enumerate(self.proofs) if proof is not None]
        return proved[0] if len(proved) == 1 else None

    @property
    def lack(self) -> Lack:
        """Why there is no answer, if there is none."""
        return Lack.BOTH_PROVED if all(self.proofs) else Lack.NOT_PROVED


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer to one sentence, with its judgement, or what was lacking."""

    answer: int | None
    judgement: Judgement | None = None
    lack: Lack | None = None
    detail: str = ""

    def lines(self, options: tuple[str, str]) -> list[str]:
        """The resolution in words: abstraction, assumptions, the two attempts, the answer."""
        if self.judgement is None:
            return [f"no answer: {self.lack}{f' ({self.detail})' if self.detail else ''}"]
        judged = self.judgement
        named = ", ".join(f"{one} is {role}" for one, role in zip(options, judged.roles, strict=True))
        lines = [f"abstraction: {named}", "the sentence states: " + "; ".join(judged.assumed)]
        for role, proof in zip(judged.roles, judged.proofs, strict=True):
            lines += [f"if the pronoun is {role}:"]
            lines += [f"  {line}" for line in (proof or "no proof").splitlines()]
        end = f"no answer: {self.lack}" if self.answer is None else f"the pronoun is {options[self.answer]}"
        return [*lines, end]


class Referee:
    """Proves readings. Use it as a context manager: Prolog runs in a process of its own."""

    def __init__(self, library: Library | None = None, patterns: PatternBook | None = None) -> None:
        self.library = shipped_theories() if library is None else library
        self.patterns = shipped_patterns() if patterns is None else patterns
        unknown = [one for pattern in self.patterns.patterns for one in _unknown(pattern.atoms, self.library)]
        if unknown:
            raise HapaxError(f"The patterns state {unknown[0]}, which no theory declares. Declare it in a rule file.")
        if f"{MEANT}/1" not in self.library.derived:
            raise HapaxError(f"No theory concludes {MEANT}(Object P). Add the rules that say when a role is meant.")
        self._kb = KnowledgeBase()
        self._session = PrologSession()
        self._judged: dict[tuple[StatedAtom, ...], Judgement] = {}

    def __enter__(self) -> Referee:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._kb.close()

    def resolve(self, text: str, options: tuple[str, str], pronoun: str = "") -> Resolution:
        """The referent by the patterns. `pronoun`: the word asked for; it matters where the sentence has it."""
        sentence = abstracted(text, options)
        if sentence is None:
            return Resolution(None, lack=Lack.NOT_NAMED)
        readings = self.patterns.readings(sentence)
        if not readings:
            return Resolution(None, lack=Lack.NOT_READ)
        fitting = [one for one in readings if one.pronoun == pronoun.casefold() or not sentence.has(pronoun)]
        if not fitting:
            return Resolution(None, lack=Lack.OTHER_PRONOUN)
        return settled([self.judge(one.atoms) for one in fitting])

    def judge(self, atoms: tuple[StatedAtom, ...]) -> Judgement:
        """Both candidates tried. Equal atoms are proved once."""
        judged = self._judged.get(atoms)
        if judged is None:
            judged = self._judged[atoms] = self._tried(atoms)
        return judged

    def _tried(self, atoms: tuple[StatedAtom, ...]) -> Judgement:
        roles = roles_of(atoms, self.library)
        said = tuple(atom_text(_atom(one, (*roles, "the pronoun")), self.library) for one in atoms)
        first, second = (self._proof(atoms, roles, candidate) for candidate in roles)
        return Judgement(roles, said, (first, second))

    def _proof(self, atoms: tuple[StatedAtom, ...], roles: tuple[str, str], candidate: str) -> str | None:
        """The proof in words that the pronoun means this candidate, if it is taken to mean it."""
        assumed = tuple(_atom(one, (*roles, candidate)) for one in atoms)
        theory = Theory(within_reach(self.library, atoms), self._kb, assumed)
        proof = prove(theory, Atom(MEANT, (Constant(candidate),)), self._session)
        return None if proof is None else proof_text(proof, self._words)

    def _words(self, goal: BodyLiteral) -> str:
        return literal_text(goal, self.library) if isinstance(goal, Literal) else str(goal)


def settled(judgements: list[Judgement]) -> Resolution:
    """The answer of several judgements of one sentence: those that find a referent must find the same one."""
    deciding = [one for one in judgements if one.meant is not None]
    if not deciding:
        return Resolution(None, judgements[0], judgements[0].lack)
    if len({one.meant for one in deciding}) > 1 or any(one.lack is Lack.BOTH_PROVED for one in judgements):
        return Resolution(None, deciding[0], Lack.AMBIGUOUS)
    return Resolution(deciding[0].meant, deciding[0])


def within_reach(library: Library, atoms: tuple[StatedAtom, ...]) -> Library:
    """The library with only the rules that these atoms can set off; the others' premises have nothing to hold by."""
    reached = {f"{one.predicate}/{len(one.arguments)}" for one in atoms}
    reached |= {fact.indicator for fact in library.facts}
    reached |= {one.indicator for one in library.signatures if one.kind is PredicateKind.COMPUTED}
    waiting = list(library.rules)
    while ready := [rule for rule in waiting if _needs(rule) <= reached]:
        reached |= {rule.conclusion.atom.indicator for rule in ready}
        waiting = [rule for rule in waiting if rule not in ready]
    left = {rule.name for rule in waiting}
    return replace(library, rules=tuple(rule for rule in library.rules if rule.name not in left))


def _needs(rule: Rule) -> set[str]:
    return {one.atom.indicator for one in rule.literals if not one.negated}


def roles_of(atoms: tuple[StatedAtom, ...], library: Library) -> tuple[str, str]:
    """What the two entities are called in proofs: the declared type of the place where each is first spoken of."""
    types: dict[Argument, str] = {}
    for atom in atoms:
        signature = library.signature(f"{atom.predicate}/{len(atom.arguments)}")
        for argument, data_type in zip(atom.arguments, signature.argument_types, strict=True):
            if argument != PRONOUN:
                types.setdefault(argument, f"the {data_type.lower()}")
    first, second = (types.get(number, "the one not spoken of") for number in (0, 1))
    if first != second:
        return first, second
    return first.replace("the", "one", 1), first.replace("the", "the other", 1)


def _atom(stated: StatedAtom, names: tuple[str, str, str]) -> Atom:
    """The atom over constants: the names of the two entities and of the pronoun."""
    constants = (names[2] if one == PRONOUN else names[int(one)] for one in stated.arguments)
    return Atom(stated.predicate, tuple(Constant(name) for name in constants))


def _unknown(atoms: tuple[tuple[str, tuple[str, ...]], ...], library: Library) -> list[str]:
    indicators = [f"{name}/{len(letters)}" for name, letters in atoms]
    return [one for one in indicators if not library.knows(one)]


@lru_cache(maxsize=1)
def shipped_theories() -> Library:
    """The theories of this folder."""
    return load_library([FOLDER])


@lru_cache(maxsize=1)
def shipped_patterns() -> PatternBook:
    """The patterns of this folder."""
    return load_patterns(FOLDER.glob("*.toml"))
