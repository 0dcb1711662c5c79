"""Questions to knowledge bases and to models: the table of questions, goals that ask models, and pages."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from cli_fixture import invoke
from openai_fake import Asked, FakeServer
from search_fixture import scripted
from served import serving

import hapax

# --- questions --------------------------------------------------------------------------------------------------------


HERE = Path(__file__).parents[1]
EXAMPLES = HERE.parents[1] / "examples"
QUESTIONS: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "questions.yaml").read_text("utf-8"))
CASES = [(base, case) for base, cases in QUESTIONS.items() for case in cases]
RULES = {
    "airports": EXAMPLES / "airports" / "airports.rules",
    "access_control": EXAMPLES / "classics" / "access_control.rules",
    "prerequisites": EXAMPLES / "classics" / "prerequisites.rules",
}


def literal(text: str) -> dict[str, Any]:
    """`not p(a, ?B)` as a reply has it."""
    found = re.fullmatch(r"(not )?(\w+)\((.*)\)", text)
    assert found is not None, text
    return {"predicate": found[2], "arguments": found[3].split(", "), "negated": bool(found[1])}


def reply(case: dict[str, Any]) -> str:
    """The model's reply in full, as one that a server does not hold to a schema: after thoughts, in a fence."""
    compared = [
        dict(zip(("left", "sign", "right"), text.split(" ", 2), strict=True)) for text in case.get("compare", [])
    ]
    said = {name: list(map(literal, case.get(name, []))) for name in ("goal", "assume")}
    rest = {"asked": [], "count": False, "order": "", "limit": 0} | {
        name: case[name] for name in ("asked", "count", "order", "limit") if name in case
    }
    return f"<think>Which predicates?</think>\n```json\n{json.dumps({**said, 'compare': compared, **rest})}\n```"


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script of all replies and a knowledge base for each base."""
    folder = tmp_path_factory.mktemp("questions")
    script = {"generate": {f"Question: {case['q']}\n": reply(case) for _, case in CASES}}
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    for name in ("airports.db", "unasked.db"):
        table = ("--map", EXAMPLES / "airports" / "airports.yaml", "--rules", RULES["airports"])
        imported = invoke("import", EXAMPLES / "airports" / "airports.csv", *table, "--db", folder / name)
        assert imported.exit_code == 0, imported.stderr
    return folder


@pytest.mark.parametrize(("base", "case"), CASES, ids=[case["q"] for _, case in CASES])
def test_a_question_has_its_answer(base: str, case: dict[str, Any], bases: Path) -> None:
    """The answer is the engine's, each found one with a proof; what the predicates cannot say is told with the nearest."""
    rules, model = hapax.load_rules(RULES[base]), f"scripted:{bases / 'script.json'}"
    with hapax.KnowledgeBase(bases / f"{base}.db") as kb:
        found = hapax.ask(case["q"], rules, kb, model)

    right = case["is"]
    if right == "none":
        assert found.answers is None
        assert found.nearest
        return
    assert found.answers is not None, found.notes
    if isinstance(right, bool):
        assert found.answers.holds is right
        assert found.proofs
    elif isinstance(right, int):
        assert found.count == right
    else:
        asked = case["asked"][0].removeprefix("?")
        assert {answer[asked] for answer in found.answers} == set(right)
        assert len(found.answers) == len(right) or not case.get("limit")
        assert found.proofs


def test_the_command_shows_goal_meaning_answer_and_proof(bases: Path) -> None:
    """The goal is one that `query` takes; a question that cannot be said has exit code 1 and names predicates."""
    given = ("--db", bases / "airports.db", "-m", f"scripted:{bases / 'script.json'}")
    asked = invoke("ask", "Where may Kim feel the height if she flies to El Alto?", *given)
    words = ("Kim may feel the height at [Airport]", "if Kim flies to El Alto")
    unsaid = invoke("ask", "Who is the pilot of flight LH400?", *given)
    told = json.loads(invoke("ask", "How many airports are in Peru?", *given, "--limit", "1", "--json").stdout)
    cut = invoke("ask", "Which airports lie above 10000 feet?", *given, "--limit", "1")

    assert asked.exit_code == 0, asked.stderr
    assert all(part in asked.stderr for part in words)
    assert "13325 > 8000" in asked.stdout
    assert unsaid.exit_code == 1
    assert "lies_in(Airport, Country)" in unsaid.stderr
    assert told["count"] == 2
    assert "more answers" in cut.stderr
    assert (
        len(json.loads(invoke("query", told["goal"], "--db", bases / "airports.db", "--json").stdout)["answers"]) == 2
    )


