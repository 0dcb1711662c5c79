"""The web application of `hapax serve`: pages of one knowledge base, with tables as JSON and CSV, and judging.

The knowledge base is opened anew for each request, read-only unless a vote is stored. No page loads anything from
elsewhere; the only scripts are those of this folder and the report's plots. Texts of models and people are escaped.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hapax.api.agent_tools import AgentTools, AskingModels
from hapax.api.browser import pages
from hapax.api.browser import table_pages as tables
from hapax.api.browser.facets import Facet, Facets, RememberedCounts, facet_counts, wanted_of
from hapax.api.browser.guard import Access, Guard
from hapax.api.browser.judging import ANSWER_LABELS, Cells, Judging
from hapax.api.browser.plot_values import rule_map
from hapax.api.browser.rendering import grouped, page_environment, plot_script, static_text
from hapax.api.browser.runs import ask_run, run_page
from hapax.api.browser.statement_pages import Fallen, NotStored, StatementReader, StoryLine, nested, story_table
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
from hapax.evaluation.winograd.schema_export import schema_items
from hapax.grammar.checking.library_checks import check_read
from hapax.grammar.errors import HapaxError
from hapax.grammar.goal_language import goal_name
from hapax.grammar.parsing.parser import read_texts, rule_files
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rule_paths import load_rules
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.kb.exchange.csv_text import write_rows
from hapax.kb.files.running_search import Wish
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

NOTHING_ASKED: Mapping[str, Any] = {
    **dict.fromkeys(("answers", "answered", "forecast", "quote")),
    **dict.fromkeys(("question", "goal", "faults", "outcome"), ""),
    "near": (),
    "proofs": (),
    "starts": (),
    "row": 0,
    "more": 0,
}
"""The values of the page for asking before anything is asked."""

_WISHES: Mapping[str, Wish | None] = {"pause": Wish.PAUSE, "go on": None, "end": Wish.END}
"""Requests to a running search by the word on their buttons."""


@dataclass
class Browser:
    """The knowledge base and its rules behind the pages, and what people may do there beyond looking.

    `rules`: files and folders; without any, the rules that the knowledge base keeps, or the shipped ones. `judge`:
    votes are stored. `control`: running searches can be paused and ended. `asking`: asks these models what a goal
    lacks, within their budget, after a forecast. `schemas`: a file of Winograd schemas, which can then be judged, too.
    Raises HapaxError for files that cannot be opened.
    """

    database: str | Path
    rules: Sequence[str | Path] = ()
    judge: bool = False
    control: bool = False
    asking: AskingModels | None = None
    schemas: Path | None = None
    _libraries: dict[Any, tuple[Library, list[HapaxError]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What cannot be opened is refused now, and not on the first page.
        KnowledgeBase(self.database, read_only=True).close()
        self.items = {} if self.schemas is None else schema_items(self.schemas)
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
            # One library is remembered, since the knowledge base keeps one set of rules.
            self._libraries = {key: self._read(kb)}
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

    def _read(self, kb: KnowledgeBase) -> tuple[Library, list[HapaxError]]:
        if self.rules:
            return load_rules(*self.rules), []
        read = read_kept(kb)
        if read is None:
            return load_rules(), []
        return read.library, [HapaxError(diagnostic.text) for diagnostic in read.diagnostics]


def browser_app(browser: Browser, access: Access) -> ASGIApp:
    """The application, which answers whoever has access."""
    views = _Views(browser)
    routes = [
        Route("/", views.front),
        Route("/statements", views.filtered("statements", views.statements)),
        # `:path`, because identities and names may contain slashes.
        Route("/statement/{identity:path}", views.statement),
        Route("/rule/{name:path}", views.rule),
        Route("/rules", views.rules),
        Route("/edit", views.edit, methods=["GET", "POST"]),
        Route("/facts", views.filtered("facts", tables.facts)),
        # Values that models proposed, each with the verdicts of the gates.
        Route("/claims", views.filtered("claims", tables.claims)),
        Route("/predicates", views.predicates),
        Route("/predicate/{name:path}/{arity}", views.predicate),
        Route("/search", views.search),
        Route("/entity", views.entity),
        Route("/map", views.map),
        Route("/ask", views.ask, methods=["GET", "POST"]),
        Route("/why", views.why),
        Route("/runs", views.runs),
        Route("/run/{identity:path}", views.run, methods=["GET", "POST"]),
        Route("/judge", views.judge, methods=["GET", "POST"]),
        *_files(),
    ]
    handlers: Mapping[Any, Any] = {HapaxError: views.fault, 404: views.absent}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access)


def _files() -> Iterator[Route]:
    """The style sheet and scripts, read once. They need no thread, so that no page can keep another from its style."""
    texts = {
        "/style.css": (static_text("style.css"), "text/css"),
        "/script.js": (static_text("script.js"), "text/javascript"),
        "/plots.js": (plot_script(), "text/javascript"),
    }
    for place, (text, media_type) in texts.items():
        yield Route(place, Response(text, media_type=media_type), methods=["GET"])


class _Views:
    """The pages by name. Each function is run in a thread of its own."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._counts = RememberedCounts(Path(browser.database))
        self._judging = Judging(Path(browser.database), self._counts, browser.library, browser.items)
        self._outcomes: dict[str, str] = {}
        # Two goals at a time, since each takes a Prolog process, and one that asks models, since they share a budget.
        self._goals, self._asking = threading.Semaphore(2), threading.Semaphore(1)
        self._words = browser.words
        self._templates = page_environment("base.html.jinja")
        self._templates.globals |= {
            "entity_url": _entity_url,
            "statement_url": _statement_url,
            "rule_url": _rule_url,
            "predicate_url": _predicate_url,
            "run_url": _run_url,
            "why_url": _why_url,
            "statements_url": _statements_url,
            "linked": _LINKS,
            "judges": browser.judge,
            "asks": browser.tools is not None,
            "controls": browser.control,
            "database": str(browser.database),
        }

    # Answers

    @contextmanager
    def _open(self, request: Request) -> Iterator[KnowledgeBase]:
        """The knowledge base for a request, whose page names the rows that could not be read."""
        with self._browser.open() as kb:
            request.state.unreadable = kb.unreadable
            yield kb

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

    async def _unless_busy(
        self, places: threading.Semaphore, request: Request, answer: Callable[[Request], Response]
    ) -> Response:
        """The answer from a thread; where all places are taken, a page that says so, at once.

        Whoever waited for a place would wait in a thread, and no page has one when all threads wait.
        """
        if not places.acquire(blocking=False):
            return self._waiting(request, "Busy", BUSY)
        try:
            return await run_in_threadpool(answer, request)
        finally:
            places.release()

    def _table(
        self, request: Request, title: str, read: Callable[[KnowledgeBase, Page], StoredTable], listed: str = ""
    ) -> Response:
        """A table as a page or as data. `listed`: the list of `facets` that it is."""
        asked, facets, is_counted = request.query_params, list[Facet](), True
        with self._open(request) as kb:
            table = read(kb, _wanted_page(request))
            if listed and _form(request) == "html":
                wanted = wanted_of(asked)
                counts, is_counted = self._counts.of((listed, wanted), lambda kb: facet_counts(kb, listed, wanted))
                facets = Facets(kb, asked, counts).of(listed)
        return self._listed(request, title, table, table.to_json, facets=facets, is_counted=is_counted)

    def _listed(
        self, request: Request, title: str, table: StoredTable, data: Callable[[], Any] | None = None, **values: Any
    ) -> Response:
        """The page of a table. `says`, `stopped` and `map` stand around those that have them."""
        parts: dict[str, Any] = {"facets": [], "is_counted": True, "says": "", "stopped": None, "map": None, "goal": ""}
        return self._with_tables(request, "table", title, {"links": table}, data, table=table, **parts | values)

    def _with_tables(
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
            return PlainTextResponse(_csv(parts[name]), media_type="text/csv")
        return self._page(request, template, title=title, parts=parts, address=_address(request), **values)

    @staticmethod
    def _few_or_all(request: Request) -> Page:
        """The first rows of a table that a page lists, or as data all of them."""
        return Page(rows=tables.MOST_ROWS) if request.query_params.get("format") else pages.FEW

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

    def front(self, request: Request) -> Response:
        with self._open(request) as kb:
            parts = pages.front_tables(kb)
            unjudged = self._judging.unjudged(kb, DEFAULT_KIND) if self._browser.judge else 0
        counts = dict(parts["counts"].rows)
        title = "What this knowledge base knows"
        return self._with_tables(request, "front", title, parts, counts=counts, unjudged=unjudged)

    def filtered(
        self, name: str, read: Callable[[KnowledgeBase, Wanted, Page], StoredTable]
    ) -> Callable[[Request], Response]:
        """The page of a list whose rows an address chooses."""

        def view(request: Request) -> Response:
            wanted = wanted_of(request.query_params)
            return self._table(request, name.capitalize(), lambda kb, page: read(kb, wanted, page), name)

        return view

    def statements(self, kb: KnowledgeBase, wanted: Wanted, page: Page) -> StoredTable:
        # Without the index the statements about a value are looked for one by one.
        among = self._words.with_value if wanted.about and self._words.ready(INDEX_SECONDS) else lambda _: None
        return tables.statements(kb, wanted, page, among)

    def statement(self, request: Request) -> Response:
        with self._open(request) as kb:
            shown = StatementReader(kb, self._browser.library(kb)).page(request.path_params["identity"])
            parts = shown.tables(kb)
        return self._with_tables(request, "statement", shown.statement.record.text, parts, shown=shown)

    def rules(self, request: Request) -> Response:
        return self._table(request, "Rules", tables.rules)

    def rule(self, request: Request) -> Response:
        with self._open(request) as kb:
            library, name = self._browser.library(kb), request.path_params["name"]
            shown = pages.rule_page(kb, library, name, _statement_url, few=self._few_or_all(request))
        parts = {"head": shown.head, "long_tail": shown.long_tail, "derived": shown.derived}
        return self._with_tables(request, "rule", f"Rule {shown.record.name}", parts, shown=shown)

    async def edit(self, request: Request) -> Response:
        """The text of a rule file with the faults that `hapax check` finds in it. Nothing is stored."""
        sent: dict[str, str] = {}
        if request.method == "POST":
            async with request.form() as form:
                # A form ends its lines as Windows does.
                sent = {name: str(value).replace("\r\n", "\n") for name, value in form.items()}
        return await run_in_threadpool(self._edit, request, sent)

    def _edit(self, request: Request, sent: Mapping[str, str]) -> Response:
        with self._open(request) as kb:
            files = self._browser.rule_texts(kb)
        file = sent.get("file") or request.query_params.get("file") or next(iter(files), "my.rules")
        text = sent.get("text", files.get(file, ""))
        if sent.get("form") == "file":
            name = quote(Path(file).name or "my.rules", safe="")
            return PlainTextResponse(text, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"})
        faults = check_read(read_texts({**files, file: text}.items())) if text.strip() else ()
        found = [fault for fault in faults if fault.place.file == file]
        return self._page(request, "edit", title="Edit rules", files=[*files], file=file, text=text, faults=found)

    def predicates(self, request: Request) -> Response:
        def read(kb: KnowledgeBase, page: Page) -> StoredTable:
            library = self._browser.library(kb)
            return tables.predicates(kb, pages.labels(kb, library), pages.derived_counts(kb, library), page)

        return self._table(request, "Predicates", read)

    def predicate(self, request: Request) -> Response:
        name, arity = request.path_params["name"], request.path_params["arity"]
        indicator = f"{name}/{arity}"
        if tables.whole_number(arity) is None:
            raise NotStored(f"There is no predicate {indicator}.")
        with self._open(request) as kb:
            library = self._browser.library(kb)
            labels = pages.labels(kb, library)
            known = tables.facts(kb, Wanted(predicate=indicator), _wanted_page(request))
            # Claims are found by the name of a predicate, whatever its arity.
            stopped = pages.rejected_claims(kb, Wanted(predicate=name), pages.FEW)
            count, derived = kb.fact_counts().get(indicator, 0), pages.derived_counts(kb, library).get(indicator, 0)
        if indicator not in labels and not known.rows:
            raise NotStored(f"There is no predicate {indicator}.")
        numbers = {"fact": count, "derived atom": derived}
        found = ", ".join(grouped(number, noun) for noun, number in numbers.items() if number) or grouped(0, "fact")
        goal = f"{goal_name(name)}({', '.join(f'A{place + 1}' for place in range(int(arity)))})" if derived else ""
        shown = known if _form(request) != "html" else pages.with_columns(known, library.columns_of(name))
        says, title = labels.get(indicator, ""), f"{indicator}: {found}"
        return self._listed(request, title, shown, known.to_json, says=says, stopped=stopped, goal=goal)

    def entity(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        if not self._words.ready(INDEX_SECONDS):
            return self._waiting(request, name, INDEXING)
        with self._open(request) as kb:
            parts = pages.entity_tables(kb, name, self._few_or_all(request), self._words.with_value)
            columns = {known.indicator: known.columns for known in self._browser.library(kb).signatures}
        return self._with_tables(request, "entity", name, parts, frequency=rarest_word([name]), columns=columns)

    def search(self, request: Request) -> Response:
        """Values and sentences that contain all words, the best first."""
        words = request.query_params.get("words", "").strip()
        if not self._words.ready(INDEX_SECONDS):
            return self._waiting(request, "Search", INDEXING)
        matches = self._words.search(words)
        with self._open(request) as kb:
            parts = pages.search_tables(kb, matches)

        def data() -> dict[str, Any]:
            found = {"values": list(matches.names), "statements": parts["statements"].to_json()}
            return {**found, "value_count": matches.name_count, "statement_count": matches.row_count}

        return self._with_tables(request, "search", "Search", parts, data, words=words, matches=matches)

    def map(self, request: Request) -> Response:
        with self._open(request) as kb:
            library = self._browser.library(kb)
        drawn, table = rule_map(library, _rule_url, _predicate_url), tables.rule_links(library)
        return self._listed(request, "Map of predicates and rules", table, map=drawn)

    async def ask(self, request: Request) -> Response:
        """A goal, or a question in words, with its answers; a POST asks models for what it lacks."""
        asked = request.query_params
        if request.method == "POST":
            # Read now, since only this function can wait for it.
            async with request.form() as form:
                request.state.asked = {name: str(form.get(name, "")).strip() for name in ("goal", "question")}
            return await self._unless_busy(self._asking, request, self._ask_models)
        if asked.get("question", "").strip():
            return await self._unless_busy(self._asking, request, self._question)
        if asked.get("goal", "").strip():
            return await self._unless_busy(self._goals, request, self._goal)
        return await run_in_threadpool(self._goal, request)

    def _ask_models(self, request: Request) -> Response:
        """Ask models, and keep in memory how that ended, for the page that follows."""
        tools = self._asking_tools()
        asked = {name: text for name, text in request.state.asked.items() if text}
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
        values = {**NOTHING_ASKED, "question": question}
        try:
            values["answered"] = answered = tools.answer_question(question, free=True)
            values["proofs"] = [nested(proof.story)[0] for proof in answered.proofs]
            if request.query_params.get("format") == "json":
                return JSONResponse(answered.to_json())
        except BudgetReached:
            values["quote"] = tools.question_forecast(question)
        except HapaxError as fault:
            values["faults"] = str(fault)
        return self._page(request, "ask", title="Ask", **values)

    def _goal(self, request: Request) -> Response:
        """The page of a goal: its answers, and the forecast of what models would be asked."""
        goal, form = request.query_params.get("goal", "").strip(), request.query_params.get("format")
        values = {**NOTHING_ASKED, "goal": goal, "row": _number(request.query_params, "row", 0)}
        with self._open(request) as kb:
            library = self._browser.library(kb)
            values["starts"] = pages.goal_starts(kb, library)
            try:
                answers = query(goal, library, kb, options=GOAL_OPTIONS) if goal else None
                if answers is not None and form == "json":
                    return JSONResponse(answers.to_json())
                if answers is not None and form == "csv":
                    table = StoredTable(tuple(answers.columns), list(answers.rows), "", Page())
                    return PlainTextResponse(_csv(table), media_type="text/csv")
                values["answers"] = answers
                if answers is not None and (answers or answers.holds):
                    values["proofs"] = _proofs(goal, answers, values["row"], library, kb)
                elif answers is not None:
                    values["near"] = near_misses(goal, library, kb)
                if answers is not None and self._browser.tools is not None:
                    values["forecast"] = self._browser.tools.forecast(goal)
            except HapaxError as fault:
                values["faults"] = str(fault)
        values["outcome"] = self._outcomes.get(goal, "")
        return self._page(request, "ask", title="Ask", **values)

    async def why(self, request: Request) -> Response:
        """The story of an atom: why it holds, or why it does not."""
        return await self._unless_busy(self._goals, request, self._story)

    def _story(self, request: Request) -> Response:
        atom = request.query_params.get("atom", "").strip()
        with self._open(request) as kb:
            library = self._browser.library(kb)
            try:
                # For `why` an atom that does not hold is an error.
                explanation = why(atom, library, kb)
            except HapaxError:
                explanation = why_not(atom, library, kb)
            starts = pages.goal_starts(kb, library)
        lines, more = nested(explanation.story)
        parts = {"lines": story_table(explanation.story)}
        values = {**NOTHING_ASKED, "goal": atom, "proofs": [lines], "more": more, "starts": starts}
        return self._with_tables(request, "ask", atom, parts, **values)

    def runs(self, request: Request) -> Response:
        return self._table(request, "Runs", tables.runs)

    async def run(self, request: Request) -> Response:
        """A run; a POST asks it to pause, to go on, or to end."""
        if request.method != "POST":
            return await run_in_threadpool(self._run, request)
        if not self._browser.control:
            raise NotStored("This server leaves searches alone.", Remedy("Start it with {}.", Setting("control")))
        async with request.form() as form:
            wished = str(form.get("wish", ""))
        if wished not in _WISHES:
            raise HapaxError(f"A search cannot be asked to {wished!r}. Ask it to {', '.join(_WISHES)}.")
        await run_in_threadpool(self._ask_run, request, _WISHES[wished])
        return RedirectResponse(_run_url(request.path_params["identity"]), 303)

    def _ask_run(self, request: Request, wish: Wish | None) -> None:
        with self._open(request) as kb:
            ask_run(kb, request.path_params["identity"], wish)

    def _run(self, request: Request) -> Response:
        with self._open(request) as kb:
            shown = run_page(kb, request.path_params["identity"])
        return self._with_tables(request, "run", f"Run {shown.run.id}", shown.tables(), shown.to_json, shown=shown)

    async def judge(self, request: Request) -> Response:
        """The next statement to judge; a POST stores a vote."""
        if not self._browser.judge:
            raise NotStored("This server stores no votes.", Remedy("Start it with {}.", Setting("judge")))
        if request.method == "POST":
            return await self._vote(request)
        asked = request.query_params
        kind = asked.get("kind") or DEFAULT_KIND
        wording = WORDINGS[self._judging.sheet(kind).kind]
        values = await run_in_threadpool(self._next_to_judge, request, kind)
        values |= {"kind": kind, "sheets": self._judging.sheets, "wording": wording, "labels": ANSWER_LABELS}
        values |= {"replaced": asked.get("replaced"), "here": _judging_address({**asked, "kind": kind})}
        return self._page(request, "judge", title="Judge", **values)

    async def _vote(self, request: Request) -> Response:
        async with request.form() as form:
            texts = {
                name: str(form.get(name, "")) for name in ("voter", "item", "question", "answer", "comment", *CHOSEN)
            }
            kind = str(form.get("kind", "")) or DEFAULT_KIND
            marked, facts, struck = (tuple(map(str, form.getlist(name))) for name in ("marked", "fact", "struck"))
        cells = Cells(texts["answer"], texts["comment"], marked, facts, struck)
        voter, item, question = texts["voter"], texts["item"], texts["question"]
        # In a thread: another program may be writing to the file.
        replaced = await run_in_threadpool(self._judging.vote, kind, voter, item, question, cells)
        return RedirectResponse(_judging_address({**texts, "kind": kind})(last=item, replaced=replaced), 303)

    def _next_to_judge(self, request: Request, kind: str) -> dict[str, Any]:
        asked = request.query_params
        voter, last, skip = asked.get("voter", ""), asked.get("last", ""), _number(asked, "skip", 0)
        chosen = {name: asked[name] for name in CHOSEN if asked.get(name)}
        with self._open(request) as kb:
            shown = None
            if voter:
                shown = self._judging.next(kb, kind, voter, wanted_of(chosen), skip=skip, again=asked.get("again", ""))
            return {
                "shown": shown,
                "voter": voter,
                "chosen": chosen,
                "last": last,
                "outcome": self._judging.outcome(kb, last) if last else "",
                "agreement": self._judging.agreement(kb, kind),
                "rules": [] if voter else [row[0] for row in tables.rules(kb).rows],
                "names": []
                if voter
                else sorted({name.split("/")[0] for name in pages.labels(kb, self._browser.library(kb))}),
            }


def _proofs(goal: str, answers: Answers, row: int, library: Library, kb: KnowledgeBase) -> list[list[StoryLine]]:
    """The first lines of the proofs of an answer: of each atom that it makes ground."""
    values: dict[str, Value] = {}
    for name, value in zip(answers.columns, answers.result.rows[row] if row < len(answers.rows) else (), strict=False):
        if not isinstance(value, PrologTerm):
            values[name] = value
    proofs = []
    for atom in pages.atoms_of_answer(Theory(library, kb).goal(goal), values, library):
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
    return Page(_number(request.query_params, "page", 1), rows, request.query_params.get("order", ""))


def _number(asked: QueryParams, name: str, default: int) -> int:
    text = asked.get(name, "")
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


def _entity_url(name: object) -> str:
    return f"/entity?{urlencode({'name': str(name)})}"


# A slash in an identity is no separator.
def _statement_url(identity: object) -> str:
    return f"/statement/{quote(str(identity), safe='')}"


def _rule_url(name: object) -> str:
    return f"/rule/{quote(str(name), safe='')}"


def _run_url(identity: object) -> str:
    return f"/run/{quote(str(identity), safe='')}"


def _why_url(atom: object) -> str:
    return f"/why?{urlencode({'atom': str(atom)})}"


def _statements_url(**wanted: object) -> str:
    return f"/statements?{urlencode(wanted)}"


def _predicate_url(indicator: object) -> str:
    name, slash, arity = str(indicator).rpartition("/")
    if not slash:  # of any number of arguments
        return f"/facts?{urlencode({'predicate': str(indicator)})}"
    return f"/predicate/{quote(name, safe='')}/{arity}"


_LINKS: Mapping[str, tuple[str, Callable[[object], str]]] = {
    "statement": ("id", _statement_url),
    "rule": ("rule", _rule_url),
    "predicate": ("predicate", _predicate_url),
    "id": ("id", _run_url),
}
"""Columns that lead to a page, by the column that names it."""


def _csv(table: StoredTable) -> str:
    text = io.StringIO()
    rows = [[", ".join(cell) if isinstance(cell, tuple) else cell for cell in row] for row in table.rows]
    write_rows(text, [table.columns, *rows])
    return text.getvalue()
