"""Scorers measured on every subset of the pairs of files, and settings chosen by drawing them (section 3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from hapax.evaluation.entailment.datasets import (
    HYPOTHESIS_ONLY,
    SubGroup,
    pair_and_converse,
    pairing_name,
    read_splits,
    subsets,
)
from hapax.evaluation.entailment.metrics import (
    BestThreshold,
    Curve,
    TwinFigure,
    area_above,
    area_of_release,
    best_f1,
    compare,
    concordance,
    curve,
    half_of_release,
    normalised_area,
    refuse_one_label,
    released_area,
)
from hapax.evaluation.entailment.pairs import EntailmentPair, read_pairs
from hapax.evaluation.entailment.scorers import (
    SCORERS,
    Direction,
    EntailmentScorer,
    Patterns,
    ScorerOptions,
    ScorerSession,
    VisibleSides,
    filled,
    leak_warning,
    pattern_scores,
)
from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.result_tables import (
    COLOURS,
    Evaluation,
    ExperimentResult,
    ResultTable,
    file_name,
    single,
    write_figure,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.files.unfinished import replace_file
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, DeferralCollector
from hapax.llm_oracle.critics.finetuning import Hyperparameters, LabelledCase, SentenceClassifier, TuningSettings, draws

DIRECTIONAL = pairing_name((SubGroup.DIR_TRUE, SubGroup.DIR_FALSE))


@dataclass(frozen=True, slots=True)
class SubsetResult:
    """The figures of a scorer on a subset, each of whole pairs, of hypotheses alone, and their gap.

    `rel` is AUCREL, `norm` AUCnorm of Eq. 1, `order` the concordance. `released`: `rel` and `area` are taken on the
    released code's curve.
    """

    scorer: str
    subset: str
    sees: VisibleSides | None
    pairs: int
    curve: Curve
    twin_curve: Curve | None
    rel: TwinFigure
    norm: TwinFigure
    order: TwinFigure
    released: bool = False

    @property
    def area(self) -> float:
        """AUC50; on the released code's curve its AUCHALF."""
        return half_of_release(self.curve) if self.released else area_above(self.curve)

    @property
    def threshold(self) -> BestThreshold:
        return best_f1(self.curve)

    @property
    def finding(self) -> str:
        """The conclusion at 95 %, by concordance: a key of `FINDINGS`, or empty if there is nothing to compare with."""
        whole, alone, gap = self.order.whole, self.order.alone, self.order.gap
        if self.sees is VisibleSides.HYPOTHESIS:
            # Its whole pairs are hypotheses alone already.
            alone = whole
        elif self.twin_curve is None:
            return ""
        # Before all others: a reversed scorer can have a hypothesis-only twin above chance.
        if whole.high < CHANCE:
            return "reversed"
        if alone.low > CHANCE:
            return "artefact and more" if gap.low > 0 else "artefact"
        if whole.low > CHANCE:
            return "entailment" if gap.low > 0 else "undecided"
        return "nothing"


CHANCE = 0.5
"""Concordance of a scorer that knows nothing."""

FINDINGS = {
    "entailment": "above chance, and the premises account for it",
    "artefact": "hypotheses alone are above chance, and premises add nothing beyond chance",
    "artefact and more": "hypotheses alone are above chance, and premises add to that",
    "undecided": "above chance, but the contribution of premises is within chance",
    "reversed": "reliably wrong: false pairs have the higher scores",
    "nothing": f"within chance; on {DIRECTIONAL} this means that the direction is not recognised",
}
"""Explanations of the findings in the last column."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Settings of a measurement. `twin`: of hypotheses alone, too; `released`: on the released code's curve, and
    on its own two pairings, too."""

    sides: VisibleSides = VisibleSides.BOTH
    twin: bool = True
    released: bool = False
    seed: int = 0


