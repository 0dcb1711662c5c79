"""Explain why something holds (`why`), down to call and prompt, or why it does not (`why_not`): the gate or premise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product

from hapax.engine.answers.derivation import RUN_ID, find_statement, statement_by_id
from hapax.engine.entailment.graph import entailment_scores
from hapax.engine.inference.derive import (
    KeptSubstitutions,
    fact_key,
    matched,
    values_in_sentence,
)
from hapax.engine.inference.proof import By, Proof, instantiated, proof_from_json, reason
from hapax.engine.inference.theory import Theory
from hapax.engine.logic.compile import join_order
from hapax.engine.logic.conflicts import fact_text, premises_among
from hapax.engine.logic.proofs import derive_statements, holding_prefixes, holds, prove
from hapax.engine.probability.probability_options import ProbabilityOptions
from hapax.engine.probability.probable_answers import (
    Probability,
    ProofSupport,
    basis_of,
    probable_atom,
    probable_premise,
)
from hapax.engine.questions.gates import PARSER, substitution_subject
from hapax.engine.questions.score_maps import short_model_name
from hapax.engine.run_memory import (
    models_of,
    ranking_measure,
    search_story,
    stored_rule,
    with_stored_predicates,
    worded_atom,
)
from hapax.engine.search.demand_loop import is_asked
from hapax.engine.search.promises import certificates_of, certificates_of_statement
from hapax.engine.search.ranking import ranked_parts, ranked_text
from hapax.engine.stories import Story, first_of
from hapax.grammar.dependencies import plan
from hapax.grammar.errors import GoalRejected, HapaxError, RulesRejected
from hapax.grammar.parsing.declarations import Closedness, PredicateKind, PredicateSignature
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    CutDecimal,
    Literal,
    Substitution,
    Variable,
)
from hapax.grammar.values.calculation import assigned, fault
from hapax.grammar.writing.verbalize import StatementText, atom_text, is_worded, item_text, literal_text
from hapax.grammar.writing.words import counted
from hapax.kb.records import (
    RUNS,
    STATEMENTS,
    Assessment,
    AtomPattern,
    Decision,
    Distribution,
    FactRecord,
    Question,
    Source,
    StatementRecord,
    Withdrawal,
    fact_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.kb.story import CandidateStory, FactStory, fact_story
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.journal import REFUSED
from hapax.llm_oracle.protocols import EVALUATOR, LIKELIHOOD

PROMPT_CHARACTERS = 600
"""The length at which quoted prompts and answers are cut; the knowledge base has the whole text."""

EXAMPLES = 3
"""The number of substitutions shown for the longest part of a premise that holds."""


# --- why --------------------------------------------------------------------------------------------------------------


def why(
    theory: Theory,
    text: str,
    *,
    probability: ProbabilityOptions | None = None,
) -> Story:
    """Explain why a statement (by id or text) or a ground atom holds. Raises HapaxError if it does not hold.

    `probability`: begin with its probability and its best proofs.
    """
    worded = with_stored_predicates(theory)
    # First as a statement: a sentence can never be read as an atom.
    statement = _statement(theory.kb, text)
    if statement is None and not _ATOM.match(text):
        # An id is one word; a sentence is not.
        if " " in text.strip():
            statement = find_statement(theory.kb, theory.library, _named(text), text)
        else:
            statement = statement_by_id(theory.kb, theory.library, text.strip())
    if statement is not None:
        _refuse_fallen(worded, statement)
        story = why_statement(worded, statement)
        return story if probability is None else _with_first(story, _statement_chance(worded, statement, probability))
    if not _ATOM.match(text):
        refuse_withdrawn(theory, text)
    worded, atom = _atom(text, theory)
    proof = prove(worded, atom)
    if proof is None and probability is not None and theory.library.is_uncertain:
        # What the other premises negate may hold, too.
        found, proofs = probable_atom(worded, atom, probability)
        if found.upper > 0:
            return Story(str(atom), "goal", (_chance(worded, found, proofs),))
    if proof is None:
        unknown = "" if theory.library.knows(atom.indicator) else f" {_unknown(atom)}"
        raise HapaxError(
            f"{atom} does not hold.{unknown}", Remedy("Run {} to see why.", Operation("why_not", text.strip()))
        )
    story = _Explainer(worded).proof(proof)
    if probability is None:
        return story
    return _with_first(story, _chance(worded, *probable_atom(worded, atom, probability)))


def _with_first(story: Story, line: Story) -> Story:
    return replace(story, children=(line, *story.children))


def _statement_chance(worded: Theory, statement: StatementRecord, options: ProbabilityOptions) -> Story:
    """The probability of what a statement's rule needs, with its proofs."""
    rule = stored_rule(worded.kb, statement.rule, worded.library)
    if rule is None:
        unknown = f"no probability: no loaded rule file has rule {statement.rule}. Name it with {Setting('rules')}."
        return Story(unknown, "probability")
    values = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
    return _chance(worded, *probable_premise(worded, rule, values, options))


