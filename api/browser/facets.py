"""The facets of a table: conditions that people choose on its page and that stand in its address."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hapax.api.browser.tables import ENDS, NOBODY, VERDICTS, Wanted
from hapax.grammar.errors import HapaxError
from hapax.kb.records import RULES, Source
from hapax.kb.store import KnowledgeBase

# Conditions by their names in an address, which are those of the fields of `Wanted`.
_NUMBERS = ("least", "most", "rare", "common")
_TEXTS = ("words", "about", "rule", "run", "predicate", "end", "source", "gate", "verdict", "judge")


@dataclass(frozen=True, slots=True)
class Facet:
    """A field of a form: a choice, a number if `step` is set, or words. `value`: as it stands in the address."""

    name: str
    label: str
    value: str
    choices: tuple[tuple[str, str], ...] | None = None
    step: str = ""


def wanted_of(asked: Mapping[str, str]) -> Wanted:
    """The conditions in an address. Raises HapaxError for a number that is none."""
    values: dict[str, Any] = {name: asked.get(name, "") for name in _TEXTS}
    # Each number is None without a condition, each text empty.
    return Wanted(**values | {name: _number(name, asked.get(name, "")) for name in _NUMBERS})


def _number(name: str, text: str) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        # Refused below, like infinity, with one message.
        number = math.nan
    if number is not None and not math.isfinite(number):
        raise HapaxError(f"{name} is {text!r}. Give a number.")
    return number


class Facets:
    """The facets of the tables of one knowledge base, as an address has set them."""

    def __init__(self, kb: KnowledgeBase, asked: Mapping[str, str]) -> None:
        self._kb, self._asked = kb, asked

    def statements(self) -> list[Facet]:
        """Facets of statements."""
        rules = [record.name for record in self._kb.select(RULES)]
        voters = self._texts("SELECT DISTINCT voter FROM votes ORDER BY voter")
        return [
            self._words(),
            self._choice("rule", "Rule", rules),
            self._predicates(),
            self._choice("end", "End", ENDS),
            self._choice("judge", "Judge", [NOBODY, *voters]),
            self._decimal("least", "P of its facts from"),
            *self._popularity(),
        ]

    def facts(self) -> list[Facet]:
        """Facets of facts."""
        return [
            self._words(),
            self._predicates(),
            self._choice("source", "Source", Source),
            self._choice("judge", "Judge", self._judges()),
            self._decimal("least", "P(yes) from"),
            self._decimal("most", "P(yes) to"),
            *self._popularity(),
        ]

    def claims(self) -> list[Facet]:
        """Facets of values that gates have judged."""
        return [
            self._words(),
            self._predicates(),
            self._choice("gate", "Gate", self._texts("SELECT DISTINCT gate FROM decisions ORDER BY gate")),
            self._choice("verdict", "Verdict", VERDICTS),
            self._choice("judge", "Judge", self._judges()),
            self._decimal("least", "Score from"),
            self._decimal("most", "Score to"),
        ]

    def _judges(self) -> list[str]:
        return self._texts("SELECT DISTINCT model FROM assessments ORDER BY model")

    def _predicates(self) -> Facet:
        return self._choice("predicate", "Predicate", self._texts("SELECT DISTINCT name FROM predicates ORDER BY name"))

    def _popularity(self) -> list[Facet]:
        return [self._decimal("rare", "Popularity (Zipf) from"), self._decimal("common", "Popularity to")]

    def _words(self) -> Facet:
        return Facet("words", "Words", self._asked.get("words", ""))

    def _decimal(self, name: str, label: str) -> Facet:
        return Facet(name, label, self._asked.get(name, ""), step="any")

    def _choice(self, name: str, label: str, values: Iterable[str]) -> Facet:
        chosen = self._asked.get(name, "")
        # A choice that no row has any more stays in the form that it came from.
        listed = dict.fromkeys([*map(str, values), *([chosen] if chosen else [])])
        choices = [("", "all"), *((value, value.replace("_", " ") if name == "end" else value) for value in listed)]
        return Facet(name, label, chosen, tuple(choices))

    def _texts(self, sql: str) -> list[str]:
        return [str(text) for (text,) in self._kb.sql(sql)]
