"""Shorthand in statements, written out as facts, rules and aggregates: ranges, pools, `true`, collections, expressions.

`p(1..3; 7)` states four facts, and `X = 1..N` gives X each of these values. `N = count : { p(X) }` is an aggregate, as
is `#count{ X : p(X) }` of clingo: its groups are the variables that the rule has elsewhere, too, and of no rows count
and sum are 0. A premise with "or" stands for the conjunctions of which one must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, count, product

from hapax.grammar.parsing.syntax import (
    ALL,
    ANY_OF,
    CELLS,
    IN,
    LIST,
    NONE_OF,
    NOT,
    RANGE,
    RawAtom,
    RawClause,
    RawDeclaration,
    RawHead,
    RawNamed,
    RawNode,
    RawPremise,
    RawTerm,
    RawValue,
    RawWords,
    Spot,
    all_parts,
    is_anything,
    names,
    parts_of,
    unnamed,
)
from hapax.grammar.terms import TRUTHS, Literal
from hapax.grammar.writing.texts import is_variable_word, number_value

MOST_NUMBERS = 10_000
"""Numbers of a range whose ends are written, and facts of one statement."""

MOST_BRANCHES = 100
"""Rules that one rule with "or" may stand for."""

_FUNCTIONS = {"atom_length": "length", "upcase_atom": "upper", "downcase_atom": "lower", "atom_concat": "concat"}
"""Predicates of Prolog whose last argument is the value of a function of the others."""

BUILT_IN = ("between", "member", "aggregate_all", "forall", *_FUNCTIONS)
"""Predicates of Prolog that rules write otherwise, unless a program has its own."""

_OFTEN = ("count", "sum")
"""Functions with the value 0 of no rows."""


class ShorthandWriter:
    """Writes the statements of one file out; collects those that they stand for, each once.

    `report`: takes the label of a hint, the place and the words of a fault.
    """

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.defined: set[str] = set()
        self.added: dict[str, RawNode] = {}

    def statement(self, line: RawNode) -> Iterator[RawNode]:
        """The statements without shorthand that a statement stands for; those of its parts go to `added`."""
        match line:
            case RawClause((head,), (), ()):
                for atom in self._stated(head.atom, line.at):
                    yield replace(line, heads=(replace(head, atom=atom),))
            case RawClause():
                yield self._clause(line)
            case RawDeclaration(definition=RawTerm(sign, (result, RawAtom(rows=tuple(rows)) as counted))) if (
                line.keyword == "aggregate"
            ):
                whole = replace(counted, rows=_Premises(self, line).written(rows))
                yield replace(line, definition=RawTerm(sign, (result, whole)))
            case _:
                if misplaced := next(filter(_is_shorthand, all_parts(line)), None):
                    self.report("misplaced shorthand", misplaced.at)
                yield line

    def add(self, statement: RawNode) -> None:
        self.added.setdefault(repr(statement), statement)

    def _stated(self, atom: RawAtom, at: Spot) -> Iterator[RawAtom]:
        """The facts that an atom with pools and ranges stands for."""
        for arguments in atom.pools or (atom.arguments,):
            ways = [list(self._values(argument)) for argument in arguments]
            for number, row in enumerate(product(*ways)):
                if number == MOST_NUMBERS:
                    self.report("range too long", at, limit=str(MOST_NUMBERS))
                    return
                yield replace(atom, arguments=row, pools=())

    def _values(self, argument: RawNode) -> Iterable[RawNode]:
        if not isinstance(argument, RawTerm) or argument.sign != RANGE:
            return (argument,)
        numbers = self.numbers(argument)
        if numbers is None:
            self.report("range of variables", argument.at)
        return (RawValue(str(number), at=argument.at) for number in numbers or ())

    def numbers(self, numbers: RawTerm) -> range | None:
        """The numbers of a range whose ends are written; None of another one."""
        low, high = (number_value(end.source) if _is_number(end) else None for end in numbers.parts)  # type: ignore[attr-defined]
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        found = range(low, high + 1)
        if len(found) > MOST_NUMBERS:
            self.report("range too long", numbers.at, limit=str(MOST_NUMBERS))
        return found[:MOST_NUMBERS]

    def _clause(self, line: RawClause) -> RawClause:
        part = _Premises(self, line)
        heads, equations = [], []
        for head in line.heads:
            atom, own = part.plain(head.atom)
            heads.append(replace(head, atom=atom))
            equations += own
        premise = part.written((*line.premise, *equations))
        if line.is_choice:
            premise = tuple(map(self._once, premise))
        exceptions = tuple(part.written(items, line.premise) for items in line.exceptions)
        is_rule = premise or exceptions or line.is_choice
        keyword = line.keyword or ("" if is_rule else "fact")
        return replace(line, heads=tuple(heads), premise=premise, exceptions=exceptions, keyword=keyword)

    def _once(self, item: RawNode) -> RawNode:
        """An item of a choice, with a predicate in the place of an *or*, so that the choice is made once."""
        try:
            ways = branches((item,))
        except ValueError:
            return item  # which is reported with the others
        if len(ways) == 1:
            return item
        shared = set.intersection(*(set(names(*way)) for way in ways))
        words = tuple(RawWords((name,), at=item.at) for name in sorted(shared))
        atom = RawAtom(_named("or", repr(item)), words, at=item.at)
        self.add(RawClause((RawHead(atom),), (item,), at=item.at))
        return atom


class _Premises:
    """The premises of one statement, whose variables are those that are taken, unless other `nodes` have them."""

    def __init__(self, writer: ShorthandWriter, line: RawNode, *nodes: RawNode) -> None:
        self._writer, self._line = writer, line
        taken = set(names(*nodes or (line,)))
        self._names = (name for number in count(1) if (name := f"V{number}") not in taken)

    def written(self, premise: RawPremise, outer: RawPremise = ()) -> RawPremise:
        """The premise without shorthand. `outer`: items around it."""
        items: list[RawNode] = []
        for item in premise:
            items += self._item(item, (*outer, *(part for part in premise if part is not item)))
        return tuple(items)

    def plain(self, atom: RawAtom) -> tuple[RawAtom, list[RawNode]]:
        """The atom with a variable in place of each range and calculation, and the equations of these."""
        if atom.pools:
            self._writer.report("misplaced shorthand", atom.at)
        arguments: list[RawNode] = []
        equations: list[RawNode] = []
        for argument in atom.arguments:
            value = unnamed(argument)
            if (isinstance(value, RawTerm) and value.sign not in (LIST, NOT)) or _is_collection(value):
                variable = self._variable(value.at)
                equations.append(RawTerm("=", (variable, value), at=value.at))
                value = variable
            arguments.append(replace(argument, argument=value) if isinstance(argument, RawNamed) else value)
        return replace(atom, arguments=tuple(arguments), pools=()), equations

    def _variable(self, at: Spot) -> RawWords:
        return RawWords((next(self._names),), at=at)

    def _item(self, item: RawNode, others: RawPremise) -> Sequence[RawNode]:
        match item:
            case RawAtom() as atom:
                return self._literal(item, atom, others)
            case RawTerm(sign, (RawAtom() as atom,)) if sign == NOT:
                return self._literal(item, atom, others)
            case RawTerm(sign, ways) if sign == ANY_OF:
                written = tuple(RawTerm(ALL, self.written(tuple(parts_of(way)), others), at=way.at) for way in ways)
                # Without items a branch holds, and so does the whole.
                return (replace(item, parts=written),) if all(way.parts for way in written) else ()
            case RawTerm(sign, premise) if sign == NONE_OF:
                return (_none(self.written(premise, others), item.at),)
            case RawTerm(sign, (left, RawTerm(inner) as numbers)) if inner == RANGE:
                if sign != "=":
                    self._writer.report("range compared", item.at)
                return self._range(left, numbers, others, item.at)
            case RawTerm(sign, (left, RawTerm(_, values))) if sign == IN:
                # A predicate whose facts are the values, or an equation with each expression.
                if all(isinstance(value, RawWords | RawValue) for value in values) and not any(names(*values)):
                    return self._from_facts(left, repr(values), values, "_", item.at)
                ways = tuple(RawTerm(ALL, (RawTerm("=", (left, value), at=item.at),)) for value in values)
                return (RawTerm(ANY_OF, ways, at=item.at),)
            case RawTerm(_, sides):
                added: list[RawNode] = []
                plain = tuple(self._expression(side, item, others, added) for side in sides)
                return (*added, replace(item, parts=plain))
        return (item,)

    def _literal(self, item: RawNode, atom: RawAtom, others: RawPremise) -> Sequence[RawNode]:
        """An atom or its negation, which the item is."""
        is_denied, name = item is not atom, str(atom.name)
        if name in TRUTHS and not atom.arguments:
            return () if TRUTHS[name] is not is_denied else (_never(item.at),)
        meant = self._built_in(atom)
        if meant is not None:
            whole = self.written((meant,), others)
            return (_none(whole, item.at),) if is_denied else whole
        plain, equations = self.plain(atom)
        if not is_denied:
            return (plain, *self.written(tuple(equations), (*others, plain)))
        if equations:
            return (_none(self.written((plain, *equations), others), item.at),)
        return (RawTerm(NOT, (plain,), at=item.at),)

    def _built_in(self, atom: RawAtom) -> RawNode | None:
        """The item that a predicate of Prolog stands for; None for another one."""
        name, at = str(atom.name), atom.at
        if name in self._writer.defined:
            return None
        match name, tuple(map(unnamed, atom.arguments)):
            case "between", (low, high, target):
                return RawTerm("=", (target, RawTerm(RANGE, (low, high), at=at)), at=at)
            case "member", (target, RawTerm(sign) as values) if sign == LIST:
                return RawTerm(IN, (target, values), at=at)
            case str(), (*texts, value) if name in _FUNCTIONS:
                called = RawAtom(RawWords((_FUNCTIONS[name],), at=at), tuple(texts), at=at)
                return RawTerm("=", (value, called), at=at)
            case "forall", (RawAtom() as each, RawAtom() as needed):
                return RawTerm(NONE_OF, (each, RawTerm(NOT, (needed,), at=at)), at=at)
            case "aggregate_all", (RawAtom() | RawWords() as function, RawAtom() as goal, result):
                counted = function.arguments if isinstance(function, RawAtom) else ()
                word = function.name if isinstance(function, RawAtom) else function
                if str(word) in ("count", "sum", "min", "max"):
                    return RawTerm("=", (result, RawAtom(word, counted, rows=(goal,), at=at)), at=at)
        return None

    def _from_facts(
        self, left: RawNode, content: str, values: Iterable[RawNode], data_type: str, at: Spot
    ) -> Sequence[RawNode]:
        """The atom of a predicate of one argument that has these values, for the left side of a comparison."""
        name = _named("from", content)
        for value in values:
            self._writer.add(RawClause((RawHead(RawAtom(name, (value,), at=at)),), keyword="fact", at=at))
        # Without facts the predicate needs a declaration.
        self._writer.add(RawDeclaration("given", RawAtom(name, (RawWords((data_type,), at=at),), at=at), at=at))
        target, equations = self._argument(left, at)
        return (RawAtom(name, (target,), at=at), *equations)

    def _argument(self, side: RawNode, at: Spot) -> tuple[RawNode, list[RawNode]]:
        """A side of a comparison as an argument of an atom, with the equation of a calculation."""
        if not isinstance(side, RawTerm | RawAtom):
            return side, []
        target = self._variable(at)
        return target, [RawTerm("=", (target, side), at=at)]

    def _range(self, left: RawNode, numbers: RawTerm, others: RawPremise, at: Spot) -> Sequence[RawNode]:
        """The atoms of a predicate of a range's numbers: facts if its ends are written, else concluded by rules."""
        written = self._writer.numbers(numbers)
        if written is not None:
            values = (RawValue(str(number), at=at) for number in written)
            return self._from_facts(left, repr(numbers), values, "Number", at)
        target, equations = self._argument(left, at)
        return (*self._counting(numbers, target, others), *equations)

    def _counting(self, numbers: RawTerm, target: RawNode, others: RawPremise) -> Sequence[RawNode]:
        """The atom of a predicate that counts from one end to the other, for each pair that the rest of a rule has."""
        at, hidden = numbers.at, set(names(target))
        low, high = self._variable(at), self._variable(at)
        ends = [RawTerm("=", pair, at=at) for pair in zip((low, high), numbers.parts, strict=True)]
        seeds = [item for item in others if hidden.isdisjoint(names(item)) and _gives_values(item)]
        name = _named("from", repr((seeds, numbers)))

        def rule(premise: Sequence[RawNode], *arguments: RawNode) -> None:
            self._writer.add(RawClause((RawHead(RawAtom(name, arguments, at=at)),), tuple(premise), at=at))

        begins = (*seeds, *ends, RawTerm("=<", (low, high), at=at))
        rule(_Premises(self._writer, self._line, *begins).written(begins), low, high, low)
        first, last, number, following = (RawWords((word,), at=at) for word in ("L", "H", "N", "M"))
        typed = [replace(words, words=("Number", *words.words)) for words in (first, last, number, following)]
        next_number = RawTerm("+", (number, RawValue("1", at=at)), at=at)
        step = [
            RawAtom(name, tuple(typed[:3]), at=at),
            RawTerm("<", (number, last), at=at),
            RawTerm("=", (typed[3], next_number), at=at),
        ]
        rule(step, typed[0], typed[1], typed[3])
        return (*ends, RawAtom(name, (low, high, target), at=at))

    # Collections

    def _expression(self, expression: RawNode, item: RawNode, others: RawPremise, added: list[RawNode]) -> RawNode:
        """The expression with a variable in place of each collection; `added`: the items that give these values."""
        match expression:
            case RawAtom(rows=tuple(rows)):
                result = self._variable(expression.at)
                added += self._collected(expression, rows, result, (item, *others))
                return result
            case RawTerm(_, parts):
                return replace(expression, parts=tuple(self._expression(part, item, others, added) for part in parts))
            case RawAtom(_, arguments):
                plain = tuple(self._expression(part, item, others, added) for part in arguments)
                return replace(expression, arguments=plain)
        return expression

    def _collected(
        self, collected: RawAtom, rows: RawPremise, result: RawWords, others: RawPremise
    ) -> Sequence[RawNode]:
        at, inner = collected.at, self.written(rows)
        outside = set(names(*_without(others, collected), *_conclusions(self._line)))
        function = {"mean": "avg"}.get(str(collected.name), str(collected.name))
        if not collected.is_set:
            inner = tuple(self._each(item) for item in inner)
        found = dict.fromkeys(names(*inner))
        group = [name for name in found if name in outside]
        counted: list[RawWords] = []
        extra: list[RawNode] = []
        for expression in collected.arguments:
            if isinstance(expression, RawWords) and is_variable_word(expression.words[-1]):
                counted.append(expression)
            else:
                counted.append(self._variable(at))
                extra.append(RawTerm("=", (counted[-1], expression), at=at))
        if not collected.is_set and function in ("count", "sum", "avg"):
            named = {words.words[-1] for words in counted}
            counted += [RawWords((name,), at=at) for name in found if name not in outside | named]
        if not counted:
            counted.append(self._variable(at))
            extra.append(RawTerm("=", (counted[-1], RawValue("1", at=at)), at=at))
        keys: tuple[RawNode, ...] = tuple(RawWords((name,), at=at) for name in group)
        atom = RawAtom(_named(function, repr((collected, group))), (*keys, result), at=at)
        bound = set(names(*filter(_is_positive, inner)))
        around = tuple(item for item in others if not any(part is collected for part in all_parts(item)))
        whole = (*self.written(tuple(_sources(set(group) - bound, around))), *inner, *extra)
        value = RawAtom(RawWords((function,), at=at), tuple(counted), rows=whole, is_set=True, at=at)
        self._writer.add(RawDeclaration("aggregate", atom, definition=RawTerm("=", (result, value)), at=at))
        if function not in _OFTEN:
            return (atom,)
        # It has rows: of a group, or at all.
        having = RawAtom(_named("rows", repr((collected, group))), keys or (RawValue("1", at=at),), at=at)
        self._writer.add(RawClause((RawHead(having),), whole, at=at))
        nothing = (RawTerm(NOT, (having,), at=at), RawTerm("=", (result, RawValue("0", at=at)), at=at))
        return (RawTerm(ANY_OF, (RawTerm(ALL, (atom,)), RawTerm(ALL, nothing)), at=at),)

    def _each(self, item: RawNode) -> RawNode:
        """An item with a variable in place of each `_`, so that what it stands for is counted, too."""
        if not isinstance(item, RawAtom):
            return item
        arguments = (self._variable(part.at) if is_anything(part) else part for part in item.arguments)
        return replace(item, arguments=tuple(arguments))