def _chance(theory: Theory, probability: Probability, proofs: Sequence[ProofSupport]) -> Story:
    """A probability and the proofs behind it, each with its own."""
    lines: list[Story] = []
    for number, proof in enumerate(proofs, 1):
        facts = ", ".join(f"{fact} {value:.4g}" for fact, value in proof.facts)
        lines.append(Story(f"proof {number}, P {proof.probability:.4f}: {facts}", "proof"))
    if not lines and probability.upper <= 0:
        lines.append(Story(f"no proof by the loaded rules; name other rule files with {Setting('rules')}", "proof"))
    return Story(
        f"P {probability}, {probability.method}. {basis_of(theory.kb, theory.library)}", "probability", tuple(lines)
    )


def why_statement(worded: Theory, statement: StatementRecord) -> Story:
    """Explain why a statement holds. `worded` comes from `with_stored_predicates`."""
    return _Explainer(worded).statement(statement)


def _unknown(atom: Atom) -> str:
    return f"No loaded rule file declares {atom.indicator}. Name the files that may derive it with {Setting('rules')}."


def _refuse_fallen(worded: Theory, statement: StatementRecord) -> None:
    """Raise HapaxError for a statement whose proof rests on a withdrawn fact, with the withdrawal."""
    gone = worded.kb.fallen(statement)
    if gone:
        raise HapaxError(_fallen_text(statement, gone))
    if since := worded.kb.lapsed_since(statement):
        raise HapaxError(
            f'"{statement.text}" (statement {statement.id}) has not held since '
            f"{since[:16].replace('T', ' ')} UTC: facts that were added refute it.",
            Remedy("{} of its conclusion says which.", Operation("why_not")),
        )


def _fallen_text(statement: StatementRecord, gone: Iterable[Withdrawal]) -> str:
    facts = "; ".join(f"{item.atom}, {item.text}" for item in gone)
    return (
        f'"{statement.text}" (statement {statement.id}) no longer holds. Its proof rests on {facts}. Run '
        f"{Operation('restore', 'FACT')} if that is wrong."
    )


def refuse_withdrawn(theory: Theory, text: str) -> None:
    """Raise HapaxError, with the withdrawals, if a statement of `derive` would hold if withdrawn facts stood.

    Such statements are stored nowhere: they are derived again from the facts as they were. By id only those are found
    of which a withdrawn fact is a premise itself.
    """
    gone = {item.fact.id: item for item in theory.kb.withdrawals()}
    stored = theory.kb.derived_counts() if gone else {}
    is_wanted = _named(text)
    for rule in (rule for rule in theory.library.rules if rule.name in stored):
        kept = values_in_sentence(rule, theory.library, text)
        if not kept and _IDENTITY.fullmatch(text.strip()):
            kept = [*premises_among(rule, (item.fact for item in gone.values()))]
        if not kept:
            continue
        part = theory.relevant_to(rule)
        # As if the withdrawn facts still stood.
        facts = [*part.facts(), *(item.fact for item in gone.values())]
        wanted = KeptSubstitutions(rule, {Distribution.HEAD: kept}, RUN_ID)
        found = derive_statements(theory.kb, theory.library, facts, wanted, list(part.denied()))
        for record in found:
            rests_on = [gone[fact_id] for fact_id in proof_from_json(record.proof).fact_ids() if fact_id in gone]
            if rests_on and is_wanted(record.id, record.text):
                raise HapaxError(_fallen_text(record, rests_on))


