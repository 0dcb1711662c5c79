"""The paper's protocol of training: hyperparameters drawn at random, the best on dev, and one test (section 3).

A folder holds a training: `protocol.json` (what it is), `draws/N.json` (each draw's figures on dev), `best/` (the
weights of the best so far) and, at the end, `test.json`. It goes on where it stopped, and is closed by its test.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evaluation.entailment.metrics import Curve, area_above, best_f1, curve, normalised_area, released_area
from evaluation.entailment.pairs import EntailmentPair
from evaluation.entailment.prompts import Direction, filled
from evaluation.entailment.scorers import PatternScorer
from grammar.errors import HapaxError
from llm_oracle.finetuning import Case, Draw, TuningSettings, draws

Say = Callable[[str], None]


class Tunable(Protocol):
    """What is trained; `SentenceClassifier` is one."""

    def train(self, cases: Sequence[Case], draw: Draw, settings: TuningSettings, say: Say) -> None:
        """Learn the cases."""

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        """P(holds) of each sentence."""

    def save(self, folder: Path) -> None:
        """Write it."""


Load = Callable[[str | Path], Tunable]
"""Opens a base checkpoint or a saved one."""


@dataclass(frozen=True, slots=True)
class Protocolled:
    """What decides the outcome of a training. `hypothesis_only`: it learns and is measured without premises."""

    base: str
    direction: Direction = Direction.DIRECTIONAL
    hypothesis_only: bool = False
    draws: int = 100
    settings: TuningSettings = field(default_factory=TuningSettings)

    def to_json(self, train: Path, dev: Path) -> dict[str, Any]:
        """With the data's hashes, so that another file of the same name is another training."""
        return {
            **asdict(self),
            "direction": self.direction.value,
            "train": _digest(train),
            "dev": _digest(dev),
        }

    def shown(self, pairs: Sequence[EntailmentPair]) -> list[EntailmentPair]:
        """The pairs as the model gets to see them."""
        return [one.hypothesis_only for one in pairs] if self.hypothesis_only else list(pairs)


@dataclass(frozen=True, slots=True)
class DrawResult:
    """One draw and what it got on dev; AUC50 is what chooses."""

    number: int
    draw: Draw
    auc50: float
    auc_norm: float
    auc_rel: float
    f1: float
    theta: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> DrawResult:
        return cls(**{**told, "draw": Draw(**told["draw"])})


