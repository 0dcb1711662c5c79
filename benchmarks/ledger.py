"""The ledger of a search beside the account of its server, which refuses a share of the requests.

    python -m benchmarks.ledger --rules 4 --refused 0.2

Half of the refused requests get a reply that lacks the answer and is charged; the others an error, 429 or 503, which is
not. The search runs under a limit on calls, goes on under one on tokens, and then to its end. The exit code is 1 if the
ledger differs from the account, or a limit did not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import hapax
from benchmarks.common import chosen_rules, simulated, write_figures
from benchmarks.server import MODEL, ExclusionReader, SimulatedServer
from hapax.engine.search.job import SearchJob
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.rules import Library, Rule
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.registry import open_models

MOST_REFUSALS = 3
"""Of one request, so that no search ends for want of attempts."""

SETTINGS = SearchSettings(beam=4, profile="hapax")


@dataclass(frozen=True)
class Counts:
    """Requests, those among them that were charged, and their tokens."""

    requests: int = 0
    charged: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Run:
    """One run: its limits, its end, and all counts so far of the server and of the ledger."""

    limit: str
    status: str
    within_limit: bool
    server: Counts
    ledger: Counts


class RefusingServer(SimulatedServer):
    """Refuses a share of the requests, chosen by a hash of the request and its number of repetitions."""

    def __init__(self, model: ExclusionReader, refused: float) -> None:
        super().__init__(model, latency=0.0)
        self.refused = refused
        self.counts = Counts()
        self._times: Counter[str] = Counter()
        self._counting = threading.Lock()

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and reply, which is counted."""
        status, reply = super().answer(path, body)
        name = json.dumps([path, body], sort_keys=True)
        with self._counting:
            self._times[name] += 1
            number = self._times[name]
            draw = int(hashlib.sha256(f"{name} {number}".encode()).hexdigest(), 16) % 10_000 / 10_000
            if status == 200 and draw < self.refused and number <= MOST_REFUSALS:
                kind = int(draw / self.refused * 4)
                status = (200, 200, 429, 503)[kind]
                reply = {**reply, "choices": []} if status == 200 else {"error": {"message": "not now"}}
            tokens = sum(reply["usage"].values()) if status == 200 else 0
            before = self.counts
            self.counts = Counts(before.requests + 1, before.charged + (status == 200), before.tokens + tokens)
        return status, reply


@contextmanager
def serving(server: SimulatedServer) -> Iterator[None]:
    """Let the server answer in a thread of its own."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def measure(library: Library, rules: Sequence[Rule], refused: float, limits: Sequence[Budget]) -> list[Run]:
    """Run the search under each budget, one after the other on one knowledge base."""
    server = RefusingServer(ExclusionReader(simulated(library, 1)), refused)
    runs = []
    with serving(server), tempfile.TemporaryDirectory() as folder, KnowledgeBase(Path(folder) / "kb.db") as kb:
        for budget in limits:
            before = server.counts
            journal = Journal(kb, budget)
            model = f"openai:{MODEL}@{server.url}"
            models = open_models(model, likelihood="frequency", journal=journal)
            report = search(SearchJob(library, rules, kb, models, SETTINGS, journal))
            sent, tokens = server.counts.requests - before.requests, server.counts.tokens - before.tokens
            within = sent <= (budget.max_calls or sent) and tokens <= (budget.max_tokens or tokens)
            runs.append(Run(_text(budget), report.status, within, server.counts, in_ledger(kb)))
    return runs


def in_ledger(kb: KnowledgeBase) -> Counts:
    """The sums of the ledger. What was perhaps charged counts as charged."""
    spending = hapax.ledger(kb).spending
    requests, errors = sum(row.requests for row in spending), sum(row.errors for row in spending)
    return Counts(requests, requests - errors, sum(row.prompt_tokens + row.completion_tokens for row in spending))


def _text(budget: Budget) -> str:
    if budget.max_calls is not None:
        return f"{budget.max_calls} calls"
    return "none" if budget.max_tokens is None else f"{budget.max_tokens} tokens"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="rule files and folders (default: rules/library)")
    parser.add_argument("--rules", type=int, default=4, help="number of rules (default: %(default)s)")
    parser.add_argument("--refused", type=float, default=0.2, help="share of refused requests (default: %(default)s)")
    parser.add_argument("--max-calls", type=int, default=60, help="limit of the first run (default: %(default)s)")
    parser.add_argument("--max-tokens", type=int, default=3000, help="limit of the second (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args(arguments)
    library, rules = chosen_rules(options.paths, options.rules)
    limits = (Budget(max_calls=options.max_calls), Budget(max_tokens=options.max_tokens), Budget())
    runs = measure(library, rules, options.refused, limits)
    print(f"{'limit':14} {'end':8} {'within':7} {'requests':>18} {'charged':>18} {'tokens':>20}")
    for run in runs:
        pairs = zip(asdict(run.server).values(), asdict(run.ledger).values(), strict=True)
        shown = [f"{server:,} / {ledger:,}" for server, ledger in pairs]
        within = "yes" if run.within_limit else "NO"
        print(f"{run.limit:14} {run.status:8} {within:7} {shown[0]:>18} {shown[1]:>18} {shown[2]:>20}")
    print("Each figure: the server's own count / the ledger's, of all runs so far.")
    if options.output:
        write_figures(options.output, {"runs": [asdict(run) for run in runs]})
    return 0 if all(run.within_limit and run.server == run.ledger for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
