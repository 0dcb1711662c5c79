"""The paper's training protocol: random hyperparameters, selection on dev, and a single test (section 3).

The folder of a training contains `protocol.json` (its settings), `draws/N.json` (figures of each draw on dev), `best/`
(weights of the best draw so far) and, at the end, `test.json`. A training resumes where it stopped; a test closes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from hapax.evaluation.entailment.metrics import Curve, area_above, best_f1, curve, normalised_area, released_area
from hapax.evaluation.entailment.opening import Patterns, leak_warning
from hapax.evaluation.entailment.pairs import EntailmentPair, read_pairs
from hapax.evaluation.entailment.scorers import Direction, filled, pattern_scores
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.unfinished import replace_file
from hapax.llm_oracle.finetuning import Hyperparameters, LabelledCase, SentenceClassifier, TuningSettings, draws

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
