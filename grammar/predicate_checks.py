"""Checks of predicates and types: declarations, templates, uses, and whether a model can know the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from grammar import faults
from grammar.errors import Diagnostic
from grammar.rules import PERSON, Library, Place, PredicateKind, PredicateSignature, Rule, Templates, type_key
from grammar.terms import Atom, Literal, Variable

ASKED = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)

MEASURES = frozenset(
    [
        "age",
        "area",
        "color",
        "colour",
        "cost",
        "depth",
        "diameter",
        "height",
        "length",
        "mass",
        "price",
        "shape",
        "size",
        "speed",
        "temperature",
        "volume",
        "weight",
        "width",
    ]
)
"""What single things have, and kinds of things have not."""

POSSESSING = frozenset(["costs", "has", "have", "is", "measures", "weighs"])
"""First words of predicates that tell a measure; a minimal age that is *required* holds for the kind."""

NAMED_THINGS = frozenset(
    [
        "actor",
        "album",
        "animal",
        "artist",
        "author",
        "battle",
        "beverage",
        "bone",
        "book",
        "breed",
        "bridge",
        "building",
        "car",
        "cheese",
        "city",
        "company",
        "compound",
        "constellation",
        "continent",
        "country",
        "crop",
        "currency",
        "dam",
        "dinosaur",
        "director",
        "disease",
        "dish",
        "drug",
        "element",
        "event",
        "film",
        "galaxy",
        "game",
        "god",
        "island",
        "king",
        "lake",
        "landmark",
        "language",
        "law",
        "metal",
        "mineral",
        "model",
        "monument",
        "moon",
        "mountain",
        "museum",
        "novel",
        "ocean",
        "organ",
        "planet",
        "play",
        "politician",
        "product",
        "queen",
        "river",
        "school",
        "singer",
        "song",
        "species",
        "sport",
        "star",
        "state",
        "structure",
        "technology",
        "tower",
        "treaty",
        "university",
        "volcano",
        "war",
        "writer",
    ]
)
"""Last words of types whose members have names under which texts speak of them, or are kinds that texts describe."""

VAGUE_PREDICATES = frozenset(
    [
        "affects",
        "concerns",
        "has_something_to_do_with",
        "involves",
        "is_about",
        "is_associated_with",
        "is_connected_to",
        "is_linked_to",
        "is_related_to",
        "is_relevant_to",
        "relates_to",
    ]
)


def miscounted(atom: Atom, library: Library) -> PredicateSignature | None:
    """The declaration that an atom with too few or too many arguments was meant for, if there is one."""
    return None if library.signature(atom.indicator).declared else library.declared_as(atom.predicate)


def counted_rules(library: Library) -> Iterator[Rule]:
    """The rules whose atoms have all their arguments: what is odd about the others is told by `uses_of_predicates`."""
    return (rule for rule in library.rules if not any(miscounted(atom, library) for atom in rule.atoms))


def clashing_declarations(library: Library) -> Iterator[Diagnostic]:
    """A predicate is declared once. Alike declarations in two files do no harm."""
    first: dict[str, PredicateSignature] = {}
    for signature in library.signatures:
        known = first.setdefault(signature.indicator, signature)
        if known is signature:
            continue
        if known == signature:
            yield faults.DECLARED_TWICE.at(
                signature.place, f"{signature.indicator} is declared twice alike", "Take one out", known.place
            )
        else:
            yield faults.CLASHING_DECLARATIONS.at(
                signature.place,
                f"{_declaration(signature)} does not agree with the first declaration, {_declaration(known)}",
                "Keep one of them",
                known.place,
            )


def _declaration(signature: PredicateSignature) -> str:
    return f'"{signature.kind} {signature.name}({", ".join(signature.argument_types)})"'


def uses_of_predicates(library: Library) -> Iterator[Diagnostic]:
    """Arguments fit the declared types and number; uses of an undeclared predicate agree with its first one."""
    told: set[tuple[str, int, str]] = set()
    for rule in library.rules:
        for atom in rule.atoms:
            signature = library.signature(atom.indicator)
            if meant := miscounted(atom, library):
                yield _miscount(rule, atom, meant)
            for position, used, expected in misfits(atom, library):
                if signature.declared:
                    yield _misfit(rule, atom, signature, used, expected)
                elif (signature.indicator, position, type_key(used)) not in told:
                    told.add((signature.indicator, position, type_key(used)))
                    yield faults.DIFFERENT_USES.at(
                        rule.place,
                        f"argument {position + 1} of {signature.indicator} has the type {used} in rule {rule.name} "
                        f"and {expected} where it was first used",
                        "Declare the predicate over a common supertype, or give the two meanings two names",
                        signature.place,
                    )


def misfits(atom: Atom, library: Library) -> Iterator[tuple[int, str, str]]:
    """Position, used and expected type of the variables whose type is on no line of subtypes with the expected one.

    Where declarations of the predicate clash, it is enough to agree with one of them.
    """
    types = library.signature(atom.indicator).argument_types
    for position, (term, expected) in enumerate(zip(atom.arguments, types, strict=True)):
        if isinstance(term, Variable) and library.most_specific((term.data_type, expected)) is None:
            declared = (one.argument_types[position] for one in library.signatures if one.indicator == atom.indicator)
            if not any(library.most_specific((term.data_type, one)) for one in declared):
                yield position, term.data_type, expected


def _miscount(rule: Rule, atom: Atom, meant: PredicateSignature) -> Diagnostic:
    return faults.CLASHING_USE.at(
        rule.place,
        f"{atom} in rule {rule.name} has not the arguments that {_declaration(meant)} wants",
        f"Give it {len(meant.argument_types)}, or declare {atom.indicator}, too",
        meant.place,
    )


def _misfit(rule: Rule, atom: Atom, signature: PredicateSignature, used: str, expected: str) -> Diagnostic:
    return faults.CLASHING_USE.at(
        rule.place,
        f"{atom} in rule {rule.name} puts {used} where {_declaration(signature)} wants {expected}",
        f'Use a variable of that type, or declare "type {used} < {expected}"',
        signature.place,
    )


def names_with_two_arities(library: Library) -> Iterator[Diagnostic]:
    """Most often an argument was forgotten. Rules that use one against a declaration of the other are told of that."""
    names: dict[str, list[PredicateSignature]] = {}
    used = {atom.indicator for rule in library.rules for atom in rule.atoms}
    for signature in _distinct(library):
        names.setdefault(signature.name, []).append(signature)
    for first, second in (pair for same in names.values() for pair in combinations(same, 2)):
        told = first.declared and second.indicator in used
        if not (second.declared or told):
            yield faults.TWO_ARITIES.at(
                second.place,
                f"two predicates are called {second.name}: {first.indicator} and {second.indicator}",
                "Add the missing argument, or use another name",
                first.place,
            )


def _distinct(library: Library) -> Iterator[PredicateSignature]:
    """The signature of every predicate, each once."""
    uses = [atom.indicator for rule in library.rules for atom in rule.atoms]
    indicators = [*(signature.indicator for signature in library.signatures), *uses]
    for indicator in dict.fromkeys((*indicators, *(fact.indicator for fact in library.facts))):
        yield library.signature(indicator)


def templates(library: Library) -> Iterator[Diagnostic]:
    """Statements and questions are told in the declared sentences; without them they read like the predicate's name."""
    for signature in _distinct(library):
        if not signature.declared and library.declared_as(signature.name):
            continue  # an argument too few or too many is told as such
        if not signature.declared:
            yield faults.UNDECLARED.at(
                signature.place,
                f"{signature.indicator} is not declared: its kind and its sentences are guessed",
                f'Write "oracle {signature.name}({", ".join(signature.argument_types)}): ..." with its sentences',
            )
        elif signature.templates is None:
            yield faults.NO_TEMPLATE.at(
                signature.place,
                f"{signature.indicator} has no sentences",
                'Add them after a colon: "[1] ... [2]" / "[1] ... not ... [2]" / "... [1] ... [2]?"',
            )
        elif lacking := _lacking(signature.templates, len(signature.argument_types)):
            yield faults.INCOMPLETE_TEMPLATE.at(
                signature.place, f"the sentences of {signature.indicator} lack {lacking}", "Complete them"
            )