@dataclass(frozen=True, slots=True)
class Training:
    """One training's folder."""

    folder: Path

    @property
    def best_folder(self) -> Path:
        return self.folder / "best"

    @property
    def is_begun(self) -> bool:
        return self._protocol_file.is_file()

    @property
    def results(self) -> list[DrawResult]:
        """The draws that are done, the best on dev first."""
        found = [DrawResult.from_json(_read(path)) for path in (self.folder / "draws").glob("*.json")]
        return sorted(found, key=lambda one: (-one.auc50, one.number))

    @property
    def protocol(self) -> Protocolled:
        """What the folder was begun with. Raises HapaxError where it holds no training."""
        if not self.is_begun:
            raise HapaxError(f"{self.folder} holds no training. `hapax evaluate entailment train` begins one.")
        told = _read(self._protocol_file)
        return Protocolled(
            told["base"],
            Direction(told["direction"]),
            told["hypothesis_only"],
            told["draws"],
            TuningSettings(**told["settings"]),
        )

    @property
    def _protocol_file(self) -> Path:
        return self.folder / "protocol.json"

    @property
    def _test_file(self) -> Path:
        return self.folder / "test.json"

    def begin(self, protocol: Protocolled, train: Path, dev: Path) -> None:
        """Write down what is trained, or see that it is the same. More draws than before may be asked for."""
        told = protocol.to_json(train, dev)
        if self.is_begun:
            was = _read(self._protocol_file)
            other = [name for name in told if name != "draws" and was.get(name) != told[name]]
            if other:
                raise HapaxError(
                    f"{self.folder} was begun with another {other[0]}. Name a folder of its own with --out."
                )
            if self._test_file.is_file() and was["draws"] != told["draws"]:
                raise HapaxError(
                    f"{self.folder} has been tested: more draws would be chosen knowing the test. Begin another folder."
                )
        (self.folder / "draws").mkdir(parents=True, exist_ok=True)
        _write(self._protocol_file, told)

    def run(self, pairs: tuple[Sequence[EntailmentPair], Sequence[EntailmentPair]], load: Load, say: Say) -> None:
        """Train each draw that is not done on the first pairs, measure it on the second, keep the best's weights."""
        protocol = self.protocol
        train, dev = (protocol.shown(some) for some in pairs)
        cases = [_case(pair, protocol.direction) for pair in train]
        done = {one.number: one for one in self.results}
        for number, draw in enumerate(draws(protocol.draws, protocol.settings.seed)):
            if number in done:
                continue
            model = load(protocol.base)
            say(f"draw {number + 1} of {protocol.draws}: {_told(draw)}")
            model.train(cases, draw, protocol.settings, say)
            result = _measured(number, draw, _curve(model, dev, protocol.direction))
            if all(result.auc50 > one.auc50 for one in done.values()):
                model.save(self.best_folder)
            done[number] = result
            _write(self.folder / "draws" / f"{number}.json", result.to_json())
            say(f"  AUC50 {result.auc50:.3f} on dev")

    def test(self, test: Path, pairs: Sequence[EntailmentPair], load: Load) -> dict[str, Any]:
        """The best draw's figures on the test set, once: asked again, the same figures are read from the folder.

        Raises HapaxError while draws are missing, for data that was trained or chosen on, and for a second test set.
        """
        protocol, told = self.protocol, _read(self._protocol_file)
        digest = _digest(test)
        if digest in (told["train"], told["dev"]):
            raise HapaxError(f"{test} is what the model was trained or chosen on. Name a test set of its own.")
        if self._test_file.is_file():
            was = _read(self._test_file)
            if was["test"] != digest:
                raise HapaxError(f"{self.folder} has been tested on other data, and it is tested once. Train another.")
            return was
        missing = protocol.draws - len(self.results)
        if missing:
            raise HapaxError(
                f"{self.folder} lacks {missing} of {protocol.draws} draws, and the test comes last. `hapax evaluate "
                "entailment train` goes on."
            )
        shown = protocol.shown(pairs)
        scores = PatternScorer("", load(self.best_folder).probabilities, protocol.direction).scores(shown)
        best = self.results[0]
        one = curve([pair.entailed for pair in shown], scores)
        figures = _measured(best.number, best.draw, one).to_json()
        lines = (f"{int(pair.entailed)} {score!r}\n" for pair, score in zip(shown, scores, strict=True))
        (self.folder / "test-scores.txt").write_text("".join(lines), "utf-8")
        _write(self._test_file, {"test": digest, "pairs": len(shown), "dev": best.to_json(), **figures})
        return _read(self._test_file)


def _case(pair: EntailmentPair, direction: Direction) -> Case:
    one = filled(pair, direction)
    return Case(one.patterns, one.antipatterns, pair.entailed)


def _curve(model: Tunable, pairs: Sequence[EntailmentPair], direction: Direction) -> Curve:
    scores = PatternScorer("", model.probabilities, direction).scores(pairs)
    return curve([pair.entailed for pair in pairs], scores)


def _measured(number: int, draw: Draw, one: Curve) -> DrawResult:
    best = best_f1(one)
    return DrawResult(
        number, draw, area_above(one), normalised_area(one), released_area(one), best.f1, min(best.theta, 2.0)
    )


def _told(draw: Draw) -> str:
    rates = f"learning rate {draw.learning_rate:.2g}, weight decay {draw.weight_decay:.2g}"
    return f"{rates}, {draw.accumulated} batches a step"


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a file of premises and hypotheses.") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise HapaxError(f"{path}: no JSON ({fault}). Take the file out; its draw is trained again.") from None
    return told


def _write(path: Path, told: dict[str, Any]) -> None:
    """Whole or not at all, so that a kill leaves no half of a file."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    unfinished.rename(path)
