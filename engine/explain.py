"""Explain why something holds, down to call and prompt; `why_not.py` explains why something does not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from hapax.engine.answers.derivation import RUN_ID, find_statement, statement_by_id
from hapax.engine.entailment.graph import entailment_scores
from hapax.engine.gates.account import DistributionCut, StepAccount, shortage, step_text
from hapax.engine.gates.gates import PARSER, substitution_subject
from hapax.engine.gates.score_maps import short_model_name
from hapax.engine.inference.derive import atoms_in_sentence, fact_key, values_in_sentence
from hapax.engine.inference.proof import By, Proof, Story, first_of, proof_from_json, reason
from hapax.engine.inference.theory import AskedAtom, Theory
from hapax.engine.logic.proofs import atoms_that_hold, holding_prefixes, prove
from hapax.engine.probability.probable_answers import (
    Probability,
    ProofSupport,
    basis_of,
    probable_conjunction,
)
from hapax.engine.query_options import ProbabilityOptions
from hapax.engine.search.promises import certificates_of, certificates_of_statement
from hapax.engine.search.ranking import mean_of_parts, ranked_parts, ranked_text
from hapax.grammar.data_types import OBJECT
from hapax.grammar.dependencies import plan
from hapax.grammar.errors import GoalRejected, HapaxError, RulesRejected
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature, Templates
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Substitution, Value
from hapax.grammar.writing.verbalize import StatementText, atom_text, is_worded, item_text, literal_text
from hapax.grammar.writing.words import counted
from hapax.kb.records import (
    PREDICATES,
    RULES,
    RUNS,
    STATEMENTS,
    Assessment,
    Decision,
    Distribution,
    FactRecord,
    PredicateRecord,
    RunRecord,
    Source,
    StatementRecord,
    Withdrawal,
    fact_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.kb.story import CandidateStory, fact_story
from hapax.llm_oracle.critics.circularity import is_circular
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.journal import REFUSED
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity

PROMPT_CHARACTERS = 600
"""The length at which quoted prompts and answers are cut; the knowledge base has the whole text."""

EXAMPLES = 3
"""Atoms that are explained of those that a user may have named."""


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
    statement = None if ATOM.match(text) else stored_statement(worded, text)
    if statement is not None:
        if gone := what_fell(worded, statement):
            raise gone
        proof = Explainer(worded).statement(statement)
        return proof if probability is None else _with_first(proof, _statement_chance(worded, statement, probability))
    if not ATOM.match(text) and (found := sentence_rules(worded.library, text)):
        raise HapaxError(
            f'"{text.strip()}" is no stored statement of rule {found[0][0].name}.',
            Remedy("Run {} to see what is missing.", Operation("why_not", text.strip())),
        )
    worded, asked = named_atom(text, theory)
    atoms = [asked.atom] if asked.atom.is_ground else atoms_that_hold(worded, asked, EXAMPLES + 1)
    stories = [story for atom in atoms[:EXAMPLES] if (story := _why_atom(worded, atom, probability)) is not None]
    if not stories:
        named = asked.atom if asked.atom.is_ground else text.strip()
        unknown = "" if theory.library.knows(asked.atom.indicator) else f" {unknown_text(asked.atom)}"
        raise HapaxError(
            f"{named} does not hold.{unknown}", Remedy("Run {} to see why.", Operation("why_not", text.strip()))
        )
    if len(atoms) > EXAMPLES:
        stories.append(Story(f"and more; {Operation('query')} lists them", "goal"))
    return stories[0] if len(stories) == 1 else Story(f"{text.strip()}  [holds of several]", "goal", tuple(stories))


def _why_atom(worded: Theory, atom: Atom, probability: ProbabilityOptions | None) -> Story | None:
    """Explain why a ground atom holds; None if it does not."""
    proof = prove(worded, atom)
    if proof is None and (probability is None or not worded.library.is_uncertain):
        return None
    story = Story(str(atom), "goal") if proof is None else Explainer(worded).proof(proof)
    if probability is None:
        return story
    found, proofs = probable_conjunction(worded, [Literal(atom)], probability)
    # What the other premises negate may hold, too.
    return None if proof is None and found.upper <= 0 else _with_first(story, _chance(worded, found, proofs))


def stored_statement(worded: Theory, text: str) -> StatementRecord | None:
    """The stored statement of this id or sentence, of searches or of `derive`."""
    statement = _statement(worded.kb, text)
    if statement is not None:
        return statement
    # An id is one word; a sentence is not.
    if " " in text.strip():
        return find_statement(worded.kb, worded.library, _named(text), text)
    return statement_by_id(worded.kb, worded.library, text.strip())


def sentence_rules(library: Library, text: str) -> list[tuple[Rule, Substitution]]:
    """Rules whose statement a text may be, with the values of their variables in the text."""
    return [(rule, values) for rule in library.rules for values in values_in_sentence(rule, library, text)]


def _with_first(story: Story, line: Story) -> Story:
    return replace(story, children=(line, *story.children))


def _statement_chance(worded: Theory, statement: StatementRecord, options: ProbabilityOptions) -> Story:
    """The probability of what a statement's rule needs, with its proofs."""
    rule = stored_rule(worded.kb, statement.rule, worded.library)
    if rule is None:
        unknown = f"no probability: no loaded rule file has rule {statement.rule}. Name it with {Setting('rules')}."
        return Story(unknown, "probability")
    values = Substitution.of(statement.substitution)
    # Its hypotheses are assumed.
    needed = [item.replaced(values) for item in rule.premise if not rule.is_information(item)]
    return _chance(worded, *probable_conjunction(worded, needed, options))


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


