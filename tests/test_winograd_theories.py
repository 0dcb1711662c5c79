"""Abstraction with proofs: sentences as atoms over roles, and the referent that Prolog proves."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.theories.abstraction import MARKS, abstracted, entity_name, normalised
from hapax.evaluation.winograd.theories.mapping import UnreadableMapping, Vocabulary, mapped_by
from hapax.evaluation.winograd.theories.measure import answer_all, figures, uncovered
from hapax.evaluation.winograd.theories.patterns import EventPattern, PatternExample, StatedAtom, load_patterns
from hapax.evaluation.winograd.theories.proving import FOLDER, Lack, Referee, shipped_patterns, shipped_theories
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.scripted import ScriptedModel

WEAK = "The walrus couldn't lift the anvil because it was so weak."
HEAVY = "The walrus couldn't lift the anvil because it was so heavy."
ENTITIES = ("the walrus", "the anvil")


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    with Referee() as referee:
        yield referee


# --- the shipped theories ---------------------------------------------------------------------------------------------


def test_shipped_theories_pass_check() -> None:
    """`hapax check` finds nothing in the theories, not even a note."""
    assert list(check_library(shipped_theories())) == []


@pytest.mark.parametrize("example", shipped_patterns().examples, ids=lambda example: example.text)
def test_examples_are_answered(referee: Referee, example: PatternExample) -> None:
    """Each example of a pattern file means its first entity in one form and its second in the other."""
    first, second = (referee.resolve(sentence, example.options) for sentence in example.sentences)

    assert (first.answer, second.answer) == (0, 1)


@pytest.mark.parametrize("example", shipped_patterns().undecided, ids=lambda example: example.text)
def test_undecided_stay_open(referee: Referee, example: PatternExample) -> None:
    """Where only the entities themselves could tell, both candidates are proved, and that is no answer."""
    resolution = referee.resolve(example.text, example.options)

    assert (resolution.answer, resolution.lack) == (None, Lack.BOTH_PROVED)


def uses() -> Iterator[tuple[PatternExample, tuple[EventPattern, ...]]]:
    """Which patterns read which example."""
    book = shipped_patterns()
    for example in (*book.examples, *book.undecided):
        for sentence in example.sentences:
            abstract = abstracted(sentence, example.options)
            assert abstract is not None
            for reading in book.readings(abstract):
                yield example, reading.by


def test_patterns_are_general() -> None:
    """Three examples of our own at least speak of each kind of event, one at least uses each pattern."""
    read = list(uses())
    events: dict[str, set[str]] = {}
    for example, by in read:
        events.setdefault(by[0].atoms[0][0], set()).add(example.text)
    used = Counter(pattern.place for _, by in read for pattern in by)

    assert {name: len(texts) for name, texts in events.items() if len(texts) < 3} == {}
    assert [pattern.place for pattern in shipped_patterns().patterns if not used[pattern.place]] == []


def test_patterns_name_no_entity() -> None:
    """No entity of an example stands in a pattern or a rule: the theories know roles only."""
    entities = {entity_name(name).casefold() for pattern in shipped_patterns().examples for name in pattern.options}
    written = [pattern.text.casefold() for pattern in shipped_patterns().patterns]
    written += [path.read_text(encoding="utf-8").casefold() for path in FOLDER.glob("*.rules")]
    words = {word for text in written for word in re.findall(r"[a-z]+", text.replace("_", " "))}

    assert entities & words == set()


names = st.from_regex(r"[A-Z][a-z]{3,9}( [a-z]{3,9})?", fullmatch=True)


@settings(max_examples=cases(15), deadline=None)
@given(st.sampled_from(shipped_patterns().examples), names, names, st.booleans())
def test_entities_change_nothing(
    referee: Referee, example: PatternExample, first_name: str, second_name: str, swapped: bool
) -> None:
    """Whatever the entities are called, and in whichever order they are offered, the same role is meant."""
    first, second = (set(normalised(name).split()) for name in (first_name, second_name))
    words = {word for text in example.sentences for word in normalised(text).split()}
    assume(not first & second and not (first | second) & words)
    for number, sentence in enumerate(example.sentences):
        abstract = abstracted(sentence, example.options)
        assert abstract is not None
        renamed = abstract.shown((first_name, second_name))
        options = (second_name, first_name) if swapped else (first_name, second_name)

        resolution = referee.resolve(renamed, options)

        assert resolution.answer is not None
        assert options[resolution.answer] == (first_name, second_name)[number]


def test_proof_is_the_same_with_reversed_types(referee: Referee) -> None:
    """A strong lifter of a light load gets, word for word, the proof that any lifter gets."""
    plain = referee.resolve("The man couldn't lift his son because he was so weak.", ("The man", "The son"))
    turned = referee.resolve("The giant couldn't lift his kitten because he was so weak.", ("The giant", "The kitten"))

    assert plain.judgement == turned.judgement
    assert plain.lines(("The man", "The son"))[1:-1] == turned.lines(("The giant", "The kitten"))[1:-1]


# --- abstraction ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "shown"),
    [
        ("The big box won't fit my bag.", ("The big box", "the bag"), "the A will not fit my B."),
        ("Ann's dog bit Bo.", ("Ann", "Bo"), "A's dog bit B."),
        ("I put a laptop in a laptop bag.", ("the laptop", "the laptop bag"), "i put a A in a B."),
        ("One of victims saw thieves.", ("victim", "thief"), None),
        ("The tall boys met the short ones.", ("the tall boys", "the short boys"), "the A met the B."),
        ("Kamtchatka met Bo.", ("Kamchatka", "Bo"), "A met B."),
        ("Ann saw Ann.", ("Ann", "ann"), None),
        ("Ann met Bo.", ("Ann", "the"), None),
        (f"Ann met {MARKS[0]}.", ("Ann", "Bo"), None),
    ],
)
def test_entities_become_marks(text: str, options: tuple[str, str], shown: str | None) -> None:
    """Options are found with other determiners, as plurals, as "ones" or misspelt; the longer one first."""
    abstract = abstracted(text, options)

    assert (abstract and abstract.shown(("A", "B"))) == shown


@given(st.text(max_size=60), st.tuples(st.text(max_size=12), st.text(max_size=12)))
def test_any_text_is_read(text: str, options: tuple[str, str]) -> None:
    """No text and no options make reading fail."""
    abstract = abstracted(text, options)

    if abstract is not None:
        shipped_patterns().readings(abstract)


# --- answers and their absence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pronoun", "lack"),
    [
        ("The walrus met the kettle.", "it", Lack.NOT_NAMED),
        ("The walrus met the anvil, and it sang.", "it", Lack.NOT_READ),
        ("The walrus could not lift the anvil because it was so cruel.", "it", Lack.NOT_PROVED),
        ("The walrus told the anvil lies. She should have been more candid, they said.", "she", Lack.NOT_READ),
        ("The walrus did not come and bite the anvil, or hit the anvil; it was bold.", "it", Lack.NOT_READ),
        ("The badger never came and bit the otter. It was bold.", "it", Lack.NOT_NAMED),
        ("Unless nobody objects, the walrus ate the anvil because it was hungry.", "it", Lack.NOT_READ),
        ("The walrus explained the law to the anvil but he could not convince her.", "her", Lack.OTHER_PRONOUN),
    ],
)
def test_no_answer_says_why(referee: Referee, text: str, pronoun: str, lack: Lack) -> None:
    """A pronoun that the theories do not settle is left open, with the reason."""
    resolution = referee.resolve(text, ENTITIES, pronoun)

    assert (resolution.answer, resolution.lack) == (None, lack)


def test_two_proofs_are_no_answer() -> None:
    """Theories that prove both candidates decide nothing, and it is said."""
    text = "given meets(One, Other)\ngiven sings(Object)\n@generic none\nsings(Object A) -> is_meant(Object A)\n"
    library = parse_library([("own.rules", text)])
    with Referee(library, load_patterns([])) as referee:
        judged = referee.judge((StatedAtom("meets", (0, 1)), StatedAtom("sings", ("p",))))

    assert (judged.meant, judged.lack) == (None, Lack.BOTH_PROVED)
    assert judged.roles == ("the one", "the other")


def test_links_matter(referee: Referee) -> None:
    """The same property is of the one as a reason and of the other as a concession."""
    because, although = (
        referee.resolve(f"Noor envied Ingrid {link} she was fortunate.", ("Noor", "Ingrid"))
        for link in ("because", "although")
    )

    assert (because.answer, although.answer) == (1, 0)


# --- pattern files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[events]\n"{a} sees {b}" = "sees(a, c)"', "is not an atom"),
        ('[events]\n"{a} sees" = "sees(a, b)"', "the pattern has no {b}"),
        ('[events]\n"{a} <sees> {b}" = "sees(a, b)"', "there is no word list <sees>"),
        ('[words]\nsees = "<sees>"\n[events]\n"{a} <sees> {b}" = "sees(a, b)"', "there is no word list <sees>"),
        ('[events]\n"{a} (sees {b}" = "sees(a, b)"', "cannot be read"),
        ('[events]\n"{a} {z} {b}" = "sees(a, b)"', "means nothing"),
        ('[events]\n"{a} sees {b}" = 3', "is not a text"),
        ('[sayings]\n"{x} sings" = "sings(x)"', "must contain the pronoun"),
        ("[verbs]", "unknown section 'verbs'"),
        ("events = 3", "wrong form"),
        ('examples = [["one"]]', "is not an example"),
        ("[events", "cannot be read"),
    ],
)
def test_faulty_pattern_files_are_told(tmp_path: Path, text: str, message: str) -> None:
    """A fault in a pattern file is told with file, line and remedy."""
    file = tmp_path / "own.toml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(HapaxError, match=re.escape(message)) as raised:
        load_patterns([file])

    assert "own.toml" in str(raised.value)


def test_word_lists_stand_once(tmp_path: Path) -> None:
    """Two files cannot give one word list two meanings."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text('[words]\nbig = "big"\n', encoding="utf-8")

    with pytest.raises(HapaxError, match="'big' is defined twice"):
        load_patterns(tmp_path.glob("*.toml"))


