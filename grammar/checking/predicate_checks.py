"""Checks of predicates and types: declarations, templates, uses, opposites, and questions that no model can answer.

A check declares its faults in its decorator and gets them as arguments. A new check is a function and a line in
PREDICATE_CHECKS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain, pairwise

from hapax.grammar.checking.faults import Check, RuleFault, check
from hapax.grammar.data_types import PERSON, type_key
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Variable, grouped
from hapax.grammar.writing.prolog_text import OWN_NAMES, SYSTEM_NAMES
from hapax.grammar.writing.verbalize import all_forms
from hapax.grammar.writing.words import counted

_MEASURES = """
    age area color colour cost depth diameter height length mass price shape size speed temperature volume weight width
"""
MEASURES = frozenset(_MEASURES.split())
"""Properties of single things that a kind of things does not have."""

POSSESSING = frozenset(["costs", "has", "have", "is", "measures", "weighs"])
"""First words of predicates that state a measure. "requires" is left out: a required minimal age holds for the kind."""

_NAMED_THINGS = """
    actor album animal artist author battle beverage bone book breed bridge building car cheese city company compound
    constellation continent country crop currency dam dinosaur director disease dish drug element event film galaxy
    game god island king lake landmark language law metal mineral model monument moon mountain museum novel ocean organ
    planet play politician product queen river school singer song species sport star state structure technology tower
    treaty university volcano war writer
"""
NAMED_THINGS = frozenset(_NAMED_THINGS.split())
"""Last words of types whose members texts mention by name, or describe as a kind."""

NO_PLACE = Place("<declarations>")
"""The place of subtypes and opposites that were not read from a file."""


def intended_declaration(atom: Atom, library: Library) -> PredicateSignature | None:
    """The declaration with another number of arguments that an undeclared atom was meant for, if there is one."""
    return None if library.signature(atom.indicator).declared else library.declared_as(atom.predicate)


def rules_of_right_arity(library: Library) -> Iterator[Rule]:
    """Rules whose atoms have the declared number of arguments.

    Checks of variables skip the others: `uses_of_predicates` reports the wrong number, and the rest follows from it.
    """
    for rule in library.rules:
        if not any(intended_declaration(atom, library) for atom in rule.atoms):
            yield rule


# Declarations and uses


@check(
    RuleFault.error(
        "HPX106", "conflicting declarations",
        "oracle is_in(Ingredient, Dish)\nfunctional is_in(Ingredient, Dish)",
        "functional is_in(Ingredient, Dish)",
    ),
    RuleFault.note(
        "HPX301", "repeated declaration",
        "oracle is_in(Ingredient, Dish)\noracle is_in(Ingredient, Dish)",
        "oracle is_in(Ingredient, Dish)",
    ),
)  # fmt: skip
def clashing_declarations(
    library: Library, clashing_declarations: RuleFault, declared_twice: RuleFault
) -> Iterator[Diagnostic]:
    """Predicates declared more than once. Equal declarations, as in two files, do no harm and get a note."""
    first: dict[str, PredicateSignature] = {}
    for signature in library.signatures:
        known = first.setdefault(signature.indicator, signature)
        if known == signature and known is not signature:
            problem = f"{signature.indicator} is declared twice in the same way"
            yield declared_twice.at(signature.place, problem, "Remove one of them", known.place)
        elif known != signature:
            problem = f"{_declaration(signature)} conflicts with the first declaration, {_declaration(known)}"
            yield clashing_declarations.at(signature.place, problem, "Keep only one of them", known.place)


@check(
    RuleFault.error(
        "HPX117", "tolerance without a quantity",
        "functional was_invented_by(Invention, Inventor) within 2",
        "functional was_invented_in(Invention, Year) within 2",
    ),
)  # fmt: skip
def tolerance_without_quantity(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Tolerances of predicates that are not functional, or whose last argument is not a number."""
    for signature in (known for known in library.signatures if known.tolerance is not None):
        last, fact = signature.argument_types[-1], ""
        if signature.kind is not PredicateKind.FUNCTIONAL:
            fact = f'it is declared as "{signature.kind}"'
        elif not library.is_numeric(last):
            fact = f"its last argument, {last}, is not a number"
        if fact:
            yield fault.at(
                signature.place,
                f"{signature.indicator} has a tolerance, but {fact}",
                'Remove "within", or declare the predicate as functional with a number as its last argument',
            )