def unknown_text(atom: Atom) -> str:
    """The remedy for an atom of a predicate that no rule file declares."""
    return f"No loaded rule file declares {atom.indicator}. Name the files that may derive it with {Setting('rules')}."


def what_fell(worded: Theory, statement: StatementRecord) -> HapaxError | None:
    """The reason why a stored statement does not hold any more; None if it holds."""
    gone = worded.kb.fallen(statement)
    if gone:
        return HapaxError(_fallen_text(statement, gone))
    if since := worded.kb.lapsed_since(statement):
        return HapaxError(
            f'"{statement.text}" (statement {statement.id}) has not held since '
            f"{since[:16].replace('T', ' ')} UTC: facts that were added refute it.",
            Remedy("Run {} to see which.", Operation("why_not", statement.text)),
        )
    return None


def _fallen_text(statement: StatementRecord, gone: Iterable[Withdrawal]) -> str:
    facts = "; ".join(f"{item.atom}, {item.text}" for item in gone)
    return (
        f'"{statement.text}" (statement {statement.id}) no longer holds. Its proof rests on {facts}. Run '
        f"{Operation('restore', 'FACT')} if that is wrong."
    )


def _statement(kb: KnowledgeBase, text: str) -> StatementRecord | None:
    """The statement of a search by id or text; case, blanks and the full stop are ignored."""
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


def named_atom(text: str, theory: Theory) -> tuple[Theory, AskedAtom]:
    """The atom that a user named, as `worded_atom` gives it. Raises HapaxError for a text that is none."""
    try:
        return worded_atom(text, theory)
    except HapaxError as fault:
        # An error that a rule was left out stays as it is.
        if isinstance(fault, RulesRejected) and not isinstance(fault, GoalRejected):
            raise
        reason = " ".join(item.text for item in fault.diagnostics) if isinstance(fault, GoalRejected) else str(fault)
        no_statement = "" if ATOM.match(text) else "No statement has this id or text, and it is not an atom: "
        raise HapaxError(no_statement + reason) from None


