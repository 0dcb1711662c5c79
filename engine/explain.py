"""Stories: `why` something holds, down to call and prompt, and `why_not`, up to the gate or premise that failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.beams import ranked_text, substitution_subject
from engine.derive import BULK, FactIndex, Prover, atom_key, derivations
from engine.oracle import short_model_name
from engine.program import build_program, is_asked, join_order
from engine.proof import By, Proof, instantiated, proof_from_json, reason
from engine.query import Theory, opened
from engine.session import PrologSession, PrologTerm
from engine.stored import models_of, stored_rule, with_stored_predicates
from grammar.arithmetic import assigned
from grammar.dependencies import plan
from grammar.errors import GoalRejected, HapaxError
from grammar.prolog_text import atom_goal, clause_text, prolog_value
from grammar.rules import Library, PredicateKind, PredicateSignature, Rule
from grammar.terms import Atom, BodyLiteral, Comparison, Constant, Literal, Substitution, Value, Variable
from grammar.verbalize import atom_text, literal_text
from grammar.words import counted
from kb.records import Assessment, Decision, FactRecord, Pattern, Question, Source, StatementRecord
from kb.store import KnowledgeBase
from kb.story import CandidateStory, FactStory
from llm_oracle.calls import EVALUATOR, LIKELIHOOD, REFUSED

PROMPT_CHARACTERS = 600
"""How much of a prompt or answer a story quotes; the knowledge base holds all of it."""

EXAMPLES = 3
"""How many ways in which a rule came closest to holding are told."""


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """One line of a story with what stands behind it. `kind` lets programs find lines: goal, call, gate ..."""

    text: str
    kind: str
    children: tuple[Story, ...] = ()

    def lines(self) -> Iterator[tuple[int, Story]]:
        """Every line with its depth, from the top. Not recursive: a proof may be deeper than Python's stack."""
        waiting = [(0, self)]
        while waiting:
            depth, part = waiting.pop()
            yield depth, part
            waiting.extend((depth + 1, child) for child in reversed(part.children))

    def to_json(self) -> list[dict[str, Any]]:
        """The lines from the top, each with its depth, so that no reader needs a deep stack either."""
        return [{"depth": depth, "kind": part.kind, "text": part.text} for depth, part in self.lines()]


def story_text(story: Story) -> str:
    """The story as indented lines."""
    return "\n".join("  " * depth + part.text for depth, part in story.lines())


# --- why --------------------------------------------------------------------------------------------------------------


def why(theory: Theory, text: str, session: PrologSession | None = None) -> Story:
    """Why a statement (by id or text) or a ground atom holds. Raises HapaxError if it does not, naming `why-not`."""
    spoken = with_stored_predicates(theory)
    statement = _statement(theory.kb, text)
    if statement is not None:
        return why_statement(spoken, statement)
    atom = _atom(text, spoken)
    proof = prove(spoken, atom, session)
    if proof is None:
        unheard = "" if theory.library.knows(atom.indicator) else f" {_unheard(atom)}"
        raise HapaxError(f"{atom} does not hold here.{unheard} `hapax why-not '{text.strip()}'` says what stopped it.")
    return _Teller(spoken).proof(proof)


def why_statement(spoken: Theory, statement: StatementRecord) -> Story:
    """Why a statement holds; `spoken` is a theory in the words that its knowledge base stores."""
    return _Teller(spoken).statement(statement)


def _unheard(atom: Atom) -> str:
    return f"No loaded rule file speaks of {atom.indicator}; --rules names those that may derive it."


def prove(theory: Theory, atom: Atom, session: PrologSession | None = None) -> Proof | None:
    """The proof of a ground atom by the facts, the rules and the assumptions, or None."""
    part = theory.behind(goals=[atom.indicator])
    index = FactIndex(part.library, part.facts(), part.assumed)
    leaf = index.leaf(atom)
    if leaf is not None:
        return leaf
    with opened(session) as prolog:
        prolog.load(build_program(part.library, index.records, assumed=part.assumed))
        if not prolog.solutions(atom_goal(atom), (), BULK, trusted=True).rows:
            return None
        instances = derivations(prolog, part.library, f"Roots = [{atom_goal(atom)}]", BULK)
    return Prover(part.library, index, instances).item(Literal(atom))


