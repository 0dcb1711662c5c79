"""The papers' experiments: each takes a knowledge base and gives its tables, its figures and the values behind them."""

from __future__ import annotations

import hashlib
import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hapax.api.tabular import Tabular
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named

if TYPE_CHECKING:
    from hapax.engine.search.progress import Progress
    from hapax.engine.search.settings import SearchSettings
    from hapax.evaluation.dataset.frozen import FrozenDataset
    from hapax.evaluation.leaderboard.board import Leaderboard, LeaderboardOptions
    from hapax.evaluation.link.ablation import AblationReport
    from hapax.evaluation.link.baselines.config import GridConfig
    from hapax.evaluation.link.baselines.grid import GridCell, GridResult
    from hapax.evaluation.link.baselines.session import InstructOptions, InstructResult
    from hapax.evaluation.link.likelihood.run import LikelihoodOptions, LikelihoodResult
    from hapax.evaluation.link.lint import LintReport
    from hapax.evaluation.link.longtail import LongTailStudy
    from hapax.evaluation.link.probing.run import ProbeOptions, ProbeResult
    from hapax.evaluation.shared.results import ExperimentResult
    from hapax.evaluation.votes.soundness import SoundnessOptions, SoundnessResult
    from hapax.evaluation.winograd.data import WinogradItem
    from hapax.evaluation.winograd.theories.measure import RuleAnswer
    from hapax.evaluation.winograd.theories.proving import Referee, Resolution
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.budget import Budget
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.protocols import LikelihoodModel, Models

V = TypeVar("V")

WRONG_SHOWN = 2
"""Wrong answers of each distribution among the details of a probe."""


@checked
@dataclass(frozen=True)
class FlippedLabels:
    """File of labels of LINT that people flipped, None for the folder's own, and the method whose labels are used."""

    path: Path | None = None
    method: str = "LINK"


@dataclass(frozen=True)
class EvaluationTable(Tabular):
    """A table of an evaluation, with the title under which the paper or the pages know it."""

    title: str
    columns: Sequence[str]
    texts: Sequence[Sequence[str]]

    def cells(self) -> Sequence[Sequence[Any]]:
        """The cells, as the command line prints them."""
        return self.texts


@dataclass(frozen=True)
class Evaluation(Generic[V]):
    """The outcome of an experiment. `value`: everything that was measured; `result`: what the command line prints."""

    value: V
    result: ExperimentResult

    @property
    def tables(self) -> list[EvaluationTable]:
        """The tables; each gives a data frame by `to_pandas()`."""
        return [EvaluationTable(table.title, tuple(table.columns), table.texts) for table in self.result.tables]

    @property
    def notes(self) -> Sequence[str]:
        """Remarks on the figures, such as what a budget left out."""
        return self.result.notes

    def to_json(self) -> Any:
        """All figures as a JSON value."""
        from hapax.evaluation.shared.results import json_value

        return json_value(self.result.figures)

    def _repr_html_(self) -> str:
        pieces = []
        for table in self.tables:
            pieces += [f"<h4>{html.escape(table.title)}</h4>", table._repr_html_()]
        return "".join(pieces)


@checked
@extras_named()
def evaluate_likelihood(
    kb: KnowledgeBase, options: LikelihoodOptions | None = None, *, journal: Journal | None = None
) -> Evaluation[LikelihoodResult]:
    """Compare how likely head and long-tail statements are: LINK's delta by rule and evaluator, and its figures.

    Without options the stored scores are compared and no model is asked. `options`: evaluators (models, such as
    `open_models(...).evaluator`), names of rules, and the folder for figures. Needs the extra `evaluation`.
    """
    from hapax.evaluation.link.likelihood.run import LikelihoodOptions, run

    measured = run(kb, options or LikelihoodOptions(), journal)
    return Evaluation(measured, measured.to_result())


@checked
@extras_named()
def evaluate_long_tail(
    kb: KnowledgeBase,
    judges: Sequence[LikelihoodModel],
    *,
    only: Sequence[str] = (),
    seed: int = 0,
    journal: Journal | None = None,
) -> Evaluation[LongTailStudy]:
    """Split the stored statements into ends by every judge and measure, and let every judge measure each split.

    `judges`: models such as those of `open_evaluators`, two or more. `only`: names of rules; without any, all. `seed`:
    orders statements with equal scores. Needs the extra `evaluation`.
    """
    from hapax.evaluation.link.longtail import study

    measured = study(kb, judges, journal, only, seed)
    return Evaluation(measured, measured.to_result())


