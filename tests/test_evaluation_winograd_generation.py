"""New concept-reversed schemas: analogies read, gates turned round, people's judgement, and export as tasks."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import winograd_fixture as fixture
from cli_fixture import run
from hypothesis import given
from hypothesis import strategies as st

from hapax.evaluation.votes.questions import SCHEMA_LABELS
from hapax.evaluation.winograd import shipped_lm_eval
from hapax.evaluation.winograd.analogies import ANALOGIES, paper_prompt, released_prompt
from hapax.evaluation.winograd.data import WSC273, Pair, WinogradItem, options_as_named, pairs_of, replaced
from hapax.evaluation.winograd.entity_replies import read_entities
from hapax.evaluation.winograd.files import read_items
from hapax.evaluation.winograd.gating import (
    ASSOCIATION,
    NON_LLM_PROOF,
    Association,
    keep_most_adversarial,
    meaning_claim,
)
from hapax.evaluation.winograd.prompts import question_block
from hapax.evaluation.winograd.reading import read_strictly
from hapax.kb.store import KnowledgeBase

SHARED = Path(__file__).parent.parent.parent / "shared"
ANNOTATED = SHARED / "data" / "cr_wsc" / "wsc_273_annotated_final.csv"
TRANSCRIPTS = SHARED / "data" / "cr_wsc" / "gpt35_entity_pair_transcripts.jsonl"
PAPER = SHARED / "papers" / "cr_wsc_aot.txt"
needs_data = pytest.mark.skipif(
    not TRANSCRIPTS.exists(), reason="the published data lies beside the repository, not in it"
)
needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper's text lies beside the repository, not in it")


# --- analogies --------------------------------------------------------------------------------------------------------


@needs_data
def test_all_transcripts_are_read_as_the_pairs_they_state() -> None:
    """Each of the 44 replies of GPT-3.5 gives its pairs, four of them two; the digest is of pairs read by a person."""
    replies = [json.loads(line)["completion"] for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()]
    read = [read_entities(reply) for reply in replies]
    digest = hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]

    assert len(read) == 44
    assert all(read)
    assert sum(map(len, read)) == 48
    assert all(entity in reply for reply, pairs in zip(replies, read, strict=True) for pair in pairs for entity in pair)
    assert digest == "9a26b0541b27f81f"


@needs_data
def test_the_transcripts_prompts_are_made_byte_for_byte() -> None:
    """The 44 released prompts are among those that WSC-273 gives."""
    made = {released_prompt(pair) for pair in pairs_of(read_items(ANNOTATED, WSC273))}
    sent = [json.loads(line)["prompt"] for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()]

    assert all(prompt in made for prompt in sent)


@needs_paper
@pytest.mark.parametrize("number", range(len(ANALOGIES)))
def test_analogies_have_the_papers_words(number: int) -> None:
    """Each of the five worked examples stands in appendix B word for word."""
    printed = "".join(PAPER.read_text(encoding="utf-8").replace("**", "").split())

    assert "".join(ANALOGIES[number].text.split()) in printed


@pytest.mark.parametrize(
    ("reply", "pairs"),
    [
        ("Therefore, the two entities are:\n1. nurse. 2. pilot.\nThe two sentences are:\n1. ..", [("nurse", "pilot")]),
        (
            "analogous entities are:\ntruck\nsports car\nThe analogous sentences would be:\n..",
            [("truck", "sports car")],
        ),
        (
            "entities could be:\n1. Ann scolded Bo because he was late.\n2. Ann consoled Bo because he was late.",
            [("Ann", "Bo")],
        ),
        (
            "the entities would be:\n1. The roof and the floor.\n2. lion - gazelle",
            [("The roof", "the floor"), ("lion", "gazelle")],
        ),
        ("entities are:\n1. Ann (outside) and Bo (inside).\nThe two sentences are:", [("Ann", "Bo")]),
        ("**1. nurse**\n**2. pilot**", [("nurse", "pilot")]),
        (
            "entities could be:\n1. A cheetah chasing a gazelle\n2. Doctor examining a patient in a ward",
            [("A cheetah", "a gazelle"), ("Doctor", "a patient")],
        ),
        (
            "entities could be:\n1. A chef teaching pupils\n2. A guard watching over prisoners",
            [("A chef", "pupils"), ("A guard", "prisoners")],
        ),
        (
            "entities are:\n1. An elderly walking man\n2. a young running boy",
            [("An elderly walking man", "a young running boy")],
        ),
        (
            "entities are:\n1. Coach and athlete relationship\n2. nurse/patient",
            [("Coach", "athlete"), ("nurse", "patient")],
        ),
        ("entities are:\n1. nurse -> patient\n2. waiter: guest", [("nurse", "patient"), ("waiter", "guest")]),
        ("entities are:\n1. Salt and pepper shaker. 2. Cupboard.", [("Salt and pepper shaker", "Cupboard")]),
        ("Two entities:\n1) **Manager** – someone who decides\n2) **Guests**: people who ask", [("Manager", "Guests")]),
        ("The two entities could be a lion and a gazelle. The lion hunts.", [("a lion", "a gazelle")]),
        ("**Entity 1:** Landlord\n**Entity 2:** the tenants", [("Landlord", "the tenants")]),
        ("two entities:\n\n| Entity 1 | Entity 2 |\n|---|---|\n| judge | defendant |", [("judge", "defendant")]),
        ('```json\n{"entity1": "nurse", "entity2": "surgeon"}\n```', [("nurse", "surgeon")]),
        ('[["nurse", "surgeon"], ["cook", "waiter"]]', [("nurse", "surgeon"), ("cook", "waiter")]),
        ("<think>the entities are:\n1. cat 2. dog</think>the entities are:\n1. cat. 2. canary.", [("cat", "canary")]),
        ("entities are:\n1. nurse", []),
        ("I am sorry, I cannot help with that.", []),
        ("", []),
    ],
)
def test_entities_of_a_reply(reply: str, pairs: list[tuple[str, str]]) -> None:
    """Every form that models choose is read as the pairs it states; a reply without two entities gives none."""
    assert read_entities(reply) == pairs


@given(st.text(max_size=300))
def test_no_reply_breaks_the_reading_of_entities(reply: str) -> None:
    """Any reply gives pairs of texts, or none."""
    assert all(len(pair) == 2 for pair in read_entities(f"entities are:\n{reply}"))


# --- generation -------------------------------------------------------------------------------------------------------

BASE = {
    ("weightlifter", "toddler"): "1. The toddler. 2. The toddler.",
    ("giant", "dwarf"): "1. The giant. 2. The dwarf.",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """One plain schema: who could not push whom."""
    path = fixture.write(tmp_path / "plain.csv", fixture.PLAIN)
    rows = list(csv.reader(path.open(encoding="utf-8")))[:3]
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def proposals(*stated: str) -> str:
    return "The property is strength. Therefore, analogous entities are:\n" + "\n".join(stated)


def made_with(source: Path, a: str, b: str) -> Pair:
    """The source's pair with other entities, as generation makes it."""
    path = source.parent / "made.csv"
    fixture.write(path, ((a, b), *fixture.PLAIN[1:]))
    return pairs_of(read_items(path))[0]


