"""All that the grammar makes of a rule text, in words: which tests hold whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hapax.grammar.checks import check_read
from hapax.grammar.dependencies import Preset, evaluation_layers, graph_text, negative_cycles, plan, search_plans
from hapax.grammar.errors import HapaxError
from hapax.grammar.formatting import formatted_rules
from hapax.grammar.link_json import to_link_json
from hapax.grammar.occurrences import occurrences
from hapax.grammar.parser import read_texts
from hapax.grammar.printing import format_library
from hapax.grammar.prolog_text import program_text
from hapax.grammar.rules import Library, Rule
from hapax.grammar.verbalize import literal_text, statement_text

FILE = "f.rules"
ORDERS: tuple[Preset, ...] = ("link", "conclusion-first", "premise-first")


def told(text: str) -> str:
    """Diagnostics, names and layout of the text; its library, and for each rule the orders, costs and sentences."""
    return "\n".join(_lines(text)) + "\n"


def _lines(text: str) -> Iterator[str]:
    read = read_texts([(FILE, text)])
    for found in check_read(read):
        place = found.place
        yield f"{found} ({place.line}:{place.column} to {place.end_line}:{place.end_column})"
    names = (
        f"{item.kind} {item.name}{'' if item.arity is None else f'/{item.arity}'} {item.place.line}:{item.place.column}"
        + (" declared" if item.declares else "")
        for item in occurrences(FILE, text)
    )
    yield "names: " + ", ".join(names)
    yield from _attempt("layout", lambda: formatted_rules(text))
    if not read.diagnostics:
        yield from _library_lines(read.library)


def _attempt(title: str, made: Callable[[], str]) -> Iterator[str]:
    """The lines of a text, or of the error with which it is refused."""
    try:
        yield f"{title}:"
        yield from (f"  {line}" for line in made().splitlines())
    except HapaxError as refusal:
        yield f"  {refusal}"


def _clauses(program: str) -> str:
    """The program without the directives that name its predicates twice more."""
    return "\n".join(line for line in program.splitlines() if line and not line.startswith((":- dyn", ":- disc")))


def _library_lines(library: Library) -> Iterator[str]:
    yield from _attempt("printed", lambda: format_library(library))
    yield from _attempt("program", lambda: _clauses(program_text(library)))
    yield from _attempt("link", lambda: to_link_json(library))
    yield f"layers: {[sorted(layer) for layer in evaluation_layers(library)]}"
    yield f"cycles: {negative_cycles(library)}"
    for signature in library.completed().signatures:
        closedness = library.closedness(signature.indicator)
        yield f"{signature.indicator}: {signature.kind}, {closedness}, {signature.argument_types}"
    for rule in library.rules:
        yield from _rule_lines(rule, library)


def _rule_lines(rule: Rule, library: Library) -> Iterator[str]:
    yield f"rule {rule.name}: {rule.sentence}"
    yield f"generic {rule.generic_text}; {rule.domain}, {rule.principle}, {rule.polarity}"
    yield from _attempt("graph", lambda: graph_text(rule, library))
    yield from _attempt(
        "plans", lambda: "\n".join(f"{each.order}: {each.cost}" for each in search_plans(rule, library))
    )
    yield from _attempt("orders", lambda: "\n".join(f"{order}: {plan(rule, library, order).order}" for order in ORDERS))
    yield f"statement: {statement_text(rule, library).sentence}"
    yield "literals: " + "; ".join(literal_text(literal, library) for literal in rule.literals)