def test_patterns_need_a_theory(tmp_path: Path) -> None:
    """A pattern that states what no theory declares is refused, and so are theories that conclude nothing."""
    (tmp_path / "own.toml").write_text('[events]\n"{a} sees {b}" = "beholds(a, b)"\n', encoding="utf-8")

    with pytest.raises(HapaxError, match="beholds/2, which no theory declares"):
        Referee(shipped_theories(), load_patterns([tmp_path / "own.toml"]))
    with pytest.raises(HapaxError, match="No theory concludes is_meant"):
        Referee(parse_library([]), load_patterns([]))


# --- a model as the mapper --------------------------------------------------------------------------------------------

MAPPED = "cannot_lift(ENTITY1, ENTITY2)\nis_given_as_reason(PRONOUN)\nis_weak(PRONOUN)\n"


def items(*texts: str, answers: tuple[int, ...] = (0, 1)) -> list[WinogradItem]:
    return [
        WinogradItem(f"own:{n}", f"own:{n // 2}", "own", text, "it", ENTITIES, answers[n % 2], "own", "own:0")
        for n, text in enumerate(texts)
    ]


def mapper(model: ScriptedModel) -> JournaledGenerator:
    return JournaledGenerator(model, Journal(KnowledgeBase()))


def test_a_model_maps_without_seeing_entities(referee: Referee) -> None:
    """The model's atoms are proved as a pattern's are; sentences with other entities are the same question."""
    model = ScriptedModel({"generate": {"so weak": MAPPED, "so heavy": MAPPED.replace("is_weak", "is_heavy")}})
    asked = items(WEAK, HEAVY)
    answers = answer_all(asked, mapped_by(mapper(model), referee, asked))

    assert [answer.resolution.answer for answer in answers] == [0, 1]
    assert all(answer.kept for answer in answers)
    assert len(model.prompts) == 2
    assert not any("walrus" in prompt or "anvil" in prompt for prompt in model.prompts)
    assert "cannot_lift(A, B): A cannot lift B" in model.prompts[0]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The walrus.",
        MAPPED + "is_meant(ENTITY1)",
        MAPPED + "accounts_for_it(PRONOUN)",
        MAPPED + "halt",
        MAPPED + "is_weak(PRONOUN)",
        MAPPED + "is_added(PRONOUN)",
        MAPPED.replace("is_given_as_reason(PRONOUN)", "is_given_as_reason(ENTITY1)"),
        MAPPED.replace("PRONOUN", "X"),
        MAPPED.replace("cannot_lift", "Cannot_lift"),
        MAPPED.replace("ENTITY2)", "ENTITY2, ENTITY1)"),
        MAPPED + "is_weak(PRONOUN) :- shell('rm')",
        MAPPED.replace("\n", ", "),
        MAPPED.replace("cannot_lift(ENTITY1, ENTITY2)\n", ""),
        MAPPED.replace("is_weak(PRONOUN)", ""),
        "none\n" + MAPPED,
        "is_heavy(PRONOUN)\n" * 9,
        "is_heavy(PRONOUN\ue000)",
    ],
)
def test_hostile_replies_are_refused(referee: Referee, reply: str) -> None:
    """A reply that is anything but the theories' atoms about the sentence's two entities leaves the item open."""
    model = ScriptedModel({"generate": {"so weak": reply}})
    asked = items(WEAK)
    resolution = mapped_by(mapper(model), referee, asked)(asked[0])

    assert (resolution.answer, resolution.lack) == (None, Lack.REFUSED)


