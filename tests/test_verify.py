"""`hapax verify`: a knowledge base that was changed or damaged from outside says so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.api.kept_rules import keep_rules
from hapax.engine.inference import replay
from hapax.engine.inference.proof import By, Proof
from hapax.engine.inference.replay import StepChecker, StepFault
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Variable
from hapax.kb.records import (
    AtomPattern,
    CallRecord,
    Candidate,
    DenialRecord,
    FactRecord,
    Question,
    RuleRecord,
    RunRecord,
    Source,
)
from hapax.kb.roots import Roots, RunRoot
from hapax.kb.rows import BINDINGS, TREE
from hapax.kb.store import KnowledgeBase

QUESTION = Question((AtomPattern("is_in", (None, "paella")),), "Ingredient")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A file with a fact, its candidate and its question."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        kb.add_questions([QUESTION])
        candidate = Candidate(QUESTION.id, "saffron", "saffron", "call", 0, None)
        kb.add_candidates([candidate])
        types = ("Ingredient", "Dish")
        kb.add_facts([FactRecord("is_in", ("saffron", "paella"), types, Source.MODEL, 0.9, candidate.id)])
        kb.record_calls([CallRecord("call", "knowledge", "tiny", {}, {})])
    return path


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql)


def test_an_untouched_file_is_clean(database: Path) -> None:
    """Nothing is listed for a file as Hapax wrote it."""
    result = invoke("verify", "--db", database)

    assert result.exit_code == 0
    assert result.stdout.partition(" ")[2].startswith("rows checked, none damaged.\nroot ")


def test_a_changed_row_is_named(database: Path) -> None:
    """A fact whose value was changed is listed with its table, key and content; others are not."""
    change(database, """UPDATE facts SET arguments = '["arsenic","paella"]'""")
    result = invoke("verify", "--db", database, "--json")
    (damage,) = json.loads(result.stdout)["damages"]

    assert result.exit_code == 1
    assert damage["table"] == "facts"
    assert "arsenic" in damage["content"]
    assert "arsenic" in invoke("verify", "--db", database).stdout


def test_a_reference_to_a_missing_row_is_named(database: Path) -> None:
    """A deleted candidate shows in the fact that rests on it."""
    change(database, "DELETE FROM candidates")
    with KnowledgeBase(database, read_only=True) as kb:
        verification = hapax.verify(kb)

    assert [(damage.table, "candidates" in damage.reason) for damage in verification.damages] == [("facts", True)]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """An index that does not fit its table is found by SQLite's own check."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts([FactRecord("is_old", (f"city {number}",), ("City",), Source.GIVEN) for number in range(20)])
        page = kb.query("SELECT rootpage FROM sqlite_master WHERE name = 'idx_facts_predicate'")[0][0]
        size = kb.query("PRAGMA page_size")[0][0]
    with path.open("r+b") as stream:
        stream.seek((page - 1) * size)
        content = stream.read(size)
        stream.seek((page - 1) * size)
        stream.write(content.replace(b"is_old", b"is_odd", 1))
    result = invoke("verify", "--db", path, "--json")

    assert result.exit_code == 1, result.output
    assert {damage["table"] for damage in json.loads(result.stdout)["damages"]} == {"SQLite"}


# --- stored proofs ----------------------------------------------------------------------------------------------------

RULES = """\
symmetric borders/2.
closed borders/2.
oracle borders(Country, Country): "[1] borders [2]" / "[1] does not border [2]" / "does [1] border [2]?".
oracle has_area(Country, Number): "[1] has an area of [2] km2" / "[1] has no area of [2] km2" / "has [1] an area of [2]?".
given is_closed(Country): "[1] is closed" / "[1] is open" / "is [1] closed?".
aggregate neighbours(Country X, Number N) := N = count(Country Y: borders(X, Y)).
@generic none
can_drive(Country A, Country B) :- borders(Country A, Country B) & has_area(Country B, Number N) & N > 5.

@name drive
visits(Person X, Country A) & can_drive(Country A, Country B) & neighbours(Country A, Number K) & K > 0
-> might_see(Person X, Country B) unless is_closed(Country B)
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with statements whose proofs have facts, rules, declarations, aggregates, comparisons and exceptions."""
    folder = tmp_path_factory.mktemp("searched")
    rules = folder / "drive.rules"
    rules.write_text(RULES, "utf-8")
    options = ("-m", "simulated", "--values", 4, "--beam", 4, "--no-progress", "--db", folder / "kb.db")
    assert invoke("search", rules, *options).exit_code == 0
    return folder / "kb.db"