def model(source: Path, replies: list[str]) -> str:
    """A script that proposes, answers as a base model and knows what goes with what."""
    (pair,) = pairs_of(read_items(source))
    likelihood = {}
    for a, b, favoured in (("weightlifter", "toddler", True), ("giant", "dwarf", True), ("dwarf", "giant", False)):
        for entity, alone in ((a, -5.0), (b, -9.0)):
            likelihood[f"The {entity}."] = alone
            for quality, of_b in (("weak", True), ("heavy", False)):
                goes = (entity == b) == of_b
                likelihood[f"The {entity} was so {quality}."] = alone - (10 if goes is favoured else 12)
    generate = {paper_prompt(pair, number): reply for number, reply in enumerate(replies, start=1)}
    for (a, b), reply in BASE.items():
        generate[f"{question_block(made_with(source, a, b))}A:"] = reply
    script = {"generate": generate, "likelihood": likelihood, "defaults": {"critic": 0.5}}
    return fixture.scripted(source.parent / "g.json", script)


def generate(source: Path, *more: str | Path, code: int = 0) -> dict[str, Any]:
    replies = [
        proposals(
            "1. Weightlifter. 2. Toddler.", "The two sentences would be:", "1. The weightlifter pushed the toddler."
        ),
        proposals("giant", "dwarf"),
        proposals("dwarf", "giant"),
        proposals("The weightlifter", "the toddler"),
        "I cannot say.",
    ]
    target = source.parent / "new.jsonl"
    words = ("evaluate", "winograd", "generate", source, "-m", model(source, replies), "--out", target)
    result = run(*words, "--db", source.parent / "g.db", "--json", *more, code=code)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_only_adversarial_schemas_are_made(source: Path) -> None:
    """Of five proposals one stays: the others are a repetition, unread, associated the right way, or no trouble."""
    found = generate(source)
    fates = {tuple(candidate["entities"]): candidate["rejected"] for candidate in found["candidates"]}
    (pair,) = pairs_of(read_items(source.parent / "new.jsonl"))

    assert found["counts"]["pairs made"] == 1
    assert fates[("The giant", "The dwarf")] == "the base model answers both sentences right"
    assert fates[("The dwarf", "The giant")] == "the right answer is the associated one"
    assert fates[()] == "the reply states no two entities"
    assert [candidate["rejected"] for candidate in found["candidates"]].count("proposed before") == 1
    assert pair[0].text == "The weightlifter couldn't push the toddler because he was so weak."
    assert [item.answer for item in pair] == [0, 1]
    assert pair[0].options == ("The weightlifter", "The toddler")
    assert pair[0].family == "plain:0"


