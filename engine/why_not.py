"""Explain why something does not hold: the gate that stopped a value, the premise that failed, the row that differs.

A goal without an answer may have a name that no fact has but that is close to one, or a predicate without facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product

from hapax.engine.explain import (
    ATOM,
    Explainer,
    fact_lines,
    named_atom,
    search_story,
    sentence_rules,
    stored_rule,
    stored_statement,
    unknown_text,
    what_fell,
    with_stored_predicates,
    worded_atom,
)
from hapax.engine.inference.derive import fact_key, matched
from hapax.engine.inference.proof import Story
from hapax.engine.inference.theory import AskedAtom, Theory
from hapax.engine.logic.compile import join_order
from hapax.engine.logic.evaluate import idle_negations
from hapax.engine.logic.goal_rules import GOAL, NotRules, goal_rules, with_rules
from hapax.engine.logic.proofs import atoms_that_hold, holding_prefixes, prove
from hapax.engine.search.demand_loop import is_asked_by_queries
from hapax.grammar.arguments import checked, texts
from hapax.grammar.checking.rule_checks import comparison_of_texts, constant_of_wrong_kind
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import Goal, every_item, terms_of, variables_of
from hapax.grammar.parsing.declarations import Closedness, PredicateKind, PredicateSignature
from hapax.grammar.parsing.syntax import LIST
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    MISSING,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Substitution,
    Term,
    Value,
    Variable,
    expression_variables,
)
from hapax.grammar.values.functions import assigned, fault
from hapax.grammar.writing.prolog_text import prolog_atom
from hapax.grammar.writing.verbalize import atom_text, is_worded, item_text
from hapax.grammar.writing.words import counted, plain_letters, some
from hapax.kb.records import LEFT_OUT_ROWS, AtomPattern, FactRecord, Question, Source
from hapax.kb.store import KnowledgeBase

EXAMPLES = 3
"""Rows, atoms and substitutions that are shown where there may be many."""

MOST_COMPARED = 1_000_000
"""Facts of a predicate among which similar ones are looked for."""

SOME_ROWS = 50
"""Rows with one of an atom's values, among which the most similar one is looked for."""


def why_not(theory: Theory, text: str) -> Story:
    """Explain why an atom or a statement does not hold: a gate rejected it, premises of rules failed, nobody asked.

    An atom may leave arguments open; `text` may be the sentence of a statement, or its id. Raises HapaxError if it
    holds.
    """
    if not ATOM.match(text) and (story := _of_statement(theory, text.strip())) is not None:
        return story
    worded, asked = worded_atom(text, theory) if ATOM.match(text) else named_atom(text, theory)
    atom = asked.atom
    if atoms_that_hold(worded, asked, 1):
        named = atom if atom.is_ground else text.strip()
        raise HapaxError(f"{named} holds.", Remedy("Run {} to see why.", Operation("why", text.strip())))
    reasons = [*_not_accepted(worded, atom), *_no_rule(worded, atom)]
    if not theory.library.knows(atom.indicator):
        reasons.append(Story(unknown_text(atom), "rule"))
    words = _written(atom, worded.library)
    if is_worded(atom, worded.library) and atom.is_ground:
        words = f"{atom_text(atom, worded.library)}  {atom}"
    return Story(f"{words}  [does not hold]", "goal", tuple(reasons))


def _of_statement(theory: Theory, text: str) -> Story | None:
    """Explain why a statement does not hold; None for a text that is no sentence of a rule, nor a stored id."""
    worded = with_stored_predicates(theory)
    statement = stored_statement(worded, text)
    if statement is None:
        found = sentence_rules(worded.library, text)
        reasons: list[Story] = []
    else:
        fallen = what_fell(worded, statement)
        if fallen is None:
            raise HapaxError(f'"{statement.text}" holds.', Remedy("Run {} to see why.", Operation("why", text)))
        rule = stored_rule(worded.kb, statement.rule, worded.library)
        found = [(rule, Substitution.of(statement.substitution))] if rule is not None else []
        text, reasons = statement.text, [Story(fallen.message, "withdrawal")]
    for rule, values in found:
        # What a statement supposes of a person needs no fact.
        needed = tuple(item for item in rule.premise if not rule.is_information(item))
        reasons.append(_failure(worded, replace(rule, premise=needed), values))
    return Story(f"{text}  [does not hold]", "statement", tuple(reasons)) if reasons else None


