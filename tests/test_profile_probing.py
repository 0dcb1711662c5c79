"""Prompt profiles are probed on questions with known answers, once per model, and the best one is kept and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from openai_fake import FakeServer

import hapax
from hapax.cli import main
from hapax.engine.search.profile_choice import ProfileChooser
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.journal import PROBE, Journal
from hapax.llm_oracle.profile_probing import known_questions
from hapax.llm_oracle.profiles import PROFILE_NAMES, find_profile
from hapax.llm_oracle.scripted import ScriptedModel

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow?"
oracle lies_at(City, River): "[1] lies at [2]" / "[1] does not lie at [2]" / "does [1] lie at [2]?"
@name trip
@generic X
visits(Person X, City A) & lies_at(City A, River B) & flows_through(River B, Country C) -> may_see(Person X, Country C)
"""


def knowing(profile: str) -> dict[str, Any]:
    """A script that answers the known questions in the words of one profile alone."""
    answers: dict[str, Any] = {}
    chosen = find_profile(profile)
    for known in known_questions():
        values = list(known.answers[:5])
        words = chosen.word(known.question)
        answers[words] = json.dumps({"values": values}) if chosen.json else values
    return {"generate": answers, "defaults": {"generate": "I do not know", "critic": 0.9, "likelihood": -10}}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "trip.rules"
    path.write_text(RULES, "utf-8")
    return path


@pytest.fixture
def run(tmp_path: Path, rules: Path) -> Callable[..., Any]:
    """A search by the command line, of a model at a server."""

    def run(server: FakeServer, *options: str) -> Any:
        model = f"openai:tiny@{server.url}"
        common = ["-m", model, "--likelihood", "frequency", "--calls", "1", "--beam", "2", "--no-progress"]
        arguments = ["search", str(rules), *common, "--db", str(tmp_path / "a.db"), *options]
        return CliRunner().invoke(main, arguments)

    return run


def prompts(kb: KnowledgeBase, role: str) -> list[str]:
    """Prompts in the journal, sent in this role."""
    calls = (call for call in kb.calls().values() if call.role == role and "prompt" in call.request)
    return [call.request["prompt"] for call in calls]