def test_verdicts_are_stored_with_score_and_threshold(source: Path) -> None:
    """Association in nats against its threshold, and the base model's failures against one half, with the sentences."""
    generate(source, "--threshold", "1.5")
    with KnowledgeBase(source.parent / "g.db") as kb:
        association, base = kb.decisions(gate=ASSOCIATION), kb.decisions(gate=NON_LLM_PROOF)

    assert [(decision.score, decision.threshold, decision.accepted) for decision in association] == [
        (2.0, 1.5, True),
        (2.0, 1.5, True),
        (-2.0, 1.5, False),
    ]
    assert [(decision.score, decision.threshold, decision.accepted) for decision in base] == [
        (0.5, 0.5, True),
        (0.0, 0.5, False),
    ]
    assert "The weightlifter couldn't push the toddler" in base[0].reason


def test_a_critic_can_be_the_base_model(source: Path) -> None:
    """Undecided between both meanings, a critic fails on everything, so the giant and the dwarf stay, too."""
    found = generate(source, "--base-method", "critic")
    claim = meaning_claim(pairs_of(read_items(source))[0][0], 1)

    assert found["counts"]["pairs made"] == 2
    assert claim == (
        "In the sentence “The uncle couldn't push the nephew because he was so weak.” the word “he” means The nephew."
    )


def test_a_budget_ends_the_making_and_nothing_is_asked_twice(source: Path) -> None:
    """Exit code 3 with what was not judged told; the same command without the limit finishes."""
    stopped = generate(source, "--max-calls", "6", code=3)
    written = (source.parent / "new.jsonl").exists()
    done = generate(source)

    assert stopped["stopped"]
    assert stopped["counts"]["pairs made"] == 0
    assert not written
    assert done["counts"]["pairs made"] == 1


