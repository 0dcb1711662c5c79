"""Contents of a knowledge base, as counts, an HTML page or a dataset."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.api.evaluations import Evaluation
from hapax.api.tabular import Tabular
from hapax.api.whole_files import atomic_path
from hapax.evaluation.dataset.formats import FORMATS
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.words import counted
from hapax.kb.records import NO_USABLE_REPLY, Outcome

if TYPE_CHECKING:
    from hapax.evaluation.dataset.formats import Target
    from hapax.evaluation.dataset.selection import JudgedChoice, SelectionOptions
    from hapax.evaluation.dataset.summary import DatasetSummary
    from hapax.evaluation.report.build import Report, ReportOptions
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase


DATASET_FORMATS = tuple(FORMATS)
"""Formats of `write_dataset`."""


@dataclass(frozen=True)
class Withdrawn:
    """Counts of the withdrawn facts, and of the stored statements that no longer hold without them."""

    facts: int = 0
    statements: int = 0


@dataclass(frozen=True)
class Contents(Tabular):
    """Counts of a knowledge base, with a row for each of its tables.

    `derived`: statements stored by `derive`, by rule. `calls`: journaled calls by the role of the model.
    `refused`: role, reason and number of the calls without an answer. `outdated`: rules whose derived statements are
    from before facts changed. `sent`: requests that left for servers, those without a whole reply (`perhaps`) included.
    """

    counts: Mapping[str, int]
    derived: Mapping[str, int]
    calls: Mapping[str, int]
    refused: Sequence[tuple[str, str, int]]
    withdrawn: Withdrawn = Withdrawn()
    outdated: Sequence[str] = ()
    sent: int = 0
    perhaps: int = 0
    columns = ("table", "rows")

    def cells(self) -> list[tuple[Any, ...]]:
        """Table and number of rows."""
        return list(self.counts.items())

    @property
    def without_answer(self) -> list[str]:
        """A line for each reason why calls have no answer."""
        lines = []
        for role, reason, count in self.refused:
            is_unusable = reason.startswith(NO_USABLE_REPLY)
            why = (
                f"without a usable reply: {reason.removeprefix(NO_USABLE_REPLY)}"
                if is_unusable
                else f"refused: {reason}"
            )
            lines.append(f"{counted(count, 'call')} to the {role} model {why}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """All counts as one JSON object."""
        refused = [{"role": role, "reason": reason, "count": count} for role, reason, count in self.refused]
        return {
            **self.counts,
            "derived": self.derived,
            "outdated": list(self.outdated),
            "calls_by_role": self.calls,
            "refused": refused,
            "withdrawn": asdict(self.withdrawn),
            "requests_sent": self.sent,
            "perhaps_billed": self.perhaps,
        }


@checked
def stats(kb: KnowledgeBase) -> Contents:
    """Count the contents of a knowledge base."""
    from hapax.engine.logic.derive import outdated_rules

    # By id: a statement has a row for each run and end.
    fallen = len({statement.id for statement in kb.fallen_statements()})
    withdrawn = Withdrawn(len(kb.withdrawals()), fallen)
    outdated = outdated_rules(kb)
    outcomes = kb.attempt_counts()
    sent = sum(outcomes.values()) - outcomes.get(Outcome.UNSENT, 0) - outcomes.get(Outcome.QUEUED, 0)
    perhaps = outcomes.get(None, 0) + outcomes.get(Outcome.LOST, 0)
    return Contents(
        kb.counts(), kb.derived_counts(), kb.call_counts(), kb.refusals(), withdrawn, outdated, sent, perhaps
    )


@dataclass(frozen=True)
class ReportPage:
    """The HTML page about a run: `html` is its text, `content` its figures and statements as values."""

    content: Report
    html: str

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all. Raises HapaxError if it cannot be written."""
        with atomic_path(path) as file:
            file.write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<report of run {self.content.heading.run_id}, {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style stays inside."""
        # The plots need scripts. Without `allow-same-origin` these cannot reach the notebook around the frame.
        style = "width:100%;height:40em"
        # Escaped, since the page stands in an attribute.
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


@checked
@extras_named()
def report(kb: KnowledgeBase, rules: Library | None = None, options: ReportOptions | None = None) -> ReportPage:
    """The HTML page about a run: statements with their proofs, gates, rejected values with the reasons, and cost.

    `rules`: those that derive premises, as for `why`; None: the shipped ones. Needs the extra `evaluation`.
    """
    from hapax.api.operations import load_rules
    from hapax.evaluation.report.build import ReportOptions, build
    from hapax.evaluation.report.page import page

    content = build(kb, load_rules() if rules is None else rules, options or ReportOptions(kb.place))
    return ReportPage(content, page(content))


@checked
@extras_named()
def write_dataset(
    kb: KnowledgeBase,
    target: Target | str | Path,
    selection: SelectionOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    rules: Library | None = None,
    judged: JudgedChoice | None = None,
) -> Evaluation[DatasetSummary]:
    """Write statements as a dataset to a new or empty folder, in all formats, or as a `Target` says.

    `selection`: which statements; None: those of whole searches and imports. `progress` is called with the statements
    written so far and their total. `rules`: those of `derive`, whose statements go into `derived.jsonl`; None: those
    that the knowledge base keeps. `judged`: `drop` leaves out the statements that people deny, `mark` flips their
    labels, `keep` changes nothing; None: as `selection` says, by default `drop`. Needs the extra `evaluation`.
    """
    from dataclasses import replace

    from hapax.api.kept_rules import kept_rules
    from hapax.evaluation.dataset.build import build
    from hapax.evaluation.dataset.formats import Target
    from hapax.evaluation.dataset.selection import SelectionOptions
    from hapax.evaluation.link.lint import table_16
    from hapax.evaluation.shared.results import ExperimentResult

    if not isinstance(target, Target):
        target = Target(Path(target))
    selection = selection or SelectionOptions()
    if judged is not None:
        selection = replace(selection, judged=judged)
    summary = build(kb, target, selection, progress, rules or kept_rules(kb))
    # LINK's table 16 counts statements by domain.
    return Evaluation(
        summary, ExperimentResult([table_16(summary.tally.domains())], summary.to_json(), notes=summary.notes)
    )


@extras_named()
def check_derivation_output(output: Path) -> None:
    """Raises HapaxError if statements of a derivation could not be written to this file."""
    from hapax.evaluation.dataset.derived import check_output

    check_output(output)