def _statement(kb: KnowledgeBase, text: str) -> StatementRecord | None:
    """The statement of that id or text; blanks at the ends, case and the full stop do not count."""
    wanted = _plain(text)
    return next((one for one in kb.statements() if one.id == text.strip() or _plain(one.text) == wanted), None)


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()


def _atom(text: str, theory: Theory) -> Atom:
    try:
        return theory.atom(text)
    except GoalRejected as rejected:
        told = " ".join(one.told for one in rejected.diagnostics)
    except HapaxError as fault:
        told = str(fault)
    raise HapaxError(f"No statement has this id or text, and as an atom it cannot be read: {told}")


class _Teller:
    """Puts proofs and facts into stories; what was told once is not told again."""

    def __init__(self, theory: Theory) -> None:
        self.kb, self.library = theory.kb, theory.library
        self.told: set[int] = set()

    def statement(self, statement: StatementRecord) -> Story:
        proof = self.proof(proof_from_json(statement.proof))
        title = f"{statement.text}  [{statement.distribution.value}, statement {statement.id}]"
        return Story(title, "statement", (*self._likelihood(statement), *self._gates(statement), proof))

    def _likelihood(self, statement: StatementRecord) -> Iterator[Story]:
        if statement.log_likelihood is not None:
            evaluator = models_of(self.kb.run(statement.run_id)).get(EVALUATOR)
            by = f" by the evaluator {short_model_name(evaluator)}" if evaluator else ""
            score = f"log-likelihood of the statement {statement.log_likelihood:.3f} nats a token{by}"
            yield Story(score, "likelihood")

    def _gates(self, statement: StatementRecord) -> Iterator[Story]:
        """The verdicts on the statement's values, step by step, with the likelihoods by which they were ranked."""
        rule = stored_rule(self.kb, statement.rule, self.library)
        for names in self._steps(statement, rule):
            values = {name: Constant(value) for name, value in statement.substitution if name in names}
            subject = substitution_subject((name, constant.value) for name, constant in values.items())
            for decision in self.kb.decisions(subject=subject):
                if decision.rule in (None, statement.rule) and decision.distribution in (None, statement.distribution):
                    yield self._gate(decision, rule, {name: values[name] for name in names if name in values})

    def _steps(self, statement: StatementRecord, rule: Rule | None) -> list[tuple[str, ...]]:
        """The variables that had values after each step of the run's plan; where it is unknown, those at the end."""
        run = self.kb.run(statement.run_id)
        try:
            order = plan(rule, self.library, run.settings.get("plan", "")).order if rule and run else ()
        except HapaxError:
            order = ()
        steps = [order[:number] for number in range(1, len(order) + 1)]
        return steps or [tuple(name for name, _ in statement.substitution)]

    def _gate(self, decision: Decision, rule: Rule | None, bound: Mapping[str, Constant]) -> Story:
        """The verdict; where a model ranked, with its name and with what it said of the text that was ranked."""
        told = _decision_story(decision)
        run = self.kb.run(decision.run_id)
        model = models_of(run).get(LIKELIHOOD)
        if decision.gate != LIKELIHOOD or run is None or model is None:
            return told
        texts = [ranked_text(rule, self.library, bound, compat=bool(run.settings.get("compat")))] if rule else []
        scores = self.kb.assessments(texts, "log_likelihood", model).values()
        ranked = Story(f"ranked by the likelihood model {short_model_name(model)}", "assessment")
        return replace(told, children=tuple(_assessment_story(self.kb, one) for one in scores) or (ranked,))

    def proof(self, proof: Proof) -> Story:
        """Parts first, so that a proof of any depth is told without recursion."""
        done: dict[int, Story] = {}
        for part in _bottom_up(proof):
            again = [child for child in part.children if id(child) in self.told and child.children]
            children = tuple(
                Story(f"{self._words(child.goal)}  [see above]", "goal") if child in again else done[id(child)]
                for child in part.children
            )
            self.told.update(id(child) for child in part.children)
            behind = self._fact(part) if part.by is By.FACT else ()
            done[id(part)] = Story(f"{self._words(part.goal)}  [{reason(part)}]", "goal", (*children, *behind))
        return done[id(proof)]

    def _words(self, goal: BodyLiteral) -> str:
        if not isinstance(goal, Literal):
            return str(goal)
        generic = [variable.name for variable in goal.variables]
        return f"{literal_text(goal, self.library, generic=generic)}  {goal}"

    def _fact(self, proof: Proof) -> tuple[Story, ...]:
        if not isinstance(proof.goal, Literal):
            return ()
        return tuple(fact_lines(self.kb, self.library, proof.goal.atom))