def test_the_share_keeps_the_most_adversarial() -> None:
    """The engine's likelihood gate on negated scores: the wrong answers that are favoured most, ties by identity."""
    assert keep_most_adversarial([1.0, 3.0, 2.0, 0.0], ["a", "b", "c", "d"], 0.5, 9) == [1, 2]
    assert keep_most_adversarial([1.0, 3.0, 2.0, 0.0], ["a", "b", "c", "d"], 1.0, 1) == [1]
    assert Association((1.0, 3.0)).mean == 2.0


@needs_data
def test_the_transcripts_make_schemas_of_all_they_state(tmp_path: Path) -> None:
    """With the released replies as the proposing model, 48 pairs come of all 44 source pairs."""
    sent = [json.loads(line) for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()]
    script = {"generate": {request["prompt"]: request["completion"] for request in sent}}
    defaults = {"generate": "I cannot say.", "likelihood": -1, "critic": 0.5}
    name = fixture.scripted(tmp_path / "t.json", {**script, "defaults": defaults})
    words = ("evaluate", "winograd", "generate", ANNOTATED, "-m", name, "--prompt", "released", "--json")
    found = json.loads(run(*words, "--out", tmp_path / "new.jsonl", "--db", tmp_path / "t.db").stdout)
    items = read_items(tmp_path / "new.jsonl")

    assert found["counts"]["pairs made"] == 48
    assert len({item.family for item in items}) == 44
    assert "The race car zoomed by the minivan because it was going so fast." in {item.text for item in items}


@pytest.mark.parametrize(
    ("text", "options", "made"),
    [
        (
            "The older students were bullying the younger ones, so we punished them.",
            ("The older students", "The younger students"),
            "The judges were bullying the clerks, so we punished them.",
        ),
        (
            "The customer stabbed one of the tellers. He fled.",
            ("The customer", "The teller"),
            "The judges stabbed the clerks. He fled.",
        ),
        (
            "John saw a man juggling melons in the park, and he was impressed.",
            ("John", "The juggler"),
            "The judges saw the clerks, and he was impressed.",
        ),
        (
            "In July Kamtchatka attacked Yakutsk. They used Kamtchatka's army.",
            ("Kamchatka", "Yakutsk"),
            "In July the judges attacked the clerks. They used the judges' army.",
        ),
        ("Anne gave birth to a daughter. She is charming.", ("Anne", "Anne's daughter"), None),
        ("The house in Porto was sold. It was new.", ("The house", "The mouse"), None),
    ],
)
def test_entities_are_exchanged_however_the_sentence_names_them(
    text: str, options: tuple[str, str], made: str | None
) -> None:
    """A mention in other words or another spelling is exchanged; options that the sentence does not name are not found."""
    item = WinogradItem("mine:0", "mine:0", "mine", text, "he", options, 0, "row 0", "mine:0")
    named = options_as_named(item)

    assert (named and replaced(text, named, ("The judges", "The clerks"))) == made


# --- people -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    return fixture.write(tmp_path / "reversed.csv", fixture.REVERSED)


Answer = Callable[[dict[str, str]], str]


def right(row: dict[str, str]) -> str:
    """Answers of an annotator who agrees with every label and finds every schema usable."""
    if row["question"].startswith("schema label"):
        return SCHEMA_LABELS[int(row["question"][-1]) - 1]
    return "yes"


def filled(path: Path, answer: Answer) -> Path:
    rows = list(csv.DictReader(path.open(encoding="utf-8-sig", newline="")))
    for row in rows:
        if row["section"] != "instructions":
            row["answer"] = answer(row)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def judge(schemas: Path, voters: dict[str, Answer], *more: str) -> None:
    folder, database = schemas.parent / "sheets", schemas.parent / "p.db"
    named = [word for name in voters for word in ("--annotator", name)]
    run("evaluate", "winograd", "sheets", schemas, *named, *more, "--out", folder, "--db", database)
    files = [filled(folder / f"schemas-{name}.csv", answer) for name, answer in voters.items()]
    run("evaluate", "winograd", "import", schemas, *files, "--db", database)