@pytest.mark.parametrize("profile", ["plain", "json", "paper", "released"])
def test_the_profile_that_the_model_understands_is_chosen_and_kept(
    profile: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    """The profile with most known answers words the search, is told with all scores, and is not probed again."""
    with FakeServer(script=knowing(profile)) as server:
        first = run(server)
        asked = len(server.asked)
        again = run(server)
        assert first.exit_code == 0, first.output
        assert f"profile {profile}: 26 of 26 known answers; " in first.stderr
        assert "(37 calls)" in first.stderr
        assert f"profile {profile}, as chosen before for openai/{server.place}/tiny" in again.stderr
        assert len(server.asked) == asked
    with KnowledgeBase(tmp_path / "a.db") as kb:
        (name,) = {call.model for call in kb.calls().values() if call.role == "knowledge"}
        record = kb.profile(name)
        assert record is not None
        assert record.profile == profile
        assert record.scores == {name: 26 if name == profile else 0 for name in PROFILE_NAMES}
        assert len(prompts(kb, PROBE)) == 36  # two profiles have the same words
        (searched,) = {prompt.split()[0] for prompt in prompts(kb, "knowledge")}
        assert searched == find_profile(profile).word(known_questions()[0].question).split()[0]


@pytest.mark.parametrize(("known", "plan", "note"), [(3, "premise-first", True), (4, "cheapest", False)])
def test_a_model_that_knows_little_is_searched_premise_first(
    known: int, plan: str, note: bool, run: Callable[..., Any], tmp_path: Path
) -> None:
    """Below three quarters of the known answers the order changes, also when the choice is stored; --plan goes first."""
    script = knowing("plain")
    script["generate"] = dict(list(script["generate"].items())[:known])
    with FakeServer(script=script) as server:
        results = [run(server), run(server), run(server, "--plan", "conclusion-first")]
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert ["rules are searched premise first" in result.stderr for result in results[:2]] == [note, note]
    with KnowledgeBase(tmp_path / "a.db") as kb:
        assert {str(run.settings["plan"]) for run in kb.runs()} == {plan, "conclusion-first"}


def test_few_shot_is_chosen_for_a_model_that_needs_examples(run: Callable[..., Any]) -> None:
    """A model that answers only after worked examples is asked with them."""
    script = {"generate": {}, "defaults": {"generate": "no", "critic": 0.9}}
    for known in known_questions():
        end = find_profile("few-shot").word(known.question).rpartition("Question: ")[2]
        script["generate"][end] = list(known.answers[:5])
    with FakeServer(script=script) as server:
        assert "profile few-shot: 26 of 26 known answers" in run(server).stderr


def test_a_named_profile_is_not_probed(run: Callable[..., Any], tmp_path: Path) -> None:
    """`--profile plain` asks in these words at once, and nothing is stored."""
    with FakeServer() as server:
        result = run(server, "--profile", "plain")
        assert result.exit_code == 0, result.output
        assert "known answers" not in result.stderr
    with KnowledgeBase(tmp_path / "a.db") as kb:
        assert all(prompt.startswith("List 50 examples of a") for prompt in prompts(kb, "knowledge"))
        assert kb.counts()["model_profiles"] == 0


def test_probe_again_chooses_anew(run: Callable[..., Any]) -> None:
    """After `--probe-again` the choice of before does not count."""
    with FakeServer(script=knowing("plain")) as server:
        run(server)
        again = run(server, "--probe-again")
        assert "profile plain: 26 of 26 known answers" in again.stderr


def test_a_model_without_a_known_answer_keeps_the_usual_words(run: Callable[..., Any]) -> None:
    """If no profile brings a known answer, the questions are worded as ever."""
    with FakeServer() as server:
        assert "profile hapax: 0 of 26 known answers" in run(server).stderr


def test_probes_count_in_the_budget(run: Callable[..., Any]) -> None:
    """A budget that ends while profiles are probed ends the command; the next one goes on, and pays for no probe twice."""
    with FakeServer(script=knowing("plain")) as server:
        first = run(server, "--max-calls", "20")
        asked = len(server.asked)
        assert first.exit_code == 3
        assert asked <= 20
        second = run(server)
        assert "profile plain: 26 of 26 known answers" in second.stderr
        sent = [request.body["messages"][0]["content"] for request in server.asked]
        assert len({prompt for prompt in sent if prompt.startswith("Give me")}) == len(
            [prompt for prompt in sent if prompt.startswith("Give me")]
        )


def test_the_embedded_model_has_its_own_words(tmp_path: Path, rules: Path) -> None:
    """Models made for one wording are not probed, and refuse others."""
    library = hapax.load_rules(rules)
    with KnowledgeBase(tmp_path / "a.db") as kb:
        models = hapax.open_models("embedded")
        with pytest.raises(HapaxError, match="embedded is trained on the words of the profile hapax alone"):
            hapax.search(library, kb, models, SearchSettings(profile="plain"))
        assert kb.counts()["model_profiles"] == 0


def test_answers_of_older_versions_are_not_paid_for_again(run: Callable[..., Any], tmp_path: Path) -> None:
    """A knowledge base that has answers of the model in the words of older versions goes on in them."""
    with FakeServer(script=knowing("plain")) as server:
        run(server, "--profile", "hapax")
        asked = len(server.asked)
        result = run(server)
        assert "profile hapax: the knowledge base has answers of" in result.stderr
        assert len(server.asked) == asked


def test_json_is_demanded_only_of_a_server_that_can(run: Callable[..., Any]) -> None:
    """A JSON schema goes to a server whose reply follows one; otherwise words alone ask, and the report says so."""

    def structured(body: Any) -> Any:
        body["choices"][0]["message"]["content"] = '{"values": ["red", "green"]}'
        return body

    def obedient(number: int, asked: Any) -> Any:
        return structured if "response_format" in asked.body else None

    with FakeServer(misbehave=obedient) as server:
        result = run(server, "--profile", "json")
        assert result.exit_code == 0, result.output
        formats = [request.body.get("response_format") for request in server.asked if _asks_for_values(request)]
        assert formats
        assert all(form["json_schema"]["schema"]["required"] == ["values"] for form in formats)
        assert "no structured output" not in result.stderr
    with FakeServer() as server:
        result = run(server, "--profile", "json")
        assert "has no structured output, so words alone ask it for JSON" in result.stderr
        assert all("response_format" not in request.body for request in server.asked if _asks_for_values(request))


def _asks_for_values(request: Any) -> bool:
    return request.body.get("messages", [{}])[0].get("content", "").startswith("List ")


def test_python_takes_a_profile(tmp_path: Path, rules: Path) -> None:
    """A profile of the settings fixes the words, and an unknown name is refused."""
    library = hapax.load_rules(rules)
    with FakeServer() as server, KnowledgeBase(tmp_path / "a.db") as kb:
        models = hapax.open_models(f"openai:tiny@{server.url}", likelihood="frequency")
        hapax.search(library, kb, models, SearchSettings(calls_per_question=1, profile="plain"))
        assert {prompt.split()[0] for prompt in prompts(kb, "knowledge")} == {"List"}
        with pytest.raises(HapaxError, match="no prompt profile 'x'"):
            SearchSettings(profile="x")
    assert OpeningOptions().probe_again is False


def test_an_unknown_name_is_a_usage_error(run: Callable[..., Any]) -> None:
    """`--profile` lists the names if the given one is unknown."""
    with FakeServer() as server:
        result = run(server, "--profile", "chatty")
        assert result.exit_code == 2
        assert "few-shot" in result.stderr


def test_a_users_own_facts_are_probed_too(rules: Path, tmp_path: Path) -> None:
    """Of each asked predicate the key with most given values makes a question, whose answers count for a profile."""
    library = hapax.load_rules(rules)
    with KnowledgeBase(tmp_path / "own.db") as kb:
        hapax.add_facts(kb, "flows_through", [("Inn", "Austria"), ("Elbe", "Germany"), ("Elbe", "Czechia")], library)
        hapax.add_facts(kb, "lies_at", [("Passau", "Inn")], library)
        chooser = ProfileChooser(kb, library, ScriptedModel({}), Journal(kb))
        questions = list(chooser._given_questions())

    assert [(known.question.sentence, known.answers) for known in questions] == [
        ("Elbe flows through [B]", ("Germany", "Czechia")),
        ("Passau lies at [B]", ("Inn",)),
    ]
    assert [known.most for known in questions] == [2, 1]
