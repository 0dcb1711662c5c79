"""Calibration of critics, and promises on the precision of facts, denials and statements, where they are made and read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from click.testing import Result
from papers_fixture import flat, judge, script, told

import hapax

GEMS = [f"gem {number}" for number in range(120)]
ODD = {gem for number, gem in enumerate(GEMS) if number % 2}
RULES = """
oracle is_mined_in(Gem, Country): "[1] is mined in [2]" / "[1] is not mined in [2]" / "is [1] mined in [2]?"
oracle is_banned_in(Gem, Country): "[1] is banned in [2]" / "[1] is not banned in [2]" / "is [1] banned in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
given can_buy(Person, Gem): "[1] can buy [2]" / "[1] cannot buy [2]" / "can [1] buy [2]?"
@name gems
visits(Person X, Country A) & is_mined_in(Gem B, Country A){ban} -> can_buy(Person X, Gem B)
"""

BAN = " & not is_banned_in(Gem B, Country A)"
PROMISE = ("--precision", "0.9", "--confidence", "0.8")
WORDS = "at least 0.9 of the accepted are true, with confidence 0.8"


def write(even: float, odd: float, ban: str = "", critic: float = 0.9) -> None:
    """A model that proposes 120 gems of one country; its scores of even and of odd ones, and what bans them."""
    scores = {f"{gem.capitalize()} is mined in Peru.": odd if n % 2 else even for n, gem in enumerate(GEMS)}
    scores |= {f"{gem.capitalize()} is banned in Peru.": 0.1 if n % 2 else 0.01 for n, gem in enumerate(GEMS)}
    values = {"'[A] is mined in [B]'": ["Peru"], "'[A] is mined in Peru'": GEMS, "'[B] is mined in Peru'": GEMS}
    script(Path("gems.json"), yes=critic, says=["Peru"], generate=values, critic=scores)
    Path("gems.rules").write_text(RULES.replace("{ban}", ban), "utf-8")


def write_labels(mined: Callable[[int], bool], banned: Callable[[int], bool] | None = None) -> None:
    """A file of labels: which gems are mined, and which are banned."""
    rows = [(mined(n), "is_mined_in", gem) for n, gem in enumerate(GEMS)]
    rows += [(banned(n), "is_banned_in", gem) for n, gem in enumerate(GEMS)] if banned else []
    lines = [f"{str(is_true).lower()}\t{predicate}\t{gem}\tPeru\n" for is_true, predicate, gem in rows]
    Path("labels.tsv").write_text("".join(lines), "utf-8")


def search(*more: str) -> Result:
    command = ("search", "gems.rules", "-m", "scripted:gems.json", "--likelihood", "scripted:gems.json")
    return invoke(*command, "--values", "120", "--no-progress", "--db", "kb.db", *more)


def searched_with(*more: str) -> str:
    """The output of a search that ends well, in one line."""
    result = search(*more)
    assert result.exit_code == 0, result.output
    return flat(result.output)


def refused(*more: str, code: int = 1) -> str:
    """The output of a search that makes no promise."""
    result = search(*more)
    assert result.exit_code == code
    return flat(result.output)


def calibrate(*more: str, code: int = 0) -> str:
    options = ("--rules", "gems.rules", "--critic", "scripted:gems.json", "--labels", "labels.tsv")
    return run("model", "calibrate", *options, "--db", "kb.db", *more, code=code).output


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search without a promise was done. Odd gems, with a score of .5, are true, the others, with .3, are false."""
    folder = tmp_path_factory.mktemp("gems")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write(0.3, 0.5)
        write_labels(lambda number: bool(number % 2))
        searched_with("--fact-threshold", "0.99")
    return folder


