"""`calibrate`: from files of labels and a critic's scores to a stored map, with measures on held-out labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from hapax.engine.certificates import JudgedScore, Promise, ThresholdChoice, choose_threshold
from hapax.engine.gates.decidable import GivenFacts
from hapax.engine.gates.gates import TYPE_MEASURE
from hapax.engine.gates.score_maps import (
    REPLIES,
    TYPES,
    VOTES,
    ProposedAtom,
    ScoreMap,
    entity_key,
    labels_of,
    proposed_atoms,
    proposed_types,
    reply_members,
    short_model_name,
    stored_scores,
    voted_truths,
)
from hapax.engine.inference.derive import BULK_LIMITS
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.search.judge_scores import assessments_of
from hapax.engine.search.promises import describe
from hapax.evaluation.calibration.fitting import (
    LEAST_LABELS,
    CalibrationMeasures,
    FittedMap,
    LabelledScore,
    best_map,
    held_out,
    measures,
    reliability,
    reply_map,
    titles_of,
    total_loss,
)
from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.result_tables import (
    Evaluation,
    ResultTable,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.files.whole_files import read_text
from hapax.kb.judgement_records import CALIBRATIONS, CalibrationRecord
from hapax.kb.records import ASSESSMENTS, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic
from hapax.llm_oracle.protocols import CRITIC, Critic, CriticScore
from hapax.llm_oracle.questions.prompts import fact_claim
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.registry import open_model

GIVEN, ATLAS = "given", "atlas"

SOURCES = "votes, given, atlas, reference:NAME, or a file"
"""Sources of labels in words."""

TRUTHS = {"true": True, "false": False}


class LabelReader:
    """Reads labels of facts. `proposed`: the facts that a knowledge base's candidates would make, by fact id.

    A file may label other facts, too; they are in `proposed` once it is read.
    """

    def __init__(
        self, kb: KnowledgeBase, library: Library, proposed: dict[str, ProposedAtom], opening: OpeningOptions
    ) -> None:
        self.proposed = proposed
        self._kb, self._library, self._opening = kb, library, opening

    def truths(self, source: str) -> dict[str, bool]:
        """Truth by fact id, by one source. Raises HapaxError for an unknown source, or a faulty file."""
        readers: Mapping[str, Callable[[], dict[str, bool]]] = {
            VOTES: lambda: voted_truths(self._kb),
            GIVEN: self._given,
            ATLAS: self._atlas,
        }
        if source in readers:
            return readers[source]()
        if source.startswith("reference:"):
            return self._referenced(source)
        if self.is_file(source):
            return self._listed(Path(source))
        raise HapaxError(f"{source}: there is no such file and no such source of labels. Name {SOURCES}.")

    @staticmethod
    def is_file(source: str) -> bool:
        """True for a file of labels, false for the other sources."""
        is_named = source in (VOTES, GIVEN, ATLAS) or source.startswith("reference:")
        return not is_named and Path(source).is_file()

    def type_truths(self, source: str) -> dict[str, bool]:
        """Truth by the claims about data types of proposed values, by references and the atlas; others label none."""
        proposed = proposed_types(self._kb, self._library)
        if source == ATLAS:
            from hapax.llm_oracle.embedded.atlas import load_atlas

            atlas = load_atlas()
            known = {item.claim: atlas.type_truth(item.value, item.data_type) for item in proposed}
            return {claim: truth for claim, truth in known.items() if truth is not None}
        if not source.startswith("reference:"):
            return {}
        scores = open_model(source, CRITIC, self._opening).probabilities([item.claim for item in proposed])
        pairs = zip(proposed, scores, strict=True)
        return {item.claim: score.probability >= 0.5 for item, score in pairs if score.covered}

    def _given(self) -> dict[str, bool]:
        facts = GivenFacts(RunFacts(self._kb, self._library), self._library, BULK_LIMITS.seconds)
        atoms = {}
        for key, proposed in self.proposed.items():
            atoms[key] = Atom(proposed.predicate, tuple(map(Constant, proposed.arguments)))
        truths = facts.truths(atoms.values())
        # 1 or 0: by given facts, withdrawals, declarations or arithmetic.
        return {key: truths[atom] == 1.0 for key, atom in atoms.items() if truths[atom] is not None}

    def _atlas(self) -> dict[str, bool]:
        """Truth by the atlas, where it has a complete line for the fact's key."""
        from hapax.llm_oracle.embedded.atlas import load_atlas

        atlas = load_atlas()
        return {
            key: atlas.holds(proposed.predicate, proposed.arguments)
            for key, proposed in self.proposed.items()
            if atlas.knows_key(proposed.predicate, proposed.arguments)
        }

    def _referenced(self, source: str) -> dict[str, bool]:
        critic = open_model(source, CRITIC, self._opening)
        keys = list(self.proposed)
        scores = critic.probabilities([self.proposed[key].claim for key in keys])
        return {key: score.probability >= 0.5 for key, score in zip(keys, scores, strict=True) if score.covered}

    def _listed(self, path: Path) -> dict[str, bool]:
        """Labels of a file: lines of `true` or `false`, a predicate and its arguments, separated by tabs."""
        truths: dict[str, bool] = {}
        lines: dict[str, int] = {}
        rows = [line.split("\t") for line in read_text(path, "Give lines of labels.").splitlines()]
        for number, row in enumerate(rows, start=1):
            if any(row) and not row[0].startswith("#"):
                proposed = self._labelled(row, f"{path}:{number}")
                truth, first = TRUTHS[row[0]], lines.setdefault(proposed.id, number)
                if truths.setdefault(proposed.id, truth) is not truth:
                    earlier = str(not truth).lower()
                    raise HapaxError(
                        f"{path}:{number}: says {row[0]}, line {first} {earlier}, of the same fact. Remove one of them."
                    )
                # A file may label facts that no search has proposed.
                self.proposed.setdefault(proposed.id, proposed)
        return truths

    def _labelled(self, row: list[str], place: str) -> ProposedAtom:
        # Padded, so that a line of one cell unpacks and gets the message below.
        truth, predicate, *arguments = (*row, "", "")[: max(len(row), 2)]
        indicator = f"{predicate}/{len(arguments)}"
        signatures = {item.indicator: item for item in self._library.completed().signatures}
        if truth not in TRUTHS or indicator not in signatures:
            raise HapaxError(
                f"{place}: expected true or false, a predicate of the rules and its arguments, separated by tabs.",
                Remedy("Correct the line, or name the rules with {}.", Setting("rules")),
            )
        values: list[Value] = []
        for text, data_type in zip(arguments, signatures[indicator].argument_types, strict=True):
            # As a search reads values, or the label would be of another fact.
            number = parse_number(text, data_type) if self._library.is_numeric(data_type) else None
            values.append(text if number is None else number)
        atom = Atom(predicate, tuple(map(Constant, values)))
        return ProposedAtom(predicate, tuple(values), fact_claim(atom, self._library), entity_key(values[-1:]))


