"""Rule creation: a model proposes data types and verbs, a person decides, and only rules that hold up are written."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.expansion.predicate_lint import lint_predicates
from hapax.engine.expansion.propose import Expander, ExpansionSettings, Proposal, addition_text
from hapax.engine.expansion.replies import UnusableReply, Verb, read_conclusions, read_predicate, read_types, read_verb
from hapax.engine.expansion.rule_file import Sources, file_text
from hapax.engine.expansion.sentences import declarations, sentences_for
from hapax.engine.expansion.sheet import COLUMNS, ReviewedProposal, ReviewSheet
from hapax.engine.expansion.verdicts import with_additions
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parser import load_library, parse_addition, parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Variable
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle import registry
from hapax.llm_oracle.prompts import conclusion_prompt, types_prompt, verb_prompt
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest, ModelIdentity
from hapax.llm_oracle.rewriting import TRIES, FormWriter
from hapax.llm_oracle.scripted import ScriptedModel

PAPER = Path(__file__).parent.parent.parent / "shared" / "papers" / "link_lint.txt"

META = """given is_of_age(Person, Age): "[1] is [2] years old" / "[1] is not [2] years old" / "is [1] [2] years old?"
functional requires_a_minimal_age_of(Object, Age): "[1] requires a minimal age of [2]" / "[1] does not require a minimal age of [2]" / "does [1] require a minimal age of [2]?"
computed is_smaller_than(Number A, Number B) := A < B: "[1] is smaller than [2]" / "[1] is not smaller than [2]" / "is [1] smaller than [2]?"
given cannot_operate(Person, Object): "[1] cannot operate [2]" / "[1] can operate [2]" / "is [1] unable to operate [2]?"

@name operating_age
@domain temporal
is_of_age(Person A, Age X) & requires_a_minimal_age_of(Object B, Age Y) & is_smaller_than(Age X, Age Y) -> cannot_operate(Person A, Object B)
"""
"""Table 5."""

TYPES = "List 10 subcategories of Object"
SIX = ["Vehicle", "Machinery", "Alcohol", "Firearm", "Tattoo Equipment", "Tobacco Product"]
VERBS = {"Vehicle": "cannot_drive", "Alcohol": "cannot_drink", "Firearm": "cannot_own", "Tobacco Product": "cannot_buy"}
SCRIPT: dict[str, Any] = {
    "generate": {
        TYPES: ", ".join(SIX),
        **{f"[mask](Person A, {data_type} B)": verb for data_type, verb in VERBS.items()},
        "then Person A [mask] Vehicle B'": "1. If Person A is 12, then Person A cannot steer Vehicle B.\n2. No idea.",
        "cannot drive [2]\nQuestion": "Is [1] unable to drive [2]?",
    },
    "defaults": {"generate": ""},
}


def library_of(text: str = META) -> Library:
    return parse_library([("meta.rules", text)])


def expander(script: dict[str, Any], text: str = META, **changes: Any) -> tuple[Expander, ScriptedModel, Library]:
    library, model = library_of(text), ScriptedModel(script)
    changed = replace(ExpansionSettings("B"), **changes)
    metas = [rule for rule in library.rules if rule.name == "operating_age"]
    return Expander(model, library, metas, changed), model, library


def proposals(script: dict[str, Any], text: str = META, **changes: Any) -> tuple[Proposal, ...]:
    asking, _, library = expander(script, text, **changes)
    return asking.expand(library.rule("operating_age")).proposals


def left_out(script: dict[str, Any], text: str = META) -> dict[str, str]:
    asking, _, library = expander(script, text)
    return {reply.said: reply.reason for reply in asking.expand(library.rule("operating_age")).left_out}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a meta-rule, an empty library and a script, as the working folder."""
    (tmp_path / "meta.rules").write_text(META, encoding="utf-8")
    (tmp_path / "library").mkdir()
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expand(*arguments: str, answers: str = "") -> Result:
    usual = ("--variable", "B", "-m", "scripted:script.json", "-o", "new.rules", "--rules", "library", "--db", "x.db")
    return invoke("rules", "expand", "meta.rules", *usual, *arguments, answers=answers)


def sheet_rows(path: str = "new.decisions.csv") -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mark(decisions: dict[str, dict[str, str]], path: str = "new.decisions.csv") -> None:
    """Write cells into the sheet as a person would, by data type."""
    rows = [{**row, **decisions.get(row["type"], {})} for row in sheet_rows(path)]
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def calls() -> int:
    with KnowledgeBase("x.db", read_only=True) as kb:
        return sum(kb.call_counts().values())


# The prompts


def test_prompts_are_those_of_table_5() -> None:
    """The words are LINK's, to the letter."""
    rule = "requires_a_minimal_age_of(Object B, Age Y) & cannot_operate(Person A, Object B)"

    assert types_prompt(rule, "B", "Object", 10) == (
        'In rule "requires_a_minimal_age_of(Object B, Age Y) & cannot_operate(Person A, Object B)", B is a variable '
        "representing an Object. List 10 subcategories of Object that B could be that also make the rule true."
    )
    assert verb_prompt("cannot_operate(Person A, Object B)", "[mask](Person A, Vehicle B)") == (
        "cannot_operate(Person A, Object B) is equal to [mask](Person A, Vehicle B). Write the best predicate that "
        "could fit in [mask] token."
    )
    assert conclusion_prompt("Person A [mask] Vehicle B") == (
        "Fill in the [mask] in 'Person A [mask] Vehicle B' so that the statement is factually plausible and "
        "grammatically correct. Give 5 statements."
    )


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's text lies beside the repository, not in it")
def test_prompts_stand_in_the_paper() -> None:
    """Table 5 prints the verb's prompt so, and that of the data types but for capital letters and its first quote."""
    printed = PAPER.read_text(encoding="utf-8")
    rule = "requires_a_minimal_age_of(Object B, Age Y) & cannot_operate(Person A, Object B)"
    asked = types_prompt(rule, "B", "Object", 10).replace('rule "', "rule “")

    assert verb_prompt("cannot_operate(Person A, Object B)", "[mask](Person A, Vehicle B)") in printed
    assert asked.lower() in printed.lower()


