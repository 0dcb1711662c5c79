"""The review of proposed rules: proposals go into the sheet, and accepted ones into the rule file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hapax.engine.expansion.propose import Expander, ExpansionSettings, Proposal, addition_text, rule_sentence
from hapax.engine.expansion.replies import UnusableReply
from hapax.engine.expansion.rule_file import ExpansionFiles, Sources, file_text, refuse_overwrite
from hapax.engine.expansion.sheet import ACCEPT, WAITING, ReviewedProposal, ReviewSheet, entries_of
from hapax.engine.expansion.verdicts import check_addition, objection_to
from hapax.grammar.arguments import checked
from hapax.grammar.errors import Diagnostic, HapaxError
from hapax.grammar.parser import parse_addition
from hapax.grammar.rules import Library, Rule
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import replace_file
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.protocols import KNOWLEDGE, Generator
from hapax.llm_oracle.registry import open_instructed, with_journal


@dataclass(frozen=True, slots=True)
class CheckedProposal:
    """A proposal with the result of `check`. `objection`: why it cannot be accepted as it is."""

    row: ReviewedProposal
    addition: Library
    diagnostics: tuple[Diagnostic, ...]
    objection: str | None

    @property
    def rule(self) -> Rule:
        return self.addition.rules[0]

    @property
    def summary(self) -> str:
        """The result on one line."""
        if self.objection:
            return f"refused, {self.objection}"
        return "; ".join(f"{item.code}: {item.message}" for item in self.diagnostics) or "passes check"


class Review:
    """Proposals and the decisions about them. Every decision is written to disk at once.

    `library`: the rules with which the proposals are compared.
    """

    def __init__(self, sources: Sources, sheet: ReviewSheet, library: Library) -> None:
        self.sheet = sheet
        self._sources = sources
        self._library = library

    def add(self, proposals: Iterable[Proposal], model: str) -> None:
        """Add proposals to the sheet, and write it. Rows that are there already keep everything but their figures."""
        for proposal in proposals:
            text, statement = self._texts(proposal.addition)
            self.sheet.add(proposal, model, text, statement)
        # Checked anew in each run: rules that were accepted since may make a waiting one redundant.
        for row in self.sheet.decided(WAITING):
            row.verdict = self.checked(row).summary
        self.sheet.write()

    def checked(self, row: ReviewedProposal) -> CheckedProposal:
        """Check the row's rule together with the library and the rules accepted so far."""
        addition = self._addition(row)
        earlier = [self._addition(accepted) for accepted in self.sheet.decided(ACCEPT) if accepted is not row]
        diagnostics = check_addition(addition, self._library, earlier)
        return CheckedProposal(row, addition, diagnostics, objection_to(addition, diagnostics))

    def reword(self, row: ReviewedProposal, words: str) -> None:
        """Give the row's conclusion another verb, and save it. Raises HapaxError for words that are not a verb."""
        reworded = self._reworded(row, words)
        row.rules, row.statement = self._texts(reworded)
        row.verb = ""
        row.verdict = self.checked(row).summary
        self.sheet.write()

    def decide(self, row: ReviewedProposal, decision: str, by: str, note: str = "") -> None:
        """Accept or reject a proposal, and save the decision."""
        row.decision, row.by, row.note = decision, by, note or row.note
        self.sheet.write()

    def write(self) -> int:
        """Write the accepted rules to the output, and return their number. Without any, no new file is made."""
        rows = self.sheet.decided(ACCEPT)
        for row in rows:
            # A verb that a person wrote into the sheet is applied now.
            if row.verb:
                self.reword(row, row.verb)
        accepted = [(self._addition(row), _comment(row)) for row in rows]
        refuse_overwrite(self._sources.output)
        # An existing file is written even without rules: its rules may all have been rejected since.
        if accepted or self._sources.output.exists():
            replace_file(self._sources.output.resolve(), file_text(accepted, self._sources))
        return len(accepted)

    def to_json(self) -> list[dict[str, str]]:
        """The sheet's rows."""
        return [entries_of(row) for row in self.sheet.rows]

    def _reworded(self, row: ReviewedProposal, words: str) -> Library:  # noqa: ARG002  for a review that can
        raise HapaxError(
            f"Proposal {row.proposal}: a mined rule keeps its predicates, whose facts it was measured on. Empty the "
            "column verb, or edit the column rules."
        )

    def _texts(self, addition: Library) -> tuple[str, str]:
        """The addition as rule text, and its rule in words."""
        return addition_text(addition, self._library), rule_sentence(addition, self._library)

    def _addition(self, row: ReviewedProposal) -> Library:
        place = f"{self.sheet.path}, proposal {row.proposal}"
        addition = parse_addition(place, row.rules, self._library)
        if len(addition.rules) != 1 or addition.facts or addition.opposites or addition.declarations:
            raise HapaxError(f"{place}: the column rules must contain one rule and its declarations, nothing else.")
        return addition


