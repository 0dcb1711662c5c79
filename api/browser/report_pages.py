"""A report: the pages of a run, of its rules and of their statements in one file without external resources.

Its policy allows no script and no style but its own. The template engine escapes all texts of models and people.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from hapax.api.browser import table_pages as tables
from hapax.api.browser.pages import StatementPage, StatementReader, rule_page
from hapax.api.browser.rendering import page_environment, plot_script, static_text
from hapax.api.browser.runs import RunPage, run_page
from hapax.api.browser.table_pages import Page, StoredTable, Wanted
from hapax.engine.judgements import Judgements
from hapax.engine.search.promises import StoredCertificate, stored_certificates
from hapax.evaluation.shared.stored_statements import JudgedCounts, StatementChoice
from hapax.evaluation.votes.soundness import truth_lines
from hapax.evaluation.votes.voting_items import judged_derived, mended_lines
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import ChosenRules, Option
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rule_paths import load_rules
from hapax.grammar.rules import Library
from hapax.kb.connection import translated
from hapax.kb.files.whole_files import atomic_path
from hapax.kb.store import STANDING, KnowledgeBase

STATEMENTS = 5
"""Default number of statements shown per rule and distribution."""
MOST_STATEMENTS = 600
"""Default limit on the statements of a whole report, because the page of each takes about 5 kB."""
REJECTED = 20
"""Default number of rejected values shown."""


@checked
@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a report.

    `database`: the knowledge base as the user named it, for the commands in the report; `statements`: number shown per
    rule and distribution, or None for STATEMENTS, less if there are many rules.
    """

    database: str
    run_id: Annotated[
        str | None,
        Option("Run to report, by the beginning of its id; default: the run that finished last.", name="run"),
    ] = None
    rules: ChosenRules = ()
    statements: Annotated[
        int | None,
        Option("Statements to show per rule and distribution.  [default: 5, fewer if there are many rules]", least=0),
    ] = None
    rejected: Annotated[int, Option("Rejected values to show.", least=0)] = REJECTED


@dataclass(frozen=True, slots=True)
class Report:
    """The pages of a report. `run`: None for statements of `derive` without a search.

    `rule_count`: number of all rules, of which `rules` may be a selection; `statements`: those that the pages of rules
    list, by rule; `truth`: people's judgements in words.
    """

    options: ReportOptions
    run: RunPage | None
    rules: tuple[dict[str, Any], ...]
    rule_count: int
    statements: dict[str, list[StatementPage]]
    rejected: StoredTable
    certificates: tuple[StoredCertificate, ...]
    truth: tuple[str, ...]