_ATOM = re.compile(r"\s*(?:\w+|'[^']*')\(")
"""The beginning of an atom, which no sentence has."""


_IDENTITY = re.compile(r"[0-9a-f]{32}")


def _statement(kb: KnowledgeBase, text: str) -> StatementRecord | None:
    """The statement of a search by id or text; case, blanks and the full stop are ignored."""
    if _ATOM.match(text):
        return None
    is_wanted = _named(text)
    # Before records are made, whose proofs take longest to read.
    ids = set()
    for identity, premise, conclusion in kb.sql("SELECT id, premise, conclusion FROM statements"):
        if is_wanted(identity, StatementText(premise, conclusion).sentence):
            ids.add(identity)
    named = kb.select_in(STATEMENTS, "id", ids)
    standing = (statement for statement in named if not kb.fallen(statement) and not kb.lapsed_since(statement))
    return next(chain(standing, named), None)


def _named(text: str) -> Callable[[str, str], bool]:
    """A test of a statement's id and sentence."""
    identity, wanted = text.strip(), _plain(text)
    return lambda found, sentence: found == identity or _plain(sentence) == wanted


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def _atom(text: str, theory: Theory) -> tuple[Theory, Atom]:
    try:
        return worded_atom(text, theory)
    except GoalRejected as rejected:
        reason = " ".join(diagnostic.text for diagnostic in rejected.diagnostics)
    except RulesRejected:
        raise  # of a rule that was left out
    except HapaxError as fault:
        reason = str(fault)
    # Raised out here, so that the parser's error is not shown as its cause.
    raise HapaxError(f"No statement has this id or text, and it is not an atom: {reason}")


