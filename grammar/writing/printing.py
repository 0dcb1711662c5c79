"""Libraries, rules and declarations as rule text, which parses back to the same objects, and graphs of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

from hapax.grammar.parsing.declarations import (
    AggregateDeclaration,
    Chance,
    Declaration,
    GenericBy,
    PredicateSignature,
    Templates,
)
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Comparison, Literal, quoted, variable_names


def rule_text(rule: Rule, library: Library, default_name: str | None = None) -> str:
    """The rule without the attributes that a reader of the library would infer.

    `@generic` stays if it was written. `str(rule)` always writes it, because the defaults depend on declared types.
    """
    inferred = library.with_default_generic(replace(rule, generic_by=GenericBy.NOTHING))
    return rule.text(default_name, inferred.generic)


def format_library(library: Library) -> str:
    """The library as one rule file: types, opposites, predicates, other declarations, facts, examples, rules."""
    aggregates = {item.atom.indicator for item in library.aggregates}
    uncertain = list(library.chances)
    blocks = [
        "\n".join(f"type {lower} < {upper}" for lower, upper in library.subtypes),
        "\n".join(f"opposite {first} {second}" for first, second in library.opposites),
        "\n".join(
            signature_text(signature)
            for signature in library.signatures
            if signature.declared and signature.indicator not in aggregates
        ),
        "\n".join(_declaration_text(declaration, library) for declaration in library.declarations),
        "\n".join(_fact_text(fact, uncertain) for fact in library.facts),
        "\n".join(_evidence_text(literal) for literal in library.evidence),
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


def _fact_text(fact: Atom, uncertain: list[tuple[Atom, Chance]]) -> str:
    """A statement of the fact, with the first probability of it that is left, which is taken out."""
    found = next((item for item in uncertain if item[0] == fact), None)
    if found is None:
        return f"fact {fact}"
    uncertain.remove(found)
    return str(found[1])


def _evidence_text(literal: Literal) -> str:
    return f"evidence({literal.atom}, {'false' if literal.negated else 'true'})"


def signature_text(signature: PredicateSignature) -> str:
    """The declaration of a predicate."""
    arguments = [str(parameter) for parameter in signature.parameters] or list(signature.argument_types)
    if signature.columns:
        named = zip(signature.columns, signature.argument_types, strict=True)
        arguments = [f"{column}: {data_type}" for column, data_type in named]
    text = f"{signature.kind} {signature.name}({', '.join(arguments)})"
    if signature.definition is not None and not signature.is_by_function:
        text += f" := {signature.definition}"
    if signature.tolerance is not None:
        text += f" within {signature.tolerance}"
    if signature.key:
        text += f" key {', '.join(signature.columns[place] for place in signature.key)}"
    if signature.templates is not None:
        text += f": {_templates_text(signature.templates)}"
    return text


def _declaration_text(declaration: Declaration, library: Library) -> str:
    """An aggregate's line declares its predicate, so that the sentences stand behind it."""
    templates = None
    if isinstance(declaration, AggregateDeclaration):
        templates = library.signature(declaration.atom.indicator).templates
    return str(declaration) if templates is None else f"{declaration}: {_templates_text(templates)}"


def _templates_text(templates: Templates) -> str:
    texts = [templates.affirmative, templates.negated, templates.question]
    while texts[-1] is None:
        texts.pop()
    # The order tells the forms apart, so an empty text keeps the place of a missing form before a given one.
    return " / ".join(quoted(text or "") for text in texts)


# The dependency graph of a rule

GraphForm: TypeAlias = OneOf["text", "mermaid", "dot"]


def graph_text(rule: Rule, library: Library, form: GraphForm = "text") -> str:
    """The dependency graph as plain text, or as source for Mermaid or Graphviz. Ends with a newline."""
    literals = []
    for index, item in enumerate((*rule.premise, rule.conclusion)):
        kind = "conclusion" if index == len(rule.premise) else _source(item, library)
        names = variable_names([item])
        joined = tuple(variable.name for variable in rule.variables if variable.name in names)
        literals.append(_Drawn(f"l{index}", f"{item.untyped} [{kind}]", kind == "conclusion", joined))
    return "\n".join(_FORMS[form](rule, literals)) + "\n"


def _source(item: BodyLiteral, library: Library) -> str:
    """Source of a premise's truth: a comparison, rules alone, or the kind of its predicate."""
    if isinstance(item, Comparison):
        return "comparison"
    indicator = item.atom.indicator
    is_derived = indicator in library.derived and not library.is_asked(indicator)
    return "derived" if is_derived else library.signature(indicator).kind


class _Drawn(NamedTuple):
    """A literal in a drawing. `id` is safe in every form; `text` is not yet quoted. `names`: variables it joins."""

    id: str
    text: str
    is_conclusion: bool
    names: tuple[str, ...]


def _text_form(rule: Rule, literals: Sequence[_Drawn]) -> Iterator[str]:
    yield rule.name
    for variable in rule.variables:
        yield f"  {variable}" + (" (generic, never searched)" if variable.name in rule.generic else "")
    for literal in literals:
        yield f"  {' -- '.join(literal.names) or '(no variable)'}: {literal.text}"


def _mermaid_form(rule: Rule, literals: Sequence[_Drawn]) -> Iterator[str]:
    yield "graph LR"
    for variable in rule.variables:
        label = _mermaid_label(str(variable))
        yield f"  {variable.name}([{label}])" if variable.name in rule.generic else f"  {variable.name}({label})"
    for literal in literals:
        label = _mermaid_label(literal.text)
        yield f"  {literal.id}{{{{{label}}}}}" if literal.is_conclusion else f"  {literal.id}[{label}]"
    for literal in literals:
        yield from (f"  {name} --- {literal.id}" for name in literal.names)


def _mermaid_label(text: str) -> str:
    """Mermaid knows no backslash escapes: all but letters, digits and harmless signs are numbered entities."""
    return '"' + "".join(c if c.isalnum() or c in " _(),.[]" else f"#{ord(c)};" for c in text) + '"'


def _dot_form(rule: Rule, literals: Sequence[_Drawn]) -> Iterator[str]:
    yield f"graph {_dot_quoted(rule.name)} {{"
    for variable in rule.variables:
        style = ", style=dashed" if variable.name in rule.generic else ""
        yield f"  {variable.name} [label={_dot_quoted(str(variable))}, shape=ellipse{style}];"
    for literal in literals:
        shape = "hexagon" if literal.is_conclusion else "box"
        yield f"  {literal.id} [label={_dot_quoted(literal.text)}, shape={shape}];"
    for literal in literals:
        yield from (f"  {name} -- {literal.id};" for name in literal.names)
    yield "}"


def _dot_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else "?" for c in escaped) + '"'


_FORMS: Mapping[str, Callable[[Rule, Sequence[_Drawn]], Iterator[str]]] = {
    "text": _text_form,
    "mermaid": _mermaid_form,
    "dot": _dot_form,
}