def test_the_paper_s_own_meta_rule_is_asked_about_in_its_words() -> None:
    """The expansion of table 5's rule sends table 5's prompts."""
    asking, model, library = expander(SCRIPT)

    asking.expand(library.rule("operating_age"))

    assert model.prompts[0] == types_prompt(
        "requires_a_minimal_age_of(Object B, Age Y) & cannot_operate(Person A, Object B)", "B", "Object", 10
    )
    assert verb_prompt("cannot_operate(Person A, Object B)", "[mask](Person A, Vehicle B)") in model.prompts
    assert (
        "Fill in the [mask] in 'If Person A is Age X years old and Vehicle B requires a minimal age of Age Y and Age X "
        "is smaller than Age Y, then Person A [mask] Vehicle B' so that"
    ) in " ".join(model.prompts)


# Replies


@pytest.mark.parametrize(
    ("reply", "types"),
    [
        ("Vehicle, Machinery, Tobacco Product", ["Vehicle", "Machinery", "Tobacco Product"]),
        (
            "Here are some:\n1. **Vehicles**: cars\n2) firearms - all\n- an Alcohol (beer)",
            ["Vehicle", "Firearm", "Alcohol"],
        ),
        ("* name of a dish\n* works of art", ["Name of Dish", "Work of Art"]),
        ("1. Knives\n2. Cosmetics\n3. Cactus\n4. Gas", ["Knife", "Cosmetics", "Cactus", "Gas"]),
        ("Vitamin C\np(X) :- q(X).\n\x00\n:-\n'\"\n1.\n" + "x" * 10_000 + "\nthe\nof", []),
        ("I cannot help with that, because it is not clear what you mean by a type of this kind", []),
        ("", []),
    ],
)
def test_data_types_are_read_out_of_lists(reply: str, types: list[str]) -> None:
    """Numbers, marks, articles, plurals and explanations go; what cannot name a type is left out."""
    assert [data_type for data_type in read_types(reply) if isinstance(data_type, str)] == types


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("cannot_drive", "cannot_drive"),
        ("`cannot_drive(Person A, Vehicle B)`", "cannot_drive"),
        ("1. Cannot drive.", "cannot_drive"),
        ("The best predicate is cannot_drive.", "cannot_drive"),
        ("can't drive", "cannot_drive"),
        ("drives_a or rides_a", None),
        ("halt. :- shell('rm -rf /')", None),
        ("drive\x00", None),
        ("", None),
        ("drive " * 40, None),
    ],
)
def test_a_predicate_is_read_out_of_a_reply(reply: str, name: str | None) -> None:
    """One name in letters, digits and underscores; anything else is none."""
    found = read_predicate(reply)
    assert found == Verb(name) if name else isinstance(found, UnusableReply)


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("Furniture A cannot be placed in Bag B.", None),
        ("furniture_a_cannot_be_placed_in_bag_b", None),
        ("Furniture cannot be placed in a drawer", None),
        ("The sofa does not fit in the drawer.", None),
        ("cannot be placed in Drawer B", None),
        ("If it is large, it cannot be placed", None),
        ("holds C well", None),
        ("cannot be placed in", "cannot_be_placed_in"),
        ("is a kind of", "is_a_kind_of"),
        ("cannot_be_placed_in(Furniture A, Bag B)", "cannot_be_placed_in"),
    ],
)
def test_a_sentence_is_no_verb(reply: str, name: str | None) -> None:
    """A reply with a subject or an argument in it is refused, with the reason."""
    found = read_predicate(reply, ["Furniture A", "Drawer B"])
    if name:
        assert found == Verb(name)
    else:
        assert isinstance(found, UnusableReply)
        assert "is a sentence, where a verb" in found.reason


def test_replies_are_read_up_to_their_limits() -> None:
    """Types of five words and 40 characters and verbs of nine words and 60 characters are read, longer ones are not."""
    for longest, longer in (("Big Old Red Iron Tool", "Big Old Red Iron Bent Tool"), ("X" * 39 + "y", "X" * 40 + "y")):
        assert list(read_types(f"- {longest}\n- Boat")) == [longest, "Boat"]
        (refused, _) = read_types(f"- {longer}\n- Boat")
        assert isinstance(refused, UnusableReply)
    for verb in ("a b c d e f g h i", "x" * 60):
        assert read_verb(verb) == Verb(verb.replace(" ", "_"))
    assert read_verb("a b c d e f g h i j") is read_verb("x" * 61) is None


def test_the_rest_of_an_endless_reply_is_ignored() -> None:
    """Twenty thousand characters of a reply are read."""
    blank = " " * 19_990
    assert list(read_types(f"Boat,{blank}Tool,Hammer")) == ["Boat", "Tool"]
    assert read_predicate(f"{blank}drives") == Verb("drives")
    assert isinstance(read_predicate(f"{blank}{blank}drives"), UnusableReply)
    assert len(list(read_conclusions(f"then A drives B\n{blank}\nthen A sells B", ["A", "B"]))) == 1


def test_a_sentence_for_a_verb_makes_no_predicate() -> None:
    """The next verb is used, and the proposal says what was refused; a person's sentence without slots is, too."""
    script = {"generate": {**SCRIPT["generate"], "[mask](Person A, Vehicle B)": "Person A cannot drive Vehicle B."}}
    asking, _, library = expander({**SCRIPT, **script})
    proposal = asking.expand(library.rule("operating_age")).proposals[0]
    reworded = asking.reworded(proposal.addition, "person A cannot drive vehicle B")

    assert proposal.rule.conclusion.atom.predicate == "cannot_steer"
    assert any("Person A cannot drive Vehicle B" in note and "is a sentence" in note for note in proposal.notes)
    assert isinstance(reworded, UnusableReply)