def _written(atom: Atom, library: Library) -> str:
    """The atom as text, by its columns where it leaves some open."""
    columns = library.columns_of(atom.predicate)
    if len(columns) != len(atom.arguments) or not any(term.is_anonymous for term in atom.variables):
        return str(atom)
    named, empty = [], []
    for name, term in zip(columns, atom.arguments, strict=True):
        if term == Constant(MISSING):
            empty.append(name)
        elif not (isinstance(term, Variable) and term.is_anonymous):
            named.append(f"{name}: {term}")
    text = f"{atom.predicate}({', '.join(named)})"
    return f"{text} with an empty {' and '.join(empty)}" if empty else text


def _not_accepted(theory: Theory, atom: Atom) -> Iterator[Story]:
    """The gate that rejected the value; if no model proposed it, whether it was asked for."""
    kb, library = theory.kb, theory.library
    signature = library.signature(atom.indicator)
    lines = list(fact_lines(kb, library, atom)) if atom.is_ground else []
    if lines:
        yield from lines
    elif signature.kind is PredicateKind.COMPUTED:
        yield Story(_computed(atom, signature), "computed")
    elif atom.indicator in library.aggregated:
        yield _other_value(theory, atom)
    elif signature.kind is PredicateKind.GIVEN and (signature.declared or atom.indicator not in library.derived):
        near = tuple(_near_rows(theory, atom, signature))
        yield Story("it is not among the given facts; add it to a rule file, or import it", "given", near)
    elif is_asked_by_queries(library, signature) and atom.is_ground:
        yield from _asked_or_not(kb, library, atom)
    elif atom.indicator not in library.derived:
        yield Story(
            f"it is about a generic person, who has no stored facts; {Setting('assume')} adds it to a query",
            "assumption",
        )


def _other_value(theory: Theory, atom: Atom) -> Story:
    """The value that an aggregate has for the atom's group, with its proof."""
    rule = theory.library.with_closure().concluding[atom.indicator][0]
    group = rule.aggregate.group if rule.aggregate is not None else ()
    types = theory.library.signature(atom.indicator).argument_types
    terms: list[Term] = []
    for place, (term, stated) in enumerate(zip(atom.arguments, rule.conclusion.atom.arguments, strict=True)):
        terms.append(term if stated in group else Variable(f"_{place}", types[place]))
    found = atoms_that_hold(theory, AskedAtom(Atom(atom.predicate, tuple(terms))), EXAMPLES)
    proofs = filter(None, (prove(theory, holding) for holding in found))
    stories = tuple(map(Explainer(theory).proof, proofs))
    return Story(f"the aggregate has {'another value' if stories else 'no row in this group'}", "given", stories)


def _near_rows(theory: Theory, atom: Atom, signature: PredicateSignature) -> Iterator[Story]:
    """The facts with the same key, or that differ in one argument, and the rows that an import left out."""
    bound = atom.bound
    key = {place: bound[place] for place in signature.key if place in bound}
    names = signature.columns or tuple(f"argument {place + 1}" for place in range(len(atom.arguments)))
    has_key = bool(key) and len(key) == len(signature.key)
    # Without a key no index may find them.
    is_small = theory.kb.fact_count(atom.indicator, MOST_COMPARED + 1) <= MOST_COMPARED
    others = [{at: bound[at] for at in bound if at != place} for place in bound if len(bound) > 1 and is_small]
    near = [list(islice(_facts_with(theory, atom, cells), EXAMPLES)) for cells in ([key] if has_key else others)]
    # The cells that fewest facts have say most about the row that is meant.
    near.sort(key=len)
    found = {fact.id: fact for fact in chain.from_iterable(near)}
    nearest = list(found.values())
    if is_small and not has_key and not found:
        rows = chain.from_iterable(islice(_facts_with(theory, atom, {at: bound[at]}), SOME_ROWS) for at in bound)
        nearest = sorted(rows, key=lambda fact: -sum(fact.arguments[at] == bound[at] for at in bound))[:1]
    for fact in nearest[:EXAMPLES]:
        yield Story(f"in {fact.text}, {', '.join(_differing(fact, atom, names))}", "given")
    if has_key and not found:
        wanted = ", ".join(f"{names[place]} {Constant(value)}" for place, value in key.items())
        yield Story(f"no fact has {wanted}", "given")
    for item in theory.kb.withdrawals() if not atom.is_ground else ():
        if item.fact.indicator == atom.indicator and matched(atom.arguments, item.fact.arguments) is not None:
            yield Story(f"{item.atom} was {item.text}", "withdrawal")
    wanted_cells = {str(value) for value in (key if has_key else bound).values()}
    # The cell at fault need not be what the user means by it.
    least = max(1, len(wanted_cells) if has_key else len(wanted_cells) - 1)
    left_out = theory.kb.matching(LEFT_OUT_ROWS, predicate=atom.predicate)
    for row in islice((row for row in left_out if len(wanted_cells.intersection(row.cells)) >= least), EXAMPLES):
        yield Story(f"an import left out {row.file}:{row.line}: {row.reason}", "given")


