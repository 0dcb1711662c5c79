"""Expansions of meta-rules by replies of every kind: prompts, proposals and what is left out, in `tests/golden/`."""

from __future__ import annotations

from typing import Any

from golden_fixture import compared

from hapax.engine.expansion.propose import Expander, ExpansionSettings, Proposal, addition_text, rule_sentence
from hapax.engine.expansion.replies import UnusableReply, read_conclusions, read_predicate, read_types
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.llm_oracle.scripted import ScriptedModel

META = """
type Vehicle < Object
type Person Carrier < Vehicle
given is_of_age(Person, Age): "[1] is [2] years old" / "[1] is not [2] years old" / "is [1] [2] years old?"
functional requires_a_minimal_age_of(Object, Age): "[1] requires a minimal age of [2]" / "[1] does not require a minimal age of [2]" / "does [1] require a minimal age of [2]?"
computed is_smaller_than(Number A, Number B) := A < B: "[1] is smaller than [2]" / "[1] is not smaller than [2]" / "is [1] smaller than [2]?"
given cannot_operate(Person, Object): "[1] cannot operate [2]" / "[1] can operate [2]" / "is [1] unable to operate [2]?"
given cannot_ride(Person, Vehicle)
given is_kept_in(Object, Place): "[1] is kept in [2]" / "[1] is not kept in [2]" / "is [1] kept in [2]?"
oracle is_made_of(Object, Material)

@name operating_age
@domain temporal
is_of_age(Person A, Age X) & requires_a_minimal_age_of(Object B, Age Y) & is_smaller_than(Age X, Age Y) -> cannot_operate(Person A, Object B)

@name kept
is_kept_in(Object B, Place P) & enters(Person A, Place P) -> may_use(Person A, Object B)

@name material
@generic A
is_allergic_to(Person A, Material M) & is_made_of(Object B, Material M) & not is_kept_in(Object B, "a box") -> must_avoid(Person A, Object B)

@name keyed
is_kept_in(Object B, Place P) & enters(Person A, Place P) -> may_open_with(Person A, Object B, "a key")

@name other
@generic A
is_of_age(Person A, Age X) & X < 18 & likes(Person A, Object B) -> cannot_own(Person A, Object B)
"""

TYPE_REPLIES = [
    "Vehicle, Machinery, Alcohol, Firearm",
    "1. Vehicles\n2. Heavy machinery.\n3. alcohol\n3. Alcohols\n4. Object\n5. Person\n6.\n7. A thing that is used to do very many things indeed\n8. Tools & Dies",
    "Here are ten subcategories:\n- Bikes: two wheels\n- Boxes\n- Knives (sharp)\n* Glasses\n* Buses\n- Ladies\n- 42\n- X\n- Person Carrier",
    "I do not know.",
    "",
    "Vehicle",
    '["Vehicle", "Boat"]',
    "Years, Numbers, Ages, Persons, Kilograms",
    "Tools for\nof wood\nWork with\nTools of wood\nan axe\nHammer with a very long and heavy handle of wood",
]
VERB_REPLIES = {
    "drive": "cannot drive",
    "sentence": "Person A cannot steer Vehicle B.",
    "underscored": "cannot_fly",
    "quoted": '"is forbidden to touch"',
    "known": "cannot ride",
    "same": "cannot operate",
    "nothing": "",
    "refusal": "I cannot answer that.",
    "long": "should under no circumstances whatsoever be allowed to even think of ever using or touching",
    "prolog": "can't :- halt.",
    "noun": "ownership",
    "lines": "cannot drive\ncannot steer",
    "past": "has driven",
    "negative": "does not drive",
    "plural": "drives",
    "digits": "2nd guesses",
    "subject": "It drives",
    "data type alone": "Person cannot drive",
    "capital letter": "cannot drive A",
    "article": "is a driver of",
    "constant": "is kept in a box by",
    "several": "cannot_drive, cannot_steer or cannot_park",
    "twice": "cannot_drive (cannot_drive)",
    "numbered": "1) cannot drive",
    "marked": "**cannot drive**.",
    "called": "cannot drive(Person A, Vehicle B)",
    "blank lines": "\n\n  cannot drive  \n",
    "keyword": "not",
    "kind": "given",
    "built in": "count",
    "aggregate": "sum",
    "computed": "is smaller than",
    "another number of arguments": "is kept",
    "declared oracle": "is made of",
    "accent": "d\u00e9passe",
}
CONCLUSIONS = (
    "1. If Person A is 12, then Person A cannot steer Vehicle B.\n2. No idea.\n3. Person A must not wash Vehicle B.\n"
    "4. Person A cannot steer Vehicle B\n5. Vehicle B cannot carry Person A.\n6. Person A can :- halt Vehicle B.\n"
    "7. then Person A is unable to park Vehicle B"
)


