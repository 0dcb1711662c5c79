"""The review of proposed rules: proposals go into a sheet, and accepted ones into a rule file.

The sheet is a CSV file in which people decide on proposals, and which keeps their decisions. Each row is a
proposal. A person fills in `decision` (accept or reject), and may fill in `verb`, `by` and `note` and edit `rules`.
Additional columns are kept. The rule file works beside its library and is not overwritten once a person changed it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import TextIO

from hapax.engine.expansion.propose import (
    Expander,
    ExpansionSettings,
    Proposal,
    UnusableReply,
    addition_text,
    check_addition,
    objection_to,
    rule_sentence,
    with_additions,
)
from hapax.grammar.arguments import checked
from hapax.grammar.checking.library_checks import check_library
from hapax.grammar.errors import Diagnostic, HapaxError, RulesRejected, Severity
from hapax.grammar.parsing.parser import load_library, parse_addition, rule_files
from hapax.grammar.rule_paths import rule_paths
from hapax.grammar.rules import Library, PredicateSignature, Rule, type_key
from hapax.grammar.writing.printing import rule_text, signature_text
from hapax.kb.exchange.csv_text import read_cell, write_rows
from hapax.kb.files.unfinished import publish, replace_file, unfinished
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import KNOWLEDGE, Generator
from hapax.llm_oracle.registry import open_instructed, with_journal

# --- the file of accepted rules ---------------------------------------------------------------------------------------

_FIRST_LINES = (
    "# Written by `hapax rules expand`, {checksum}. Once it is changed by hand it is not written over.",
    "# Written by `hapax rules mine`, {checksum}. Once it is changed by hand it is not written over.",
)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of an expansion, or of mining, which has no meta-rules.

    `beside`: the library with which the new rules will be used; `whole`: that library with the meta-rules. `own`:
    predicates that the meta-rules use for other types than the library; the library's are left out of both.
    """

    whole: Library
    beside: Library
    meta_file: Path | None
    output: Path
    own: tuple[str, ...] = ()

    def meta_rules(self, names: Sequence[str]) -> tuple[Rule, ...]:
        """The meta-rules of these names; without names all of them."""
        meta_file = self.meta_file.resolve() if self.meta_file else None
        known = {rule.name: rule for rule in self.whole.rules if Path(rule.place.file).resolve() == meta_file}
        for name in names:
            if name not in known:
                raise HapaxError(f"{self.meta_file} has no rule {name!r}. It has {', '.join(known) or 'none'}.")
        if not known:
            raise HapaxError(f"{self.meta_file} has no rule to expand. Add a meta-rule over a wide type to it.")
        return tuple(known[name] for name in names or known)


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
        """Load the rules, without the output of an earlier run.

        Raises RulesRejected for faulty ones, and HapaxError if the output has other content.
        """
        refuse_overwrite(self.output)
        files = [file for file in rule_files(rule_paths(self.beside)) if file.resolve() != self.output.resolve()]
        # The meta-rules are among the library's files.
        if any(file.resolve() == self.meta.resolve() for file in files):
            whole = load_library(files)
            _refuse_errors(whole)
            return Sources(whole, whole, self.meta, self.output)
        meta, beside = load_library([self.meta]), load_library(files)
        own = _own_predicates(meta, beside)
        if own:
            beside = _without(beside, own)
            whole = with_additions(beside, [meta])
        else:
            whole = load_library([self.meta, *files])
        _refuse_errors(whole)
        return Sources(whole, beside, self.meta, self.output, own)


def _own_predicates(meta: Library, beside: Library) -> tuple[str, ...]:
    """Indicators of predicates that the meta-rules declare or use with types that the library's do not cover."""
    joined = replace(beside, subtypes=(*beside.subtypes, *meta.subtypes))
    known = {signature.indicator: signature for signature in beside.completed().signatures}
    own: list[str] = []
    for signature in meta.completed().signatures:
        namesake = known.get(signature.indicator)
        if namesake is None:
            continue
        pairs = zip(signature.argument_types, namesake.argument_types, strict=True)
        # A declaration has to be the same; a use only has to fit.
        if signature.declared:
            is_covered = signature.kind is namesake.kind and all(type_key(a) == type_key(b) for a, b in pairs)
        else:
            is_covered = all(joined.is_subtype(a, b) for a, b in pairs)
        if not is_covered:
            own.append(signature.indicator)
    return tuple(own)