def _is_number(node: RawNode) -> bool:
    return isinstance(node, RawValue) and not (node.is_text or node.unit)


def _is_collection(node: RawNode) -> bool:
    return isinstance(node, RawAtom) and node.rows is not None


def _is_shorthand(node: RawNode) -> bool:
    """True for a range, a pool and a collection."""
    is_pool = isinstance(node, RawAtom) and bool(node.pools)
    return is_pool or (isinstance(node, RawTerm) and node.sign == RANGE) or _is_collection(node)


def _none(premise: RawPremise, at: Spot) -> RawTerm:
    """The negation of a premise; of one without items, which always holds, what never does."""
    return RawTerm(NONE_OF, premise, at=at) if premise else _never(at)


def _never(at: Spot) -> RawTerm:
    return RawTerm("=", (RawValue("0", at=at), RawValue("1", at=at)), at=at)


def _named(word: str, content: str) -> RawWords:
    """The name of a predicate that stands for a shorthand: the same one wherever its content is the same."""
    return RawWords((f"{word}_{sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}",))


def is_empty_collection(literal: Literal) -> bool:
    """True for the item of a rule that stands for a count or sum of no rows."""
    return literal.negated and re.fullmatch(r"rows_[0-9a-f]{8}", literal.atom.predicate) is not None


