"""The web application of `hapax serve`: pages of one knowledge base, with tables as JSON and CSV, and judging.

The knowledge base is opened anew for each request, read-only unless a vote is stored. No page loads anything from
elsewhere; the only scripts are those of this folder and the report's plots. Texts of models and people are escaped.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hapax.api.agent_tools import AgentTools, AskingModels
from hapax.api.browser import pages
from hapax.api.browser import table_pages as tables
from hapax.api.browser.facets import RememberedCounts, facet_counts, facets_of, wanted_of
from hapax.api.browser.judging import ANSWER_LABELS, SHEETS, Judging, sheet_of
from hapax.api.browser.pages import Fallen, NotStored, StatementReader, StoryLine, nested, story_table
from hapax.api.browser.rendering import grouped, page_environment, plot_script, rule_map, static_text
from hapax.api.browser.runs import run_page
from hapax.api.browser.table_pages import Page, StoredTable, Wanted
from hapax.api.goal_answers import Answers, query, why, why_not
from hapax.engine.inference.theory import Theory
from hapax.engine.kept_rules import read_kept
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import PrologTerm
from hapax.engine.query_options import QueryOptions
from hapax.engine.why_not import near_misses
from hapax.evaluation.dataset.dataset_rows import rarest_word
from hapax.evaluation.votes.voting_questions import WORDINGS
from hapax.grammar.checking.library_checks import check_read
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.parser import read_texts, rule_files
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rule_paths import load_rules
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.grammar.writing.prolog_text import goal_name
from hapax.kb.exchange.csv_text import write_rows
from hapax.kb.store import KnowledgeBase
from hapax.kb.word_index import WordIndex
from hapax.llm_oracle.budget import BudgetReached

GOAL_OPTIONS = QueryOptions(QueryLimits(answers=500))
DEFAULT_KIND = "soundness"
"""The sheet of an address that names none."""
CHOSEN = ("rule", "end", "predicate", "most")
"""Conditions by which voters choose items."""
INDEX_SECONDS = 0.7
"""Seconds that a search waits for the index of words; a page that comes without it asks again."""

INDEXING = "The words of this knowledge base are being indexed, once for each start of this server."
BUSY = "Other goals are being answered, and this one would have to wait."


@dataclass
class Browser:
    """The knowledge base and its rules behind the pages, and what people may do there beyond looking.

    `rules`: files and folders; without any, the rules that the knowledge base keeps, or the shipped ones. `judge`:
    votes are stored. `asking`: asks these models what a goal
    lacks, within their budget, after a forecast. Raises HapaxError for files that cannot be opened.
    """

    database: str | Path
    rules: Sequence[str | Path] = ()
    judge: bool = False
    asking: AskingModels | None = None
    _libraries: dict[Any, tuple[Library, list[HapaxError]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What cannot be opened is refused now, and not on the first page.
        KnowledgeBase(self.database, read_only=True).close()
        self.tools = None if self.asking is None else AgentTools(self.database, self.rules, asking=self.asking)
        self.words = WordIndex(Path(self.database)) if self.tools is None else self.tools.words

    def open(self) -> KnowledgeBase:
        """The knowledge base; rows that cannot be read are left out and named."""
        kb = KnowledgeBase(self.database, read_only=True)
        kb.unreadable = {}
        return kb

    def library(self, kb: KnowledgeBase) -> Library:
        """The rules, read again only when the knowledge base keeps others. Kept ones that cannot be read are named."""
        key = tuple((record.name, record.text) for record in kb.rule_texts())
        if key not in self._libraries:
            read = None if self.rules else read_kept(kb)
            library = load_rules(*self.rules) if read is None else read.library
            faults = [] if read is None else [HapaxError(diagnostic.text) for diagnostic in read.diagnostics]
            # One library is remembered, since the knowledge base keeps one set of rules.
            self._libraries = {key: (library, faults)}
        library, faults = self._libraries[key]
        for fault in faults:
            kb.leave_out(fault, "A kept rule file cannot be read: ")
        return library

    def rule_texts(self, kb: KnowledgeBase) -> dict[str, str]:
        """The texts of the rule files by name: those of `rules`, else those that the knowledge base keeps."""
        try:
            if self.rules:
                return {str(file): file.read_text("utf-8", "replace") for file in rule_files(self.rules)}
        except OSError as fault:
            remedy = Remedy("Restore the file, or start the server with another {}.", Setting("rules"))
            raise HapaxError(f"{fault.filename}: the rules cannot be read: {fault.strerror}.", remedy) from None
        return {record.name: record.text for record in kb.rule_texts()}


def browser_app(browser: Browser) -> ASGIApp:
    """The application, for behind a guard."""
    views = _Views(browser)
    # Two goals at a time, since each takes a Prolog process, and one that asks models, since they share a budget.
    goals, asking = threading.Semaphore(2), threading.Semaphore(1)

    def asked(request: Request) -> threading.Semaphore | None:
        if request.method == "POST" or request.query_params.get("question", "").strip():
            return asking
        return goals if request.query_params.get("goal", "").strip() else None

    routes = [
        views.route("/", views.front),
        views.route("/statements", views.statements),
        # `:path`, because identities and names may contain slashes.
        views.route("/statement/{identity:path}", views.statement),
        views.route("/rule/{name:path}", views.rule),
        views.route("/rules", views.rules),
        views.route("/edit", views.edit, takes_forms=True),
        views.route("/facts", views.facts),
        views.route("/claims", views.claims),
        views.route("/predicates", views.predicates),
        views.route("/predicate/{name:path}/{arity}", views.predicate),
        views.route("/search", views.search),
        views.route("/entity", views.entity),
        views.route("/map", views.map),
        views.route("/ask", views.ask, takes_forms=True, places=asked),
        views.route("/why", views.why, places=lambda _: goals),
        views.route("/runs", views.runs),
        views.route("/run/{identity:path}", views.run, takes_forms=True),
        views.route("/judge", views.judge, takes_forms=True),
    ]
    # Read once. They need no thread, so that no page can keep another from its style.
    for place, text, media_type in (
        ("/style.css", static_text("style.css"), "text/css"),
        ("/script.js", static_text("script.js"), "text/javascript"),
        ("/plots.js", plot_script(), "text/javascript"),
    ):
        routes.append(Route(place, Response(text, media_type=media_type), methods=["GET"]))
    handlers: Mapping[Any, Any] = {HapaxError: views.fault, 404: views.absent}
    return Starlette(routes=routes, exception_handlers=handlers)


def _no_place(_: Request) -> None:
    """No limit on the pages that are made at a time."""


class _Views:
    """The pages by name. Each is made in a thread of its own from a request and the open knowledge base."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._counts = RememberedCounts(Path(browser.database))
        self._judging = Judging(Path(browser.database), self._counts, browser.library)
        self._outcomes: dict[str, str] = {}
        self._words = browser.words
        self._templates = page_environment("base.html.jinja")
        self._templates.globals |= {
            **URLS,
            "linked": _LINKS,
            "judges": browser.judge,
            "asks": browser.tools is not None,
            "database": str(browser.database),
        }

    def route(
        self,
        place: str,
        view: Callable[[Request, KnowledgeBase], Response],
        *,
        takes_forms: bool = False,
        places: Callable[[Request], threading.Semaphore | None] = _no_place,
    ) -> Route:
        """The route of a page; `places` limit how many are made at a time.

        Whoever waited for a place would wait in a thread, and no page has one when all threads wait: where all are
        taken, the page says so at once.
        """

        def answer(request: Request) -> Response:
            with self._browser.open() as kb:
                # The page names the rows that could not be read.
                request.state.unreadable = kb.unreadable
                return view(request, kb)

        async def endpoint(request: Request) -> Response:
            request.state.form = FormData()
            if request.method == "POST":
                # Read now, since only this function can wait for it.
                async with request.form() as form:
                    request.state.form = form
            room = places(request)
            if room is None:
                return await run_in_threadpool(answer, request)
            if not room.acquire(blocking=False):
                return self._waiting(request, "Busy", BUSY)
            try:
                return await run_in_threadpool(answer, request)
            finally:
                room.release()

        return Route(place, endpoint, methods=["GET", "POST"] if takes_forms else ["GET"])

    # Answers

    def _page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        # A page about an error may come before the file was opened.
        unreadable = getattr(request.state, "unreadable", ())
        page = self._templates.get_template(f"{template}.html.jinja")
        return HTMLResponse(page.render(request=request, unreadable=unreadable, **values), status)

    def _waiting(self, request: Request, title: str, message: str) -> Response:
        """A page that says why it is not there yet, and when to ask again; programs learn it from status and header."""
        again = request.method == "GET"
        page = self._page(request, "message", status=503, title=title, message=message, waits=True, again=again)
        page.headers["Retry-After"] = "2"
        return page

    def _tables(
        self,
        request: Request,
        template: str,
        title: str,
        parts: Mapping[str, StoredTable],
        data: Callable[[], Any] | None = None,
        **values: Any,
    ) -> Response:
        """A page of tables, or with `?format=json` all of them, with `?format=csv&table=...` one of them.

        `data`: what JSON has instead.
        """
        if _form(request) == "json":
            return JSONResponse({name: table.to_json() for name, table in parts.items()} if data is None else data())
        if _form(request) == "csv":
            name = request.query_params.get("table") or next(iter(parts))
            if name not in parts:
                raise HapaxError(f"This page has no table {name!r}. Choose one of {', '.join(parts)}.")
            return _csv(parts[name].columns, parts[name].rows)
        return self._page(request, template, title=title, parts=parts, address=_address(request), **values)

    def _table(self, request: Request, title: str, table: StoredTable, **values: Any) -> Response:
        """The page of one table; `values` stand around it."""
        return self._tables(request, "table", title, {"links": table}, table.to_json, table=table, **values)

    def _listed(self, request: Request, kb: KnowledgeBase, name: str, table: StoredTable) -> Response:
        """The page of a list, whose rows an address chooses by facets."""
        facets, is_counted = list[dict[str, Any]](), True
        if _form(request) == "html":
            wanted = wanted_of(request.query_params)
            counts, is_counted = self._counts.of((name, wanted), lambda kb: facet_counts(kb, name, wanted))
            facets = facets_of(kb, name, request.query_params, counts)
        return self._table(request, name.capitalize(), table, facets=facets, is_counted=is_counted)

    def fault(self, request: Request, fault: Exception) -> Response:
        """An error of Hapax as a page: 404 for what is not stored, otherwise 400."""
        if isinstance(fault, Fallen):
            return self._message(request, 410, "This statement no longer holds", str(fault))
        return self._message(request, 404 if isinstance(fault, NotStored) else 400, "Error", str(fault))

    def absent(self, request: Request, _: Exception) -> Response:
        return self._message(request, 404, "No such page", "There is no page at this address.")

    def _message(self, request: Request, status: int, title: str, message: str) -> Response:
        return self._page(request, "message", status=status, title=title, message=message, waits=False, again=False)

    # Pages

    def front(self, request: Request, kb: KnowledgeBase) -> Response:
        parts = pages.front_tables(kb)
        unjudged = self._judging.unjudged(kb, DEFAULT_KIND) if self._browser.judge else 0
        counts, title = dict(parts["counts"].rows), "What this knowledge base knows"
        return self._tables(request, "front", title, parts, counts=counts, unjudged=unjudged)

    def statements(self, request: Request, kb: KnowledgeBase) -> Response:
        wanted = wanted_of(request.query_params)
        # Without the index the statements about a value are looked for one by one.
        among = self._words.with_value if wanted.about and self._words.ready(INDEX_SECONDS) else lambda _: None
        return self._listed(request, kb, "statements", tables.statements(kb, wanted, _wanted_page(request), among))

    def facts(self, request: Request, kb: KnowledgeBase) -> Response:
        found = tables.facts(kb, wanted_of(request.query_params), _wanted_page(request))
        return self._listed(request, kb, "facts", found)

    def claims(self, request: Request, kb: KnowledgeBase) -> Response:
        """Values that models proposed, each with the verdicts of the gates."""
        found = tables.claims(kb, wanted_of(request.query_params), _wanted_page(request))
        return self._listed(request, kb, "claims", found)

    def statement(self, request: Request, kb: KnowledgeBase) -> Response:
        shown = StatementReader(kb, self._browser.library(kb)).page(request.path_params["identity"])
        return self._tables(request, "statement", shown.record.text, shown.tables(kb), shown=shown)

    def rules(self, request: Request, kb: KnowledgeBase) -> Response:
        return self._table(request, "Rules", tables.rules(kb, _wanted_page(request)))

    def rule(self, request: Request, kb: KnowledgeBase) -> Response:
        library, name = self._browser.library(kb), request.path_params["name"]
        shown = pages.rule_page(kb, library, name, URLS["statement_url"], few=_few_or_all(request))
        return self._tables(request, "rule", f"Rule {name}", {end: shown[end] for end in tables.ENDS}, shown=shown)

    def edit(self, request: Request, kb: KnowledgeBase) -> Response:
        """The text of a rule file with the faults that `hapax check` finds in it. Nothing is stored."""
        files, sent = self._browser.rule_texts(kb), request.state.form
        file = sent.get("file") or request.query_params.get("file") or next(iter(files), "my.rules")
        # A form ends its lines as Windows does.
        text = str(sent.get("text", files.get(file, ""))).replace("\r\n", "\n")
        if sent.get("form") == "file":
            name = quote(Path(file).name or "my.rules", safe="")
            return PlainTextResponse(text, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"})
        faults = check_read(read_texts({**files, file: text}.items())) if text.strip() else ()
        found = [fault for fault in faults if fault.place.file == file]
        return self._page(request, "edit", title="Edit rules", files=[*files], file=file, text=text, faults=found)

    def predicates(self, request: Request, kb: KnowledgeBase) -> Response:
        library, page = self._browser.library(kb), _wanted_page(request)
        table = tables.predicates(kb, pages.labels(kb, library), pages.derived_counts(kb, library), page)
        return self._table(request, "Predicates", table)

    def predicate(self, request: Request, kb: KnowledgeBase) -> Response:
        name, arity = request.path_params["name"], request.path_params["arity"]
        indicator = f"{name}/{arity}"
        if tables.whole_number(arity) is None:
            raise NotStored(f"There is no predicate {indicator}.")
        library = self._browser.library(kb)
        labels = pages.labels(kb, library)
        known = tables.facts(kb, Wanted(predicate=indicator), _wanted_page(request))
        if indicator not in labels and not known.rows:
            raise NotStored(f"There is no predicate {indicator}.")
        # Claims are found by the name of a predicate, whatever its arity.
        stopped = pages.rejected_claims(kb, Wanted(predicate=name), pages.FEW)
        derived = pages.derived_counts(kb, library).get(indicator, 0)
        numbers = {"fact": kb.fact_counts().get(indicator, 0), "derived atom": derived}
        found = ", ".join(grouped(number, noun) for noun, number in numbers.items() if number) or grouped(0, "fact")
        goal = f"{goal_name(name)}({', '.join(f'A{place + 1}' for place in range(int(arity)))})" if derived else ""
        shown = known if _form(request) != "html" else pages.with_columns(known, library.columns_of(name))
        says, title = labels.get(indicator, ""), f"{indicator}: {found}"
        return self._table(request, title, shown, says=says, stopped=stopped, goal=goal)

    def entity(self, request: Request, kb: KnowledgeBase) -> Response:
        name = request.query_params.get("name", "")
        if not self._words.ready(INDEX_SECONDS):
            return self._waiting(request, name, INDEXING)
        parts = pages.entity_tables(kb, name, _few_or_all(request), self._words.with_value)
        columns = {known.indicator: known.columns for known in self._browser.library(kb).signatures}
        return self._tables(request, "entity", name, parts, frequency=rarest_word([name]), columns=columns)

    def search(self, request: Request, kb: KnowledgeBase) -> Response:
        """Values and sentences that contain all words, the best first."""
        words = request.query_params.get("words", "").strip()
        if not self._words.ready(INDEX_SECONDS):
            return self._waiting(request, "Search", INDEXING)
        matches = self._words.search(words)
        parts = pages.search_tables(kb, matches)

        def data() -> dict[str, Any]:
            found = {"values": list(matches.names), "statements": parts["statements"].to_json()}
            return {**found, "value_count": matches.name_count, "statement_count": matches.row_count}

        return self._tables(request, "search", "Search", parts, data, words=words, matches=matches)

    def map(self, request: Request, kb: KnowledgeBase) -> Response:
        library = self._browser.library(kb)
        drawn = rule_map(library, URLS["rule_url"], URLS["predicate_url"])
        title, table = "Map of predicates and rules", tables.rule_links(library)
        return self._tables(request, "table", title, {"links": table}, table=table, map=drawn)

    def ask(self, request: Request, kb: KnowledgeBase) -> Response:
        """A goal, or a question in words, with its answers; a POST asks models for what it lacks."""
        if request.method == "POST":
            return self._ask_models(request)
        if request.query_params.get("question", "").strip():
            return self._question(request)
        return self._goal(request, kb)

    def _ask_models(self, request: Request) -> Response:
        """Ask models, and keep in memory how that ended, for the page that follows."""
        tools, sent = self._asking_tools(), request.state.form
        asked = {name: str(sent[name]).strip() for name in ("goal", "question") if str(sent.get(name, "")).strip()}
        if "question" in asked:
            # The reply is kept, so that the page that follows costs nothing.
            tools.answer_question(asked["question"])
        else:
            outcome = tools.ask(asked.get("goal", ""))
            # The outcome of the last goal alone, so that memory does not grow.
            said = outcome["stopped"] or "The models were asked; all that the goal needs is known now."
            self._outcomes = {asked.get("goal", ""): said}
        # 303: the browser gets the page that follows, and reloading it sends nothing again.
        return RedirectResponse(f"/ask?{urlencode(asked)}", 303)

    def _asking_tools(self) -> AgentTools:
        if self._browser.tools is None:
            raise NotStored("This server asks no model.", Remedy("Start it with {} and a budget.", Setting("models")))
        return self._browser.tools

    def _question(self, request: Request) -> Response:
        """The page of a question in words: the goal that a model has made of it with its answers, or the forecast."""
        tools, question = self._asking_tools(), request.query_params["question"].strip()
        values: dict[str, Any] = {"question": question}
        try:
            values["answered"] = answered = tools.answer_question(question, free=True)
            values["proofs"] = [nested(proof.story)[0] for proof in answered.proofs]
            if _form(request) == "json":
                return JSONResponse(answered.to_json())
        except BudgetReached:
            values["quote"] = tools.question_forecast(question)
        except HapaxError as fault:
            values["faults"] = str(fault)
        return self._page(request, "ask", title="Ask", **values)

    def _goal(self, request: Request, kb: KnowledgeBase) -> Response:
        """The page of a goal: its answers, and the forecast of what models would be asked."""
        goal, row = request.query_params.get("goal", "").strip(), _number(request, "row", 0)
        library = self._browser.library(kb)
        values: dict[str, Any] = {"goal": goal, "row": row, "starts": pages.goal_starts(kb, library)}
        try:
            answers = query(goal, library, kb, options=GOAL_OPTIONS) if goal else None
            if answers is not None and _form(request) == "json":
                return JSONResponse(answers.to_json())
            if answers is not None and _form(request) == "csv":
                return _csv(answers.columns, answers.rows)
            values["answers"] = answers
            if answers is not None and (answers or answers.holds):
                values["proofs"] = _proofs(goal, answers, row, library, kb)
            elif answers is not None:
                values["near"] = near_misses(goal, library, kb)
            if answers is not None and self._browser.tools is not None:
                values["forecast"] = self._browser.tools.forecast(goal)
        except HapaxError as fault:
            values["faults"] = str(fault)
        return self._page(request, "ask", title="Ask", outcome=self._outcomes.get(goal, ""), **values)

    def why(self, request: Request, kb: KnowledgeBase) -> Response:
        """The story of an atom: why it holds, or why it does not."""
        atom, library = request.query_params.get("atom", "").strip(), self._browser.library(kb)
        try:
            # For `why` an atom that does not hold is an error.
            explanation = why(atom, library, kb)
        except HapaxError:
            explanation = why_not(atom, library, kb)
        lines, more = nested(explanation.story)
        parts, starts = {"lines": story_table(explanation.story)}, pages.goal_starts(kb, library)
        return self._tables(request, "ask", atom, parts, goal=atom, proofs=[lines], more=more, starts=starts)

    def runs(self, request: Request, kb: KnowledgeBase) -> Response:
        return self._table(request, "Runs", tables.runs(kb, _wanted_page(request)))

    def run(self, request: Request, kb: KnowledgeBase) -> Response:
        shown = run_page(kb, request.path_params["identity"])
        return self._tables(request, "run", f"Run {shown.run.id}", shown.tables(), shown.to_json, shown=shown)

    def judge(self, request: Request, kb: KnowledgeBase) -> Response:
        """The next statement to judge; a POST stores a vote."""
        if not self._browser.judge:
            raise NotStored("This server stores no votes.", Remedy("Start it with {}.", Setting("judge")))
        if request.method == "POST":
            return self._vote(request.state.form)
        asked, judging = request.query_params, self._judging
        kind, voter, last = asked.get("kind") or DEFAULT_KIND, asked.get("voter", ""), asked.get("last", "")
        chosen, shown = {name: asked[name] for name in CHOSEN if asked.get(name)}, None
        sheet = sheet_of(kind)
        if voter:
            skip, again = _number(request, "skip", 0), asked.get("again", "")
            shown = judging.next(kb, kind, voter, wanted_of(chosen), skip=skip, again=again)
        indicators = () if voter else pages.labels(kb, self._browser.library(kb))
        return self._page(
            request,
            "judge",
            title="Judge",
            kind=kind,
            voter=voter,
            last=last,
            chosen=chosen,
            shown=shown,
            sheets=SHEETS,
            wording=WORDINGS[sheet.kind],
            labels=ANSWER_LABELS,
            replaced=asked.get("replaced"),
            here=_judging_address({**asked, "kind": kind}),
            outcome=judging.outcome(kb, last) if last else "",
            agreement=judging.agreement(kb, kind),
            rules=[] if voter else [row[0] for row in tables.rules(kb).rows],
            names=sorted({name.split("/")[0] for name in indicators}),
        )

    def _vote(self, form: FormData) -> Response:
        kind, texts = str(form.get("kind", "")) or DEFAULT_KIND, {name: str(value) for name, value in form.items()}
        replaced = self._judging.vote(kind, form)
        return RedirectResponse(_judging_address({**texts, "kind": kind})(last=texts["item"], replaced=replaced), 303)


def _proofs(goal: str, answers: Answers, row: int, library: Library, kb: KnowledgeBase) -> list[list[StoryLine]]:
    """The first lines of the proofs of an answer: of each atom that it makes ground."""
    values: dict[str, Value] = {}
    for name, value in zip(answers.columns, answers.result.rows[row] if row < len(answers.rows) else (), strict=False):
        if not isinstance(value, PrologTerm):
            values[name] = value
    proofs = []
    for atom in pages.atoms_of_answer(Theory(library, kb).goal(goal), values):
        with suppress(HapaxError):  # an atom of a part that only Prolog can answer
            proofs.append(nested(why(atom, library, kb).story)[0])
    return proofs


def _judging_address(asked: Mapping[str, str]) -> Callable[..., str]:
    """The address of the page for judging with a voter's choices, and with some parameters added."""
    kept = {name: asked[name] for name in ("voter", "kind", *CHOSEN) if asked.get(name)}

    def address(**added: object) -> str:
        return f"/judge?{urlencode(kept | {name: value for name, value in added.items() if value != ''})}"

    return address


def _form(request: Request) -> str:
    """The form of the answer: html, json or csv."""
    form = request.query_params.get("format", "html")
    return form if form in ("json", "csv") else "html"


def _wanted_page(request: Request) -> Page:
    """The part of a table that the address names; data have no pages to turn."""
    rows = tables.ROWS if _form(request) == "html" else tables.MOST_ROWS
    return Page(_number(request, "page", 1), rows, request.query_params.get("order", ""))


def _few_or_all(request: Request) -> Page:
    """The first rows of a table that a page lists, or as data all of them."""
    return Page(rows=tables.MOST_ROWS) if request.query_params.get("format") else pages.FEW


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    number = tables.whole_number(text) if text else default
    if number is None:
        raise HapaxError(f"{name} is {text!r}. Give a whole number.")
    return number


def _address(request: Request) -> Callable[..., str]:
    """The address of the same view with some parameters changed; empty ones are left out."""

    def changed(**values: object) -> str:
        asked = {name: value for name, value in {**request.query_params, **values}.items() if value != ""}
        return f"{request.url.path}?{urlencode(asked)}"

    return changed


def _below(place: str, name: object) -> str:
    """The address of a page about something; a slash in its name is no separator."""
    return f"/{place}/{quote(str(name), safe='')}"


def _with(place: str, **asked: object) -> str:
    return f"/{place}?{urlencode(asked)}"


def _predicate_url(indicator: object) -> str:
    name, slash, arity = str(indicator).rpartition("/")
    # Without an arity: of any number of arguments.
    return f"{_below('predicate', name)}/{arity}" if slash else _with("facts", predicate=indicator)


URLS: Mapping[str, Callable[..., str]] = {
    "entity_url": lambda name: _with("entity", name=name),
    "statement_url": partial(_below, "statement"),
    "rule_url": partial(_below, "rule"),
    "predicate_url": _predicate_url,
    "run_url": partial(_below, "run"),
    "why_url": lambda atom: _with("why", atom=atom),
    "statements_url": partial(_with, "statements"),
}
"""The addresses of pages by the functions of templates that give them."""

_LINKS: Mapping[str, tuple[str, Callable[..., str]]] = {
    "statement": ("id", URLS["statement_url"]),
    "rule": ("rule", URLS["rule_url"]),
    "predicate": ("predicate", URLS["predicate_url"]),
    "id": ("id", URLS["run_url"]),
}
"""Columns that lead to a page, by the column that names it."""


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    text = io.StringIO()
    cells = [[", ".join(cell) if isinstance(cell, tuple) else cell for cell in row] for row in rows]
    write_rows(text, [columns, *cells])
    return PlainTextResponse(text.getvalue(), media_type="text/csv")