@pytest.mark.parametrize(
    "said",
    [
        "I cannot answer that.",
        '{"goal": [{"predicate": "shell", "arguments": ["rm -rf /"]}]}',
        '{"goal": [{"predicate": "lies_in", "arguments": ["?A"]}]}',
        '{"goal": [{"predicate": "lies_in", "arguments": [["?A"], "France"]}]}',
        '{"goal": [{"predicate": "lies_in", "arguments": ["?A", "?B"]}], "compare": [{"left": "?A", "sign": "is", "right": "1"}]}',
        '{"goal": ' + "[" * 100_000,
    ],
)
def test_a_reply_that_states_no_goal_is_told_and_runs_nothing(said: str, bases: Path, tmp_path: Path) -> None:
    """Prose, unknown predicates, wrong arities, wrong shapes and unknown signs are told as the reply of the model."""
    (tmp_path / "script.json").write_text(json.dumps({"defaults": {"generate": said}}), "utf-8")
    shutil.copy(bases / "airports.db", tmp_path / "kb.db")
    result = invoke("ask", "Anything?", "--db", tmp_path / "kb.db", "-m", f"scripted:{tmp_path / 'script.json'}")

    assert result.exit_code == 1, result.output
    assert "The model" in result.stderr
    assert "cannot be said" not in result.stderr


def test_values_of_a_reply_are_values_and_never_goals(bases: Path, tmp_path: Path) -> None:
    """A value with quotation marks, brackets and goals is looked up as a text, and has no answer."""
    hostile = "x'), shell('touch owned'), lies_in(_, 'y"
    goal = {"goal": [{"predicate": "lies_in", "arguments": ["?A", hostile]}], "asked": ["?A"]}
    (tmp_path / "script.json").write_text(json.dumps({"defaults": {"generate": json.dumps(goal)}}), "utf-8")
    shutil.copy(bases / "airports.db", tmp_path / "kb.db")
    result = invoke("ask", "Anything?", "--db", tmp_path / "kb.db", "-m", f"scripted:{tmp_path / 'script.json'}")

    assert result.exit_code == 0, result.output
    assert "No answer." in result.stderr
    assert not Path("owned").exists()


def test_a_question_names_what_exists_and_is_asked_once_within_a_budget(bases: Path, tmp_path: Path) -> None:
    """The prompt has predicates with sentences and stored values; a second time nothing is sent, and a budget holds."""
    shutil.copy(bases / "airports.db", tmp_path / "kb.db")
    answer = {"goal": [literal("lies_in(?Airport, Peru)")], "asked": ["?Airport"]}
    with FakeServer({"generate": {}, "defaults": {"generate": json.dumps(answer)}}) as fake:
        given = ("--db", tmp_path / "kb.db", "-m", f"openai:tiny@{fake.url}")
        refused = invoke("ask", "Which airports are in peru?", *given, "--max-calls", "0")
        first = invoke("ask", "Which airports are in peru?", *given)
        sent = len(fake.asked)
        second = invoke("ask", "Which airports are in peru?", *given)

    assert refused.exit_code in (2, 3)
    assert "Jorge Chavez" in first.stdout, first.stderr
    assert second.stdout == first.stdout
    assert len(fake.asked) == sent


