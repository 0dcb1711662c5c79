"""Parsed statements to a library: names, types, values, attributes and defaults are settled here.

Three passes over all files, because types and predicates may be declared after their use: subtypes; declarations,
opposites and facts; rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, count
from pathlib import PurePath

from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.goal_language import wrong_column
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.branches import MOST_BRANCHES, Item, Negation, branches, plain_items, settled
from hapax.grammar.parsing.declarations import (
    AggregateDeclaration,
    Chance,
    ClosedDeclaration,
    Closedness,
    Constraint,
    Declaration,
    DisjointTypes,
    ExceptionClause,
    Property,
    PropertyDeclaration,
)
from hapax.grammar.parsing.hints import hint
from hapax.grammar.parsing.rule_attributes import with_attributes
from hapax.grammar.rules import (
    BUILT_IN_SUBTYPES,
    NUMBER,
    OBJECT,
    PERSON,
    Library,
    PredicateKind,
    PredicateSignature,
    Rule,
    Templates,
    Tolerance,
    type_key,
)
from hapax.grammar.terms import (
    ANY,
    MISSING,
    OPERATIONS,
    TESTS,
    TRUE,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    expression_variables,
    variable_names,
)
from hapax.grammar.values.functions import FUNCTIONS, TEXT, result_type
from hapax.grammar.values.moments import DURATION, UNITS, duration_text
from hapax.grammar.values.user_functions import operation_of
from hapax.grammar.writing.texts import (
    MAXIMUM_DIGITS,
    SLOT,
    is_variable_name,
    is_variable_word,
    number_value,
    numbered_slots,
    predicate_name,
    unquoted,
)
from hapax.grammar.writing.verbalize import spelled_template
from hapax.grammar.writing.words import counted

_ATTRIBUTES = ("name", "domain", "principle", "polarity", "generic", "most", "withdrawn")


def assemble(
    files: Sequence[tuple[str, str, Sequence[syntax.RawNode]]], known: Library, *, is_trusted: bool = False
) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The library of all lines, and the diagnostics of those left out.

    `files`: names, suffixes of the names of predicates and rules (see `imports.py`), and lines.
    The lines may use the types and signatures of `known`, which is not part of the result. `is_trusted`: they are the
    user's own, so that their computed predicates may be Python functions.
    """
    assembly = _Assembly(known, is_trusted)
    for read in (assembly.read_types, assembly.read_declarations, assembly.read_rules):
        for assembly.file, assembly.suffix, lines in files:
            read(lines)
    # The rules of one statement with "or" have most faults in common.
    return assembly.library(), tuple(dict.fromkeys(assembly.diagnostics))


@dataclass(frozen=True, slots=True)
class _Scope:
    """The types of the variables of one rule or computed predicate, by name."""

    types: Mapping[str, Sequence[str]]
    """The types at a name's occurrences, in order."""
    settled: Mapping[str, str] = field(default_factory=dict)
    """The type of a name whose types are subtypes of one another; elsewhere each occurrence keeps its own."""
    parameters: bool = False
    """Other names are no variables: they are reported."""
    explained: bool = False
    """Another diagnostic may be the reason why a name is no parameter."""
    reported: set[str] = field(default_factory=set)
    """Names reported to be no parameters, each once."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of a name's occurrences in the rule."""
    anonymous: Iterator[int] = field(default_factory=lambda: count(1))

    def variable(self, name: str, own_type: str | None = None) -> Variable:
        """The variable of this name; of no type unless an atom gives it one."""
        known = self.types.get(name)
        return Variable(name, self.settled.get(name) or own_type or (known[0] if known else ANY))