class Explainer:
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
        likelihood: list[Story] = []
        if statement.log_likelihood is not None:
            evaluator = models_of(self.kb.first(RUNS, id=statement.run_id)).get(EVALUATOR)
            by = f" by the evaluator {short_model_name(evaluator)}" if evaluator else ""
            score = f"log-likelihood of the statement {statement.log_likelihood:.3f} nats a token{by}"
            likelihood = [Story(score, "likelihood")]
        return Story(title, "statement", (*promises, *likelihood, *gates, proof))

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
        scores = ranking_scores(self.kb, run, text).values()
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
                    lines.append(Story(_fact_line(fact), "fact", by=_origin(fact)))
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
    # Models are asked about an atom as a clause and as a sentence.
    words = atom_text(atom, library)
    story = fact_story(kb, *fact_key(atom), texts=(words, words[:1].upper() + words[1:] + "."))
    if story.fact is not None:
        # The promise of the fact's run that covers it; none for a fact that a source states.
        promises = (f"certificate of {certificate.text}" for certificate in certificates_of(kb, [story.fact]))
        promised = tuple(Story(promise, "certificate") for promise in promises)
        yield Story(_fact_line(story.fact), "fact", promised, by=_origin(story.fact))
    identity = fact_id(*fact_key(atom))
    withdrawals = kb.withdrawals(identity, undone=True)
    overruled = ""
    if story.fact is not None and story.fact.source is Source.GIVEN:
        overruled = "; overruled: the user gives the fact"
    elif story.fact is not None and any(item.restored for item in withdrawals):
        overruled = "; overruled: the fact was restored"
    decided = partial(_decision_story, overruled=overruled)
    yield from first_of(story.candidates, partial(_candidate_story, kb, decided), "candidate")
    yield from first_of(kb.decisions(subject=identity), decided, "gate")
    for item in withdrawals:
        undone = f"; restored on {item.restored[:19].replace('T', ' ')} UTC" if item.restored else ""
        yield Story(f"{item.text}{undone}", "withdrawal")
    # Skip scores already shown with a candidate.
    shown = {item.id for item in chain.from_iterable(candidate.assessments for candidate in story.candidates)}
    unshown = [assessment for assessment in story.assessments if assessment.id not in shown]
    yield from first_of(unshown, partial(_assessment_story, kb), "assessment")


def _origin(fact: FactRecord) -> str:
    """Where a fact comes from, in a reader's words."""
    if fact.source is Source.GIVEN or fact.probability is None:
        return fact.basis or fact.source.value
    return f"{fact.basis or 'from a model'}, P(yes) {fact.probability:.2f}"


def _fact_line(fact: FactRecord) -> str:
    if fact.source is Source.GIVEN:
        return f"fact {fact.id}, given by the user" + (f", {fact.basis}" if fact.basis else "")
    sure = "" if fact.probability is None else f", P(yes) {fact.probability:.3f}"
    source = f", source: {fact.basis}" if fact.basis else ""
    return f"fact {fact.id}{sure}, run {fact.run_id or 'unknown'}{source}"


def _candidate_story(kb: KnowledgeBase, decided: Callable[[Decision], Story], story: CandidateStory) -> Story:
    candidate = story.candidate
    parts: list[Story] = []
    if story.call is not None:
        prompt = story.call.request.get("prompt", story.call.request)
        model = f"{story.call.role} model {short_model_name(story.call.model)}"
        parts.append(Story(f"call {story.call.request_id} to the {model}: {_quote(prompt)}", "call"))
    if candidate.rejected_by_parser is not None and not any(item.gate == PARSER.name for item in story.decisions):
        parts.append(Story(f"the parser rejected it: {candidate.rejected_by_parser}", "gate"))
    parts.extend(first_of(story.decisions, decided, "gate"))
    parts.extend(first_of(story.assessments, partial(_assessment_story, kb), "assessment"))
    return Story(
        f"proposed as {_quote(candidate.raw)}, line {candidate.position + 1} of the answer", "candidate", tuple(parts)
    )


def _decision_story(decision: Decision, overruled: str = "") -> Story:
    """A gate's decision. `overruled`: what the user did since against a rejection, in words."""
    score = "" if decision.score is None else f", score {decision.score:.3f}"
    threshold = "" if decision.threshold is None else f", threshold {decision.threshold:.3f}"
    verdict = "accepted" if decision.accepted else "rejected"
    where = f" for {decision.rule} ({decision.distribution})" if decision.rule and decision.distribution else ""
    if decision.step is not None:
        where += f", step {decision.step + 1}"
    ending = "" if decision.accepted else overruled
    return Story(f"{decision.gate} gate{where}: {verdict}{score}{threshold}: {decision.reason}{ending}", "gate")