class _Explainer:
    """Turns statements and proofs into stories. A subproof that was explained once is referred to afterwards."""

    def __init__(self, theory: Theory) -> None:
        self.kb, self.library = theory.kb, theory.library
        self.explained: set[int] = set()
        self.entailments = entailment_scores(self.library)

    def statement(self, statement: StatementRecord) -> Story:
        proof = self.proof(proof_from_json(statement.proof))
        origin = "derived" if statement.run_id == RUN_ID else statement.distribution.value
        title = f"{statement.text}  [{origin}, statement {statement.id}]"
        promises = [
            Story(f"certificate of {certificate.text}", "certificate")
            for certificate in certificates_of_statement(self.kb, statement)
        ]
        gates = first_of(list(self._gates(statement)), lambda gate: gate, "gate")
        return Story(title, "statement", (*promises, *self._likelihood(statement), *gates, proof))

    def _likelihood(self, statement: StatementRecord) -> Iterator[Story]:
        if statement.log_likelihood is not None:
            evaluator = models_of(self.kb.first(RUNS, id=statement.run_id)).get(EVALUATOR)
            by = f" by the evaluator {short_model_name(evaluator)}" if evaluator else ""
            score = f"log-likelihood of the statement {statement.log_likelihood:.3f} nats a token{by}"
            yield Story(score, "likelihood")

    def _gates(self, statement: StatementRecord) -> Iterator[Story]:
        """The gates' decisions on the statement's values, step by step, with the likelihoods that ranked them."""
        rule = stored_rule(self.kb, statement.rule, self.library)
        for names in self._steps(statement, rule):
            values = {name: Constant(value) for name, value in statement.substitution if name in names}
            subject = substitution_subject((name, constant.value) for name, constant in values.items())
            for decision in self.kb.decisions(subject=subject):
                # A decision without a rule or distribution was made for all of them.
                if decision.rule in (None, statement.rule) and decision.distribution in (None, statement.distribution):
                    yield self._gate(decision, rule, {name: values[name] for name in names if name in values})

    def _steps(self, statement: StatementRecord, rule: Rule | None) -> list[tuple[str, ...]]:
        """The variables with values after each step of the run's plan; if the plan is unknown, after the last."""
        run = self.kb.first(RUNS, id=statement.run_id)
        try:
            order = plan(rule, self.library, run.settings.get("plan", "")).order if rule and run else ()
        except HapaxError:
            order = ()
        steps = [order[:number] for number in range(1, len(order) + 1)]
        return steps or [tuple(name for name, _ in statement.substitution)]

    def _gate(self, decision: Decision, rule: Rule | None, bound: Mapping[str, Constant]) -> Story:
        """A gate's decision; that of the likelihood gate with the model's scores of the ranked text."""
        story = _decision_story(decision)
        run = self.kb.first(RUNS, id=decision.run_id)
        model = models_of(run).get(LIKELIHOOD)
        if decision.gate != LIKELIHOOD or run is None or model is None:
            return story
        text = ranked_text(rule, self.library, bound, run.settings.get("compat")) if rule else ""
        texts = ranked_parts(text) if text else []
        scores = self.kb.assessments(texts, ranking_measure(run), model).values()
        ranked = Story(f"ranked by the likelihood model {short_model_name(model)}", "assessment")
        return replace(story, children=tuple(_assessment_story(self.kb, score) for score in scores) or (ranked,))

    def proof(self, proof: Proof) -> Story:
        """Explain a proof of any depth without recursion, children before parents."""
        stories: dict[int, Story] = {}
        for part in _postorder(proof):
            lines: list[Story] = []
            for child in part.children:
                if id(child) in self.explained and child.children:
                    text, words = self._words(child.goal)
                    lines.append(Story(f"{text}  [see above]", "goal", words=words, by="see above"))
                else:
                    lines.append(stories[id(child)])
            # By identity: equal subproofs are the same object.
            self.explained.update(map(id, part.children))
            if part.by is By.FACT and isinstance(part.goal, Literal):
                lines.extend(fact_lines(self.kb, self.library, part.goal.atom))
            elif part.by is By.GIVEN and isinstance(part.goal, Literal):
                fact = self.kb.fact(*fact_key(part.goal.atom))
                # The spelling of the user's file, if the fact was imported under canonical names.
                if fact is not None and fact.source is Source.GIVEN and fact.basis:
                    lines.append(Story(_given_line(fact), "fact", by=_origin(fact)))
            if part.left_out:
                text = f"and {part.left_out:,} more rows of the group; {Operation('query')} lists them"
                lines.append(Story(text, "goal", more=part.left_out))
            chain = "".join(f"  [{text}]" for text in self._chain(part))
            text, words = self._words(part.goal)
            # A fact says itself where it comes from.
            by = next((line.by for line in lines if line.kind == "fact"), reason(part))
            stories[id(part)] = Story(f"{text}  [{reason(part)}]{chain}", "goal", tuple(lines), words=words, by=by)
        return stories[id(proof)]

    def _chain(self, proof: Proof) -> Iterator[str]:
        """The product of the scores of a chain of entailments, of two steps and more, that ends in this step."""
        scores: list[float] = []
        step: Proof | None = proof
        while step is not None and step.rule in self.entailments:
            scores.append(self.entailments[step.rule])
            step = step.children[0] if step.children else None
        if len(scores) > 1:
            yield f"chain {' x '.join(f'{score:.2f}' for score in reversed(scores))} = {math.prod(scores):.4g}"

    def _words(self, goal: BodyLiteral) -> tuple[str, str]:
        """The goal with its atom, and in words alone."""
        is_written = isinstance(goal, Literal) and goal.atom.indicator in self.library.exceptions
        if not isinstance(goal, Literal) or is_written or not is_worded(goal.atom, self.library):
            text = item_text(goal, self.library)
            return text, text
        words = literal_text(goal, self.library, generic=[variable.name for variable in goal.variables])
        return f"{words}  {goal}", words


def _postorder(proof: Proof) -> Iterator[Proof]:
    """All subproofs, each once and after its children."""
    done: set[int] = set()
    waiting = [(proof, False)]
    while waiting:
        part, ready = waiting.pop()
        if id(part) in done:
            continue
        if ready:
            done.add(id(part))
            yield part
        else:
            # Below its children on the stack, so that it comes up again when all of them are done.
            waiting.append((part, True))
            waiting.extend((child, False) for child in reversed(part.children) if id(child) not in done)