@pytest.fixture
def gems(searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the working folder."""
    shutil.copytree(searched, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(*more: str) -> int:
    """The number of statements that `plan` expects."""
    command = ("plan", "gems.rules", "-m", "scripted:gems.json", "--likelihood", "scripted:gems.json", "--values", 120)
    (rule,) = told(*command, "--db", "kb.db", *more)["rules"]
    return int(rule["statements"])


def facts() -> set[str]:
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        return {str(fact.arguments[0]) for fact in kb.facts("is_mined_in")}


# Calibration


def test_labels_teach_a_map_which_is_stored(gems: Path) -> None:
    """The command tells labels and measures on held-out keys; labels that left a file go."""
    said = calibrate("--reserve", "0.5")
    lines = Path("labels.tsv").read_text("utf-8").splitlines(keepends=True)
    Path("labels.tsv").write_text("".join([*lines[:29], lines[29].replace("true", "false"), *lines[30:50]]), "utf-8")
    calibrate()
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        labels = {str(label.arguments[0]): label.is_true for label in kb.labels()}

    assert "120 labels, 60 of them true" in said
    assert "AUC" in said
    assert len(labels) == 50
    assert labels["gem 29"] is False


def test_a_calibrated_search_accepts_what_raw_scores_hide(gems: Path) -> None:
    """A critic that never says more than .5 is useless to the usual threshold, and useful when it is calibrated."""
    calibrate()
    searched_with("--fact-threshold", "0.85")
    before = facts()
    searched_with("--calibrated", "--fact-threshold", "0.85")

    assert before == set()
    assert facts() == ODD


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"true\tis_mined_in\tgem 1\tPeru\nmaybe\tis_mined_in\tgem 2\tPeru\n", "labels.tsv:2:"),
        (b"true\tis_mined_in\tgem 1\tPeru\nfalse\tis_mined_in\tgem 1\tPeru\n", "labels.tsv:2:"),
        ("true\tis_mined_in\tÖl\tPeru\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_faulty_labels_are_named(gems: Path, content: bytes, words: str) -> None:
    """A line that is no label, two lines that contradict each other, and a file that is no text."""
    Path("labels.tsv").write_bytes(content)

    assert words in flat(calibrate(code=1))


# Promises on facts


def test_a_promise_accepts_what_its_labels_allow(gems: Path) -> None:
    """The threshold lies where the labels are true, below Hapax's own; the certificate is kept with its run. Labels
    that taught the map do not certify calibrated scores."""
    calibrate()
    said, taught = searched_with(*PROMISE), refused("--precision", "0.9", "--calibrated")
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        (certificate,) = kb.certificates()
        runs = {record.id for record in kb.runs()}

    assert WORDS in said
    assert facts() == ODD
    assert (certificate.threshold, certificate.false, certificate.labels) == (0.5, 0, 60)
    assert certificate.run_id in runs
    assert "nothing is labelled" in taught


def test_nothing_is_promised_without_labels_a_map_or_a_promise(gems: Path) -> None:
    """Without labels the command ends before anything is asked and says how many are needed; options need a promise."""
    unlabelled = refused("--precision", "0.95")

    assert "nothing is labelled" in unlabelled
    assert "more labels would do" in unlabelled
    assert "hapax model calibrate" in refused("--calibrated")
    for option in (("--confidence", "0.9"), ("--certify-by", "predicate")):
        assert "--precision" in refused(*option, code=2)
    with pytest.raises(hapax.HapaxError, match="between 0 and 1"):
        hapax.Promise(precision=95)


CUT = """
oracle is_cut_in(Gem, Country): "[1] is cut in [2]" / "[1] is not cut in [2]" / "is [1] cut in [2]?"
given can_see(Person, Gem): "[1] can see [2] cut" / "[1] cannot see [2] cut" / "can [1] see [2] cut?"
@name cut
visits(Person X, Country A) & is_cut_in(Gem B, Country A) -> can_see(Person X, Gem B)
"""


def test_promises_of_two_predicates_share_their_confidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """True labels that just suffice for one predicate do not for two, which need those of one at half the error."""
    few, enough = 14, 19
    monkeypatch.chdir(tmp_path)
    write(0.5, 0.5)
    content = json.loads(Path("gems.json").read_text("utf-8"))
    for part in ("generate", "critic"):
        content[part] |= {key.replace("mined", "cut"): value for key, value in content[part].items()}
    Path("gems.json").write_text(json.dumps(content), "utf-8")

    def promised(labels: int, confidence: str, *verbs: str) -> bool:
        lines = [f"true\tis_{verb}_in\t{gem}\tPeru\n" for verb in verbs for gem in GEMS[:labels]]
        Path("labels.tsv").write_text("".join(lines), "utf-8")
        calibrate()
        wanted = ("--precision", "0.9", "--confidence", confidence, "--certify-by", "predicate")
        return search(*wanted).exit_code == 0

    numbers = (few - 1, few, enough - 1, enough)
    searched_with("--fact-threshold", "0.1")
    assert [promised(number, "0.8", "mined") for number in numbers] == [False, True, True, True]
    assert [promised(number, "0.9", "mined") for number in numbers] == [False, False, False, True]
    Path("gems.rules").write_text(RULES.replace("{ban}", "") + CUT, "utf-8")
    searched_with("--fact-threshold", "0.1")
    assert [promised(number, "0.8", "mined", "cut") for number in numbers] == [False, False, False, True]


# Certificates where they are read


def certified(*more: str) -> list[str]:
    """HTML report of the certified run, and if they are named its dataset's card and the story of one of its facts."""
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        (run_id,) = {certificate.run_id for certificate in kb.certificates()}
    run("report", "--run", run_id, "-o", "page.html", "--db", "kb.db")
    texts = [Path("page.html").read_text("utf-8")]
    if "card" in more:
        run("data", "dataset", "data", "--force", "--run", run_id, "--format", "hf", "--db", "kb.db")
        texts.append(Path("data/README.md").read_text("utf-8").replace("\\", ""))
    if "story" in more:
        texts.append(run("why", f"is_mined_in('{GEMS[1]}', 'Peru')", "--db", "kb.db", "--rules", "gems.rules").output)
    return texts


def relabel() -> None:
    write_labels(lambda _: False)
    calibrate("--reserve", "0.2")


def reword() -> None:
    rules = Path("gems.rules").read_text("utf-8").replace('"[1] is mined in [2]"', '"[1] is dug up in [2]"')
    Path("gems.rules").write_text(rules, "utf-8")
    searched_with()


def revise() -> None:
    write(0.3, 0.5, critic=0.95)
    searched_with()


@pytest.mark.parametrize(
    ("change", "reason", "places"),
    [
        (relabel, "the calibration has changed since", ("card", "story")),
        (reword, "the wording of is_mined_in/2 has changed since", ("card",)),
        (revise, "has had another revision since", ()),
    ],
)
def test_a_certificate_stands_in_page_card_and_story_until_it_lapses(
    gems: Path, change: Callable[[], Any], reason: str, places: tuple[str, ...]
) -> None:
    """A promise ends with another calibration, another wording of the facts, or another revision of its critic; with
    the former revision it is made anew and holds."""
    calibrate("--reserve", "0.7")
    searched_with(*PROMISE, "--calibrated")
    before = certified("card", "story")
    change()

    for text in before:
        assert WORDS in text
        assert "LAPSED" not in text
    for text in certified(*places):
        assert "LAPSED" in text
        assert reason in text
    if change is revise:
        write(0.3, 0.5)
        searched_with(*PROMISE, "--calibrated")
        assert "LAPSED" not in certified()[0]


# Promises on statements and on denials


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search of 120 statements, all facts of which pass their threshold, was done; those of even gems score higher."""
    monkeypatch.chdir(tmp_path)
    write(0.95, 0.9)
    searched_with("--keep-share", "0.5")
    return tmp_path / "kb.db"


STATEMENTS = ("--keep-share", "0.5", "--statement-precision", "0.9", "--confidence", "0.8")


def vote(database: Path, is_true: Callable[[int], bool]) -> None:
    """Ann judges all statements: true are those about these gems."""
    answers = {(f"can buy {gem}.", "soundness"): "yes" if is_true(n) else "rule" for n, gem in enumerate(GEMS)}
    judge(database, "ann", answers, "soundness")


def kept() -> set[str]:
    """Gems of the run with a promise on statements."""
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        run_id = next(record.run_id for record in kb.certificates() if record.fact_group.startswith("statements"))
        return {str(dict(statement.substitution)["B"]) for statement in kb.statements(run_id=run_id)}


def test_statements_are_kept_by_what_people_judged(shop: Path) -> None:
    """The threshold of statements lies where judged ones are true; `why` states the promise, and `plan` expects half."""
    before = plan()
    vote(shop, lambda number: number % 2 == 0)

    assert f"statements: {WORDS}" in searched_with(*STATEMENTS)
    assert kept() == set(GEMS) - ODD
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        run_id = kb.certificates()[0].run_id
        statement = kb.statements(run_id=run_id)[0].id
    assert "certificate of statements" in run("why", statement, "--db", "kb.db", "--rules", "gems.rules").output
    assert plan(*STATEMENTS[2:]) == pytest.approx(before / 2, rel=0.1)


def test_sure_facts_promise_nothing_about_statements(shop: Path) -> None:
    """Without judged statements the message says what to do; where people find those of a rule false, nothing helps."""
    unjudged = refused("--statement-precision", "0.9")
    vote(shop, lambda _: False)
    false = refused("--statement-precision", "0.9", "--certify-by", "predicate")

    assert "nothing is labelled" in unjudged
    assert "hapax votes next" in unjudged
    assert "statements of gems" in false
    assert "no number of further ones would do" in false


def test_what_a_critic_denies_needs_a_promise_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under --precision an atom of an open predicate is denied only up to the score that its own labels allow."""
    monkeypatch.chdir(tmp_path)
    write(0.95, 0.95, BAN)
    searched_with("--keep-share", "0.5")
    write_labels(lambda _: True, lambda number: bool(number % 2))
    calibrate()

    assert "denials: at least 0.9 of the denied are false" in searched_with(
        *PROMISE, "--keep-share", "0.5", "--account"
    )
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        (run_id,) = {record.run_id for record in kb.certificates()}
        assert {str(dict(item.substitution)["B"]) for item in kb.statements(run_id=run_id)} == set(GEMS) - ODD


def test_both_promises_hold_of_what_both_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements whose facts or denials fall below their promise are in no pool of the statements."""
    monkeypatch.chdir(tmp_path)
    write(0.95, 0.9, BAN)
    searched_with("--keep-share", "0.5")
    write_labels(lambda number: number % 2 == 0, lambda number: bool(number % 2))
    calibrate()
    vote(tmp_path / "kb.db", lambda number: number % 2 == 0)
    searched_with(*STATEMENTS, "--precision", "0.9")

    assert kept() == set(GEMS) - ODD
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        pools = {record.fact_group: record.pool for record in kb.certificates()}
    assert pools["statements"] == 60
