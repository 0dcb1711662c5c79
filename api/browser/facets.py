"""The facets of a list: conditions that people choose on its page, with the number of rows that each would show."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hapax.api.browser import table_pages as tables
from hapax.api.browser.table_pages import DERIVED, NOBODY, Wanted, literal
from hapax.grammar.errors import HapaxError
from hapax.kb.atoms.derived_statements import has_derived
from hapax.kb.records import RULES
from hapax.kb.store import FIRST_STANDING, STANDING, KnowledgeBase

# Conditions by their names in an address, which are those of the fields of `Wanted`.
_NUMBERS = ("least", "most")
_TEXTS = ("words", "about", "rule", "run", "predicate", "end", "source", "gate", "verdict", "judge")

COUNTED = {
    "statements": ("end", "rule", "predicate"),
    "facts": ("predicate", "source"),
    "claims": ("verdict", "gate", "predicate"),
}
"""The conditions of each list whose values have numbers of rows."""
COUNTING_SECONDS = 0.3
"""Seconds that a page waits for numbers of rows; a page that comes without them asks for them again."""
KEPT = 50
"""Choices of which the numbers of rows are remembered."""
_PREDICATE = re.compile(r"(?:^|(?<=\s))([^\s(]+)\(")

T = TypeVar("T")

Counts = Mapping[str, Mapping[str, int]]
"""Numbers of rows by condition and value."""


def wanted_of(asked: Mapping[str, str]) -> Wanted:
    """The conditions in an address. Raises HapaxError for a number that is none."""
    # Each number is None without a condition, each text empty.
    values: dict[str, Any] = {name: asked.get(name, "") for name in _TEXTS}
    for name in _NUMBERS:
        if text := asked.get(name, ""):
            values[name] = math.nan
            with suppress(ValueError):
                values[name] = float(text)
            if not math.isfinite(values[name]):
                raise HapaxError(f"{name} is {text!r}. Give a number.")
    return Wanted(**values)


class RememberedCounts:
    """Counts rows of a file in a thread, and remembers the numbers until the file changes."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._counting: dict[Hashable, tuple[object, Future[Any]]] = {}
        self._last: dict[Hashable, Any] = {}
        self._thread = ThreadPoolExecutor(1)

    def of(self, key: Hashable, count: Callable[[KnowledgeBase], T]) -> tuple[T | None, bool]:
        """The numbers of a key, and True; while they are being counted, the last known ones or None, and False."""
        # What is committed lies in one of two files.
        files = [self._database, self._database.with_name(f"{self._database.name}-wal")]
        now = [(file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists()]
        state, counting = self._counting.get(key, (None, None))
        # One count of a key at a time, however often the file changes.
        if counting is None or (state != now and counting.done()):
            kept = list(self._counting.items())[-KEPT:]
            state, counting = now, self._thread.submit(self._count, count)
            self._counting = {**dict(kept), key: (state, counting)}
        with suppress(TimeoutError):
            numbers = counting.result(COUNTING_SECONDS)
            self._last = {**dict(list(self._last.items())[-KEPT:]), key: numbers}
            return numbers, state == now
        return self._last.get(key), False

    def _count(self, count: Callable[[KnowledgeBase], T]) -> T:
        with KnowledgeBase(self._database, read_only=True) as kb:
            return count(kb)


def facet_counts(kb: KnowledgeBase, name: str, wanted: Wanted) -> Counts:
    """The numbers of rows of a list (`statements`, `facts` or `claims`) by the values of each counted condition.

    All other conditions hold, so that a value's number is that of the rows that its choice would show.
    """
    if name != "statements":
        return {by: _counts(kb, name, wanted, by) for by in COUNTED[name]}
    counts = {by: _counts(kb, name, wanted, by) for by in ("end", "rule")}
    # A statement is about the predicates of its rule.
    by_rule = _counts(kb, name, replace(wanted, predicate=""), "rule")
    predicates = Counter[str]()
    for record in kb.select(RULES):
        chosen = wanted.rule in ("", record.name)
        for predicate in set(_PREDICATE.findall(record.text)) if chosen else ():
            predicates[predicate] += by_rule[record.name]
    return counts | {"predicate": +predicates}


def _counts(kb: KnowledgeBase, name: str, wanted: Wanted, by: str) -> Counter[str]:
    """The numbers of rows of a list by the values of one of its conditions."""
    without: dict[str, Any] = {by: ""}
    wanted = replace(wanted, **without)
    if name == "facts":
        return tables.fact_rows(kb, wanted).counts(kb, by)
    if name == "claims":
        asked = "CASE WHEN json_valid(questions.patterns) THEN json_extract(questions.patterns, '$[0][0]') END"
        columns = {"predicate": asked, "verdict": tables.VERDICT, "gate": "decisions.gate"}
        return tables.claim_rows(wanted).counts(kb, columns[by])
    found = Counter[str]()
    if wanted.end != DERIVED:
        select = tables.searched_rows(kb, wanted)
        # The first condition is quick, and fails for few rows; the second one looks at each.
        select.where(f"({FIRST_STANDING} OR {STANDING} AND NOT EXISTS ({tables.repeated(wanted, by)}))")
        found += select.counts(kb, {"rule": "rule", "end": "distribution"}[by])
    if wanted.end in ("", DERIVED) and has_derived(kb):
        found += tables.derived_rows(wanted).counts(kb, "rule" if by == "rule" else literal(DERIVED))
    return found


def facets_of(kb: KnowledgeBase, name: str, asked: Mapping[str, str], counts: Counts | None) -> list[dict[str, Any]]:
    """The facets of a list as an address has set them: those with numbers of rows, then the fields of its form.

    Each has `name`, `label` and `value`; `choices` to choose with their numbers of rows, or `options` of a field, or
    neither if one writes words or, with `is_number`, a number.
    """
    facets: list[dict[str, Any]] = []
    for by in COUNTED[name]:
        found, chosen = (counts or {}).get(by, {}), asked.get(by, "")
        # A choice that no row has any more stays on the page, to be taken back.
        choices = sorted(found.items(), key=lambda pair: (-pair[1], pair[0])) + [(chosen, 0)] * (
            chosen not in ("", *found)
        )
        facets.append({"name": by, "label": by.capitalize(), "choices": choices})
    voters, models = "SELECT DISTINCT voter FROM votes ORDER BY 1", "SELECT DISTINCT model FROM assessments ORDER BY 1"
    people, judges, least, most = {
        "statements": ([NOBODY], "Judged by", "Every fact P(yes) from", "A fact P(yes) to"),
        "facts": ([], "Scored by", "P(yes) from", "to"),
        "claims": ([], "Scored by", "Score from", "to"),
    }[name]
    options = [*people, *(str(text) for (text,) in kb.sql(voters if people else models)), asked.get("judge")]
    facets += [
        {"name": "words", "label": "Words"},
        {"name": "judge", "label": judges, "options": dict.fromkeys(filter(None, options))},
        {"name": "least", "label": least, "is_number": True},
        {"name": "most", "label": most, "is_number": True},
    ]
    fields = {"choices": None, "options": None, "is_number": False}
    return [{**fields, **facet, "value": asked.get(facet["name"], "")} for facet in facets]