def _bottom_up(proof: Proof) -> Iterator[Proof]:
    """Every part once, after its children."""
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
            waiting.append((part, True))
            waiting.extend((child, False) for child in reversed(part.children) if id(child) not in done)


def fact_lines(kb: KnowledgeBase, library: Library, atom: Atom) -> Iterator[Story]:
    """What the store knows about an atom, held or not: proposals with their calls, verdicts and scores."""
    story = kb.story(*atom_key(atom), texts=_claims(atom, library))
    if story.fact is not None:
        yield Story(_fact_line(story), "fact")
    for candidate in story.candidates:
        yield _candidate_story(kb, candidate)
    yield from map(_decision_story, kb.decisions(subject=_fact_id(atom)))
    told = {assessment.id for candidate in story.candidates for assessment in candidate.assessments}
    yield from (_assessment_story(kb, one) for one in story.assessments if one.id not in told)


def _claims(atom: Atom, library: Library) -> tuple[str, ...]:
    words = atom_text(atom, library)
    return words, words[:1].upper() + words[1:] + "."


def _fact_id(atom: Atom) -> str:
    return FactRecord(*atom_key(atom), types=(), source=Source.GIVEN).id


def _fact_line(story: FactStory) -> str:
    assert story.fact is not None  # noqa: S101  the caller has looked
    if story.fact.source is Source.GIVEN:
        return f"fact {story.fact.id}, given by the user"
    probability = story.fact.probability
    sure = "" if probability is None else f", P(yes) {probability:.3f}"
    return f"fact {story.fact.id}{sure}, run {story.fact.run_id or 'unknown'}"


def _candidate_story(kb: KnowledgeBase, story: CandidateStory) -> Story:
    candidate = story.candidate
    parts: list[Story] = []
    if story.call is not None:
        prompt = story.call.request.get("prompt", story.call.request)
        model = f"{story.call.role} model {short_model_name(story.call.model)}"
        parts.append(Story(f"call {story.call.request_id} to the {model}: {_quote(prompt)}", "call"))
    if candidate.rejected_by_parser is not None and not any(one.gate == "parser" for one in story.decisions):
        parts.append(Story(f"the parser refused it: {candidate.rejected_by_parser}", "gate"))
    parts.extend(map(_decision_story, story.decisions))
    parts.extend(_assessment_story(kb, one) for one in story.assessments)
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
    """A score by its model; a claim that the model refused to judge, with its reason."""
    if assessment.measure == "log_likelihood":
        mean = f" ({assessment.score / assessment.token_count:.3f} a token)" if assessment.token_count else ""
        score = f"log-likelihood {assessment.score:.3f} nats over {counted(assessment.token_count or 0, 'token')}{mean}"
        model = "likelihood model"
    else:
        score = f"P({'type' if assessment.measure == 'type_probability' else 'yes'}) {assessment.score:.3f}"
        model = "critic"
    model += f" {short_model_name(assessment.model)}"
    call = kb.call(assessment.call_id) if assessment.call_id else None
    refused = call.response.get(REFUSED) if call else None
    told = f", which refused it: {_quote(refused)}" if refused else ""
    return Story(f"{score} for {_quote(assessment.text)} by the {model}{told}", "assessment")


def _quote(text: object) -> str:
    words = str(text)
    return repr(words if len(words) <= PROMPT_CHARACTERS else words[:PROMPT_CHARACTERS] + " ...")


# --- why not ----------------------------------------------------------------------------------------------------------


def why_not(theory: Theory, text: str, session: PrologSession | None = None) -> Story:
    """What kept a ground atom from holding: the gate, the premise of each rule that had no fact, or that nobody asked.

    Raises HapaxError if the atom does hold, naming `why`.
    """
    spoken = with_stored_predicates(theory)
    atom = spoken.atom(text)
    with opened(session) as prolog:
        if prove(spoken, atom, prolog) is not None:
            raise HapaxError(f"{atom} does hold. `hapax why '{text.strip()}'` tells by what.")
        reasons = [*_not_accepted(spoken.kb, spoken.library, atom), *_no_rule(spoken, atom, prolog)]
    if not theory.library.knows(atom.indicator):
        reasons.append(Story(_unheard(atom), "rule"))
    return Story(f"{atom_text(atom, spoken.library)}  {atom}  [does not hold]", "goal", tuple(reasons))