class ExpansionReview(Review):
    """The review of the proposals that a model makes for some meta-rules."""

    def __init__(
        self,
        model: Generator,
        sources: Sources,
        metas: tuple[Rule, ...],
        sheet: ReviewSheet,
        settings: ExpansionSettings,
    ) -> None:
        self._model = model
        self._metas = metas
        self._expander = Expander(model, sources.whole, metas, settings)
        super().__init__(sources, sheet, self._expander.library)

    def propose(self) -> tuple[UnusableReply, ...]:
        """Add a proposal for each fitting data type to the sheet. Returns the replies that gave none."""
        proposals: list[Proposal] = []
        left_out: list[UnusableReply] = []
        deferrals = DeferralCollector()
        for meta in self._metas:
            with deferrals:
                expansion = self._expander.expand(meta, [proposal.addition for proposal in proposals])
                proposals += expansion.proposals
                left_out += expansion.left_out
        deferrals.raise_first()
        self.add(proposals, self._model.identity.name)
        return tuple(left_out)

    def _reworded(self, row: ReviewedProposal, words: str) -> Library:
        reworded = self._expander.reworded(self._addition(row), words)
        if isinstance(reworded, UnusableReply):
            raise HapaxError(f"Proposal {row.proposal}: {reworded.said!r} {reworded.reason}.")
        return reworded


def _comment(row: ReviewedProposal) -> str:
    note = f": {row.note}" if row.note else ""
    origin = f"{row.type} in {row.meta}, proposed by {row.model}" if row.meta else f"{row.model}: {row.remarks}"
    return f"{origin}; accepted by {row.by or 'nobody named'}{note}"


@dataclass(frozen=True)
class ProposedRules:
    """Proposals of new rules. `review` shows, decides and writes them; `left_out` are replies that gave none."""

    review: Review
    left_out: tuple[UnusableReply, ...]


@checked
def expand_rules(
    files: ExpansionFiles,
    kb: KnowledgeBase,
    model: str,
    settings: ExpansionSettings,
    opening: OpeningOptions | None = None,
) -> ProposedRules:
    """Ask a model for narrower data types of a variable and for fitting verbs, and write the proposals to the sheet.

    Decide by `review.decide(row, "accept", by)`, then call `review.write()`. The same call again asks nothing twice.
    """
    # First, so that faulty rules or an output with other content end it before anything is paid.
    sources = files.read()
    # `grown.rules` has its sheet in `grown.decisions.csv`.
    sheet = ReviewSheet(files.sheet.resolve() if files.sheet else files.output.with_suffix(".decisions.csv"))
    opening, journal = with_journal(kb, opening)
    opened = open_instructed(model, KNOWLEDGE, replace(opening, library=sources.whole))
    generator = JournaledGenerator(opened, journal, role="rules")
    review = ExpansionReview(generator, sources, sources.meta_rules(files.names), sheet, settings)
    return ProposedRules(review, review.propose())