def _differing(fact: FactRecord, atom: Atom, names: Sequence[str]) -> Iterator[str]:
    """The cells of a row that differ from those of an atom, whose variables have one value each, and no empty one."""
    cells = dict(enumerate(fact.arguments))
    for place, value in atom.bound.items():
        if cells[place] != value:
            yield f"{names[place]} is {_cell(cells[place])} and not {_cell(value)}"
    for variable in atom.variables:
        places = [place for place, term in enumerate(atom.arguments) if term == variable and not variable.is_anonymous]
        if any(cells[place] is MISSING for place in places):
            yield from (f"{names[place]} is empty" for place in places if cells[place] is MISSING)
        elif len({cells[place] for place in places}) > 1:
            yield f"{' and '.join(names[place] for place in places)} are not the same"


def _cell(value: Value) -> str:
    return "empty" if value is MISSING else str(Constant(value))


def _facts_with(theory: Theory, atom: Atom, cells: Mapping[int, Value]) -> Iterator[FactRecord]:
    """The facts of an atom's predicate, stored, or stated in a rule file, that have these values at these places."""
    yield from theory.kb.relations.at(atom.indicator, dict(cells))
    for stated in theory.library.facts:
        if stated.indicator == atom.indicator and all(stated.values[place] == value for place, value in cells.items()):
            yield FactRecord(stated.predicate, stated.values, (), Source.GIVEN)


def _computed(atom: Atom, signature: PredicateSignature) -> str:
    """The comparison that a computed atom stands for, with its values."""
    if signature.definition is None:
        return (
            f"{atom.indicator} is computed, and no loaded rule file defines it; name the one that does with "
            f"{Setting('rules')}"
        )
    values = ((signature.parameters[place].name, value) for place, value in atom.bound.items())
    return _falsehood(signature.definition.replaced(Substitution.of(values)))


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
    return f"{item} is false" if evaluated == item else f"{item}, which is {evaluated}, is false"


def _asked_or_not(kb: KnowledgeBase, library: Library, atom: Atom) -> Iterator[Story]:
    """The questions whose answers could have contained the value, if any were asked; another known value, if any."""
    asked: list[Story] = []
    for question in _questions(library, atom):
        state = kb.question_state(question)
        if state.calls:
            cells = ("?" if value is None else str(Constant(value)) for value in question.patterns[0].arguments)
            end = f"{counted(state.calls, 'call')}, {'' if state.exhausted else 'not '}exhausted"
            asked.append(Story(f"{atom.predicate}({', '.join(cells)}) as {question.data_type}: {end}", "question"))
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
    key = atom.values[:-1]
    stored = (fact.text for fact in kb.relations.at(atom.indicator, dict(enumerate(key))))
    stated = (str(fact) for fact in library.facts if fact.indicator == atom.indicator and fact.values[:-1] == key)
    return next(chain(stored, stated), None)


def _questions(library: Library, atom: Atom) -> Iterator[Question]:
    """The questions about this atom with one argument open, for each type in its signature and in rules."""
    signature = library.signature(atom.indicator)
    for position, declared in enumerate(signature.argument_types):
        arguments = (*atom.values[:position], None, *atom.values[position + 1 :])
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


def _no_rule(theory: Theory, atom: Atom) -> Iterator[Story]:
    """For every rule that concludes the predicate, the first item of its premise that fails."""
    bound = atom.bound
    for rule in theory.library.rules:
        if rule.conclusion.atom.indicator != atom.indicator:
            continue
        bindings = matched([rule.conclusion.atom.arguments[place] for place in bound], list(bound.values()))
        if bindings is None:
            yield Story(f"rule {rule.name}: its conclusion {rule.conclusion} does not match", "rule")
        else:
            yield _failure(theory, rule, Substitution.of(bindings.items()))