def _not_accepted(kb: KnowledgeBase, library: Library, atom: Atom) -> Iterator[Story]:
    """Which gate stopped the value, or how far the asking got."""
    signature = library.signature(atom.indicator)
    lines = list(fact_lines(kb, library, atom))
    if lines:
        yield from lines
    elif signature.kind is PredicateKind.COMPUTED:
        yield Story(_computed(atom, signature), "computed")
    elif signature.kind is PredicateKind.GIVEN:
        yield Story("no given fact says so; a rule file or an import can", "given")
    elif is_asked(library, signature):
        yield _asked_or_not(kb, library, atom)
    elif atom.indicator not in library.derived:
        yield Story(
            "it speaks of a person: nothing is stored about one; --assume states it for one query", "assumption"
        )


def _computed(atom: Atom, signature: PredicateSignature) -> str:
    """The comparison that a computed atom stands for, with its values."""
    if signature.definition is None:
        return f"{atom.indicator} is computed, and no loaded rule file defines it; --rules names the one that does"
    values = zip(signature.parameters, atom.arguments, strict=True)
    bound = Substitution(tuple((one.name, term) for one, term in values if isinstance(term, Constant)))
    return _falsehood(instantiated(signature.definition, bound))


def _falsehood(item: BodyLiteral) -> str:
    """A false comparison with its values, and what they come to where something is calculated."""
    if not isinstance(item, Comparison) or item.variables:
        return f"{item} is false"
    left, right = assigned(item.left, {}), assigned(item.right, {})
    if left is None or right is None:
        return f"{item} is false: one side has no value"
    worked = Comparison(item.operator, Constant(left), Constant(right))
    told = f"{item} is false" if worked == item else f"{item}, which is {worked}, is false"
    ordered = item.operator not in ("=", "\\=") and isinstance(left, str) | isinstance(right, str)
    return f"{told}: only numbers have an order" if ordered else told


def _asked_or_not(kb: KnowledgeBase, library: Library, atom: Atom) -> Story:
    """Nobody proposed the value: were the questions that could have brought it asked?"""
    asked = [line for question in _questions(library, atom) for line in _question_story(kb, question)]
    if asked:
        return Story("it was asked for, and no model proposed it", "question", tuple(asked))
    return Story("nobody asked; `hapax query --ask` does", "question")


def _questions(library: Library, atom: Atom) -> Iterator[Question]:
    """The questions about this atom with one argument left open, under the types that its signature and rules use."""
    signature = library.signature(atom.indicator)
    values = atom_key(atom)[1]
    for position, declared in enumerate(signature.argument_types):
        arguments = tuple(None if i == position else value for i, value in enumerate(values))
        used = (
            term.data_type
            for rule in library.rules
            for one in rule.atoms
            if one.indicator == atom.indicator and isinstance(term := one.arguments[position], Variable)
        )
        for data_type in dict.fromkeys((declared, *used)):
            for functional in (False, True):
                yield Question((Pattern(atom.predicate, arguments),), data_type, functional)


def _question_story(kb: KnowledgeBase, question: Question) -> Iterator[Story]:
    state = kb.question_state(question)
    if state.calls:
        pattern = question.patterns[0]
        cells = ", ".join("?" if value is None else str(Constant(value)) for value in pattern.arguments)
        calls = counted(state.calls, "call")
        end = "exhausted" if state.exhausted else "not exhausted"
        yield Story(f"{pattern.predicate}({cells}) as {question.data_type}: {calls}, {end}", "question")


def _no_rule(theory: Theory, atom: Atom, session: PrologSession) -> Iterator[Story]:
    """For every rule that concludes the predicate, how far its premise got and what was missing then."""
    for rule in theory.library.rules:
        if rule.conclusion.atom.indicator != atom.indicator:
            continue
        bound = _unified(rule.conclusion.atom, atom)
        if bound is None:
            yield Story(f"rule {rule.name}: its conclusion {rule.conclusion} says something else", "rule")
        else:
            yield _Failure(theory, join_order(rule), bound).story(session)


