"""The values of the attributes before a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from hapax.grammar.parsing.attributes import (
    PRINCIPLE_SPELLINGS,
    GenericBy,
    Polarity,
    StatementCap,
    default_polarity,
    default_principle,
)
from hapax.grammar.rules import Rule, type_key

Choice = TypeVar("Choice")


def with_attributes(rule: Rule, text: Mapping[str, str], faulty: list[tuple[str, str, str]]) -> Rule:
    """The rule with the values of its attributes, by name. `faulty` gets name, value and remedy of those without sense.

    Without `@generic` no variable is generic yet: `Library.with_default_generic` chooses these.
    """

    def choice(name: str, choices: Mapping[str, Choice]) -> Choice | None:
        value = text.get(name, "")
        key = type_key(value)
        if value and key not in choices:
            faulty.append((name, value, f"Write {' or '.join(choices)}."))
        return choices.get(key)

    known = [variable.name for variable in rule.variables]
    # Before the principle, whose default follows from the polarity.
    polarity = choice("polarity", {polarity.value: polarity for polarity in Polarity})
    polarity = polarity or default_polarity(rule.conclusion)
    generic = text.get("generic")
    names = () if generic in (None, "", "none") else tuple(dict.fromkeys(str(generic).split()))
    for name in names:
        if name not in known:
            faulty.append(("generic", name, f"Write variables of the rule ({', '.join(known)}), or none."))
    most = text.get("most")
    cap = StatementCap.parsed(most) if most else None
    if most and (cap is None or not set(cap.variables).issubset(known)):
        listed = ", ".join(sorted(known))
        faulty.append(("most", most, f"Write a number from 1 and variables of the rule ({listed}): @most 2 per A."))
    return replace(
        rule,
        domain=text.get("domain") or None,
        principle=choice("principle", PRINCIPLE_SPELLINGS) or default_principle(polarity),
        polarity=polarity,
        generic=names,
        generic_by=GenericBy.ATTRIBUTE if generic else GenericBy.NOTHING,
        cap=cap,
        withdrawn=text.get("withdrawn") or None,
    )
