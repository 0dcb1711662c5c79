"""Generate large rule libraries from the shipped vocabulary, reproducibly from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from benchmarks.common import LIBRARY, SHIPPED
from hapax.grammar.attributes import GenericBy
from hapax.grammar.parser import load_library
from hapax.grammar.printing import format_library
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature, Rule, type_key
from hapax.grammar.terms import Atom, Constant, Literal, Variable

COPIES = 10
"""Number of copies of each rule in a library of duplicates."""

LONG = 30
"""Number of literals that a long premise has in addition to those of a shipped one."""

TRIES = 200
"""Number of duplicates drawn in a row, after which premises get another literal."""

Places = Mapping[str, Sequence[tuple[PredicateSignature, int]]]
"""By type: the predicates with an argument of the type, and the position of that argument."""


@dataclass(frozen=True)
class Recipe:
    """The shipped rules that rules of a shape extend, and the predicates of the added literals."""

    bases: Sequence[Rule]
    places: Places
    extra: tuple[int, int]
    """Fewest and most added literals."""


def library_text(shape: str, rules: int, seed: int = 0) -> str:
    """A rule file with this number of rules of a shape in `SHAPES`, and the declarations of the shipped rules."""
    shipped = load_library([SHIPPED, LIBRARY])
    drawn = SHAPES[shape](shipped, rules, random.Random(seed))  # noqa: S311 - no secret
    named = tuple(rule.named(f"generated_{number}") for number, rule in enumerate(drawn, start=1))
    return format_library(replace(shipped, rules=named, signatures=tuple(dict.fromkeys(shipped.signatures))))


def _mixed(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Shipped rules with one to three added literals."""
    return _distinct(Recipe(_bases(shipped), _places(_asked(shipped)), (1, 3)), rules, source)


def _one_conclusion(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Extensions of a single shipped rule, the one with the most possible literals; all have the same conclusion."""
    places = _places(_asked(shipped))

    def choices(rule: Rule) -> int:
        return sum(len(places[type_key(variable.data_type)]) for variable in _open(rule.searched, places))

    base = max(_bases(shipped), key=choices)
    return _distinct(Recipe([base], places, (2, 4)), rules, source)


def _duplicates(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Ten copies of each rule, with variables renamed and the premise reordered."""
    distinct = list(_mixed(shipped, -(-rules // COPIES), source))
    return [_disguised(distinct[number % len(distinct)], source) for number in range(rules)]


def _long(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Shipped rules with thirty added literals."""
    return _distinct(Recipe(_bases(shipped), _places(_asked(shipped)), (LONG, LONG)), rules, source)


def _cycles(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Rules whose added literals are conclusions of other rules, so that predicates depend on each other in cycles."""
    concluded = [signature for signature in shipped.signatures if signature.indicator in shipped.derived]
    return _distinct(Recipe(_bases(shipped), _places(concluded), (1, 3)), rules, source)


def _contrary(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Rules of which every second one concludes the opposite of another."""
    asked = _places(_asked(shipped))
    able = [rule for rule in _bases(shipped) if shipped.opposite_of(rule.conclusion.atom.predicate)]
    able = [rule for rule in able if _open(rule.searched, asked)]
    drawn = list(_distinct(Recipe(able, asked, (1, 3)), rules, source))
    return [_turned(rule, shipped) if number // len(able) % 2 else rule for number, rule in enumerate(drawn)]


SHAPES: Mapping[str, Callable[[Library, int, random.Random], Iterable[Rule]]] = {
    "mixed": _mixed,
    "one conclusion": _one_conclusion,
    "duplicates": _duplicates,
    "long": _long,
    "cycles": _cycles,
    "contrary": _contrary,
}


def _bases(shipped: Library) -> list[Rule]:
    """The shipped rules without comparisons and negation, which an added literal could contradict."""
    positive = [rule for rule in shipped.rules if not any(literal.negated for literal in rule.literals)]
    return [rule for rule in positive if not rule.comparisons]


def _asked(shipped: Library) -> list[PredicateSignature]:
    kinds = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
    asked = [signature for signature in shipped.signatures if signature.kind in kinds]
    return [signature for signature in asked if len(signature.argument_types) > 1]


def _places(signatures: Iterable[PredicateSignature]) -> Places:
    places: dict[str, list[tuple[PredicateSignature, int]]] = {}
    for signature in signatures:
        for position, data_type in enumerate(signature.argument_types):
            places.setdefault(type_key(data_type), []).append((signature, position))
    return places


def _distinct(recipe: Recipe, rules: int, source: random.Random) -> Iterator[Rule]:
    """Extensions of each base in turn, no two of which are equal up to order and names of variables."""
    bases = [rule for rule in recipe.bases if _open(rule.searched, recipe.places)]
    seen: set[tuple[str, ...]] = set()
    longer = 0
    for number in range(rules):
        for tried in count():
            base = bases[(number + tried // TRIES) % len(bases)]
            longer += tried % TRIES == TRIES - 1
            rule = _grown(base, recipe.places, source.randint(*recipe.extra) + longer, source)
            key = (rule.conclusion.atom.predicate, *sorted(_nameless(literal, base) for literal in rule.literals))
            if key not in seen:
                seen.add(key)
                yield rule
                break


def _nameless(literal: Literal, base: Rule) -> str:
    """The literal with the same name for all variables that the base does not have."""
    kept = [term if term in base.variables else "new" for term in literal.atom.arguments]
    return f"{literal.atom.predicate}({', '.join(map(str, kept))})"


def _grown(base: Rule, places: Places, extra: int, source: random.Random) -> Rule:
    """The rule with `extra` added literals, each about a variable that it has by then."""
    fresh = (f"V{number}" for number in count(1))
    variables = list(base.searched)
    premise = list(base.premise)
    for _ in range(extra):
        linked = source.choice(_open(variables, places))
        signature, position = source.choice(places[type_key(linked.data_type)])
        terms = [
            linked if index == position else Variable(next(fresh), data_type)
            for index, data_type in enumerate(signature.argument_types)
        ]
        premise.append(Literal(Atom(signature.name, tuple(terms))))
        variables += (term for term in terms if term is not linked)
    return replace(base, premise=tuple(premise), generic_by=GenericBy.ATTRIBUTE)


def _open(variables: Iterable[Variable], places: Places) -> list[Variable]:
    """The variables for which a literal can be added."""
    return [variable for variable in variables if type_key(variable.data_type) in places]


def _turned(rule: Rule, library: Library) -> Rule:
    """The rule with the opposite conclusion."""
    atom = rule.conclusion.atom
    opposite = library.opposite_of(atom.predicate) or atom.predicate
    return replace(rule, conclusion=Literal(Atom(opposite, atom.arguments)))


def _disguised(rule: Rule, source: random.Random) -> Rule:
    """The same rule with renamed variables and a shuffled premise."""
    shuffled = source.sample(rule.variables, k=len(rule.variables))
    names = {variable.name: f"W{number}" for number, variable in enumerate(shuffled)}
    literals = source.sample(rule.literals, k=len(rule.literals))
    return replace(
        rule,
        premise=tuple(Literal(_renamed(literal.atom, names)) for literal in literals),
        conclusion=Literal(_renamed(rule.conclusion.atom, names)),
        generic=tuple(names[name] for name in rule.generic),
    )


def _renamed(atom: Atom, names: Mapping[str, str]) -> Atom:
    terms = (term if isinstance(term, Constant) else replace(term, name=names[term.name]) for term in atom.arguments)
    return Atom(atom.predicate, tuple(terms))