def _failure(theory: Theory, rule: Rule, bound: Substitution) -> Story:
    """Explain which item of a rule's premise fails, and what became of the values in its last search."""
    story = _Failure(theory, join_order(rule), bound).story()
    return replace(story, children=(*story.children, *search_story(theory, rule, bound)))


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
            if found:
                reached = found
                continue
            # Different solutions may lack the same goal.
            goals = dict.fromkeys(item.replaced(substitution) for substitution in reached)
            lack = "does not hold" if isinstance(item, Literal) and item.negated else "is false"
            written = item_text(item, self.theory.library)
            if isinstance(item, Literal) and self._generates(item):
                lack, written = "has no fact", _written(item.atom, self.theory.library)
            text = f"rule {self.rule.name}: its premise {written} {lack}"
            return Story(text, "rule", tuple(map(self._premise, goals)))
        return Story(f"rule {self.rule.name}: every premise holds", "rule")  # a rule with tests that only hold together

    def _generates(self, item: BodyLiteral) -> bool:
        """True if facts or rules give the item's variables values. Other items only test values."""
        if not isinstance(item, Literal) or item.negated:
            return False
        return self.theory.library.kind(item.atom.indicator) is not PredicateKind.COMPUTED

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
            return Story(text, "premise", (Explainer(self.theory).proof(proof),) if proof is not None else ())
        signature = self.theory.library.signature(goal.atom.indicator)
        behind: tuple[Story, ...] = ()
        if goal.atom.is_ground:
            behind = tuple(_not_accepted(self.theory, goal.atom))
        elif signature.kind is PredicateKind.GIVEN and signature.declared:
            behind = tuple(_near_rows(self.theory, goal.atom, signature))
        if signature.kind is PredicateKind.COMPUTED:
            return Story(f"{goal.atom} is false", "premise", behind)
        text = f"nothing makes {_written(goal.atom, self.theory.library)} hold"
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


# --- goals without an answer ------------------------------------------------------------------------------------------

ALIKE = 80
"""Least likeness of two names, of 100 (rapidfuzz's ratio, without case, accents and punctuation)."""

MOST_FACTS = 100_000
"""No names are compared if the goal depends on more facts: that would take longer than the goal."""

MOST_NAMES = 3


@checked
def near_misses(goal: str, rules: Library, kb: KnowledgeBase, *, assume: str | Sequence[str] = ()) -> list[str]:
    """Reasons why a goal may have no answer: names like those of the facts, and predicates without facts.

    A name of the goal that no fact has is compared with the names in the facts on which the goal depends. Raises
    GoalRejected.
    """
    theory = Theory(rules, kb, texts(assume))
    parsed = theory.goal(goal)
    part = theory.relevant_to(goals=parsed.called)
    stated = [*part.library.facts, *part.assumed]
    # Predicates that only facts decide: those of rules and of arithmetic need none of their own.
    base = [
        signature.indicator
        for signature in part.library.completed().signatures
        if signature.indicator not in part.library.derived and signature.definition is None
    ]
    counts = Counter(atom.indicator for atom in stated)
    for indicator in base:
        counts[indicator] += kb.fact_count(indicator, MOST_FACTS + 1)
    lines = list(_of_other_kinds(parsed, theory.library))
    if not lines and sum(counts[indicator] for indicator in base) <= MOST_FACTS:
        known = _known_names(theory, base, stated)
        names = dict.fromkeys(_names(parsed))
        lines = [_about(name, known, base) for name in names if known and name not in known]
    lines += [f"{indicator} has no facts." for indicator in base if not counts[indicator]]
    lines += dict.fromkeys(chain.from_iterable(_with_empty_cells(theory, item.atom) for item in parsed.literals))
    if asked := [indicator for indicator in base if part.library.is_asked(indicator)]:
        lines.append(f"{Setting('models')} asks a model for facts of {some(asked)}.")
    return lines


def _with_empty_cells(theory: Theory, atom: Atom) -> Iterator[str]:
    """A line if a row with the atom's values has an empty cell, which a variable of the atom does not match."""
    columns = theory.library.columns_of(atom.predicate)
    named = [at for at, term in enumerate(atom.arguments) if isinstance(term, Variable) and not term.is_anonymous]
    if len(columns) == len(atom.arguments) and atom.bound:
        for fact in islice(_facts_with(theory, atom, atom.bound), 1):
            if empty := [columns[at] for at in named if fact.arguments[at] is MISSING]:
                yield f"{some(empty)}: empty in {fact.text}, and a variable matches no empty cell; write _ there."


