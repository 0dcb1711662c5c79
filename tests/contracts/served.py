"""Searches on servers and pages of servers, for tests."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from cli_fixture import EVERY_END, invoke
from click.testing import Result
from money_fixture import RULES
from openai_fake import FRAME, Asked, FakeServer

import hapax

# --- served -----------------------------------------------------------------------------------------------------------


CLAIMS = [f"Milk is in naan {number}." for number in range(12)]
RETRY_AT_ONCE = {"Retry-After": "0"}
FILTERED = {"error": {"message": "The response was filtered", "param": "prompt", "code": "content_filter"}}


def models_file(folder: Path, fake: FakeServer | None = None, **fields: Any) -> str:
    """A file of aliases in which `small` is the server's model."""
    entry = {"model_id": "small", "model_name": "tiny", "api_base": fake.url if fake else None, **fields}
    path = folder / "models.yaml"
    path.write_text(json.dumps([{name: value for name, value in entry.items() if value is not None}]), "utf-8")
    return str(path)


def opened(fake: FakeServer, folder: Path | None = None, likelihood: str = "frequency", **fields: Any) -> hapax.Models:
    """Models of the server, by its URL or, with a folder, by an alias."""
    if folder is None:
        return hapax.open_models(f"openai:tiny@{fake.url}", likelihood=likelihood)
    return hapax.open_models("openai:small", likelihood=likelihood, aliases=Path(models_file(folder, fake, **fields)))


def probabilities(models: hapax.Models, claims: list[str]) -> list[float]:
    return [score.probability for score in models.critic.probabilities(claims)]


def values(models: hapax.Models, kb: hapax.KnowledgeBase | None = None, **settings: Any) -> list[Any]:
    """The currencies of Norway by the model, asked in two samples unless settings say otherwise."""
    options = hapax.QueryOptions(settings=hapax.SearchSettings(**{"profile": "hapax", **settings}))
    goal, rules = "uses_currency('Norway', X)", hapax.parse_rules(RULES)
    with kb or hapax.KnowledgeBase() as opened_kb:
        return [row["X"] for row in hapax.query(goal, rules, opened_kb, models=models, options=options)]


def search(folder: Path, model: str, *options: str, database: str = "kb.db") -> Result:
    """`hapax search` over the rule about currencies; its knowledge base lies in the folder."""
    (folder / "money.rules").write_text(RULES, "utf-8")
    given = ("-m", model, "--db", folder / database, "--no-progress", *EVERY_END)
    return invoke("search", folder / "money.rules", *given, *options)


def found(folder: Path, database: str = "kb.db") -> tuple[set[str], set[tuple[str, str, str]]]:
    """The facts without what names the model, and the statements of both ends."""
    exported = invoke("export", "--db", folder / database, "--format", "csv").stdout
    with hapax.KnowledgeBase(folder / database, read_only=True) as kb:
        return set(exported.splitlines()), {(row.distribution, row.premise, row.conclusion) for row in kb.statements()}


def spending(folder: Path, database: str = "kb.db") -> dict[str, Any]:
    """The sums of the ledger."""
    rows = json.loads(invoke("model", "ledger", "--db", folder / database, "--json").stdout)["spending"]
    return {name: sum(row[name] or 0 for row in rows) for name in rows[0] if name not in ("model", "role")}


def flat(result: Result) -> str:
    """The output of a command, in one line."""
    return " ".join(result.output.split())


def prompt_of(asked: Asked) -> str:
    return str(asked.body["messages"][-1]["content"] if "messages" in asked.body else asked.body.get("prompt", ""))


def is_judging(asked: Asked) -> bool:
    """True for a question to the critic."""
    return not asked.body.get("echo") and prompt_of(asked).startswith(FRAME[0])


def is_listing(asked: Asked) -> bool:
    """True for a question for values, in the words of the paper's code."""
    return prompt_of(asked).startswith("Give me")


def evaluator(model: str, **options: Any) -> Any:
    """A model that ranks texts or names, by its string."""
    return hapax.open_models(
        f"scripted:{Path(__file__).with_name('nothing.json')}", evaluator=model, **options
    ).evaluator


# --- page -------------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Answer:
    """An answer to a request."""

    status: int
    headers: http.client.HTTPMessage
    text: str


@dataclass(frozen=True)
class Served:
    """A running server, asked by HTTP."""

    host: str
    port: int
    token: str

    @property
    def origin(self) -> str:
        """The server as a browser names it in what it sends from a page of it."""
        return f"http://{self.host}:{self.port}"

    def ask(self, place: str, method: str = "GET", body: str = "", **headers: str) -> Answer:
        """The answer to a request with these headers, `_` for `-` in their names, and the token if there is none."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent.setdefault("Authorization", f"Bearer {self.token}")
        with closing(http.client.HTTPConnection(self.host, self.port, timeout=60)) as connection:
            connection.request(method, place, body, {"Content-Type": "application/x-www-form-urlencoded", **sent})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode("utf-8"))

    def ask_without_token(self, place: str, method: str = "GET", **headers: str) -> Answer:
        """The answer to a request that brings no token."""
        return self.ask(place, method, Authorization="", **headers)

    def send(self, place: str, form: Mapping[str, str]) -> Answer:
        """The answer to a form that the server's own page sends, or to the page that it leads to."""
        answer = self.ask(place, "POST", urlencode(form), Origin=self.origin)
        return self.ask(str(answer.headers["Location"])) if answer.status == 303 else answer


@contextmanager
def serving(database: Path, *options: str) -> Iterator[Served]:
    """A process of `hapax serve` at a free port, with what it printed."""
    command = [sys.executable, "cli.py", "serve", "--db", str(database), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stderr is not None
        try:
            link = urlsplit(next(found[0] for line in server.stderr if (found := re.search(r"http://\S+", line))))
            yield Served(str(link.hostname), int(link.port or 0), link.query.removeprefix("token="))
        finally:
            server.kill()
