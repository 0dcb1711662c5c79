"""Write measurements as sections of a model card, between its markers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.results import markdown_table
from hapax.grammar.errors import HapaxError
from tools.embedded.list_measurements import ListMeasurements
from tools.embedded.model_folder import ModelFacts
from tools.embedded.score_measurements import CriticMeasurements, LikelihoodMeasurements, OutsideMeasurements
from tools.embedded.search_measurements import FactTruth, SearchMeasurements

_SECTION = re.compile(r"(<!-- measured: (?P<name>\w+) -->\n)(?P<text>.*?)(<!-- end: (?P=name) -->)", re.DOTALL)


def replace_sections(card: str, sections: Mapping[str, str]) -> str:
    """The card with the text of each section between its markers.

    Raises HapaxError if the card lacks the markers of a section or has markers without a section.
    """
    places = [match["name"] for match in _SECTION.finditer(card)]
    if sorted(places) != sorted(sections):
        wrong = ", ".join(sorted(set(places).symmetric_difference(sections)) or sorted(places))
        raise HapaxError(
            f"The card's markers and the measurements do not match: {wrong}. "
            "Write `<!-- measured: NAME -->` and `<!-- end: NAME -->` once for each section."
        )
    return _SECTION.sub(lambda match: f"{match[1]}{sections[match['name']].strip()}\n{match[4]}", card)


def written_sections(card: str) -> dict[str, str]:
    """The texts between a card's markers, by section."""
    return {match["name"]: match["text"] for match in _SECTION.finditer(card)}


def model_section(facts: ModelFacts) -> str:
    """Size and identity of the model."""
    return (
        f"{facts.parameters:,} parameters in {facts.layers} layers of width {facts.width}, a vocabulary of "
        f"{facts.vocabulary:,} tokens; {facts.weight_bytes / 1e6:.1f} MB of weights, SHA-256 "
        f"`{facts.weights_sha256}`. "
        f"The atlas: {facts.atlas_facts:,} facts under {facts.atlas_predicates} predicates."
    )


def training_section(facts: ModelFacts) -> str:
    """Settings of the training run."""
    if not facts.training:
        return "The model folder does not record the settings of its training."
    return markdown_table(
        ("setting", "value"), [(name.replace("_", " "), str(value)) for name, value in facts.training.items()]
    )


def search_section(found: SearchMeasurements) -> str:
    """Truth of facts and statements in a search."""
    rows = [("accepted facts in the atlas", *_truth_cells(found.accepted))]
    for name, truth in found.by_distribution.items():
        words = name.replace("_", "-")
        rows.append((f"facts behind {words} statements", *_truth_cells(truth.facts)))
        rows.append((f"{words} statements on atlas facts alone", *_share_cells(truth.statements), "", ""))
    summary = f"{_counted(found.rules, 'rule')} searched, {found.skipped} skipped, {_counted(found.calls, 'call')}."
    header = ("", "share in the atlas", "of", "not in the key's line", "key without a line")
    return f"{summary}\n\n{markdown_table(header, rows)}"


def critic_section(found: CriticMeasurements) -> str:
    """True and wrong claims by the critic."""
    rows = [
        ("AUC, true facts against held-out wrong ones", str(found.auc), f"{found.auc.count:,}"),
        (f"the same, worst predicate (`{found.worst}`)", _number(found.auc_by_predicate[found.worst]), ""),
        ("true facts accepted", *_share_cells(found.true_accepted)),
        ("held-out wrong facts accepted", *_share_cells(found.wrong_accepted)),
    ]
    rows += [(f"of these: {kind}", *_share_cells(accepted)) for kind, accepted in found.wrong_accepted_by_kind.items()]
    rows.append(("true data types accepted", *_share_cells(found.true_types_accepted)))
    rows.append(("held-out wrong data types accepted", *_share_cells(found.wrong_types_accepted)))
    return markdown_table(("", "", "of"), rows)


def lists_section(found: ListMeasurements) -> str:
    """Lists of values, with a row for each call."""
    rows = []
    for number, call in enumerate(found.calls, start=1):
        rows.append(tuple(map(str, (number, call.parsed, call.new, call.of_type, call.true, call.recall))))
    header = ("call", "lines that parse", "of these new", "new: right type", "new: true", "true values found so far")
    return (
        f"{_counted(found.questions, 'question')} with several values:\n\n{markdown_table(header, rows)}\n\n"
        f"{_counted(found.functional_agreed.count, 'question')} with one value, asked twice: the two answers agree in "
        f"{found.functional_agreed} of the cases, and such a value is true in {found.functional_true}."
    )


def likelihood_section(found: LikelihoodMeasurements) -> str:
    """Correlation of log-likelihood with popularity."""
    rows = [("all facts together", str(found.pooled))]
    if found.by_predicate:
        count = len(found.by_predicate)
        rows.append((f"within a predicate, median of the {count} largest", _number(found.median)))
        rows.append((f"within a predicate, lowest (`{found.worst}`)", _number(found.by_predicate[found.worst])))
    return markdown_table(("", "Spearman's correlation"), rows)


def delta_section(found: SearchMeasurements) -> str:
    """Delta by both judges, over all rules and rule by rule."""
    summaries = [("this model", found.by_ranker), ("word frequency", found.by_frequency)]
    means = markdown_table(
        ("judge", "mean over rules", "rules with delta above 0", "of"),
        [(judge, str(summary.mean), *_share_cells(summary.positive)) for judge, summary in summaries],
    )
    rules = markdown_table(
        ("rule", "head statements", "long-tail statements", "by this model", "by word frequency"),
        [
            (delta.rule, str(delta.head), str(delta.long_tail), _number(delta.by_ranker), _number(delta.by_frequency))
            for delta in found.deltas
        ],
    )
    missing = ", ".join(found.without_delta)
    without = f"\n\nWithout statements in both distributions: {missing}." if missing else ""
    return f"{means}\n\n{rules}{without}"


def outside_section(facts: OutsideMeasurements, free: OutsideMeasurements) -> str:
    """The critic on claims outside its training data."""
    rows = [
        (name, str(measured.auc), *_share_cells(measured.true_accepted), *_share_cells(measured.false_accepted))
        for name, measured in (("entities outside the atlas", facts), ("unknown predicates", free))
    ]
    return markdown_table(("", "AUC", "true ones accepted", "of", "false ones accepted", "of"), rows)


def _truth_cells(truth: FactTruth) -> tuple[str, str, str, str]:
    return (*_share_cells(truth.true), str(truth.wrong), str(truth.unlisted))


def _share_cells(share: Estimate) -> tuple[str, str]:
    return str(share), f"{share.count:,}"


def _number(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3f}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
