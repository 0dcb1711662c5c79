"""Killed at any point, a search goes on: no answer lost, none asked twice, the same result."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from test_engine_search import ALLERGY, OLDER, SMALL, library_of

from engine.report import SearchSettings
from engine.search import search
from kb.store import KnowledgeBase
from llm_oracle.protocols import Models
from llm_oracle.simulated import SimulatedModel, SimulatedWorld

SETTINGS = SearchSettings(beam=5, calls_per_question=2, values_per_call=8)
ROOT = Path(__file__).parent.parent

CHILD = """
import os, signal, sys
from test_engine_resume import run
from kb.store import KnowledgeBase

writes, last = 0, int(sys.argv[2])

def dying(method):
    def wrapped(self, *arguments, **options):
        global writes
        writes += 1
        before = writes == last
        if before and writes % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(self, *arguments, **options)
        if before:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped

for name in ("record_calls", "add_candidates", "add_assessments", "add_decisions", "add_facts", "set_question_states"):
    setattr(KnowledgeBase, name, dying(getattr(KnowledgeBase, name)))
run(sys.argv[1], sys.argv[3])
"""


class Logged(SimulatedModel):
    """Writes every request to a file before it answers, so that asking what was answered shows."""

    def __init__(self, world, log):
        super().__init__(world)
        self.log = log

    def note(self, requests):
        with Path(self.log).open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(request) + "\n" for request in requests)

    def generate(self, requests, parameters):
        self.note([[one.prompt, list(one.excluded_values), one.sample_index] for one in requests])
        return super().generate(requests, parameters)

    def probabilities(self, claims):
        self.note([["claim", claim] for claim in claims])
        return super().probabilities(claims)

    def log_likelihoods(self, texts):
        self.note([["text", text] for text in texts])
        return super().log_likelihoods(texts)


def run(path, log):
    library = library_of(ALLERGY, OLDER)
    model = Logged(SimulatedWorld(library, 1, SMALL), log)
    with KnowledgeBase(path) as kb:
        return search(library, library.rules, kb, Models(model, model, model, model), SETTINGS)


def journaled(path):
    """What the journal holds, worded as `Logged` words it."""
    with KnowledgeBase(path) as kb:
        requests = [call.request for call in kb.calls().values()]
    return {
        json.dumps([kind, one[kind]] if kind else [one["prompt"], list(one["excluded_values"]), one["sample_index"]])
        for one in requests
        for kind in [next((name for name in ("claim", "text") if name in one), None)]
    }


def asked(log):
    return set(Path(log).read_text(encoding="utf-8").splitlines()) if Path(log).exists() else set()


def content(path):
    """What a run leaves, without times."""
    with KnowledgeBase(path) as kb:
        facts = sorted((fact.predicate, str(fact.arguments), fact.probability) for fact in kb.facts())
        statements = sorted((one.id, one.distribution, one.log_likelihood) for one in kb.statements())
        decisions = sorted((one.id, one.score, one.threshold) for one in kb.decisions())
        return facts, statements, decisions, kb.counts()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The result of the run that nobody kills."""
    path = tmp_path_factory.mktemp("kb") / "whole.db"
    run(path, str(path) + ".log")
    return content(path)


@pytest.mark.parametrize("seed", range(4))
def test_kill_at_any_write_loses_nothing(tmp_path, undisturbed, seed):
    """Killed before or after some write, twice in a row, the same command ends with the same content and asks nothing
    that was answered."""
    path = str(tmp_path / "kb.db")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    rng = random.Random(seed)
    known = set()
    for number in range(2):
        log = f"{path}.log{number}"
        killed = subprocess.run(
            [sys.executable, "-c", CHILD, path, str(rng.randint(1, 45)), log],
            env=environment,
            check=False,
            timeout=200,
        )
        assert killed.returncode == -9
        assert not known & asked(log)
        known = journaled(path)
    run(path, path + ".last")

    assert not known & asked(path + ".last")
    assert content(path) == undisturbed
    run(path, path + ".again")
    assert not asked(path + ".again")
