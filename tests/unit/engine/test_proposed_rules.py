"""Replies of models to questions about rules: what is read out of them, and that no reply makes a faulty rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.expansion.propose import (
    Expander,
    ExpansionSettings,
    Proposal,
    UnusableReply,
    Verb,
    addition_text,
    read_conclusions,
    read_predicate,
    read_types,
    read_verb,
    with_additions,
)
from hapax.engine.expansion.review import ExpansionFiles, Sources, file_text
from hapax.engine.expansion.sentences import sentences_for
from hapax.grammar.checks import check_library
from hapax.grammar.parser import parse_addition, parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Variable
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest, ModelIdentity
from hapax.llm_oracle.rewriting import TRIES, FormWriter
from hapax.llm_oracle.scripted import ScriptedModel

META = """given is_of_age(Person, Age): "[1] is [2] years old" / "[1] is not [2] years old" / "is [1] [2] years old?"
functional needs_age(Object, Age): "[1] needs age [2]" / "[1] does not need age [2]" / "does [1] need age [2]?"
given cannot_operate(Person, Object): "[1] cannot operate [2]" / "[1] can operate [2]" / "is [1] unable to operate [2]?"
@name operating_age
is_of_age(Person A, Age X) & needs_age(Object B, Age X) -> cannot_operate(Person A, Object B)
"""
TYPES = "List 10 subcategories of Object"
INGREDIENT = Atom("ingredient_in", (Variable("A", "Ingredient"), Variable("B", "Dish")))


def library_of(text: str = META) -> Library:
    return parse_library([("meta.rules", text)])


def proposals(generate: Mapping[str, Any], text: str = META) -> tuple[Proposal, ...]:
    library = library_of(text)
    (meta,) = (rule for rule in library.rules if rule.name == "operating_age")
    model = ScriptedModel({"generate": generate, "defaults": {"generate": ""}})
    return Expander(model, library, [meta], ExpansionSettings("B")).expand(meta).proposals


@pytest.mark.parametrize(
    ("reply", "types"),
    [
        ("Vehicle, Machinery, Tobacco Product", ["Vehicle", "Machinery", "Tobacco Product"]),
        ("Here are some:\n1. **Vehicles**: cars\n2) firearms - all\n- an Alcohol (beer)", ["Vehicle", "Firearm", "Alcohol"]),
        ("* name of a dish\n* works of art", ["Name of Dish", "Work of Art"]),
        ("1. Knives\n2. Cosmetics\n3. Cactus\n4. Gas", ["Knife", "Cosmetics", "Cactus", "Gas"]),
        ("Vitamin C\np(X) :- q(X).\n\x00\n:-\n'\"\n1.\n" + "x" * 10_000 + "\nthe\nof", []),
        ("I cannot help with that, because it is not clear what you mean by a type of this kind", []),
        ("", []),
    ],
)  # fmt: skip
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
        ("is a kind of", "is_a_kind_of"),
        ("drives_a or rides_a", None),
        ("halt. :- shell('rm -rf /')", None),
        ("drive\x00", None),
        ("", None),
        ("drive " * 40, None),
        ("Furniture A cannot be placed in Bag B.", None),
        ("The sofa does not fit in the drawer.", None),
        ("If it is large, it cannot be placed", None),
    ],
)
def test_a_predicate_is_read_out_of_a_reply(reply: str, name: str | None) -> None:
    """One name in letters, digits and underscores; a sentence or anything else is none."""
    found = read_predicate(reply, ["Furniture A", "Drawer B"])
    assert found == Verb(name) if name else isinstance(found, UnusableReply)


def test_conclusions_give_verbs_with_their_sentences() -> None:
    """A statement's end, behind its last `then`, becomes name and template; one without both arguments is left out."""
    reply = (
        "Here are the statements:\n\n1. If Person A ate and then slept, then Person A cannot drive Vehicle B.\n"
        "2. person a can't steer the Vehicle B\n3. Nobody\x1b[2J drives."
    )
    *verbs, unusable = read_conclusions(reply, ["Person A", "Vehicle B"])

    assert verbs == [Verb("cannot_drive", "[1] cannot drive [2]"), Verb("cannot_steer", "[1] cannot steer the [2]")]
    assert isinstance(unusable, UnusableReply)
    assert unusable.said.isprintable()
    assert read_verb("[1] cannot pay [2] for [3]", 3) == Verb("cannot_pay_for", "[1] cannot pay [2] for [3]")
    assert read_verb("[1] pays [1] and [2]", 2) is None


