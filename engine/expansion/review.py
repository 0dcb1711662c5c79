"""One expansion from sources to rule file: proposals into the sheet, decisions out of it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.expansion.propose import Expander, ExpansionSettings, Proposal, addition_text, in_words
from engine.expansion.replies import LeftOut
from engine.expansion.rule_file import Sources, file_text, refuse_foreign
from engine.expansion.sheet import ACCEPT, WAITING, Row, Sheet, entries_of
from engine.expansion.verdicts import refusal, verdict
from grammar.errors import Diagnostic, HapaxError
from grammar.parser import parse_addition
from grammar.rules import Library, Rule
from llm_oracle.calls import GoingOn
from llm_oracle.protocols import Generator


@dataclass(frozen=True, slots=True)
class Offer:
    """A row as a person sees it. `against`: why it cannot be accepted as it stands."""

    row: Row
    addition: Library
    diagnostics: tuple[Diagnostic, ...]
    against: str | None

    @property
    def rule(self) -> Rule:
        return self.addition.rules[0]

    @property
    def told(self) -> str:
        """The verdict on one line."""
        findings = self.against or "; ".join(f"{one.code}: {one.message}" for one in self.diagnostics)
        return f"refused, {findings}" if self.against else findings or "passes check"


class Review:
    """Proposals for meta-rules, and what people make of them. Everything decided is on the disk at once."""

    def __init__(
        self, model: Generator, sources: Sources, metas: tuple[Rule, ...], sheet: Sheet, settings: ExpansionSettings
    ) -> None:
        self.sheet = sheet
        self._model = model
        self._sources = sources
        self._metas = metas
        self._expander = Expander(model, sources.whole, metas, settings)
        self._library = self._expander.library

    def propose(self) -> tuple[LeftOut, ...]:
        """Put a proposal for each fitting data type into the sheet; what is there already stays as it is."""
        made: list[Proposal] = []
        left_out: list[LeftOut] = []
        going_on = GoingOn()
        for meta in self._metas:
            with going_on:
                expansion = self._expander.expand(meta, [one.addition for one in made])
                made += expansion.proposals
                left_out += expansion.left_out
        going_on.settle()
        for one in made:
            text, statement = self._texts(one.addition)
            self.sheet.add(one, self._model.identity.name, text, statement)
        for row in self.sheet.decided(WAITING):
            row.verdict = self.offer(row).told
        self.sheet.write()
        return tuple(left_out)

    def offer(self, row: Row) -> Offer:
        """The row's rule with what `check` says of it beside the library and the rules accepted so far."""
        addition = self._addition(row)
        earlier = [self._addition(one) for one in self.sheet.decided(ACCEPT) if one is not row]
        found = verdict(addition, self._library, earlier)
        return Offer(row, addition, found, refusal(addition, found))

    def reword(self, row: Row, words: str) -> None:
        """Give the row's conclusion another verb, and keep it. Raises HapaxError for words that are none."""
        made = self._expander.reworded(self._addition(row), words)
        if isinstance(made, LeftOut):
            raise HapaxError(f"Proposal {row.proposal}: {made.said!r} {made.reason}.")
        row.rules, row.statement = self._texts(made)
        row.verb = ""
        row.verdict = self.offer(row).told
        self.sheet.write()

    def decide(self, row: Row, decision: str, by: str, note: str = "") -> None:
        """Accept or reject, and keep it."""
        row.decision, row.by, row.note = decision, by, note or row.note
        self.sheet.write()

    def write(self) -> int:
        """Write the accepted rules to the output, and say how many. Without any, no new file is made."""
        rows = self.sheet.decided(ACCEPT)
        for row in rows:
            if row.verb:
                self.reword(row, row.verb)
        accepted = [(self._addition(row), _comment(row)) for row in rows]
        refuse_foreign(self._sources.output)
        if accepted or self._sources.output.exists():
            self._sources.output.write_text(file_text(accepted, self._sources), encoding="utf-8")
        return len(accepted)

    def told(self) -> list[dict[str, str]]:
        """The sheet's rows, for a program."""
        return [entries_of(row) for row in self.sheet.rows]

    def _texts(self, addition: Library) -> tuple[str, str]:
        """The addition as rule text, and its rule in words."""
        return addition_text(addition, self._library), in_words(addition, self._library)

    def _addition(self, row: Row) -> Library:
        place = f"{self.sheet.path}, proposal {row.proposal}"
        addition = parse_addition(place, row.rules, self._library)
        if len(addition.rules) != 1 or addition.facts or addition.opposites:
            raise HapaxError(f"{place}: the column rules holds one rule and its declarations, nothing else.")
        return addition


def _comment(row: Row) -> str:
    note = f": {row.note}" if row.note else ""
    return f"{row.type} in {row.meta}, proposed by {row.model}; accepted by {row.by or 'nobody named'}{note}"