def fact_lines(kb: KnowledgeBase, library: Library, atom: Atom) -> Iterator[Story]:
    """Everything stored about an atom, whether it holds or not: the fact, its proposals, decisions and scores."""
    story = fact_story(kb, *fact_key(atom), texts=_claims(atom, library))
    if story.fact is not None:
        # The promise of the fact's run that covers it; none for a fact that a source states.
        promises = (f"certificate of {certificate.text}" for certificate in certificates_of(kb, [story.fact]))
        promised = tuple(Story(promise, "certificate") for promise in promises)
        yield Story(_fact_line(story), "fact", promised, by=_origin(story.fact))
    identity = fact_id(*fact_key(atom))
    for item in kb.withdrawals(identity, undone=True):
        undone = f"; restored on {item.restored[:19].replace('T', ' ')} UTC" if item.restored else ""
        yield Story(f"{item.text}{undone}", "withdrawal")
    yield from first_of(story.candidates, partial(_candidate_story, kb), "candidate")
    yield from first_of(kb.decisions(subject=identity), _decision_story, "gate")
    # Skip scores already shown with a candidate.
    shown: set[str] = set()
    for candidate in story.candidates:
        shown.update(assessment.id for assessment in candidate.assessments)
    others = [assessment for assessment in story.assessments if assessment.id not in shown]
    yield from first_of(others, partial(_assessment_story, kb), "assessment")


def _given_line(fact: FactRecord) -> str:
    written = f", {fact.basis}" if fact.basis else ""
    return f"fact {fact.id}, given by the user{written}"


def _origin(fact: FactRecord) -> str:
    """Where a fact comes from, in a reader's words."""
    if fact.source is Source.GIVEN or fact.probability is None:
        return fact.basis or fact.source.value
    return f"{fact.basis or 'from a model'}, P(yes) {fact.probability:.2f}"


def _claims(atom: Atom, library: Library) -> tuple[str, ...]:
    """The two forms in which models are asked about an atom: as a clause and as a sentence."""
    words = atom_text(atom, library)
    return words, words[:1].upper() + words[1:] + "."


def _fact_line(story: FactStory) -> str:
    assert story.fact is not None  # noqa: S101  the caller has looked
    if story.fact.source is Source.GIVEN:
        return _given_line(story.fact)
    probability = story.fact.probability
    sure = "" if probability is None else f", P(yes) {probability:.3f}"
    source = f", source: {story.fact.basis}" if story.fact.basis else ""
    return f"fact {story.fact.id}{sure}, run {story.fact.run_id or 'unknown'}{source}"


def _candidate_story(kb: KnowledgeBase, story: CandidateStory) -> Story:
    candidate = story.candidate
    parts: list[Story] = []
    if story.call is not None:
        prompt = story.call.request.get("prompt", story.call.request)
        model = f"{story.call.role} model {short_model_name(story.call.model)}"
        parts.append(Story(f"call {story.call.request_id} to the {model}: {_quote(prompt)}", "call"))
    if candidate.rejected_by_parser is not None and not any(item.gate == PARSER.name for item in story.decisions):
        parts.append(Story(f"the parser rejected it: {candidate.rejected_by_parser}", "gate"))
    parts.extend(first_of(story.decisions, _decision_story, "gate"))
    parts.extend(first_of(story.assessments, partial(_assessment_story, kb), "assessment"))
    return Story(
        f"proposed as {_quote(candidate.raw)}, line {candidate.position + 1} of the answer", "candidate", tuple(parts)
    )


def _decision_story(decision: Decision) -> Story:
    score = "" if decision.score is None else f", score {decision.score:.3f}"
    threshold = "" if decision.threshold is None else f", threshold {decision.threshold:.3f}"
    verdict = "accepted" if decision.accepted else "rejected"
    where = f" for {decision.rule} ({decision.distribution})" if decision.rule and decision.distribution else ""
    if decision.step is not None:
        where += f", step {decision.step + 1}"
    return Story(f"{decision.gate} gate{where}: {verdict}{score}{threshold}: {decision.reason}", "gate")


