"""The oracle: asks models questions in batches, lets the critic gate judge the answers, and stores everything.

A question is asked once for everybody. Its calls go through the journal, so a run that was killed replays its answers;
a question that is exhausted is answered from its stored candidates, whose scores pass today's thresholds again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from engine.gates import TYPE_FLOOR, CriticGate, CriticRule, Judged, Verdict
from engine.inquiry import (
    FUNCTIONAL_SAMPLES,
    Answer,
    AskedQuestion,
    Inquiry,
    Reply,
    atom_values,
    filled,
    pattern_atom,
    question_words,
    slot_name,
)
from engine.known import KnownFacts
from grammar.rules import Library
from grammar.terms import Atom, Value, Variable
from grammar.verbalize import atom_text
from kb.records import Assessment, Candidate, Decision, FactRecord, Question, Source, TypeFact, content_id
from kb.store import KnowledgeBase
from llm_oracle.answers import ParsedValue, parse_values
from llm_oracle.calls import (
    EVALUATOR,
    LIKELIHOOD,
    BudgetReached,
    Journal,
    JournaledCritic,
    JournaledGenerator,
    JournaledLikelihood,
)
from llm_oracle.prompts import exclusion_clause, functional_prompt, knowledge_prompt, sentence, type_claim
from llm_oracle.protocols import Critic, GenerationParameters, GenerationRequest, Generator, LikelihoodModel, Models

GENERATION_BATCH = 64
"""Prompts in one batch: from 16 on, the embedded model is as fast as it gets."""

REVISION_SHOWN = 20
"""Characters of each part of a revision that stories show: enough to tell hashes apart. The journal has all."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class OracleSettings:
    """How questions are asked and judged. `critic` False accepts every value that the parser reads."""

    calls_per_question: int = 4
    values_per_call: int = 50
    critic: bool = True
    type_rule: CriticRule = field(default_factory=lambda: CriticRule(TYPE_FLOOR, floor=TYPE_FLOOR, fixed=True))
    fact_rule: CriticRule = field(default_factory=CriticRule)
    fact_first: bool = False
    link_exclusion: bool = False
    """LINK's way: later calls name the accepted values in the prompt and put a logit bias on the tokens of rejected
    ones. Otherwise decoding excludes all earlier values as whole sequences."""
    parameters: GenerationParameters = field(default_factory=GenerationParameters)


@dataclass(frozen=True, slots=True)
class RoundResult:
    """Told after each round: how many values more were accepted and rejected."""

    accepted: int
    rejected: int


def journaled(models: Models, journal: Journal) -> Models:
    """The models behind the journal; those that are behind one already stay as they are."""

    def scorer(model: LikelihoodModel, role: str) -> LikelihoodModel:
        return model if isinstance(model, JournaledLikelihood) else JournaledLikelihood(model, journal, role=role)

    knowledge: Generator = models.knowledge
    critic: Critic = models.critic
    if not isinstance(knowledge, JournaledGenerator):
        knowledge = JournaledGenerator(knowledge, journal, GENERATION_BATCH)
    if not isinstance(critic, JournaledCritic):
        critic = JournaledCritic(critic, journal)
    return Models(knowledge, critic, scorer(models.likelihood, LIKELIHOOD), scorer(models.evaluator, EVALUATOR))