def _of_other_kinds(goal: Goal, library: Library) -> Iterator[str]:
    """The faults of a goal that a rule would have: numbers where the rules have texts or dates, and vice versa."""
    try:
        rules = goal_rules(goal, library, by_failure=True)
    except NotRules:
        return
    checked = with_rules(replace(library.completed(), rules=(), facts=(), declarations=()), rules)
    for diagnostic in (*comparison_of_texts(checked), *constant_of_wrong_kind(checked)):
        yield re.sub(f" of rule {GOAL} [0-9]+", "", f"{diagnostic.message}. {diagnostic.remedy}.")


def idle_premises(goal: Goal, theory: Theory) -> list[str]:
    """Notes about negations below the goal that exclude nothing, since their predicate is not known."""
    part = theory.relevant_to(goals=goal.called)
    if not any(literal.negated for rule in part.library.rules for literal in rule.literals):
        return []
    assumed = {atom.indicator for atom in part.assumed}

    def has_facts(indicator: str) -> bool:
        return indicator in assumed or bool(theory.kb.fact_count(indicator, 1))

    return list(idle_negations(part.library.rules, theory.library, has_facts))


def capitalised_values(goal: Goal, theory: Theory) -> list[str]:
    """A note for each variable of the goal, or of a rule below it, that occurs once and is spelt like a value."""
    part = theory.relevant_to(goals=goal.called)
    found = [("", name) for name in _single(variable.name for variable in variables_of(goal.premise))]
    for rule in part.library.rules:
        terms = chain.from_iterable(atom.arguments for atom in rule.atoms)
        sides = chain.from_iterable(comparison.sides for comparison in rule.comparisons)
        variables = chain.from_iterable(map(expression_variables, (*terms, *sides)))
        found += [(f"{rule.place}: ", name) for name in _single(variable.name for variable in variables)]
    names = [name for _, name in found]
    known = dict(zip(names, theory.kb.symbols.known(names), strict=True))
    stated = {value for atom in theory.library.facts for value in atom.values}
    return [
        f"{place}{name} is a variable here; the stored name is written {prolog_atom(name)}."
        for place, name in found
        if known[name] is not None or name in stated
    ]


def _single(names: Iterable[str]) -> list[str]:
    """The names that occur once; a single letter, or one after `_`, is meant as a variable."""
    return [name for name, number in Counter(names).items() if number == 1 and len(name) > 1 and name[0] != "_"]


def _known_names(theory: Theory, predicates: Sequence[str], stated: Sequence[Atom]) -> dict[str, None]:
    """The texts in stored facts of these predicates and in facts of rule files and assumptions, each once."""
    facts = chain.from_iterable(theory.kb.facts(indicator.rpartition("/")[0]) for indicator in predicates)
    rows = chain((fact.arguments for fact in facts), (atom.values for atom in stated))
    return {value: None for value in chain.from_iterable(rows) if isinstance(value, str)}


def _about(name: str, known: Collection[str], predicates: Sequence[str]) -> str:
    from rapidfuzz import fuzz, process, utils  # only goals without answers need it

    def plain(name: str) -> str:
        return str(utils.default_process(plain_letters(name)))

    found = process.extract(name, list(known), scorer=fuzz.ratio, processor=plain, score_cutoff=ALIKE, limit=MOST_NAMES)
    near = " or ".join(prolog_atom(choice) for choice, _, _ in found)
    # Facts of other predicates may have it.
    return f"No fact of {some(predicates, 3)} has {prolog_atom(name)}. " + (
        f"Did you mean {near}?" if near else "No name in these facts is like it."
    )


def _names(goal: Goal) -> Iterator[str]:
    """The texts in a goal that facts should have, in order: in atoms, in lists, and alone in an equation."""
    for item in every_item(goal.premise):
        is_equation = isinstance(item, Comparison) and item.operator == "=" and item.test is None
        for term in terms_of(item):
            listed = term.operands if isinstance(term, Arithmetic) and term.operator == LIST else ()
            for part in listed or ((term,) if is_equation or isinstance(item, Literal) else ()):
                if isinstance(part, Constant) and isinstance(part.value, str):
                    yield part.value