def doubtful(row: dict[str, str]) -> str:
    """Disagrees with the label of one sentence, and finds one schema without trap."""
    if "tractor" in row["text"] and row["question"] == "schema label 2":
        return "unclear"
    if "thimble doesn't go into the barn" in row["text"] and row["question"] == "schema adversarial":
        return "no"
    return right(row)


def judged(schemas: Path, *more: str | Path) -> dict[str, Any]:
    result = run("evaluate", "winograd", "judged", schemas, "--db", schemas.parent / "p.db", "--json", *more)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_what_annotators_differ_on_is_discarded(schemas: Path) -> None:
    """Two annotators differ on two of four schemas: those are discarded, the other two are written."""
    judge(schemas, {"ann": right, "bob": doubtful})
    found = judged(schemas, "--out", schemas.parent / "kept.jsonl")
    kept = pairs_of(read_items(schemas.parent / "kept.jsonl"))
    shown = run("evaluate", "winograd", "judged", schemas, "--db", schemas.parent / "p.db").stdout

    assert found["disagreement"]["value"] == 0.5
    assert found["fates"] == {"annotators disagree": 2, "kept": 2}
    assert found["agreement"]["schema adversarial"]["percent"]["value"] == 0.75
    assert found["agreement"]["schema context"]["percent"]["value"] == 1.0
    assert [item.text.split()[1] for item, _ in kept] == ["weightlifter", "tycoon"]
    assert "below 7.5 %" in shown


def test_a_third_annotator_adjudicates(schemas: Path) -> None:
    """The sheet of what is disputed has two schemas; a third vote decides both."""
    judge(schemas, {"ann": right, "bob": doubtful})
    judge(schemas, {"eve": right}, "--disputed")
    rows = list(csv.DictReader((schemas.parent / "sheets" / "schemas-eve.csv").open(encoding="utf-8")))

    assert len({row["item"] for row in rows if row["section"] == "item"}) == 2
    assert judged(schemas)["fates"] == {"kept": 4}


def test_one_annotator_is_not_enough(schemas: Path) -> None:
    """Nothing stays on one person's word, and without disagreement there is nothing to adjudicate."""
    judge(schemas, {"ann": right})
    words = (
        "evaluate",
        "winograd",
        "sheets",
        schemas,
        "--disputed",
        "--annotator",
        "eve",
        "--db",
        schemas.parent / "p.db",
    )

    assert judged(schemas)["fates"] == {"fewer than two annotators": 4}
    assert "annotators agree on all schemas" in run(*words, "--out", schemas.parent / "s", code=1).stderr


def test_sheets_of_schemas_belong_to_their_file(schemas: Path, tmp_path: Path) -> None:
    """`votes import` sends them to the right command; a changed sentence is found."""
    folder = tmp_path / "sheets"
    run("evaluate", "winograd", "sheets", schemas, "--annotator", "ann", "--out", folder, "--db", tmp_path / "p.db")
    sheet = filled(folder / "schemas-ann.csv", right)
    page = (folder / "schemas-ann.html").read_text(encoding="utf-8")
    elsewhere = run("votes", "import", sheet, "--db", tmp_path / "p.db", code=1)
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("tycoon", "baron"), encoding="utf-8")
    changed = run("evaluate", "winograd", "import", schemas, sheet, "--db", tmp_path / "p.db", code=1)

    assert "Whom does the pronoun mean?" in page
    assert "hapax evaluate winograd import" in elsewhere.stderr
    assert "was changed in other cells" in changed.stderr


# --- export -----------------------------------------------------------------------------------------------------------


