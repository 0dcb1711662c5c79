"""Shorthand in statements, written out as facts, rules and aggregates: ranges, pools, `true`, collections, expressions.

`p(1..3; 7)` states four facts, and `X = 1..N` gives X each of these values. `N = count : { p(X) }` is an aggregate, as
is `#count{ X : p(X) }` of clingo: its groups are the variables that the rule has elsewhere, too, and of no rows count
and sum are 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from hashlib import sha256
from itertools import chain, count, product
from typing import TypeGuard

from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.branches import branches
from hapax.grammar.terms import TRUTHS, Literal
from hapax.grammar.writing.texts import is_variable_word, number_value

MOST_NUMBERS = 10_000
"""Numbers of a range whose ends are written, and facts of one statement."""

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
        self.added: dict[str, syntax.RawNode] = {}

    def statement(self, line: syntax.RawNode) -> Iterator[syntax.RawNode]:
        """The statements without shorthand that a statement stands for; those of its parts go to `added`."""
        match line:
            case syntax.RawFact():
                yield from self._facts(line)
            case syntax.RawRule():
                yield self._rule(line)
            case syntax.RawChoice():
                yield from self._choice(line)
            case syntax.RawNever() | syntax.RawAggregate():
                part = _Premises(self, line, [line])
                yield replace(line, premise=part.written(line.premise))
            case _:
                if misplaced := next(filter(_is_shorthand, _all_parts(line)), None):
                    self.report("misplaced shorthand", misplaced.at)
                yield line

    def add(self, statement: syntax.RawNode) -> None:
        self.added.setdefault(repr(statement), statement)

    def _facts(self, line: syntax.RawFact) -> Iterator[syntax.RawFact]:
        for arguments in line.atom.pools or (line.atom.arguments,):
            ways = [list(self._values(argument)) for argument in arguments]
            for number, row in enumerate(product(*ways)):
                if number == MOST_NUMBERS:
                    self.report("range too long", line.at, limit=str(MOST_NUMBERS))
                    return
                yield replace(line, atom=replace(line.atom, arguments=row, pools=()))

    def _values(self, argument: syntax.RawArgument) -> Iterator[syntax.RawArgument]:
        if not _is_range(argument):
            yield argument
            return
        numbers = self.numbers(argument)
        if numbers is None:
            self.report("range of variables", argument.at)
        yield from (syntax.RawNumber(str(number), at=argument.at) for number in numbers or ())

    def numbers(self, numbers: syntax.RawOperation) -> range | None:
        """The numbers of a range whose ends are written; None of another one."""
        ends = [_whole(numbers.left), _whole(numbers.right)]
        if ends[0] is None or ends[1] is None:
            return None
        found = range(ends[0], ends[1] + 1)
        if len(found) > MOST_NUMBERS:
            self.report("range too long", numbers.at, limit=str(MOST_NUMBERS))
        return found[:MOST_NUMBERS]

    def _rule(self, line: syntax.RawRule) -> syntax.RawNode:
        part = _Premises(self, line, [line])
        conclusion, equations = part.plain(line.conclusion)
        premise = part.written((*line.premise, *equations))
        exceptions = tuple(part.written(items, line.premise) for items in line.exceptions)
        if not premise and not exceptions:
            return syntax.RawFact("fact", conclusion, at=line.at)
        return replace(line, premise=premise, conclusion=conclusion, exceptions=exceptions)

    def _choice(self, line: syntax.RawChoice) -> Iterator[syntax.RawChoice]:
        """A choice, with a predicate in the place of an *or*, so that it is made once; of a pool or range, each one."""
        if len(line.heads) == 1 and not line.premise:
            (head,) = line.heads
            for fact in self._facts(syntax.RawFact("fact", head.atom, at=line.at)):
                yield replace(line, heads=(replace(head, atom=fact.atom),))
            return
        part = _Premises(self, line, [line])
        heads, equations = [], []
        for head in line.heads:
            atom, own = part.plain(head.atom)
            heads.append(replace(head, atom=atom))
            equations += own
        items = []
        for item in part.written((*line.premise, *equations)):
            ways = branches((item,))
            if len(ways) > 1:
                shared = set.intersection(*(set(chain.from_iterable(map(_names, way))) for way in ways))
                words = tuple(syntax.RawWords((name,), at=item.at) for name in sorted(shared))
                atom = syntax.RawAtom(_named("or", repr(item)), words, at=item.at)
                self.add(syntax.RawRule((item,), atom, (), at=item.at))
                item = syntax.RawLiteral(atom, False, at=item.at)  # noqa: PLW2901
            items.append(item)
        exceptions = tuple(part.written(items, line.premise) for items in line.exceptions)
        yield replace(line, heads=tuple(heads), premise=tuple(items), exceptions=exceptions)


class _Premises:
    """The premises of one statement. `nodes`: all parts of it, whose variables are those that are taken."""

    def __init__(self, writer: ShorthandWriter, line: syntax.RawNode, nodes: Sequence[syntax.RawNode]) -> None:
        self._writer, self._line = writer, line
        taken = set(chain.from_iterable(map(_names, nodes)))
        self._names = (name for number in count(1) if (name := f"V{number}") not in taken)

    def written(self, premise: syntax.RawPremise, outer: syntax.RawPremise = ()) -> syntax.RawPremise:
        """The premise without shorthand. `outer`: items around it."""
        items: list[syntax.RawItem] = []
        for item in premise:
            others = (*outer, *(part for part in premise if part is not item))
            items += self._item(item, others)
        return tuple(items)

    def plain(self, atom: syntax.RawAtom) -> tuple[syntax.RawAtom, list[syntax.RawComparison]]:
        """The atom with a variable in place of each range and calculation, and the equations of these."""
        if atom.pools:
            self._writer.report("misplaced shorthand", atom.at)
        arguments: list[syntax.RawArgument] = []
        equations = []
        for argument in atom.arguments:
            value = argument.argument if isinstance(argument, syntax.RawNamed) else argument
            if isinstance(value, syntax.RawOperation | syntax.RawCollected):
                variable = self._variable(value.at)
                equations.append(syntax.RawComparison(variable, "=", value, at=value.at))
                value = variable
            arguments.append(replace(argument, argument=value) if isinstance(argument, syntax.RawNamed) else value)
        return replace(atom, arguments=tuple(arguments), pools=()), equations

    def _variable(self, at: syntax.Spot) -> syntax.RawWords:
        return syntax.RawWords((next(self._names),), at=at)

    def _item(self, item: syntax.RawItem, others: syntax.RawPremise) -> Sequence[syntax.RawItem]:
        match item:
            case syntax.RawLiteral(atom, negated) if str(atom.name) in TRUTHS and not atom.arguments:
                return () if TRUTHS[str(atom.name)] is not negated else (_never(item.at),)
            case syntax.RawLiteral(atom, negated) if (meant := self._built_in(atom)) is not None:
                whole = self.written((meant,), others)
                return (syntax.RawNegation(whole, at=item.at),) if negated else whole
            case syntax.RawLiteral(atom, negated):
                plain, equations = self.plain(atom)
                literal = replace(item, atom=plain)
                if negated and equations:
                    literal = replace(literal, negated=False)
                    return (syntax.RawNegation(self.written((literal, *equations), others), at=item.at),)
                return (literal, *self.written(tuple(equations), (*others, literal)))
            case syntax.RawAlternatives(branches):
                ways = tuple(self.written(branch, others) for branch in branches)
                # Without items a branch holds, and so does the whole.
                return (replace(item, branches=ways),) if all(ways) else ()
            case syntax.RawNegation(premise):
                inner = self.written(premise, others)
                return (replace(item, premise=inner),) if inner else (_never(item.at),)
            case syntax.RawComparison(right=syntax.RawOperation(operator=syntax.RANGE) as numbers):
                return self._range(item, numbers, others)
            case syntax.RawComparison(operator=syntax.IN, right=syntax.RawListed(items=values)):
                return self._among(item, values)
            case syntax.RawComparison():
                added: list[syntax.RawItem] = []
                sides = [self._expression(side, item, others, added) for side in (item.left, item.right)]
                return (*added, replace(item, left=sides[0], right=sides[1]))
            case _:
                return (item,)

    def _built_in(self, atom: syntax.RawAtom) -> syntax.RawItem | None:
        """The item that a predicate of Prolog stands for; None for another one."""
        name, at = str(atom.name), atom.at
        if name in self._writer.defined:
            return None
        match name, tuple(part.argument if isinstance(part, syntax.RawNamed) else part for part in atom.arguments):
            case "between", (low, high, target):
                return syntax.RawComparison(target, "=", syntax.RawOperation(low, syntax.RANGE, high, at=at), at=at)
            case "member", (target, syntax.RawListed() as values):
                return syntax.RawComparison(target, syntax.IN, values, at=at)
            case str(), (*texts, value) if name in _FUNCTIONS:
                called = syntax.RawAtom(syntax.RawWords((_FUNCTIONS[name],), at=at), tuple(texts), at=at)
                return syntax.RawComparison(value, "=", called, at=at)
            case "forall", (syntax.RawAtom() as each, syntax.RawAtom() as needed):
                literals = (syntax.RawLiteral(each, False, at=at), syntax.RawLiteral(needed, True, at=at))
                return syntax.RawNegation(literals, at=at)
            case "aggregate_all", (syntax.RawAtom() | syntax.RawWords() as function, syntax.RawAtom() as goal, result):
                counted = function.arguments if isinstance(function, syntax.RawAtom) else ()
                word = function.name if isinstance(function, syntax.RawAtom) else function
                if str(word) in ("count", "sum", "min", "max"):
                    rows = syntax.RawCollected(word, counted, premise=(syntax.RawLiteral(goal, False, at=at),), at=at)
                    return syntax.RawComparison(result, "=", rows, at=at)
        return None

    def _among(self, item: syntax.RawComparison, values: Sequence[syntax.RawExpression]) -> Sequence[syntax.RawItem]:
        """`X in (a, b)`: the atom of a predicate whose facts are the values, or an equation with each expression."""
        is_plain = all(isinstance(value, syntax.RawWords | syntax.RawText | syntax.RawNumber) for value in values)
        if is_plain and not any(chain.from_iterable(map(_names, values))):
            return self._stated(item, _named("from", repr(values)), values, syntax.RawWords(("_",), at=item.at))
        ways = tuple((syntax.RawComparison(item.left, "=", value, at=item.at),) for value in values)
        return (syntax.RawAlternatives(ways, at=item.at),)

    def _stated(
        self,
        item: syntax.RawComparison,
        name: syntax.RawWords,
        values: Iterable[syntax.RawExpression],
        data_type: syntax.RawWords,
    ) -> Sequence[syntax.RawItem]:
        """The atom of a predicate of one argument that has these values, for the left side of a comparison."""
        at = item.at
        for value in values:
            self._writer.add(syntax.RawFact("fact", syntax.RawAtom(name, (value,), at=at), at=at))
        # Without facts the predicate needs a declaration.
        self._writer.add(syntax.RawDeclaration("given", syntax.RawAtom(name, (data_type,), at=at), at=at))
        target, equations = self._plain_side(item)
        return (syntax.RawLiteral(syntax.RawAtom(name, (target,), at=at), False, at=at), *equations)

    def _plain_side(self, item: syntax.RawComparison) -> tuple[syntax.RawExpression, list[syntax.RawItem]]:
        """The left side of a comparison as an argument of an atom, with the equation of a calculation."""
        if not isinstance(item.left, syntax.RawOperation | syntax.RawAtom):
            return item.left, []
        target = self._variable(item.at)
        return target, [syntax.RawComparison(target, "=", item.left, at=item.at)]

    # Ranges

    def _range(
        self, item: syntax.RawComparison, numbers: syntax.RawOperation, others: syntax.RawPremise
    ) -> Sequence[syntax.RawItem]:
        """The atoms of a predicate of a range's numbers: facts if its ends are written, else concluded by rules."""
        if syntax.COMPARISONS.get(item.operator, item.operator) != "=":
            self._writer.report("range compared", item.at)
        written = self._writer.numbers(numbers)
        if written is None:
            target, equations = self._plain_side(item)
            return (*self._counting(numbers, target, others), *equations)
        values = (syntax.RawNumber(str(number), at=item.at) for number in written)
        return self._stated(item, _named("from", repr(numbers)), values, syntax.RawWords(("Number",), at=item.at))

    def _counting(
        self, numbers: syntax.RawOperation, target: syntax.RawArgument, others: syntax.RawPremise
    ) -> Sequence[syntax.RawItem]:
        """The atom of a predicate that counts from one end to the other, for each pair that the rest of a rule has."""
        at, hidden = numbers.at, set(_names(target))
        low, high = self._variable(at), self._variable(at)
        pairs = ((low, numbers.left), (high, numbers.right))
        ends = [syntax.RawComparison(variable, "=", value, at=at) for variable, value in pairs]
        seeds = [item for item in others if hidden.isdisjoint(_names(item)) and _gives_values(item)]
        name = _named("from", repr((seeds, numbers)))
        first, last, number, following = (syntax.RawWords(("Number", word), at=at) for word in ("L", "H", "N", "M"))

        def rule(premise: Sequence[syntax.RawItem], *arguments: syntax.RawArgument) -> None:
            head = syntax.RawAtom(name, arguments, at=at)
            self._writer.add(syntax.RawRule(tuple(premise), head, (), at=at))

        begins = [*seeds, *ends, syntax.RawComparison(low, "=<", high, at=at)]
        rule(_Premises(self._writer, self._line, begins).written(tuple(begins)), low, high, low)
        so_far = syntax.RawLiteral(syntax.RawAtom(name, (first, last, number), at=at), False, at=at)
        counted = syntax.RawOperation(_plain(number), "+", syntax.RawNumber("1", at=at), at=at)
        step: list[syntax.RawItem] = [
            so_far,
            syntax.RawComparison(_plain(number), "<", _plain(last), at=at),
            syntax.RawComparison(_plain(following), "=", counted, following, at=at),
        ]
        rule(step, first, last, following)
        return (*ends, syntax.RawLiteral(syntax.RawAtom(name, (low, high, target), at=at), False, at=at))

    # Collections

    def _expression(
        self,
        expression: syntax.RawExpression,
        item: syntax.RawItem,
        others: syntax.RawPremise,
        added: list[syntax.RawItem],
    ) -> syntax.RawExpression:
        """The expression with a variable in place of each collection; `added`: the items that give these values."""
        if isinstance(expression, syntax.RawCollected):
            result = self._variable(expression.at)
            added += self._collected(expression, result, (item, *others))
            return result
        if isinstance(expression, syntax.RawOperation):
            left = self._expression(expression.left, item, others, added)
            return replace(expression, left=left, right=self._expression(expression.right, item, others, added))
        if isinstance(expression, syntax.RawAtom):
            arguments = (self._expression(part, item, others, added) for part in expression.arguments)  # type: ignore[arg-type]
            return replace(expression, arguments=tuple(arguments))
        return expression

    def _collected(
        self, collected: syntax.RawCollected, result: syntax.RawWords, others: syntax.RawPremise
    ) -> Sequence[syntax.RawItem]:
        at, inner = collected.at, self.written(collected.premise)
        outside = set(chain.from_iterable(map(_names, _without(others, collected))))
        outside.update(*(_names(part) for part in _conclusions(self._line)))
        function = {"mean": "avg"}.get(str(collected.name), str(collected.name))
        if not collected.is_set:
            inner = tuple(self._each(item) for item in inner)
        group = [name for name in dict.fromkeys(chain.from_iterable(map(_names, inner))) if name in outside]
        own = [name for name in dict.fromkeys(chain.from_iterable(map(_names, inner))) if name not in outside]
        counted: list[syntax.RawWords] = []
        extra: list[syntax.RawItem] = []
        for expression in collected.arguments:
            if isinstance(expression, syntax.RawNamed):
                continue  # the grammar has none here
            if isinstance(expression, syntax.RawWords) and is_variable_word(expression.words[-1]):
                counted.append(expression)
            else:
                counted.append(self._variable(at))
                extra.append(syntax.RawComparison(counted[-1], "=", expression, at=at))
        if not collected.is_set and function in ("count", "sum", "avg"):
            named = {words.words[-1] for words in counted}
            counted += [syntax.RawWords((name,), at=at) for name in own if name not in named]
        if not counted:
            counted.append(self._variable(at))
            extra.append(syntax.RawComparison(counted[-1], "=", syntax.RawNumber("1", at=at), at=at))
        arguments: tuple[syntax.RawArgument, ...] = (*(syntax.RawWords((name,), at=at) for name in group), result)
        atom = syntax.RawAtom(_named(function, repr((collected, group))), arguments, at=at)
        bound = set(chain.from_iterable(map(_names, filter(_is_positive, inner))))
        around = tuple(item for item in others if not any(part is collected for part in _all_parts(item)))
        whole = (*self.written(tuple(_sources(set(group) - bound, around))), *inner, *extra)
        words = syntax.RawWords((function,), at=at)
        self._writer.add(
            syntax.RawAggregate("aggregate", atom, str(result), "=", words, tuple(counted), whole, None, at=at)
        )
        literal = syntax.RawLiteral(atom, False, at=at)
        if function not in _OFTEN:
            return (literal,)
        # It has rows: of a group, or at all.
        keys = arguments[:-1] or (syntax.RawNumber("1", at=at),)
        rows = syntax.RawAtom(_named("rows", repr((collected, group))), keys, at=at)
        self._writer.add(syntax.RawRule(whole, rows, (), at=at))
        nothing: syntax.RawPremise = (
            syntax.RawLiteral(rows, True, at=at),
            syntax.RawComparison(result, "=", syntax.RawNumber("0", at=at), at=at),
        )
        return (syntax.RawAlternatives(((literal,), nothing), at=at),)

    def _each(self, item: syntax.RawItem) -> syntax.RawItem:
        """An item with a variable in place of each `_`, so that what it stands for is counted, too."""
        if not isinstance(item, syntax.RawLiteral) or item.negated:
            return item
        arguments = (
            self._variable(part.at) if isinstance(part, syntax.RawWords) and part.words == ("_",) else part
            for part in item.atom.arguments
        )
        return replace(item, atom=replace(item.atom, arguments=tuple(arguments)))