def _assessment_story(kb: KnowledgeBase, assessment: Assessment) -> Story:
    """A model's score of a text, or its refusal to judge it, with the reason."""
    model = "likelihood model"
    if assessment.measure == "log_likelihood":
        mean = f" ({assessment.score / assessment.token_count:.3f} a token)" if assessment.token_count else ""
        tokens = counted(assessment.token_count or 0, "token")
        score = f"log-likelihood {assessment.score:.3f} nats over {tokens}{mean}"
    elif assessment.measure in list(Measure):
        score = f"{assessment.measure} {assessment.score:.3f} nats"
    else:
        score = f"P({'type' if assessment.measure == 'type_probability' else 'yes'}) {assessment.score:.3f}"
        model = "critic"
    call = kb.call(assessment.call_id) if assessment.call_id else None
    refused = call.response.get(REFUSED) if call else None
    refusal = f", which refused it: {_quote(refused)}" if refused else ""
    basis = f": {assessment.basis}" if assessment.basis else ""
    named = f"{model} {short_model_name(assessment.model)}"
    return Story(f"{score} for {_quote(assessment.text)} by the {named}{refusal}{basis}", "assessment")


def _quote(text: object) -> str:
    words = str(text)
    return repr(words if len(words) <= PROMPT_CHARACTERS else words[:PROMPT_CHARACTERS] + " ...")


# --- what earlier runs used -------------------------------------------------------------------------------------------


REPLAYED = 3
"""Most substitutions of a rule whose way through its last search is shown."""

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR)
"""The roles, in the order of the models in a run's record."""


def with_stored_predicates(theory: Theory, *, thorough: bool = False) -> Theory:
    """The theory with the predicates of its knowledge base added, and all sentence templates as stored there.

    `thorough`: also those that facts alone have, under the name of another predicate with more or fewer arguments. To
    find them, all facts are read.
    """
    stored = {record.indicator: record for record in theory.kb.select(PREDICATES)}
    signatures = []
    for signature in theory.library.completed().signatures:
        templates = _templates(stored.get(signature.indicator)) or signature.templates
        signatures.append(replace(signature, templates=templates))
    known = {*(signature.name for signature in signatures), *(record.name for record in stored.values())}
    names = frozenset() if thorough else frozenset(known)
    # Predicates that only the store knows are undeclared: no rule file says what could be asked about them.
    for record in stored.values():
        if not theory.library.knows(record.indicator):
            kind = PredicateKind(record.kind) if record.kind in list(PredicateKind) else PredicateKind.GIVEN
            templates = _templates(record)
            signatures.append(PredicateSignature(record.name, record.argument_types, kind, templates, declared=False))
    for indicator in theory.kb.fact_indicators(names):
        if indicator not in stored and not theory.library.knows(indicator):
            # Only imported facts use it, so nothing but its name and its number of arguments is known.
            name, _, arity = indicator.rpartition("/")
            types = (OBJECT,) * int(arity)
            signatures.append(PredicateSignature(name, types, PredicateKind.GIVEN, declared=False))
    return replace(theory, library=replace(theory.library, signatures=tuple(signatures)))


IDENTITY = re.compile(r"[0-9a-f]{32}")
"""An id of a fact or of a statement."""

ATOM = re.compile(r"\s*(?:\w+|'[^']*')\(")
"""The beginning of an atom, which no sentence has."""


def worded_atom(text: str, theory: Theory) -> tuple[Theory, AskedAtom]:
    """An atom, also as a sentence, and the theory with the stored predicates that it needs.

    Raises as `Theory.asked_atom`.
    """
    worded = with_stored_predicates(theory)
    if not ATOM.match(text) and (atom := _atom_in_sentence(text.strip(), worded)) is not None:
        return worded, AskedAtom(atom)
    try:
        return worded, worded.asked_atom(text)
    except HapaxError:
        worded = with_stored_predicates(theory, thorough=True)
        return worded, worded.asked_atom(text)