@extras_named()
def draw_long_tail(evaluation: Evaluation[LongTailStudy], folder: Path) -> None:
    """Write the AUC of every split by every judge as PNG, SVG and CSV files."""
    from hapax.evaluation.link.longtail_figure import write_long_tail_figure

    write_long_tail_figure(evaluation.value, folder)


@extras_named()
def open_evaluators(names: Iterable[str], opening: OpeningOptions) -> list[LikelihoodModel]:
    """The models of these strings in the role of the evaluator, each once, for `LikelihoodOptions`."""
    from hapax.evaluation.link.likelihood.run import open_evaluators as open_by_name

    return open_by_name(names, opening)


@checked
@extras_named()
def import_lint(
    kb: KnowledgeBase,
    rules: Library,
    folder: str | Path,
    evaluator: LikelihoodModel,
    *,
    flips: FlippedLabels | None = None,
    journal: Journal | None = None,
) -> Evaluation[LintReport]:
    """Store the statements of LINK's dataset LINT from the CSV files of a folder and count them: LINK's table 16.

    `rules`: LINT's own; `evaluator`: the model that measures delta, such as `open_models(...).evaluator`; `flips`: file
    and method of labels that people flipped, else the folder's own file for the method LINK.
    """
    from hapax.evaluation.link import lint
    from hapax.llm_oracle.journal import Journal

    reader = lint.LintReader(rules, Path(folder))
    chosen = flips or FlippedLabels()
    # A file that the caller names, else the one that the folder brings, if any.
    own = reader.folder / lint.FLIPS_FILE
    path = chosen.path or (own if own.exists() else None)
    turned = lint.read_flips(path, chosen.method) if path else {}
    measured = lint.import_lint(kb, reader, turned, evaluator, journal or Journal(kb))
    return Evaluation(measured, measured.to_result())


@checked
@extras_named()
def evaluate_probe(
    kb: KnowledgeBase,
    options: ProbeOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
    wrong: int = WRONG_SHOWN,
) -> Evaluation[ProbeResult]:
    """Ask a model LINK's 13 questions about each statement, and score its answers. No question is asked twice.

    `options`: the model by its string, the way of asking, and the statements. `opening`: options of opening the model;
    its journal, if any, has the budget. `progress` is called with the statements done and their total. `wrong`: wrong
    answers of each distribution among the details. Needs the extra `evaluation`.
    """
    from dataclasses import replace

    from hapax.evaluation.link.probing.run import ProbeOptions, ProbeSession
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.journal import Journal

    opening = opening or OpeningOptions()
    journal = opening.journal or Journal(kb, budget, retry_unusable=opening.retry_unusable)
    session = ProbeSession(kb, options or ProbeOptions(), replace(opening, journal=journal))
    session.load()
    measured = session.probe(journal, progress)
    return Evaluation(measured, measured.to_result(wrong))