@given(st.text(max_size=80))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    """No reply makes the reading of it fail in another way."""
    sentence = abstracted(WEAK, ENTITIES)
    assert sentence is not None
    with suppress(UnreadableMapping):
        Vocabulary(shipped_theories(), shipped_patterns()).read(reply, sentence)


def test_a_model_may_say_none(referee: Referee) -> None:
    """A model that finds nothing in the theories leaves the item open, and that is no refusal."""
    asked = items(WEAK)
    resolution = mapped_by(mapper(ScriptedModel({"defaults": {"generate": "None\n"}})), referee, asked)(asked[0])

    assert resolution.lack == Lack.NOT_READ


# --- figures ----------------------------------------------------------------------------------------------------------


def test_figures_keep_coverage_and_accuracy_apart(referee: Referee) -> None:
    """Accuracy is over what is answered, pairs count whole, and what is open is listed by family with its reason."""
    asked = items(WEAK, HEAVY, "The walrus met the anvil. It was blue.", WEAK, WEAK, HEAVY, answers=(0, 1))
    asked[5] = replace(asked[5], answer=0)
    answers = answer_all(asked, lambda item: referee.resolve(item.text, item.options, item.pronoun))
    (source,) = figures(answers)

    assert (source.coverage.value, source.coverage.count) == (5 / 6, 6)
    assert (source.accuracy.value, source.accuracy.count) == (3 / 5, 5)
    assert (source.pair_coverage.value, source.pair_coverage.count) == (2 / 3, 3)
    assert (source.pair_accuracy.value, source.pair_accuracy.count) == (1 / 2, 2)
    assert (source.consistency.value, source.consistency.count) == (0, 1)
    assert source.invariance.value == 1
    assert [(gap.family, gap.unanswered, gap.reasons) for gap in uncovered(answers)] == [
        ("own:0", 1, ("no pattern matches the sentence",))
    ]