class _Assembly:
    """The library under construction."""

    def __init__(self, known: Library, is_trusted: bool) -> None:
        self.known, self.is_trusted = known, is_trusted
        self.diagnostics: list[Diagnostic] = []
        self.file = self.suffix = ""
        self.rules: list[Rule] = []
        self.places: dict[str, Place] = {}
        """The place of the first rule with a name."""
        self.signatures: list[PredicateSignature] = []
        self.subtypes: list[tuple[str, str]] = []
        self.opposites: list[tuple[str, str]] = []
        self.facts: list[Atom] = []
        self.examples: list[Atom] = []
        self.goals: list[str] = []
        self.chances: list[tuple[Atom, Chance]] = []
        self.evidence: list[Literal] = []
        self.choices = count(1)
        self.is_uncertain = False
        self.declarations: list[Declaration] = []
        self.pair_places: dict[tuple[str, str], Place] = {}
        """The place of each pair of subtypes or opposites."""
        self.spellings: dict[str, str] = {type_key(ANY): ANY}
        """The first spelling of a type, by `type_key`."""
        # The spellings of the known library count as read first.
        for data_type in _data_types(known):
            self.data_type(data_type.split())
        self.concluded: set[str] = set()

    def library(self) -> Library:
        library = Library(
            tuple(self.rules),
            tuple(self.signatures),
            tuple(self.subtypes),
            tuple(self.opposites),
            tuple(self.facts),
            tuple(self.examples),
            tuple(self.declarations),
            self.pair_places,
            goals=tuple(self.goals),
            chances=tuple(self.chances),
            evidence=tuple(self.evidence),
        )
        known = library
        if self.known != Library():
            known = replace(
                self.known,
                rules=(*self.known.rules, *library.rules),
                signatures=(*self.known.signatures, *library.signatures),
                subtypes=(*self.known.subtypes, *library.subtypes),
                facts=(*self.known.facts, *library.facts),
            )
        return replace(library, rules=tuple(map(known.with_default_generic, library.rules)))

    def report(self, label: str, at: syntax.Spot, *related: Place, **words: str) -> None:
        """Add the diagnostic of a hint; long words are shortened to 60 characters."""
        for key, value in words.items():
            if len(value) > 60 and key != "remedy":
                words[key] = value[:57] + "..."
        self.diagnostics.append(hint(label).at(Place(self.file, *at), *related, fix=(), **words))

    def place(self, node: syntax.RawNode) -> Place:
        return Place(self.file, *node.at)

    def data_type(self, words: Sequence[str]) -> str:
        """The type in the spelling that was read first."""
        spelling = " ".join(words)
        return self.spellings.setdefault(type_key(spelling), spelling)

    # First pass: types

    def read_types(self, lines: Sequence[syntax.RawNode]) -> None:
        for line in lines:
            if isinstance(line, syntax.RawSubtype):
                pair = (self.data_type(line.lower.words), self.data_type(line.upper.words))
                self.subtypes.append(pair)
                self.pair_places.setdefault(pair, self.place(line))
            self.is_uncertain = self.is_uncertain or isinstance(line, syntax.RawChoice)

    @cached_property
    def types(self) -> Library:
        """The subtypes of all files, which is enough to compare types; complete after the first pass."""
        return Library(subtypes=(*self.known.subtypes, *self.subtypes))

    # Second pass: declarations, opposites, facts

    def read_declarations(self, lines: Sequence[syntax.RawNode]) -> None:
        for line in lines:
            match line:
                case syntax.RawDeclaration():
                    # The range is that of the declaration without its sentences.
                    self._declare(line, Place(self.file, *line.at[:2], *line.atom.at[2:]))
                case syntax.RawAggregate():
                    # A given predicate, of which the aggregate's rule concludes the facts.
                    self._declare(syntax.RawDeclaration("given", line.atom, templates=line.templates), self.place(line))
                case syntax.RawOpposite():
                    pair = (line.first + self.suffix, line.second + self.suffix)
                    self.opposites.append(pair)
                    self.pair_places.setdefault(pair, self.place(line))
                case syntax.RawFact() | syntax.RawChoice():
                    self._state(line)
                case syntax.RawGoal():
                    self.goals.append(line.text)
                case syntax.RawProperty():
                    self._declare_property(line)
                case syntax.RawDisjoint():
                    self._disjoin(line)
                case syntax.RawRule(conclusion=atom):
                    self.concluded.add(self._indicator(atom))

    def _state(self, line: syntax.RawFact | syntax.RawChoice) -> None:
        """Read a fact, an example, or a choice, which is a fact if it has one outcome and no premise."""
        if isinstance(line, syntax.RawFact):
            if not self._observed(line):
                stated = self.facts if line.keyword == "fact" else self.examples
                stated.append(self._ground(line.atom))
        elif line.premise or len(line.heads) > 1:
            self.concluded.update(self._indicator(head.atom) for head in line.heads)
        else:
            self.facts.append(self._ground(line.heads[0].atom))
            self.chances.append((self.facts[-1], self._chance(line, _Scope({}), self.facts[-1:])))

    def _indicator(self, atom: syntax.RawAtom) -> str:
        return f"{predicate_name(atom.name.words)}{self.suffix}/{len(atom.arguments)}"

    def _observed(self, line: syntax.RawFact) -> bool:
        """Read `query(heads)`, `evidence(p(a))` and `evidence(p(a), false)`; return if the fact is one of these."""
        match str(line.atom.name), line.atom.arguments:
            case "query", (syntax.RawWords(words=(name,)),) if self.is_uncertain:
                self.goals.append(name)
            case "evidence", (syntax.RawAtom() | syntax.RawLiteral() | syntax.RawWords() as about, *others):
                values = [str(other) for other in others]
                is_fact = isinstance(about, syntax.RawWords) and not self.is_uncertain
                if values not in ([], ["true"], ["false"]) or is_fact:
                    return False
                is_denied = isinstance(about, syntax.RawLiteral) and about.negated
                atom = about.atom if isinstance(about, syntax.RawLiteral) else about
                if isinstance(atom, syntax.RawWords):
                    atom = syntax.RawAtom(atom, (), at=atom.at)
                self.evidence.append(Literal(self._ground(atom), is_denied is not (values == ["false"])))
            case _:
                return False
        return True

    def _chance(self, line: syntax.RawChoice, scope: _Scope, atoms: Sequence[Atom]) -> Chance:
        shares = [self._expression(head.share, scope) for head in line.heads]
        chance = Chance(("choice", next(self.choices)), tuple(zip(shares, atoms, strict=True)))
        names = {variable.name for share in shares for variable in expression_variables(share)}
        if not names <= set(chain.from_iterable(map(_words, plain_items(line.premise)))) or (
            not names and chance.shares({}) is None
        ):
            self.report("probability", line.at, text=str(chance))
        return chance

    @cached_property
    def named(self) -> set[str]:
        """Indicators of the predicates that are declared or stated, or that a rule of any file concludes."""
        return {*self.declared, *self.concluded, *(fact.indicator for fact in (*self.known.atoms, *self.facts))}

    @cached_property
    def declared(self) -> dict[str, PredicateSignature]:
        """The first declaration of each predicate in all files, by indicator; complete after the second pass."""
        signatures = (*self.known.signatures, *self.signatures)
        return {signature.indicator: signature for signature in reversed(signatures)}

    def _declare(self, line: syntax.RawDeclaration, place: Place) -> None:
        count = len(self.diagnostics)
        name = self._predicate(line.atom)
        types, parameters = self._parameters(line)
        definition = None
        misses_parameters = False
        if line.definition is not None:
            # One of the parameters was reported, and a name in the definition may be meant for it.
            is_short = len(types) < len(line.atom.arguments)
            types_by_name = {parameter.name: (parameter.data_type,) for parameter in parameters}
            scope = _Scope(types_by_name, parameters=True, explained=is_short)
            self._no_type(line.definition)
            definition = self._comparison(line.definition, scope)
            # The templates' slots for these would only be reported a second time.
            misses_parameters = bool(scope.reported)
        elif line.keyword == PredicateKind.COMPUTED:
            definition = self._by_function(line, name, parameters)
        names = [variable.name for variable in parameters]
        templates = None if misses_parameters else self._templates(line, names)
        if count < len(self.diagnostics):  # something in this declaration was reported
            return
        kind = PredicateKind(line.keyword)
        formal = parameters if kind is PredicateKind.COMPUTED else ()
        tolerance = Tolerance.parsed(line.tolerance.removeprefix("within")) if line.tolerance else None
        wordings = tuple(map(self.place, line.templates or ()))
        columns = [argument.column for argument in line.atom.arguments if isinstance(argument, syntax.RawNamed)]
        if columns and (len(columns) < len(types) or len(set(columns)) < len(columns)):
            self.report("columns of a declaration", line.atom.at, name=name)
        signature = PredicateSignature(
            name, types, kind, templates, formal, definition, True, place, tolerance, wordings
        )
        unknown = [name for name in line.key or () if name not in columns]
        if unknown:
            self.report("column", line.at, **wrong_column(name, unknown[0], columns, ()))
        key = tuple(columns.index(column) for column in line.key or () if column in columns)
        self.signatures.append(replace(signature, columns=tuple(columns), key=key))

    def _by_function(self, line: syntax.RawDeclaration, name: str, parameters: Sequence[Variable]) -> Comparison | None:
        """The definition of a computed predicate by the Python function of its name."""
        operation = operation_of(name) if self.is_trusted else None
        count = FUNCTIONS[operation].least if operation is not None else -1
        if operation is None or count not in (len(parameters), len(parameters) - 1):
            self.report("malformed computed predicate", line.at)
            return None
        value = Arithmetic(operation, tuple(parameters[:count]))
        if count == len(parameters):
            return Comparison("=", value, Constant(TRUE), self.place(line))
        return Comparison("=", parameters[-1], value, self.place(line))

    def _declare_property(self, line: syntax.RawProperty) -> None:
        indicator, place = f"{line.name}{self.suffix}/{line.arity}", self.place(line)
        if line.keyword != "closed":
            self.declarations.append(PropertyDeclaration(Property(line.keyword), indicator, place))
        elif line.position in (None, "1"):
            closedness = Closedness.CLOSED if line.position is None else Closedness.CLOSED_FOR_FIRST
            self.declarations.append(ClosedDeclaration(indicator, closedness, place))
        else:
            self.report("closed by another argument", line.at, position=str(line.position))

    def _disjoin(self, line: syntax.RawDisjoint) -> None:
        words = line.first.words
        if line.second is None and len(words) != 2:
            self.report("types not separated", line.at, types=str(line.first))
            return
        first, second = (words, line.second.words) if line.second is not None else (words[:1], words[1:])
        self.declarations.append(DisjointTypes(self.data_type(first), self.data_type(second), self.place(line)))

    def _parameters(self, line: syntax.RawDeclaration) -> tuple[tuple[str, ...], tuple[Variable, ...]]:
        """Argument types and formal variables. Only computed predicates need variables; others may leave them out."""
        types: list[str] = []
        parameters: list[Variable] = []
        # `Food Allergen` is a type alone, unless the argument needs a name.
        needs_names = line.keyword == PredicateKind.COMPUTED
        is_name = is_variable_word if needs_names else is_variable_name
        for argument in map(_unnamed, line.atom.arguments):
            if not isinstance(argument, syntax.RawWords):
                label = "parameter without a name" if needs_names else "type expected"
                self.report(label, argument.at, argument=getattr(argument, "source", "an expression"))
                continue
            *type_words, last = argument.words
            # `A` alone is a name without a type.
            named = is_name(last) if type_words else is_variable_name(last) or last == "_"
            repeated = last in [parameter.name for parameter in parameters]
            if needs_names and (not named or repeated):
                self.report("parameter without a name", argument.at, argument=str(argument))
                continue
            types.append(self.data_type((type_words or [ANY]) if named else argument.words))
            if named:
                parameters.append(Variable(last, types[-1]))
        return tuple(types), tuple(parameters)

    def _templates(self, line: syntax.RawDeclaration, names: list[str]) -> Templates | None:
        arity = len(line.atom.arguments)
        if not line.templates:
            # The suffix does not belong to the sentence that is made from the name.
            return Templates(spelled_template(predicate_name(line.atom.name.words), arity)) if self.suffix else None
        if len(line.templates) > 3:
            self.report("too many templates", line.templates[3].at)
            return None
        texts = [numbered_slots(self._unquoted(raw.source, raw.at), names) for raw in line.templates]
        for text, raw in zip(texts, line.templates, strict=True):
            for slot in SLOT.findall(text):
                if slot.isdecimal() and not (slot.isascii() and 1 <= len(slot) <= 3 and 1 <= int(slot) <= arity):
                    self.report("slot without argument", raw.at, slot=slot)
        return Templates(texts[0], *(text or None for text in texts[1:]))  # an empty text stands for a missing form

    def _ground(self, atom: syntax.RawAtom) -> Atom:
        """The atom of a fact or an example, which has no variables."""
        arguments: list[Term] = []
        atom = self._positional(atom)
        for argument in map(_unnamed, atom.arguments):
            if isinstance(argument, syntax.RawWords) and not _is_constant(argument):
                self.report("variable in a fact", argument.at, argument=str(argument))
            else:
                arguments.append(self._argument(argument, _Scope({})))
        return self._applied(atom, arguments)

    # Third pass: rules

    def read_rules(self, lines: Sequence[syntax.RawNode]) -> None:
        position = 0
        waiting: dict[str, syntax.RawAttribute] = {}
        for line in lines:
            match line:
                case syntax.RawAttribute():
                    self._await(line, waiting)
                    continue
                case syntax.RawBroken(kind="@"):
                    continue  # the attributes before it still wait for their rule
                case syntax.RawBroken(kind=syntax.MISSPELT):
                    pass  # the attributes before it may be a rule's, if no keyword was meant
                case syntax.RawBroken(kind="" | "file"):
                    position += 1  # a broken rule keeps its number, so that the others keep their names
                case syntax.RawRule():
                    position += 1
                    self._rule(line, waiting, position)
                case syntax.RawChoice(heads=heads, premise=premise) if premise or len(heads) > 1:
                    position += 1
                    self._choice(line, waiting, position)
                case syntax.RawNever():
                    self._constraint(line)
                    self._unused(waiting)
                case syntax.RawAggregate():
                    self._aggregate(line)
                    self._unused(waiting)
                case _:
                    self._unused(waiting)
            waiting = {}
        self._unused(waiting)

    def _await(self, line: syntax.RawAttribute, waiting: dict[str, syntax.RawAttribute]) -> None:
        """Keep an attribute for the rule that follows."""
        if line.name not in _ATTRIBUTES:
            self.report("unknown attribute", line.at, name=line.name)
        elif line.name in waiting:
            self.report("attribute twice", line.at, name=line.name)
        else:
            waiting[line.name] = line

    def _unused(self, waiting: dict[str, syntax.RawAttribute]) -> None:
        for line in waiting.values():
            self.report("attribute without rule", line.at, name=line.name)

    def _rule(self, line: syntax.RawRule, attributes: dict[str, syntax.RawAttribute], position: int) -> None:
        exceptions = tuple(chain.from_iterable(self._branches(items, line) for items in line.exceptions))
        premises = self._branches(line.premise, line)
        for number, premise in enumerate(premises, 1):
            branch = replace(line, premise=premise, exceptions=exceptions)
            self._branch(branch, attributes, position, f"_{number}" if len(premises) > 1 else "")

    def _choice(self, line: syntax.RawChoice, attributes: dict[str, syntax.RawAttribute], position: int) -> None:
        """Add a rule for each outcome of a choice; the shorthand's writer has taken out each *or* of its premise."""
        first, is_many = len(self.rules), len(line.heads) > 1
        for number, head in enumerate(line.heads, 1):
            rule = syntax.RawRule(line.premise, head.atom, line.exceptions, at=line.at)
            self._branch(rule, attributes, position, f"_{number}" if is_many else "")
        new = self.rules[first:]
        if len(new) == len(line.heads):
            scope = self._scope(line.premise, *(head.atom for head in line.heads))
            chance = self._chance(line, scope, [rule.conclusion.atom for rule in new])
            self.rules[first:] = [replace(rule, chance=replace(chance, place=place)) for place, rule in enumerate(new)]

    def _branches(self, premise: syntax.RawPremise, line: syntax.RawNode) -> list[syntax.RawPremise]:
        """The conjunctions for a premise with "or"; none if a fault was reported."""
        try:
            found = branches(premise)
        except ValueError:
            self.report("columns compared", line.at)
            return []
        if len(found) > MOST_BRANCHES:
            self.report("too many alternatives", line.at, limit=str(MOST_BRANCHES))
            return []
        return found

    def _branch(
        self, line: syntax.RawRule, attributes: dict[str, syntax.RawAttribute], position: int, ending: str
    ) -> None:
        """Add a rule without "or"; `ending`: of its name."""
        count = len(self.diagnostics)
        scope = self._scope((*line.premise, *chain.from_iterable(line.exceptions)), line.conclusion)
        read = self._premise(line.premise, scope)
        conclusion = Literal(self._atom(line.conclusion, scope))
        premise, negations = settled(read)
        exceptions = [self._exception(items, premise, scope) for items in line.exceptions]
        for clause in (*negations, *exceptions):
            if not clause.atom.arguments:
                at = clause.place
                spot = (at.line, at.column, at.end_line or at.line, at.end_column or at.column)
                self.report("exception apart from its rule", spot, exception=str(clause))
        if count == len(self.diagnostics):  # nothing in this rule was reported
            # Equal exceptions have one atom, because its name is made of their text; the premise has it once.
            whole = (*premise, *dict.fromkeys(exception.literal for exception in exceptions))
            rule = Rule("", whole, conclusion, place=self.place(line), exceptions=(*negations, *exceptions))
            self.rules.append(self._with_attributes(rule, attributes, position, ending))
            self.places.setdefault(self.rules[-1].name, rule.place)

    def _exception(self, items: syntax.RawPremise, premise: tuple[BodyLiteral, ...], scope: _Scope) -> ExceptionClause:
        stated, inner = settled(self._premise(items, scope), premise)
        return ExceptionClause.of(premise, stated, self.place(items[0]), inner=inner)

    def _constraint(self, line: syntax.RawNever) -> None:
        for items in self._branches(line.premise, line):
            count = len(self.diagnostics)
            premise = self._conjunction(items, self._scope(items))
            if count == len(self.diagnostics):
                self.declarations.append(Constraint(premise, place=self.place(line)))

    def _aggregate(self, line: syntax.RawAggregate) -> None:
        count = len(self.diagnostics)
        # As an atom, the counted variables may give types that no premise writes.
        counted = syntax.RawAtom(syntax.RawWords(line.function.words[:1]), line.counted)
        alternatives = self._branches(line.premise, line)
        scope = self._scope(tuple(chain.from_iterable(alternatives)), line.atom, counted)
        cases = tuple(self._conjunction(items, scope) for items in alternatives)
        atom, variables = self._atom(line.atom, scope), self._atom(counted, scope).variables
        # All counts are of distinct rows.
        function = "count" if line.function.words == ("count", "distinct") else str(line.function)
        # Another sign than `=` is kept in place of the function: `check` reports it as an unknown aggregate.
        function = function if syntax.COMPARISONS.get(line.operator, line.operator) == "=" else line.operator
        if count == len(self.diagnostics):
            self.declarations.append(
                AggregateDeclaration(atom, line.result, function, variables, cases, self.place(line))
            )

    def _conjunction(self, items: syntax.RawPremise, scope: _Scope) -> tuple[BodyLiteral, ...]:
        """The premise of a statement that is no rule, and so has no exceptions."""
        premise, negations = settled(self._premise(items, scope))
        if negations:
            self.report("negated conjunction", items[0].at, negation=str(negations[0]))
        return premise

    def _premise(self, items: syntax.RawPremise, scope: _Scope) -> tuple[Item, ...]:
        premise: list[Item] = []
        for item in items:
            match item:
                case syntax.RawLiteral() if self._is_test(item.atom):
                    test = self._expression(item.atom, scope)
                    operator = "\\=" if item.negated else "="
                    premise.append(Comparison(operator, test, Constant(TRUE), self.place(item)))
                case syntax.RawLiteral():
                    premise.append(Literal(self._atom(item.atom, scope), item.negated))
                case syntax.RawNegation():
                    premise.append(Negation(self._premise(item.premise, scope), self.place(item)))
                case syntax.RawComparison():
                    premise.append(self._comparison(item, scope))
        return _with_missing(premise)

    def _scope(self, premise: syntax.RawPremise, *conclusions: syntax.RawAtom) -> _Scope:
        """The types of a rule's variables: as written, or else by the declarations of its predicates."""
        written: dict[str, list[str]] = {}
        declared: dict[str, str] = {}  # they count only for names without a written type
        counts: Counter[str] = Counter()
        atoms: list[syntax.RawAtom] = []
        bound: set[str] = set()
        for item in plain_items(premise):
            if isinstance(item, syntax.RawLiteral) and not self._is_test(item.atom):
                atoms.append(item.atom)
                bound.update(() if item.negated else _words(item.atom))
                continue
            counts.update(_words(item.atom if isinstance(item, syntax.RawLiteral) else item))
            if isinstance(item, syntax.RawComparison) and item.defined is not None:
                *type_words, name = item.defined.words
                written.setdefault(name, []).append(self.data_type(type_words))
        for atom in map(self._positional, (*atoms, *conclusions)):
            signature = self._declared(atom)
            for index, argument in enumerate(atom.arguments):
                if not isinstance(argument, syntax.RawWords) or not is_variable_word(argument.words[-1]):
                    continue
                *type_words, name = argument.words
                counts[name] += 1
                if type_words and name != "_":
                    written.setdefault(name, []).append(self.data_type(type_words))
                elif signature is not None:
                    declared.setdefault(name, signature.argument_types[index])
        types_by_name = {**{name: [data_type] for name, data_type in declared.items()}, **written}
        self._add_defined(tuple(plain_items(premise)), types_by_name, bound)
        # Types of one name that are not on one line of subtypes stay with their occurrences; `check` reports them.
        chains = {name: self.types.most_specific(tuple(dict.fromkeys(types))) for name, types in types_by_name.items()}
        settled = {name: most_specific for name, most_specific in chains.items() if most_specific is not None}
        return _Scope(types_by_name, settled, counts=counts)

    def _declared(self, atom: syntax.RawAtom) -> PredicateSignature | None:
        """The declaration of the atom's predicate."""
        predicate = predicate_name(atom.name.words).replace(" ", "_") + self.suffix
        return self.declared.get(f"{predicate}/{len(atom.arguments)}")

    def _add_defined(
        self, premise: Sequence[syntax.RawItem], types: dict[str, list[str]], bound: Container[str]
    ) -> None:
        """Add the types of the variables to which equations without a written type give values.

        `bound`: names of variables that have their values from atoms; an equation of such a one is a test.
        """
        equations = [item for item in premise if isinstance(item, syntax.RawComparison) and _is_equation(item)]
        sides = [(item.left, item.right) for item in equations] + [(item.right, item.left) for item in equations]
        for _ in sides:  # an equation may need a type that another one gives
            for target, source in sides:
                name = target.words[-1] if isinstance(target, syntax.RawWords) else ""
                is_new = bool(name) and is_variable_word(name) and name not in types and name not in bound
                if is_new and (found := self._type_of(source, types)):
                    types[name] = [found]

    def _type_of(self, expression: syntax.RawExpression, types: Mapping[str, Sequence[str]]) -> str:
        """The type of an expression; empty if that of a variable in it is not known."""
        match expression:
            case syntax.RawWords(words=words) if not _is_constant(expression):
                return next(iter(types.get(words[-1], ())), "")
            case syntax.RawOperation(left=left, operator=name, right=right):
                operands = [left, right]
            case syntax.RawAtom(arguments=arguments):
                name, operands = str(expression.name), [*map(_unnamed, arguments)]
            case syntax.RawNumber():
                return NUMBER
            case _:
                return DURATION if isinstance(expression, syntax.RawQuantity) else TEXT
        found = [self._type_of(operand, types) for operand in operands]
        return result_type(name, found, self.types.kind_of) if all(found) else ""

    def _is_test(self, atom: syntax.RawAtom) -> bool:
        """True for a test such as `contains(C, "x")`, unless the rules have a predicate of this name."""
        name, arguments = str(atom.name), atom.arguments
        has_types = any(isinstance(argument, syntax.RawWords) and len(argument.words) > 1 for argument in arguments)
        return name in TESTS and not has_types and f"{name}{self.suffix}/{len(arguments)}" not in self.named

    def _atom(self, atom: syntax.RawAtom, scope: _Scope) -> Atom:
        atom = self._positional(atom)
        signature = self._declared(atom)
        terms: list[Term] = []
        for place, argument in enumerate(map(_unnamed, atom.arguments)):
            term = self._argument(argument, scope)
            if isinstance(term, Variable) and term.name == "_":
                declared = signature.argument_types[place] if signature is not None else ANY
                own_type = term.data_type if term.data_type != ANY else declared
                term = Variable(f"_{next(scope.anonymous)}", own_type)
            terms.append(term)
        return self._applied(atom, terms)

    def _argument(self, argument: syntax.RawExpression, scope: _Scope) -> Term:
        if isinstance(argument, syntax.RawOperation | syntax.RawAtom | syntax.RawLiteral | syntax.RawListed):
            is_nested = not isinstance(argument, syntax.RawOperation)
            self.report("nested atom" if is_nested else "expression as argument", argument.at)
            return Constant(0)  # never used: the rule is left out
        return self._term(argument, scope)

    def _positional(self, atom: syntax.RawAtom) -> syntax.RawAtom:
        """The atom with its arguments in the order of the declared columns, `_` for those that it does not name."""
        named = {item.column: item.argument for item in atom.arguments if isinstance(item, syntax.RawNamed)}
        if not named:
            return atom
        name = predicate_name(atom.name.words) + self.suffix
        columns = next((found.columns for found in self.declared.values() if found.name == name and found.columns), ())
        unknown = [column for column in named if column not in columns]
        if unknown or len(named) < len(atom.arguments):
            others = (found.name for found in self.declared.values() if found.columns)
            self.report("column", atom.at, **wrong_column(name, (unknown or list(named))[0], columns, others))
            return replace(atom, arguments=tuple(named.values()))
        nothing = syntax.RawWords(("_",), at=atom.at)
        return replace(atom, arguments=tuple(named.get(column, nothing) for column in columns))

    def _applied(self, atom: syntax.RawAtom, terms: Iterable[Term]) -> Atom:
        places = tuple(map(self.place, atom.arguments))
        return Atom(self._predicate(atom), tuple(terms), self.place(atom), places)

    def _term(self, argument: syntax.RawPlainArgument | syntax.RawQuantity, scope: _Scope) -> Variable | Constant:
        if not isinstance(argument, syntax.RawWords) or _is_constant(argument):
            return self._constant(argument)
        *type_words, name = argument.words
        if not is_variable_word(name) or (not type_words and self._is_type_alone(name, scope)):
            self._no_variable(argument, type_words)
            return Variable(name, "")  # never used: the rule is left out
        if scope.parameters and name not in scope.types and not scope.explained and name not in scope.reported:
            scope.reported.add(name)
            self.report("unknown parameter", argument.at, name=name)
        if name == "_":
            return Variable(name, self.data_type(type_words) if type_words else ANY)
        return scope.variable(name, self.data_type(type_words) if type_words else None)

    def _is_type_alone(self, name: str, scope: _Scope) -> bool:
        """True for the name of a type in place of a variable: `eats(Person, Food A)`."""
        return scope.counts.get(name) == 1 and not is_variable_name(name) and type_key(name) in self.type_names

    @cached_property
    def type_names(self) -> frozenset[str]:
        """Keys of the types that declarations name, and of the built-in ones; complete after the second pass."""
        return frozenset(map(type_key, (*self.spellings, OBJECT, PERSON, *chain.from_iterable(BUILT_IN_SUBTYPES))))

    def _no_variable(self, argument: syntax.RawWords, type_words: list[str]) -> None:
        """Report words that do not end in a variable, with the variable that they may be meant for."""
        text, last = str(argument)[:60], argument.words[-1]
        if is_variable_word(last):
            remedy = f"{text} is a type; write the variable behind it: {text} X"
        elif last[0].isupper():
            remedy = (
                f'Choose another name; for a difference, write blanks around the minus: "{last.replace("-", " - ")}"'
            )
        elif type_words:
            remedy = f'Begin the variable with a capital letter: {text} X. If it is a text, quote it: "{text}"'
        else:
            remedy = "Choose another name: those of `_` and digits stand for `_`"
        self.report("no variable name", argument.at, argument=text, remedy=remedy)

    def _predicate(self, atom: syntax.RawAtom) -> str:
        name = predicate_name(atom.name.words) + self.suffix
        if " " in name:
            self.report("blank in a predicate name", atom.name.at, name=name, remedy=name.replace(" ", "_"))
        return name

    # Comparisons and values

    def _comparison(self, comparison: syntax.RawComparison, scope: _Scope) -> Comparison:
        operator = syntax.COMPARISONS.get(comparison.operator, comparison.operator)
        if operator != "=":
            self._no_type(comparison)
        left, right = self._expression(comparison.left, scope), self._expression(comparison.right, scope)
        if comparison.defined is not None and isinstance(left, Variable):
            own_type = self.data_type(comparison.defined.words[:-1])
            left = scope.variable(left.name, own_type) or left
        return Comparison(operator, left, right, self.place(comparison), comparison.defined is not None)

    def _no_type(self, comparison: syntax.RawComparison) -> None:
        """Report a variable with its type in a comparison that defines none."""
        if comparison.defined is not None:
            written, name = str(comparison.defined), comparison.defined.words[-1]
            operator = comparison.operator
            self.report("type in a comparison", comparison.at, operator=operator, variable=written, name=name)

    def _expression(self, expression: syntax.RawExpression, scope: _Scope) -> Expression:
        if isinstance(expression, syntax.RawOperation):
            left, right = self._expression(expression.left, scope), self._expression(expression.right, scope)
            return Arithmetic(expression.operator, (left, right))
        if isinstance(expression, syntax.RawAtom):
            return self._call(expression, scope)
        if isinstance(expression, syntax.RawLiteral | syntax.RawListed):
            self.report("nested atom", expression.at)
            return Constant(0)  # never used: the rule is left out
        return self._term(expression, scope)

    def _call(self, call: syntax.RawAtom, scope: _Scope) -> Arithmetic:
        name, count = str(call.name), len(call.arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            near = get_close_matches(name.lower(), [known for known in FUNCTIONS if known not in OPERATIONS], 1)
            question = f"Did you mean {near[0]}?" if near else "The page on the language lists the functions."
            self.report("unknown function", call.name.at, name=name, remedy=question)
        elif not function.least <= count <= function.most:
            words = {"name": name, "wanted": function.wanted, "count": counted(count, "argument")}
            self.report("arguments of a function", call.at, **words)
        return Arithmetic(name, tuple(self._expression(argument, scope) for argument in map(_unnamed, call.arguments)))

    def _constant(self, raw: syntax.RawPlainArgument | syntax.RawQuantity) -> Constant:
        if isinstance(raw, syntax.RawText):
            return Constant(self._unquoted(raw.source, raw.at))
        if isinstance(raw, syntax.RawWords):
            return Constant(str(raw))
        if isinstance(raw, syntax.RawQuantity):
            return Constant(self._duration(raw))
        number = number_value(raw.source)
        if number is None:
            self.report("number too large", raw.at, limit=str(MAXIMUM_DIGITS))
        return Constant(0 if number is None else number)

    def _duration(self, raw: syntax.RawQuantity) -> str:
        amount = number_value(raw.number)
        text = duration_text(amount, raw.unit) if amount is not None else None
        if text is None:
            self.report("unknown unit", raw.at, unit=raw.unit, units=", ".join(UNITS))
        return text or ""

    def _unquoted(self, source: str, at: syntax.Spot) -> str:
        try:
            return unquoted(source)
        except ValueError as error:
            self.report("unknown escape", at, escape=str(error))
            return ""

    # Attributes

    def _with_attributes(self, rule: Rule, lines: dict[str, syntax.RawAttribute], position: int, ending: str) -> Rule:
        text = {name: self._attribute_text(line) for name, line in lines.items()}
        faulty: list[tuple[str, str, str]] = []
        rule = with_attributes(rule, text, faulty)
        for name, value, remedy in faulty:
            self._refuse_value(lines[name], value, remedy)
        return replace(rule, name=self._name(lines, text, position, ending))

    def _attribute_text(self, line: syntax.RawAttribute) -> str:
        count = len(self.diagnostics)
        text = " ".join(self._unquoted(value, line.at) if value.startswith('"') else value for value in line.values)
        if not text.strip() and count == len(self.diagnostics):
            self._refuse_value(line, "", f"Write a value after @{line.name}.")
        return text

    def _refuse_value(self, line: syntax.RawAttribute, value: str, remedy: str) -> None:
        self.report("attribute value", line.at, value=value, name=line.name, remedy=remedy)

    def _name(self, lines: dict[str, syntax.RawAttribute], text: dict[str, str], position: int, ending: str) -> str:
        """The value of @name, else `rule<N>`, with the file's name before it if an earlier file has that name, and a
        number behind it if that is taken, too.
        """
        if text.get("name"):
            written = text["name"] + ending + self.suffix
            if written in self.places:
                self.report("name twice", lines["name"].at, self.places[written], name=written)
            return written
        numbered = f"rule{position}{ending}"
        of_file = f"{PurePath(self.file).stem}_{numbered}"
        names = chain((numbered, of_file), (f"{of_file}_{number}" for number in count(2)))
        return next(name for name in names if name not in self.places)


def _unnamed(argument: syntax.RawArgument) -> syntax.RawExpression:
    return argument.argument if isinstance(argument, syntax.RawNamed) else argument


def _is_constant(argument: syntax.RawArgument) -> bool:
    """True for a value: a text, a number, or a word that begins with neither a capital letter nor `_`."""
    if not isinstance(argument, syntax.RawWords):
        return True
    return len(argument.words) == 1 and not argument.words[0][0].isupper() and argument.words[0][0] != "_"


def _words(expression: syntax.RawArgument | syntax.RawComparison) -> Iterator[str]:
    """The variables of an expression or a comparison."""
    match expression:
        case syntax.RawWords(words):
            yield words[-1]
        case syntax.RawOperation(left, _, right) | syntax.RawComparison(left, _, right):
            yield from _words(left)
            yield from _words(right)
        case syntax.RawLiteral(atom):
            yield from _words(atom)
        case syntax.RawAtom(_, arguments):
            for argument in map(_unnamed, arguments):
                yield from _words(argument)


def _with_missing(premise: Sequence[Item]) -> tuple[Item, ...]:
    """The premise with MISSING in its atoms for each variable that a test says is missing, without these tests."""
    atoms = [item for item in premise if isinstance(item, Literal) and not item.negated]
    tests = [item for item in premise if isinstance(item, Comparison) and item.tests_missing in variable_names(atoms)]
    terms = {str(item.tests_missing): Constant(MISSING) for item in tests}
    items = (item.replaced(terms) if item in atoms and terms else item for item in premise if item not in tests)
    return tuple(items)


def _is_equation(item: syntax.RawComparison) -> bool:
    return syntax.COMPARISONS.get(item.operator, item.operator) == "=" and item.defined is None


def _data_types(library: Library) -> Iterable[str]:
    for pair in library.subtypes:
        yield from pair
    for signature in library.signatures:
        yield from signature.argument_types
    for rule in library.rules:
        for variable in rule.variables:
            yield variable.data_type