def test_a_meta_rule_keeps_its_own_types_beside_a_library_that_has_others(place: Path) -> None:
    """A predicate of the user's file with the name of a shipped one is judged by the user's types."""
    shipped = 'oracle requires_a_minimal_age_of(Ride, Age): "[1] is for people from [2]"\ngiven rides(Person, Ride)\n'
    shipped += "rides(Person A, Ride B) & requires_a_minimal_age_of(Ride B, Age Y) -> waits_for(Person A, Ride B)\n"
    (place / "library" / "rides.rules").write_text(shipped, encoding="utf-8")
    beside = expand("--review", "accept-all", "--json")
    (place / "library" / "rides.rules").unlink()
    alone = expand("--review", "accept-all", "--json", "--decisions", "alone.csv", "-o", "alone.rules")

    assert (beside.exit_code, alone.exit_code) == (0, 0), beside.output
    assert "own types requires_a_minimal_age_of/2" in beside.stderr
    types = [[row["type"] for row in json.loads(result.stdout)["proposals"]] for result in (beside, alone)]
    assert types[0] == types[1] == SIX


def test_conclusions_give_verbs_with_their_sentences() -> None:
    """A statement's end becomes the predicate's name and its template; one without both arguments is left out."""
    reply = "1. If so, then Person A cannot drive Vehicle B.\n2. person a can't steer the Vehicle B\n3. Nobody drives."

    assert list(read_conclusions(reply, ["Person A", "Vehicle B"])) == [
        Verb("cannot_drive", "[1] cannot drive [2]"),
        Verb("cannot_steer", "[1] cannot steer the [2]"),
        UnusableReply("3. Nobody drives.", "is not a sentence about the conclusion's arguments"),
    ]


def test_the_conclusion_is_what_stands_after_the_last_then() -> None:
    """A premise that itself says `then` is no part of the conclusion's verb."""
    reply = "If Person A ate and then slept, then Person A cannot drive Vehicle B."

    assert list(read_conclusions(reply, ["Person A", "Vehicle B"])) == [Verb("cannot_drive", "[1] cannot drive [2]")]


def test_lines_without_a_statement_are_passed_over() -> None:
    """A heading and an empty line neither count as unusable nor end the reply."""
    reply = "Here are the statements:\n\n1. If so, then Person A cannot drive Vehicle B."

    assert list(read_conclusions(reply, ["Person A", "Vehicle B"])) == [Verb("cannot_drive", "[1] cannot drive [2]")]


@pytest.mark.parametrize(
    ("line", "shown"),
    [("x" * 60, "x" * 60), ("x" * 61, "x" * 57 + "..."), ("Nobody\x1b[2J  drives\u202e.", "Nobody [2J drives .")],
    ids=["whole", "cut", "printable"],
)
def test_an_unusable_line_is_shown_short_and_printable(line: str, shown: str) -> None:
    """A refused line is shown in at most 60 printable characters, the last three `...` where it was cut."""
    (unusable,) = read_conclusions(line, ["Person A", "Vehicle B"])

    assert isinstance(unusable, UnusableReply)
    assert unusable.said == shown


def test_a_sentence_has_each_slot_once() -> None:
    """A verb may come as a sentence with all slots; one that lacks or repeats a slot is none."""
    assert read_verb("[1] cannot pay [2] for [3]", 3) == Verb("cannot_pay_for", "[1] cannot pay [2] for [3]")
    assert read_verb("[1] cannot pay", 2) is None
    assert read_verb("[1] pays [1] and [2]", 2) is None


# Proposals


def test_six_types_give_six_rules_that_type_check() -> None:
    """S1-6: with a model that names six types there are six rules without an error or warning."""
    made = proposals(SCRIPT)
    whole = with_additions(replace(library_of(), rules=()), [proposal.addition for proposal in made])

    assert [proposal.data_type for proposal in made] == SIX
    assert [proposal.rule.conclusion.atom.predicate for proposal in made] == [
        *("cannot_drive", "cannot_operate", "cannot_drink", "cannot_own", "cannot_operate", "cannot_buy")
    ]
    assert check_library(whole) == ()
    assert {proposal.rule.domain for proposal in made} == {"temporal"}


def test_a_new_rule_has_a_name_of_its_own() -> None:
    """Where a rule has its name already, a number is added, the first that is free."""
    names = {proposal.data_type: proposal.rule.name for proposal in proposals(SCRIPT)}
    taken = "".join(
        f"@name {name}\n@generic none\nis_of_age(Person A, Age X) -> is_old_{number}(Person A)\n"
        for number, name in enumerate((names["Vehicle"], f"{names['Vehicle']}_2", names["Alcohol"]))
    )

    again = {proposal.data_type: proposal.rule.name for proposal in proposals(SCRIPT, META + taken)}
    assert again["Vehicle"] == f"{names['Vehicle']}_3"
    assert again["Alcohol"] == f"{names['Alcohol']}_2"
    assert again["Firearm"] == names["Firearm"]


def test_premise_verbs_are_fitted_too() -> None:
    """Table 5's `requires_a_minimal_operating_age_of` takes the place of the wider predicate, with its kind."""
    script = {**SCRIPT, "generate": {**SCRIPT["generate"], "[mask](Vehicle B, Age Y)": "has_a_minimal_driving_age_of"}}

    vehicle = proposals(script)[0]
    declared = {signature.name: signature for signature in vehicle.addition.signatures}

    assert "has_a_minimal_driving_age_of(Vehicle B, Age Y)" in vehicle.rule.sentence
    assert declared["has_a_minimal_driving_age_of"].kind == "functional"
    assert declared["has_a_minimal_driving_age_of"].argument_types == ("Vehicle", "Age")


def test_other_verbs_are_kept_for_the_person_to_pick() -> None:
    """The first verb that holds up is proposed, the others are named."""
    assert proposals(SCRIPT)[0].verbs == ("cannot steer", "cannot operate")