def _without(library: Library, indicators: Sequence[str]) -> Library:
    """The library without these predicates, and without the rules and facts that use them."""
    rules: list[Rule] = []
    for rule in library.rules:
        used = {atom.indicator for atom in rule.atoms}
        if used.isdisjoint(indicators):
            rules.append(rule)
    return replace(
        library,
        rules=tuple(rules),
        signatures=tuple(item for item in library.signatures if item.indicator not in indicators),
        facts=tuple(fact for fact in library.facts if fact.indicator not in indicators),
    )


def refuse_overwrite(path: Path) -> None:
    """Raise HapaxError if Hapax did not write the file, or if a person changed it since."""
    if not path.exists():
        return
    first, _, body = path.read_text("utf-8", errors="replace").partition("\n")
    if first not in [_first_line(body, is_mined) for is_mined in (False, True)]:
        raise HapaxError(f"{path} was written or changed by hand and is not overwritten. Name another file with -o.")


def file_text(accepted: Sequence[tuple[Library, str]], sources: Sources) -> str:
    """The text of a rule file with the additions and their comments. Raises RulesRejected if they contradict."""
    additions = list(_with_own_names((addition for addition, _ in accepted), sources.beside))
    whole = with_additions(replace(sources.whole, rules=()), additions)
    signatures = _declarations(whole, sources.beside)
    blocks = [
        "\n".join(f"type {lower} < {upper}" for lower, upper in _subtypes(whole, signatures, sources.beside)),
        "\n".join(map(signature_text, signatures)),
    ]
    for rule, (_, comment) in zip(whole.rules, accepted, strict=True):
        blocks.append(f"# {_one_line(comment)}\n{rule_text(rule, whole)}")
    body = "\n" + "\n\n".join(filter(None, blocks)) + "\n"
    # Each addition was accepted alone; read back as a whole they may still clash with each other.
    _refuse_errors(with_additions(sources.beside, [parse_addition(str(sources.output), body, sources.beside)]))
    return f"{_first_line(body, sources.meta_file is None)}\n{body}"


def _refuse_errors(library: Library) -> None:
    errors = [diagnostic for diagnostic in check_library(library) if diagnostic.severity is Severity.ERROR]
    if errors:
        raise RulesRejected(errors)


