"""Libraries, rules and declarations as rule text, which parses back to the same objects, and graphs of rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as OneOf
from typing import TypeAlias

from hapax.grammar.parsing.declarations import (
    AggregateDeclaration,
    Chance,
    Declaration,
    GenericBy,
    PredicateSignature,
    Templates,
)
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Comparison, quoted


def rule_text(rule: Rule, library: Library, default_name: str | None = None) -> str:
    """The rule without the attributes that a reader of the library would infer.

    `@generic` stays if it was written. `str(rule)` always writes it, because the defaults depend on declared types.
    """
    inferred = library.with_default_generic(replace(rule, generic_by=GenericBy.NOTHING))
    return rule.text(default_name, inferred.generic)


def format_library(library: Library) -> str:
    """The library as one rule file: types, opposites, predicates, other declarations, facts, examples, rules."""
    aggregates = {item.atom.indicator for item in library.aggregates}
    uncertain: dict[Atom, list[Chance]] = {}
    for fact, chance in library.chances:
        uncertain.setdefault(fact, []).append(chance)
    blocks = [
        "\n".join(f"type {lower} < {upper}" for lower, upper in library.subtypes),
        "\n".join(f"opposite {first} {second}" for first, second in library.opposites),
        "\n".join(
            signature_text(signature)
            for signature in library.signatures
            if signature.declared and signature.indicator not in aggregates
        ),
        "\n".join(_declaration_text(declaration, library) for declaration in library.declarations),
        "\n".join(str(uncertain[fact].pop(0)) if uncertain.get(fact) else f"fact {fact}" for fact in library.facts),
        "\n".join(f"evidence({item.atom}, {'false' if item.negated else 'true'})" for item in library.evidence),
        "\n".join(f"@example {atom}" for atom in library.examples),
        "\n".join(f"?- {goal}" for goal in library.goals),
    ]
    # A reader gives these names by position, so that `@name` is left out for them.
    position = 0
    for rule in library.rules:
        # The outcomes of a choice are one statement.
        if rule.chance is None or rule.chance.place == 0:
            position += 1
            many = rule.chance is not None and len(rule.chance.outcomes) > 1
            blocks.append(rule_text(rule, library, f"rule{position}{'_1' if many else ''}"))
    return "\n\n".join(block for block in blocks if block) + "\n"


def signature_text(signature: PredicateSignature) -> str:
    """The declaration of a predicate."""
    arguments = [str(parameter) for parameter in signature.parameters] or list(signature.argument_types)
    if signature.columns:
        named = zip(signature.columns, signature.argument_types, strict=True)
        arguments = [f"{column}: {data_type}" for column, data_type in named]
    is_defined = signature.definition is not None and not signature.is_by_function
    parts = (
        f"{signature.kind} {signature.name}({', '.join(arguments)})",
        f" := {signature.definition}" if is_defined else "",
        f" within {signature.tolerance}" if signature.tolerance is not None else "",
        f" key {', '.join(signature.columns[place] for place in signature.key)}" if signature.key else "",
        _templates_text(signature.templates),
    )
    return "".join(parts)


def _declaration_text(declaration: Declaration, library: Library) -> str:
    if not isinstance(declaration, AggregateDeclaration):
        return str(declaration)
    # An aggregate's line declares its predicate, so the sentences come after it.
    return f"{declaration}{_templates_text(library.signature(declaration.atom.indicator).templates)}"


def _templates_text(templates: Templates | None) -> str:
    if templates is None:
        return ""
    texts = [templates.affirmative, templates.negated or "", templates.question or ""]
    # The order tells the forms apart, so an empty text keeps the place of a missing form before a given one.
    return f": {' / '.join(map(quoted, texts))}".removesuffix(' / ""').removesuffix(' / ""')


# The dependency graph of a rule

GraphForm: TypeAlias = OneOf["text", "mermaid"]


def graph_text(rule: Rule, library: Library, form: GraphForm = "text") -> str:
    """The dependency graph as plain text, or as source for Mermaid. Ends with a newline."""
    plain, drawn = [rule.name], ["graph LR"]
    for variable in rule.variables:
        is_generic = variable.name in rule.generic
        plain.append(f"  {variable}" + (" (generic, never searched)" if is_generic else ""))
        label = _mermaid_label(str(variable))
        drawn.append(f"  {variable.name}([{label}])" if is_generic else f"  {variable.name}({label})")
    for number, item in enumerate((*rule.premise, rule.conclusion)):
        is_conclusion = number == len(rule.premise)
        text = f"{item.untyped} [{'conclusion' if is_conclusion else _source(item, library)}]"
        names = list(dict.fromkeys(variable.name for variable in item.variables))
        plain.append(f"  {' -- '.join(names) or '(no variable)'}: {text}")
        label = _mermaid_label(text)
        drawn.append(f"  l{number}{{{{{label}}}}}" if is_conclusion else f"  l{number}[{label}]")
        drawn += [f"  {name} --- l{number}" for name in names]
    return "\n".join(plain if form == "text" else drawn) + "\n"


def _mermaid_label(text: str) -> str:
    """Mermaid knows no backslash escapes: all but letters, digits and harmless signs are numbered entities."""
    return '"' + "".join(c if c.isalnum() or c in " _(),.[]" else f"#{ord(c)};" for c in text) + '"'


def _source(item: BodyLiteral, library: Library) -> str:
    """Source of a premise's truth: a comparison, rules alone, or the kind of its predicate."""
    if isinstance(item, Comparison):
        return "comparison"
    indicator = item.atom.indicator
    is_derived = indicator in library.derived and not library.is_asked(indicator)
    return "derived" if is_derived else library.signature(indicator).kind
