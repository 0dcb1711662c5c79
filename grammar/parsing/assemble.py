"""Parsed statements to a library: declarations, facts, rules, attributes and defaults.

Four passes over all files, because types and predicates may be declared after their use: subtypes; declarations;
facts; rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import PurePath
from typing import TypeVar

from hapax.grammar.data_types import type_key
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.parsing.declarations import (
    PRINCIPLE_SPELLINGS,
    AggregateDeclaration,
    Chance,
    ClosedDeclaration,
    Closedness,
    Constraint,
    Declaration,
    DisjointTypes,
    ExceptionClause,
    GenericBy,
    Item,
    Polarity,
    PredicateKind,
    PredicateSignature,
    Property,
    PropertyDeclaration,
    StatementCap,
    Templates,
    Tolerance,
    default_polarity,
    default_principle,
    settled,
)
from hapax.grammar.parsing.shorthand import MOST_BRANCHES, branches, plain_items
from hapax.grammar.parsing.syntax import (
    RawAtom,
    RawClause,
    RawDeclaration,
    RawHead,
    RawLine,
    RawNamed,
    RawNode,
    RawPremise,
    RawTerm,
    RawWords,
    names,
    unnamed,
)
from hapax.grammar.parsing.term_reader import (
    Scope,
    TermReader,
    Typed,
    atom_with_types,
    expression_with_types,
    with_types,
    wrong_column,
)
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import (
    ANY,
    TRUE,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Variable,
    expression_variables,
)
from hapax.grammar.values.functions import FUNCTIONS
from hapax.grammar.values.user_functions import operation_of
from hapax.grammar.writing.texts import SLOT, is_variable_name, is_variable_word, numbered_slots, predicate_name
from hapax.grammar.writing.verbalize import spelled_template

_ATTRIBUTES = ("name", "domain", "principle", "polarity", "generic", "most", "withdrawn")

Choice = TypeVar("Choice")


def assemble(
    files: Sequence[tuple[str, str, Sequence[RawNode]]], known: Library, *, is_trusted: bool = False
) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The library of all lines, and the diagnostics of those left out.

    `files`: names, suffixes of the names of predicates and rules (see `rule_imports.py`), and lines.
    The lines may use the types and signatures of `known`, which is not part of the result. `is_trusted`: they are the
    user's own, so that their computed predicates may be Python functions.
    """
    assembly = _Assembly(known, is_trusted)
    for read in (assembly.read_types, assembly.read_declarations, assembly.read_facts, assembly.read_rules):
        for assembly.file, assembly.suffix, lines in files:
            read(lines)
    # The rules of one statement with "or" have most faults in common.
    return assembly.library(), tuple(dict.fromkeys(assembly.diagnostics))