def _assessment_story(kb: KnowledgeBase, assessment: Assessment) -> Story:
    """A model's score of a text, or its refusal to judge it, with the reason."""
    if assessment.measure == "log_likelihood":
        mean = f" ({assessment.score / assessment.token_count:.3f} a token)" if assessment.token_count else ""
        tokens = counted(assessment.token_count or 0, "token")
        score = f"log-likelihood {assessment.score:.3f} nats over {tokens}{mean}"
        model = "likelihood model"
    elif assessment.measure in list(Measure):
        score = f"{assessment.measure} {assessment.score:.3f} nats"
        model = "likelihood model"
    else:
        score = f"P({'type' if assessment.measure == 'type_probability' else 'yes'}) {assessment.score:.3f}"
        model = "critic"
    model += f" {short_model_name(assessment.model)}"
    call = kb.call(assessment.call_id) if assessment.call_id else None
    refused = call.response.get(REFUSED) if call else None
    refusal = f", which refused it: {_quote(refused)}" if refused else ""
    if assessment.basis:
        refusal += f": {assessment.basis}"
    return Story(f"{score} for {_quote(assessment.text)} by the {model}{refusal}", "assessment")


def _quote(text: object) -> str:
    words = str(text)
    return repr(words if len(words) <= PROMPT_CHARACTERS else words[:PROMPT_CHARACTERS] + " ...")


# --- why not ----------------------------------------------------------------------------------------------------------


def why_not(theory: Theory, text: str) -> Story:
    """Explain why a ground atom does not hold: a gate rejected it, premises of rules failed, or nobody asked.

    Raises HapaxError if the atom holds.
    """
    worded, atom = worded_atom(text, theory)
    if holds(worded, atom):
        raise HapaxError(f"{atom} holds.", Remedy("Run {} to see why.", Operation("why", text.strip())))
    reasons = [*_not_accepted(worded.kb, worded.library, atom), *_no_rule(worded, atom)]
    if not theory.library.knows(atom.indicator):
        reasons.append(Story(_unknown(atom), "rule"))
    words = f"{atom_text(atom, worded.library)}  {atom}" if is_worded(atom, worded.library) else str(atom)
    return Story(f"{words}  [does not hold]", "goal", tuple(reasons))


def _not_accepted(kb: KnowledgeBase, library: Library, atom: Atom) -> Iterator[Story]:
    """The gate that rejected the value; if no model proposed it, whether it was asked for."""
    signature = library.signature(atom.indicator)
    lines = list(fact_lines(kb, library, atom))
    if lines:
        yield from lines
    elif signature.kind is PredicateKind.COMPUTED:
        yield Story(_computed(atom, signature), "computed")
    elif atom.indicator in library.aggregated:
        yield Story(
            f"the aggregate has another value, or its group is empty; {Operation('query')} prints its values", "given"
        )
    elif signature.kind is PredicateKind.GIVEN and (signature.declared or atom.indicator not in library.derived):
        yield Story("it is not among the given facts; add it to a rule file, or import it", "given")
    elif is_asked(library, signature):
        yield from _asked_or_not(kb, library, atom)
    elif atom.indicator not in library.derived:
        yield Story(
            f"it is about a generic person, who has no stored facts; {Setting('assume')} adds it to a query",
            "assumption",
        )


def _computed(atom: Atom, signature: PredicateSignature) -> str:
    """The comparison that a computed atom stands for, with its values."""
    if signature.definition is None:
        return (
            f"{atom.indicator} is computed, and no loaded rule file defines it; name the one that does with "
            f"{Setting('rules')}"
        )
    pairs: list[tuple[str, Constant]] = []
    for parameter, term in zip(signature.parameters, atom.arguments, strict=True):
        if isinstance(term, Constant):
            pairs.append((parameter.name, term))
    return _falsehood(instantiated(signature.definition, Substitution(tuple(pairs))))


