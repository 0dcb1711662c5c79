"""The facts that models proposed in a knowledge base, with a critic's stored scores and the labels of their truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hapax.engine.search.inquiry import filled
from hapax.engine.voter_errors import Vote, WeighedVotes, weigh_shared
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.verbalize import atom_text
from hapax.kb.records import AtomPattern, FactLabel, fact_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.prompts import sentence, type_claim

AUDIT_QUESTION = "audit Q3"
"""Question of a vote on whether a fact is true (LINK, appendix C)."""

VOTES = "votes"
"""Source of labels that are people's votes."""


@dataclass(frozen=True, slots=True)
class ProposedAtom:
    """A fact to be judged. `key`: the known argument of the question, by which held-out facts are kept apart."""

    predicate: str
    arguments: tuple[Value, ...]
    claim: str
    key: str = ""

    @property
    def id(self) -> str:
        """Id of the fact."""
        return fact_id(self.predicate, self.arguments)

    @property
    def indicator(self) -> str:
        return f"{self.predicate}/{len(self.arguments)}"


def fact_claim(atom: Atom, library: Library) -> str:
    """The sentence by which a critic judges a fact."""
    return sentence(atom_text(atom, library))


def proposed_atoms(kb: KnowledgeBase, library: Library) -> dict[str, ProposedAtom]:
    """The facts that the knowledge base's candidates would make, accepted or not, by fact id."""
    known = {signature.indicator for signature in library.completed().signatures}
    proposed: dict[str, ProposedAtom] = {}
    questions = kb.questions()
    candidates = kb.candidates_of(question.id for question in questions)
    for question in questions:
        if len(question.patterns) != 1:
            continue
        pattern = question.patterns[0]
        if f"{pattern.predicate}/{len(pattern.arguments)}" not in known:
            continue
        for candidate in candidates.get(question.id, ()):
            if candidate.rejected_by_parser is None:
                atom = _proposed(pattern, candidate.value, library)
                proposed[atom.id] = atom
    return proposed


def denied_atoms(kb: KnowledgeBase, library: Library) -> dict[str, ProposedAtom]:
    """The atoms that a critic denied, where rules negate open predicates, by fact id."""
    atoms: dict[str, ProposedAtom] = {}
    for indicator in sorted(library.open_negations):
        for denial in kb.denials(indicator):
            atom = Atom(denial.predicate, tuple(map(Constant, denial.arguments)))
            key = entity_key(denial.arguments[:1])
            denied = ProposedAtom(denial.predicate, denial.arguments, fact_claim(atom, library), key)
            atoms[denied.id] = denied
    return atoms


@dataclass(frozen=True, slots=True)
class ProposedType:
    """A value with the data type for which a model proposed it, and the claim by which a critic judges it."""

    value: Value
    data_type: str
    claim: str


def proposed_types(kb: KnowledgeBase, library: Library) -> list[ProposedType]:
    """The values that models proposed, each once for each type; numbers are left out, which no critic judges."""
    questions = [question for question in kb.questions() if not library.is_numeric(question.data_type)]
    candidates = kb.candidates_of(question.id for question in questions)
    found: dict[str, ProposedType] = {}
    for question in questions:
        for candidate in candidates.get(question.id, ()):
            if candidate.rejected_by_parser is None:
                claim = type_claim(str(candidate.value), question.data_type)
                found[claim] = ProposedType(candidate.value, question.data_type, claim)
    return list(found.values())


def _proposed(pattern: AtomPattern, value: Value, library: Library) -> ProposedAtom:
    atom = filled(pattern, value)
    arguments = tuple(value if argument is None else argument for argument in pattern.arguments)
    return ProposedAtom(pattern.predicate, arguments, fact_claim(atom, library), entity_key(pattern.arguments))


def entity_key(arguments: Iterable[Value | None]) -> str:
    """The known arguments of a pattern as text: facts with equal keys are held out together."""
    return "|".join(str(argument) for argument in arguments if argument is not None)


def stored_scores(kb: KnowledgeBase, atoms: Mapping[str, ProposedAtom], critic: str) -> dict[str, float]:
    """The critic's raw scores of these facts, by fact id; facts without a score are left out."""
    assessments = kb.assessments((atom.claim for atom in atoms.values()), "probability", critic)
    return {key: assessments[atom.claim].score for key, atom in atoms.items() if atom.claim in assessments}


def fact_truths(kb: KnowledgeBase, sources: Iterable[str] = ()) -> dict[str, bool]:
    """Truth by fact id, by people's votes and by the stored labels; without `sources`, by all of them.

    Votes outweigh every other source. A fact on which sources or votes tie is left out.
    """
    wanted = set(sources)
    balance: Counter[str] = Counter()
    for label in kb.labels():
        if not wanted or label.source in wanted:
            balance[label.fact_id] += 1 if label.is_true else -1
    truths = {fact: total > 0 for fact, total in balance.items() if total}
    if not wanted or VOTES in wanted:
        # Last, so that votes replace what other sources say.
        truths |= voted_truths(kb)
    return truths


def voted_truths(kb: KnowledgeBase) -> dict[str, bool]:
    """Truth by fact id, by people's votes in the audit of facts: `weighed_votes`, or the majority; no ties.

    A fact that all deny is false: else one doubtful no among many true facts would count as a true one, too.
    """
    votes = _fact_votes(kb)
    weighed = weigh_shared(votes)
    balance: Counter[str] = Counter()
    for vote in votes:
        balance[vote.item] += 1 if vote.is_yes else -1
    affirmed = {vote.item for vote in votes if vote.is_yes}
    truths = {}
    for fact, total in balance.items():
        excess = float(total) if weighed is None or fact not in affirmed else weighed.probabilities[fact] - 0.5
        # At one half the votes decide nothing.
        if excess:
            truths[fact] = excess > 0
    return truths


def weighed_votes(kb: KnowledgeBase) -> WeighedVotes | None:
    """The votes in the audit of facts by the voters' rates of error; None if too few people judged the same facts."""
    return weigh_shared(_fact_votes(kb))


def _fact_votes(kb: KnowledgeBase) -> list[Vote]:
    answers = {"yes": True, "no": False}
    return [
        Vote(vote.statement_id, vote.voter, answers[vote.answer.strip().casefold()])
        for vote in kb.votes()
        if vote.question == AUDIT_QUESTION and vote.answer.strip().casefold() in answers
    ]


def ends_of_facts(kb: KnowledgeBase) -> dict[str, tuple[str, ...]]:
    """By fact id, the ends of the statements whose proofs rest on the fact: head, long tail or both."""
    ends: dict[str, set[str]] = {}
    rows = kb.query("SELECT DISTINCT fact_id, distribution FROM statement_facts JOIN statements USING (key)")
    for fact, distribution in rows:
        ends.setdefault(fact, set()).add(distribution)
    return {fact: tuple(sorted(found)) for fact, found in ends.items()}


def labels_of(truths: Mapping[str, bool], atoms: Mapping[str, ProposedAtom], source: str) -> list[FactLabel]:
    """Labels of these facts, as the knowledge base stores them."""
    return [
        FactLabel(atoms[fact].predicate, atoms[fact].arguments, is_true, source)
        for fact, is_true in truths.items()
        if fact in atoms
    ]