def _is_range(argument: syntax.RawNode) -> TypeGuard[syntax.RawOperation]:
    return isinstance(argument, syntax.RawOperation) and argument.operator == syntax.RANGE


def _whole(expression: syntax.RawNode) -> int | None:
    number = number_value(expression.source) if isinstance(expression, syntax.RawNumber) else None
    return number if isinstance(number, int) else None


def _plain(words: syntax.RawWords) -> syntax.RawWords:
    return replace(words, words=words.words[-1:])


def _never(at: syntax.Spot) -> syntax.RawComparison:
    return syntax.RawComparison(syntax.RawNumber("0", at=at), "=", syntax.RawNumber("1", at=at), at=at)


def _named(word: str, content: str) -> syntax.RawWords:
    """The name of a predicate that stands for a shorthand: the same one wherever its content is the same."""
    return syntax.RawWords((f"{word}_{sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}",))


def is_empty_collection(literal: Literal) -> bool:
    """True for the item of a rule that stands for a count or sum of no rows."""
    return literal.negated and re.fullmatch(r"rows_[0-9a-f]{8}", literal.atom.predicate) is not None


def _gives_values(item: syntax.RawItem) -> bool:
    if isinstance(item, syntax.RawComparison):
        return syntax.COMPARISONS.get(item.operator, item.operator) == "="
    return _is_positive(item)


