"""A search whose models answer in workers, in threads of this process: equal results, and clear errors, without any Ray."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hapax
from hapax.engine.cluster.spreading import ModelWorker, Opening, names_to_spread, spread
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.parser import load_library
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import ModelIdentity, Models
from tools.comparison import differences

LIBRARY = load_library([Path(__file__).parents[4] / "rules"])
NAMES = {"knowledge": "simulated", "critic": None, "likelihood": None, "evaluator": "frequency"}


class Threads:
    """Workers in threads; each has opened models of its own."""

    def __init__(self, count: int, names: dict[str, str]) -> None:
        self.workers = [ModelWorker(Opening(names, OpeningOptions(library=LIBRARY))) for _ in range(count)]
        self.asked = 0

    @property
    def count(self) -> int:
        return len(self.workers)

    def identities(self, role: str) -> list[ModelIdentity | str]:
        return [worker.identity(role) for worker in self.workers]

    def answers(self, calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, list[Any] | str]]:
        """The last call is answered first."""
        with ThreadPoolExecutor(self.count) as threads:
            begun = [
                threads.submit(self.workers[number % self.count].answers, *call) for number, call in enumerate(calls)
            ]
            for number in reversed(range(len(calls))):
                self.asked += len(calls[number][1])
                yield number, begun[number].result()


class Interrupted(Threads):
    """Workers whose search is interrupted after so many of their results."""

    def __init__(self, count: int, names: dict[str, str], results: int) -> None:
        super().__init__(count, names)
        self.left = results

    def answers(self, calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, list[Any] | str]]:
        for result in super().answers(calls):
            if not self.left:
                self.asked -= len(calls[result[0]][1])
                raise KeyboardInterrupt
            self.left -= 1
            yield result


def searched(database: Path, models: Models, budget: Budget | None = None) -> Any:
    rules = [rule for rule in LIBRARY.rules if not LIBRARY.is_definition(rule)][::30]
    with KnowledgeBase(database) as kb:
        return search(
            SearchJob(LIBRARY, rules, kb, models, SearchSettings(beam=3, rules_together=1), Journal(kb, budget))
        )


@pytest.mark.parametrize("budget", [None, Budget(max_calls=40)])
def test_a_spread_search_ends_as_one_in_one_process(tmp_path: Path, budget: Budget | None) -> None:
    """Every row and the run's counts are the same, with and without a limit."""
    models = hapax.open_models("simulated", library=LIBRARY)
    names = names_to_spread(NAMES, models)
    workers = Threads(3, names)

    alone = searched(tmp_path / "alone.db", models, budget)
    report = searched(tmp_path / "spread.db", spread(models, tuple(names), workers), budget)

    assert workers.asked > 20
    assert (report.status, report.statistics) == (alone.status, alone.statistics)
    assert sum(differences(tmp_path / "alone.db", tmp_path / "spread.db").values()) == 0


@pytest.mark.parametrize("results", [0, 4, 19, 45])
def test_an_interrupted_search_goes_on_from_what_workers_answered(tmp_path: Path, results: int) -> None:
    """The answers of workers are kept, whatever came first, and asked of none of the next run's workers again."""
    models = hapax.open_models("simulated", library=LIBRARY)
    names = names_to_spread(NAMES, models)
    searched(tmp_path / "alone.db", models)
    whole, first, second = Threads(2, names), Interrupted(3, names, results), Threads(2, names)
    searched(tmp_path / "whole.db", spread(models, tuple(names), whole))

    with pytest.raises(KeyboardInterrupt):
        searched(tmp_path / "spread.db", spread(models, tuple(names), first))
    searched(tmp_path / "spread.db", spread(models, tuple(names), second))

    assert first.asked + second.asked == whole.asked
    assert sum(differences(tmp_path / "alone.db", tmp_path / "spread.db").values()) == 0


def test_only_models_of_a_process_are_spread() -> None:
    """A server is asked from here, word lists are looked up here, and a ranker without a name is the knowledge model."""
    simulated = hapax.open_models("simulated", library=LIBRARY)
    chain = {"critic": "reference:elements,simulated", "evaluator": "frequency"}
    served = {"critic": "openai:judge", "likelihood": "openai:judge"}

    assert names_to_spread(NAMES, simulated).keys() == {"knowledge", "critic"} | (
        {"likelihood"} if simulated.likelihood.identity == simulated.knowledge.identity else set()
    )
    assert names_to_spread({**NAMES, **chain}, simulated)["critic"] == chain["critic"]
    assert names_to_spread({**NAMES, **served}, simulated).keys() == {"knowledge"}


def test_a_worker_with_another_model_is_refused() -> None:
    """Answers of two versions under one name would be mixed, so the search does not begin."""
    models = hapax.open_models("simulated:1", library=LIBRARY)

    with pytest.raises(HapaxError, match="Worker 0 opened"):
        spread(models, ("knowledge",), Threads(2, {"knowledge": "simulated:2"}))


def test_the_error_of_a_worker_is_that_of_the_search(tmp_path: Path) -> None:
    """A worker that cannot open its model, or whose model fails, says why."""
    script = tmp_path / "models.json"
    script.write_text(json.dumps({"defaults": {"generate": []}}))
    scripted = hapax.open_models(f"scripted:{script}")
    workers = Threads(1, {"critic": f"scripted:{script}"})
    models = spread(scripted, ("critic",), workers)
    missing = Threads(1, {"critic": "scripted:none.json"})

    with pytest.raises(HapaxError, match=r"A worker: "):
        models.critic.probabilities(["A claim that the script has no answer to."])
    with pytest.raises(HapaxError, match=r"Worker 0: .*none\.json"):
        spread(replace(scripted), ("critic",), missing)