ALL, OF_TYPES, IN_REPLIES = "all labels", "data types of values", "facts by all scores of their replies"


@checked
@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Options of a calibration. `critic`: a model string; `labels`: sources, see `LabelReader`.

    `reserve`: share of the labels that the map does not learn from, so that a certificate of calibrated scores can use
    them.
    """

    critic: Annotated[str, Option("Model whose scores are calibrated; a+b+c: the weights of several.")] = "embedded"
    labels: Annotated[
        tuple[str, ...],
        Option(
            "Labels of facts (repeatable; the first decides): votes, given, atlas, reference:NAME, or a file.",
            metavariable="SOURCE",
        ),
    ] = (VOTES, "given")
    reserve: Annotated[
        float, Option("Share of labels to set aside for certificates of calibrated scores.", least=0, below=1)
    ] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.reserve < 1.0:
            raise HapaxError(f"reserve is {self.reserve:g}. Set it from 0 to below 1.")


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The learned map, and its measures on held-out labels by name of their part: raw, then calibrated."""

    critic: str
    fitted: FittedMap
    sources: Mapping[str, int]
    labels: int
    true: int
    reserved: int
    measured: Mapping[str, tuple[int, CalibrationMeasures, CalibrationMeasures]]
    points: Mapping[str, Sequence[tuple[float, float, int]]]
    forecast: ThresholdChoice

    def evaluation(self) -> Evaluation[CalibrationResult]:
        """The table of measures, with all figures and the reliability diagram's data."""
        columns = ("labels", "scores", "Brier", "log loss", "ECE", "AUC")
        rows: list[tuple[str, ...]] = []
        for part, (count, raw, calibrated) in self.measured.items():
            for name, measure in (("raw", raw), ("calibrated", calibrated)):
                cells = (measure.brier, measure.log_loss, measure.ece, measure.auc)
                rows.append((f"{part} ({count})", name, *(cell.text(3, 3) for cell in cells)))
        title = "Measures on labels of held-out keys, with 95 % intervals; lower is better but for the AUC"
        figures = {
            "critic": self.critic,
            "method": self.fitted.title,
            "map": self.fitted.map.parameters,
            "labels": self.labels,
            "true": self.true,
            "reserved": self.reserved,
            "sources": self.sources,
            "measures": {
                part: {"count": count, "raw": raw, "calibrated": calibrated}
                for part, (count, raw, calibrated) in self.measured.items()
            },
            "reliability": self.points,
            "forecast": self.forecast,
        }
        return Evaluation(self, (ResultTable(title, columns, rows),), figures, notes=tuple(self._notes()))

    def _foreseen(self) -> str:
        choice = self.forecast
        if choice.threshold is None:
            reason = describe(choice.reason, choice.more_labels)
            return f"For facts like these nothing can be promised: that {Promise()}. Of raw scores, {reason}"
        share = choice.accepted / choice.pool
        return f"For facts like these it can be promised that {Promise()}: {share:.0%} reach {choice.threshold:.4g}."

    def _notes(self) -> Iterator[str]:
        listed = ", ".join(f"{source}: {count}" for source, count in self.sources.items())
        yield (
            f"{short_model_name(self.critic)}: {counted(self.labels, 'label')}, {self.true} of them true ({listed}); "
            f"{self.reserved} reserved. Chosen by held-out log loss: {self.fitted.title}. Use it with "
            f"{Operation('search', **{'settings.calibrated': True})}."
        )
        yield self._foreseen()
        if self.fitted.method == "raw" and (self.labels < LEAST_LABELS or self.true in (0, self.labels)):
            yield f"Fewer than {LEAST_LABELS} labels, or none of one kind, teach no map. Label more facts."