# --- the commands -----------------------------------------------------------------------------------------------------


def run(command: str, *arguments: str) -> Result:
    return invoke("evaluate", "winograd", command, *arguments)


def test_prove_prints_the_proof() -> None:
    """`prove` prints the roles, what is stated, the proof of one candidate, its absence for the other, the answer."""
    printed = run("prove", HEAVY, "-o", ENTITIES[0], "-o", ENTITIES[1]).stdout.splitlines()

    assert printed[0] == "abstraction: the walrus is the lifter, the anvil is the load"
    assert "the lifter cannot lift the load" in printed[1]
    assert printed[2:4] == ["if the pronoun is the lifter:", "  no proof"]
    assert printed[4:6] == ["if the pronoun is the load:", "  the pronoun means the load  [by rule a_reason_accounts]"]
    assert "      the load resists  [by rule heavy_resists]" in printed
    assert printed[-1] == "the pronoun is the anvil"


def test_prove_wants_two_options() -> None:
    """One option is a usage error."""
    assert run("prove", HEAVY, "-o", "the anvil").exit_code == 2


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    rows = [
        {"pair": "1", "text": text, "pronoun": "it", "options": ENTITIES, "label": label}
        for label, text in enumerate((WEAK, HEAVY))
    ]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_rules_prints_figures_and_proofs(own_file: Path) -> None:
    """`rules` answers a file of items; --item prints one's proof, --json everything."""
    table = run("rules", str(own_file))
    proof = run("rules", str(own_file), "--item", "own:1")
    printed = json.loads(run("rules", str(own_file), "--json").stdout)

    assert "100.00 % (2/2)" in table.stdout
    assert "the pronoun is the anvil" in proof.stdout
    assert "the pronoun is the walrus" not in proof.stdout
    assert run("rules", str(own_file), "--item", "own:7").exit_code == 2
    assert "walrus couldn't lift" in proof.stdout
    assert printed["figures"][0]["right_of_answered"]["value"] == 1
    assert [answer["answer"] for answer in printed["answers"]] == [0, 1]