@pytest.mark.parametrize(
    ("said", "words", "value"),
    [
        ("ÖSTERREICH", "osterreich", "Österreich"),
        ("россия", "РОССИЯ", "Россия"),
        ('the "old" mill', "mills", 'The "Old" Mill'),
        ("côte d'ivoire", "ivoire", "Côte d'Ivoire"),
        ("strasse 7", "straße", "Strasse 7"),
        ("100%_*[a]", "100", "100%_*[a]"),
    ],
)
def test_values_are_found_by_their_words_in_any_case(said: str, words: str, value: str) -> None:
    """A question finds stored values by words, case and accents left aside, and a value of the reply is the stored one."""
    rules = hapax.parse_rules('given lies_in(Town, Country): "[1] lies in [2]"')
    answer = {"goal": [{"predicate": "lies_in", "arguments": ["?Town", said]}], "asked": ["?Town"]}
    with (
        FakeServer({"generate": {}, "defaults": {"generate": json.dumps(answer)}}) as fake,
        hapax.KnowledgeBase() as kb,
    ):
        hapax.add_facts(kb, "lies_in", [("Town A", value), ("Town B", "Elsewhere"), ("Town C", 100)], rules)
        found = hapax.ask(f"Which towns are in {words}?", rules, kb, f"openai:tiny@{fake.url}")
        prompts = [json.dumps(request.body, ensure_ascii=False) for request in fake.asked]

    assert found.answers is not None
    assert [row["Town"] for row in found.answers] == ["Town A"]
    # A prompt has its values as JSON, and a body has the prompt so.
    assert any(json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False)[1:-1] in text for text in prompts)
    assert not any("Elsewhere" in text for text in prompts)


def test_the_page_for_asking_shows_the_cost_of_a_question_and_then_its_answer(bases: Path) -> None:
    """A question in words costs one call, which is told before; its goal, meaning, answers and proof stay for free."""
    question = "Which airports lie above 10000 feet?"
    model = ("--ask", "-m", f"scripted:{bases / 'script.json'}", "--max-calls", "1")
    place = f"/ask?{urlencode({'question': question})}"
    with serving(bases / "unasked.db", *model, "--rules", str(RULES["airports"])) as served:
        before = served.ask(place).text
        after = served.send("/ask", {"question": question}).text
        again = json.loads(served.ask(f"{place}&format=json").text)
        refused = served.ask("/ask", "POST", urlencode({"question": "Is Kastrup in Denmark?"}), Origin=served.origin)

    assert "takes one call" in before
    assert "El Alto" not in before
    assert all(word in after for word in ("El Alto", "_Feet &gt; 10000", "which Airport: ", "Why"))
    assert [row["Airport"] for row in again["answers"]] == ["El Alto", "Lhasa Gonggar", "Velasco Astete"]
    assert (refused.status, "limit" in refused.text) == (400, True), refused.text


def test_the_page_for_asking_without_a_model_says_how_to_name_one(bases: Path) -> None:
    """Without --ask a question in words is refused, and the page names the command with a model and a budget."""
    with serving(bases / "airports.db") as served:
        page, asked = served.ask("/ask").text, served.ask("/ask?question=Is+Kastrup+in+Denmark%3F")

    assert "--ask -m MODEL --max-calls" in page
    assert (asked.status, "asks no model" in asked.text) == (404, True)


def test_a_server_that_follows_a_schema_is_held_to_the_predicates_that_exist(tmp_path: Path) -> None:
    """Over HTTP a question brings the schema of its reply, whose predicates are those of the rules, and takes it."""

    def held(_: int, asked: Asked) -> Any:
        """A server whose replies to a schema have nothing else: the first predicate that the schema allows."""
        wanted = asked.body.get("response_format", {}).get("json_schema", {}).get("schema")
        if wanted is None:
            return None
        said = json.dumps(_example(wanted) | SAID if "goal" in wanted["properties"] else _example(wanted))

        def changed(body: Any) -> Any:
            body["choices"][0]["message"]["content"] = said
            return body

        return changed

    rules = RULES["prerequisites"]
    with FakeServer(misbehave=held) as fake:
        model = ("-m", f"openai:tiny@{fake.url}", "--db", tmp_path / "kb.db", "--json", "--max-calls", "10")
        found = invoke("ask", "Who has passed algebra?", rules, *model)
        asked = [request.body for request in fake.asked if "algebra" in json.dumps(request.body)]
        sent = len(fake.asked)
        again = invoke("ask", "Who has passed algebra?", rules, *model)

    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["answers"] == json.loads(again.stdout)["answers"] == [{"Who": "ann"}]
    schema = asked[-1]["response_format"]["json_schema"]
    names = schema["schema"]["properties"]["goal"]["items"]["properties"]["predicate"]["enum"]
    assert (schema["strict"], {"passed", "can_take"} <= set(names), len(fake.asked)) == (True, True, sent)


SAID = {
    "goal": [{"predicate": "passed", "arguments": ["?Who", "algebra"], "negated": False}],
    "asked": ["?Who"],
}
"""The goal of a reply that follows a schema."""