def test_a_verb_that_turns_the_rule_round_is_refused() -> None:
    """Where the meta-rule concludes that somebody cannot, `can_use` is no verb for it."""
    generate = {**SCRIPT["generate"], "[mask](Person A, Machinery B)": "can_use"}

    machinery = proposals({**SCRIPT, "generate": generate})[1]

    assert machinery.rule.conclusion.atom.predicate == "cannot_operate"
    assert any("is the contrary" in note for note in machinery.notes)


def test_without_verbs_only_the_data_type_changes() -> None:
    """`verbs=False` asks once, for data types, and says that the meta-rule covers the new ones."""
    asking, model, library = expander(SCRIPT, verbs=False)

    made = asking.expand(library.rule("operating_age")).proposals

    assert len(model.prompts) == 1
    assert {proposal.rule.conclusion.atom.predicate for proposal in made} == {"cannot_operate"}
    assert all("rule operating_age states as much" in proposal.notes[-1] for proposal in made)


def test_rules_that_the_library_has_are_dropped() -> None:
    """A rule that says the same as one of the library, or less, is no proposal; the next verb is tried."""
    known = META + (
        "type Vehicle < Object\n"
        'given cannot_drive(Person, Vehicle): "[1] cannot drive [2]" / "[1] can drive [2]" / "can [1] not drive [2]?"\n'
        "@name same\nis_of_age(Person A, Age X) & requires_a_minimal_age_of(Vehicle B, Age Y) & is_smaller_than(Age X, Age Y)"
        " -> cannot_drive(Person A, Vehicle B)\n"
    )

    vehicle = proposals(SCRIPT, known)[0]

    assert vehicle.rule.conclusion.atom.predicate == "cannot_steer"
    assert any("HPX205" in note for note in vehicle.notes)


def test_types_that_cannot_be_narrower_are_left_out() -> None:
    """The type itself, what lies above it, persons and numbers are told with their reasons; so is what comes twice."""
    text = META + "type Gadget < Thing\ntype Object < Thing\ntype Pilot < Person\n"
    script = {"generate": {TYPES: "Object\nThing\nPilot\nAge\nVehicle\nvehicles\n:-"}, "defaults": {"generate": ""}}

    reasons = left_out(script, text)

    assert reasons.keys() == {"Object", "Thing", "Pilot", "Age", "Vehicle", ":-"}
    assert "persons" in reasons["Pilot"]
    assert "numbers" in reasons["Age"]
    assert "before" in reasons["Vehicle"]


def test_a_reply_that_names_no_type_is_an_error_with_a_remedy() -> None:
    """Where nothing can be proposed the command says so and names the option for another model."""
    with pytest.raises(HapaxError, match=r"named no data type below Object.*-m"):
        proposals({"generate": {TYPES: ""}})


def test_an_unknown_variable_is_named_with_those_there_are() -> None:
    """The remedy lists the meta-rule's variables."""
    with pytest.raises(HapaxError, match="Give --variable one of A, X, B, Y"):
        proposals(SCRIPT, variable="Q")


def test_two_types_with_one_new_verb_share_its_declaration() -> None:
    """`cannot_buy` over alcohol and over tobacco is declared once, over what both are."""
    generate = {TYPES: "Alcohol, Tobacco Product", "[mask](Person A,": "cannot_buy"}

    made = proposals({"generate": generate, "defaults": {"generate": ""}})
    whole = with_additions(replace(library_of(), rules=()), [proposal.addition for proposal in made])

    assert [proposal.rule.conclusion.atom.predicate for proposal in made] == ["cannot_buy", "cannot_buy"]
    assert whole.signature("cannot_buy/2").argument_types == ("Person", "Object")
    assert check_library(whole) == ()


def test_proposals_are_the_same_each_time() -> None:
    """The same replies give the same text and the same identities."""
    texts = [
        [(proposal.id, addition_text(proposal.addition, library_of())) for proposal in proposals(SCRIPT)]
        for _ in range(2)
    ]

    assert texts[0] == texts[1]


HOSTILE = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        (
            "p(X) :- q(X).",
            ":- halt.",
            '"; drop table calls; --',
            "\n\n\n",
            "1. \n2. \n3. .",
            "x" * 10_000,
            "not",
            "type",
            "fact",
            "[1] [2] [1]",
            '[1] cannot " use [2]',
            "[1] -> [2]",
            "Person A # Vehicle B",
            "Vehicle\nType X\nfact p(1)",
            "\u202eelcihev\x1b[31m",
        )
    ),
)


@settings(max_examples=cases(15), deadline=None)
@given(types=HOSTILE, verb=HOSTILE, statements=HOSTILE, sentence=HOSTILE)
def test_hostile_replies_never_give_a_faulty_rule(types: str, verb: str, statements: str, sentence: str) -> None:
    """Whatever a model says, a proposal is a rule that reads back as it was written and has no error."""
    generate = {
        TYPES: f"{types}\nVehicle\nMachinery",
        "is equal to [mask]": verb,
        "Fill in": statements,
        "Sentence:": sentence,
        "Correct the sentence": sentence,
    }
    library = replace(library_of(), rules=())

    for proposal in proposals({"generate": generate}):
        text = addition_text(proposal.addition, library)
        again = parse_addition("again", text, library)
        faults = [fault for fault in check_library(with_additions(library, [again])) if fault.severity == "error"]

        assert again.rules == proposal.addition.rules
        assert faults == []
        assert text.replace("\n", "").isprintable()


# Sentences


