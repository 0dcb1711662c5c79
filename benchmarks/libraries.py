"""Large rule libraries out of the shipped vocabulary: as many rules as asked for, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from benchmarks.common import LIBRARY, SHIPPED
from grammar.parser import load_library
from grammar.printing import format_library
from grammar.rules import GenericBy, Library, PredicateKind, PredicateSignature, Rule, type_key
from grammar.terms import Atom, Constant, Literal, Variable

COPIES = 10
"""How often each rule of a library with many duplicates stands in it."""

LONG = 30
"""Literals that a long premise has more than a shipped one."""

TRIES = 200
"""Premises drawn in vain before they grow by one literal more."""

Places = Mapping[str, Sequence[tuple[PredicateSignature, int]]]
"""By type: the predicates with an argument of it, and which argument that is."""


@dataclass(frozen=True)
class Recipe:
    """How rules of one shape are drawn: on top of which shipped rules, and of which predicates they say more."""

    bases: Sequence[Rule]
    places: Places
    extra: tuple[int, int]
    """Fewest and most literals added."""


def library_text(shape: str, rules: int, seed: int = 0) -> str:
    """A rule file of so many rules of a shape of `SHAPES`, with the declarations of the shipped ones."""
    shipped = load_library([SHIPPED, LIBRARY])
    drawn = SHAPES[shape](shipped, rules, random.Random(seed))  # noqa: S311 - no secret
    named = tuple(rule.named(f"generated_{number}") for number, rule in enumerate(drawn, start=1))
    return format_library(replace(shipped, rules=named, signatures=tuple(dict.fromkeys(shipped.signatures))))


def _mixed(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """One to three literals more than a shipped rule."""
    return _distinct(Recipe(_bases(shipped), _places(_asked(shipped)), (1, 3)), rules, source)


def _one_conclusion(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """All on top of one shipped rule, of whose variables most can be said, so that all conclude the same."""
    places = _places(_asked(shipped))

    def choices(rule: Rule) -> int:
        return sum(len(places[type_key(variable.data_type)]) for variable in _open(rule.searched, places))

    base = max(_bases(shipped), key=choices)
    return _distinct(Recipe([base], places, (2, 4)), rules, source)


def _duplicates(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Each ten times, with other names of variables and the premise in another order."""
    distinct = list(_mixed(shipped, -(-rules // COPIES), source))
    return [_disguised(distinct[number % len(distinct)], source) for number in range(rules)]


def _long(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Thirty literals more than a shipped rule."""
    return _distinct(Recipe(_bases(shipped), _places(_asked(shipped)), (LONG, LONG)), rules, source)


def _cycles(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Premises that speak of what other rules conclude: predicates rest on each other in circles."""
    concluded = [one for one in shipped.signatures if one.indicator in shipped.derived]
    return _distinct(Recipe(_bases(shipped), _places(concluded), (1, 3)), rules, source)


def _contrary(shipped: Library, rules: int, source: random.Random) -> Iterable[Rule]:
    """Every second one concludes the opposite of another's conclusion."""
    asked = _places(_asked(shipped))
    able = [one for one in _bases(shipped) if shipped.opposite_of(one.conclusion.atom.predicate)]
    able = [one for one in able if _open(one.searched, asked)]
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
    """The shipped rules without arithmetic and negation, which a literal more could make contradict each other."""
    return [rule for rule in shipped.rules if not rule.comparisons and not any(one.negated for one in rule.literals)]


def _asked(shipped: Library) -> list[PredicateSignature]:
    kinds = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
    return [one for one in shipped.signatures if one.kind in kinds and len(one.argument_types) > 1]


def _places(signatures: Iterable[PredicateSignature]) -> Places:
    places: dict[str, list[tuple[PredicateSignature, int]]] = {}
    for signature in signatures:
        for position, data_type in enumerate(signature.argument_types):
            places.setdefault(type_key(data_type), []).append((signature, position))
    return places


def _distinct(recipe: Recipe, rules: int, source: random.Random) -> Iterator[Rule]:
    """Rules on top of each base in turn, none twice, nor in another order or under other names."""
    bases = [rule for rule in recipe.bases if _open(rule.searched, recipe.places)]
    seen: set[tuple[str, ...]] = set()
    longer = 0
    for number in range(rules):
        for tried in count():
            base = bases[(number + tried // TRIES) % len(bases)]
            longer += tried % TRIES == TRIES - 1
            rule = _grown(base, recipe.places, source.randint(*recipe.extra) + longer, source)
            key = (rule.conclusion.atom.predicate, *sorted(_nameless(one, base) for one in rule.literals))
            if key not in seen:
                seen.add(key)
                yield rule
                break


def _nameless(literal: Literal, base: Rule) -> str:
    """The literal with the variables that the base does not have all alike."""
    kept = [term if term in base.variables else "new" for term in literal.atom.arguments]
    return f"{literal.atom.predicate}({', '.join(map(str, kept))})"


def _grown(base: Rule, places: Places, extra: int, source: random.Random) -> Rule:
    """The rule with so many literals more, each about a variable that it has by then."""
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
    """Those of which more can be said."""
    return [variable for variable in variables if type_key(variable.data_type) in places]


def _turned(rule: Rule, library: Library) -> Rule:
    """The rule with the contrary conclusion."""
    atom = rule.conclusion.atom
    opposite = library.opposite_of(atom.predicate) or atom.predicate
    return replace(rule, conclusion=Literal(Atom(opposite, atom.arguments)))


def _disguised(rule: Rule, source: random.Random) -> Rule:
    """The same rule in other words: variables called otherwise, the premise shuffled."""
    shuffled = source.sample(rule.variables, k=len(rule.variables))
    names = {variable.name: f"W{number}" for number, variable in enumerate(shuffled)}
    return replace(
        rule,
        premise=tuple(Literal(_renamed(one.atom, names)) for one in source.sample(rule.literals, k=len(rule.literals))),
        conclusion=Literal(_renamed(rule.conclusion.atom, names)),
        generic=tuple(names[name] for name in rule.generic),
    )


def _renamed(atom: Atom, names: Mapping[str, str]) -> Atom:
    terms = (term if isinstance(term, Constant) else replace(term, name=names[term.name]) for term in atom.arguments)
    return Atom(atom.predicate, tuple(terms))