def measure(
    scorers: Sequence[EntailmentScorer], pairs: Sequence[EntailmentPair], how: Measuring | None = None
) -> Iterator[SubsetResult]:
    """The results of each scorer on each subset. A scorer that sees one side only has no twin."""
    how = how or Measuring()
    # By line: pairs that differ in case alone, or come twice, may have scores of their own.
    pairs = [pair if pair.place else replace(pair, place=f"pair {number}") for number, pair in enumerate(pairs, 1)]
    lines = {pair.place: line for line, pair in enumerate(pairs)}
    chosen = list(subsets(pairs, how.released))
    deferrals = DeferralCollector()
    for scorer in scorers:
        sees = scorer.sees if how.sides is VisibleSides.BOTH else how.sides
        # The full set is scored once: subsets differ in labels alone.
        with deferrals:
            scores = scorer.scores([how.sides.of(pair) for pair in pairs])
        twins = None
        if how.twin and sees is VisibleSides.BOTH:
            with deferrals:
                twins = scorer.scores([pair.hypothesis_only for pair in pairs])
        # Once a request waits in a queue, nothing is measured, but later scorers add their requests to the queue, too.
        if deferrals.first is not None:
            continue
        for subset, members in chosen:
            truth = [pair.entailed for pair in members]
            clusters = [pair_and_converse(pair) for pair in members]  # a pair and its converse are not independent
            score_lists = [
                [scored[lines[pair.place]] for pair in members] for scored in (scores, twins) if scored is not None
            ]
            yield subset_result((scorer.name, subset, sees), truth, score_lists, clusters, how)
    deferrals.raise_first()


def subset_result(
    names: tuple[str, str, VisibleSides | None],
    truth: Sequence[bool],
    score_lists: Sequence[Sequence[float]],
    clusters: Sequence[Hashable],
    how: Measuring,
) -> SubsetResult:
    """The figures of the scores of whole pairs and, if given, of hypotheses alone.

    `names`: scorer, subset, and the sides of a pair that it sees.
    """
    # Names of the fields of `SubsetResult` that `compared` fills.
    figures = {
        "rel": area_of_release if how.released else released_area,
        "norm": normalised_area,
        "order": concordance,
    }
    curves = [curve(truth, scores) for scores in score_lists]
    twin_curve = curves[1] if len(curves) > 1 else None
    compared = compare(truth, score_lists, figures, clusters, how.seed)
    rel, norm, order = (compared[name] for name in figures)
    return SubsetResult(*names, len(truth), curves[0], twin_curve, rel, norm, order, how.released)


FIGURE_COLUMNS = ("true", "AUC50", "F1", "AUCnorm", "AUCREL")


def experiment_result(results: Sequence[SubsetResult], remarks: Sequence[str] = ()) -> ExperimentResult:
    """The results as two tables for each scorer, all figures, and as notes the remarks and the findings explained."""
    tables = []
    for scorer in dict.fromkeys(result.scorer for result in results):
        members = [result for result in results if result.scorer == scorer]
        rows = [(result.subset, str(result.pairs), *figure_cells(result)) for result in members]
        tables.append(ResultTable(scorer, ("subset", "pairs", *FIGURE_COLUMNS), rows))
        # A table of its own: with these columns a row would be wider than a terminal.
        twins = [
            (result.subset, _with_interval(result.rel.alone), _with_interval(result.rel.gap), result.finding)
            for result in members
            if result.finding
        ]
        if twins:
            columns = ("subset", f"AUCREL {HYPOTHESIS_ONLY}", "gap", "finding")
            tables.append(ResultTable("", columns, twins))
    figures = []
    for result in results:
        # The names of the first version: AUCnorm alone had hypotheses and gap.
        twin_figures = {"hypothesis_only": result.norm.alone, "gap": result.norm.gap, "finding": result.finding}
        figures.append({**main_figures(result), "sees": result.sees, **twin_figures})
    findings = dict.fromkeys(result.finding for result in results if result.finding)
    notes = [*remarks, *(f"{name}: {FINDINGS[name]}" for name in findings)]
    return ExperimentResult(tables, figures, notes=notes)


def figure_cells(result: SubsetResult) -> tuple[str, ...]:
    """The cells of a table under `FIGURE_COLUMNS`."""
    figures = (result.curve.positive, result.area, result.threshold.f1, result.norm.whole.value)
    return (*(f"{figure:z.2f}" for figure in figures), _with_interval(result.rel.whole))


def main_figures(result: SubsetResult) -> dict[str, object]:
    """The figures of a subset for JSON; the comparisons with hypotheses alone are nan without these."""
    return {
        "scorer": result.scorer,
        "subset": result.subset,
        "pairs": result.pairs,
        "true": result.curve.positive,
        "auc50": result.area,
        "auc_rel": result.rel.whole.value,
        "auc_rel_compared": result.rel,
        "f1": result.threshold,
        "auc_norm": result.norm.whole,
        "concordance": result.order,
        "released_curve": result.released,
    }