class Forgetful:
    """A generator that gives one reply after the other."""

    identity = ModelIdentity("forgetful")

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.samples: list[int] = []

    def generate(self, requests: list[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        self.samples += [request.sample_index for request in requests]
        return [Generation(self.replies.pop(0) if self.replies else "") for _ in requests]


INGREDIENT = Atom("ingredient_in", (Variable("A", "Ingredient"), Variable("B", "Dish")))


def test_a_predicate_becomes_a_sentence_with_minimal_edits() -> None:
    """S1-7: a reply that loses a slot is asked for again; the one that keeps them is taken, and grammar does the rest."""
    model = Forgetful("[1] is an ingredient", "Corrected: [1] is in [2]", "[1] is an ingredient in [2].")

    made = sentences_for(INGREDIENT, None, FormWriter(model))

    assert made.templates.affirmative == "[1] is an ingredient in [2]"
    assert made.templates.negated == "[1] is not an ingredient in [2]"
    assert made.templates.question == "is [1] an ingredient in [2]?"
    assert made.notes == ()
    assert model.samples == [0, 1, 2]


def test_five_tries_and_no_more() -> None:
    """A model that never keeps the slots is asked five times a form, and what was made instead is said."""
    model = Forgetful()

    made = sentences_for(INGREDIENT, None, FormWriter(model))

    assert model.samples == [*range(TRIES)] * 3
    assert made.templates.affirmative == "[1] ingredient in [2]"
    assert [note.split()[4] for note in made.notes] == ["sentence", "negation", "question"]


def test_verbalise_prints_declarations_that_can_be_pasted(place: Path) -> None:
    """The command prints a declaration for each predicate that lacks sentences, and leaves the others alone."""
    Path("my.rules").write_text(
        META + "likes(Person A, Dish B) & ingredient_in(Herb C, Dish B) -> cannot_operate(Person A, Herb C)\n",
        encoding="utf-8",
    )
    replies = {
        "repeat it: [1] ingredient in [2]": "[1] is an ingredient in [2]",
        "repeat it: [1] likes [2]": "[1] likes [2]",
        "[1] likes [2]\nOpposite": "[1] dislikes [2]",
        "[1] likes [2]\nQuestion": "does [1] like [2]?",
    }
    Path("words.json").write_text(json.dumps({"generate": replies}), encoding="utf-8")

    result = invoke("rules", "verbalise", "my.rules", "-m", "scripted:words.json", "--db", "x.db")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        'given likes(Person, Dish): "[1] likes [2]" / "[1] dislikes [2]" / "does [1] like [2]?"',
        'oracle ingredient_in(Herb, Dish): "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "is [1] an ingredient in [2]?"',
    ]


# The command


def test_without_a_terminal_proposals_wait_in_the_sheet(place: Path) -> None:
    """Nothing blocks: the sheet is written, no rule file is, and the way on is told."""
    result = expand()

    assert result.exit_code == 0
    assert not Path("new.rules").exists()
    assert [row["type"] for row in sheet_rows()] == SIX
    assert {row["decision"] for row in sheet_rows()} == {""}
    assert "6 proposals are waiting in new.decisions.csv" in result.stderr.replace("\n", " ")
    assert "passes check" in result.stdout


def test_decisions_in_the_sheet_make_the_rule_file(place: Path) -> None:
    """Decisions in the sheet are read: accepted rules are written with name and note, and another verb is applied."""
    expand()
    mark(
        {
            "Vehicle": {"decision": "accept", "by": "ann", "note": "as printed"},
            "Firearm": {"decision": "Accepted", "verb": "cannot buy"},
            "Alcohol": {"decision": "reject"},
        }
    )

    result = expand()
    rules = load_library(["new.rules"])

    assert "2 rules in new.rules" in result.stderr
    assert [str(rule.conclusion) for rule in rules.rules] == [
        "cannot_drive(Person A, Vehicle B)",
        "cannot_buy(Person A, Firearm B)",
    ]
    assert "accepted by ann: as printed" in Path("new.rules").read_text(encoding="utf-8")
    assert invoke("check", "new.rules").exit_code == 0
    assert check_library(rules) == ()


def test_the_rule_file_is_searched(place: Path) -> None:
    """Accepted rules run as they are: a search over them finds statements."""
    expand("--review", "accept-all")

    result = invoke(
        "search", "new.rules", "-m", "simulated:3", "--beam", "5", "--values", "10", "--db", "s.db", "--json"
    )
    found = json.loads(result.stdout)

    assert result.exit_code == 0
    assert len(load_library(["new.rules"]).rules) == 6
    assert found["statements"]["head"] > 0


def test_a_second_run_asks_nobody_again(place: Path) -> None:
    """Neither the model nor the person: what was sent and what was decided stay."""
    expand("--review", "accept-all")
    sent, written = calls(), Path("new.rules").read_bytes()

    result = expand("--review", "ask")

    assert calls() == sent
    assert Path("new.rules").read_bytes() == written
    assert "accept, r reject" not in result.output


def test_a_budget_ends_the_run_and_the_next_one_goes_on(place: Path) -> None:
    """Exit code 3 where the budget is reached; with more of it the same command sends only the rest."""
    stopped = expand("--max-calls", "4")
    sent = calls()
    finished = expand()
    alone = invoke("rules", "expand", "meta.rules", "--variable", "B", "-m", "scripted:script.json", "-o", "other.rules",
                "--rules", "library", "--db", "y.db")  # fmt: skip

    with KnowledgeBase("y.db", read_only=True) as kb:
        needed = sum(kb.call_counts().values())

    assert (stopped.exit_code, finished.exit_code, alone.exit_code) == (3, 0, 0)
    assert sent == 4
    assert calls() == needed


def test_a_person_answers_on_the_terminal(place: Path) -> None:
    """Accept with a note, another verb and accept, reject with a note, later, a misspelt answer, and stop."""
    result = expand("--review", "ask", "--by", "ann", answers="a sound\ne cannot repair\na\nr too broad\ns\nwhat\nq\n")
    rows = {row["type"]: row for row in sheet_rows()}

    assert result.exit_code == 0
    assert [rows[data_type]["decision"] for data_type in SIX] == ["accept", "accept", "reject", "", "", ""]
    assert (rows["Vehicle"]["by"], rows["Vehicle"]["note"], rows["Alcohol"]["note"]) == ("ann", "sound", "too broad")
    assert "cannot_repair(Person A, Machinery B)" in Path("new.rules").read_text(encoding="utf-8")
    assert "Answer a, r, e with the words of a verb, s or q." in result.stderr


def test_the_end_of_the_input_is_no_answer(place: Path) -> None:
    """Asked for without a terminal, the questions end with the input, and what was answered is kept."""
    result = expand("--review", "ask", answers="a\n")

    assert result.exit_code == 0
    assert [row["decision"] for row in sheet_rows()][:2] == ["accept", ""]
    assert "1 rule in new.rules" in result.stderr


def test_nonsense_for_a_verb_is_refused(place: Path) -> None:
    """A person's words are read like a model's: Prolog is no verb, and neither is the contrary."""
    result = expand("--review", "ask", answers="e :- halt.\ne can drive\nq\n")

    assert "is not a verb" in result.stderr
    assert "is the contrary" in result.stderr
    assert "cannot_drive" in sheet_rows()[0]["rules"]


def test_a_duplicate_of_an_accepted_rule_cannot_be_accepted(place: Path) -> None:
    """A duplicate of an accepted rule is refused with the reason, and accept-all leaves it waiting."""
    expand()
    rows = sheet_rows()
    mark(
        {"Vehicle": {"decision": "accept"}, "Machinery": {"rules": rows[0]["rules"].replace("age_vehicle", "age_two")}}
    )

    asked = expand("--review", "ask", answers="a\nq\n")
    expand("--review", "accept-all")

    assert "It cannot be accepted: HPX205" in asked.stderr
    assert [row["decision"] for row in sheet_rows()] == ["accept", "", *["accept"] * 4]


def test_a_person_s_file_is_not_written_over(place: Path) -> None:
    """A file that somebody wrote, or changed since, stops the command before anything is asked."""
    Path("new.rules").write_text("# mine\n", encoding="utf-8")
    first = expand("--review", "accept-all")
    Path("new.rules").unlink()
    expand("--review", "accept-all")
    with Path("new.rules").open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    second = expand("--review", "accept-all")

    assert (first.exit_code, second.exit_code) == (1, 1)
    assert "is not overwritten" in first.stderr.replace("\n", " ")
    assert Path("new.rules").read_text(encoding="utf-8").endswith("# mine\n")


def test_a_rejection_takes_a_rule_out_again(place: Path) -> None:
    """The file follows the sheet: what is no longer accepted goes."""
    expand("--review", "accept-all")
    mark({"Alcohol": {"decision": "reject"}})

    expand()

    assert "Alcohol" not in Path("new.rules").read_text(encoding="utf-8")


def test_columns_of_a_person_s_own_are_kept(place: Path) -> None:
    """A spreadsheet may have more columns than Hapax knows."""
    expand()
    mark({"Vehicle": {"colour": "red"}} | {data_type: {"colour": ""} for data_type in SIX[1:]})

    expand("--review", "accept-all")

    assert sheet_rows()[0]["colour"] == "red"


@pytest.mark.parametrize("decisions", ["mine.csv", "mine.jsonl"])
def test_the_sheet_may_be_csv_or_jsonl(place: Path, decisions: str) -> None:
    """Its name decides; both hold the same."""
    expand("--decisions", decisions)
    expand("--decisions", decisions, "--review", "accept-all")

    assert [row.type for row in ReviewSheet(Path(decisions)).rows] == SIX
    Path(decisions).write_text(Path(decisions).read_text("utf-8").replace("\n", "\n\n"), "utf-8")
    assert [row.type for row in ReviewSheet(Path(decisions)).rows] == SIX  # empty lines are none of its rows
    assert len(load_library(["new.rules"]).rules) == 6


def test_the_library_beside_is_not_said_again(place: Path) -> None:
    """With the meta-rule's file in the library, and the output too, only what is new is written, and it checks clean."""
    shutil.copy("meta.rules", "library/vocabulary.rules")
    usual = (
        "--variable",
        "B",
        "-m",
        "scripted:script.json",
        "--rules",
        "library",
        "--db",
        "x.db",
        "--review",
        "accept-all",
    )
    for _ in range(2):
        result = invoke("rules", "expand", "library/vocabulary.rules", *usual, "-o", "library/new.rules")
    text = Path("library/new.rules").read_text(encoding="utf-8")

    assert result.exit_code == 0
    assert "is_of_age(Person, Age)" not in text
    assert "given cannot_drive(Person, Vehicle)" in text
    assert invoke("check", "library").exit_code == 0


def test_json_has_everything(place: Path) -> None:
    """`--json` prints the proposals as the sheet has them and what was left out, and asks nothing."""
    shown = json.loads(expand("--json").stdout)

    assert [row["type"] for row in shown["proposals"]] == SIX
    assert shown["rules"] == 0
    assert shown["left_out"] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("proposal,decision,rules\nx,maybe,\n", "neither accept nor reject"),
        ("proposal,decision,rules\nx,,\nx,,\n", "is there twice"),
        ("proposal,decision,rules\n,accept,\n", "names no proposal"),
        ("something,else\n1,2\n", "decision and rules are required"),
        ('proposal,decision,rules\nx,"\n', "cannot be read"),
        ("proposal,decision,rules\nx,,,more\n", "every column needs a"),
        ("proposal,decision,rules\nx,accept,p(X) :- \n", "HPX"),
        ("proposal,decision,rules\nx,accept,fact p(1)\n", "one rule"),
    ],
)
def test_a_faulty_sheet_is_refused_with_its_place(place: Path, text: str, told: str) -> None:
    """Each fault of a sheet is told, and none ends in a traceback."""
    Path("new.decisions.csv").write_text(text, encoding="utf-8")

    result = expand("--review", "accept-all")

    assert result.exit_code in (1, 4)
    assert "new.decisions.csv" in result.output.replace("\n", "")
    assert told in result.output.replace("\n", " ")