def _falsehood(item: BodyLiteral) -> str:
    """A false comparison with its values, and with the results of its arithmetic."""
    if not isinstance(item, Comparison) or item.variables:
        return f"{item} is false"
    if reason := fault(item):
        return f"{item} is false: {reason}"
    left, right = (assigned(side, {}) for side in item.sides)
    if left is None or right is None:
        return f"{item} is false"
    evaluated = Comparison(item.operator, Constant(left), Constant(right))
    text = f"{item} is false" if evaluated == item else f"{item}, which is {evaluated}, is false"
    # A third and its first digits read the same.
    cut = [side for side in (left, right) if isinstance(side, CutDecimal)]
    return text + "".join(f": {side} are the first digits of {side.exact}" for side in cut if str(left) == str(right))


def _asked_or_not(kb: KnowledgeBase, library: Library, atom: Atom) -> Iterator[Story]:
    """The questions whose answers could have contained the value, if any were asked; another known value, if any."""
    asked: list[Story] = []
    for question in _questions(library, atom):
        asked.extend(_question_story(kb, question))
    if asked:
        yield Story("it was asked for, and no model proposed it", "question", tuple(asked))
    known = _known_value(kb, library, atom)
    if known is not None:
        yield Story(f"another value is known: {known}", "fact")
    elif not asked:
        yield Story(f"no model was asked; {Operation('query', models=True)} asks", "question")


def _known_value(kb: KnowledgeBase, library: Library, atom: Atom) -> str | None:
    """A fact, stored or stated in a rule file, that gives a functional predicate another last argument, as text."""
    if library.kind(atom.indicator) is not PredicateKind.FUNCTIONAL:
        return None
    key = fact_key(atom)[1][:-1]
    stored = map(fact_text, kb.relations.at(atom.indicator, dict(enumerate(key))))
    stated = (str(fact) for fact in library.facts if fact.indicator == atom.indicator and fact_key(fact)[1][:-1] == key)
    return next(chain(stored, stated), None)


def _questions(library: Library, atom: Atom) -> Iterator[Question]:
    """The questions about this atom with one argument open, for each type in its signature and in rules."""
    signature = library.signature(atom.indicator)
    values = fact_key(atom)[1]
    for position, declared in enumerate(signature.argument_types):
        arguments = tuple(None if i == position else value for i, value in enumerate(values))
        data_types = dict.fromkeys([declared])
        # Rules may ask for narrower types than the declared one.
        for rule in library.rules:
            for used in rule.atoms:
                term = used.arguments[position] if used.indicator == atom.indicator else None
                if isinstance(term, Variable):
                    data_types[term.data_type] = None
        # A functional predicate may be asked for samples of its last argument, or for values of another.
        for data_type, functional in product(data_types, (False, True)):
            yield Question((AtomPattern(atom.predicate, arguments),), data_type, functional)


def _question_story(kb: KnowledgeBase, question: Question) -> Iterator[Story]:
    state = kb.question_state(question)
    if state.calls:
        pattern = question.patterns[0]
        cells = ", ".join("?" if value is None else str(Constant(value)) for value in pattern.arguments)
        calls = counted(state.calls, "call")
        end = "exhausted" if state.exhausted else "not exhausted"
        yield Story(f"{pattern.predicate}({cells}) as {question.data_type}: {calls}, {end}", "question")


def _no_rule(theory: Theory, atom: Atom) -> Iterator[Story]:
    """For every rule that concludes the predicate, the first item of its premise that fails."""
    for rule in theory.library.rules:
        if rule.conclusion.atom.indicator != atom.indicator:
            continue
        bindings = matched(rule.conclusion.atom.arguments, atom.values)
        if bindings is None:
            yield Story(f"rule {rule.name}: its conclusion {rule.conclusion} does not match", "rule")
            continue
        bound = Substitution(tuple((name, Constant(value)) for name, value in bindings.items()))
        story = _Failure(theory, join_order(rule), bound).story()
        yield replace(story, children=(*story.children, *search_story(theory, rule, bound)))