def _lacking(sentences: Templates, arity: int) -> str:
    forms = {"affirmative": sentences.affirmative, "negated": sentences.negated, "question": sentences.question}
    missing = [f"the {name} form" for name, text in forms.items() if text is None]
    for name, text in forms.items():
        slots = [f"[{number}]" for number in range(1, arity + 1) if text is not None and f"[{number}]" not in text]
        missing += [f"{slot} in the {name} form" for slot in slots]
    return ", ".join(missing)


# What a model cannot know


def _asked_literals(library: Library) -> Iterator[tuple[Rule, Literal]]:
    """Literals that a model is asked about: constraints over oracle and functional predicates."""
    for rule in library.rules:
        for literal in rule.literals:
            signature = library.signature(literal.atom.indicator)
            asked = signature.declared or signature.indicator not in library.derived
            if asked and signature.kind in ASKED and not rule.is_information(literal):
                yield rule, literal


def measure_of_the_nameless(library: Library) -> Iterator[Diagnostic]:
    """`has_height(Tree X, Height Y)`: no model knows the height of one tree (paper, section 2.2)."""
    for place, owner, atom, types in asked_atoms(library):
        first, *words = atom.predicate.split("_")
        measures = MEASURES.intersection((*words, _last_word(types[-1])))
        if len(types) > 1 and first in POSSESSING and measures and not _has_names(types[0], library):
            yield faults.NO_ENTITY.at(
                place,
                f"{atom.predicate} asks for the {min(measures)} of one {types[0]}{owner}, and single ones have no name",
                "Ask about a type whose members are named, or declare the predicate given",
            )


