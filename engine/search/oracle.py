"""The oracle: asks models questions in batches, lets the gates judge the answers, and stores everything.

A question is asked once for all rules, beams and runs. Its calls go through the journal, so that a killed run replays
its answers. An exhausted question is answered from its stored candidates, whose scores are compared with today's
thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, groupby
from typing import NamedTuple

from hapax.engine.gates.consistency import Consistency, ProposedFact
from hapax.engine.gates.decidable import GivenFacts
from hapax.engine.gates.gates import CONSISTENCY, CRITIC, TYPE, CriticRule, Gate, QuestionGates, Scores
from hapax.engine.gates.inquiry import (
    AskedQuestion,
    Inquiry,
    ParsedGeneration,
    QuestionAnswer,
    QuestionWording,
    opened_atom,
    question_words,
)
from hapax.engine.gates.released import RELEASED_CLAIMS, ReleasedGates
from hapax.engine.inference.derive import BULK_LIMITS
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.search.judge_scores import CriticClaim, Scorer, given_claims
from hapax.engine.search.promises import Promises
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.parsing.declarations import Tolerance
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.records import (
    CANDIDATES,
    DECISIONS,
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
from hapax.llm_oracle.critics.critic_probing import reads_any_words
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.protocols import (
    EVALUATOR,
    LIKELIHOOD,
    ClaimText,
    Critic,
    Generation,
    GenerationRequest,
    Generator,
    LikelihoodModel,
    Models,
)
from hapax.llm_oracle.questions.profile_probing import general_examples
from hapax.llm_oracle.questions.prompts import fact_claim
from hapax.llm_oracle.reading.link_replies import ParsedValue
from hapax.llm_oracle.reading.replies import Reply, read_reply, read_strictly
from hapax.llm_oracle.reading.reply_question import ReplyQuestion

GENERATION_BATCH = 64
"""Prompts in one batch: from 16 on, the embedded model is as fast as it gets."""

SLOW_BATCH = 16
"""Prompts in one batch of a model of any words, all of which an interruption loses, unless it streams its answers."""


Screen = Callable[[Mapping[Inquiry, Sequence[Value]]], Mapping[Inquiry, Collection[Value]]]
"""Chooses, among the values proposed for each inquiry, those that are worth judging."""

_Proposal = tuple[AskedQuestion, Candidate]

_VALUE = "V"
"""The variable of a question's values."""


class AtomVerdict(NamedTuple):
    """Truth of an atom that no question proposed, with its score.

    A score between the thresholds is neither true nor false.
    """

    score: float | None
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
    # LINK asks on, whatever the length of a list.
    wanted = 0 if settings.compat else inquiry.values or settings.values_per_call
    return AskedQuestion(inquiry, gates, calls, tolerance, settings.tries, samples=settings.samples, wanted=wanted)


