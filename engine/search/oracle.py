"""The oracle: asks models questions in batches, lets the gates judge the answers, and stores everything.

A question is asked once for all rules, beams and runs. Its calls go through the journal, so that a killed run replays
its answers. An exhausted question is answered from its stored candidates, whose scores are compared with today's
thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeVar

from hapax.engine.inference.known_facts import KnownFacts, atom_values
from hapax.engine.search.consistency import Consistency, ProposedFact
from hapax.engine.search.gates import CONSISTENCY, CRITIC, TYPE, TYPE_MEASURE, QuestionGates, gates_in_order
from hapax.engine.search.inquiry import (
    AskedQuestion,
    Inquiry,
    ParsedGeneration,
    QuestionAnswer,
    filled,
    opened_atom,
    pattern_atom,
    question_words,
)
from hapax.engine.search.promises import BELOW_CERTAIN, Promises
from hapax.engine.search.released import RELEASED_CLAIMS, ReleasedGates
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import FACT_FLOOR, CriticRule
from hapax.engine.search.wording import QuestionWording
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library, Tolerance
from hapax.grammar.terms import Atom, Value, Variable
from hapax.grammar.verbalize import atom_text
from hapax.kb.records import (
    ASSESSMENTS,
    CANDIDATES,
    DECISIONS,
    Assessment,
    Candidate,
    Decision,
    DenialRecord,
    FactRecord,
    Question,
    Source,
    TypeFact,
    fact_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.answers import ParsedValue
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.calls import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.critic_probing import CriticProbe, probe_claims, probe_result, reads_any_words
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.measures import Measure, RankedText, TextMeasures, measured
from hapax.llm_oracle.profile_probing import general_examples
from hapax.llm_oracle.prompts import conflict_question, sentence
from hapax.llm_oracle.protocols import (
    EVALUATOR,
    LIKELIHOOD,
    Critic,
    CriticScore,
    Generation,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    LogLikelihood,
    ModelIdentity,
    Models,
    Scored,
    SpannedText,
)
from hapax.llm_oracle.reply_reader import Reply, ReplyQuestion, read_reply, read_strictly

GENERATION_BATCH = 64
"""Prompts in one batch: from 16 on, the embedded model is as fast as it gets."""

SLOW_BATCH = 16
"""Prompts in one batch of a model of any words, all of which an interruption loses, unless it streams its answers."""

A = TypeVar("A")


class AtomVerdict(NamedTuple):
    """Truth of an atom that no question proposed, with its score and the threshold of truth.

    A score between the thresholds is neither true nor false.
    """

    atom: Atom
    score: float | None
    threshold: float
    is_true: bool
    is_false: bool


def journaled(models: Models, journal: Journal) -> Models:
    """The models behind the journal; those that are behind one already stay as they are."""

    def scorer(model: LikelihoodModel, role: str) -> LikelihoodModel:
        return model if isinstance(model, JournaledLikelihood) else JournaledLikelihood(model, journal, role=role)

    knowledge: Generator = models.knowledge
    critic: Critic = models.critic
    if not isinstance(knowledge, JournaledGenerator):
        # A trained stand-in answers at once; a large model in this process needs minutes for a batch of this size.
        small = reads_any_words(knowledge.identity)
        knowledge = JournaledGenerator(knowledge, journal, SLOW_BATCH if small else GENERATION_BATCH)
    if not isinstance(critic, JournaledCritic):
        critic = JournaledCritic(critic, journal)
    likelihood, evaluator = scorer(models.likelihood, LIKELIHOOD), scorer(models.evaluator, EVALUATOR)
    return Models(knowledge, critic, likelihood, evaluator, models.names)


def asked_question(
    inquiry: Inquiry,
    settings: SearchSettings,
    rules: Mapping[str, CriticRule] | None = None,
    tolerance: Tolerance | None = None,
) -> AskedQuestion:
    """The question of an inquiry before its first call. `rules`: of its thresholds; None: those of the settings."""
    make_gates = ReleasedGates if settings.is_released else QuestionGates
    gates = make_gates(settings.gates, settings.rules if rules is None else rules, dict(inquiry.prior))
    calls = inquiry.calls or settings.calls_per_question
    return AskedQuestion(inquiry, gates, calls, tolerance, settings.tries, samples=settings.samples)


@dataclass(slots=True)
class _WithinBudget:
    """The oracle's ranker as long as the budget lasts. Texts that the budget stops count as refused.

    `is_whole`: False once it stopped one.
    """

    oracle: Oracle
    is_whole: bool = True

    @property
    def identity(self) -> ModelIdentity:
        return self.oracle.models.likelihood.identity

    @property
    def model(self) -> Any:
        """The ranker behind the journal, by whose abilities measures are chosen."""
        ranker = self.oracle.models.likelihood
        return getattr(ranker, "model", ranker)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return self._scores(texts)

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return self._scores(texts)

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        return [math.nan if answer.refused else answer.total for answer in self._scores(names)]

    def _scores(self, asked: Sequence[Scored]) -> list[LogLikelihood]:
        ranker = self.oracle.models.likelihood
        assert isinstance(ranker, JournaledLikelihood)  # noqa: S101  `journaled` made it
        answers = self.oracle.within_budget(lambda: ranker.scores(asked), len(asked))
        self.is_whole = self.is_whole and None not in answers
        return [answer or LogLikelihood(0.0, 0, refused="the budget was reached") for answer in answers]


class Oracle:
    """Answers questions and judges ground atoms for one run.

    `on_round` is called after each round of calls, with the growth of the numbers of accepted and rejected values.

    A batch that the budget leaves incomplete raises BudgetReached before anything that follows from it is stored: what
    a part of the answers suggests may be false once all are there. `budget_reached` is the first of these exceptions.
    `takes_parts`: for goals and forecasts, which take what is there: incomplete answers are marked as such
    (`QuestionAnswer.complete`). `finished`: the knowledge base whose finished questions are not asked again, `kb` by
    default. `promises`: what the critic's scores are worth.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        library: Library,
        models: Models,
        settings: SearchSettings | None = None,
        run_id: str = "",
        *,
        promises: Promises | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.finished = kb
        self.takes_parts = False
        self.kb, self.library, self.run_id = kb, library, run_id
        self.settings, self.promises = settings or SearchSettings(), promises or Promises()
        self.gates, self._rules, self._parameters = self.settings.gates, self.settings.rules, self.settings.parameters
        self.journal = journal or Journal(kb)
        self.models = journaled(models, self.journal)
        self.known = KnownFacts(kb, library)
        self.wording = QuestionWording(self.settings.words, library, self.known, general_examples())
        self.consistency = Consistency(kb, library, self.known, run_id, self.conflict_probabilities)
        self.budget_reached: BudgetReached | None = None
        self.on_round: Callable[[int, int], None] | None = None
        self.critic_probe: CriticProbe | None = None
        """Set once a question ended without a value because of the critic's scores."""
        self._answers: dict[Inquiry, QuestionAnswer] = {}
        self._probabilities: dict[Atom, float | None] = {}
        self._indicators: dict[str, str] = {}
        """By claim, the indicator of its fact's predicate, by which scores are calibrated."""
        self._types: dict[str, str] = {}
        """By claim about a data type, this type."""
        self._unanswered: dict[str, str] = {}
        """By claim without an answer, the reason. Its P(yes) is none, and no threshold may accept it."""
        self._sources: dict[str, str] = {}
        """By claim, the source that states it, for the facts that are made of the claims."""
        self._samples: dict[Question, int] = {}
        """Under `released`, numbers of samples of questions with one right value."""
        self._counted: set[str] = set()
        """Ids of the calls that a question has been charged with."""

    # -- questions

    def answers(self, inquiries: Sequence[Inquiry]) -> dict[Inquiry, QuestionAnswer]:
        """The answer to each inquiry; those without one yet are asked in rounds, each one batch over all of them.

        Raises BudgetReached where the budget ended one of them.
        """
        asked: list[AskedQuestion] = []
        for inquiry in dict.fromkeys(inquiries):
            if inquiry not in self._answers:
                rules, tolerance = self._rules_of(inquiry.question), self._tolerance(inquiry.question)
                asked.append(asked_question(inquiry, self.settings, rules, tolerance))
        self._restore(asked)
        while open_questions := [question for question in asked if question.is_open]:
            self._round(self._in_turn(open_questions))
        self._require(not any(question.cut for question in asked))
        self._end(asked)
        # Before the decisions, which tell of facts that lose in a conflict.
        self._settle_conflicts(asked)
        decisions = {question: question.decisions(self.run_id) for question in asked}
        self._store(decisions)
        for question in asked:
            given = self._given_values(question.inquiry)
            self._answers[question.inquiry] = question.answer(given, decisions[question], self.settings.is_released)
        return {inquiry: self._answers[inquiry] for inquiry in inquiries}

    def threshold_of(self, indicator: str) -> float:
        """P(yes) from which an atom that no question proposed is true: where the critic's threshold starts."""
        facts = self.promises.facts
        return self._rules[CRITIC.name].start if facts is None else facts.threshold(indicator)

    def denial_limit(self, indicator: str) -> float:
        """P(yes) up to which an atom of a predicate is denied for sure: 1 less the threshold, or by a promise."""
        facts = self.promises.facts
        return 1 - self.threshold_of(indicator) if facts is None else facts.denial_limit()

    def _rules_of(self, question: Question) -> Mapping[str, CriticRule]:
        """The rules of thresholds for the values of a question."""
        facts = self.promises.facts
        if facts is None:
            return self._rules
        indicators = {f"{pattern.predicate}/{len(pattern.arguments)}" for pattern in question.patterns}
        return {**self._rules, CRITIC.name: CriticRule.at(max(map(facts.threshold, indicators)))}

    def _tolerance(self, question: Question) -> Tolerance | None:
        """The tolerance of a functional question's predicate."""
        if not question.functional:
            return None
        pattern = question.patterns[0]
        return self.library.signature(f"{pattern.predicate}/{len(pattern.arguments)}").tolerance

    def _in_turn(self, asked: Sequence[AskedQuestion]) -> list[AskedQuestion]:
        """The questions that can be asked now: all, or of the repeats of one question only the first.

        LINK's released code samples a question with one right value anew in each beam, so that the samples of a repeat
        follow those of the one before.
        """
        if not self.settings.is_released:
            return list(asked)
        now: list[AskedQuestion] = []
        sampled: set[Question] = set()
        for question in asked:
            asks = question.inquiry.question
            if asks.functional and asks in sampled:
                continue
            if asks.functional and not question.calls:
                question.first_sample = self._samples.get(asks, 0)
            sampled.add(asks)
            now.append(question)
        return now

    def keep_only(self, indicators: Collection[str]) -> None:
        """Free the answers and probabilities about all other predicates."""
        for inquiry in [inquiry for inquiry in self._answers if not inquiry.is_about(indicators)]:
            del self._answers[inquiry]
        for atom in [atom for atom in self._probabilities if atom.indicator not in indicators]:
            del self._probabilities[atom]

    # -- ground atoms

    def probabilities(self, atoms: Iterable[Atom]) -> dict[Atom, float | None]:
        """P(yes) of each ground atom: 1 or 0 by a given fact or arithmetic, None without a critic.

        Raises BudgetReached where the budget left one unscored.
        """
        unique = list(dict.fromkeys(atoms))
        truths = {atom: self.known.truth(atom) for atom in unique if atom not in self._probabilities}
        claims = {atom: self.claim(atom) for atom, truth in truths.items() if truth is None and self.settings.critic}
        self._indicators.update((claim, atom.indicator) for atom, claim in claims.items())
        scores = self._score({"probability": list(dict.fromkeys(claims.values()))})["probability"]
        self._require(scores.keys() >= set(claims.values()))
        for atom, truth in truths.items():
            probability = truth if truth is not None else scores.get(claims.get(atom, ""))
            # What the budget left unscored is not remembered, so that it is asked for again.
            if probability is not None or not self.settings.critic:
                self._probabilities[atom] = probability
        return {atom: self._probabilities.get(atom) for atom in unique}

    def conflict_probabilities(self, conflicts: Sequence[Sequence[Atom]]) -> list[dict[Atom, float]]:
        """P(yes) of the atoms of each conflict, by questions that name all its atoms; none without a critic.

        All conflicts are one batch. Atoms that are given or computed are not asked about. Raises BudgetReached.
        """
        questions: list[dict[Atom, str]] = []
        for atoms in conflicts:
            claims = [self.claim(atom) for atom in atoms]
            judged = [atom for atom in atoms if self.settings.critic and self.known.truth(atom) is None]
            questions.append({atom: conflict_question(self.claim(atom), claims) for atom in judged})
        batch = list(dict.fromkeys(chain.from_iterable(asked.values() for asked in questions)))
        scores = self._score({"conflict": batch})["conflict"]
        self._require(len(scores) == len(batch))
        answered: list[dict[Atom, float]] = []
        for asked in questions:
            known = {atom: scores[text] for atom, text in asked.items() if text in scores}
            # Scores with and without the conflict in view do not compare.
            answered.append(known if len(known) == len(asked) else {})
        return answered

    def verify(self, atoms: Sequence[Atom]) -> dict[Atom, bool]:
        """Truth of each ground atom: given, computed, or judged at the starting threshold. True ones become facts.

        Raises BudgetReached where the budget left an atom unscored.
        """
        verdicts = self.verdicts(atoms)
        if self.budget_reached and len(verdicts) < len(set(atoms)):
            raise self.budget_reached
        return {atom: verdict.is_true for atom, verdict in verdicts.items()}

    def verdicts(self, atoms: Iterable[Atom], negated: bool = False) -> dict[Atom, AtomVerdict]:
        """The verdict on each ground atom, which is stored; true ones become facts. Unscored atoms are left out.

        Without a critic every premise holds, the negated ones too. Raises BudgetReached unless parts are taken.
        """
        verdicts: dict[Atom, AtomVerdict] = {}
        for atom, score in self.probabilities(atoms).items():
            threshold = self.threshold_of(atom.indicator)
            if score is None:
                if not self.settings.critic:
                    verdicts[atom] = AtomVerdict(atom, None, threshold, is_true=not negated, is_false=negated)
                continue
            is_true = score >= threshold
            verdicts[atom] = AtomVerdict(atom, score, threshold, is_true, not is_true and self._is_denied(atom, score))
        self._store_verdicts(list(verdicts.values()))
        return verdicts

    def _is_denied(self, atom: Atom, score: float) -> bool:
        """True if an atom is false for sure, as a negated literal needs it: by its score, or by a source."""
        is_low = score <= self.denial_limit(atom.indicator)
        return is_low or self.known.is_covered(atom) or self.known.truth(atom) == 0.0

    def _store_verdicts(self, verdicts: Sequence[AtomVerdict]) -> None:
        """Store verdicts on atoms that no question proposed, and true ones as facts."""
        decisions: list[Decision] = []
        facts: list[FactRecord] = []
        denials: list[DenialRecord] = []
        for atom, score, threshold, is_true, _ in verdicts:
            if self.known.truth(atom) is not None:
                continue  # given or computed: nobody judged it
            values = atom_values(atom)
            relation = "reaches" if score is not None and score >= threshold else "is below"
            reason = "no critic" if score is None else f"P(true) {score:.3f} {relation} the threshold {threshold:.2f}"
            subject = fact_id(atom.predicate, values)
            decisions.append(Decision(self.run_id, CRITIC.name, subject, is_true, score, threshold, reason))
            if is_true:
                types = self.library.signature(atom.indicator).argument_types
                facts.append(self._fact(atom, types, score, None))
            elif score is not None and score <= self.denial_limit(atom.indicator):
                denials.append(DenialRecord(atom.predicate, values, score, self.run_id or None))
        if decisions:
            with self.kb.transaction():
                self.kb.add(DECISIONS, decisions)
                self.known.add(facts)
                self.known.deny(denials)
        if CONSISTENCY in self.gates:
            self.consistency.settle((), facts)

    def claim(self, atom: Atom) -> str:
        """The sentence by which the critic judges a ground atom."""
        words = atom_text(atom, self.library)
        # LINK's released code has neither a capital letter nor a full stop.
        return words if self.settings.is_released else sentence(words)

    # -- likelihood

    def log_likelihoods(self, texts: Iterable[str], *, evaluator: bool = False) -> dict[str, float]:
        """Mean token log-likelihood of each text, in nats. Texts that the model refused are missing.

        Raises BudgetReached where the budget left a text unscored.
        """
        model = self.models.evaluator if evaluator else self.models.likelihood
        unique = list(dict.fromkeys(texts))
        scores = self.within_budget(lambda: model.log_likelihoods(unique), len(unique))
        self._require(None not in scores)
        name = model.identity.title
        known = [(text, score) for text, score in zip(unique, scores, strict=True) if score and not score.refused]
        self.kb.add(
            ASSESSMENTS,
            (Assessment(text, "log_likelihood", name, score.total, score.token_count) for text, score in known),
        )
        return {text: score.per_token for text, score in known}

    def measures(self, texts: Iterable[RankedText], measures: Sequence[Measure]) -> dict[str, TextMeasures]:
        """The ranker's measures of each text. Texts that the model refused are missing.

        Every measure is stored, so that a search by another one asks nothing again. Raises BudgetReached.
        """
        unique = list({ranked.text: ranked for ranked in texts}.values())
        ranker = _WithinBudget(self)
        answers = measured(ranker, unique, measures) if unique else []
        self._require(ranker.is_whole)
        known: dict[str, TextMeasures] = {}
        for ranked, answer in zip(unique, answers, strict=True):
            # The count of a name that was refused is NaN.
            if answer is not None and all(map(math.isfinite, answer.scores.values())):
                known[ranked.text] = answer
        name = self.models.likelihood.identity.title
        assessments = []
        for ranked_text, scored in known.items():
            for measure, score in scored.scores.items():
                assessments.append(Assessment(ranked_text, measure.value, name, score, scored.name_tokens))
        self.kb.add(ASSESSMENTS, assessments)
        return known

    # -- one round of calls

    def _round(self, asked: Sequence[AskedQuestion]) -> None:
        """Send the next request of each question as one batch, have the replies judged, and store the candidates."""
        replies = self._replies(asked)
        answered = [question for question in asked if not question.cut]
        self._judge({question: question.take(replies[question]) for question in answered})
        new = list(chain.from_iterable(question.unstored() for question in answered))
        with self.kb.transaction():
            self.kb.add_questions(question.inquiry.question for question in answered)
            self.kb.add(CANDIDATES, new)
        self._report(answered)

    def _report(self, asked: Iterable[AskedQuestion]) -> None:
        """Report by how much the numbers of accepted and of rejected values have grown."""
        changes = [question.change() for question in asked]
        if self.on_round is not None:
            self.on_round(sum(accepted for accepted, _ in changes), sum(rejected for _, rejected in changes))

    def _end(self, asked: Sequence[AskedQuestion]) -> None:
        """Lower the thresholds that no value reached, and report the values that this accepts."""
        for question in asked:
            question.end()
        starved = [question for question in asked if question.is_starved]
        if starved and self._ranks():
            for question in starved:
                question.gates.rank()
        self._report(question for question in asked if not question.restored)  # nor were their calls reported

    def _ranks(self) -> bool:
        """True if the critic says no to known truths, so that its scores can only order values.

        It is probed when the first question ends without a value because of its scores.
        """
        settings = self.settings
        if not (settings.ranks_if_needed and settings.critic and reads_any_words(self.models.critic.identity)):
            return False
        if self.critic_probe is None:
            truths, falsehoods = probe_claims()
            claims = [*truths, *falsehoods]
            scores = self.within_budget(lambda: self.models.critic.probabilities(claims), len(claims))
            self._require(None not in scores)
            known = [score.probability for score in scores if score is not None]
            if len(known) < len(claims):  # the budget ended the probe
                return False
            self.critic_probe = probe_result(known)
        return self.critic_probe.says_no(FACT_FLOOR)

    @property
    def critic_note(self) -> str | None:
        """Message about a critic that says no to everything; None unless values were ranked for it."""
        if self.critic_probe is None or not self.critic_probe.says_no(FACT_FLOOR):
            return None
        return (
            f"{self.models.critic.identity.name} as critic says no to everything: {self.critic_probe}. Where "
            "no value of a question reached a threshold, the better half was accepted by rank. Expect false "
            f"statements. Choose another critic with {Setting('critic')}, or set a threshold with "
            f"{Setting('settings.fact_threshold')} and {Setting('settings.type_threshold')}."
        )

    def _replies(self, asked: Sequence[AskedQuestion]) -> dict[AskedQuestion, list[ParsedGeneration]]:
        """The parsed replies to the next request of each question; questions without one are marked as cut."""
        askers: list[AskedQuestion] = []
        requests: list[GenerationRequest] = []
        for question in asked:
            for request in self._requests(question):  # several for a question with one right value
                askers.append(question)
                requests.append(request)
        knowledge, parameters = self.models.knowledge, self._parameters
        assert isinstance(knowledge, JournaledGenerator)  # noqa: S101  `journaled` saw to it
        calls = [knowledge.prepared(request, parameters) for request in requests]
        generations = self.within_budget(lambda: knowledge.answers(calls, requests, parameters), len(requests))
        replies: dict[AskedQuestion, list[ParsedGeneration]] = {question: [] for question in asked}
        for asker, call, generation in zip(askers, calls, generations, strict=True):
            if generation is None:
                asker.cut = True
                continue
            # Beams of LINK's released code share requests, each of which is sent once.
            asker.sent += call.id in self.journal.missed and call.id not in self._counted
            self._counted.add(call.id)
            wanted = asker.inquiry.question
            if wanted.functional and self.settings.is_released:
                self._samples[wanted] = max(self._samples.get(wanted, 0), asker.next_samples.stop)
            entries = self._canonical(self._read(asker.inquiry, generation).entries, wanted.data_type)
            replies[asker].append(ParsedGeneration(call.id, entries, bool(generation.refused)))
        return replies

    def _read(self, inquiry: Inquiry, generation: Generation) -> Reply:
        """The reply to a question, read as models write or, under `--compat`, by LINK's rules."""
        question = inquiry.question
        variable, words = question_words(question, self.library, inquiry.variable)
        numeric = self.library.is_numeric(question.data_type)
        # Values of earlier calls are not forbidden here: they are known to be accepted or not, and count once.
        asked = ReplyQuestion(variable, question.data_type, words, numeric)
        if self.settings.compat is not None:
            return read_strictly(generation.text, asked)
        return read_reply(self.settings.words.own_part(generation.text), asked, generation.finish_reason)

    def _canonical(self, entries: Sequence[ParsedValue], data_type: str) -> list[ParsedValue]:
        """The values under their canonical names, where a reference knows them; `raw` keeps the model's spelling."""
        if not self.models.names or self.settings.compat is not None:
            return list(entries)
        return [self._renamed(entry, data_type) for entry in entries]

    def _renamed(self, entry: ParsedValue, data_type: str) -> ParsedValue:
        if entry.rejected is not None or not isinstance(entry.value, str):
            return entry
        for authority in self.models.names:
            name = authority.canonical(entry.value, data_type)
            if name is not None:
                return replace(entry, value=name)
        return entry

    def _requests(self, asked: AskedQuestion) -> list[GenerationRequest]:
        """The next requests of a question: samples that it needs if one value is right, else one for further values."""
        question, name, wording = asked.inquiry.question, asked.inquiry.variable, self.wording
        if question.functional:
            return [wording.request(question, 1, (), index, variable=name) for index in asked.next_samples]
        count = asked.inquiry.values or self.settings.values_per_call
        earlier = tuple(str(candidate.value) for candidate in asked.values)
        if self.settings.compat is None:
            return [wording.request(question, count, earlier, asked.sample_index(earlier), variable=name)]
        accepted = tuple(str(candidate.value) for candidate in asked.gates.forbidden)
        # A banned token is banned everywhere: without digits the model could not number its list.
        rejected = tuple(text for text in earlier if text not in accepted and not any(map(str.isdigit, text)))
        sample = asked.sample_index(accepted, rejected)
        return [wording.request(question, count, accepted, sample, rejected=rejected, variable=name)]

    def _judge(self, proposed: Mapping[AskedQuestion, Sequence[Candidate]]) -> None:
        """Score all new candidates of all questions as one batch, then let each question's gates judge its own."""
        # The batch has the same order whichever gate decides first, so that a budget cuts it at the same place.
        gates = (*gates_in_order(), *self.gates)
        measures = {gate.name: gate.scoring.measure for gate in gates if gate.scoring is not None}
        batch: dict[str, dict[str, None]] = {measure: {} for measure in measures.values()}
        claims: dict[AskedQuestion, dict[Candidate, dict[str, Sequence[str]]]] = {}
        for asked, candidates in proposed.items():
            claims[asked] = {candidate: self._claims(asked.inquiry, candidate.value) for candidate in candidates}
            for by_gate in claims[asked].values():
                for gate, texts in by_gate.items():
                    batch[measures[gate]].update(dict.fromkeys(texts))  # questions share claims about types
        probabilities = self._score({measure: list(texts) for measure, texts in batch.items()})
        for asked, by_candidate in claims.items():
            scores: dict[Candidate, dict[str, float]] = {}
            for candidate, by_gate in by_candidate.items():
                lowest = {gate: _lowest(probabilities[measures[gate]], texts) for gate, texts in by_gate.items()}
                known = {gate: score for gate, score in lowest.items() if score is not None}
                if len(known) < len(lowest):
                    asked.cut = True  # the values before this one are judged: their scores move the threshold
                    break
                for gate, texts in by_gate.items():
                    reason = next((self._unanswered[text] for text in texts if text in self._unanswered), None)
                    if reason is not None:
                        asked.gates.objections[gate, candidate] = f"the critic gave no answer: {reason}"
                        del known[gate]
                scores[candidate] = known
            asked.judge(scores)

    def _claims(self, inquiry: Inquiry, value: Value) -> dict[str, Sequence[str]]:
        """The claims about a value that the critic scores, by gate; gates without a claim are left out."""
        claims: dict[str, Sequence[str]] = {}
        question, released = inquiry.question, self.settings.is_released
        # LINK's released code has no critic for the one right value of a question.
        if self.settings.critic and not (released and question.functional):
            atoms = [filled(pattern, value) for pattern in inquiry.claimed]
            for gate in self.gates:
                if gate.scoring is not None:
                    usual = gate.scoring.claims
                    make_claims = RELEASED_CLAIMS.get(gate.name, usual) if released else usual
                    texts = make_claims(value, question.data_type, atoms, self.library)
                    if texts:
                        claims[gate.name] = texts
                    if gate is TYPE:
                        self._types.update(dict.fromkeys(texts, question.data_type))
                    if gate is CRITIC:
                        self._indicators.update(zip(texts, (atom.indicator for atom in atoms), strict=False))
        return claims

    def _score(self, claims: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
        """P(yes) of claims by measure, scored as one batch and stored. Claims that the budget cut are missing."""
        critic, name = self.models.critic, self.models.critic.identity.title
        assert isinstance(critic, JournaledCritic)  # noqa: S101  `journaled` saw to it
        batch = list(chain.from_iterable(claims.values()))
        replies = iter(self.within_budget(lambda: critic.probabilities(batch), len(batch)))
        found: dict[str, dict[str, float]] = {}
        for measure, texts in claims.items():
            # `zip` takes from its first argument first, so that no reply is lost at the end of a measure.
            known = {claim: score for claim, score in zip(texts, replies, strict=False) if score is not None}
            refused = [claim for claim, score in known.items() if score.refused]
            call_ids = dict(zip(refused, critic.call_ids(refused), strict=True))  # `why` finds the reason there
            self.kb.add(
                ASSESSMENTS,
                (
                    # A chain's score is that of the critic that decided.
                    Assessment(
                        claim, measure, score.judge or name, score.probability, 0, call_ids.get(claim), _basis(score)
                    )
                    for claim, score in known.items()
                ),
            )
            self.kb.add(ASSESSMENTS, member_assessments(known, measure))
            self._unanswered.update((claim, score.refused) for claim, score in known.items() if score.refused)
            self._sources.update((claim, score.basis) for claim, score in known.items() if _supports(score))
            found[measure] = {claim: self._worth(claim, score, measure) for claim, score in known.items()}
        return found

    def _worth(self, claim: str, score: CriticScore, measure: str) -> float:
        """The score that gates compare: calibrated, if the search is, and below 1 unless a source states the claim.

        The assessment keeps the critic's own score.
        """
        probability, maps = score.probability, self.promises.maps
        # What a source states or nobody covers is not a score that could be calibrated.
        if score.basis or not score.covered:
            return probability
        critic = score.judge or self.models.critic.identity.title
        if measure == TYPE_MEASURE and maps is not None:
            return maps.type_probability(critic, probability, self._types.get(claim, ""), score.members)
        if measure != "probability":
            return probability
        if maps is not None:
            probability = maps.probability(critic, probability, self._indicators.get(claim, ""), score.members)
        is_bounded = maps is not None or self.promises.facts is not None
        return min(probability, BELOW_CERTAIN) if is_bounded else probability

    def within_budget(self, ask: Callable[[], Sequence[A]], count: int) -> Sequence[A | None]:
        """The answers, with None where the budget stopped them; the journal's answers come in any case."""
        if not count:
            return []
        try:
            return ask()
        except BudgetReached as reached:
            self.budget_reached = self.budget_reached or reached  # the first one is reported
            return list(reached.answers)

    def _require(self, is_whole: bool) -> None:
        """Raise BudgetReached unless a batch is whole, or parts are taken."""
        if not is_whole and not self.takes_parts and self.budget_reached is not None:
            raise self.budget_reached

    # -- what is known and what is stored

    def _given_values(self, inquiry: Inquiry) -> list[Value]:
        """Values for which all claimed patterns are given facts; without such patterns, those of any given facts."""
        free = Variable("V", inquiry.question.data_type)
        if not inquiry.claimed:
            opened = () if self.settings.compat is not None else inquiry.question.patterns
            atoms = (opened_atom(pattern, free) for pattern in opened)
            return list(dict.fromkeys(chain.from_iterable(self.known.given(atom, free.name) for atom in atoms)))
        first, *rest = (self.known.given(pattern_atom(pattern, free), free.name) for pattern in inquiry.claimed)
        return [value for value in first if all(value in values for values in rest)]

    def _restore(self, asked: Sequence[AskedQuestion]) -> None:
        """Answer questions that this knowledge model has exhausted from their candidates, judged call by call."""
        model = self.models.knowledge.identity.title
        # In LINK's released code the verdicts, and so the number of calls, depend on the beam.
        restorable = {question: question.inquiry.question.id for question in asked if not self.settings.is_released}
        if self.journal.retry_unusable:
            restorable = {}  # the journal tells which of their calls are asked again
        states = self.finished.question_states(question.inquiry.question for question in restorable)
        candidates = self.finished.candidates_of(number for number, state in states.items() if state.exhausted)
        call_ids = {candidate.call_id for candidate in chain.from_iterable(candidates.values())}
        calls = self.journal.store.calls(list(call_ids))
        by_call: dict[AskedQuestion, list[list[Candidate]]] = {}
        for question, question_id in restorable.items():
            stored = candidates.get(question_id, ())
            # Candidates of another knowledge model are not answers of this one.
            own = [item for item in stored if item.call_id in calls and calls[item.call_id].model == model]
            state = states.get(question_id)
            # A question with one right value may have been asked with a limit of fewer calls than its samples.
            is_short = state is not None and question.inquiry.question.functional and state.calls < question.samples
            if own and state is not None and not is_short:
                question.restore(state, own)
                by_call[question] = [list(group) for _, group in groupby(question.values, lambda item: item.call_id)]
        # The first calls of all questions are one batch, then the second ones: thresholds move by call.
        for number in range(max(map(len, by_call.values()), default=0)):
            self._judge({question: groups[number] for question, groups in by_call.items() if number < len(groups)})

    def _store(self, decided: Mapping[AskedQuestion, Sequence[tuple[Candidate, Decision]]]) -> None:
        """Store the decisions, facts and states of finished questions in one transaction; retract refuted facts."""
        decisions: list[Decision] = []
        accepted: list[FactRecord] = []
        rejected: list[FactRecord] = []
        types: list[TypeFact] = []
        for asked, pairs in decided.items():
            data_type = asked.inquiry.question.data_type
            for candidate, decision in pairs:
                decisions.append(decision)
                scores = asked.gates.scores.get(candidate)
                if scores is None:
                    continue  # the parser rejected it, so there is no value
                facts = self._facts(asked.inquiry, candidate, scores.get(CRITIC.name))
                (accepted if decision.accepted else rejected).extend(facts)
                if decision.accepted and TYPE.name in scores:
                    types.append(TypeFact(candidate.value, data_type, scores[TYPE.name]))
        with self.kb.transaction():
            self.kb.add(DECISIONS, decisions)
            # First reject, then add: one candidate may support what another, rejected one proposed too.
            self.known.reject(rejected)
            self.known.add(accepted)
            self.known.deny([self._denial(fact) for fact in rejected if self._is_sure_no(fact)])
            self.known.add_types(types)
            self.kb.set_question_states(
                (asked.inquiry.question, asked.state) for asked in decided if not asked.restored
            )

    def _is_sure_no(self, fact: FactRecord) -> bool:
        """True if the critic's score of a rejected fact is as low as a negated literal needs."""
        limit = self.denial_limit(f"{fact.predicate}/{len(fact.arguments)}")
        return fact.probability is not None and fact.probability <= limit

    def _denial(self, fact: FactRecord) -> DenialRecord:
        return DenialRecord(fact.predicate, fact.arguments, fact.probability or 0.0, fact.run_id)

    def _settle_conflicts(self, asked: Sequence[AskedQuestion]) -> None:
        """Pass the facts that the other gates accept to the consistency gate."""
        if CONSISTENCY not in self.gates:
            return
        proposals: list[ProposedFact] = []
        for question in asked:
            for candidate in question.gates.accepted:
                score = question.gates.scores[candidate].get(CRITIC.name)
                facts = self._facts(question.inquiry, candidate, score)
                # What the user withdrew comes back by the user alone.
                withdrawn = next(filter(None, map(self.known.withdrawn, facts)), None)
                if withdrawn is not None:
                    reason = f"the user withdrew this fact: {withdrawn}"
                    question.gates.objections[CONSISTENCY.name, candidate] = reason
                    continue
                proposals += [ProposedFact(question, candidate, fact) for fact in facts]
        self.consistency.settle(proposals)

    def _facts(self, inquiry: Inquiry, candidate: Candidate, probability: float | None) -> list[FactRecord]:
        """The facts that a candidate makes of the claimed patterns, its own argument typed as the question's values."""
        facts = []
        for pattern in inquiry.claimed:
            atom = filled(pattern, candidate.value)
            declared = self.library.signature(atom.indicator).argument_types
            types = tuple(
                inquiry.question.data_type if argument is None else argument_type
                for argument, argument_type in zip(pattern.arguments, declared, strict=True)
            )
            facts.append(self._fact(atom, types, probability, candidate.id))
        return facts

    def _fact(
        self, atom: Atom, types: tuple[str, ...], probability: float | None, candidate_id: str | None
    ) -> FactRecord:
        run_id = self.run_id or None
        # Without a source no claim is worded.
        basis = self._sources.get(self.claim(atom)) if self._sources else None
        return FactRecord(
            atom.predicate, atom_values(atom), types, Source.MODEL, probability, candidate_id, run_id, basis
        )


NOT_COVERED = "no critic covers it"
"""Basis of the score of a claim that is neither true nor false by any critic."""


def member_assessments(scores: Mapping[str, CriticScore], measure: str) -> Iterator[Assessment]:
    """The raw scores of the members of a combined critic, by claim."""
    for claim, score in scores.items():
        for member, probability in score.members.items():
            yield Assessment(claim, measure, member, probability)


def _basis(score: CriticScore) -> str | None:
    return score.basis or (None if score.covered else NOT_COVERED)


def _supports(score: CriticScore) -> bool:
    """True if a source states the claim."""
    return bool(score.basis) and score.probability == 1.0


def _lowest(probabilities: Mapping[str, float], claims: Sequence[str]) -> float | None:
    """The lowest P(yes) of these claims; None if the budget cut one of them."""
    known = [probabilities[claim] for claim in claims if claim in probabilities]
    return min(known) if len(known) == len(claims) else None


def critic_names(critic: Critic) -> list[str]:
    """Names of the critics of a chain as `model_name` writes them, or that of a single critic."""
    inner = critic.model if isinstance(critic, JournaledCritic) else critic
    return [member.identity.title for member in getattr(inner, "critics", (inner,))]