class _Assembly(TermReader):
    """The library under construction."""

    def __init__(self, known: Library, is_trusted: bool) -> None:
        super().__init__(known)
        self.is_trusted = is_trusted
        self.rules: list[Rule] = []
        self.places: dict[str, Place] = {}
        """The place of the first rule with a name."""
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

    # First pass: types

    def read_types(self, lines: Sequence[RawNode]) -> None:
        for line in lines:
            match line:
                case RawLine("type", (lower, upper)):
                    pair = (self.data_type(lower.words), self.data_type(upper.words))
                    self.subtypes.append(pair)
                    self.pair_places.setdefault(pair, self.place(line))
                case RawClause(is_choice=True):
                    self.is_uncertain = True

    # Second pass: declarations

    def read_declarations(self, lines: Sequence[RawNode]) -> None:
        for line in lines:
            match line:
                case RawDeclaration("aggregate"):
                    # A given predicate, of which the aggregate's rule concludes the facts.
                    self._declare(replace(line, keyword="given", definition=None), self.place(line))
                case RawDeclaration():
                    # The range is that of the declaration without its sentences.
                    self._declare(line, Place(self.file, *line.at[:2], *line.atom.at[2:]))
                case RawLine():
                    self._read_line(line)
                case RawClause(heads=heads) if line.keyword != "@example":
                    self.stated.update(self.indicator(head.atom) for head in heads)

    def _read_line(self, line: RawLine) -> None:
        """Read opposites, goals, and what is declared of types and predicates."""
        place = self.place(line)
        match line:
            case RawLine("opposite", (first, second)):
                pair = (first + self.suffix, second + self.suffix)
                self.opposites.append(pair)
                self.pair_places.setdefault(pair, place)
            case RawLine("?-", (goal,)):
                self.goals.append(goal)
            case RawLine("disjoint", (RawWords(words), other)):
                if other is None and len(words) != 2:
                    self.report("types not separated", line.at, types=" ".join(words))
                else:
                    first, second = (words, other.words) if other is not None else (words[:1], words[1:])
                    self.declarations.append(DisjointTypes(self.data_type(first), self.data_type(second), place))
            case RawLine("closed", (name, arity, position)):
                closedness = Closedness.CLOSED if position is None else Closedness.CLOSED_FOR_FIRST
                if position not in (None, "1"):
                    self.report("closed by another argument", line.at, position=position)
                else:
                    indicator = f"{name}{self.suffix}/{arity}"
                    self.declarations.append(ClosedDeclaration(indicator, closedness, place))
            case RawLine(keyword, (name, arity)) if keyword in tuple(Property):
                indicator = f"{name}{self.suffix}/{arity}"
                self.declarations.append(PropertyDeclaration(Property(keyword), indicator, place))

    def _declare(self, line: RawDeclaration, place: Place) -> None:
        count, name = len(self.diagnostics), self.predicate(line.atom)
        types, parameters = self._parameters(line)
        variables = {parameter.name: parameter for parameter in parameters}
        # If one of the parameters was reported, a name in the definition may be meant for it.
        if count < len(self.diagnostics):
            return
        definition = None
        if line.definition is not None:
            written = self.comparison(line.definition, Scope(parameters=set(variables)))
            definition = replace(written.replaced(variables), place=written.place)
        elif line.keyword == PredicateKind.COMPUTED:
            definition = self._by_function(line, name, parameters)
        templates = self._templates(line, list(variables))
        if count < len(self.diagnostics):  # something in this declaration was reported
            return
        kind = PredicateKind(line.keyword)
        columns = [argument.column for argument in line.atom.arguments if isinstance(argument, RawNamed)]
        if columns and (len(columns) < len(types) or len(set(columns)) < len(columns)):
            self.report("columns of a declaration", line.atom.at, name=name)
        unknown = [column for column in line.key or () if column not in columns]
        if unknown:
            self.report("column", line.at, **wrong_column(name, unknown[0], columns, ()))
        signature = PredicateSignature(
            name,
            types,
            kind,
            templates,
            parameters if kind is PredicateKind.COMPUTED else (),
            definition,
            place=place,
            tolerance=Tolerance.parsed(line.tolerance.removeprefix("within")) if line.tolerance else None,
            key=tuple(columns.index(column) for column in line.key or () if column in columns),
            columns=tuple(columns),
        )
        self.signatures.append(signature)

    def _by_function(self, line: RawDeclaration, name: str, parameters: Sequence[Variable]) -> Comparison | None:
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

    def _parameters(self, line: RawDeclaration) -> tuple[tuple[str, ...], tuple[Variable, ...]]:
        """Argument types and formal variables. Only computed predicates need variables; others may leave them out."""
        types: list[str] = []
        parameters: list[Variable] = []
        # `Food Allergen` is a type alone, unless the argument needs a name.
        needs_names = line.keyword == PredicateKind.COMPUTED
        is_name = is_variable_word if needs_names else is_variable_name
        for argument in map(unnamed, line.atom.arguments):
            if not isinstance(argument, RawWords):
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

    def _templates(self, line: RawDeclaration, parameters: list[str]) -> Templates | None:
        arity = len(line.atom.arguments)
        if not line.templates:
            # The suffix does not belong to the sentence that is made from the name.
            return Templates(spelled_template(predicate_name(line.atom.name.words), arity)) if self.suffix else None
        if len(line.templates) > 3:
            self.report("too many templates", line.templates[3].at)
            return None
        texts = [numbered_slots(str(self.value(raw.source, raw.at)), parameters) for raw in line.templates]
        for text, raw in zip(texts, line.templates, strict=True):
            for slot in SLOT.findall(text):
                if slot.isdecimal() and not (slot.isascii() and 1 <= len(slot) <= 3 and 1 <= int(slot) <= arity):
                    self.report("slot without argument", raw.at, slot=slot)
        return Templates(texts[0], *(text or None for text in texts[1:]))  # an empty text stands for a missing form

    # Third pass: facts

    def read_facts(self, lines: Sequence[RawNode]) -> None:
        for line in lines:
            match line:
                case RawClause((head,), (), ()) if line.keyword == "@example":
                    self.examples.append(self.ground(head.atom))
                case RawClause((head,), (), ()) if head.share is not None:
                    self.facts.append(self.ground(head.atom))
                    self.chances.append((self.facts[-1], self._chance(line, self.facts[-1:], self.typed(()))))
                case RawClause((head,), (), ()) if not self._observed(head.atom):
                    self.facts.append(self.ground(head.atom))

    def _observed(self, fact: RawAtom) -> bool:
        """Read `query(heads)`, `evidence(p(a))` and `evidence(p(a), false)`; return if the fact is one of these."""
        match str(fact.name), fact.arguments:
            case "query", (RawWords((name,)),) if self.is_uncertain:
                self.goals.append(name)
            case "evidence", (RawAtom() | RawTerm("\\+") | RawWords() as about, *others):
                values = [str(word) for word in others]
                is_fact = isinstance(about, RawWords) and not self.is_uncertain
                if values not in ([], ["true"], ["false"]) or is_fact:
                    return False
                (stated,) = about.parts if isinstance(about, RawTerm) else (about,)
                atom = stated if isinstance(stated, RawAtom) else RawAtom(about, (), at=about.at)  # type: ignore[arg-type]
                is_denied = isinstance(about, RawTerm) is not (values == ["false"])
                self.evidence.append(Literal(self.ground(atom), is_denied))
            case _:
                return False
        return True

    # Fourth pass: rules

    def read_rules(self, lines: Sequence[RawNode]) -> None:
        position = 0
        waiting: dict[str, RawLine] = {}
        for line in lines:
            match line:
                case RawLine(keyword) if keyword.startswith("@"):
                    self._await(line, waiting)
                    continue
                case RawLine("broken"):
                    pass
                case RawClause(keyword="", heads=heads) if line.premise or line.exceptions or len(heads) > 1:
                    position += 1
                    self._rules_of(line, waiting, position)
                case _:
                    self._other(line)
                    self._unused(waiting)
            waiting = {}
        self._unused(waiting)

    def _other(self, line: RawNode) -> None:
        """Read a constraint or an aggregate."""
        match line:
            case RawClause(keyword="never"):
                for items in self._branches(line.premise, line):
                    self._if_sound(partial(self._constraint, items, line))
            case RawDeclaration("aggregate", definition=RawTerm(sign, (RawWords((result,)), RawAtom() as rows))):
                self._if_sound(partial(self._aggregate, line, sign, result, rows))

    def _if_sound(self, read: Callable[[], Declaration]) -> None:
        """Add a declaration unless something in it is reported."""
        count = len(self.diagnostics)
        declaration = read()
        if count == len(self.diagnostics):
            self.declarations.append(declaration)

    def _await(self, line: RawLine, waiting: dict[str, RawLine]) -> None:
        """Keep an attribute for the rule that follows."""
        name = line.keyword[1:]
        if name not in _ATTRIBUTES:
            self.report("unknown attribute", line.at, name=name)
        elif name in waiting:
            self.report("attribute twice", line.at, name=name)
        else:
            waiting[name] = line

    def _unused(self, waiting: dict[str, RawLine]) -> None:
        for name, line in waiting.items():
            self.report("attribute without rule", line.at, name=name)

    def _rules_of(self, line: RawClause, attributes: dict[str, RawLine], position: int) -> None:
        """Add a rule for each conjunction of the premise, and for each outcome of a choice.

        The shorthand's writer has taken out each *or* of the premise of a choice.
        """
        exceptions = tuple(chain.from_iterable(self._branches(items, line) for items in line.exceptions))
        premises, first = self._branches(line.premise, line), len(self.rules)
        ways = [(premise, head) for premise in premises for head in line.heads]
        for number, (premise, head) in enumerate(ways, 1):
            rule = replace(line, heads=(RawHead(head.atom),), premise=premise, exceptions=exceptions)
            self._rule(rule, attributes, position, f"_{number}" if len(ways) > 1 else "")
        new = self.rules[first:]
        if line.is_choice and len(new) == len(line.heads):
            typed = self.typed(new[0].premise, *(rule.conclusion.atom for rule in new))
            chance = self._chance(line, [rule.conclusion.atom for rule in new], typed)
            self.rules[first:] = [replace(rule, chance=replace(chance, place=place)) for place, rule in enumerate(new)]

    def _chance(self, line: RawClause, atoms: Sequence[Atom], typed: Typed) -> Chance:
        written = [self.expression(head.share, Scope()) for head in line.heads if head.share is not None]
        shares = [expression_with_types(share, typed) for share in written]
        chance = Chance(("choice", next(self.choices)), tuple(zip(shares, atoms, strict=True)))
        used = {variable.name for share in shares for variable in expression_variables(share)}
        if not used <= set(names(*plain_items(line.premise))) or (not used and chance.shares({}) is None):
            self.report("probability", line.at, text=str(chance))
        return chance

    def _branches(self, premise: RawPremise, line: RawNode) -> list[RawPremise]:
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

    def _rule(self, line: RawClause, attributes: dict[str, RawLine], position: int, ending: str) -> None:
        """Add a rule of one conclusion, without "or"; `ending`: of its name."""
        count, scope = len(self.diagnostics), self.scope(line)
        read = self.premise(line.premise, scope)
        head = self.atom(line.heads[0].atom, scope)
        excepted = [self.premise(items, scope) for items in line.exceptions]
        typed = self.typed((*read, *chain.from_iterable(excepted)), head)
        premise, negations = settled([with_types(item, typed) for item in read])
        exceptions: list[ExceptionClause] = []
        for items, raw in zip(excepted, line.exceptions, strict=True):
            stated, inner = settled([with_types(item, typed) for item in items], premise)
            exceptions.append(ExceptionClause.of(premise, stated, self.place(raw[0]), inner=inner))
        for clause in (*negations, *exceptions):
            if not clause.atom.arguments:
                at = clause.place
                spot = (at.line, at.column, at.end_line or at.line, at.end_column or at.column)
                self.report("exception apart from its rule", spot, exception=str(clause))
        if count == len(self.diagnostics):  # nothing in this rule was reported
            # Equal exceptions have one atom, because its name is made of their text; the premise has it once.
            whole = (*premise, *dict.fromkeys(exception.literal for exception in exceptions))
            conclusion = Literal(atom_with_types(head, typed))
            rule = Rule("", whole, conclusion, place=self.place(line), exceptions=(*negations, *exceptions))
            self.rules.append(self._with_attributes(rule, attributes, position, ending))
            self.places.setdefault(self.rules[-1].name, rule.place)

    def _constraint(self, items: RawPremise, line: RawClause) -> Constraint:
        read = self.premise(items, self.scope(*items))
        return Constraint(self._conjunction(read, items, self.typed(read)), place=self.place(line))

    def _aggregate(self, line: RawDeclaration, sign: str, result: str, rows: RawAtom) -> AggregateDeclaration:
        # As an atom, the counted variables may give types that no premise writes.
        counted = RawAtom(RawWords(rows.name.words[:1]), rows.arguments)
        alternatives = self._branches(rows.rows or (), line)
        scope = self.scope(*chain.from_iterable(alternatives), line.atom, counted)
        cases = [self.premise(items, scope) for items in alternatives]
        atom, given = self.atom(line.atom, scope), self.atom(counted, scope)
        typed = self.typed(chain.from_iterable(cases), atom, given)
        conjunctions = tuple(self._conjunction(*case, typed) for case in zip(cases, alternatives, strict=True))
        # All counts are of distinct rows.
        function = "count" if rows.name.words == ("count", "distinct") else str(rows.name)
        # Another sign than `=` is kept in place of the function: `check` reports it as an unknown aggregate.
        function = function if sign == "=" else sign
        variables = atom_with_types(given, typed).variables
        return AggregateDeclaration(
            atom_with_types(atom, typed), result, function, variables, conjunctions, self.place(line)
        )

    def _conjunction(self, read: Iterable[Item], items: RawPremise, typed: Typed) -> tuple[BodyLiteral, ...]:
        """The premise of a statement that is no rule, and so has no exceptions."""
        premise, negations = settled([with_types(item, typed) for item in read])
        if negations:
            self.report("negated conjunction", items[0].at, negation=str(negations[0]))
        return premise

    # Attributes

    def _with_attributes(self, rule: Rule, lines: dict[str, RawLine], position: int, ending: str) -> Rule:
        """The rule with the values of the attributes before it; their faults are reported.

        Without `@generic` no variable is generic yet: `Library.with_default_generic` chooses these.
        """
        text = {name: self._attribute_text(name, line) for name, line in lines.items()}

        def refuse(name: str, value: str, remedy: str) -> None:
            self.report("attribute value", lines[name].at, value=value, name=name, remedy=remedy)

        def choice(name: str, choices: dict[str, Choice]) -> Choice | None:
            key = type_key(text.get(name, ""))
            if key and key not in choices:
                refuse(name, text[name], f"Write {' or '.join(choices)}.")
            return choices.get(key)

        known = [variable.name for variable in rule.variables]
        # Before the principle, whose default follows from the polarity.
        polarity = choice("polarity", {polarity.value: polarity for polarity in Polarity})
        polarity = polarity or default_polarity(rule.conclusion)
        generic, most = text.get("generic", ""), text.get("most", "")
        chosen = () if generic == "none" else tuple(dict.fromkeys(generic.split()))
        for name in chosen:
            if name not in known:
                refuse("generic", name, f"Write variables of the rule ({', '.join(known)}), or none.")
        cap = StatementCap.parsed(most)
        if most and (cap is None or not set(cap.variables).issubset(known)):
            listed = ", ".join(sorted(known))
            refuse("most", most, f"Write a number from 1 and variables of the rule ({listed}): @most 2 per A.")
        return replace(
            rule,
            name=self._name(lines, text, position, ending),
            domain=text.get("domain") or None,
            principle=choice("principle", PRINCIPLE_SPELLINGS) or default_principle(polarity),
            polarity=polarity,
            generic=chosen,
            generic_by=GenericBy.ATTRIBUTE if generic else GenericBy.NOTHING,
            cap=cap,
            withdrawn=text.get("withdrawn") or None,
        )

    def _attribute_text(self, name: str, line: RawLine) -> str:
        count = len(self.diagnostics)
        text = " ".join(str(self.value(part, line.at)) if part.startswith('"') else part for part in line.parts)
        if not text.strip() and count == len(self.diagnostics):
            remedy = f"Write a value after @{name}."
            self.report("attribute value", line.at, value="", name=name, remedy=remedy)
        return text

    def _name(self, lines: dict[str, RawLine], text: dict[str, str], position: int, ending: str) -> str:
        """The value of @name, else `rule<N>`, with the file's name before it if an earlier file has that name, and a
        number after it if that is taken, too.
        """
        if text.get("name"):
            written = text["name"] + ending + self.suffix
            if written in self.places:
                self.report("name twice", lines["name"].at, self.places[written], name=written)
            return written
        numbered = f"rule{position}{ending}"
        of_file = f"{PurePath(self.file).stem}_{numbered}"
        candidates = chain((numbered, of_file), (f"{of_file}_{number}" for number in count(2)))
        return next(name for name in candidates if name not in self.places)