def test_rules_by_a_model(own_file: Path, tmp_path: Path) -> None:
    """--mapper asks a model through the journal; a refused reply is among the reasons."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"generate": {"so weak": MAPPED, "so heavy": "the anvil"}}), encoding="utf-8")
    database = str(tmp_path / "own.db")
    result = run("rules", str(own_file), "--mapper", f"scripted:{script}", "--db", database, "--json")
    printed = json.loads(result.stdout)

    assert [answer["answer"] for answer in printed["answers"]] == [0, None]
    assert "refused" in printed["answers"][1]["lack"]
    with KnowledgeBase(database) as kb:
        assert kb.call_counts() == {"mapper": 2}


def test_own_theories(own_file: Path, tmp_path: Path) -> None:
    """--theories takes a folder of theories and patterns in place of the shipped ones, and refuses faulty rules."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own.toml").write_text(
        '[events]\n"{a} can not ... {b}" = "fails_at(a, b)"\n[links]\n"because" = "is_reason(p)"\n'
        '[sayings]\n"{p} was so ..." = "is_somehow(p)"\n',
        encoding="utf-8",
    )
    theory = "given fails_at(One, Other)\ngiven is_reason(Object)\ngiven is_somehow(Object)\n@generic none\n"
    (folder / "own.rules").write_text(
        theory + "fails_at(One A, Other B) & is_somehow(Other B) -> is_meant(Other B)\n", encoding="utf-8"
    )
    text = "The walrus can not lift the anvil because it was so weak."
    result = run("prove", text, "-o", ENTITIES[0], "-o", ENTITIES[1], "--theories", str(folder))

    assert result.stdout.splitlines()[-1] == "the pronoun is the anvil"

    (folder / "own.rules").write_text(theory + "fails_at(One A, Other B) -> is_meant(Object C)\n", encoding="utf-8")

    assert run("prove", text, "-o", "walrus", "-o", "anvil", "--theories", str(folder)).exception is not None