def _gives_values(item: RawNode) -> bool:
    return _is_positive(item) or (isinstance(item, RawTerm) and item.sign == "=")


def _is_positive(item: RawNode) -> bool:
    return isinstance(item, RawAtom)


def _sources(wanted: set[str], items: Sequence[RawNode]) -> list[RawNode]:
    """The items that give variables their values, and those that give values to the variables of these."""
    found: list[RawNode] = []
    waiting = [*wanted]
    while waiting:
        name = waiting.pop()
        giving = [item for item in items if _gives_values(item) and name in names(item)]
        chosen = next(iter(sorted(giving, key=_is_positive, reverse=True)), None)
        if chosen is not None and chosen not in found:
            found.append(chosen)
            waiting += names(chosen) if not _is_positive(chosen) else ()
    return found


def _conclusions(line: RawNode) -> tuple[RawNode, ...]:
    """The parts of a statement beside its premise."""
    if isinstance(line, RawClause):
        return (*line.heads, *chain.from_iterable(line.exceptions))
    if isinstance(line, RawDeclaration) and line.definition is not None:
        rows = line.definition.parts[1]
        return (line.atom, *(rows.arguments if isinstance(rows, RawAtom) else ()))
    return ()


def _without(nodes: Sequence[RawNode], left_out: RawNode) -> Iterator[RawNode]:
    """The parts of nodes in which a part is not."""
    for node in nodes:
        inside = list(parts_of(node))
        if node is not left_out:
            yield from _without(inside, left_out) if inside else (node,)