def _declaration(signature: PredicateSignature) -> str:
    return f'"{signature.kind} {signature.name}({", ".join(signature.argument_types)})"'


@check(
    RuleFault.error(
        "HPX107", "use that contradicts the declaration",
        "oracle is_in(Ingredient, Dish)\n"
        "eats(Person X, Animal A) & is_in(Animal A, Dish B) -> likes(Person X, Dish B)",
        "oracle is_in(Ingredient, Dish)\n"
        "eats(Person X, Ingredient A) & is_in(Ingredient A, Dish B) -> likes(Person X, Dish B)",
    ),
    RuleFault.warning(
        "HPX204", "uses over unrelated types",
        "exists(Person X, Place A) & exists(Plant B, Time C) & comes_to(Time C, Place A) -> sees(Person X, Plant B)",
        "lives_in(Person X, Place A) & grows_at(Plant B, Time C) & comes_to(Time C, Place A)"
        " -> sees(Person X, Plant B)",
    ),
)  # fmt: skip
def uses_of_predicates(library: Library, clash: RuleFault, difference: RuleFault) -> Iterator[Diagnostic]:
    """Atoms with the wrong number or types of arguments, by the declaration or else by the predicate's first use."""
    reported: set[tuple[str, int, str]] = set()
    for rule in library.written_rules:
        for atom in rule.atoms:
            if intended := intended_declaration(atom, library):
                wanted = counted(len(intended.argument_types), "argument")
                yield clash.at(
                    rule.at(atom.place),
                    f"{atom} in rule {rule.name} has {counted(len(atom.arguments), 'argument')}, but it is declared as "
                    f"{_declaration(intended)}",
                    _missing_comma(atom) or f"Write {wanted}, or declare {atom.indicator} as well",
                    intended.place,
                )
            signature = library.signature(atom.indicator)
            for position, used, expected in misfits(atom, library):
                place, use = rule.at(atom.place_at(position)), (atom.indicator, position, type_key(used))
                if signature.declared:
                    yield clash.at(
                        place,
                        f"{atom} in rule {rule.name} has {used} where {_declaration(signature)} has {expected}",
                        f'Use a variable of the type {expected}, or declare "type {used} < {expected}"',
                        signature.place,
                    )
                elif use not in reported:
                    reported.add(use)
                    yield difference.at(
                        place,
                        f"argument {position + 1} of {atom.indicator} has the type {used} in rule {rule.name}, "
                        f"but {expected} in its first use",
                        "Declare the predicate over a common supertype, or use two predicates",
                        signature.place,
                    )


def misfits(atom: Atom, library: Library) -> Iterator[tuple[int, str, str]]:
    """Position, used type and expected type of the variables whose two types are not subtypes of one another."""
    types = library.signature(atom.indicator).argument_types
    for position, (term, expected) in enumerate(zip(atom.arguments, types, strict=True)):
        if isinstance(term, Variable) and library.most_specific((term.data_type, expected)) is None:
            # Where declarations of the predicate clash, agreeing with one of them is enough.
            declared = (known for known in library.signatures if known.indicator == atom.indicator)
            if not any(library.most_specific((term.data_type, known.argument_types[position])) for known in declared):
                yield position, term.data_type, expected


def _distinct_signatures(library: Library) -> Iterator[PredicateSignature]:
    """The signature of every predicate, declared ones first."""
    indicators = chain((known.indicator for known in library.signatures), (atom.indicator for atom in library.atoms))
    return map(library.signature, dict.fromkeys(indicators))


def _near(signature: PredicateSignature, signatures: Iterable[PredicateSignature]) -> list[str]:
    """At most two names that a misspelt one may be meant for, the nearest first: as many arguments, nearly its letters.

    Two letters in another order leave .8 of a name of five letters.
    """
    arity = len(signature.argument_types)
    names = [known.name for known in signatures if len(known.argument_types) == arity]
    return get_close_matches(signature.name, [name for name in names if name != signature.name], 2, 0.8)


