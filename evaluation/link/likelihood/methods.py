"""Methods of making statements: searches, instructions and imports that differ in nothing but rules and evaluator.

A run's traits are its settings and models. Runs with equal traits are one method; a method is named by the traits that
tell it from the others of the knowledge base.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hapax.engine.search.score_maps import short_model_name
from hapax.engine.search.settings import SearchSettings
from hapax.evaluation.shared.experiments import INSTRUCT
from hapax.kb.records import RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.measures import Measure

KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL = "knowledge model", "critic model", "likelihood model"
"""Traits that name a model; the other traits are named as in `SearchSettings`."""

_MODELS = (KNOWLEDGE_MODEL, CRITIC_MODEL, LIKELIHOOD_MODEL)
_SEARCH, _UNKNOWN = "search", "unknown"

# Settings in which runs of one method may differ. "models" is replaced by one trait for each role.
_NO_TRAITS = ("rules", "rules_together", "distributions", "models", "evaluator", "taught_by")

_TRAIT_NAMES = {
    ("critic", True): "with critic",
    ("critic", False): "without critic",
    ("likelihood", "model"): "ranked",
    ("likelihood", "random"): "drawn at random",
    ("released", True): "the released prompt",
    ("released", False): "the paper's prompt",
    ("bias", True): "with logit bias",
    ("bias", False): "without logit bias",
}


@dataclass(frozen=True, slots=True)
class SearchMethod:
    """A way of making statements: a kind of search, of instruction, or an import."""

    name: str
    traits: Mapping[str, Any]

    @property
    def is_search(self) -> bool:
        return bool(self.traits["command"] == _SEARCH)

    @property
    def is_instruction(self) -> bool:
        return bool(self.traits["command"] == INSTRUCT)

    @property
    def is_unranked(self) -> bool:
        """True if no likelihood chose its statements, so that they can be reranked afterwards."""
        return self.is_instruction or (self.is_search and self.traits.get("likelihood") != "model")

    @property
    def wording(self) -> int:
        """Number in LINK's table 11 of the wording that asks for the long tail; 0 if none does."""
        return int(self.traits.get("wording", 0)) if self.is_instruction else 0


def methods_by_run(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> dict[str, str]:
    """Name of the method by run id, for the runs of these statements."""
    return method_names(runs_of(kb, statements))


def runs_of(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> list[RunRecord]:
    """The runs of the statements and other runs of the same methods, in the order of their last start."""
    stored = {run.id: run for run in kb.runs()}
    run_ids = dict.fromkeys(statement.run_id for statement in statements)
    # Statements of merged knowledge bases can name runs that are not stored; they count as the oldest.
    unknown = [RunRecord(run_id, _UNKNOWN, {}, run_id, "") for run_id in run_ids if run_id not in stored]
    traits = [_traits(run) for run in stored.values() if run.id in run_ids]
    # A later search of a method that found nothing supersedes the statements of an earlier one.
    same_methods = [run for run in stored.values() if _traits(run) in traits]
    return [*unknown, *sorted(same_methods, key=lambda run: run.started)]


def method_names(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Name of the method by run id: the traits in which searches, or instructions, differ; all traits of an import."""
    traits = _with_short_names({run.id: _traits(run) for run in runs})
    differing = {}
    for command in (_SEARCH, INSTRUCT):
        differing[command] = _differing([traits[run.id] for run in runs if run.command == command])
    # Imports have no entry in `differing` and are named by all their traits.
    return {run.id: _name(traits[run.id], differing.get(run.command)) for run in runs}


def ordered_methods(names: Mapping[str, str], runs: Sequence[RunRecord]) -> tuple[SearchMethod, ...]:
    """The methods of runs, by their names by run id: complete searches first, then ablated ones, then all others."""
    traits = {names[run.id]: _traits(run) for run in runs}
    # Runs of one method share a name, and the last of them gives the traits.
    methods = [SearchMethod(name, traits[name]) for name in traits]

    def order(method: SearchMethod) -> tuple[bool, bool, bool, int]:
        # False sorts before True; the sort is stable, so equal methods stay in the order of their runs.
        return (
            method.traits.get("command") != _SEARCH,
            method.traits.get("critic") is not True,
            method.traits.get("likelihood") != "model",
            method.wording,
        )

    return tuple(sorted(methods, key=order))


def _traits(run: RunRecord) -> dict[str, Any]:
    settings = {name: value for name, value in run.settings.items() if name not in _NO_TRAITS}
    if run.command != _SEARCH:
        return {"command": run.command, **settings}
    # Runs of older versions lack settings that were added since: they ran with what were the defaults then.
    legacy = {**SearchSettings().to_json(), "ends": "overlapping", "measure": Measure.PAPER.value}
    defaults = {name: value for name, value in legacy.items() if name not in _NO_TRAITS}
    # A fourth model is stored, too: the evaluator, in which runs of one method may differ.
    models = dict(zip(_MODELS, run.settings.get("models", ()), strict=False))
    return {"command": _SEARCH, **models, **defaults, **settings}


def _with_short_names(traits: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The traits with short names of models, unless two models share a short name."""
    models: set[str] = set()
    for run_traits in traits.values():
        models.update(run_traits[role] for role in _MODELS if isinstance(run_traits.get(role), str))
    counts = Counter(map(short_model_name, models))
    names = {name: name if counts[short_model_name(name)] > 1 else short_model_name(name) for name in models}
    shortened = {}
    for run_id, run_traits in traits.items():
        roles = {role: names.get(run_traits[role], run_traits[role]) for role in _MODELS if role in run_traits}
        shortened[run_id] = {**run_traits, **roles}
    return shortened


def _differing(traits: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the traits in which runs differ."""
    names = dict.fromkeys(chain.from_iterable(traits))
    differing = []
    for name in names:
        # A role that the knowledge model plays in all runs: naming it as well would add nothing.
        if name in {CRITIC_MODEL, LIKELIHOOD_MODEL}:
            is_other = [run_traits.get(name) != run_traits.get(KNOWLEDGE_MODEL) for run_traits in traits]
            if not any(is_other):
                continue
        # As JSON, because a setting may be a list, which no set can hold.
        if len({json.dumps(run_traits.get(name)) for run_traits in traits}) > 1:
            differing.append(name)
    return differing


def _name(traits: Mapping[str, Any], differing: Sequence[str] | None) -> str:
    if differing is None:
        return " ".join(map(str, traits.values()))
    if traits["command"] == INSTRUCT:
        # Always named by its model, even where there is only one.
        words = [_trait_text(trait, traits.get(trait)) for trait in differing if trait != KNOWLEDGE_MODEL]
        return ", ".join([f"instruction only, {traits[KNOWLEDGE_MODEL]}", *words])
    return ", ".join(_trait_text(trait, traits.get(trait)) for trait in differing) or _SEARCH


def _trait_text(trait: str, value: Any) -> str:
    name = _TRAIT_NAMES.get((trait, value)) if isinstance(value, str | bool) else None
    return name or f"{trait.replace('_', ' ')} {'none' if value is None else value}"