# Alternatives


def branches(premise: RawPremise) -> list[RawPremise]:
    """The conjunctions of which one must hold, MOST_BRANCHES and one at the most.

    They have no alternatives, and no comparison of several columns at once; their negations are of such conjunctions.
    Raises ValueError for a comparison with more columns on one side.
    """
    found: list[RawPremise] = [()]
    for item in premise:
        pairs = product(found, _ways(item))
        found = [(*before, *way) for before, way in pairs][: MOST_BRANCHES + 1]
    return found


def _ways(item: RawNode) -> list[RawPremise]:
    """The conjunctions for one item."""
    match item:
        case RawTerm(sign, alternatives) if sign == ANY_OF:
            return [way for alternative in alternatives for way in branches(tuple(parts_of(alternative)))]
        case RawTerm(sign, premise) if sign == NONE_OF:
            # None of the conjunctions holds.
            return [tuple(replace(item, parts=way) for way in branches(premise))]
        case RawTerm(sign, (RawAtom(arguments=arguments) as atom,)) if sign == NOT:
            # A column that is not named stands for anything, too.
            if any(is_anything(part) or isinstance(part, RawNamed) for part in arguments):
                return [(RawTerm(NONE_OF, (atom,), at=item.at),)]
        case RawTerm(sign, (RawTerm(inner, left), compared)) if inner == CELLS:
            right = compared.parts if isinstance(compared, RawTerm) and compared.sign == CELLS else (compared,)
            return _by_columns(sign, [RawTerm(sign, pair, at=item.at) for pair in zip(left, right, strict=True)])
    return [(item,)]


def _by_columns(sign: str, pairs: Sequence[RawTerm]) -> list[RawPremise]:
    """`(A, B) < (C, D)` by columns: A < C, or A = C and B < D."""
    if sign == "=":
        return [tuple(pairs)]
    ways: list[RawPremise] = []
    for place, pair in enumerate(pairs):
        equal = [replace(before, sign="=") for before in pairs[:place]] if sign != "\\=" else []
        strict = pair if sign == "\\=" or place == len(pairs) - 1 else replace(pair, sign=sign.strip("="))
        ways.append((*equal, strict))
    return ways


def plain_items(premise: Iterable[RawNode]) -> Iterator[RawNode]:
    """The atoms, their negations and the comparisons of a conjunction, in order, also those inside of negations."""
    for item in premise:
        if isinstance(item, RawTerm) and item.sign == NONE_OF:
            yield from plain_items(item.parts)
        else:
            yield item