@check(
    RuleFault.warning(
        "HPX201", "undeclared predicate",
        "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
        'oracle eats(Person, Food): "[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?"\n'
        'oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"\n'
        'oracle may_eat(Person, Dish): "[1] may eat [2]" / "[1] may not eat [2]" / "may [1] eat [2]?"\n'
        "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
    ),
    RuleFault.warning(
        "HPX202",
        "missing templates",
        "oracle is_in(Ingredient, Dish)",
        'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    ),
    RuleFault.warning(
        "HPX203",
        "incomplete templates",
        'oracle is_in(Ingredient, Dish): "[1] is in it"',
        'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    ),
)  # fmt: skip
def templates(
    library: Library, undeclared: RuleFault, no_template: RuleFault, incomplete_template: RuleFault
) -> Iterator[Diagnostic]:
    """Predicates of a search without all sentences, whose statements and questions are guessed from the name."""
    signatures = list(_distinct_signatures(library))
    searched = {atom.indicator for rule in library.rules if library.is_searched(rule) for atom in rule.atoms}
    supplied = library.derived | library.stated
    for signature in signatures:
        name, indicator = signature.name, signature.indicator
        is_worded = indicator in searched or library.is_asked(indicator)
        if not signature.declared:
            # A predicate that rules conclude is what they call it.
            near = "" if indicator in supplied else next(iter(_near(signature, signatures)), "")
            # Nobody can declare an exception, and a wrong number of arguments has its own diagnostic.
            is_known = indicator in library.excepted or library.declared_as(name) is not None
            if is_known or not (near or is_worded):
                continue
            kind = PredicateKind.DERIVED if indicator in library.derived else PredicateKind.ORACLE
            declaration = f'"{kind} {name}({", ".join(signature.argument_types)}): ..."'
            meant = f"Did you mean {near}? If not, declare" if near else "Declare"
            fault = undeclared.at(
                signature.place,
                f"{indicator} is not declared, so its kind and its templates are guessed",
                f"{meant} it: {declaration} with its templates",
            )
            # A fix leaves no choice, and leads to a name that somebody declared.
            if near and _near(signature, (known for known in signatures if known.declared)) == [near]:
                # A file that imports this one under a name has another name for the predicate.
                uses = (atom.place for atom in library.atoms if atom.indicator == indicator)
                here = [place for place in uses if place is not None and place.file == signature.place.file]
                fault = fault.with_fix(name, near, *here)
            yield fault
        elif signature.templates is None and is_worded:
            yield no_template.at(
                signature.place,
                f"{indicator} has no templates",
                'Add them after a colon: "[1] ... [2]" / "[1] ... not ... [2]" / "... [1] ... [2]?"',
            )
        elif missing := _missing_parts(signature, library.is_asked(indicator)):
            example = all_forms(signature.templates) if signature.templates and "[" not in missing else ""
            yield incomplete_template.at(
                signature.place,
                f"the templates of {indicator} lack {missing}",
                f"Complete them, as {example}" if example else "Complete them",
            )


@check(
    RuleFault.error(
        "HPX126", "reserved predicate name",
        "eats(Person X, Food A) & findall(Person X, Food A, Dish B) -> may_eat(Person X, Dish B)",
        "eats(Person X, Food A) & is_served_with(Food A, Dish B) -> may_eat(Person X, Dish B)",
    ),
)  # fmt: skip
def reserved_names(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Names that Prolog keeps for its own predicates, and those of the generated program's helpers."""
    for signature in _distinct_signatures(library):
        if signature.indicator in SYSTEM_NAMES or signature.name.startswith(OWN_NAMES):
            owner = "Prolog" if signature.indicator in SYSTEM_NAMES else "the generated program"
            yield fault.at(
                signature.place,
                f"{signature.indicator} is a predicate of {owner}, which rules cannot define",
                "Rename it",
            )


@check(
    RuleFault.warning(
        "HPX220", "predicate that rests only on itself",
        "@generic none\n"
        "supplies(Town A, Town B) & lies_on(Town B, River R) -> feeds(Town A, River R)\n"
        "@generic none\n"
        "feeds(Town A, River R) & lies_on(Town B, River R) -> supplies(Town A, Town B)",
        "@generic none\n"
        "supplies(Town A, Town B) & lies_on(Town B, River R) -> feeds(Town A, River R)\n"
        "@generic none\n"
        "lies_above(Town A, Town B) & lies_on(Town B, River R) & lies_on(Town A, River R) -> supplies(Town A, Town B)",
    ),
)  # fmt: skip
def groundless_predicates(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Undeclared predicates that no fact and no rule begins: each rule that concludes them needs them before."""
    declared = {signature.indicator for signature in library.signatures if signature.declared}
    groundless = library.derived - library.stated - declared
    needs: dict[str, list[set[str]]] = {}
    for rule in library.rules:
        # A person that a rule is about stands for anybody, and what is said of it is assumed.
        proved = {item.atom.indicator for item in rule.literals if not item.negated and not rule.is_information(item)}
        needs.setdefault(rule.conclusion.atom.indicator, []).append(proved)
    # Each round removes what a rule concludes without the predicates that are still in question.
    while begun := {name for name in groundless if any(map(groundless.isdisjoint, needs[name]))}:
        groundless -= begun
    for name in sorted(groundless):
        first, *others = library.concluding[name]
        yield fault.at(
            first.at(first.conclusion.atom.place),
            f"{name} rests only on itself: each rule that concludes it needs {name} or what follows from it",
            f'Add a rule or a fact from which it begins, or declare it, such as "given {name.rpartition("/")[0]}(...)"',
            *(rule.at(rule.conclusion.atom.place) for rule in others),
        )


@check(
    RuleFault.warning(
        "HPX219", "templates that say the same",
        'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is in [2]" / "is [1] in [2]?"',
        'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    ),
)  # fmt: skip
def senseless_templates(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Negated forms that affirm, and sentences that two predicates or a type share: no model can tell them apart."""
    first: dict[tuple[str, tuple[str, ...]], str] = {}
    for signature in _distinct_signatures(library):
        # Forms that differ only in case, blanks and the mark at the end say the same.
        words = {
            name: " ".join((text or "").casefold().rstrip("?.").split()) for name, text in _forms(signature).items()
        }
        said, indicator = words.get("affirmative", ""), signature.indicator
        if said and words["negated"] == said:
            problem = f"the negated form of {indicator} says the same as the affirmative form"
            yield fault.at(signature.place, problem, "Deny it")
        if said and library.is_asked(indicator):
            earlier = first.setdefault((said, tuple(map(type_key, signature.argument_types))), indicator)
            if earlier != indicator:
                problem = f"{indicator} and {earlier} say the same"
                yield fault.at(signature.place, problem, "Give one of them other words")
            elif said == "[1] is [2]":
                problem = f'{indicator} says what a claim of a data type says, such as "Ruby is a gemstone"'
                yield fault.at(signature.place, problem, 'Say more, such as "[1] has the colour [2]"')


def _forms(signature: PredicateSignature) -> dict[str, str | None]:
    """The texts of the predicate's templates by form; none without templates."""
    texts = signature.templates
    if texts is None:
        return {}
    return {"affirmative": texts.affirmative, "negated": texts.negated, "question": texts.question}


def _missing_comma(atom: Atom) -> str:
    """The remedy for two arguments that are read as one, since a variable stands in the middle of a type."""
    for variable in atom.variables:
        words = variable.data_type.split()
        for word, following in pairwise(words[1:]):
            if len(word) == 1 and word.isupper():
                return f"Write a comma between {word} and {following}"
    return ""


def _missing_parts(signature: PredicateSignature, is_asked: bool) -> str:
    """The parts that the sentences lack; only a predicate that a model is asked for needs all three forms."""
    slots = [f"[{position}]" for position, _ in enumerate(signature.argument_types, 1)]
    missing = [f"the {name} form" for name, text in _forms(signature).items() if text is None and is_asked]
    for name, text in _forms(signature).items():
        lacking = [slot for slot in slots if text and slot not in text]
        missing += [f"{slot} in the {name} form" for slot in lacking]
    return ", ".join(missing)


# Questions that no model can answer


def _asked_literals(library: Library) -> Iterator[tuple[Rule, Literal]]:
    """Literals that a model is asked about: constraints over oracle and functional predicates."""
    for rule in library.rules:
        for literal in rule.literals:
            if library.is_asked(literal.atom.indicator) and not rule.is_information(literal):
                yield rule, literal


def asked_atoms(library: Library) -> Iterator[tuple[Place, str, Atom, tuple[str, ...]]]:
    """Every atom that a model is asked about: place, " in rule NAME", atom, and the types of its arguments."""
    for rule, literal in _asked_literals(library):
        declared = library.signature(literal.atom.indicator).argument_types
        pairs = zip(literal.atom.arguments, declared, strict=True)
        types = tuple(term.data_type if isinstance(term, Variable) else expected for term, expected in pairs)
        yield rule.at(literal.atom.place), f" in rule {rule.name}", literal.atom, types


@check(
    RuleFault.warning(
        "HPX208", "measure of a nameless thing",
        "plants(Person X, Tree A) & has_height(Tree A, Height B) -> needs(Person X, Height B)",
        "given has_height(Tree, Height)\n"
        "plants(Person X, Tree A) & has_height(Tree A, Height B) -> needs(Person X, Height B)",
    ),
)  # fmt: skip
def measure_of_the_nameless(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Measures of single things without a name: no model knows the height of one tree (paper, section 2.2)."""
    for place, owner, atom, types in asked_atoms(library):
        # `has_height(Tree, Height)`: a verb of having, and a measure in the name or in the last type
        first, *words = atom.predicate.split("_")
        measures = MEASURES.intersection((*words, _last_word(types[-1]))) if types else ()
        # `question_about_nobody` reports a bare Person; other types are known for the names of their members.
        if (
            len(types) > 1
            and first in POSSESSING
            and measures
            and not (
                library.is_numeric(types[0]) or library.is_person(types[0]) or _last_word(types[0]) in NAMED_THINGS
            )
        ):
            yield fault.at(
                place,
                f"{atom.predicate} asks for the {min(measures)} of a single {types[0]}{owner}, which has no name by "
                "which a model could know it",
                "Ask about a type whose members have names, or declare the predicate as given",
            )


def _last_word(data_type: str) -> str:
    return type_key(data_type).rpartition(" ")[2]


@check(
    RuleFault.warning(
        "HPX209", "question about a nameless person",
        "@generic X\ninvites(Person X, Person A) & likes(Person A, Dish B) -> should_cook(Person X, Dish B)",
        "@generic X\n"
        "admires(Person X, Author A) & likes(Author A, Dish B) -> should_cook(Person X, Dish B)",
    ),
)  # fmt: skip
def question_about_nobody(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Questions about a Person that a search must find: a model knows only persons with a name."""
    right_arity = {rule.name for rule in rules_of_right_arity(library)}
    for rule, literal in _asked_literals(library):
        if rule.name not in right_arity or rule.unbound:
            continue  # has an error of its own, from which this would only follow
        for variable in literal.variables:
            # Members of a subtype, such as Author, have names.
            if type_key(variable.data_type) == type_key(PERSON):
                yield fault.at(
                    rule.at(literal.atom.place_of(variable.name)),
                    f"{literal} in rule {rule.name} asks a model about a Person, but models know persons only by name",
                    "Use a type of persons with names (Author, Historical Figure), make "
                    f"{variable.name} generic, or declare {literal.atom.predicate} as given",
                )


# Types and opposites


@check(
    RuleFault.error(
        "HPX115", "cycle of subtypes", "type Food < Meal\ntype Meal < Food", "type Food < Meal"
    ),
)  # fmt: skip
def cycle_of_subtypes(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Types declared below each other, which makes them one type with several names."""
    returning = (pair for pair in library.subtypes if library.is_declared_subtype(pair[1], pair[0]))
    for pairs in grouped(returning, lambda pair: library.supertypes(pair[0])).values():
        lines = ", ".join(f'"type {lower} < {upper}"' for lower, upper in pairs)
        first, *others = (library.places.get(pair, NO_PLACE) for pair in pairs)
        yield fault.at(first, f"the subtypes form a cycle: {lines}", "Remove one of the declarations", *others)


@check(
    RuleFault.warning(
        "HPX212",
        "opposite of an unknown predicate",
        "opposite can_dance cannot_dance",
        "oracle can_dance(Person, Dance)\noracle cannot_dance(Person, Dance)\nopposite can_dance cannot_dance",
    ),
)  # fmt: skip
def unknown_opposites(library: Library, fault: RuleFault) -> Iterator[Diagnostic]:
    """Opposites of predicates that nothing else mentions."""
    known = {signature.name for signature in _distinct_signatures(library)}
    for first, second in library.opposites:
        place = library.places.get((first, second), NO_PLACE)
        for name in {first, second} - known:
            problem = f"{name} has a declared opposite, but no rule or declaration mentions it"
            yield fault.at(place, problem, "Correct the name, or remove the line")


PREDICATE_CHECKS: tuple[Check, ...] = (
    clashing_declarations,
    tolerance_without_quantity,
    uses_of_predicates,
    templates,
    reserved_names,
    groundless_predicates,
    measure_of_the_nameless,
    question_about_nobody,
    cycle_of_subtypes,
    unknown_opposites,
    senseless_templates,
)