def _example(schema: dict[str, Any]) -> Any:
    """A value of a JSON schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds = {"string": "", "integer": 0, "boolean": False, "array": []}
    if schema["type"] == "object":
        return {name: _example(part) for name, part in schema["properties"].items()}
    if schema["type"] == "array" and schema.get("items", {}).get("type") in ("string", "integer"):
        return [_example(schema["items"])]
    return kinds[schema["type"]]


# --- models -----------------------------------------------------------------------------------------------------------


TEXT = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "?".
functional was_invented_in(Object, Year): "[1] was invented in [2]" / "[1] was not invented in [2]" / "?".
computed is_earlier(Year A, Year B) := A < B: "[1] is earlier than [2]" / "[1] is not earlier than [2]" / "?".
given was_born_in(Person, Year): "[1] was born in [2]" / "[1] was not born in [2]" / "?".
fact was_born_in("Ada", 1815).
"""
MODELS_RULES = hapax.parse_rules(TEXT)
BUTTER, PHONE = "is_ingredient_in(butter, X)", "was_invented_in(telephone, X)"
PROMPT = (
    "Give me 50 values of B to fill in the sentence 'butter is an ingredient in [B]' in the format '1. value.', "
    "where B is a dish."
)


def models(dishes: Any = ("paella", "toast", "soap"), critic: dict[str, float] | None = None, **options: Any) -> Any:
    """Butter is in three dishes, of which soap is none, by a critic who is sure of most."""
    script = {
        "generate": {
            "butter is an ingredient in [B]": dishes if isinstance(dishes, str) else list(dishes),
            "telephone was invented in [B]": [1876],
        },
        "critic": {
            "Butter is an ingredient in soap.": 0.1,
            "Soap is a dish.": 0.2,
            "Butter is an ingredient in paella.": 0.86,
            **(critic or {}),
        },
        "defaults": {"critic": 0.9, "likelihood": -10, "generate": []},
    }
    return scripted(script, **options)


def found(
    goal: str, using: Any, kb: hapax.KnowledgeBase | None = None, rules: hapax.Library = MODELS_RULES, **chosen: Any
) -> Any:
    """The values of X."""
    settings = hapax.SearchSettings(**{"profile": "hapax", **chosen})
    options = hapax.QueryOptions(settings=settings)
    return [row["X"] for row in hapax.query(goal, rules, kb or hapax.KnowledgeBase(), models=using, options=options)]


def holds(goal: str, using: Any, kb: hapax.KnowledgeBase | None = None) -> bool:
    options = hapax.QueryOptions(settings=hapax.SearchSettings(profile="hapax"))
    return hapax.query(goal, MODELS_RULES, kb or hapax.KnowledgeBase(), models=using, options=options).holds


def facts(kb: hapax.KnowledgeBase) -> set[tuple[Any, ...]]:
    return {(fact.predicate, *fact.arguments, fact.probability) for fact in kb.facts() if fact.probability}


def test_accepted_values_become_facts_and_all_else_is_kept_with_its_reason() -> None:
    """Facts have their probability; what the parser, the type or the critic refused has its gate."""
    kb = hapax.KnowledgeBase()
    values = found(BUTTER, models("1. paella.\n2. soap.\n3. [B].\n"), kb)
    (candidates,) = kb.candidates_of([question.id for question in kb.questions()]).values()
    by_id = {candidate.id: candidate.value for candidate in candidates}

    assert values == ["paella"]
    assert facts(kb) == {("is_ingredient_in", "butter", "paella", 0.86)}
    assert {(by_id[item.subject], item.gate, item.accepted) for item in kb.decisions()} == {
        ("paella", "critic", True),
        ("soap", "type", False),
        ("[B]", "parser", False),
    }


def test_a_list_that_is_shorter_than_asked_ends_its_question() -> None:
    """The prompt is LINK's, byte for byte; a full list is followed by another call, until one is shorter."""
    short, full = models(), models()
    found(BUTTER, short)
    found(BUTTER, full, values_per_call=2)

    assert short.knowledge.prompts == [PROMPT]
    assert full.knowledge.prompts == [PROMPT.replace("50 values", "2 values")] * 2