def _is_positive(item: syntax.RawItem) -> bool:
    return isinstance(item, syntax.RawLiteral) and not item.negated


def _sources(names: set[str], items: Sequence[syntax.RawItem]) -> list[syntax.RawItem]:
    """The items that give variables their values, and those that give values to the variables of these."""
    found: list[syntax.RawItem] = []
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        giving = [item for item in items if _gives_values(item) and name in _names(item)]
        chosen = next(iter(sorted(giving, key=_is_positive, reverse=True)), None)
        if chosen is not None and chosen not in found:
            found.append(chosen)
            waiting += _names(chosen) if not _is_positive(chosen) else ()
    return found


def _is_shorthand(node: syntax.RawNode) -> bool:
    """True for a range, a pool and a collection."""
    is_pool = isinstance(node, syntax.RawAtom) and bool(node.pools)
    return is_pool or _is_range(node) or isinstance(node, syntax.RawCollected)


def _conclusions(line: syntax.RawNode) -> Iterator[syntax.RawNode]:
    if isinstance(line, syntax.RawRule):
        yield line.conclusion
        yield from chain.from_iterable(line.exceptions)
    elif isinstance(line, syntax.RawChoice):
        yield from line.heads
        yield from chain.from_iterable(line.exceptions)
    elif isinstance(line, syntax.RawAggregate):
        yield line.atom
        yield from line.counted