@dataclass(frozen=True)
class _Failure:
    """A rule whose premise fails for an atom. Finds the longest part of the premise that holds."""

    theory: Theory
    rule: Rule
    bound: Substitution

    def story(self) -> Story:
        """Explain the first item of the premise that fails, for up to `EXAMPLES` solutions of the items before it."""
        # Items that only test values come last, when all values are known.
        ordered = sorted(self.rule.premise, key=lambda item: not self._generates(item))
        reached: list[Substitution] = [self.bound]
        prefixes = holding_prefixes(self.theory, self.rule, ordered, self.bound, EXAMPLES)
        for item, found in zip(ordered, prefixes, strict=False):
            if not found:
                return self._missing(item, reached)
            reached = found
        return Story(f"rule {self.rule.name}: every premise holds", "rule")  # a rule with tests that only hold together

    def _missing(self, missing: BodyLiteral, reached: Sequence[Substitution]) -> Story:
        # Different solutions may lack the same goal.
        goals = list(dict.fromkeys(instantiated(missing, substitution) for substitution in reached))
        lines = tuple(self._premise(goal) for goal in goals)
        lack = "does not hold" if isinstance(missing, Literal) and missing.negated else "is false"
        if self._generates(missing):
            lack = "has no fact"
        return Story(
            f"rule {self.rule.name}: its premise {item_text(missing, self.theory.library)} {lack}", "rule", lines
        )

    def _generates(self, item: BodyLiteral) -> bool:
        """True if facts or rules give the item's variables values. Other items only test values."""
        return isinstance(item, Literal) and not item.negated and not self._is_computed(item)

    def _is_computed(self, literal: Literal) -> bool:
        return self.theory.library.signature(literal.atom.indicator).kind is PredicateKind.COMPUTED

    def _premise(self, goal: BodyLiteral) -> Story:
        if not isinstance(goal, Literal):
            return Story(_falsehood(goal), "premise")
        if goal.negated and not self._holds(goal.atom):
            return self._unknown_premise(goal.atom)
        if goal.negated:
            text = f"{goal.atom} holds, but the rule requires that it does not"
            library = self.theory.library
            if (exception := library.exceptions.get(goal.atom.indicator)) is not None:
                text = "what it negates holds" if exception.in_premise else "the exception applies"
            proof = prove(self.theory, goal.atom) if goal.atom.is_ground else None
            return Story(text, "premise", (_Explainer(self.theory).proof(proof),) if proof is not None else ())
        behind: tuple[Story, ...] = ()
        if goal.atom.is_ground:
            behind = tuple(_not_accepted(self.theory.kb, self.theory.library, goal.atom))
        if self._is_computed(goal):
            return Story(f"{goal.atom} is false", "premise", behind)
        text = f"nothing makes {goal.atom} hold"
        used = [literal for literal in self.rule.literals if literal.atom.indicator == goal.atom.indicator]
        if any(map(self.rule.is_information, used)):  # it is about a generic variable
            text += f"; {Setting('assume')} adds it to a query"
        return Story(text, "premise", behind)

    def _holds(self, atom: Atom) -> bool:
        """True if the atom of a failing negation holds; otherwise it is unknown."""
        library, kb = self.theory.library, self.theory.kb
        is_open = library.is_open(atom.indicator)
        if not is_open and library.closedness(atom.indicator) is not Closedness.CLOSED_FOR_FIRST:
            return True
        return atom in library.facts or atom in self.theory.assumed or kb.fact(*fact_key(atom)) is not None

    def _unknown_premise(self, atom: Atom) -> Story:
        """The remedy for an atom that is neither a fact nor denied, with everything stored about it."""
        behind = tuple(fact_lines(self.theory.kb, self.theory.library, atom))
        if self.theory.library.is_open(atom.indicator):
            reason = f"no critic denied it, and {atom.indicator} is not declared closed"
            remedy = (
                f'{Operation("query", models=True)} asks; "closed {atom.indicator}" says that absent facts are false'
            )
        else:
            reason = f"{atom.indicator} is closed for each first argument, and no fact has this one"
            remedy = "add a fact about it"
        return Story(f"{atom} is unknown: {reason}; {remedy}", "premise", behind)