@checked
def calibrate(
    rules: Library, kb: KnowledgeBase, options: CalibrationOptions | None = None, opening: OpeningOptions | None = None
) -> Evaluation[CalibrationResult]:
    """Learn what a critic's scores are worth from facts with known truth, and store it in the knowledge base.

    `options`: the critic by its string, and the sources of labels. `opening`: options of opening models; its journal,
    if any, has the budget. Raises HapaxError without any label. Needs the extra `calibration`.
    """
    # A simulated model makes its world from the rules.
    opening = replace(opening or OpeningOptions(), library=rules)
    return Calibrator(kb, rules, options or CalibrationOptions(), opening).run().evaluation()


class Calibrator:
    """Calibrates one critic by the facts of a knowledge base, and stores labels, scores and map in it."""

    def __init__(
        self, kb: KnowledgeBase, library: Library, options: CalibrationOptions, opening: OpeningOptions
    ) -> None:
        self.kb, self.library, self.options = kb, library, options
        self._opening = opening
        journal = opening.journal or Journal(kb)
        critic: Critic = open_model(options.critic, CRITIC, opening)
        self._critic = JournaledCritic(critic, journal)
        self.name = critic.identity.title
        self._answered = proposed_atoms(kb, library)
        self._reader = LabelReader(kb, library, dict(self._answered), opening)

    def run(self) -> CalibrationResult:
        """Read labels, score the labelled facts, learn, measure and store. Raises HapaxError without any label."""
        truths, sources = self._truths()
        labels = self._scored(truths)
        # Reserved labels teach no map, so a certificate of calibrated scores may count on them.
        reserved = {label.fact for label in labels if _is_reserved(label.fact, self.options.reserve)}
        used = [label for label in labels if label.fact not in reserved]
        fitted = best_map(used)
        # The measures are of held-out labels; the stored map has learned from all of `used`.
        probabilities = held_out(used)
        measured, points = self._measured(used, probabilities)
        replies = self._reply_map(used, probabilities, fitted.prior, measured)
        type_labels = self._type_labels()
        types = best_map(type_labels).map if len(type_labels) >= LEAST_LABELS else None
        if types is not None:
            raw = measures(type_labels, [label.score for label in type_labels])
            measured[OF_TYPES] = (len(type_labels), raw, measures(type_labels, held_out(type_labels)))
        result = CalibrationResult(
            self.name,
            fitted,
            sources,
            len(labels),
            sum(label.is_true for label in labels),
            len(reserved),
            measured,
            points,
            # The threshold that raw scores would get for facts like the labelled ones.
            choose_threshold([JudgedScore(label.score, label.is_true) for label in labels], None, Promise()),
        )
        parameters = dict(fitted.map.parameters)
        for part, found in ((TYPES, types), (REPLIES, replies)):
            if found is not None:
                parameters[part] = found.parameters
        self._store(parameters, used, tuple(sources), result)
        return result

    def _truths(self) -> tuple[dict[str, bool], dict[str, int]]:
        """Truth by fact id, and the number of facts by source; the first source that labels a fact decides."""
        truths: dict[str, bool] = {}
        sources: dict[str, int] = {}
        for source in self.options.labels:
            labelled = self._reader.truths(source)
            sources[source] = len(labelled)
            # The right side wins: an earlier source is not overruled by a later one.
            truths = labelled | truths
            if source != VOTES:  # stored as votes
                # A file says all that it says; other sources were asked about the proposed facts of these rules alone.
                asked = None if self._reader.is_file(source) else self._reader.proposed
                self.kb.replace_labels(source, labels_of(labelled, self._reader.proposed, source), asked)
        return {fact: truth for fact, truth in truths.items() if fact in self._reader.proposed}, sources

    def _scored(self, truths: Mapping[str, bool]) -> list[LabelledScore]:
        """The labelled facts with the critic's raw scores, which are stored; those not covered are left out."""
        atoms = {fact: self._reader.proposed[fact] for fact in truths}
        own = self._own_scores([atom.claim for atom in atoms.values()], "probability")
        labels = []
        for fact, atom in atoms.items():
            score = own.get(atom.claim)
            if score is not None:
                label = LabelledScore(
                    score.probability, truths[fact], atom.indicator, atom.question, fact, score.members
                )
                labels.append(label)
        if not labels and self.options.labels:
            raise HapaxError(
                f"{self.kb.place}: no proposed fact is labelled by {', '.join(self.options.labels)} and "
                f"scored by {self.options.critic}.",
                Remedy("Name other sources with {}, or search first.", Setting("options.labels")),
            )
        return labels

    def _own_scores(self, asked: Iterable[str], measure: str) -> dict[str, CriticScore]:
        """The critic's scores of claims, which are stored; claims that it does not cover are left out."""
        claims = list(dict.fromkeys(asked))
        scores = dict(zip(claims, self._critic.probabilities(claims), strict=True))
        # A source that states a claim gives no score to calibrate, and a chain's last critic is calibrated alone.
        own = {
            claim: score for claim, score in scores.items() if score.covered and not score.basis and not score.refused
        }
        assessed = (assessments_of(claim, measure, score, self.name) for claim, score in own.items())
        self.kb.add(ASSESSMENTS, chain.from_iterable(assessed))
        return own

    def _type_labels(self) -> list[LabelledScore]:
        """Labels of claims about data types with the critic's scores; a claim is its own key."""
        truths: dict[str, bool] = {}
        for source in self.options.labels:
            truths = self._reader.type_truths(source) | truths
        if len(truths) < LEAST_LABELS:
            return []
        types = {item.claim: item.data_type for item in proposed_types(self.kb, self.library)}
        own = self._own_scores(truths, TYPE_MEASURE)
        return [
            LabelledScore(score.probability, truths[claim], types[claim], claim, claim, score.members)
            for claim, score in own.items()
        ]

    def _reply_map(
        self,
        labels: Sequence[LabelledScore],
        probabilities: Sequence[float],
        prior: float,
        measured: dict[str, tuple[int, CalibrationMeasures, CalibrationMeasures]],
    ) -> ScoreMap | None:
        """The map of facts by all scores of their replies, if it says more of held-out ones than their own scores do.

        Its measures are added. `probabilities`: of the labels by their own scores.
        """
        members = reply_members(stored_scores(self.kb, self._answered, self.name), self._answered)
        places = [place for place, label in enumerate(labels) if label.fact in members]
        if len(places) < LEAST_LABELS:
            return None
        own = [replace(labels[place], members=members[labels[place].fact]) for place in places]
        after = held_out(own, lambda known: reply_map(known, prior))
        if total_loss(own, after) >= total_loss(own, [probabilities[place] for place in places]):
            return None
        measured[IN_REPLIES] = (len(own), measures(own, [label.score for label in own]), measures(own, after))
        return reply_map(own, prior)

    def _measured(
        self, labels: Sequence[LabelledScore], probabilities: Sequence[float]
    ) -> tuple[
        dict[str, tuple[int, CalibrationMeasures, CalibrationMeasures]], dict[str, list[tuple[float, float, int]]]
    ]:
        raw = [label.score for label in labels]
        measured = {ALL: (len(labels), measures(labels, raw), measures(labels, probabilities))}
        for title in titles_of(labels):
            alone = [label for label in labels if title in label.members]
            own_raw = [label.members[title] for label in alone]
            # Calibrated alone, so that the table shows what the combination adds.
            own_labels = [replace(label, score=score, members={}) for label, score in zip(alone, own_raw, strict=True)]
            after = measures(own_labels, held_out(own_labels))
            measured[short_model_name(title)] = (len(alone), measures(own_labels, own_raw), after)
        points = {"raw": reliability(labels, raw), "calibrated": reliability(labels, probabilities)}
        return measured, points

    def _store(
        self,
        parameters: Mapping[str, Any],
        used: Sequence[LabelledScore],
        sources: tuple[str, ...],
        result: CalibrationResult,
    ) -> None:
        metrics = {}
        for part, (count, raw, calibrated) in result.measured.items():
            metrics[part] = {"labels": count, "raw": _plain(raw), "calibrated": _plain(calibrated)}
        self.kb.add(
            CALIBRATIONS,
            [
                CalibrationRecord(
                    self.name,
                    result.fitted.method,
                    parameters,
                    tuple(sorted(label.fact for label in used)),
                    sources,
                    metrics,
                    system.now().isoformat(timespec="seconds"),
                )
            ],
        )


def _plain(measured: CalibrationMeasures) -> dict[str, list[float] | None]:
    plain: dict[str, list[float] | None] = {}
    for name in ("brier", "log_loss", "ece", "auc"):
        estimate: Estimate = getattr(measured, name)
        ends = [estimate.value, estimate.low, estimate.high]
        # The store keeps JSON, which has no NaN.
        plain[name] = None if any(map(math.isnan, ends)) else ends
    return plain


def _is_reserved(fact: str, share: float) -> bool:
    """True for this share of all facts, by their ids alone, so that the same facts are reserved every time."""
    # Eight hexadecimal digits of a hash as a uniform number below 16**8.
    return int(content_id("reserved", fact)[:8], 16) < share * 16**8