def _without(nodes: Sequence[syntax.RawNode], left_out: syntax.RawNode) -> Iterator[syntax.RawNode]:
    """The parts of nodes in which a part is not."""
    for node in nodes:
        inside = list(_parts(node))
        if node is not left_out:
            yield from _without(inside, left_out) if inside else (node,)


def _parts(node: object) -> Iterator[syntax.RawNode]:
    """The nodes directly inside of a node."""
    if isinstance(node, tuple):
        for part in node:
            yield from (part,) if isinstance(part, syntax.RawNode) else _parts(part)
    elif isinstance(node, syntax.RawNode):
        for entry in fields(node):
            value = getattr(node, entry.name)
            yield from (value,) if isinstance(value, syntax.RawNode) else _parts(value)


def _all_parts(node: syntax.RawNode) -> Iterator[syntax.RawNode]:
    """The node and all nodes inside of it."""
    yield node
    for part in _parts(node):
        yield from _all_parts(part)


def _names(node: syntax.RawNode) -> Iterator[str]:
    """The variables of a node, at each of their places, without `_`."""
    if isinstance(node, syntax.RawWords):
        if is_variable_word(node.words[-1]) and node.words[-1] != "_":
            yield node.words[-1]
        return
    for part in _parts(node):
        # The name of a predicate is no variable.
        if not (isinstance(node, syntax.RawAtom) and part is node.name):
            yield from _names(part)
