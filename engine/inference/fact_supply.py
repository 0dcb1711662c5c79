"""Facts for a goal on demand: Prolog asks for the rows that can match a call, and they are read by index.

A program leaves out the facts of large predicates, and `hapax_host:fetch/2` asks for them before a call. So a question
about a few facts costs the same however many are stored, and its answers are those over all facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from hapax.engine.inference.call_patterns import CallPatterns
from hapax.engine.inference.program import TYPES, VALUES, row_name, type_rows
from hapax.engine.inference.session import AnswerRow, PrologTerm
from hapax.grammar.prolog_text import prolog_value
from hapax.grammar.rules import Library, type_key
from hapax.grammar.terms import Atom, Constant, Value
from hapax.kb.records import FactRecord, TypeFact
from hapax.kb.store import KnowledgeBase

_ROWS_PER_LIST = 500

MOST_CALLS = 500
"""Calls of a predicate that are answered one by one. After them all its facts are read at once, which is faster."""


def supplied_predicates(kb: KnowledgeBase, patterns: CallPatterns) -> frozenset[str]:
    """Indicators of the called predicates whose facts are read on demand.

    These are large, and always called with an argument bound.
    """
    return frozenset(filter(kb.relations.is_large, patterns.looked_up))


class FactSupply:
    """Supplies facts of some predicates to the goals of a session.

    `stated`: atoms that the program has as facts. `library`: that of the types, for a program in demand mode. `given`:
    only facts that a user gave.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        predicates: Collection[str],
        stated: Iterable[Atom] = (),
        library: Library | None = None,
        *,
        given: bool = False,
    ) -> None:
        self._kb, self._predicates, self._library, self._given = kb, frozenset(predicates), library, given
        self._stated = [(atom.predicate, tuple(_values(atom))) for atom in stated if atom.indicator in self._predicates]
        self._sent: set[tuple[str, tuple[Value, ...]]] = set()
        self._calls: Counter[str] = Counter()
        self._facts: dict[str, FactRecord] = {}

    def begin(self) -> None:
        # The program has clauses for these; supplied again they would be there twice.
        self._sent = set(self._stated)
        self._calls.clear()

    def rows(self, call: AnswerRow) -> str:
        name, *arguments = call
        is_whole = False
        if name == TYPES:
            found = self._types(arguments[0])
        elif name == VALUES:
            found = self._values_under(arguments[0])
        else:
            indicator = f"{name}/{len(arguments)}"
            self._calls[indicator] += 1
            is_whole = self._calls[indicator] > MOST_CALLS
            found = self._matching(str(name), [_FREE] * len(arguments) if is_whole else arguments)
        # Prolog reads a list at a time, until the line `end.`, or `all.` after which it calls no more.
        lists: list[str] = []
        while batch := list(islice(found, _ROWS_PER_LIST)):
            lists.append(f"[{', '.join(batch)}].\n")
        return "".join(lists) + ("all.\n" if is_whole else "end.\n")

    def _types(self, value: Value | PrologTerm) -> Iterator[str]:
        """The types under which the facts accept a value, as Prolog terms."""
        if self._library is None or isinstance(value, PrologTerm):
            return iter(())
        types = set[str]()
        for indicator in self._predicates:
            types |= self._kb.relations.types_of(indicator, value)
        return iter(type_rows(self._library, [TypeFact(value, data_type) for data_type in sorted(types)]))

    def _values_under(self, wanted: Value | PrologTerm) -> Iterator[str]:
        """The values that the facts accept under a type, as Prolog terms."""
        library = self._library
        if library is None or not isinstance(wanted, str):
            return iter(())
        key = type_key(wanted)

        def is_wanted(data_type: str) -> bool:
            return type_key(data_type) == key or library.is_subtype(data_type, wanted)

        found = set[tuple[Value, str]]().union(
            *(self._kb.relations.typed_values(indicator, is_wanted) for indicator in self._predicates)
        )
        return iter(type_rows(library, [TypeFact(value, data_type) for value, data_type in sorted(found, key=repr)]))

    def facts(self) -> list[FactRecord]:
        """The records of all facts that were supplied so far."""
        return list(self._facts.values())

    def _matching(self, name: str, arguments: list[Value | PrologTerm]) -> Iterator[str]:
        """New facts that can match, as Prolog terms."""
        indicator = f"{name}/{len(arguments)}"
        terms = [cell for cell in arguments if isinstance(cell, PrologTerm)]
        # No fact has a term as an argument.
        if indicator not in self._predicates or any(term.name != "_" for term in terms):
            return
        bound = {place: cell for place, cell in enumerate(arguments) if not isinstance(cell, PrologTerm)}
        for fact in self._kb.relations.at(indicator, bound, given=self._given):
            cells = fact.arguments
            if (name, cells) not in self._sent:
                self._facts[fact.id] = fact
                self._sent.add((name, cells))
                yield f"{row_name(name)}({', '.join(map(prolog_value, cells))})"


_FREE = PrologTerm("_")


def _values(atom: Atom) -> Iterator[Value]:
    return (term.value for term in atom.arguments if isinstance(term, Constant))