def told(proposal: Proposal, library: Library) -> list[str]:
    lines = [f"{proposal.data_type}: {proposal.verbs}; {proposal.notes}; {dict(proposal.columns)}"]
    lines += [f"  {line}" for line in addition_text(proposal.addition, library).splitlines()]
    lines.append(f"  {rule_sentence(proposal.addition, library)}")
    return lines + [f"  {rule_sentence(proposal.addition, library, verb)}" for verb in proposal.verbs]


def expanded(meta: str, variable: str, replies: dict[str, Any], **options: Any) -> list[str]:
    library = parse_library([("meta.rules", META)])
    model = ScriptedModel({"generate": replies, "defaults": {"generate": ""}})
    metas = [rule for rule in library.rules if rule.name == meta]
    asking = Expander(model, library, metas, ExpansionSettings(variable, **options))
    lines = []
    try:
        expansion = asking.expand(metas[0])
    except HapaxError as refusal:
        return [str(refusal)]
    for proposal in expansion.proposals:
        lines += told(proposal, library)
        for words in ("cannot park", "", "cannot ride", "x y z w", "can :- halt"):
            again = asking.reworded(proposal.addition, words)
            if isinstance(again, UnusableReply):
                lines.append(f"  {words!r}: {again}")
            else:
                lines += [f"  {words!r}: {line}" for line in addition_text(again, library).splitlines()]
    lines += [f"left out: {reply.said!r}: {reply.reason}" for reply in expansion.left_out]
    again = asking.expand(metas[0], [proposal.addition for proposal in expansion.proposals])
    lines += [f"then {len(again.proposals)}; {[(reply.said, reply.reason) for reply in again.left_out]}"]
    return [*lines, *(f"asked: {prompt!r}" for prompt in dict.fromkeys(model.prompts))]


def test_meta_rules_are_expanded_as_before() -> None:
    """Replies with types and verbs of every kind give these proposals and reasons, by these prompts."""
    lines = []
    for reply in TYPE_REPLIES:
        lines += [
            f"# types {reply!r}",
            *expanded("operating_age", "B", {"subcategories of": reply, "[mask]": "cannot drive"}),
        ]
    for name, verb in VERB_REPLIES.items():
        replies = {"subcategories of": "Vehicle, Boat", "then Person A [mask]": CONCLUSIONS, "[mask]": verb}
        lines += [f"# verb, {name}", *expanded("operating_age", "B", replies)]
    compared("expansion/proposals", "\n".join(lines) + "\n")


def test_meta_rules_of_every_form_are_expanded_as_before() -> None:
    """Each variable of each meta-rule, with and without new verbs, gives these proposals."""
    replies = {"subcategories of": "Boat, Bike", "then Person A [mask]": CONCLUSIONS, "[mask]": "cannot drive"}
    lines = []
    for meta, variable in (
        ("kept", "B"),
        ("kept", "P"),
        ("material", "B"),
        ("material", "M"),
        ("other", "B"),
        ("other", "A"),
        ("keyed", "B"),
    ):
        for verbs in (True, False):
            lines += [
                f"# {meta}, {variable}, {verbs}",
                *expanded(meta, variable, replies, verbs=verbs, types=2, seed=3),
            ]
    compared("expansion/of_metas", "\n".join(lines) + "\n")


def test_replies_are_read_as_before() -> None:
    """Types, predicates and conclusions in replies of every layout are read, or left out with a reason."""
    lines = []
    for reply in [*TYPE_REPLIES, *VERB_REPLIES.values(), CONCLUSIONS]:
        lines += [f"# {reply!r}", *(str(found) for found in read_types(reply))]
        for arguments in (
            (),
            ("Person A", "Vehicle B"),
            ("Person A",),
            ("Person A", "a box"),
            ("", "Person Carrier C"),
        ):
            lines.append(f"{arguments}: {read_predicate(reply, arguments)}")
            lines += [f"  {found}" for found in read_conclusions(reply, arguments)]
    compared("expansion/replies", "\n".join(lines) + "\n")