@checked
@extras_named()
def leaderboard(
    dataset: FrozenDataset | str | Path,
    options: LeaderboardOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    kb: KnowledgeBase | None = None,
    budget: Budget | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation[Leaderboard]:
    """Ask models LINK's 13 questions about the statements of a frozen dataset; compare head with long tail by model.

    `options`: the models by their strings, the way of asking, and a sample. `opening`: options of opening the models;
    its journal, if any, has the budget. `kb`: keeps the answers, so that none is asked for twice; None: in memory.
    `progress` is called with the model, the statements done and their total. `value.html` is a page. Needs the
    extra `evaluation`.
    """
    from hapax.evaluation.dataset.frozen import FrozenDataset, load_dataset
    from hapax.evaluation.leaderboard import board
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.journal import Journal

    frozen = dataset if isinstance(dataset, FrozenDataset) else load_dataset(dataset)
    opening = opening or OpeningOptions()
    journal = opening.journal or Journal(kb or KnowledgeBase(), budget, retry_unusable=opening.retry_unusable)
    measured = board.leaderboard(frozen, options or board.LeaderboardOptions(), opening, journal, progress)
    return Evaluation(measured, measured.to_result())


@checked
@extras_named()
def evaluate_soundness(
    kb: KnowledgeBase,
    options: SoundnessOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[SoundnessResult]:
    """Share of the statements that are true, by rule and over rules, from the votes on sheets of soundness.

    `options`: a model that judges the drawn statements first, if any, the draw, and the bar for rules. No question is
    asked twice. `export_sheets` writes the sheets and `import_sheets` reads them. Needs the extra `evaluation`.
    """
    from dataclasses import replace

    from hapax.evaluation.shared.stored_statements import stored_library
    from hapax.evaluation.votes import soundness
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.journal import Journal

    chosen, stopped = options or soundness.SoundnessOptions(), None
    if chosen.model is not None:
        opening = opening or OpeningOptions()
        journal = opening.journal or Journal(kb, budget, retry_unusable=opening.retry_unusable)
        opening = replace(opening, library=stored_library(kb), journal=journal)
        stopped = soundness.judge(kb, chosen, opening, journal, progress)
    measured = soundness.measure(kb, chosen, stopped)
    return Evaluation(measured, measured.to_result())


@checked
@extras_named()
def evaluate_ablation(
    rules: Library,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Evaluation[AblationReport]:
    """Search without critic, without likelihood gate and without both: LINK's tables 8 and 9 and figure 6.

    Facts are judged by the embedded model's atlas. `progress`: as for `search`. The budget of the models holds for all
    variants together; `value.reports` says which of them it ended.
    """
    from hapax.api.operations import chosen_rules, journal_of
    from hapax.engine.search.settings import SearchSettings
    from hapax.evaluation.link.ablation import Experiment, ablation
    from hapax.evaluation.link.judging import GroundTruth
    from hapax.llm_oracle.embedded.atlas import load_atlas

    atlas = load_atlas()
    experiment = Experiment(rules, chosen_rules(rules, only), models, settings or SearchSettings())
    measured = ablation(experiment, kb, GroundTruth(atlas.truth, atlas.type_truth), progress, journal_of(kb, models))
    return Evaluation(measured, measured.to_result())


@extras_named()
def draw_ablation(evaluation: Evaluation[AblationReport], models: Models, folder: Path) -> None:
    """Write LINK's figure 6 as PNG, SVG and CSV files."""
    from hapax.evaluation.link.likelihood.figures import ablation_plot, write

    write(ablation_plot(evaluation.value.reports, models.evaluator.identity.title), folder)


@checked
@extras_named()
def report_votes(kb: KnowledgeBase, failures: int | None = None) -> Evaluation[None]:
    """Count people's votes: agreement and LINK's tables 3, 4, 6, 17, 19 and 20. `failures`: wrong statements shown."""
    from dataclasses import replace

    from hapax.api.kept_rules import kept_rules
    from hapax.evaluation.votes.next_items import mended_lines
    from hapax.evaluation.votes.report import votes_result

    derived_by = kept_rules(kb) if any(kb.derived_counts().values()) else None
    result = votes_result(kb, failures, derived_by)
    return Evaluation(None, replace(result, notes=(*result.notes, *mended_lines(kb))))


@checked
@extras_named()
def evaluate_instruction(
    rules: Library,
    kb: KnowledgeBase,
    options: InstructOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Evaluation[InstructResult]:
    """Have a model write statements by instruction only, without search, critic or ranking: LINK's baseline.

    `options`: the model, the wordings and the judges. `opening`: options of opening them; its journal, if any, has the
    budget. `progress` is called with each wording's number before it is used.
    """
    from dataclasses import replace

    from hapax.api.operations import chosen_rules, sound_rules
    from hapax.evaluation.link.baselines.session import InstructOptions, run_instruct
    from hapax.llm_oracle.backend import OpeningOptions

    rules = sound_rules(rules)
    chosen = chosen_rules(rules, only)
    # A simulated model makes its world from the rules.
    opening = replace(opening or OpeningOptions(), library=rules)
    measured = run_instruct(kb, options or InstructOptions(), opening, chosen, progress)
    return Evaluation(measured, measured.to_result())


@checked
@extras_named()
def evaluate_grid(
    rules: Library,
    kb: KnowledgeBase,
    grid: GridConfig,
    opening: OpeningOptions | None = None,
    *,
    progress: Callable[[int, int, GridCell], None] | None = None,
) -> Evaluation[GridResult]:
    """Run every cell of LINK's tables 7 to 10. A cell that cannot run says why, and the others go on.

    `opening`: options of opening the models; its journal, if any, has the budget. `progress` is called with the number
    of a cell, the number of cells, and the cell.
    """
    from dataclasses import replace

    from hapax.api.operations import sound_rules
    from hapax.evaluation.link.baselines.grid import GridRun
    from hapax.llm_oracle.backend import OpeningOptions

    rules = sound_rules(rules)
    # A simulated model makes its world from the rules.
    opening = replace(opening or OpeningOptions(), library=rules)
    if grid.seed is not None:  # before the caller's seed, so that the file alone reproduces its grid
        opening = replace(opening, seed=grid.seed)
    measured = GridRun(grid, kb, opening).result(progress)
    return Evaluation(measured, measured.to_result())


# --- Winograd schemas -------------------------------------------------------------------------------------------------

METHODS = ("patterns", "reasoner")
"""Methods that resolve a pronoun by theories."""

PARTS = ("read", "unread")
"""Halves of the schemas: the reasoner was written with `read` in view; `unread` was only counted."""

# Fixed for good: another seed would put schemas that were read among the unread ones.
_SPLIT_SEED = 7


def part_of(item: WinogradItem) -> str:
    """The half of a schema, by a hash of its family, so that sentences made from one schema stay together."""
    family = item.family.rpartition(":")[2]
    return PARTS[int(hashlib.sha256(f"{_SPLIT_SEED}:{family}".encode()).hexdigest(), 16) % 2]


@checked
@extras_named()
def read_schemas(*paths: str | Path, skip_faulty: bool = False, skip_leaked: bool = False) -> list[WinogradItem]:
    """The Winograd schemas of files, in the order of the files, in any of the supported formats.

    `skip_faulty`: faulty rows are left out. `skip_leaked`: so are pairs of another source word for word, and those that
    a prompt shows as its example. Raises UnreadableItemsError.
    """
    from hapax.evaluation.winograd.files import read_items
    from hapax.evaluation.winograd.leaks import items_without_leaks

    items = []
    for path in paths:
        items += read_items(Path(path), skip_faulty=skip_faulty)
    return items_without_leaks(items) if skip_leaked else items


@checked
@extras_named()
def resolve_schemas(
    items: Sequence[WinogradItem],
    theories: str | Path | None = None,
    *,
    kb: KnowledgeBase | None = None,
    mapper: str | None = None,
    opening: OpeningOptions | None = None,
    method: str = "patterns",
) -> Evaluation[list[RuleAnswer]]:
    """Resolve the pronouns of schemas by theories, with proofs.

    `method`: `patterns` of the theories' folder, or `reasoner`, which parses sentences and abstracts entities to types;
    it needs the extra `english`, and neither `theories` nor `mapper` goes with it. `reasoner:0.9` sets the probability
    below which the reasoner is silent. `theories`: folder of theories and patterns; None: the shipped ones. `mapper`:
    model that maps sentences to atoms, instead of the patterns; it needs `kb`, which keeps its answers. `opening`:
    options of opening it; its journal, if any, has the budget, and its seed is that of the calls.
    """
    from hapax.evaluation.winograd.theories.measure import answer_all, rules_result

    method, least = _named_method(method, theories, mapper)
    if method == "reasoner":
        from hapax.evaluation.winograd.reasoner.reasoning import Reasoner

        with Reasoner(least=least) as reasoner:
            answers = answer_all(items, reasoner.resolved)
        return Evaluation(answers, rules_result(answers))
    # One Prolog process for all sentences.
    with _referee(theories) as referee:
        if mapper is None:
            answers = answer_all(items, lambda item: referee.resolve(item.text, item.options, item.pronoun))
        else:
            answers = _mapped_answers(items, referee, mapper, kb, opening)
    return Evaluation(answers, rules_result(answers))


@checked
@extras_named()
def resolve_schema_pairs(items: Sequence[WinogradItem], method: str = "reasoner") -> Evaluation[list[RuleAnswer]]:
    """Resolve the two sentences of each schema together, which mean different options, by what is known of both.

    `method`: `reasoner`, or `reasoner:0.9` with the probability of a pair below which there is no answer. Sentences
    without a partner are answered as by `resolve_schemas`.
    """
    from hapax.evaluation.winograd.reasoner.reasoning import Reasoner
    from hapax.evaluation.winograd.theories.measure import rules_result
    from hapax.evaluation.winograd.theories.pairing import answer_pairs

    name, least = _named_method(method, None, None)
    if name != "reasoner":
        raise HapaxError(f"{name!r} has no probabilities to add. Use the method 'reasoner'.")
    with Reasoner(least=least) as reasoner:
        answers = answer_pairs(items, reasoner.resolved, reasoner.least)
    return Evaluation(answers, rules_result(answers, pair_consistent=True))


def _mapped_answers(
    items: Sequence[WinogradItem],
    referee: Referee,
    mapper: str,
    kb: KnowledgeBase | None,
    opening: OpeningOptions | None,
) -> list[RuleAnswer]:
    from dataclasses import replace

    from hapax.evaluation.winograd.theories.mapping import ROLE, mapped_by
    from hapax.evaluation.winograd.theories.measure import answer_all
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.calls import JournaledGenerator
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.protocols import KNOWLEDGE
    from hapax.llm_oracle.registry import open_instructed

    opening = opening or OpeningOptions()
    journal = opening.journal
    if journal is None:
        if kb is None:
            raise HapaxError("A mapper needs a knowledge base for its answers. Give `kb`.")
        journal = Journal(kb)
    model = open_instructed(mapper, KNOWLEDGE, replace(opening, journal=journal))
    generator = JournaledGenerator(model, journal, role=ROLE)
    # All sentences in one batch: the mapping sends them before the first answer is resolved.
    return answer_all(items, mapped_by(generator, referee, items, opening.seed))


@checked
@extras_named()
def resolve_pronoun(
    sentence: str,
    options: tuple[str, str],
    *,
    pronoun: str = "",
    theories: str | Path | None = None,
    method: str = "patterns",
) -> Resolution:
    """Resolve the pronoun of a sentence by theories. `options`: the two entities that it can mean.

    `method`: as `resolve_schemas` takes it. `pronoun`: the pronoun to resolve, if the sentence has more.
    `.lines(options)` of the result is the proof in words.
    """
    # A text of two letters has the length 2 as well.
    if isinstance(options, str) or len(options) != 2:
        raise HapaxError('Give two options, such as ("ant", "crumb").')
    method, least = _named_method(method, theories, None)
    if method == "reasoner":
        from hapax.evaluation.winograd.reasoner.reasoning import Reasoner

        with Reasoner(least=least) as reasoner:
            return reasoner.resolve(sentence, (options[0], options[1]), pronoun)
    with _referee(theories) as referee:
        return referee.resolve(sentence, (options[0], options[1]), pronoun)


def _named_method(text: str, theories: str | Path | None, mapper: str | None) -> tuple[str, float | None]:
    """A method and the least probability behind its colon. Raises HapaxError for options of the other method."""
    method, _, probability = text.partition(":")
    if method not in METHODS:
        raise HapaxError(f"There is no method {method!r}. Use {' or '.join(METHODS)}.")
    if method != "reasoner" and probability:
        raise HapaxError(f"Only the reasoner estimates probabilities. Write {method!r} alone.")
    if method == "reasoner" and (theories is not None or mapper is not None):
        raise HapaxError("The reasoner has a theory and a parser of its own. Leave out `theories` and `mapper`.")
    if not probability:
        return method, None
    try:
        least = float(probability)
    except ValueError:
        # NaN fails the comparison below as well, so that both faults have one message.
        least = math.nan
    if not 0.5 <= least <= 1:
        raise HapaxError(f"{probability!r} is not a probability from 0.5 to 1. Write, for instance, `reasoner:0.9`.")
    return method, least


def _referee(theories: str | Path | None) -> Referee:
    from hapax.api.operations import load_rules, sound_rules
    from hapax.evaluation.winograd.reasoner.parsing import parser_installed
    from hapax.evaluation.winograd.reasoner.reasoning import AgreementCheck
    from hapax.evaluation.winograd.theories.patterns import load_patterns
    from hapax.evaluation.winograd.theories.proving import Referee

    # Agreement in number and gender needs the parser; without it, theories alone decide.
    agreement = AgreementCheck() if parser_installed() else None
    if theories is None:
        return Referee(agreement=agreement)
    library = load_rules(theories)
    library = sound_rules(library)
    return Referee(library, load_patterns(Path(theories).glob("*.toml")), agreement)