@settings(max_examples=cases(25), deadline=None)
@given(st.lists(st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=20), min_size=3, max_size=3), max_size=4), st.sampled_from(("csv", "jsonl")))  # fmt: skip
def test_what_is_written_into_a_sheet_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[str]], ending: str
) -> None:
    """Any text survives in any column, in both formats."""
    sheet = ReviewSheet(tmp_path_factory.mktemp("sheet") / f"s.{ending}")
    sheet.rows = [
        ReviewedProposal(str(number), note=note, statement=said, additional={"mine": own})
        for number, (note, said, own) in enumerate(texts)
    ]
    sheet.write()

    assert ReviewSheet(sheet.path).rows == sheet.rows


def test_a_model_of_single_facts_is_refused_with_the_option_that_helps(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded model cannot propose, judge or word rules; each command says so and names -m."""
    model = ScriptedModel(SCRIPT)
    model.identity = ModelIdentity("embedded", knows=("is_in/2",))
    monkeypatch.setattr(registry, "open_model", lambda *_: model)
    for command in (
        ("expand", "meta.rules", "--variable", "B", "-o", "new.rules"),
        ("lint", "meta.rules"),
        ("verbalise", "meta.rules"),
    ):
        beside = ("--rules", "library") if command[0] == "expand" else ()
        result = invoke("rules", *command, "-m", "embedded", "--db", "x.db", *beside)

        assert result.exit_code == 1
        assert "-m openai:MODEL or -m hf:MODEL" in result.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("types", "joined"),
    [
        (("Food", "Food"), "Food"),
        (("Fruit", "Food"), "Food"),
        (("Food", "Fruit"), "Food"),
        (("Fruit", "Herb"), "Food"),
        (("Fruit", "Stone"), "Object"),
        (("Person", "Food"), "Person"),
        (("Food", "Person"), "Food"),
    ],
)
def test_two_uses_of_a_new_verb_have_a_common_type(types: tuple[str, str], joined: str) -> None:
    """The wider of two types, a declared one above both, or Object; persons share none with others, and the first stays."""
    library = library_of("type Fruit < Food\ntype Herb < Food\n")
    additions = [parse_addition("a", f"given is_washed({data_type})\n", library) for data_type in types]
    whole = with_additions(library, additions)

    assert whole.signature("is_washed/1").argument_types == (joined,)


def test_a_file_without_a_meta_rule_is_an_error(place: Path) -> None:
    """A file that only declares predicates has nothing to expand."""
    (place / "meta.rules").write_text("given is_of_age(Person, Age)\n", encoding="utf-8")
    result = expand()

    assert result.exit_code == 1
    assert "meta.rules has no rule to expand. Add a meta-rule over a wide type to it." in " ".join(
        result.stderr.split()
    )


def test_predicates_that_a_meta_file_only_uses_are_its_own_where_types_do_not_fit(tmp_path: Path) -> None:
    """Rules and facts beside that use them are left out; a predicate whose types fit is shared."""
    meta = tmp_path / "meta.rules"
    meta.write_text("wears(Person A, Object B) & is_sold_at(Object B, Price P) -> pays(Person A, Price P)\n", "utf-8")
    beside = tmp_path / "beside.rules"
    beside.write_text(
        "type Price < Number\noracle wears(Person, Object)\noracle is_sold_at(Object, Shop)\n"
        'fact is_sold_at("hat", "corner shop")\nfact wears("ann", "hat")\n@name own\n@generic none\nwears(Person A, Object B) -> is_dressed(Person A)\n'
        "@name shop\nwears(Person A, Object B) & is_sold_at(Object B, Shop S) -> visits(Person A, Shop S)\n",
        "utf-8",
    )
    sources = Sources.read(meta, [beside], tmp_path / "new.rules")

    assert sources.own == ("is_sold_at/2",)
    assert [rule.name for rule in sources.beside.rules] == ["own"]
    assert [fact.indicator for fact in sources.beside.facts] == ["wears/2"]
    assert [signature.name for signature in sources.beside.signatures if signature.declared] == ["wears"]
    assert len(sources.whole.rules) == 2


def test_a_predicate_that_the_library_beside_only_uses_is_declared(tmp_path: Path) -> None:
    """A declaration is left out where the library has it, and written where only a rule of the library implies it."""
    rule = "@generic none\ndrives(Person A, Car B) & sells(Person C, Car B) -> knows(Person A, Person C)\n"
    addition = parse_addition("a", f"oracle drives(Person, Car)\n{rule.replace('knows', 'meets')}", library_of(""))

    def text(declarations: str) -> str:
        beside = parse_library([("beside.rules", declarations + rule)])
        return file_text([(addition, "one")], Sources(beside, beside, None, tmp_path / "new.rules"))

    assert "oracle drives(Person, Car)\n" in text("")
    assert "oracle drives(Person, Car)\n" not in text("oracle drives(Person, Car)\n")


def test_accepted_rules_with_an_error_are_not_written(tmp_path: Path) -> None:
    """Rules that a person changed in the sheet are checked as a whole; an error has its place in the file to be written."""
    library = library_of()
    sources = Sources(library, library, None, tmp_path / "new.rules")
    rule = "given drives(Person, Object)\n@generic none\ndrives(Person A, Object B) -> rides(Person A, Object B)\n"
    sound, faulty = (parse_addition("a", text, library) for text in (rule, rule.replace("@generic none\n", "")))

    assert "drives(Person A, Object B) -> rides(Person A, Object B)" in file_text([(sound, "one")], sources)
    # Nothing that a comment may hold ends its line or shows as other text.
    assert "# a b c d\n" in file_text([(sound, " a\nb\r\u2028c \u202e\x07 d")], sources)
    with pytest.raises(RulesRejected, match=r"new\.rules:6:1: error HPX105: rule rule1 has fewer than three variables"):
        file_text([(faulty, "one")], sources)


def test_a_meta_file_without_that_rule_is_an_error(place: Path) -> None:
    """--rule names rules of the file of meta-rules alone."""
    result = expand("--rule", "nobody")

    assert result.exit_code == 1
    assert "It has operating_age." in result.stderr.replace("\n", " ")


# Predicates out of scope


def test_a_model_objects_to_predicates() -> None:
    """S1-4: what a model cannot know and what makes no sense are warnings, each once; a refused claim is none."""
    library = parse_library(
        [
            (
                "trees.rules",
                'oracle has_height(Tree, Bush): "[1] is as high as [2]"\n'
                'oracle eats(Bush, Star): "[1] eats [2]"\n'
                'oracle is_in(Star, City): "[1] is in [2]"\n'
                "plants(Person X, Tree A) & has_height(Tree A, Bush B) & eats(Bush B, Star C) & is_in(Star C, City D)"
                " -> visits(Person X, City D)\n"
                "plants(Person X, Tree A) & has_height(Tree A, Bush B) -> sees(Person X, Bush B)\n",
            )
        ]
    )
    claims = {
        "common text can tell whether '[Tree A] is as high as [Bush B]' is true.": 0.1,
        "'[Bush B] eats [Star C]' makes sense": 0.2,
    }

    class Judge(ScriptedModel):
        def probabilities(self, asked: Any) -> Any:
            self.claims += asked
            found = {claim: p for claim in asked for part, p in claims.items() if part in claim}
            return ScriptedModel({"critic": found, "defaults": {"critic": 0.9}}).probabilities(asked)

    judge = Judge({})
    count, warnings = lint_predicates(library, judge)

    assert count == 3
    assert [(warning.code, str(warning.severity)) for warning in warnings] == [
        ("HPX501", "warning"),
        ("HPX502", "warning"),
    ]
    assert len(judge.claims) == 6
    assert "has_height(Tree A, Bush B)" in warnings[0].message


def test_lint_prints_warnings_with_places(place: Path) -> None:
    """The command prints what `check` would print, as text and as JSON, and exits with 0."""
    Path("judge.json").write_text(json.dumps({"defaults": {"critic": 0.1}}), encoding="utf-8")

    arguments = ("rules", "lint", "meta.rules", "-m", "scripted:judge.json", "--db", "x.db")
    result, shown = invoke(*arguments), json.loads(invoke(*arguments, "--json").stdout)

    assert result.exit_code == 0
    assert "meta.rules:8:30: warning HPX502" in result.stdout
    assert [diagnostic["code"] for diagnostic in shown] == ["HPX502"]


# The page

PAGE = (Path(__file__).parent.parent / "docs" / "rules.md").read_text(encoding="utf-8")


def test_the_worked_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Script and command, typed in as they stand, print what the page shows and write the file that it shows."""
    monkeypatch.chdir(tmp_path)
    Path("rules").symlink_to(Path(__file__).parent.parent / "rules")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (script,) = (text for kind, text in fences if kind == "json")
    (rules,) = (text for kind, text in fences if kind == "rules")
    (command,) = (text for _, text in fences if text.startswith("hapax rules expand"))
    (printed,) = (text for _, text in fences if text.startswith("Vehicle in operating_age"))
    Path("table5.json").write_text(script, encoding="utf-8")

    result = invoke(*shlex.split(command)[1:])

    assert result.exit_code == 0
    assert result.stdout.strip() == printed.strip()
    assert Path("age.rules").read_text(encoding="utf-8") == rules
    assert invoke("check", "age.rules", "rules").exit_code == 0


def test_the_page_names_every_column_of_the_sheet() -> None:
    """Columns do not change unseen."""
    assert [name for name in COLUMNS if f"`{name}`" not in PAGE] == []


def test_an_addition_that_declares_a_predicate_otherwise_is_told_by_check() -> None:
    """The same declaration again is none; one of another kind or type stays beside the first, as `check` reports."""
    library = library_of("oracle is_washed(Food)\n")

    def faults(text: str) -> set[str]:
        whole = with_additions(library, [parse_addition("a", text, library_of(""))])
        return {fault.code for fault in check_library(whole) if fault.severity == "error"}

    assert faults("oracle is_washed(Food)\n") == set()
    assert faults("given is_washed(Food)\n") == faults("oracle is_washed(Stone)\n") == {"HPX106"}


def test_types_that_the_accepted_rules_need_are_declared(tmp_path: Path) -> None:
    """A type of a rule with all above it, and no other type of the addition."""
    types = "type Herb < Plant\ntype Car < Vehicle\ntype Vehicle < Machine\n"
    rule = "@generic none\ndrives(Person A, Car B) & sells(Person C, Car B) -> meets(Person A, Person C)\n"
    addition = parse_addition("a", f"{types}oracle drives(Person, Car)\n{rule}", library_of(""))
    beside = library_of("")
    text = file_text([(addition, "one")], Sources(beside, beside, None, tmp_path / "new.rules"))

    assert [line for line in text.splitlines() if line.startswith("type ")] == [
        "type Car < Vehicle",
        "type Vehicle < Machine",
    ]


def test_a_declared_predicate_keeps_its_kind_when_its_forms_are_written() -> None:
    """One that is not declared gets the kind that its rules suggest."""
    library = library_of(
        'functional was_born_in(Person, Year): "[1] was born in [2]"\n'
        "@generic none\nwas_born_in(Person X, Year Y) & is_old(Person X) -> is_wise(Person X)"
    )
    writer = FormWriter(ScriptedModel({"generate": {}, "defaults": {"generate": ""}}))

    made = {signature.name: signature for signature, _ in declarations(library, writer)}
    kinds = {name: signature.kind.value for name, signature in made.items()}
    assert kinds == {"was_born_in": "functional", "is_old": "oracle", "is_wise": "given"}
    assert all(signature.declared for signature in made.values())
