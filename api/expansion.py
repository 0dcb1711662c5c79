"""Growing a library of rules: a model's proposals and people's decisions, its judgement of predicates, sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.api.rule_paths import rule_paths
from hapax.grammar.arguments import checked

if TYPE_CHECKING:
    from hapax.engine.expansion.propose import ExpansionSettings
    from hapax.engine.expansion.replies import UnusableReply
    from hapax.engine.expansion.review import Review
    from hapax.engine.expansion.rule_file import Sources
    from hapax.grammar.errors import Diagnostic
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.calls import JournaledGenerator

ACCEPT, REJECT, WAITING = "accept", "reject", ""
"""Decisions about a proposal, as in the column `decision` of the sheet; a waiting proposal has none."""


@checked
@dataclass(frozen=True)
class ExpansionFiles:
    """The files of an expansion.

    `meta`: the file of the meta-rules; `names`: those to expand, all if empty; `output`: the new rule file; `beside`:
    rule files with which the new rules will be used; `sheet`: proposals and decisions, None for a file beside `output`.
    """

    meta: Path
    output: Path
    beside: Sequence[str | Path] = ()
    names: Sequence[str] = ()
    sheet: Path | None = None

    def read(self) -> Sources:
        """Load the rules. Raises RulesRejected for faulty ones, and HapaxError if the output has other content."""
        from hapax.engine.expansion.rule_file import Sources, refuse_overwrite

        refuse_overwrite(self.output)
        return Sources.read(self.meta, tuple(rule_paths(self.beside)), self.output)


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
    from hapax.engine.expansion.review import ExpansionReview
    from hapax.engine.expansion.sheet import ReviewSheet

    # First, so that faulty rules or an output with other content end it before anything is paid.
    sources = files.read()
    # `grown.rules` has its sheet in `grown.decisions.csv`.
    sheet = ReviewSheet(files.sheet.resolve() if files.sheet else files.output.with_suffix(".decisions.csv"))
    generator = _generator(kb, sources.whole, model, opening)
    review = ExpansionReview(generator, sources, sources.meta_rules(files.names), sheet, settings)
    return ProposedRules(review, review.propose())


@checked
def lint_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> tuple[int, tuple[Diagnostic, ...]]:
    """Ask a model if predicates make sense over their types. Gives the number of predicates, and its warnings."""
    from hapax.engine.expansion.predicate_lint import lint_predicates
    from hapax.llm_oracle.calls import JournaledCritic
    from hapax.llm_oracle.protocols import CRITIC

    critic, journal = _opened(kb, rules, model, CRITIC, opening)
    return lint_predicates(rules, JournaledCritic(critic, journal, role="rules"))


@checked
def verbalise_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, declaration and notes of each predicate that lacks a sentence; the model writes what grammar cannot."""
    from hapax.engine.expansion.sentences import declarations
    from hapax.grammar.printing import signature_text
    from hapax.llm_oracle.rewriting import FormWriter

    writer = FormWriter(_generator(kb, rules, model, opening), 0 if opening is None else opening.seed)
    for signature, notes in declarations(rules, writer):
        yield signature.name, signature_text(signature), notes


def _generator(kb: KnowledgeBase, rules: Library, model: str, opening: OpeningOptions | None) -> JournaledGenerator:
    from hapax.llm_oracle.calls import JournaledGenerator
    from hapax.llm_oracle.protocols import KNOWLEDGE

    generator, journal = _opened(kb, rules, model, KNOWLEDGE, opening)
    return JournaledGenerator(generator, journal, role="rules")


def _opened(kb: KnowledgeBase, rules: Library, model: str, role: str, opening: OpeningOptions | None) -> Any:
    """The model in a role, and the journal of its calls."""
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.registry import open_instructed

    options = replace(opening or OpeningOptions(), library=rules)
    journal = options.journal or Journal(kb, retry_unusable=options.retry_unusable)
    return open_instructed(model, role, replace(options, journal=journal)), journal