def _unified(head: Atom, atom: Atom) -> Substitution | None:
    """The bindings by which a rule's conclusion becomes the ground atom, if it can."""
    bound: dict[str, Constant] = {}
    for term, constant in zip(head.arguments, atom.arguments, strict=True):
        assert isinstance(constant, Constant)  # noqa: S101  the atom is ground
        if isinstance(term, Constant):
            if term != constant:
                return None
        elif bound.setdefault(term.name, constant) != constant:
            return None
    return Substitution(tuple(bound.items()))


@dataclass(frozen=True)
class _Failure:
    """One rule that does not reach an atom: finds the longest part of its premise that holds."""

    theory: Theory
    rule: Rule
    bound: Substitution

    def story(self, session: PrologSession) -> Story:
        part = self.theory.behind(self.rule)
        ordered = [
            *(i for i in self.rule.premise if self._generates(i)),
            *(i for i in self.rule.premise if not self._generates(i)),
        ]
        session.load(
            part.program()
            + "".join(self._clause(number, ordered[:number], part.library) for number in range(1, len(ordered) + 1))
        )
        reached: list[Substitution] = [self.bound]
        for number in range(1, len(ordered) + 1):
            found = self._solutions(session, number)
            if not found:
                return self._told(ordered[number - 1], reached)
            reached = found
        return Story(f"rule {self.rule.name}: every premise holds", "rule")  # a rule with tests that only hold together

    def _clause(self, number: int, premise: Iterable[BodyLiteral], part: Library) -> str:
        head = Literal(Atom(f"hapax_prefix_{number}", self.rule.variables))
        return clause_text(replace(self.rule, premise=tuple(premise), conclusion=head), part) + "\n"

    def _solutions(self, session: PrologSession, number: int) -> list[Substitution]:
        """A few ways in which the first items of the premise hold together."""
        names = [variable.name for variable in self.rule.variables]
        head = f"hapax_prefix_{number}({', '.join(self._argument(name) for name in names)})"
        limits = replace(BULK, answers=EXAMPLES)
        rows = session.solutions(head, names, limits, trusted=True, distinct=True).rows
        return [self._extended(names, row) for row in rows]

    def _argument(self, name: str) -> str:
        constant = self.bound.get(name)
        return name if constant is None else prolog_value(constant.value)

    def _extended(self, names: Sequence[str], row: Sequence[Value | PrologTerm]) -> Substitution:
        pairs = [
            (name, Constant(cell))
            for name, cell in zip(names, row, strict=True)
            if name not in self.bound and not isinstance(cell, PrologTerm)
        ]
        return Substitution((*self.bound.bindings, *pairs))

    def _told(self, missing: BodyLiteral, reached: Sequence[Substitution]) -> Story:
        goals = list(dict.fromkeys(instantiated(missing, one) for one in reached))
        lines = tuple(self._premise(goal) for goal in goals)
        return Story(f"rule {self.rule.name}: its premise {missing} {self._lack(missing)}", "rule", lines)

    def _generates(self, item: BodyLiteral) -> bool:
        """Whether facts or rules make it hold. Everything else only tests values, so it goes after them."""
        return isinstance(item, Literal) and not item.negated and not self._is_computed(item)

    def _lack(self, missing: BodyLiteral) -> str:
        if self._generates(missing):
            return "has no fact"
        return "does not hold" if isinstance(missing, Literal) and missing.negated else "is false"

    def _is_computed(self, literal: Literal) -> bool:
        return self.theory.library.signature(literal.atom.indicator).kind is PredicateKind.COMPUTED

    def _premise(self, goal: BodyLiteral) -> Story:
        if not isinstance(goal, Literal):
            return Story(_falsehood(goal), "premise")
        if goal.negated:
            return Story(f"{goal.atom} holds, and the rule wants that it does not", "premise")
        behind: tuple[Story, ...] = ()
        if goal.atom.is_ground:
            behind = tuple(_not_accepted(self.theory.kb, self.theory.library, goal.atom))
        if self._is_computed(goal):
            return Story(f"{goal.atom} is false", "premise", behind)
        told = f"nothing makes {goal.atom} hold"
        if any(variable.name in self.rule.generic for variable in self._named(goal)):
            told += "; --assume states such a thing for one query"
        return Story(told, "premise", behind)

    def _named(self, goal: Literal) -> tuple[Variable, ...]:
        """The variables of the rule's own literal that this goal comes from."""
        own = (one for one in self.rule.literals if one.atom.indicator == goal.atom.indicator)
        return tuple(variable for literal in own for variable in literal.variables)