@pytest.fixture
def proved(searched: Path, tmp_path: Path) -> Path:
    """A copy of `searched`."""
    with closing(sqlite3.connect(searched)) as source, closing(sqlite3.connect(tmp_path / "kb.db")) as copy:
        source.backup(copy)
    return tmp_path / "kb.db"


def wrong_proofs(path: Path) -> list[tuple[str, str, str]]:
    with KnowledgeBase(path, read_only=True) as kb:
        verification = hapax.verify(kb)
    assert not verification.rewritten
    return [(damage.row, damage.reason, damage.content) for damage in verification.damages if damage.table == "proofs"]


def test_proofs_are_replayed(proved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs as a search stored them have no fault, and their number is told, however many are read at a time."""
    result = json.loads(invoke("verify", "--db", proved, "--json").stdout)
    with closing(sqlite3.connect(proved)) as connection:
        text = "".join(proof for (proof,) in connection.execute("SELECT proof FROM proofs"))

    assert (result["damages"], result["rewritten"]) == ([], [])
    assert result["proofs"] > 2
    monkeypatch.setattr(replay, "BATCH", 2)
    assert json.loads(invoke("verify", "--db", proved, "--json").stdout) == result
    assert all(f'"by":"{by}"' in text for by in ("fact", "rule", "declaration", "computed", "negation", "assumption"))


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('"by":"fact"', '"by":"given"', ""),
        ('"by":"fact"', '"by":"computed"', "is not a computed predicate"),
        ('"predicate":"might_see"', '"predicate":"must_see"', "is not what rule drive concludes"),
        ('"predicate":"visits"', '"predicate":"leaves"', "is not the premise"),
        ('"operator":">"', '"operator":"<"', "does not hold"),
        ('"fact":"', '"fact":"0', "names a fact of other content"),
        ('"by":"assumption"', '"by":"fact"', "names no fact"),
        ('"by":"negation"', '"by":"assumption"', "cannot justify the premise"),
        ('"rule":"drive"', '"rule":"fly"', "not with a step of rule drive"),
        ('{"steps":', '{"step":', "cannot be read"),
    ],
)
def test_a_changed_step_is_named(proved: Path, before: str, after: str, reason: str) -> None:
    """A statement whose proof was altered is listed with its id, the step and its text; the others are not."""
    with closing(sqlite3.connect(proved)) as connection, connection:
        key, proof = connection.execute("SELECT key, proof FROM proofs WHERE instr(proof, ?)", (before,)).fetchone()
        select = "SELECT id, premise, conclusion FROM statements WHERE key = ?"
        identity, premise, conclusion = connection.execute(select, (key,)).fetchone()
        altered = proof.replace(before, after, 1)
        connection.execute("UPDATE proofs SET proof = ? WHERE key = ?", (altered, key))
    found = wrong_proofs(proved)

    if not reason:  # who states a fact may change later
        assert found == []
        return
    ((row, fault, content),) = [item for item in found if item[0] == identity]
    assert len(found) == 1
    assert reason in fault
    assert row == identity
    assert premise[:20].lower() in content.lower()
    assert conclusion in content


@pytest.mark.parametrize(
    ("third", "faults"),
    [
        ('{"decimal":"3333.333333333333333333333333","exact":"10000/3"}', 0),
        # As versions wrote it that kept no fraction.
        ('{"decimal":"3333.333333333333333333333333"}', 0),
        ('{"decimal":"3333.33333"}', 1),
        ('{"decimal":"-3333.333333333333333333333333"}', 1),
    ],
)
def test_a_stored_third_has_all_its_digits(tmp_path: Path, third: str, faults: int) -> None:
    """A computed third is no damage where its decimal has all digits that are kept; one that is cut before is."""
    rules, path = tmp_path / "share.rules", tmp_path / "kb.db"
    rules.write_text(
        """
        given has_area(Country, Number): "[1] has an area of [2] km2".
        fact has_area("Liechtenstein", 10000)
        @name share
        visits(Person X, Country A) & has_area(Country A, Number N) & S = N / 3 -> sees(Person X, Number S)
        """,
        "utf-8",
    )
    result = invoke("search", rules, "-m", "simulated", "--no-progress", "--db", path)
    with closing(sqlite3.connect(path)) as connection, connection:
        ((proof, substitution),) = connection.execute(
            "SELECT proof, substitution FROM proofs JOIN statements USING (key)"
        )
        exact = '{"decimal":"3333.333333333333333333333333","exact":"10000/3"}'
        assert exact in proof, result.output
        connection.execute("UPDATE proofs SET proof = ?", (proof.replace(exact, third),))
        connection.execute("UPDATE statements SET substitution = ?", (substitution.replace(exact, third),))

    assert len(wrong_proofs(path)) == faults


def test_every_damaged_proof_is_listed(proved: Path) -> None:
    """One damaged proof hides no other, and all are counted as replayed."""
    with closing(sqlite3.connect(proved)) as connection, connection:
        connection.execute("""UPDATE proofs SET proof = replace(proof, '{"steps":', '{"step":')""")
        statements = {identity for (identity,) in connection.execute("SELECT id FROM statements")}
    result = json.loads(invoke("verify", "--db", proved, "--json").stdout)

    assert len(statements) > 1
    assert {damage["row"] for damage in result["damages"] if damage["table"] == "proofs"} == statements
    assert result["proofs"] == len(statements)


def test_a_missing_proof_is_named(proved: Path) -> None:
    """A statement whose proof was deleted is listed."""
    change(proved, "DELETE FROM proofs WHERE key = (SELECT min(key) FROM proofs)")

    assert [reason for _, reason, _ in wrong_proofs(proved)] == ["it has no proof"]


def test_a_withdrawn_fact_is_no_damage(proved: Path) -> None:
    """Statements that fell with a withdrawn fact are not damaged."""
    change(proved, "DELETE FROM facts WHERE id IN (SELECT fact_id FROM statement_facts LIMIT 1)")

    assert wrong_proofs(proved) == []


def test_a_fact_that_is_gone_is_named(proved: Path) -> None:
    """A fact that was deleted without a withdrawal is missed by the statements that rest on it."""
    with closing(sqlite3.connect(proved)) as connection, connection:
        ((fact, falling),) = connection.execute(
            "SELECT fact_id, count(*) FROM statement_facts GROUP BY fact_id ORDER BY 2 LIMIT 1"
        ).fetchall()
        connection.execute("DELETE FROM facts WHERE id = ?", (fact,))
        connection.execute("DELETE FROM withdrawals")
    found = wrong_proofs(proved)

    assert len(found) == falling
    assert all("is not in the knowledge base" in reason for _, reason, _ in found)


def test_a_rewritten_rule_is_no_damage(proved: Path) -> None:
    """Statements of a rule that has another premise now are compared with the facts only, and the rule is named."""
    rules = proved.with_name("other.rules")
    rules.write_text(RULES.replace("has_area(Country B, Number N) & N > 5", "is_closed(Country B)"), "utf-8")
    with KnowledgeBase(proved) as kb:
        keep_rules(kb, rules)
    result = invoke("verify", "--db", proved)

    assert result.exit_code == 0, result.output
    assert "Rewritten since" in result.output


def test_the_text_of_a_seal_gives_its_roots_back() -> None:
    """A run may have any name; a changed line or another first line is refused."""
    roots = Roots((RunRoot("a run, named twice", 3, "ab" * 32), RunRoot("", 0, "cd" * 32)))

    assert Roots.read(roots.text) == roots
    for text in (
        roots.text.replace(" 3 ", " 4 "),
        roots.text.replace("seal 1", "seal 2"),
        roots.text.replace("run ", "row ", 1),
    ):
        with pytest.raises(ValueError, match=r"seal|root"):
            Roots.read(text)


TOUR = """
given visits(Person, Town)
oracle borders(Town, Town)
oracle is_closed(Town)
aggregate ways(Town X, Number N) := N = count(Town Y: borders(Town X, Town Y))
@name tour
visits(Person X, Town A) & borders(Town A, Town B) & not is_closed(Town B) & ways(Town A, Number N) & Number M = N * 2
  -> tours(Person X, Town B)
"""
BORDERS = FactRecord("borders", ("Ghent", "Lille"), ("Town", "Town"), Source.MODEL, 0.9)


def literal(text: str, *, negated: bool = False) -> Literal:
    """`borders(Ghent, Lille)`: words and numbers are values, and X is the person."""
    name, _, cells = text.removesuffix(")").partition("(")
    terms: list[Constant | Variable] = []
    for cell in cells.split(", "):
        terms.append(Variable("X", "Person") if cell == "X" else Constant(int(cell) if cell.isdecimal() else cell))
    return Literal(Atom(name, tuple(terms)), negated)


def product(left: int, right: int, total: int, operator: str = "=") -> Comparison:
    return Comparison(operator, Constant(total), Arithmetic("*", Constant(left), Constant(right)))


FACT = Proof(literal("borders(Ghent, Lille)"), By.FACT, fact_id=BORDERS.id)
WAYS = Proof(literal("ways(Ghent, 1)"), By.DECLARATION, "aggregate ways/2", (FACT,))
VISIT = Proof(literal("visits(X, Ghent)"), By.ASSUMPTION)
OPEN = Proof(literal("is_closed(Lille)", negated=True), By.DENIAL)
TWICE = Proof(product(1, 2, 2), By.COMPUTED)
STEPS = (VISIT, FACT, OPEN, WAYS, TWICE)


@pytest.mark.parametrize(
    ("place", "step", "reason"),
    [
        (0, VISIT, None),
        (0, replace(VISIT, by=By.GIVEN), "(given) names no fact"),
        (0, replace(VISIT, goal=literal("visits(Ann, Ghent)")), "is not the premise"),
        (0, replace(VISIT, children=(FACT,)), "has premises, which only a step by a rule can have"),
        (1, replace(FACT, by=By.GIVEN), None),  # facts of rule files are stored nowhere
        (1, replace(FACT, by=By.NEGATION), "cannot justify the premise"),
        (1, replace(FACT, fact_id=None), "names no fact"),
        (1, replace(FACT, goal=literal("borders(Lille, Ghent)")), "names a fact of other content"),
        (1, replace(FACT, goal=literal("borders(Ghent, Lille)", negated=True)), "names no fact"),
        (2, replace(OPEN, by=By.NEGATION), None),
        (2, replace(OPEN, goal=literal("is_closed(Lille)")), "is not negated"),
        (2, replace(OPEN, goal=literal("is_closed(Bruges)", negated=True)), 'no critic denied is_closed("Bruges")'),
        (2, replace(OPEN, by=By.ASSUMPTION), "cannot justify the premise"),
        (3, replace(WAYS, children=(OPEN,)), "is not a premise of rule aggregate ways/2"),
        (3, replace(WAYS, goal=literal("ways(Ghent, 3)")), "is not the premise"),
        (4, replace(TWICE, goal=product(1, 2, 3)), "does not hold"),
        (4, replace(TWICE, goal=product(2, 1, 2)), "is not the premise"),
        (4, replace(TWICE, goal=product(1, 2, 2, "=<")), "is not the premise"),
        (4, replace(TWICE, goal=Comparison("=", Constant(2), Constant(2))), "is not the premise"),
        (4, Proof(literal("visits(X, Ghent)"), By.COMPUTED), "is not a computed predicate"),
        (4, Proof(literal("visits(X, Ghent)"), By.ASSUMPTION), "is not the premise"),
    ],
)
def test_each_step_of_a_proof_is_checked(fresh_kb: KnowledgeBase, place: int, step: Proof, reason: str | None) -> None:
    """Facts, denials, comparisons, rows of aggregates and premises have to be those of the knowledge base and the rule."""
    library = hapax.parse_rules(TOUR)
    fresh_kb.add_facts([BORDERS])
    fresh_kb.add_denials([DenialRecord("is_closed", ("Lille",), 0.05)])
    steps = [*STEPS[:place], step, *STEPS[place + 1 :]]
    proof = Proof(literal("tours(X, Lille)"), By.RULE, "tour", tuple(steps))
    values = BINDINGS.encode((("A", "Ghent"), ("B", "Lille"), ("N", 1), ("M", 2)))

    try:
        misfit = StepChecker(fresh_kb, library).misfit("tour", "run", values, TREE.encode(proof.to_json()))
    except StepFault as fault:
        found: str | None = str(fault)
    else:
        found = None if misfit is None else misfit[1]

    assert (found is None) == (reason is None), found
    assert (reason or "") in (found or "")


def test_a_proof_without_a_premise_or_of_another_conclusion_does_not_follow(fresh_kb: KnowledgeBase) -> None:
    """All premises have to be there, and the conclusion has to have the statement's values."""
    fresh_kb.add_facts([BORDERS])
    fresh_kb.add_denials([DenialRecord("is_closed", ("Lille",), 0.05)])
    checker = StepChecker(fresh_kb, hapax.parse_rules(TOUR))

    def reason(goal: str, steps: tuple[Proof, ...], town: str = "Lille") -> str | None:
        proof = Proof(literal(goal), By.RULE, "tour", steps)
        values = BINDINGS.encode((("A", "Ghent"), ("B", town), ("N", 1), ("M", 2)))
        misfit = checker.misfit("tour", "run", values, TREE.encode(proof.to_json()))
        assert misfit is None or misfit[0] == ("run", "tour")
        return misfit and misfit[1]

    assert reason("tours(X, Lille)", STEPS) is None
    assert reason("tours(X, Lille)", STEPS[:4]) == "4 of the 5 premises of rule tour are there"
    assert reason("tours(X, Ghent)", STEPS) == 'tours(Person X, "Ghent") is not what rule tour concludes'
    assert reason("tours(X, Lille)", STEPS, "Bruges") == 'tours(Person X, "Lille") is not what rule tour concludes'
    of_ann = (replace(VISIT, goal=literal("visits(Ann, Ghent)")), *STEPS[1:])  # a statement speaks of nobody
    assert reason("tours(Ann, Lille)", of_ann) == 'tours("Ann", "Lille") is not what rule tour concludes'
    both = (*STEPS[:3], replace(WAYS, children=(OPEN,)))  # a premise of the aggregate is wrong, too
    assert reason("tours(X, Lille)", both) == "4 of the 5 premises of rule tour are there"
    with pytest.raises(StepFault, match="it has no proof"):
        checker.misfit("tour", "run", BINDINGS.encode(()), None)


@pytest.mark.parametrize(("stored", "reason"), [(Decimal("2.0"), None), (3, "names a fact of other content")])
def test_a_step_may_name_the_same_number_in_other_digits(
    fresh_kb: KnowledgeBase, stored: Decimal | int, reason: str | None
) -> None:
    """2 and 2.0 are one value, whichever the fact has; 3 is another."""
    fact = FactRecord("weighs", ("a", stored), ("Thing", "Number"), Source.GIVEN)
    fresh_kb.add_facts([fact])
    library = hapax.parse_rules("@name w\n@generic none\nweighs(Thing X, Number N) -> is_heavy(Thing X)")
    step = Proof(literal("weighs(a, 2)"), By.FACT, fact_id=fact.id)
    tree = TREE.encode(Proof(literal("is_heavy(a)"), By.RULE, "w", (step,)).to_json())

    checker, values = StepChecker(fresh_kb, library), BINDINGS.encode((("X", "a"), ("N", 2)))
    if reason is None:
        assert checker.misfit("w", "run", values, tree) is None
    else:
        with pytest.raises(StepFault, match=reason):
            checker.misfit("w", "run", values, tree)


def test_a_step_may_fit_any_rule_of_its_name(fresh_kb: KnowledgeBase) -> None:
    """A rule that was changed since is known by the text that its search stored; only one search makes that certain."""
    old, new = hapax.parse_rules(TOUR), hapax.parse_rules(TOUR.replace("N * 2", "N * 3"))
    fresh_kb.add_facts([BORDERS])
    fresh_kb.add_denials([DenialRecord("is_closed", ("Lille",), 0.05)])
    fresh_kb.add_rules([RuleRecord.of(old.rule("tour"))])
    fresh_kb.start_run(RunRecord.now("first", "search", {"rules": ["tour", "walk"]}))
    fresh_kb.start_run(RunRecord.now("second", "search", {"rules": ["walk"]}))
    fresh_kb.start_run(RunRecord.now("third", "calibrate", {"rules": ["ride"]}))
    checker = StepChecker(fresh_kb, new)

    def misfit(total: int, factor: int) -> tuple[tuple[str, str], str] | None:
        last = replace(TWICE, goal=product(1, factor, total))
        proof = Proof(literal("tours(X, Lille)"), By.RULE, "tour", (*STEPS[:4], last))
        values = BINDINGS.encode((("A", "Ghent"), ("B", "Lille"), ("N", 1), ("M", total)))
        return checker.misfit("tour", "first", values, TREE.encode(proof.to_json()))

    assert misfit(2, 2) is None  # as stored
    assert misfit(3, 3) is None  # as the library has it
    found = misfit(4, 4)
    assert found is not None
    assert found[0] == ("first", "tour")
    assert "M = N * 2" in found[1]  # the reason of the text that was stored
    assert [checker.is_certain(rule) for rule in ("tour", "walk", "ride")] == [True, False, False]