def exported(schemas: Path, *more: str) -> Path:
    folder = schemas.parent / "tasks"
    run("evaluate", "winograd", "export", schemas, "--name", "crwsc", "--out", folder, *more)
    return folder


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_tasks_hold_one_document_for_a_pair(schemas: Path) -> None:
    """Four pairs are four documents with six prompts, four choices and the right one's place; the bytes are stable."""
    folder = exported(schemas)
    documents = rows_of(folder / "lm_eval" / "reversed.jsonl")
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    exported(schemas)

    assert len(documents) == 4
    assert documents[0]["choices"][documents[0]["label"]] == "1. The weightlifter 2. The toddler"
    assert documents[0]["prompt_zero_shot"].endswith("A:")
    assert sum(name.startswith("prompt_") for name in documents[0]) == 6
    assert (folder / "lm_eval" / "crwsc_choice.yaml").exists()
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_exported_reading_is_ours(schemas: Path) -> None:
    """The file beside the tasks reads a reply as `ask` does, and metrics are single, pair, unparsed and consistency."""
    folder = exported(schemas) / "lm_eval"
    spec = importlib.util.spec_from_file_location("utils", folder / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)
    document = rows_of(folder / "reversed.jsonl")[0]

    assert utils.process_generated(document, ["1. The weightlifter 2. nobody"]) == {
        "single": 0.5,
        "pair": 0.0,
        "unparsed": 0.5,
        "consistency": (document["family"], False),
    }
    assert utils.process_choice(document, [(-2.0, False), (-1.0, False), (-3.0, False), (-4.0, False)])["pair"] == 1.0
    assert read_strictly("1. The weightlifter 2. nobody", tuple(document["options"])) == (0, None)


def test_consistency_of_families() -> None:
    """A family counts if all its pairs are right; of nothing there is no figure."""
    assert shipped_lm_eval.consistency([("a", True), ("a", False), ("b", True)]) == 0.5
    assert str(shipped_lm_eval.consistency([])) == "nan"


def test_inspect_samples_have_its_fields(schemas: Path) -> None:
    """A file for each source and method, each sample with input, target, id and what the scorer needs."""
    folder = exported(schemas) / "inspect"
    samples = rows_of(folder / "reversed--aot.jsonl")

    assert len(list(folder.glob("reversed--*.jsonl"))) == 6
    assert [set(fields) for fields in samples] == [{"input", "target", "id", "metadata"}] * 4
    assert samples[0]["target"] == "1. The weightlifter 2. The toddler"
    assert (folder / "task.py").exists()
    assert "no pairs to export" in run("evaluate", "winograd", "export", schemas, "--source", "x", code=1).stderr
    assert "is not a valid task name" in run("evaluate", "winograd", "export", schemas, "--name", "A b", code=1).stderr


ASK = """
import sys
sys.path.insert(0, sys.argv[1])
import task
from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, ModelUsage, get_model

reply = ModelOutput.from_content("mockllm/model", "1. The weightlifter. 2. The toddler.")
reply.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=[reply] * 4)
(log,) = run(task.winograd(), model=model, display="none", log_dir=sys.argv[2])
print(log.status, {one.name: one.metrics["mean"].value for one in log.results.scores})
"""
"""Tokens are told, for Inspect would download a tokenizer to count them."""


def python(folder: Path, *words: str | Path) -> str:
    """Output of another Python, without network and with its caches in the test's folder."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **offline}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.harness
@pytest.mark.timeout(600)
def test_harness_takes_the_tasks(schemas: Path) -> None:
    """`lm-eval` takes both groups for valid and runs them, with the figures of pairs."""
    folder = exported(schemas)
    named = ("--tasks", "crwsc,crwsc_choice", "--include_path", folder / "lm_eval")
    valid = python(folder, "-m", "lm_eval", "validate", *named)
    ran = python(folder, "-m", "lm_eval", "run", "--model", "dummy", *named)

    assert "All tasks found and valid" in valid
    assert "crwsc_choice_reversed_zero_shot" in ran
    assert "consistency" in ran


@pytest.mark.harness
def test_inspect_runs_the_task(schemas: Path) -> None:
    """A model that always names the weightlifter and the toddler has one pair of four."""
    output = python(schemas.parent, "-c", ASK, exported(schemas) / "inspect", "logs")

    assert output.startswith("success")
    assert "'pair': 0.25" in output
    assert "'unparsed': 0.75" in output