def _first_line(body: str, is_mined: bool) -> str:
    # False counts as 0, the line of an expansion, and True as 1, the line of mining.
    return _FIRST_LINES[is_mined].format(checksum=content_id("rules", body)[:16])


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _with_own_names(additions: Iterable[Library], library: Library) -> Iterator[Library]:
    """The additions; a rule whose name is taken by the library or an earlier addition gets a number."""
    taken = {rule.name for rule in library.rules}
    for addition in additions:
        (rule,) = addition.rules
        names = (rule.name, *(f"{rule.name}_{number}" for number in range(2, len(taken) + 3)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        yield replace(addition, rules=(rule.named(name),))


def _declarations(whole: Library, beside: Library) -> tuple[PredicateSignature, ...]:
    """Declarations that the rules need and that the library beside them does not contain in the same form."""
    known = {item.indicator: (item.kind, item.argument_types) for item in beside.signatures if item.declared}
    used: set[str] = set()
    for rule in whole.rules:
        used.update(atom.indicator for atom in rule.atoms)
    found: list[PredicateSignature] = []
    for signature in whole.signatures:
        is_known = known.get(signature.indicator) == (signature.kind, signature.argument_types)
        if signature.declared and signature.indicator in used and not is_known:
            found.append(signature)
    return tuple(found)


def _subtypes(whole: Library, signatures: Sequence[PredicateSignature], beside: Library) -> tuple[tuple[str, str], ...]:
    """Declarations of types that the rules need and that the library beside them does not contain."""
    keys: set[str] = set()
    for signature in signatures:
        keys.update(map(type_key, signature.argument_types))
    for rule in whole.rules:
        keys.update(type_key(variable.data_type) for variable in rule.variables)
    pairs = [pair for pair in whole.subtypes if pair not in beside.subtypes]
    found: dict[tuple[str, str], None] = {}
    # A supertype may have a declared supertype itself.
    while new := [pair for pair in pairs if pair not in found and type_key(pair[0]) in keys]:
        found |= dict.fromkeys(new)
        keys |= {type_key(upper) for _, upper in new}
    return tuple(pair for pair in pairs if pair in found)


# --- the sheet --------------------------------------------------------------------------------------------------------

ACCEPT, REJECT, WAITING = "accept", "reject", ""
_READ_AS = {"": "", "accept": ACCEPT, "accepted": ACCEPT, "reject": REJECT, "rejected": REJECT}


@dataclass(slots=True)
class ReviewedProposal:
    """A row of the sheet: a proposal and the decision about it, all as text."""

    proposal: str
    decision: str = ""
    verb: str = ""
    """Another verb for the conclusion; empty again once `rules` has it."""
    by: str = ""
    note: str = ""
    meta: str = ""
    type: str = ""
    model: str = ""
    verbs: str = ""
    """Other verbs that the model proposed."""
    statement: str = ""
    verdict: str = ""
    remarks: str = ""
    """Sentences that the model failed to write."""
    rules: str = ""
    additional: dict[str, str] = field(default_factory=dict)


COLUMNS = tuple(column.name for column in fields(ReviewedProposal) if column.name != "additional")


class ReviewSheet:
    """The rows of a sheet, in the order of its file. A file that does not exist yet has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[ReviewedProposal] = []
        if not path.exists():
            return
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                for place, entries in self._entries(file):
                    self.rows.append(self._row(place, entries))
        except (UnicodeDecodeError, csv.Error) as fault:
            raise HapaxError(f"{path}: the sheet cannot be read: {fault}. Save it as CSV in UTF-8.") from fault

    def _entries(self, file: TextIO) -> Iterator[tuple[int, dict[str, str]]]:
        """Each row with the number of its last line."""
        # Cells beyond the header get the column "", which `_checked` refuses.
        reader = csv.DictReader(file, restkey="", restval="", strict=True)
        for row in reader:
            # A list, of the cells beyond the header, is refused below.
            cells = {name: read_cell(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
            yield reader.line_num, self._checked(reader.line_num, cells)

    def _checked(self, number: int, entries: Mapping[str, str]) -> dict[str, str]:
        if {"proposal", "decision", "rules"} <= set(entries) and "" not in entries:
            return dict(entries)
        raise HapaxError(
            f"{self.path}:{number}: the columns proposal, decision and rules are required, and every column needs a "
            "name. Restore the columns."
        )

    def _row(self, number: int, entries: dict[str, str]) -> ReviewedProposal:
        # `pop` leaves the additional columns in `entries`.
        row = ReviewedProposal(**{name: entries.pop(name, "") for name in COLUMNS}, additional=entries)
        decision = _READ_AS.get(row.decision.strip().lower())
        if decision is None:
            raise HapaxError(
                f"{self.path}:{number}: the decision {row.decision[:40]!r} is neither accept nor reject. Write one of "
                "them, or leave it empty to decide later."
            )
        if not row.proposal:
            raise HapaxError(f"{self.path}:{number}: the row names no proposal. Remove it.")
        if any(earlier.proposal == row.proposal for earlier in self.rows):
            raise HapaxError(f"{self.path}:{number}: proposal {row.proposal} is there twice. Remove one of the rows.")
        row.decision, row.verb = decision, row.verb.strip()
        return row

    def add(self, proposal: Proposal, model: str, rules: str, statement: str) -> None:
        """Add a row for a proposal, unless the sheet has one. Its additional columns are written in any case."""
        for row in self.rows:
            if row.proposal == proposal.id:
                row.additional |= proposal.columns
                return
        self.rows.append(
            ReviewedProposal(
                proposal.id,
                meta=proposal.meta,
                type=proposal.data_type,
                model=model,
                verbs="; ".join(proposal.verbs),
                remarks="; ".join(proposal.notes),
                statement=statement,
                rules=rules,
                additional=dict(proposal.columns),
            )
        )

    def decided(self, decision: str) -> list[ReviewedProposal]:
        """The rows with that decision."""
        return [row for row in self.rows if row.decision == decision]

    def write(self) -> None:
        """Replace the file atomically: a kill leaves the old one or the new one."""
        table = [entries_of(row) for row in self.rows]
        with unfinished(self.path) as beside:
            self._write(table, beside)
            publish(beside, self.path)

    def _write(self, table: Sequence[Mapping[str, str]], path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            columns = dict.fromkeys(chain(COLUMNS, *table))
            rows = [[entries.get(column, "") for column in columns] for entries in table]
            write_rows(file, [columns, *rows], end="\r\n")


def entries_of(row: ReviewedProposal) -> dict[str, str]:
    """The cells of a row by column."""
    entries = asdict(row)
    additional = entries.pop("additional")
    return {**entries, **additional}


# --- the review -------------------------------------------------------------------------------------------------------


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
