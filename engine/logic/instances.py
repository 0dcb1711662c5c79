"""The rule instances behind derived atoms, and the facts that they rest on, followed from row to row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from hapax.engine.inference.derive import RuleInstance
from hapax.engine.logic.evaluate import Clause, values_of
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Substitution
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.atoms.facts import columns_of
from hapax.kb.atoms.symbols import canonical

Rows = Mapping[str, Iterable[int]]
"""By table, the numbers of some of its rows."""


@dataclass
class InstanceFinder:
    """Follows derived atoms down to facts; each atom is followed once, so that cyclic data ends.

    `atoms`: derived predicates by table. `clauses`: the compiled rules of one. `facts`: the table of those of its atoms
    that are facts, None if there are none.
    """

    relations: Relations
    library: Library
    atoms: Mapping[str, str]
    clauses: Callable[[str], Iterable[Clause]]
    facts: Callable[[str], str | None]
    fact_rows: dict[str, set[int]] = field(default_factory=dict)
    """By table, the facts on which instances rest."""
    _seen: dict[str, set[int]] = field(default_factory=dict)
    _found: list[tuple[Clause, tuple[int, ...]]] = field(default_factory=list)
    """Each instance's clause with the tags of its variables."""

    def follow(self, rows: Rows) -> None:
        """Find the instances that conclude these rows, and those below them."""
        waiting = [(table, set(refs)) for table, refs in rows.items()]
        while waiting:
            table, refs = waiting.pop()
            if table not in self.atoms:
                self.fact_rows.setdefault(table, set()).update(refs)
                continue
            new = refs - self._seen.setdefault(table, set())
            if new:
                self._seen[table] |= new
                self._add_leaves(table, new)
                waiting += self._below(table, new)

    def _add_leaves(self, table: str, refs: set[int]) -> None:
        """Add the facts among derived atoms: a predicate may have both facts and rules."""
        indicator = self.atoms[table]
        facts = self.facts(indicator)
        if facts is None:
            return
        same = " AND ".join(f"r.{column} = h.{column}" for column in columns_of(indicator))
        wanted = self.relations.wanted("wanted", refs)
        select = (
            f"SELECT r.ref FROM {wanted} AS w CROSS JOIN {table} AS h ON h.ref = w.ref "  # noqa: S608  ours
            f"CROSS JOIN {facts} AS r ON {same}"
        )
        self.fact_rows.setdefault(facts, set()).update(ref for (ref,) in self.relations.rows(select))

    def _below(self, table: str, refs: set[int]) -> Iterator[tuple[str, set[int]]]:
        """Add the instances that conclude these atoms, and yield the rows that they join, by table."""
        wanted = self.relations.wanted("wanted", refs)
        for clause in self.clauses(self.atoms[table]):
            body = clause.body
            # w: the wanted rows, h: the table of the atoms, t0, t1, ...: the tables of the premise.
            same = ["h.ref = w.ref", *(f"h.a{place} = {cell}" for place, cell in enumerate(clause.head, 1))]
            columns = [*body.references, *(body.values[variable.name] for variable in clause.rule.variables)]
            select = body.select_from([f"{wanted} AS w", f"{table} AS h"], columns or ["1"], same)
            width = len(body.tables)
            below: dict[str, set[int]] = {}
            for row in self.relations.rows(select):
                self._found.append((clause, row[width:] if columns else ()))
                for name, ref in zip(body.tables, row, strict=False):
                    below.setdefault(name, set()).add(ref)
            yield from below.items()

    def instances(self) -> dict[Atom, list[RuleInstance]]:
        """The instances found so far by conclusion, in one order: of equal proofs the first is kept."""
        values = self.relations.symbols.values(chain.from_iterable(tags for _, tags in self._found))
        found: list[tuple[Atom, int, str, RuleInstance]] = []
        for clause, tags in self._found:
            cells = [values[tag] for tag in tags]
            pairs = zip(clause.rule.variables, map(Constant, cells), strict=True)
            substitution = Substitution(tuple((variable.name, constant) for variable, constant in pairs))
            head = substitution.apply(clause.rule.conclusion.atom)
            # A rule may write 2.0; in a table 2 and 2.0 are one number.
            atom = Atom(head.predicate, tuple(Constant(canonical(value)) for value in values_of([head])))
            found.append((atom, clause.number, repr(cells), RuleInstance(clause.rule, substitution)))
        found.sort(key=lambda entry: (repr(entry[0]), *entry[1:3]))
        by_conclusion: dict[Atom, list[RuleInstance]] = {}
        for atom, _, _, instance in found:
            by_conclusion.setdefault(atom, []).append(instance)
        return by_conclusion