class Oracle:
    """Answers questions and judges ground atoms for one run.

    `on_round` is called after each round of calls, with the growth of the numbers of accepted and rejected values.

    A batch that the budget leaves incomplete raises BudgetReached before anything that follows from it is stored: what
    a part of the answers suggests may be false once all are there. `scorer.budget_reached` is the first of these
    exceptions. `takes_parts`: for goals and forecasts, which take what is there: incomplete answers are marked as such
    (`QuestionAnswer.complete`). `finished`: the knowledge base whose finished questions are not asked again, that of
    the job by default. `promises`: what the critic's scores are worth.
    """

    def __init__(
        self,
        job: SearchJob,
        run_id: str = "",
        promises: Promises | None = None,
        *,
        takes_parts: bool = False,
        finished: KnowledgeBase | None = None,
    ) -> None:
        kb = job.kb
        self.finished = kb if finished is None else finished
        self.kb, self.library, self.run_id = kb, job.library, run_id
        self.settings, self.promises = job.settings, promises or Promises()
        self.gates, self._rules, self._parameters = self.settings.gates, self.settings.rules, self.settings.parameters
        self.journal = job.journal or Journal(kb)
        self.models = journaled(job.models, self.journal)
        self.scorer = Scorer(kb, self.models, self.settings, self.promises, takes_parts)
        self.known = RunFacts(kb, self.library)
        self.scorer.known_claims = partial(given_claims, self.known)
        self.given = GivenFacts(self.known, self.library, BULK_LIMITS.seconds)
        self.wording = QuestionWording(self.settings.words, self.library, self.known, general_examples())
        self.consistency = Consistency(kb, self.library, self.known, run_id)
        self.on_round: Callable[[int, int], None] | None = None
        self._answers: dict[Inquiry, QuestionAnswer] = {}
        self._probabilities: dict[Atom, float | None] = {}
        self._samples: dict[Question, int] = {}
        """Under `released`, numbers of samples of questions with one right value."""
        self._counted: set[str] = set()
        """Ids of the calls that a question has been charged with."""
        self._waiting: dict[Inquiry, AskedQuestion] = {}
        """Questions with values that no rule has needed so far."""

    # -- questions

    def answers(self, inquiries: Sequence[Inquiry], screen: Screen | None = None) -> dict[Inquiry, QuestionAnswer]:
        """The answer to each inquiry; those without one yet are asked in rounds, each one batch over all of them.

        `screen`: chooses the values that are worth judging; the others wait until somebody needs them. Raises
        BudgetReached where the budget ended one of them.
        """
        asked: list[AskedQuestion] = []
        screen = None if self.settings.compat else screen
        for inquiry in dict.fromkeys(inquiries):
            if inquiry not in self._answers:
                rules, tolerance = self._rules_of(inquiry.question), self._tolerance(inquiry.question)
                asked.append(asked_question(inquiry, self.settings, rules, tolerance))
        given = self._given_values(asked)
        for question in [question for question in asked if question.inquiry.question.functional and given[question]]:
            # One value is right, and it is known.
            if self.settings.compat is None:
                asked.remove(question)
                self._answers[question.inquiry] = question.answer(given[question], ())
        self._restore(asked, screen)
        while open_questions := [question for question in asked if question.is_open]:
            self._round(self._in_turn(open_questions), screen)
        again = [self._waiting.pop(inquiry) for inquiry in dict.fromkeys(inquiries) if inquiry in self._waiting]
        self._judge({question: question.waiting for question in again}, screen)
        asked += again
        self.scorer.require(not any(question.cut for question in asked))
        self._end(asked)
        # Before the decisions, which record facts that lose in a conflict.
        self._settle_conflicts(asked)
        decisions = {question: question.decisions(self.run_id) for question in asked}
        self._store(decisions)
        for question, own in decisions.items():
            values = given[question] if question in given else self._given_values([question])[question]
            self._answers[question.inquiry] = question.answer(values, own, self.settings.is_released)
            if question.waiting:
                self._waiting[question.inquiry] = question
        return {inquiry: self._answers[inquiry] for inquiry in inquiries}

    def _given_values(self, asked: Sequence[AskedQuestion]) -> dict[AskedQuestion, list[Value]]:
        """By question, the values that given facts give it."""
        atoms = {question: self._value_atoms(question.inquiry) for question in asked}
        values = self.given.values(chain.from_iterable(atoms.values()), _VALUE)
        given: dict[AskedQuestion, list[Value]] = {}
        for question, own in atoms.items():
            found = [values[atom] for atom in own]
            if question.inquiry.claimed:
                given[question] = [value for value in found[0] if all(value in others for others in found[1:])]
            else:
                given[question] = list(dict.fromkeys(chain.from_iterable(found)))
        return given

    def threshold_of(self, indicator: str) -> float:
        """P(yes) from which an atom that no question proposed is true: where the critic's threshold starts."""
        facts = self.promises.facts
        return self.rule_of_facts.start if facts is None else facts.of_fact(indicator)

    def denial_limit(self, indicator: str) -> float:
        """P(yes) up to which an atom of a predicate is denied for sure: 1 less the threshold, or by a promise."""
        facts = self.promises.facts
        return 1 - self.threshold_of(indicator) if facts is None else facts.denial_limit()

    @cached_property
    def rule_of_facts(self) -> CriticRule:
        """The rule of the threshold of facts, which follows what the critic is worth on claims of known truth."""
        return self.scorer.rule_of_facts(self._rules[CRITIC.name])

    def _rules_of(self, question: Question) -> Mapping[str, CriticRule]:
        """The rules of thresholds for the values of a question."""
        facts = self.promises.facts
        if facts is None:
            return {**self._rules, CRITIC.name: self.rule_of_facts}
        indicators = {pattern.indicator for pattern in question.patterns}
        return {**self._rules, CRITIC.name: CriticRule.at(max(map(facts.of_fact, indicators)))}

    def _tolerance(self, question: Question) -> Tolerance | None:
        """The tolerance of a functional question's predicate."""
        if not question.functional:
            return None
        pattern = question.patterns[0]
        return self.library.signature(pattern.indicator).tolerance

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
            self._waiting.pop(inquiry, None)
        for atom in [atom for atom in self._probabilities if atom.indicator not in indicators]:
            del self._probabilities[atom]

    # -- ground atoms

    def probabilities(self, atoms: Iterable[Atom]) -> dict[Atom, float | None]:
        """P(yes) of each ground atom: 1 or 0 by a given fact or arithmetic, None without a critic.

        Raises BudgetReached where the budget left one unscored.
        """
        unique = list(dict.fromkeys(atoms))
        truths = self.given.truths(atom for atom in unique if atom not in self._probabilities)
        open_atoms = [atom for atom, truth in truths.items() if truth is None and self.settings.critic]
        claims = {atom: CriticClaim(self.claim(atom), about=atom.indicator) for atom in open_atoms}
        scores = self.scorer.probabilities(claims.values())
        self.scorer.require(scores.keys() >= set(claims.values()))
        for atom, truth in truths.items():
            probability = scores.get(claims[atom]) if atom in claims else truth
            # What the budget left unscored is not remembered, so that it is asked for again.
            if probability is not None or not self.settings.critic:
                self._probabilities[atom] = probability
        return {atom: self._probabilities.get(atom) for atom in unique}

    def verify(self, atoms: Sequence[Atom]) -> dict[Atom, bool]:
        """Truth of each ground atom: given, computed, or judged at the starting threshold. True ones become facts.

        Raises BudgetReached where the budget left an atom unscored.
        """
        verdicts = self.verdicts(atoms)
        if self.scorer.budget_reached and len(verdicts) < len(set(atoms)):
            raise self.scorer.budget_reached
        return {atom: verdict.is_true for atom, verdict in verdicts.items()}

    def verdicts(self, atoms: Iterable[Atom], negated: bool = False) -> dict[Atom, AtomVerdict]:
        """The verdict on each ground atom, which is stored; true ones become facts. Unscored atoms are left out.

        Without a critic every premise holds, the negated ones too. Raises BudgetReached unless parts are taken.
        """
        verdicts: dict[Atom, AtomVerdict] = {}
        decisions: list[Decision] = []
        facts: list[FactRecord] = []
        denials: list[DenialRecord] = []
        scores = self.probabilities(atoms)
        truths = self.given.truths(scores)
        for atom, score in scores.items():
            truth, threshold = truths[atom], self.threshold_of(atom.indicator)
            is_denied = score is not None and score <= self.denial_limit(atom.indicator)
            if score is not None:
                is_true = score >= threshold
                is_false = not is_true and (is_denied or self.known.is_covered(atom) or truth == 0.0)
                verdicts[atom] = AtomVerdict(score, is_true, is_false)
                reason = f"P(yes) {score:.3f} {'reaches' if is_true else 'is below'} the threshold {threshold:.2f}"
            elif not self.settings.critic:
                is_true, reason = not negated, "no critic"
                verdicts[atom] = AtomVerdict(None, is_true, negated)
            if atom not in verdicts or truth is not None:
                continue  # given or computed: nobody judged it
            values = atom.values
            subject = fact_id(atom.predicate, values)
            decisions.append(Decision(self.run_id, CRITIC.name, subject, is_true, score, threshold, reason))
            if is_true:
                types = self.library.signature(atom.indicator).argument_types
                facts.append(self._fact(atom, types, score, None))
            elif is_denied:
                denials.append(DenialRecord(atom.predicate, values, score or 0.0, self.run_id or None))
        if decisions:
            with self.kb.transaction():
                self.kb.add(DECISIONS, decisions)
                self.known.add(facts)
                self.known.deny(denials)
        if CONSISTENCY in self.gates:
            self.consistency.settle((), facts)
        return verdicts

    def claim(self, atom: Atom) -> ClaimText:
        """The sentence by which the critic judges a ground atom."""
        # LINK's released code has neither a capital letter nor a full stop.
        is_released = self.settings.is_released
        return ClaimText(atom_text(atom, self.library), atom) if is_released else fact_claim(atom, self.library)

    # -- one round of calls

    def _round(self, asked: Sequence[AskedQuestion], screen: Screen | None) -> None:
        """Send the next request of each question as one batch, have the replies judged, and store the candidates."""
        replies = self._replies(asked)
        answered = [question for question in asked if not question.cut]
        self._judge({question: question.take(replies[question]) for question in answered}, screen)
        new = list(chain.from_iterable(question.newest for question in answered))
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
        self._report(question for question in asked if not question.restored)  # nor were their calls reported

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
        generations = self.scorer.within_budget(lambda: knowledge.answers(calls, requests, parameters), len(requests))
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
            replies[asker].append(
                ParsedGeneration(call.id, entries, bool(generation.refused), generation.finish_reason == "length")
            )
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

    def _judge(self, proposed: Mapping[AskedQuestion, Sequence[Candidate]], screen: Screen | None = None) -> None:
        """Score the candidates of all questions, gate by gate, then let each question's gates judge its own.

        Nothing is asked about a candidate that is settled without the critic, or that an earlier gate rejects for sure.
        """
        kept = None
        if screen is not None:
            values = {asked.inquiry: [candidate.value for candidate in own] for asked, own in proposed.items()}
            kept = screen(values)
        judged: dict[AskedQuestion, list[Candidate]] = {}
        for asked, candidates in proposed.items():
            judged[asked] = [item for item in candidates if kept is None or item.value in kept[asked.inquiry]]
            open_values = dict.fromkeys((*asked.waiting, *candidates))
            chosen = set(judged[asked])
            asked.waiting = [item for item in open_values if item not in chosen]
        settled = self._settled(judged)
        scores: dict[AskedQuestion, dict[Candidate, dict[str, float]]] = {}
        for asked, candidates in judged.items():
            scores[asked] = {candidate: dict(settled.get((asked, candidate), {})) for candidate in candidates}
        scoring = [gate for gate in self.gates if gate.scoring is not None] if self.settings.critic else []
        missing: set[_Proposal] = set()
        # LINK asks for everything.
        for gates in [[gate] for gate in scoring] if self.settings.compat is None else [scoring]:
            missing |= self._score(gates, scores, settled)
        for asked, known in scores.items():
            whole: dict[Candidate, Scores] = {}
            for candidate, own in known.items():
                if (asked, candidate) in missing:
                    asked.cut = True  # the values before this one are judged: their scores move the threshold
                    break
                whole[candidate] = own
            asked.judge(whole)

    def _settled(self, judged: Mapping[AskedQuestion, Sequence[Candidate]]) -> dict[_Proposal, Scores]:
        """The scores of candidates that need no critic: of differing samples, given facts, and facts that must lose."""
        settled: dict[_Proposal, Scores] = {}
        if self.settings.compat is not None:
            return settled
        proposals = [(asked, candidate) for asked, own in judged.items() for candidate in own]
        facts = {item: self._facts(item[0].inquiry, item[1], None) for item in proposals}
        truths = self.given.truths(fact.ground_atom for own in facts.values() for fact in own)
        losing = self.consistency.losing(list(chain.from_iterable(facts.values())))
        for item, own in facts.items():
            known = {truths[fact.ground_atom] for fact in own}
            if known == {1.0}:
                settled[item] = {CRITIC.name: 1.0}
            elif item[0].has_dissent or 0.0 in known or any(fact.id in losing for fact in own):
                settled[item] = {}  # another gate rejects it
        return settled

    def _score(
        self,
        gates: Sequence[Gate],
        scores: Mapping[AskedQuestion, dict[Candidate, dict[str, float]]],
        settled: Collection[_Proposal],
    ) -> set[_Proposal]:
        """Add the critic's scores for these gates, of all candidates as one batch. Returns those that lack one now."""
        claims: dict[_Proposal, dict[str, list[CriticClaim]]] = {}
        for asked, known in scores.items():
            for candidate, own in known.items():
                is_open = not any(asked.gates.is_hopeless(gate, own) for gate in self.gates if gate.scoring)
                if is_open and (asked, candidate) not in settled:
                    claims[asked, candidate] = self._claims(asked.inquiry, candidate.value, gates)
        by_gate = chain.from_iterable(found.values() for found in claims.values())
        probabilities = self.scorer.probabilities(chain.from_iterable(by_gate))
        unanswered = self.scorer.unanswered
        missing: set[_Proposal] = set()
        for (asked, candidate), found in claims.items():
            if not all(claim in probabilities for claim in chain.from_iterable(found.values())):
                missing.add((asked, candidate))
                continue
            for name, own_claims in found.items():
                reason = next((unanswered[claim.text] for claim in own_claims if claim.text in unanswered), None)
                if reason is None:
                    scores[asked][candidate][name] = min(probabilities[claim] for claim in own_claims)
                else:
                    asked.gates.objections[name, candidate] = f"the critic gave no answer: {reason}"
        return missing

    def _claims(self, inquiry: Inquiry, value: Value, gates: Sequence[Gate]) -> dict[str, list[CriticClaim]]:
        """The claims about a value that the critic scores, by gate; gates without a claim are left out."""
        claims: dict[str, list[CriticClaim]] = {}
        question, released = inquiry.question, self.settings.is_released
        # LINK's released code has no critic for the one right value of a question.
        if not (released and question.functional):
            atoms = [pattern.filled(Constant(value)) for pattern in inquiry.claimed]
            for gate in gates:
                if gate.scoring is None:
                    continue
                usual = gate.scoring.claims
                make_claims = RELEASED_CLAIMS.get(gate.name, usual) if released else usual
                texts = make_claims(value, question.data_type, atoms, self.library)
                about = [question.data_type] if gate is TYPE else [atom.indicator for atom in atoms]
                if texts:
                    pairs = zip(texts, about, strict=False)
                    claims[gate.name] = [CriticClaim(text, gate.scoring.measure, subject) for text, subject in pairs]
        return claims

    # -- what is known and what is stored

    def _value_atoms(self, inquiry: Inquiry) -> list[Atom]:
        """Atoms whose given values answer an inquiry: those that hold of all claimed patterns, else of any pattern."""
        free = Variable(_VALUE, inquiry.question.data_type)
        if inquiry.claimed:
            return [pattern.filled(free) for pattern in inquiry.claimed]
        opened = () if self.settings.compat is not None else inquiry.question.patterns
        return [opened_atom(pattern, free) for pattern in opened]

    def _restore(self, asked: Sequence[AskedQuestion], screen: Screen | None) -> None:
        """Answer questions that this knowledge model has exhausted from their candidates, judged call by call."""
        model = self.models.knowledge.identity.title
        # In LINK's released code the verdicts, and so the number of calls, depend on the beam.
        restorable = {question: question.inquiry.question.id for question in asked if not self.settings.is_released}
        if self.journal.retry_unusable:
            restorable = {}  # the journal knows which of their calls are asked again
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
            groups_now = {question: groups[number] for question, groups in by_call.items() if number < len(groups)}
            self._judge(groups_now, screen)

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
        denied = [fact for fact in rejected if self._is_denied(fact)]
        with self.kb.transaction():
            self.kb.add(DECISIONS, decisions)
            # First reject, then add: one candidate may support what another, rejected one proposed too.
            self.known.reject(rejected)
            self.known.add(accepted)
            self.known.deny(
                [DenialRecord(fact.predicate, fact.arguments, fact.probability or 0.0, fact.run_id) for fact in denied]
            )
            self.known.add_types(types)
            self.kb.set_question_states(
                (asked.inquiry.question, asked.state) for asked in decided if not asked.restored
            )

    def _is_denied(self, fact: FactRecord) -> bool:
        """True if the critic's score of a rejected fact is as low as a negated literal needs."""
        limit = self.denial_limit(fact.indicator)
        return fact.probability is not None and fact.probability <= limit

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
            atom = pattern.filled(Constant(candidate.value))
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
        basis = sources.get(self.claim(atom)) if (sources := self.scorer.sources) else None
        return FactRecord(atom.predicate, atom.values, types, Source.MODEL, probability, candidate_id, run_id, basis)