def test_new_names_are_free_and_a_shared_verb_is_declared_over_both_types() -> None:
    """A name that a rule has gets a number; a verb of two types is declared once; the same replies give the same text."""
    replies = {TYPES: "Alcohol, Tobacco Product", "[mask](Person A,": "cannot_buy"}
    first, second = proposals(replies), proposals(replies)
    taken = f"@name {first[0].rule.name}\n@generic none\nis_of_age(Person A, Age X) -> is_old(Person A)\n"
    whole = with_additions(replace(library_of(), rules=()), [proposal.addition for proposal in first])

    assert proposals(replies, META + taken)[0].rule.name == f"{first[0].rule.name}_2"
    assert whole.signature("cannot_buy/2").argument_types == ("Person", "Object")
    assert [fault for fault in check_library(whole) if fault.severity == "error"] == []
    assert [(each.id, addition_text(each.addition, library_of())) for each in first] == [
        (each.id, addition_text(each.addition, library_of())) for each in second
    ]


@pytest.mark.parametrize(
    ("types", "joined"),
    [
        (("Food", "Food"), "Food"),
        (("Fruit", "Food"), "Food"),
        (("Fruit", "Herb"), "Food"),
        (("Fruit", "Stone"), "Object"),
        (("Person", "Food"), "Person"),
    ],
)
def test_two_uses_of_a_new_verb_have_a_common_type(types: tuple[str, str], joined: str) -> None:
    """The wider of two types, a declared one above both, or Object; persons share none with others, and the first stays."""
    library = library_of("type Fruit < Food\ntype Herb < Food\n")
    additions = [parse_addition("a", f"given is_washed({data_type})\n", library) for data_type in types]

    assert with_additions(library, additions).signature("is_washed/1").argument_types == (joined,)


HOSTILE = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ("p(X) :- q(X).", ":- halt.", '"; drop table calls; --', "\n\n\n", "1. \n2. \n3. .", "x" * 10_000, "not", "type",
         "fact", "[1] [2] [1]", '[1] cannot " use [2]', "[1] -> [2]", "Person A # Vehicle B", "Vehicle\nType X\nfact p(1)",
         "\u202eelcihev\x1b[31m")
    ),
)  # fmt: skip


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
    for proposal in proposals(generate):
        text = addition_text(proposal.addition, library)
        again = parse_addition("again", text, library)
        faults = [fault for fault in check_library(with_additions(library, [again])) if fault.severity == "error"]

        assert again.rules == proposal.addition.rules
        assert faults == []
        assert text.replace("\n", "").isprintable()


class Forgetful:
    """A generator that gives its replies in turn."""

    identity = ModelIdentity("forgetful")

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.samples: list[int] = []

    def generate(self, requests: list[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        self.samples += [request.sample_index for request in requests]
        return [Generation(self.replies.pop(0) if self.replies else "") for _ in requests]


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

    assert TRIES == 5
    assert model.samples == [*range(TRIES)] * 3
    assert made.templates.affirmative == "[1] ingredient in [2]"
    assert len(made.notes) == 3


def test_predicates_that_a_meta_file_only_uses_are_its_own_where_types_do_not_fit(tmp_path: Path) -> None:
    """Rules and facts beside that use them are left out; a predicate whose types fit is shared."""
    meta, beside = tmp_path / "meta.rules", tmp_path / "beside.rules"
    meta.write_text("wears(Person A, Object B) & is_sold_at(Object B, Price P) -> pays(Person A, Price P)\n", "utf-8")
    beside.write_text(
        "type Price < Number\noracle wears(Person, Object)\noracle is_sold_at(Object, Shop)\n"
        'fact is_sold_at("hat", "corner shop")\nfact wears("ann", "hat")\n'
        "@name own\n@generic none\nwears(Person A, Object B) -> is_dressed(Person A)\n"
        "@name shop\nwears(Person A, Object B) & is_sold_at(Object B, Shop S) -> visits(Person A, Shop S)\n",
        "utf-8",
    )
    sources = ExpansionFiles(meta, tmp_path / "new.rules", [beside]).read()

    assert sources.own == ("is_sold_at/2",)
    assert [rule.name for rule in sources.beside.rules] == ["own"]
    assert [fact.indicator for fact in sources.beside.facts] == ["wears/2"]


def test_a_rule_file_declares_what_its_rules_need(tmp_path: Path) -> None:
    """Types of a rule with all above them and no others; predicates that the library beside does not declare."""
    types = "type Herb < Plant\ntype Car < Vehicle\ntype Vehicle < Machine\n"
    rule = "@generic none\ndrives(Person A, Car B) & sells(Person C, Car B) -> meets(Person A, Person C)\n"
    declared = "oracle drives(Person, Car)\n"
    addition = parse_addition("a", f"{types}{declared}{rule}", library_of(""))

    def text(beside: str, note: str = "note") -> str:
        library = library_of(beside + rule.replace("meets", "knows"))
        return file_text([(addition, note)], Sources(library, library, None, tmp_path / "new.rules"))

    assert [line for line in text("").splitlines() if line.startswith("type ")] == [
        "type Car < Vehicle",
        "type Vehicle < Machine",
    ]
    assert declared in text("")
    assert declared not in text(declared)
    assert "# a b c d\n" in text("", " a\nb\r\u2028c \u202e\x07 d")  # no text of a person ends the comment