def _atom_in_sentence(text: str, theory: Theory) -> Atom | None:
    """The atom that a sentence states, of several the first with known values; a sentence may begin with a capital."""
    library = theory.library
    read = [atom for spelt in (text, text[:1].lower() + text[1:]) for atom in atoms_in_sentence(library, spelt)]
    stated = {value for fact in library.facts for value in fact.values}
    for atom in read:
        tags = theory.kb.symbols.known(atom.values)
        if all(tag is not None or value in stated for tag, value in zip(tags, atom.values, strict=True)):
            return atom
    return read[0] if read else None


def _templates(record: PredicateRecord | None) -> Templates | None:
    if record is None or record.affirmative is None:
        return None
    return Templates(record.affirmative, record.negated, record.question)


def last_account(kb: KnowledgeBase, rule: str) -> tuple[RunRecord, list[StepAccount]] | None:
    """The last complete search of the rule with the account of its steps; None without such a search."""
    runs = [run for run in kb.runs() if run.command == "search" and run.finished]
    # Times in ISO notation sort as texts; the newest run comes first.
    for run in sorted(runs, key=lambda run: run.finished or "", reverse=True):
        lines = run.summary.get("rules", ())
        try:
            stored = next((line["account"] for line in lines if line["rule"] == rule and line.get("account")), None)
            if stored:
                return run, [StepAccount.from_json(step) for step in stored]
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # another program's summary
    return None


def stored_rule(kb: KnowledgeBase, name: str, library: Library) -> Rule | None:
    """The rule of that name as the last search used it, else as the library has it.

    None if there is no such rule, or if the library does not know all of its predicates.
    """
    text = next((record.text for record in kb.select(RULES) if record.name == name), None)
    try:
        rule = library.rule(name) if text is None else parse_library([(f"rule {name}", text)]).rules[0]
    except (HapaxError, IndexError):
        return None
    return rule if all(library.knows(atom.indicator) for atom in rule.atoms) else None


def models_of(run: RunRecord | None) -> dict[str, str]:
    """The names of a run's models by role, without roles that the run did not use."""
    names = run.settings.get("models") if run else None
    # Imports record no models.
    if run is None or not isinstance(names, list) or len(names) != len(ROLES):
        return {}
    # Such a search named a likelihood model, but did not rank by it.
    without = {LIKELIHOOD} if run.settings.get("likelihood") != "model" else set()
    return {role: str(name) for role, name in zip(ROLES, names, strict=True) if role not in without}


def identities_of(run: RunRecord | None) -> dict[str, ModelIdentity]:
    """The identities of a run's models by role, with the models that taught them."""
    identities = {}
    taught_by = run.settings.get("taught_by", {}) if run else {}
    for role, full_name in models_of(run).items():
        name, _, revision = full_name.rpartition("@") if "@" in full_name else (full_name, "", "")
        identities[role] = ModelIdentity(name, revision, taught_by=tuple(taught_by.get(full_name, ())))
    return identities


def circular_judge(run: RunRecord) -> str | None:
    """The name of the run's evaluator if it ranked the run itself, taught its ranker or learned from it."""
    identities = identities_of(run)
    ranker, judge = identities.get(LIKELIHOOD), identities.get(EVALUATOR)
    return judge.name if ranker is not None and judge is not None and is_circular(judge, ranker) else None


def ranking_measure(run: RunRecord) -> str:
    """The measure under which the scores are stored that ranked a run's beams."""
    # Runs by LINK's measure and ends, as all of older versions were, do not say which ends they have.
    return str(run.settings.get("measure") or Measure.PAPER) if "ends" in run.settings else "log_likelihood"