@checked
@extras_named()
def draw_entailments(evaluation: Evaluation[list[SubsetResult]], folder: str | Path) -> list[Path]:
    """Write the precision-recall curves of each subset (PNG, SVG, CSV, TSV), and return the paths."""
    return write_curves(evaluation.value, Path(folder))


def write_curves(results: Sequence[SubsetResult], folder: Path) -> list[Path]:
    """Write a figure with its CSV for each subset, and each curve as lines of `precision TAB recall TAB theta`."""
    written: list[Path] = []
    for subset in dict.fromkeys(result.subset for result in results):
        members = [result for result in results if result.subset == subset]
        lines, rows = [], list[Sequence[object]]()
        for result in members:
            for name, measured in _curves(result):
                points = zip(measured.precision, measured.recall, measured.thresholds, strict=True)
                text = ""
                for precision, recall, theta in points:
                    rows.append((name, float(precision), float(recall), float(theta)))
                    text += f"{precision!s}\t{recall!s}\t{theta!s}\n"
                lines.append((folder / f"{file_name(name)}-{subset}.tsv", text))
        table = ResultTable("", ("scorer", "precision", "recall", "theta"), rows)
        drawn = single((4.4, 3.6), partial(_draw, members))
        written += write_figure(folder / f"curves-{subset}", drawn, table)
        for path, text in lines:
            replace_file(path, text)
            written.append(path)
    return written


def _curves(result: SubsetResult) -> Iterator[tuple[str, Curve]]:
    yield result.scorer, result.curve
    if result.twin_curve is not None:
        yield f"{result.scorer}, {HYPOTHESIS_ONLY}", result.twin_curve


def _draw(results: Sequence[SubsetResult], axes: Any) -> None:
    axes.axhline(results[0].curve.positive, color="0.6", linewidth=0.8, label="share of true pairs")
    for number, result in enumerate(results):
        for name, measured in _curves(result):
            style = "-" if measured is result.curve else ":"
            axes.plot(*measured.points, style, color=COLOURS[number % len(COLOURS)], linewidth=1.2, label=name)
    axes.set(xlabel="recall", ylabel="precision", title=results[0].subset, xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(frameon=False).set_in_layout(False)  # long names must not squeeze the curves


def _with_interval(figure: Estimate) -> str:
    return figure.text(2, 2, empty="")


@checked
@dataclass(frozen=True)
class EntailmentOptions(ScorerOptions):
    """Scorers by name, their options, and how they are measured.

    `sides`: the sides of a pair that they see. `twin`: hypotheses alone are measured, too. `released`: curves as the
    released code draws them.
    """

    scorers: Annotated[tuple[str, ...], Option(f"{SCORERS}; repeat the option to compare scorers.", name="scorer")] = (
        "critic",
    )
    sides: Annotated[
        Literal["both", "hypothesis", "premise"],
        Option("Sides of a pair that a scorer sees.", name="shown"),
    ] = "both"
    twin: bool = True
    released: Annotated[
        bool,
        Option("Take curves as the released code does: precision 1 at recall 0, AUC50 from .51 on.", name="release"),
    ] = False


@checked
@extras_named()
def score_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[SubsetResult]]:
    """Measure scorers on each subset of the pairs, with whole pairs and with hypotheses alone.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    `progress` is called with the sentences done and their number. Raises HapaxError for an unknown scorer, a missing
    option, and pairs that all have one label.
    """
    options = options or EntailmentOptions()
    session = ScorerSession(kb, options, opening, budget, progress)
    pairs, notes = _pairs(paths, options)
    # A scorer that is named twice is measured once.
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    how = Measuring(VisibleSides(options.sides), options.twin, options.released, session.seed)
    results = list(measure(scorers, pairs, how))
    return Evaluation(results, experiment_result(results, [*notes, *session.notes]))