def asked_atoms(library: Library) -> Iterator[tuple[Place, str, Atom, tuple[str, ...]]]:
    """Every atom that a model is asked about, with its place, the rule in words, and its arguments' types."""
    for rule, literal in _asked_literals(library):
        signature = library.signature(literal.atom.indicator)
        types = [
            term.data_type if isinstance(term, Variable) else expected
            for term, expected in zip(literal.atom.arguments, signature.argument_types, strict=True)
        ]
        yield rule.place, f" in rule {rule.name}", literal.atom, tuple(types)


def _last_word(data_type: str) -> str:
    return type_key(data_type).rpartition(" ")[2]


def _has_names(data_type: str, library: Library) -> bool:
    """Numbers, persons, and types known for the names of their members. A bare Person is `question_about_nobody`'s."""
    return library.is_numeric(data_type) or library.is_person(data_type) or _last_word(data_type) in NAMED_THINGS


def question_about_nobody(library: Library) -> Iterator[Diagnostic]:
    """A searched Person has no name either. Rules that leave their generic variable unbound are told of that alone."""
    counted = {rule.name for rule in counted_rules(library)}
    for rule, literal in _asked_literals(library):
        for variable in literal.variables if rule.name in counted and not rule.unbound else ():
            if type_key(variable.data_type) == type_key(PERSON):
                yield faults.NOBODY.at(
                    rule.place,
                    f"{literal} in rule {rule.name} asks a model about a Person, but it knows named ones only",
                    "Use a type of persons with names (Author, Historical Figure), make "
                    f"{variable.name} generic, or declare {literal.atom.predicate} given",
                )


def vague_question(library: Library) -> Iterator[Diagnostic]:
    """Predicates that hold of nearly everything give answers that nobody can judge."""
    for rule, literal in _asked_literals(library):
        if literal.atom.predicate in VAGUE_PREDICATES:
            yield faults.VAGUE.at(
                rule.place,
                f"{literal.atom.predicate} in rule {rule.name} is too vague for a model to answer",
                "Say in which way they are related",
            )


def arithmetic_asked_of_a_model(library: Library) -> Iterator[Diagnostic]:
    """A relation between numbers alone is decided better by arithmetic."""
    told: set[str] = set()
    for rule, literal in _asked_literals(library):
        atom = literal.atom
        numbers = [isinstance(term, Variable) and library.is_numeric(term.data_type) for term in atom.arguments]
        if len(numbers) > 1 and all(numbers) and atom.indicator not in told:
            told.add(atom.indicator)
            types = ", ".join(f"{term.data_type} {term.name}" for term in atom.arguments if isinstance(term, Variable))
            first, second, *_ = (term.name for term in atom.arguments if isinstance(term, Variable))
            yield faults.ASKED_ARITHMETIC.at(
                rule.place,
                f"{atom.predicate} in rule {rule.name} relates numbers only, yet a model is asked",
                f'Declare "computed {atom.predicate}({types}) := {first} < {second}", with the right comparison',
            )


# Types and opposites

UNPLACED = Place("<declarations>")
"""Subtypes and opposites do not keep their places; the message quotes them."""


def circle_of_subtypes(library: Library) -> Iterator[Diagnostic]:
    """Types below each other are one type under two names."""
    circles: dict[frozenset[str], list[str]] = {}
    for lower, upper in library.subtypes:
        if library.is_declared_subtype(upper, lower):
            circles.setdefault(library.same_types(lower), []).append(f'"type {lower} < {upper}"')
    for lines in circles.values():
        yield faults.TYPE_CIRCLE.at(
            UNPLACED, f"subtypes in a circle: {', '.join(lines)}", "Take one of the declarations out"
        )


def faulty_opposites(library: Library) -> Iterator[Diagnostic]:
    """A predicate and its opposite are two, and both are known."""
    known = {signature.name for signature in _distinct(library)}
    for first, second in library.opposites:
        if first == second:
            yield faults.OWN_OPPOSITE.at(
                UNPLACED, f"{first} is declared as its own opposite", "Name the predicate that says the contrary"
            )
            continue
        for name in (first, second):
            if name not in known:
                yield faults.UNKNOWN_OPPOSITE.at(
                    UNPLACED,
                    f"{name} has a declared opposite, but no rule or declaration speaks of it",
                    "Correct the name, or take the line out",
                )


PREDICATE_CHECKS: tuple[Callable[[Library], Iterable[Diagnostic]], ...] = (
    clashing_declarations,
    uses_of_predicates,
    names_with_two_arities,
    templates,
    measure_of_the_nameless,
    question_about_nobody,
    vague_question,
    arithmetic_asked_of_a_model,
    circle_of_subtypes,
    faulty_opposites,
)