def ranking_scores(kb: KnowledgeBase, run: RunRecord, text: str) -> dict[str, Assessment]:
    """The run's likelihood model's scores of the parts of a text that it ranked; empty without such a model."""
    model = models_of(run).get(LIKELIHOOD)
    return kb.assessments(ranked_parts(text), ranking_measure(run), model) if model and text else {}


def search_story(theory: Theory, rule: Rule, bound: Substitution) -> Iterator[Story]:
    """The account of the last search of a rule, with the place where its values ran out, or these values were cut."""
    searched = last_account(theory.kb, rule.name)
    if searched is None:
        return
    run, steps = searched
    # A search that kept substitutions to the end did not run out of values, whatever became of this one.
    lost = None if steps[-1].kept else shortage(steps, run.settings.get("compat"))
    text = f"the last search of the rule, run {run.id}"
    lines = [Story(step_text(step), "search") for step in steps]
    if any(step.cuts for step in steps):
        lines += _Replay(theory, rule, run, steps).stories(bound)
    yield Story(f"{text}: {lost}" if lost else text, "search", tuple(lines))


@dataclass(frozen=True)
class _Replay:
    """The verdicts of a search on substitutions for which the premises hold, by stored likelihoods and limits."""

    theory: Theory
    rule: Rule
    run: RunRecord
    steps: Sequence[StepAccount]

    def stories(self, bound: Substitution) -> Iterator[Story]:
        """A line for each of up to `REPLAYED` substitutions with these values: the step that cut it, if one did."""
        searched = self.rule.searched
        constraints = tuple(item for item in self.rule.premise if not self.rule.is_information(item))
        # Nothing of such a rule is searched, so nothing was cut.
        if not searched:
            return
        if constraints:
            *_, whole = holding_prefixes(self.theory, self.rule, constraints, bound, REPLAYED)
        else:
            whole = [bound]
        names = [variable.name for variable in searched]
        for substitution in whole:
            yield Story(
                self._fate({name: found.value for name, found in substitution.bindings if name in names}), "search"
            )

    def _fate(self, values: Mapping[str, Value]) -> str:
        """`A = Abadan: step 1 cut it: score -3.1; head kept 200 of 7,836, down to -2.2`."""
        library, settings = self.theory.library, self.run.settings
        order = [name for name in plan(self.rule, library, settings.get("plan", "")).order if name in values]
        named = ", ".join(f"{name} = {values[name]}" for name in order)
        if settings.get("likelihood") != "model" or LIKELIHOOD not in models_of(self.run):
            return f"{named}: no model ranked it"
        for number, step in enumerate(self.steps):
            if not step.cuts:
                continue
            bound = {name: Constant(values[name]) for name in order[: number + 1]}
            text = ranked_text(self.rule, library, bound, settings.get("compat"))
            assessed = ranking_scores(self.theory.kb, self.run, text)
            # Of the plain log-likelihood the total is stored, by whose mean LINK ranks.
            is_total = ranking_measure(self.run) == "log_likelihood"
            scores = {part: item.score / ((is_total and item.token_count) or 1) for part, item in assessed.items()}
            score = mean_of_parts(text, scores)
            if score is None:
                return f"{named}: step {step.step} did not rank it"
            verdicts = [self._verdict(name, cut, score) for name, cut in step.cuts.items()]
            if all(is_cut for is_cut, _ in verdicts):
                return f"{named}: step {step.step} cut it: {'; '.join(words for _, words in verdicts)}"
        return f"{named}: every step could keep it"

    def _verdict(self, distribution: str, cut: DistributionCut, score: float) -> tuple[bool, str]:
        """True if the distribution cut the beam for certain, and the comparison of its score with the limit."""
        is_head = distribution == Distribution.HEAD.value
        side, bounds = ("likeliest", "down to") if is_head else ("least likely", "up to")
        limit = "" if cut.limit is None else f", {bounds} {cut.limit:.3f}"
        words = f"its score is {score:.3f}, and the {cut.kept:,} {side} of {cut.ranked:,} were kept{limit}"
        if cut.limit is None:
            return not cut.kept, words
        # Among equal scores chance decided.
        return (score < cut.limit if is_head else score > cut.limit), words
