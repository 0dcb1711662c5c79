"""Rules and libraries as rule text. What is printed parses back to what was printed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grammar.defaults import default_generic, default_polarity, default_principle
from grammar.rules import GenericBy, Library, PredicateSignature, Rule, Templates
from grammar.terms import quoted

_PLAIN_WORD = re.compile(r"[^\W\d]\w*")


def rule_text(rule: Rule, library: Library | None = None, default_name: str | None = None) -> str:
    """The rule with its attributes, those left out that a reader would infer; @generic stays where it was written.

    Which variables are generic by default depends on the library's types; without a library it is always written.
    """
    lines = [] if rule.name == default_name else [f"@name {_attribute_value(rule.name)}"]
    if rule.domain is not None:
        lines.append(f"@domain {_attribute_value(rule.domain)}")
    polarity = default_polarity(rule.conclusion)
    if rule.polarity not in (None, polarity):
        lines.append(f"@polarity {rule.polarity}")
    if rule.principle not in (None, default_principle(rule.polarity or polarity)):
        lines.append(f"@principle {rule.principle}")
    by_default = library and default_generic(rule.premise, rule.conclusion, library.is_person)
    if rule.generic_by is GenericBy.ATTRIBUTE or rule.generic != by_default:
        lines.append(f"@generic {' '.join(rule.generic) or 'none'}")
    return "\n".join([*lines, rule.sentence])


def format_library(library: Library) -> str:
    """The whole library as one rule file: types, opposites, declarations, facts, rules."""
    blocks = [
        "\n".join(f"type {lower} < {upper}" for lower, upper in library.subtypes),
        "\n".join(f"opposite {first} {second}" for first, second in library.opposites),
        "\n".join(signature_text(one) for one in library.signatures if one.declared),
        "\n".join(f"fact {fact}" for fact in library.facts),
        *(rule_text(rule, library, f"rule{position}") for position, rule in enumerate(library.rules, start=1)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def signature_text(signature: PredicateSignature) -> str:
    """The declaration of a predicate."""
    arguments = [str(one) for one in signature.parameters] or signature.argument_types
    text = f"{signature.kind} {signature.name}({', '.join(arguments)})"
    if signature.definition is not None:
        text += f" := {signature.definition}"
    if signature.templates is not None:
        text += ": " + " / ".join(_template_texts(signature.templates))
    return text


def _template_texts(templates: Templates) -> Iterator[str]:
    """The templates in their order; an empty one keeps the place of one that is missing before another."""
    texts = [templates.affirmative, templates.negated, templates.question]
    while texts[-1] is None:
        texts.pop()
    return (quoted(text or "") for text in texts)


def _attribute_value(text: str) -> str:
    return text if _PLAIN_WORD.fullmatch(text) else quoted(text)