@dataclass(frozen=True)
class ReportPage:
    """A report: `html` is its text, `content` its figures and statements as values."""

    content: Report
    html: str

    def write(self, path: str | Path) -> None:
        """Write the report to a file, whole or not at all. Raises HapaxError if it cannot be written."""
        with atomic_path(path) as file:
            file.write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        run = self.content.run
        about = "derived statements" if run is None else f"run {run.run.id}"
        return f"<report of {about}, {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        """The report in a frame, so that its style stays inside."""
        # The plots need scripts. Without `allow-same-origin` these cannot reach the notebook around the frame.
        style = "width:100%;height:40em"
        # Escaped, since the page stands in an attribute.
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


@checked
def report(kb: KnowledgeBase, rules: Library | None = None, options: ReportOptions | None = None) -> ReportPage:
    """The pages of a run, its rules and their typical statements with proofs as one HTML file.

    `rules`: those that derive premises, as for `why`; None: the shipped ones. Raises HapaxError for an unknown run, and
    for rules that are not of the run. Needs the extra `evaluation`.
    """
    library = load_rules() if rules is None else rules
    content = _content(kb, library, options or ReportOptions(kb.place))
    return ReportPage(content, _html(content))


def _content(kb: KnowledgeBase, library: Library, options: ReportOptions) -> Report:
    # Before the snapshot, in which the index of derived statements cannot be brought up to date.
    derived = JudgedCounts.of(found for _, found in judged_derived(kb, library, Judgements.stored(kb)).values())
    with _snapshot(kb):
        only_derived = options.run_id is None and not kb.runs() and any(kb.derived_counts().values())
        run = None if only_derived else run_page(kb, options.run_id)
        names = _rule_names(kb, run)
        if unknown := [name for name in options.rules if name not in names]:
            raise HapaxError(
                f"{'This knowledge base' if run is None else f'Run {run.run.id}'} has no rule {', '.join(unknown)}.",
                Remedy("Omit {} to report all {} rules.", Setting("options.rules"), len(names)),
            )
        chosen = [name for name in names if name in options.rules] if options.rules else names
        most = options.statements
        if most is None:
            # Each rule has two distributions, and keeps at least one statement of each.
            most = max(1, min(STATEMENTS, MOST_STATEMENTS // max(1, 2 * len(chosen))))
        reader = StatementReader(kb, library)
        pages: list[dict[str, Any]] = []
        statements: dict[str, list[StatementPage]] = {}
        for name in chosen:
            # The statements of dots would have no pages here.
            page = rule_page(kb, library, name, None, few=Page(rows=most), run=None if run is None else run.run)
            pages.append(page)
            rows = [*page["head"].rows, *page["long_tail"].rows]
            statements[name] = [reader.page(identity) for identity in dict.fromkeys(row[0] for row in rows)]
        run_id = "" if run is None else run.run.id
        truth = [] if run is None else list(truth_lines(kb, StatementChoice(runs=(run_id,))))
        truth += [f"Statements of `derive`: {derived.sentence()}"] if derived.judged else []
        content = Report(
            options,
            run,
            tuple(pages),
            len(names),
            statements,
            # Those with the highest scores first.
            tables.claims(kb, Wanted(run=run_id, verdict="rejected"), Page(rows=options.rejected, order="-score")),
            () if run is None else tuple(stored_certificates(kb, [run_id])),
            (*truth, *mended_lines(kb)),
        )
    # Statements of `derive` are read in snapshots of their own.
    for page in pages:
        statements[page["record"].name] += [reader.page(row[0]) for row in page["derived"].rows]
    return content


@contextmanager
def _snapshot(kb: KnowledgeBase) -> Iterator[None]:
    """Keep everything that is read inside at one moment, even while a search writes."""
    with translated(kb.place):
        # In WAL mode, a transaction that only reads sees one state of the file, and keeps no writer waiting.
        kb.connection.execute("BEGIN")
        try:
            yield
        finally:
            kb.connection.execute("ROLLBACK")


def _rule_names(kb: KnowledgeBase, run: RunPage | None) -> list[str]:
    """The rules of a search in their order there, then others with statements of the run, and those of `derive`."""
    names: list[str] = []
    if run is not None:
        searched = run.run.settings.get("rules")
        names += map(str, searched) if isinstance(searched, list) else ()
        sql = f"SELECT DISTINCT rule FROM statements WHERE run_id = ? AND {STANDING} ORDER BY rule"  # noqa: S608  ours
        names += [name for (name,) in kb.sql(sql, (run.run.id,))]
    return list(dict.fromkeys([*names, *kb.derived_counts()]))


# -- HTML


def _html(content: Report) -> str:
    """The file. Equal reports give equal texts."""
    texts = {"style": static_text("style.css"), "script": plot_script()}
    # Source expressions of the file's policy.
    digests = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in texts.items()}
    hashes = {f"{name}_hash": f"sha256-{digest}" for name, digest in digests.items()}
    environment = _environment(content)

    def part(template: str, anchor: str, title: str, shown: object, *, folded: bool = False) -> Markup:
        """The content of a page as a part of the file."""
        page = environment.get_template(f"{template}.html.jinja")
        # The template has escaped it.
        return Markup(page.render(anchor=anchor, title=title, shown=shown, folded=folded))  # noqa: S704

    parts = [] if content.run is None else [part("run", "run", f"Run {content.run.run.id}", content.run)]
    for rule in content.rules:
        name = rule["record"].name
        parts.append(part("rule", _rule_anchor(name), f"Rule {name}", rule))
        for shown in content.statements[name]:
            record = shown.record
            parts.append(part("statement", f"statement-{record.id}", record.text, shown, folded=True))
    page = environment.get_template("report/report.html.jinja")
    return page.render(report=content, version=version("hapax-kb"), parts=parts, **texts, **hashes)


def _environment(content: Report) -> Environment:
    """Templates whose links lead to other parts of the file; to pages that are not in it there are none."""
    rules = {rule["record"].name for rule in content.rules}
    run = None if content.run is None else content.run.run.id

    def rule_url(name: object) -> str:
        return f"#{_rule_anchor(str(name))}" if name in rules else ""

    environment = page_environment("report/part.html.jinja")
    environment.globals |= {
        **dict.fromkeys(("entity_url", "predicate_url", "why_url"), lambda _: ""),
        "statements_url": None,
        "statement_url": lambda identity: f"#statement-{identity}",
        "rule_url": rule_url,
        "run_url": lambda identity: "#run" if identity == run else "",
        "linked": {"rule": ("rule", rule_url)},
    }
    return environment


def _rule_anchor(name: str) -> str:
    return f"rule-{quote(name, safe='')}"
