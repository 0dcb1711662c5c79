"""Certificates of groups of scored values: the test of each group, and what its labels are like at each end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hapax.engine.certificates import (
    METHOD,
    JudgedScore,
    LabelDraw,
    Promise,
    ThresholdChoice,
    choose_threshold,
    score_shift,
    upper_bound,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy
from hapax.grammar.words import counted
from hapax.kb import system
from hapax.kb.records import CertificateRecord, content_id

MUCH_SHIFT = 0.1
"""Distance of the shift from 0.5, and of a label's chance at an end from the average, that is reported as much."""

NO_END = "neither end"
"""Values that no statement of head or long tail rests on."""


@dataclass(frozen=True, slots=True)
class ScoredValue:
    """A proposed fact or a statement with its score. `truth`: its label; None: it has none.

    `ends`: head, long tail or both, where it occurs. `draw`, `weight`: by which `hapax votes next` chose it, if it did;
    see `LabelDraw`.
    """

    id: str
    score: float
    truth: bool | None
    ends: tuple[str, ...] = ()
    draw: float | None = None
    weight: float = 1.0


Groups = Mapping[str, Sequence[ScoredValue]]
"""Values by the name of the group that gets a promise of its own."""


def choose_for_groups(groups: Groups, promise: Promise, reach: float | None = None) -> dict[str, ThresholdChoice]:
    """A threshold for each group; the promise holds for all at once. `reach`: of the draw by `hapax votes next`."""
    choices: dict[str, ThresholdChoice] = {}
    for group, values in sorted(groups.items()):
        judged = [JudgedScore(value.score, value.truth, value.draw) for value in values if value.truth is not None]
        draw = None if reach is None else LabelDraw(reach, [value.weight for value in values])
        choices[group] = choose_threshold(judged, [value.score for value in values], promise, len(groups), draw)
    return choices


def certificates_of_groups(
    groups: Groups,
    choices: Mapping[str, ThresholdChoice],
    promise: Promise,
    basis: Callable[[str], Mapping[str, Any]],
) -> list[CertificateRecord]:
    """A certificate for each group, or a record of the reason why there is none. `basis`: identities by group."""
    records = []
    for group, choice in choices.items():
        values = groups[group]
        # Sorted: the identity of the sample must not depend on the order of the values.
        sample = sorted((value.id, value.score, value.truth) for value in values if value.truth is not None)
        others = [value.score for value in values if value.truth is None]
        records.append(
            CertificateRecord(
                group,
                promise.precision,
                promise.confidence,
                METHOD,
                basis(group),
                choice.threshold,
                choice.labels,
                choice.false,
                choice.bound,
                choice.accepted,
                choice.pool,
                content_id("sample", [list(row) for row in sample]),
                score_shift([score for _, score, _ in sample], others),
                "" if choice.threshold is not None else describe(choice.reason, choice.more_labels),
                system.now().isoformat(timespec="seconds"),
                ends=ends_of(values, choice, promise),
            )
        )
    return records


def refuse_without_promise(choices: Mapping[str, ThresholdChoice], promise: Promise, remedy: Remedy) -> None:
    """Raise HapaxError with the reason of each group unless one of them has a threshold."""
    if any(choice.threshold is not None for choice in choices.values()):
        return
    reasons = [f"{group}: {describe(choice.reason, choice.more_labels)}" for group, choice in choices.items()]
    listed = "\n".join(reasons[:10])
    raise HapaxError(f"Nothing can be promised: that {promise}.\n{listed}\n", remedy)


def ends_of(values: Sequence[ScoredValue], choice: ThresholdChoice, promise: Promise) -> dict[str, dict[str, Any]]:
    """By end the counts of a group: its values, those accepted, their labels, and how the labels' scores differ.

    `bound`: on the share of false values that this end has among the accepted, by its own labels alone.
    """
    threshold = choice.threshold
    by_end: dict[str, list[ScoredValue]] = {}
    for value in values:
        # A value at both ends counts at each of them.
        for end in value.ends or (NO_END,):
            by_end.setdefault(end, []).append(value)
    counts: dict[str, dict[str, Any]] = {}
    for end, members in sorted(by_end.items()):
        accepted = [value for value in members if threshold is not None and value.score >= threshold]
        labels = [value.truth for value in accepted if value.truth is not None]
        false = len(labels) - sum(labels)
        labelled = [value.score for value in members if value.truth is not None]
        counts[end] = {
            "pool": len(members),
            "labelled": len(labelled),
            "accepted": len(accepted),
            "labels": len(labels),
            "false": false,
            "bound": round(upper_bound(false, len(labels), promise.confidence), 4),
            "shift": score_shift(labelled, [value.score for value in members if value.truth is None]),
        }
    return counts


def end_lines(ends: Mapping[str, Mapping[str, Any]]) -> str:
    """The counts of each end in words, with the ends that lack labels. Empty where there is only one end."""
    known = {end: counts for end, counts in ends.items() if counts["accepted"]}
    if len(known) < 2:
        return ""
    parts = []
    for end, counts in known.items():
        text = f"{end.replace('_', ' ')}: {counts['accepted']} accepted, {counted(counts['labels'], 'label')}"
        text += f", {counts['false']} false, bound {counts['bound']:.3f}" if counts["labels"] else ""
        if counts["shift"] is not None and abs(counts["shift"] - 0.5) > MUCH_SHIFT:
            text += f", labels differ in score (AUC {counts['shift']:.2f})"
        parts.append(text)
    text = f" By end: {'; '.join(parts)}."
    lacking = _underlabelled(known)
    if lacking:
        text += (
            f" {' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} a smaller part of the labels than of "
            "the accepted: the promise leans on the other labels. Label more of it."
        )
    return text


def _underlabelled(ends: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Ends whose part of the labels is much smaller than their part of the accepted."""
    accepted = sum(counts["accepted"] for counts in ends.values())
    labels = sum(counts["labels"] for counts in ends.values())
    return [
        end.replace("_", " ")
        for end, counts in ends.items()
        if labels and counts["accepted"] / accepted - counts["labels"] / labels > MUCH_SHIFT
    ]


def describe(reason: str, more_labels: int | None) -> str:
    """The reason why nothing is promised, and what would help."""
    if more_labels is None:
        return f"{reason}; by these labels no number of further ones would do."
    return f"{reason}; about {counted(more_labels, 'more label')} would do if values stay as true as the labelled ones."
