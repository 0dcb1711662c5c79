"""Sheets, from options to files: a CSV for a spreadsheet, and JSON for Label Studio."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hapax.engine.certificates import Promise
from hapax.engine.judgements import (
    DrawKind,
    cut_of,
    draw_weights,
    is_given_out,
    random_number,
)
from hapax.engine.questions.score_maps import ScoreMaps, chained_critics, fact_truths, proposed_atoms
from hapax.engine.run_memory import models_of
from hapax.engine.search.promises import StatementScores, distinct_statements, fact_scores, statement_truths
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mended_share, percent
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.evaluation.votes.voting_items import (
    FACT,
    STATEMENT,
    DrawnItems,
    ItemSource,
    SampleOptions,
    derivation_rules,
    derived_scores,
)
from hapax.evaluation.votes.voting_questions import WORDINGS, SheetKind, VotingItem, WorkedExample
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, from_options
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.exchange.csv_text import write_rows
from hapax.kb.exchange.values import refusal
from hapax.kb.files import system
from hapax.kb.files.unfinished import replace_file
from hapax.kb.judgement_records import DRAWN_ITEMS, JUDGING_DRAWS, DrawnItem, JudgingDraw
from hapax.kb.records import Distribution, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import CRITIC

DRAWN: Mapping[DrawKind, str] = {"predicates": "facts", "soundness": "statements", "derived": "derived statements"}
"""Names of what is judged, by the kind of its draw."""

ENOUGH = 1e12
"""Reach of a draw that has given out all its items."""


@checked
@dataclass(frozen=True, slots=True)
class NextOptions:
    """Options of a draw. `promise`: the one that the labels are meant for. `anew`: begin another draw."""

    kind: DrawKind
    count: int = 50
    promise: Promise = field(default_factory=Promise)
    anew: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise HapaxError(f"count is {self.count}. Ask for 1 item or more.")

    @classmethod
    def of(cls, kind: str, count: int, precision: float, anew: bool, derived: bool = False) -> NextOptions:
        """The options of a draw of `facts` or `statements` by those of the command line."""
        if derived and kind == "facts":
            raise HapaxError(
                "`derive` concludes statements.",
                Remedy("Draw statements, or omit {}.", Setting("options.sample.derived")),
            )
        statements: DrawKind = "derived" if derived else "soundness"
        return cls("predicates" if kind == "facts" else statements, count, Promise(precision), anew)


@dataclass(frozen=True, slots=True)
class JudgingPool:
    """The facts or statements that can be judged. `truths`: of those that were judged or labelled already."""

    critic: str
    probabilities: Mapping[str, float]
    truths: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class NextItems:
    """Ids to judge next, with the number of them above the cut, and the share of true items of the whole pool.

    `share`: by the labels that the draw has brought, mended for its weights; `judged`: their number.
    """

    ids: tuple[str, ...]
    above: int
    cut: float
    pool: int
    judged: int
    share: Estimate


def next_items(kb: KnowledgeBase, options: NextOptions) -> NextItems:
    """Give out the next items of the draw of a kind, which begins with the first call, and store their chances."""
    pool = judging_pool(kb, options.kind)
    probabilities = list(pool.probabilities.values())
    draw = None if options.anew else kb.first(JUDGING_DRAWS, kind=options.kind)
    # Another critic's probabilities give other weights, so its items need a draw of their own.
    if draw is None or draw.settings.get("critic") != pool.critic:
        created = system.now().isoformat(timespec="microseconds")
        cut = cut_of(probabilities, options.promise.risk)
        settings = {"critic": pool.critic, "cut": cut, "low": draw_weights(probabilities, cut)[1]}
        salt = content_id("judging", options.kind, created)
        draw = JudgingDraw(options.kind, salt, settings, 0.0, created)
    known = {item.item_id: item for item in kb.matching(DRAWN_ITEMS, salt=draw.salt)}
    cut = float(draw.settings["cut"])
    weights, _ = draw_weights(probabilities, cut, float(draw.settings["low"]))
    new = []
    for (identity, probability), weight in zip(pool.probabilities.items(), weights, strict=True):
        if identity not in known:
            # It depends on the draw's salt alone, so new items join an old draw without changing it.
            number = random_number(draw.salt, identity)
            new.append(DrawnItem(draw.salt, identity, probability, weight, number))
    items = [*known.values(), *new]
    # Priority sampling (Duffield, Lund, Thorup 2007): the smallest quotients of random number and weight come first.
    order = sorted(items, key=lambda item: item.draw / item.weight)
    waiting = [item for item in order if item.item_id in pool.probabilities and item.item_id not in pool.truths]
    chosen, later = waiting[: options.count], waiting[options.count :]
    # The first item that is not given out bounds the draw, so that each item's chance depends on the others alone.
    reach = later[0].draw / later[0].weight if later else ENOUGH
    # The reach never shrinks: what was given out stays given out, also after its labels are in.
    draw = replace(draw, reach=max(draw.reach, reach))
    kb.set_judging_draw(draw, new)
    share, judged = _share(kb, draw, items, pool.truths)
    above = sum(item.score >= cut for item in chosen)
    return NextItems(tuple(item.item_id for item in chosen), above, cut, len(items), judged, share)


def mended_lines(kb: KnowledgeBase) -> list[str]:
    """The shares of true facts and statements by the draws of `votes next`, mended for their weights, in words."""
    lines = []
    for kind, name in DRAWN.items():
        draw = kb.first(JUDGING_DRAWS, kind=kind)
        if draw is not None:
            share, judged = _share(kb, draw, kb.matching(DRAWN_ITEMS, salt=draw.salt), _truths(kb, kind))
            if judged:
                lines.append(
                    f"Of all {name} of the draw by `hapax votes next`, {percent(share)} % are true, with a 95 % "
                    f"interval: mended for its chances, by {counted(judged, 'label')}."
                )
    return lines


def judging_pool(kb: KnowledgeBase, kind: DrawKind) -> JudgingPool:
    """The facts that the last search's critic judged, or the statements that stand, with their probabilities.

    Raises HapaxError where there are none.
    """
    chains = [models_of(run).get(CRITIC) for run in kb.runs() if run.command == "search"]
    last = next(filter(None, reversed(chains)), None)
    # NAME@REVISION of the critics of the last search; none without a search.
    critics = chained_critics(str(last)) if last else []
    maps, truths = ScoreMaps.stored(kb), _truths(kb, kind)
    critic = ",".join(critics)
    if kind == "derived":
        # Without a search nothing tells one fact from another, and the draw is even.
        scores = StatementScores(kb, derivation_rules(kb), critics, maps)
        return JudgingPool(critic, derived_scores(scores), truths)
    if not critics:
        raise HapaxError(
            f"{kb.place}: no search has stored anything to judge.",
            Remedy(
                "Run {} first, or draw from what {} concluded: `hapax votes next 50 statements --derived`.",
                Operation("search"),
                Operation("derive"),
            ),
        )
    library = stored_library(kb)
    if kind == "predicates":
        critic = critics[-1]
        found = fact_scores(kb, proposed_atoms(kb, library), critic, maps)
    else:
        distinct = distinct_statements(kb, {rule.name for rule in library.rules})
        found = StatementScores(kb, library, critics, maps).scores(distinct.values())
    if not found:
        raise HapaxError(f"{kb.place}: its last critic has scored nothing to judge. Search with another.")
    return JudgingPool(critic, found, truths)


def _truths(kb: KnowledgeBase, kind: DrawKind) -> dict[str, bool]:
    """Truth by id of the facts or statements that were judged."""
    if kind == "predicates":
        return fact_truths(kb)
    return statement_truths(kb, distinct_statements(kb, {rule.name for rule in stored_library(kb).rules}))


def _share(
    kb: KnowledgeBase, draw: JudgingDraw, items: Sequence[DrawnItem], truths: Mapping[str, bool]
) -> tuple[Estimate, int]:
    """The share of true items of a draw's pool, mended for its weights, and the number of its labels."""
    # Facts that stored labels decide, which are not votes.
    labelled = {label.fact_id for label in kb.labels()} if draw.kind == "predicates" else set()
    given = [item for item in items if is_given_out(draw, item)]
    # People have not answered all that was given out yet; the answered part is taken for a random one. Labels of other
    # sources, which may well be of the true values only, are all there before and are no part of what is answered.
    asked = [item for item in given if item.item_id not in labelled]
    answered = sum(item.item_id in truths for item in asked)
    if asked and not answered:
        return NOTHING, 0
    rows = []
    for item in given:
        if item.item_id in truths:
            part = 1.0 if item.item_id in labelled else answered / len(asked)
            rows.append((item.score, truths[item.item_id], min(1.0, draw.reach * item.weight) * part))
    return mended_share([item.score for item in items], rows), len(rows)