class Oracle:
    """Answers questions and judges ground atoms for one run. `on_round` is told how each round of calls went.

    `budget_reached` is set once the budget stopped a request; from then on only what the journal knows is answered, and
    answers that lack something say so (`Answer.complete`).
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        library: Library,
        models: Models,
        settings: OracleSettings | None = None,
        run_id: str = "",
        *,
        journal: Journal | None = None,
    ) -> None:
        self.kb, self.library, self.run_id = kb, library, run_id
        self.settings = settings or OracleSettings()
        self.journal = journal or Journal(kb)
        self.models = journaled(models, self.journal)
        self.known = KnownFacts(kb, library)
        self.budget_reached: BudgetReached | None = None
        self.on_round: Callable[[RoundResult], None] | None = None
        self._answers: dict[Inquiry, Answer] = {}
        self._judged: dict[Atom, float | None] = {}

    # -- questions

    def answer(self, questions: Sequence[Question]) -> dict[Question, list[Value]]:
        """The accepted values of each question, given facts first. Raises BudgetReached where the budget cut one."""
        inquiries = {question: Inquiry(question, question.patterns) for question in questions}
        answers = self.answers(list(inquiries.values()))
        if self.budget_reached and not all(answer.complete for answer in answers.values()):
            raise self.budget_reached
        return {question: answers[inquiry].values for question, inquiry in inquiries.items()}

    def answers(self, inquiries: Sequence[Inquiry]) -> dict[Inquiry, Answer]:
        """Ask what has no answer yet, a round of calls at a time; a round is one batch over all open questions."""
        waiting = [self._opened(one) for one in dict.fromkeys(inquiries) if one not in self._answers]
        self._restore(waiting)
        while going_on := [one for one in waiting if not one.done]:
            self._round(going_on)
        verdicts = {one: one.verdicts() for one in waiting}
        self._finish(verdicts)
        self._answers.update((one.inquiry, one.answer(self._given(one.inquiry), verdicts[one])) for one in waiting)
        return {inquiry: self._answers[inquiry] for inquiry in inquiries}

    def keep_only(self, indicators: Collection[str]) -> None:
        """Free the answers and verdicts about all other predicates, once nobody will ask for them again."""
        for inquiry in [one for one in self._answers if not one.is_about(indicators)]:
            del self._answers[inquiry]
        for atom in [one for one in self._judged if one.indicator not in indicators]:
            del self._judged[atom]

    # -- ground atoms

    def probabilities(self, atoms: Iterable[Atom]) -> dict[Atom, float | None]:
        """P(yes) of each ground atom; 1 or 0 by a given fact or arithmetic; None: no critic, or cut by the budget."""
        unique = list(dict.fromkeys(atoms))
        unknown = [atom for atom in unique if atom not in self._judged]
        truths = {atom: self.known.truth(atom) for atom in unknown}
        claims = {atom: self.claim(atom) for atom, truth in truths.items() if truth is None and self.settings.critic}
        (scores,) = self._claims((list(dict.fromkeys(claims.values())), "probability"))
        for atom, truth in truths.items():
            score = truth if truth is not None else scores.get(claims.get(atom, ""))
            if score is not None or not self.settings.critic:
                self._judged[atom] = score
        return {atom: self._judged.get(atom) for atom in unique}

    def verify(self, atoms: Sequence[Atom]) -> dict[Atom, bool]:
        """Whether each ground atom holds: given, computed, or judged at the starting threshold; true ones become facts.

        Raises BudgetReached where the budget cut one.
        """
        scores = self.probabilities(atoms)
        if self.settings.critic and self.budget_reached and None in scores.values():
            raise self.budget_reached
        threshold = self.settings.fact_rule.start
        verdicts = {atom: score is None or score >= threshold for atom, score in scores.items()}
        self.note([(atom, scores[atom], threshold, holds) for atom, holds in verdicts.items()])
        return verdicts

    def note(self, judged: Sequence[tuple[Atom, float | None, float, bool]]) -> None:
        """Store verdicts (atom, score, threshold, truth) on atoms that no question proposed, and their facts."""
        decisions: list[Decision] = []
        facts: list[FactRecord] = []
        for atom, score, threshold, accepted in judged:
            if self.known.truth(atom) is not None:
                continue
            values = atom_values(atom)
            relation = "reaches" if score is not None and score >= threshold else "is below"
            reason = "no critic" if score is None else f"P(true) {score:.3f} {relation} the threshold {threshold:.2f}"
            subject = content_id("fact", atom.predicate, list(values))
            decisions.append(Decision(self.run_id, "critic", subject, accepted, score, threshold, reason))
            if accepted:
                types = self.library.signature(atom.indicator).argument_types
                facts.append(self._fact(atom, types, score, None))
        if decisions:
            with self.kb.transaction():
                self.kb.add_decisions(decisions)
                self.known.add(facts)

    def claim(self, atom: Atom) -> str:
        """The sentence by which the critic judges a ground atom."""
        return sentence(atom_text(atom, self.library))

    # -- likelihood

    def log_likelihoods(self, texts: Iterable[str], *, evaluator: bool = False) -> dict[str, float]:
        """Mean token log-likelihood of each text, in nats; texts cut off by the budget or refused are missing."""
        model = self.models.evaluator if evaluator else self.models.likelihood
        unique = list(dict.fromkeys(texts))
        scores = self._within_budget(lambda: model.log_likelihoods(unique), len(unique))
        name = model_name(model)
        known = [(text, score) for text, score in zip(unique, scores, strict=True) if score and not score.refused]
        self.kb.add_assessments(
            Assessment(text, "log_likelihood", name, score.total, score.token_count) for text, score in known
        )
        return {text: score.per_token for text, score in known}

    # -- one round of calls

    def _opened(self, inquiry: Inquiry) -> AskedQuestion:
        settings = self.settings
        gate = CriticGate(settings.type_rule, settings.fact_rule, inquiry.prior, settings.fact_first)
        return AskedQuestion(inquiry, gate, settings.calls_per_question)

    def _round(self, asked: Sequence[AskedQuestion]) -> None:
        pairs = [(one, request) for one in asked for request in self._requests(one)]
        requests = [request for _, request in pairs]
        knowledge, parameters = self.models.knowledge, self.settings.parameters
        assert isinstance(knowledge, JournaledGenerator)  # noqa: S101  `journaled` saw to it
        calls = [knowledge.prepared(request, parameters) for request in requests]
        generations = self._within_budget(lambda: knowledge.answers(calls, requests, parameters), len(requests))
        replies: dict[AskedQuestion, list[Reply]] = {one: [] for one in asked}
        for (one, _), call, generation in zip(pairs, calls, generations, strict=True):
            if generation is None:
                one.cut = True
            else:
                one.sent += call.id in self.journal.missed
                replies[one].append(Reply(call.id, self._parsed(one.inquiry.question, generation.text)))
        heard = [one for one in asked if not one.cut]
        proposed = {one: one.take(replies[one]) for one in heard}
        self._judge(proposed)
        with self.kb.transaction():
            self.kb.add_questions(one.inquiry.question for one in heard)
            self.kb.add_candidates(candidate for one in heard for candidate in one.unstored())
        if self.on_round is not None:
            changes = [one.change() for one in heard]
            self.on_round(RoundResult(sum(more for more, _ in changes), sum(fewer for _, fewer in changes)))

    def _requests(self, one: AskedQuestion) -> list[GenerationRequest]:
        question = one.inquiry.question
        variable, words = question_words(question, self.library)
        if question.functional:
            prompt = functional_prompt(variable, words, question.data_type)
            return [GenerationRequest(prompt, sample_index=index) for index in range(FUNCTIONAL_SAMPLES)]
        count = one.inquiry.values or self.settings.values_per_call
        prompt = knowledge_prompt(variable, words, question.data_type, count)
        earlier = tuple(str(candidate.value) for candidate in one.values)
        if not self.settings.link_exclusion:
            return [GenerationRequest(prompt, earlier, sample_index=one.repeated(earlier))]
        accepted = tuple(str(judged.value) for judged in one.gate.accepted)
        rejected = tuple(text for text in earlier if text not in accepted and not any(c.isdigit() for c in text))
        prompt += exclusion_clause(accepted)
        return [GenerationRequest(prompt, (), rejected, sample_index=one.repeated(accepted, rejected))]

    def _parsed(self, question: Question, text: str) -> list[ParsedValue]:
        numeric = self.library.is_numeric(question.data_type)
        return parse_values(text, slot_name(question.patterns[0]), question.data_type, numeric)

    def _judge(self, proposed: dict[AskedQuestion, list[Candidate]]) -> None:
        """The critic's scores of all new candidates of all questions in two batches, then each question's gate."""
        texts = {
            one: [self._claim_texts(one.inquiry, candidate.value) for candidate in batch]
            for one, batch in proposed.items()
            if self.settings.critic
        }
        claims = [pair for pairs in texts.values() for pair in pairs]
        of_types = list(dict.fromkeys(text for text, _ in claims if text))
        of_facts = list(dict.fromkeys(text for _, several in claims for text in several))
        types, facts = self._claims((of_types, "type_probability"), (of_facts, "probability"))
        for one, batch in proposed.items():
            judged = []
            for candidate, (type_text, fact_texts) in zip(
                batch, texts.get(one, [(None, ())] * len(batch)), strict=True
            ):
                missing = (type_text and type_text not in types) or any(text not in facts for text in fact_texts)
                if missing:
                    one.cut = True
                    break
                probability = min((facts[text] for text in fact_texts), default=None)
                judged.append(Judged(candidate.value, types[type_text] if type_text else None, probability))
            one.close_call(one.gate.add(judged))

    def _claim_texts(self, inquiry: Inquiry, value: Value) -> tuple[str | None, tuple[str, ...]]:
        """What the critic is told about a value: its type (numbers have none to judge), and each claimed pattern."""
        data_type = inquiry.question.data_type
        type_text = None if self.library.is_numeric(data_type) else type_claim(str(value), data_type)
        return type_text, tuple(self.claim(filled(pattern, value)) for pattern in inquiry.claimed)

    def _claims(self, *measured: tuple[Sequence[str], str]) -> list[dict[str, float]]:
        """P(yes) by claim for each measure, stored; claims that the budget cut off are missing. All are one batch."""
        critic, name = self.models.critic, model_name(self.models.critic)
        asked = [claim for claims, _ in measured for claim in claims]
        came = iter(self._within_budget(lambda: critic.probabilities(asked), len(asked)))
        assert isinstance(critic, JournaledCritic)  # noqa: S101  `journaled` saw to it
        found = []
        for claims, measure in measured:
            known = {claim: score for claim, score in zip(claims, came, strict=False) if score is not None}
            refused = [claim for claim, score in known.items() if score.refused]
            call_ids = dict(zip(refused, critic.call_ids(refused), strict=True))  # `why` finds the reason there
            self.kb.add_assessments(
                Assessment(claim, measure, name, score.probability, call_id=call_ids.get(claim))
                for claim, score in known.items()
            )
            found.append({claim: score.probability for claim, score in known.items()})
        return found

    def _within_budget(self, ask: Callable[[], Sequence[A]], count: int) -> Sequence[A | None]:
        """The answers, None where the budget stopped them; what the journal knows comes in any case."""
        if not count:
            return []
        try:
            return ask()
        except BudgetReached as reached:
            self.budget_reached = self.budget_reached or reached
            return list(reached.answers)

    # -- what is known and what is kept

    def _given(self, inquiry: Inquiry) -> list[Value]:
        """Values that given facts make true for every claimed pattern."""
        free = Variable("V", inquiry.question.data_type)
        found = [self.known.given(pattern_atom(pattern, free), free.name) for pattern in inquiry.claimed]
        return [value for value in found[0] if all(value in other for other in found[1:])] if found else []

    def _restore(self, asked: Sequence[AskedQuestion]) -> None:
        """Questions that this knowledge model has exhausted are answered from their candidates, call by call."""
        model = model_name(self.models.knowledge)
        by_id = [(one, one.inquiry.question.id) for one in asked if not one.inquiry.prior]
        states = self.kb.question_states(one.inquiry.question for one, _ in by_id)
        candidates = self.kb.candidates_of(number for number, state in states.items() if state.exhausted)
        calls = self.journal.store.calls(list({each.call_id for several in candidates.values() for each in several}))
        told = {call_id for call_id, call in calls.items() if call.model == model}
        calls_of: dict[AskedQuestion, list[list[Candidate]]] = {}
        for one, number in by_id:
            own = [each for each in candidates.get(number, ()) if each.call_id in told]
            if own:
                one.restore(states[number], own)
                calls_of[one] = [list(group) for _, group in groupby(one.values, key=lambda each: each.call_id)]
        for place in range(max(map(len, calls_of.values()), default=0)):
            self._judge({one: calls[place] for one, calls in calls_of.items() if place < len(calls)})

    def _finish(self, judged: Mapping[AskedQuestion, Sequence[tuple[Candidate, Verdict]]]) -> None:
        """Verdicts, facts and states of questions that are over, in one transaction; refuted facts go."""
        decisions: list[Decision] = []
        accepted: list[FactRecord] = []
        refused: list[FactRecord] = []
        types: list[TypeFact] = []
        for one, verdicts in judged.items():
            decisions += one.decisions(self.run_id, verdicts)
            data_type = one.inquiry.question.data_type
            for candidate, verdict in verdicts:
                facts = self._facts(one.inquiry, candidate, verdict.judged.probability)
                (accepted if verdict.accepted else refused).extend(facts)
                if verdict.accepted and verdict.judged.type_probability is not None:
                    types.append(TypeFact(candidate.value, data_type, verdict.judged.type_probability))
        with self.kb.transaction():
            self.kb.add_decisions(decisions)
            self.known.reject(refused)
            self.known.add(accepted)
            self.known.add_types(types)
            self.kb.set_question_states((one.inquiry.question, one.state) for one in judged if not one.restored)

    def _facts(self, inquiry: Inquiry, candidate: Candidate, probability: float | None) -> list[FactRecord]:
        """The facts that a candidate makes of the claimed patterns, its own position typed as it was asked for."""
        found = []
        for pattern in inquiry.claimed:
            atom = filled(pattern, candidate.value)
            declared = self.library.signature(atom.indicator).argument_types
            asked = (inquiry.question.data_type if value is None else None for value in pattern.arguments)
            types = tuple(own or other for own, other in zip(asked, declared, strict=True))
            found.append(self._fact(atom, types, probability, candidate.id))
        return found

    def _fact(
        self, atom: Atom, types: tuple[str, ...], probability: float | None, candidate_id: str | None
    ) -> FactRecord:
        run_id = self.run_id or None
        return FactRecord(atom.predicate, atom_values(atom), types, Source.MODEL, probability, candidate_id, run_id)


def model_name(model: Generator | Critic | LikelihoodModel) -> str:
    """As the journal writes it in its records."""
    identity = model.identity
    return f"{identity.name}@{identity.revision}" if identity.revision else identity.name


def short_model_name(name: str) -> str:
    """A name by `model_name` for people: of the revision what comes before the first comma, each part of it shortened.

    Parts are apart by semicolons; the last may say that P(yes) is a vote, which must not be cut off.
    """
    model, at, revision = name.rpartition("@")
    parts = (part[:REVISION_SHOWN] for part in revision.partition(",")[0].split("; "))
    return f"{model}{at}{'; '.join(parts)}" if at else name
