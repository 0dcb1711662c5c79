"""Measurements as the sections of a model card, and the markers between which a card holds them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from evaluation.embedded_lists import ListMeasurements
from evaluation.embedded_roles import CriticMeasurements, LikelihoodMeasurements, OutsideMeasurements
from evaluation.embedded_search import FactTruth, SearchMeasurements
from evaluation.estimates import Estimate
from evaluation.model_facts import ModelFacts
from grammar.errors import HapaxError

_SECTION = re.compile(r"(<!-- measured: (?P<name>\w+) -->\n).*?(<!-- end: (?P=name) -->)", re.DOTALL)


def replace_sections(card: str, sections: Mapping[str, str]) -> str:
    """The card with each section's text between its markers; everything else stays as it is.

    Raises HapaxError if a section has no place in the card or a marked place gets no section.
    """
    places = [match["name"] for match in _SECTION.finditer(card)]
    if sorted(places) != sorted(sections):
        wrong = ", ".join(sorted(set(places).symmetric_difference(sections)) or sorted(places))
        raise HapaxError(
            f"The card's markers and the measurements do not match: {wrong}. "
            "Write `<!-- measured: NAME -->` and `<!-- end: NAME -->` once for each section."
        )
    return _SECTION.sub(lambda match: f"{match[1]}{sections[match['name']].strip()}\n{match[3]}", card)


def model_section(facts: ModelFacts) -> str:
    """Size and identity."""
    return (
        f"{facts.parameters:,} parameters in {facts.layers} layers of width {facts.width}, a vocabulary of "
        f"{facts.vocabulary:,} tokens; {facts.weight_bytes / 1e6:.1f} MB of weights, SHA-256 "
        f"`{facts.weights_sha256}`. "
        f"The atlas: {facts.atlas_facts:,} facts under {facts.atlas_predicates} predicates."
    )


def training_section(facts: ModelFacts) -> str:
    """The settings of the run."""
    if not facts.training:
        return "The folder does not tell the settings of its training."
    return table(("setting", "value"), [(name.replace("_", " "), str(value)) for name, value in facts.training.items()])


def search_section(found: SearchMeasurements) -> str:
    """Truth of facts and statements."""
    rows = [("all accepted facts", *_truth_cells(found.accepted))]
    for name, truth in found.by_distribution.items():
        words = name.replace("_", "-")
        rows.append((f"facts behind {words} statements", *_truth_cells(truth.facts)))
        rows.append((f"{words} statements on true facts alone", *_share_cells(truth.statements), "", ""))
    told = f"{_counted(found.rules, 'rule')} searched, {found.skipped} skipped, {_counted(found.calls, 'call')}."
    header = ("", "share true", "of", "not in the key's line", "key without a line")
    return f"{told}\n\n{table(header, rows)}"


def critic_section(found: CriticMeasurements) -> str:
    """Truth told from falsehood."""
    rows = [
        ("AUC, true facts against held-out wrong ones", str(found.auc), f"{found.auc.count:,}"),
        (f"the same, worst predicate (`{found.worst}`)", _number(found.auc_by_predicate[found.worst]), ""),
        ("true facts accepted", *_share_cells(found.true_accepted)),
        ("held-out wrong facts accepted", *_share_cells(found.wrong_accepted)),
    ]
    rows += [(f"of these: {kind}", *_share_cells(accepted)) for kind, accepted in found.wrong_accepted_by_kind.items()]
    rows.append(("true data types accepted", *_share_cells(found.true_types_accepted)))
    rows.append(("held-out wrong data types accepted", *_share_cells(found.wrong_types_accepted)))
    return table(("", "", "of"), rows)


def lists_section(found: ListMeasurements) -> str:
    """A line a call."""
    rows = [
        (str(number), *map(str, (call.parsed, call.new, call.of_type, call.true, call.recall)))
        for number, call in enumerate(found.calls, start=1)
    ]
    header = ("call", "lines that parse", "of these new", "new: right type", "new: true", "true values found so far")
    return (
        f"{_counted(found.questions, 'question')} with several values:\n\n{table(header, rows)}\n\n"
        f"{_counted(found.functional_agreed.count, 'question')} with one value, asked twice: the two answers agree in "
        f"{found.functional_agreed} of the cases, and such a value is true in {found.functional_true}."
    )


def likelihood_section(found: LikelihoodMeasurements) -> str:
    """Correlation with popularity."""
    rows = [("all facts together", str(found.pooled))]
    if found.by_predicate:
        count = len(found.by_predicate)
        rows.append((f"within a predicate, median of the {count} largest", _number(found.median)))
        rows.append((f"within a predicate, lowest (`{found.worst}`)", _number(found.by_predicate[found.worst])))
    return table(("", "Spearman's correlation"), rows)


def delta_section(found: SearchMeasurements) -> str:
    """Both judges, first in all and then rule by rule."""
    summaries = [("this model", found.by_ranker), ("word frequency", found.by_frequency)]
    means = table(
        ("judge", "mean over rules", "rules with delta above 0", "of"),
        [(judge, str(one.mean), *_share_cells(one.positive)) for judge, one in summaries],
    )
    rules = table(
        ("rule", "head statements", "long-tail statements", "by this model", "by word frequency"),
        [
            (one.rule, str(one.head), str(one.long_tail), _number(one.by_ranker), _number(one.by_frequency))
            for one in found.deltas
        ],
    )
    missing = ", ".join(found.without_delta)
    without = f"\n\nWithout statements in both distributions: {missing}." if missing else ""
    return f"{means}\n\n{rules}{without}"


def outside_section(facts: OutsideMeasurements, free: OutsideMeasurements) -> str:
    """What was never taught."""
    rows = [
        (name, str(one.auc), *_share_cells(one.true_accepted), *_share_cells(one.false_accepted))
        for name, one in (("entities outside the atlas", facts), ("unknown predicates", free))
    ]
    return table(("", "AUC", "true ones accepted", "of", "false ones accepted", "of"), rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _truth_cells(truth: FactTruth) -> tuple[str, str, str, str]:
    return (*_share_cells(truth.true), str(truth.wrong), str(truth.unlisted))


def _share_cells(share: Estimate) -> tuple[str, str]:
    return str(share), f"{share.count:,}"


def _number(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3f}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