def test_link_names_accepted_values_in_the_prompt() -> None:
    """Under LINK's ways the accepted values stand in the prompt and the rejected ones' tokens are banned."""
    using, kb = models(), hapax.KnowledgeBase()
    found(BUTTER, using, kb, compat="paper")
    banned = [list(call.request.get("banned_tokens_of", ())) for call in kb.calls().values()]

    assert using.knowledge.prompts[1].endswith("Do not generate these values: paella, toast.")
    assert ["soap"] in banned


def test_a_question_is_asked_once_for_everybody() -> None:
    """A later goal with another seed asks nothing; another knowledge model is asked itself."""
    using, kb = models(), hapax.KnowledgeBase()
    first = found(BUTTER, using, kb)
    asked = len(using.knowledge.prompts)
    again = found(BUTTER, using, kb, seed=7)

    assert first == again == ["paella", "toast"]
    assert len(using.knowledge.prompts) == asked
    assert "curry" in found(BUTTER, models(("curry",)), kb)


def answering(*years: int) -> Any:
    """A model with another answer in each sample."""
    using = models()
    answers = iter([f"1. {year}.\n" for year in years])
    generate = using.knowledge.generate

    def wavering(requests: Any, parameters: Any) -> list[Any]:
        return [type(reply)(next(answers)) for reply in generate(requests, parameters)]

    using.knowledge.generate = wavering
    return using


@pytest.mark.parametrize(
    ("tolerance", "years", "taken"),
    [
        ("", (1876, 1876), [1876]),
        ("", (1876, 1877), []),
        (" within 2", (1878, 1876), [1878]),
        (" within 2", (1876, 1879), []),
        (" within 0.5", (1876, 1877), []),
        (" within 0.1%", (1876, 1877), [1876]),
        (" within 0.1 %", (1876, 1879), []),
    ],
)
def test_functional_samples_must_agree(tolerance: str, years: tuple[int, ...], taken: list[int]) -> None:
    """Of a right value two samples are asked; the first is taken if they agree within the tolerance of the rules.

    Nobody is asked to judge samples that differ.
    """
    kb, using = hapax.KnowledgeBase(), answering(*years)
    rules, wide = (
        hapax.parse_rules(TEXT.replace("(Object, Year)", f"(Object, Year){within}"))
        for within in (tolerance, " within 9")
    )
    first = found(PHONE, using, kb, rules)

    assert first == taken
    assert bool(using.critic.claims) == bool(taken)
    assert "the correct value of B" in using.knowledge.prompts[0]
    assert found(PHONE, using, kb, rules) == taken
    assert found(PHONE, using, kb, wide)  # stored answers are judged by the tolerance of the rules that ask


def test_the_critic_is_asked_only_where_nothing_else_decides() -> None:
    """Computed and given atoms cost no claim; judged ones that hold become facts."""
    using, kb = models(), hapax.KnowledgeBase()
    goals = {
        "is_earlier(1800, 1900)": True,
        "is_earlier(1900, 1800)": False,
        'was_born_in("Ada", 1815)': True,
        'was_born_in("Ada", 1816)': False,
        "is_ingredient_in(butter, toast)": True,
        "is_ingredient_in(butter, soap)": False,
    }

    assert {goal: holds(goal, using, kb) for goal in goals} == goals
    assert len(using.critic.claims) == 2
    assert facts(kb) == {("is_ingredient_in", "butter", "toast", 0.9)}


@pytest.mark.parametrize(("role", "calls"), [("knowledge", 1), ("critic", 0)])
def test_a_budget_keeps_what_was_answered(role: str, calls: int) -> None:
    """Replies are kept, what could not be judged is neither accepted nor refused, and a later goal goes on from there."""
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, "is_ingredient_in", [("butter", "Soap")], MODELS_RULES)  # given: an answer whatever models say
    options = hapax.QueryOptions(settings=hapax.SearchSettings(profile="hapax", values_per_call=2))
    short = models(budget=hapax.Budget(max_calls=calls, roles=frozenset({role})))
    cut = hapax.query(BUTTER, MODELS_RULES, kb, models=short, options=options)
    kept = sum(call.role == role for call in kb.calls().values())

    assert (cut.complete, kept) == (False, calls)
    assert role == "knowledge" or kb.decisions() == []
    assert sorted(found(BUTTER, models(), kb)) == ["Soap", "paella", "toast"]