def _pairs(paths: Sequence[str | Path], options: EntailmentOptions) -> tuple[list[EntailmentPair], list[str]]:
    """The pairs of the files, and a note on leaks."""
    splits = read_splits(list(map(Path, paths)))
    pairs = list(chain.from_iterable(splits.values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    return pairs, [warning] if warning else []


Say = Callable[[str], None]


Load = Callable[[str | Path], SentenceClassifier]
"""Opens a base checkpoint or a saved model."""


@checked
@dataclass(frozen=True)
class TrainingOptions:
    """Options of fine-tuning: the checkpoint to start from, the prompts, and how much is tried.

    `hypothesis_only`: without premises, to expose artefacts. `draws`: sets of hyperparameters. `epochs`: passes over
    the training pairs. `frozen`: only the classification head learns. `seed`: of all random choices.
    """

    base: str
    patterns: Patterns = "directional"
    hypothesis_only: bool = False
    draws: int = 100
    epochs: int = 5
    frozen: bool = False
    seed: int = 0

    @property
    def direction(self) -> Direction:
        return Direction(self.patterns)

    @property
    def settings(self) -> TuningSettings:
        """The settings common to all draws."""
        return TuningSettings(epochs=self.epochs, frozen=self.frozen, seed=self.seed)

    def to_json(self, train: Path, dev: Path) -> dict[str, Any]:
        """The options with hashes of the data files: another file of the same name makes another training."""
        return {**asdict(self), "train": _digest(train), "dev": _digest(dev)}

    def visible(self, pairs: Sequence[EntailmentPair]) -> list[EntailmentPair]:
        """The pairs as the model sees them."""
        return [pair.hypothesis_only for pair in pairs] if self.hypothesis_only else list(pairs)


@dataclass(frozen=True, slots=True)
class DrawResult:
    """A draw of hyperparameters with its figures on dev. The draw with the best AUC50 is selected."""

    number: int
    draw: Hyperparameters
    auc50: float
    auc_norm: float
    auc_rel: float
    f1: float
    theta: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> DrawResult:
        return cls(**{**stored, "draw": Hyperparameters(**stored["draw"])})


@dataclass(frozen=True, slots=True)
class TrainingFolder:
    """The folder of a training."""

    folder: Path

    @property
    def best_folder(self) -> Path:
        return self.folder / "best"

    @property
    def is_begun(self) -> bool:
        return self._protocol_file.is_file()

    @property
    def results(self) -> list[DrawResult]:
        """The finished draws, the best on dev first."""
        finished = [DrawResult.from_json(_read(path)) for path in (self.folder / "draws").glob("*.json")]
        return sorted(finished, key=lambda result: (-result.auc50, result.number))

    @property
    def protocol(self) -> TrainingOptions:
        """The protocol in the folder. Raises HapaxError if the folder contains no training."""
        if not self.is_begun:
            raise HapaxError(
                f"{self.folder} contains no training.", Remedy("Start one with {}.", Operation("train_entailment"))
            )
        stored = _read(self._protocol_file)
        return TrainingOptions(**{field.name: stored[field.name] for field in fields(TrainingOptions)})

    @property
    def _protocol_file(self) -> Path:
        return self.folder / "protocol.json"

    @property
    def _test_file(self) -> Path:
        return self.folder / "test.json"

    def begin(self, protocol: TrainingOptions, train: Path, dev: Path) -> None:
        """Write the protocol, or check that it equals the one in the folder. The number of draws may change."""
        current = protocol.to_json(train, dev)
        if self.is_begun:
            stored = _read(self._protocol_file)
            # More draws only continue the same sequence (`run`), so they make no other training.
            changed = [name for name in current if name != "draws" and stored.get(name) != current[name]]
            if changed:
                raise HapaxError(
                    f"{self.folder} was started with a different {changed[0]}.",
                    Remedy("Name another folder with {}.", Setting("folder")),
                )
            if self._test_file.is_file() and stored["draws"] != current["draws"]:
                raise HapaxError(
                    f"{self.folder} has been tested; draws added now would be selected with knowledge of the test. "
                    "Start another folder."
                )
        (self.folder / "draws").mkdir(parents=True, exist_ok=True)
        _write(self._protocol_file, current)  # the number of draws may have grown

    def run(self, pairs: tuple[Sequence[EntailmentPair], Sequence[EntailmentPair]], load: Load, say: Say) -> None:
        """Train each unfinished draw on the first pairs, measure it on the second, and keep the weights of the best."""
        protocol = self.protocol
        train, dev = (protocol.visible(split) for split in pairs)
        cases = []
        for pair in train:
            sentences = filled(pair, protocol.direction)
            cases.append(LabelledCase(sentences.patterns, sentences.antipatterns, pair.entailed))
        results = {result.number: result for result in self.results}
        # The seed alone decides the draws, so after an interruption the same ones come again.
        for number, draw in enumerate(draws(protocol.draws, protocol.settings.seed)):
            if number in results:
                continue
            model = load(protocol.base)  # anew for each draw: training changes the weights
            rates = f"learning rate {draw.learning_rate:.2g}, weight decay {draw.weight_decay:.2g}"
            say(f"draw {number + 1} of {protocol.draws}: {rates}, {draw.accumulated} batches a step")
            model.train(cases, draw, protocol.settings, say)
            scores = pattern_scores(dev, model.probabilities, protocol.direction)
            result = _measured(number, draw, curve([pair.entailed for pair in dev], scores))
            # Strictly better: of equal draws the earlier one wins, as in `results`.
            if all(result.auc50 > earlier.auc50 for earlier in results.values()):
                model.save(self.best_folder)
            results[number] = result
            # Last, so that a draw counts as finished only once its weights are saved.
            _write(self.folder / "draws" / f"{number}.json", result.to_json())
            say(f"  AUC50 {result.auc50:.3f} on dev")

    def test(self, test: Path, pairs: Sequence[EntailmentPair], load: Load) -> dict[str, Any]:
        """Measure the best draw on the test set. Asked again, it returns the figures stored in the folder.

        Raises HapaxError while draws are missing, for the data of training or selection, and for a second test set.
        """
        protocol, stored = self.protocol, _read(self._protocol_file)
        # By content: the same file under another name is refused, too.
        digest = _digest(test)
        if digest in (stored["train"], stored["dev"]):
            raise HapaxError(f"{test}: the model was trained or selected on this file. Name a separate test set.")
        if self._test_file.is_file():
            tested = _read(self._test_file)
            if tested["test"] != digest:
                raise HapaxError(
                    f"{self.folder} has been tested on other data, and a training is tested only once. Train another."
                )
            return tested
        missing = protocol.draws - len(self.results)
        if missing:
            raise HapaxError(
                f"{self.folder}: {missing} of {protocol.draws} draws are missing, and the test comes after the last.",
                Remedy("Run the same {} again to continue.", Operation("train_entailment")),
            )
        visible = protocol.visible(pairs)
        scores = pattern_scores(visible, load(self.best_folder).probabilities, protocol.direction)
        best = self.results[0]
        figures = _measured(best.number, best.draw, curve([pair.entailed for pair in visible], scores)).to_json()
        lines = (f"{int(pair.entailed)} {score!r}\n" for pair, score in zip(visible, scores, strict=True))
        replace_file(self.folder / "test-scores.txt", "".join(lines))
        _write(self._test_file, {"test": digest, "pairs": len(visible), "dev": best.to_json(), **figures})
        return _read(self._test_file)  # as a second call returns it


def _measured(number: int, draw: Hyperparameters, measured: Curve) -> DrawResult:
    best = best_f1(measured)
    return DrawResult(
        number,
        draw,
        auc50=area_above(measured),
        auc_norm=normalised_area(measured),
        auc_rel=released_area(measured),
        f1=best.f1,
        theta=min(best.theta, 2.0),  # JSON has no infinity, and no score reaches 2
    )


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a file of premises and hypotheses.") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise HapaxError(f"{path}: not valid JSON ({fault}). Remove the file; its draw is trained again.") from None
    return content


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write the file atomically, so that a killed process leaves no partial file."""
    replace_file(path, json.dumps(content, indent=1) + "\n")


@checked
@extras_named()
def train_entailment(
    train: str | Path,
    dev: str | Path,
    folder: str | Path,
    options: TrainingOptions,
    *,
    device: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> list[DrawResult]:
    """Fine-tune a model on pairs by the paper's protocol, and return its draws, the best on dev first.

    Called again with the same folder, it resumes after the last finished draw. `progress` is called with lines of text.
    Needs the extra `local`.
    """

    say = progress or (lambda _: None)
    splits = read_pairs(Path(train)), read_pairs(Path(dev))
    # Pairs of train that are in dev, too, would make the measures too good.
    warning = leak_warning(*splits)
    if warning:
        say(warning)
    training = TrainingFolder(Path(folder))
    load = partial(SentenceClassifier.load, device=device, seed=options.seed)
    if not training.is_begun:
        load(options.base)  # before the folder is bound to a checkpoint that cannot be loaded
    # Refuses a folder that holds another training.
    training.begin(options, Path(train), Path(dev))
    training.run(splits, load, say)
    return training.results


@checked
@extras_named()
def evaluate_training(folder: str | Path, path: str | Path, *, device: str = "auto") -> dict[str, Any]:
    """Measure the best draw of a training on a test set, once, and return its figures. Needs the extra `local`."""

    load = partial(SentenceClassifier.load, device=device)
    return TrainingFolder(Path(folder)).test(Path(path), read_pairs(Path(path)), load)
