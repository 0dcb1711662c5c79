"""Searches by Python with scripted and simulated models, and the rules that they search."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hapax

VOCABULARY = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "?".
oracle is_one_type_of(Ingredient, Allergen): "[1] is one type of [2]" / "[1] is not one type of [2]" / "?".
functional was_invented_in(Tool, Year): "the [1] was invented in [2]" / "the [1] was not invented in [2]" / "?".
given owns(Person, Tool): "[1] owns [2]" / "[1] does not own [2]" / "?".
"""
ALLERGY = """
@name allergy
is_allergic_to(Person X, Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Allergen A)
  -> cannot_eat(Person X, Dish B).
"""
OLDER = """
@name older_tool
@generic X
owns(Person X, Tool A) & was_invented_in(Tool A, Year V) & was_invented_in(Tool B, Year W) & W < V
  -> could_have_owned(Person X, Tool B).
"""
HARMLESS = """
@name harmless
is_allergic_to(Person X, Allergen A) & is_one_type_of(Ingredient Y, Allergen A) & is_ingredient_in(Ingredient Y, Dish C)
  & is_ingredient_in(Ingredient Z, Dish C) & not is_one_type_of(Ingredient Z, Allergen A) -> may_eat(Person X, Ingredient Z).
"""
RECURSIVE = """
oracle is_part_of(Part, Part): "[1] is part of [2]" / "[1] is not part of [2]" / "?".
@name part
is_part_of(Part A, Part B) -> belongs_to(Part A, Part B).
@name part_of_part
is_part_of(Part A, Part B) & belongs_to(Part B, Part C) -> belongs_to(Part A, Part C).
@name repair
repairs(Person X, Part A) & belongs_to(Part A, Part B) -> can_work_on(Person X, Part B).
"""
SILENT = {"defaults": {"generate": [], "critic": 0.0, "likelihood": -10.0}}
"""The script of a model that proposes nothing, denies everything and finds all texts equally likely."""
SMALL = {"beam": 6, "calls_per_question": 2, "values_per_call": 10}
"""Settings of a search that takes little time."""


def rules_of(*texts: str) -> hapax.Library:
    """Rules over the vocabulary of food and tools."""
    return hapax.parse_rules("\n".join((VOCABULARY, *texts)))


def scripted(script: dict[str, Any], **options: Any) -> Any:
    """All four roles by one script; each role's model notes its `prompts`, `claims` or `texts`."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "script.json"
        path.write_text(json.dumps(script), "utf-8")
        name = f"scripted:{path}"
        return hapax.open_models(name, name, name, name, **options)


def simulated(library: hapax.Library, seed: int = 1, **options: Any) -> hapax.Models:
    """All four roles by a simulated world."""
    name = "simulated"
    return hapax.open_models(name, name, name, name, library=library, seed=seed, **options)


def searched(
    library: hapax.Library,
    models: hapax.Models,
    kb: hapax.KnowledgeBase | None = None,
    only: str | tuple[str, ...] = (),
    **settings: Any,
) -> hapax.SearchResult:
    """The result of a small search, in a knowledge base of its own unless one is given."""
    chosen = hapax.SearchSettings(**{"profile": "hapax", **SMALL, **settings})
    return hapax.search(library, kb or hapax.KnowledgeBase(), models, chosen, only=only)


def rows(result: Any) -> list[dict[str, Any]]:
    """The rows of a table as mappings."""
    return [dict(zip(result.columns, cells, strict=True)) for cells in result.cells()]


def texts(result: hapax.SearchResult, distribution: str | None = None) -> list[str]:
    """The statements of a search, or of one of its ends, in their order."""
    return [item.text for item in result.statements if distribution in (None, item.distribution)]


def sentences(result: hapax.SearchResult, distribution: str | None = None) -> set[str]:
    return set(texts(result, distribution))
