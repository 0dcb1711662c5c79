"""The rules of a library that an operation works with: without those that have errors, all or those named."""

from __future__ import annotations

from collections.abc import Sequence

from hapax.grammar.arguments import texts
from hapax.grammar.rule_checks import adds_nothing
from hapax.grammar.rules import Library, Rule
from hapax.grammar.sound_rules import sound_part
from hapax.kb.schema import ENTAILS


def sound_rules(rules: Library) -> Library:
    """The rules without those that cannot be evaluated, which `left_out` of the result names with the reasons.

    Raises RulesRejected for an error that is not one of a rule, such as a cycle of types. Stored entailments that were
    added as rules stay: their types are a parser's, and their scores decide.
    """
    return sound_part(rules, ENTAILS)


def chosen_rules(rules: Library, names: str | Sequence[str] = ()) -> list[Rule]:
    """The named rules; without names all that can conclude something new, but for withdrawn ones and definitions.

    A definition is a rule that only defines a predicate for others. Raises HapaxError for a name that no rule has, and
    RulesRejected if every rule, or a named one, was left out for its errors.
    """
    names = texts(names)
    if names:
        return [rules.rule(name) for name in names]
    if not rules.rules:
        rules.refuse_left_out(item.indicator for item in rules.left_out or ())
    kept = (rule for rule in rules.rules if not rules.is_definition(rule) and rule.withdrawn is None)
    return [rule for rule in kept if not adds_nothing(rule, rules)]