QUALIFICATION, ITEM, INSTRUCTIONS = "qualification", "item", "instructions"
COLUMNS = (
    "sheet",
    "kind",
    "voter",
    "row",
    "rows",
    "section",
    "item",
    "question",
    "text",
    "asked",
    "choices",
    "answer",
    "comment",
)
PARTED_BY = " / "
"""Separates the choices in a cell."""


@dataclass(frozen=True, slots=True)
class VotingSheet:
    """The sheet of one person: the qualification, then items in this person's order. The voter may change the name."""

    kind: SheetKind
    voter: str
    part: int
    parts: int
    items: tuple[VotingItem, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The cells of all questions, by their columns."""
        sections = [(QUALIFICATION, example.item) for example in WORDINGS[self.kind].qualification]
        sections += [(ITEM, item) for item in self.items]
        asked = [(section, item, question) for section, item in sections for question in item.questions]
        # Of the content: a sheet that asks something else has another id.
        content = [[item.id, question.key, item.text, question.text] for _, item, question in asked]
        identity = "s-" + content_id("sheet", self.kind, self.voter, self.part, content)[:12]
        rows = []
        for number, (section, item, question) in enumerate(asked, start=1):
            rows.append(
                {
                    "sheet": identity,
                    "kind": self.kind.value,
                    "voter": self.voter,
                    "row": number,
                    "rows": len(asked),
                    "section": section,
                    "item": item.id,
                    "question": question.key,
                    "text": item.text,
                    "asked": question.text,
                    "choices": question.choices,
                }
            )
        return rows

    @property
    def name(self) -> str:
        """Name of the sheet's files, without suffix."""
        # Leading zeros keep the parts in order in a folder.
        part = f"-part-{self.part:0{len(str(self.parts))}}" if self.parts > 1 else ""
        # Any text may be a voter's name, but not a part of a file's.
        return f"{self.kind.value}{part}-{re.sub(r'[^0-9A-Za-z]+', '-', self.voter).strip('-') or 'voter'}"


def sheets(
    kind: SheetKind, items: Sequence[VotingItem], voters: Sequence[str], seed: int, per_sheet: int | None
) -> list[VotingSheet]:
    """Make a sheet for each voter, in parts of at most `per_sheet` items.

    Each voter has the items of a part in another order, so that no statement is always judged last.
    """
    # Parts are the same for all voters, so that a part's questions get votes of all.
    # Shuffled before they are cut, or the first part would hold all head statements.
    shuffled = _shuffled(items, f"{seed} parts")
    size = per_sheet or max(len(shuffled), 1)
    parts = [shuffled[start : start + size] for start in range(0, len(shuffled), size)]
    voting_sheets = []
    for number, part in enumerate(parts, start=1):
        # The voter is part of the seed, so that everybody has another order, and the same at every export.
        for voter in voters:
            in_order = tuple(_shuffled(part, f"{seed} {voter}"))
            voting_sheets.append(VotingSheet(kind, voter, number, len(parts), in_order))
    return voting_sheets


def _shuffled(items: Sequence[VotingItem], seed: str) -> list[VotingItem]:
    shuffled = list(items)
    # Seeded by a text, which Python hashes the same way in every process, unlike `hash`.
    random.Random(seed).shuffle(shuffled)  # noqa: S311  # reproducible, not secret
    return shuffled


# -- CSV


def csv_text(sheet: VotingSheet) -> str:
    """The sheet as CSV, with its instructions above the questions."""
    stream = io.StringIO()
    wording = WORDINGS[sheet.kind]
    how = "Fill in the column answer, and write your own name or number into every cell of the column voter."
    texts = (wording.title, how, *wording.instructions, *map(_example_text, wording.examples))
    # A spreadsheet keeps rows only, so instructions are rows that an import passes over.
    rows: list[dict[str, Any]] = [{"section": INSTRUCTIONS, "text": text} for text in texts]
    rows += [{**row, "choices": PARTED_BY.join(row["choices"])} for row in sheet.rows]
    lines = [[str(row.get(name, "")) for name in COLUMNS] for row in rows]
    write_rows(stream, [COLUMNS, *lines], end="\r\n", quotes_all=True)
    return stream.getvalue()


def _example_text(example: WorkedExample) -> str:
    answered = " ".join(
        f"{question.text} {answer}." for question, answer in zip(example.item.questions, example.answers, strict=True)
    )
    return f"Example: {example.item.text} {answered} {example.reason}".rstrip()


# -- Label Studio


def tasks_text(sheet: VotingSheet) -> str:
    """The sheet as tasks for Label Studio, in JSON: one for each question."""
    tasks = [{"data": {**row, "choices": [{"value": choice} for choice in row["choices"]]}} for row in sheet.rows]
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def labelling_config(kind: SheetKind) -> str:
    """The labelling interface of Label Studio for sheets of a kind, with their instructions."""
    wording = WORDINGS[kind]
    headers = []
    for text in (wording.title, *wording.instructions, *map(_example_text, wording.examples)):
        headers.append(f'  <Header value="{escape(text)}" size="5"/>\n')
    return (
        f"<View>\n{''.join(headers)}"
        '  <Text name="text" value="$text"/>\n'
        '  <Text name="asked" value="$asked"/>\n'
        '  <Choices name="answer" toName="text" value="$choices" choice="single-radio"/>\n'
        '  <TextArea name="comment" toName="text" placeholder="Comment"/>\n'
        "</View>\n"
    )


RULES_AUDITED = 3
"""Number of rules that an audit draws, as in appendix C."""


def sheet_forms(form: str) -> tuple[str, ...]:
    """The forms of sheets that `json`, `csv` or `both` names."""
    return ("json", "csv") if form == "both" else (form,)


SheetForms: TypeAlias = Annotated[
    tuple[str, ...],
    Option(
        "Format of the sheets: CSV for a spreadsheet, JSON for Label Studio.",
        name="format",
        default="both",
        choices=("json", "csv", "both"),
        read=sheet_forms,
    ),
]


@checked
@dataclass(frozen=True, slots=True)
class SheetExportOptions:
    """Options of an export. `per_sheet`: largest number of items on a sheet, or None for all on one."""

    kind: SheetKind
    sample: SampleOptions
    voters: tuple[str, ...]
    per_sheet: Annotated[int | None, Option("Largest number of items on a sheet; default: all on one.", least=1)] = None
    templates: Annotated[
        tuple[int, ...],
        Option("Number of a probing template of a baseline; repeat for more.", name="template", least=1, most=13),
    ] = (5,)
    forms: SheetForms = ("json", "csv")

    @classmethod
    def from_options(cls, kind: str, options: Mapping[str, Any]) -> SheetExportOptions:
        """Read the options of the command line."""
        rules_drawn = options["draw_rules"]
        if rules_drawn is None and kind == SheetKind.PREDICATES and not options["rule"]:
            rules_drawn = RULES_AUDITED
        # The command has checked that both are given or none.
        ends = None if options["head"] is None else (options["head"], options["long_tail"])
        # 0 asks for all rules.
        drawn = {"per_distribution": ends, "rules_drawn": rules_drawn or None, "evenly": kind == SheetKind.SOUNDNESS}
        voters = options["named"] or tuple(f"voter-{number}" for number in range(1, options["voters"] + 1))
        return from_options(
            cls, options, kind=SheetKind(kind), sample=from_options(SampleOptions, options, **drawn), voters=voters
        )


@dataclass(frozen=True, slots=True)
class SheetExportReport:
    """The files written, and the items on them."""

    paths: tuple[Path, ...]
    drawn: DrawnItems
    sheets: int

    def __str__(self) -> str:
        head, long_tail = (self.drawn.counts[distribution] for distribution in Distribution)
        judged = " that people judged" if self.drawn.judged_only else ""
        drawn = f"{head} head and {long_tail} long-tail statements{judged}"
        if self.drawn.derived:
            drawn = counted(self.drawn.derived, "derived statement")
        return f"{drawn} drawn; {counted(len(self.drawn.items), 'item')} on {counted(self.sheets, 'sheet')}"


@checked
@extras_named()
def export_sheets(kb: KnowledgeBase, options: SheetExportOptions, folder: str | Path) -> SheetExportReport:
    """Write sheets of statements, facts or LINK's questions for people to the files of a folder.

    The same knowledge base and options give the same bytes. Raises HapaxError for bad names of voters, and if there is
    nothing to ask.
    """
    check_voter_names(options.voters)
    drawn = ItemSource(kb, options.kind, options.templates).draw(options.sample)
    if not drawn.items:
        raise HapaxError(
            f"{kb.place}: there is nothing to ask on a sheet of {options.kind.value}.",
            Remedy("Draw more, omit {}, or name rules with such statements.", Setting("options.sample.unjudged")),
        )
    drawn_sheets = sheets(options.kind, drawn.items, options.voters, options.sample.seed, options.per_sheet)
    return SheetExportReport(tuple(write_sheets(drawn_sheets, options.forms, Path(folder))), drawn, len(drawn_sheets))


def export_next(
    kb: KnowledgeBase, options: NextOptions, voters: tuple[str, ...], folder: Path, forms: tuple[str, ...]
) -> tuple[NextItems, list[Path]]:
    """Give out the next items of a draw on a sheet for each voter; no files if all items are judged."""
    check_voter_names(voters)
    found = next_items(kb, options)
    if not found.ids:
        return found, []
    kind, prefix = SheetKind.SOUNDNESS, STATEMENT
    if options.kind == "predicates":
        kind, prefix = SheetKind.PREDICATES, FACT
    by_id = ItemSource(kb, kind).by_id({prefix + identity for identity in found.ids})
    items = [by_id[prefix + identity] for identity in found.ids if prefix + identity in by_id]
    if not items:
        raise HapaxError(
            f"{kb.place}: none of the {len(found.ids)} items to judge next can be read.",
            Remedy("Check the file by {}.", Operation("verify")),
        )
    return found, write_sheets(sheets(kind, items, voters, 0, None), forms, folder)


def write_sheets(voting_sheets: Sequence[VotingSheet], forms: Sequence[str], folder: Path) -> list[Path]:
    """Write each sheet in each form, with Label Studio's configuration beside JSON, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for sheet in voting_sheets:
        for form in forms:
            path = folder / f"{sheet.name}.{form}"
            # A spreadsheet takes a CSV for UTF-8 only if it begins with a byte order mark.
            text = tasks_text(sheet) if form == "json" else "\ufeff" + csv_text(sheet)
            replace_file(path, text)
            paths.append(path)
    if "json" in forms:
        for kind in sorted({sheet.kind for sheet in voting_sheets}):
            path = folder / f"{kind.value}-label-studio.xml"
            replace_file(path, labelling_config(kind))
            paths.append(path)
    return paths


def check_voter_names(voters: tuple[str, ...]) -> None:
    """Raises HapaxError for a text that cannot be a name, and for a name given twice."""
    for voter in voters:
        if not voter.strip() or refusal(voter) or voter != voter.strip():
            raise HapaxError(
                f"{voter!r} cannot be the name of a voter. Give a name or number without blanks around it."
            )
    # Without case, because file systems may ignore it in the names of the sheets.
    if len({voter.casefold() for voter in voters}) < len(voters):
        raise HapaxError(
            "Two voters have the same name.", Remedy("Give each {} a different name.", Setting("options.voters"))
        )
