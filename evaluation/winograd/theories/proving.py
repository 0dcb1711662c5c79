"""Proofs of the referent of a pronoun: each entity is tried in its abstract role, and only one may have a proof.

The atoms that a sentence states are assumed about roles (`cannot_lift("the lifter", "the load")`), named after the
types that the theory declares. Then the pronoun is assumed to be either role. If the theories prove of exactly one role
that it is meant, its entity is the referent; otherwise there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from hapax.engine.inference.proof import proof_text
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.proofs import prove
from hapax.evaluation.winograd.data import BLANK, STAND_IN
from hapax.evaluation.winograd.theories.abstraction import abstracted
from hapax.evaluation.winograd.theories.patterns import PRONOUN, Argument, PatternBook, StatedAtom, load_patterns
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library, PredicateKind
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal
from hapax.grammar.verbalize import atom_text, literal_text
from hapax.kb.store import KnowledgeBase

FOLDER = Path(__file__).parent
"""Folder of the shipped theories (`*.rules`) and patterns (`*.toml`)."""

MEANT = "is_meant"
"""Predicate that a theory derives for the role that the pronoun means."""


Agreement = Callable[[str, tuple[str, str], str], tuple[str | None, str | None]]
"""For a sentence, its options and a pronoun: the feature in which each option does not agree with it, or None."""


class Lack(StrEnum):
    """Reason why a sentence has no answer."""

    NOT_NAMED = "the sentence does not contain an option"
    NOT_READ = "no pattern matches the sentence"
    OTHER_PRONOUN = "the patterns match a different pronoun"
    NOT_PROVED = "the theories prove neither candidate"
    BOTH_PROVED = "the theories prove both candidates"
    AMBIGUOUS = "two readings of the sentence disagree"
    REFUSED = "the model's mapping was refused"
    NO_MARGIN = "neither reading is supported enough"
    NO_AGREEMENT = "the pronoun does not agree with the proved candidate"


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """Verdict of the theories on a reading: roles, assumed atoms in words, and a proof or None for each candidate."""

    roles: tuple[str, str]
    assumed: tuple[str, ...]
    proofs: tuple[str | None, str | None]

    @property
    def meant(self) -> int | None:
        """The only candidate with a proof, if there is exactly one."""
        proved = [number for number, proof in enumerate(self.proofs) if proof is not None]
        return proved[0] if len(proved) == 1 else None

    @property
    def lack(self) -> Lack:
        """Reason for no answer; meaningless if there is an answer."""
        return Lack.BOTH_PROVED if all(self.proofs) else Lack.NOT_PROVED


@dataclass(frozen=True, slots=True)
class Resolution:
    """Answer to a sentence with its judgement, or the reason why there is none."""

    answer: int | None
    judgement: PairJudgement | None = None
    lack: Lack | None = None
    detail: str = ""
    steps: tuple[str, ...] = ()
    """Parse and abstraction in words, where a method has them."""

    probability: float | None = None
    """Estimated probability of the better reading, where a method weighs its proofs."""

    preferred: int | None = None
    """The better reading, whether it is surely enough the right one or not, where a method weighs its proofs."""

    barred: tuple[bool, bool] = (False, False)
    """The candidates that do not agree with the pronoun, where a method knows."""

    def lines(self, options: tuple[str, str]) -> list[str]:
        """The resolution in words: abstraction, assumptions, the two attempts to prove, and the answer."""
        if self.judgement is None:
            return [*self.steps, f"no answer: {self.lack}{f' ({self.detail})' if self.detail else ''}"]
        judged = self.judgement
        roles = ", ".join(f"{option} is {role}" for option, role in zip(options, judged.roles, strict=True))
        lines = list(self.steps) or [f"abstraction: {roles}"]
        lines.append("the sentence states: " + ("; ".join(judged.assumed) or "nothing that the theory knows"))
        for role, proof in zip(judged.roles, judged.proofs, strict=True):
            lines += [f"if the pronoun is {role}:"]
            lines += [f"  {line}" for line in (proof or "no proof").splitlines()]
        end = f"no answer: {self.lack}" if self.answer is None else f"the pronoun is {options[self.answer]}"
        if self.probability is not None:
            detail = f", {self.detail}" if self.detail else ""
            end = f"{end} (probability {self.probability:.2f}{detail})"
        return [*lines, end]


class Referee:
    """Resolves pronouns with patterns and theories. Use it as a context manager, since it starts a Prolog process."""

    def __init__(
        self, library: Library | None = None, patterns: PatternBook | None = None, agreement: Agreement | None = None
    ) -> None:
        """`agreement`: refuses an answer with which the pronoun does not agree; None: every answer stands."""
        self._agreement = agreement
        self.library = shipped_theories() if library is None else library
        self.patterns = shipped_patterns() if patterns is None else patterns
        # A misspelt predicate would leave sentences unproved without a word.
        for pattern in self.patterns.patterns:
            for name, letters in pattern.atoms:
                indicator = f"{name}/{len(letters)}"
                if not self.library.knows(indicator):
                    raise HapaxError(
                        f"The patterns state {indicator}, which no theory declares. Declare it in a rule file."
                    )
        if f"{MEANT}/1" not in self.library.derived:
            raise HapaxError(f"No theory concludes {MEANT}(Object P). Add the rules that say when a role is meant.")
        # Theories use no stored facts, but every proof is over a knowledge base.
        self._kb = KnowledgeBase()
        # Sentences that differ in their entities alone state equal atoms.
        self._judged: dict[tuple[StatedAtom, ...], PairJudgement] = {}

    def __enter__(self) -> Referee:
        return self

    def __exit__(self, *_: object) -> None:
        self._kb.close()

    def resolve(self, text: str, options: tuple[str, str], pronoun: str = "") -> Resolution:
        """Resolve by the patterns. `pronoun`: the word asked about, or a blank; ignored if the sentence lacks it."""
        blank = pronoun == BLANK
        if blank:
            text, pronoun = text.replace(BLANK, STAND_IN, 1), STAND_IN
        sentence = abstracted(text, options)
        if sentence is None:
            return Resolution(None, lack=Lack.NOT_NAMED)
        readings = self.patterns.readings(sentence)
        if not readings:
            return Resolution(None, lack=Lack.NOT_READ)
        fitting = readings
        if sentence.has(pronoun):
            fitting = [reading for reading in readings if reading.pronoun == pronoun.casefold()]
        if not fitting:
            return Resolution(None, lack=Lack.OTHER_PRONOUN)
        resolution = settled([self.judge(reading.atoms) for reading in fitting])
        return resolution if blank else self._agreeing(resolution, text, options, pronoun)

    def _agreeing(self, resolution: Resolution, text: str, options: tuple[str, str], pronoun: str) -> Resolution:
        """The resolution, without its answer if the pronoun does not agree with it."""
        if resolution.answer is None or self._agreement is None:
            return resolution
        clash = self._agreement(text, options, pronoun)[resolution.answer]
        if clash is None:
            return resolution
        return replace(resolution, answer=None, lack=Lack.NO_AGREEMENT, detail=clash)

    def judge(self, atoms: tuple[StatedAtom, ...]) -> PairJudgement:
        """Try both candidates. Equal atoms are proved only once."""
        if atoms not in self._judged:
            roles = roles_of(atoms, self.library)
            said = tuple(atom_text(_atom(atom, (*roles, "the pronoun")), self.library) for atom in atoms)
            first, second = (self._proof(atoms, roles, candidate) for candidate in roles)
            self._judged[atoms] = PairJudgement(roles, said, (first, second))
        return self._judged[atoms]

    def _proof(self, atoms: tuple[StatedAtom, ...], roles: tuple[str, str], candidate: str) -> str | None:
        """Proof in words that the pronoun means this candidate, under the assumption that it does."""
        assumed = tuple(_atom(atom, (*roles, candidate)) for atom in atoms)
        stated = [f"{atom.predicate}/{len(atom.arguments)}" for atom in atoms]
        theory = Theory(within_reach(self.library, stated), self._kb, assumed)
        proof = prove(theory, Atom(MEANT, (Constant(candidate),)))

        def words(goal: BodyLiteral) -> str:
            return literal_text(goal, self.library) if isinstance(goal, Literal) else str(goal)

        return None if proof is None else proof_text(proof, words)


def settled(judgements: list[PairJudgement]) -> Resolution:
    """Answer from the judgements of all readings of a sentence; those that find a referent must agree."""
    deciding = [judgement for judgement in judgements if judgement.meant is not None]
    if not deciding:
        return Resolution(None, judgements[0], judgements[0].lack)
    # A reading that proves neither candidate says nothing, but one that proves both contradicts any answer.
    referents = {judgement.meant for judgement in deciding}
    if len(referents) > 1 or any(judgement.lack is Lack.BOTH_PROVED for judgement in judgements):
        return Resolution(None, deciding[0], Lack.AMBIGUOUS)
    return Resolution(deciding[0].meant, deciding[0])


def within_reach(library: Library, stated: Iterable[str]) -> Library:
    """The library without the rules that can never apply to atoms of these predicates, given by indicator."""
    reached = set(stated)
    reached |= {fact.indicator for fact in library.facts}
    reached |= {signature.indicator for signature in library.signatures if signature.kind is PredicateKind.COMPUTED}
    waiting = list(library.rules)
    # A negated premise needs no proof of its predicate: it holds where the predicate cannot be reached.
    needed = {}
    for rule in waiting:
        needed[rule.name] = {literal.atom.indicator for literal in rule.literals if not literal.negated}
    # Forward to the fixed point: a rule is in reach once all its premises are.
    while ready := [rule for rule in waiting if needed[rule.name] <= reached]:
        reached |= {rule.conclusion.atom.indicator for rule in ready}
        chosen = {rule.name for rule in ready}
        waiting = [rule for rule in waiting if rule.name not in chosen]
    unreachable = {rule.name for rule in waiting}
    return replace(library, rules=tuple(rule for rule in library.rules if rule.name not in unreachable))


def roles_of(atoms: tuple[StatedAtom, ...], library: Library) -> tuple[str, str]:
    """Names of the two entities in proofs: the declared type of the argument where each first occurs."""
    types: dict[Argument, str] = {}
    for atom in atoms:
        signature = library.signature(f"{atom.predicate}/{len(atom.arguments)}")
        for argument, data_type in zip(atom.arguments, signature.argument_types, strict=True):
            if argument != PRONOUN:
                types.setdefault(argument, f"the {data_type.lower()}")
    first, second = (types.get(number, "the one not spoken of") for number in (0, 1))
    if first != second:
        return first, second
    # Two entities of one type need different names, or a proof about one would hold for both.
    return first.replace("the", "one", 1), first.replace("the", "the other", 1)


def _atom(stated: StatedAtom, names: tuple[str, str, str]) -> Atom:
    """The atom over constants. `names`: of the two entities and of the pronoun."""
    constants = []
    for argument in stated.arguments:
        constants.append(Constant(names[2] if argument == PRONOUN else names[int(argument)]))
    return Atom(stated.predicate, tuple(constants))


@lru_cache(maxsize=1)
def shipped_theories() -> Library:
    """The theories of this folder."""
    return load_library([FOLDER])


@lru_cache(maxsize=1)
def shipped_patterns() -> PatternBook:
    """The patterns of this folder."""
    return load_patterns(FOLDER.glob("*.toml"))
