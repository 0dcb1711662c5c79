"""`why` and `why-not`: the story of a statement or atom down to call, verdict and missing premise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hapax.engine.explain import Story, _Explainer, _Replay, story_text, why, why_not
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.proof import By, Proof
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.probability.answers import ProbabilityOptions
from hapax.engine.run_memory import with_stored_predicates
from hapax.engine.search.beams import substitution_subject
from hapax.engine.search.oracle import short_model_name
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Constant, Substitution
from hapax.kb.records import (
    Assessment,
    AtomPattern,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    PredicateRecord,
    Question,
    QuestionState,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
)
from hapax.kb.store import KnowledgeBase

RULES = """
oracle is_ingredient_in(Ingredient, Dish):
  "[1] is an ingredient in [2]" / "[1] is not an ingredient in [2]" / "is [1] an ingredient in [2]?".
given is_recalled(Ingredient).
computed is_before(Year A, Year B) := A < B.
computed is_older(Year A, Year B) := A + 10 < B * 1.
@name century
was_made_in(Thing A, Year D) & was_born_in(Person Q, Year Y) & is_before(Year D, Year Y) & D < Y
  -> could_have_seen(Person Q, Thing A).
@name decade
was_made_in(Thing A, Year D) & was_born_in(Person Q, Year Y) & D + 10 < Y -> may_have_seen(Person Q, Thing A).
@name allergy
is_allergic_to(Person X, Food Allergen A) & falls_under(Ingredient Z, Food Allergen A)
  & is_ingredient_in(Ingredient Z, Dish B)
  & not is_recalled(Ingredient Z) -> is_not_able_to_eat(Person X, Dish B).
@name shared
is_ingredient_in(Ingredient Z, Dish B) & is_ingredient_in(Ingredient Z, Dish C) & B \\= C -> resembles(Dish B, Dish C).
@name direct
borders(Place A, Place B) -> reaches(Place A, Place B).
@name onward
borders(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C).
"""
ASKED = Question((AtomPattern("is_ingredient_in", (None, "paella")),), "Ingredient")
CALL = CallRecord("call-1", "knowledge", "tiny", {"prompt": "Give me 50 values of A"}, {"text": "1. shrimp\n2. chalk"})
SHRIMP = Candidate(ASKED.id, "shrimp", "1. shrimp", "call-1", 0)
CHALK = Candidate(ASKED.id, "chalk", "2. chalk", "call-1", 1)
CLAIM = Assessment("Shrimp is an ingredient in paella.", "probability", "tiny", 0.97)


@pytest.fixture(scope="module")
def library() -> Library:
    return parse_library([("f.rules", RULES)])


@pytest.fixture
def kb(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """One call, two candidates: shrimp was accepted, chalk rejected."""
    fresh_kb.record_calls([CALL])
    fresh_kb.set_question_states([(ASKED, QuestionState(1, 0, exhausted=True))])
    fresh_kb.add_candidates([SHRIMP, CHALK])
    fresh_kb.add_assessments([CLAIM])
    fresh_kb.add_decisions(
        [
            Decision("run1", "critic", SHRIMP.id, True, 0.97, 0.85, "P(yes) reaches 0.85", assessment_ids=(CLAIM.id,)),
            Decision("run1", "critic", CHALK.id, False, 0.12, 0.85, "P(yes) is below 0.85"),
        ]
    )
    fresh_kb.add_facts(
        [
            FactRecord(
                "is_ingredient_in", ("shrimp", "paella"), ("Ingredient", "Dish"), Source.MODEL, 0.97, SHRIMP.id, "run1"
            ),
            FactRecord("falls_under", ("shrimp", "shellfish"), ("Ingredient", "Food Allergen"), Source.GIVEN),
            *(
                FactRecord("borders", pair, ("Place", "Place"), Source.MODEL, 0.9)
                for pair in (("a", "b"), ("b", "c"), ("c", "a"))
            ),
        ]
    )
    return fresh_kb


@pytest.fixture
def statement(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> StatementRecord:
    kept = Substitution((("A", Constant("shellfish")), ("Z", Constant("shrimp")), ("B", Constant("paella"))))
    kept_by_run = KeptSubstitutions(library.rule("allergy"), {Distribution.LONG_TAIL: [kept]}, "run1")
    (found,) = derive_statements(prolog, library, kb.facts(), kept_by_run)
    kb.add_statements([found])
    subject = substitution_subject(found.substitution)
    kb.add_decisions(
        [
            Decision(
                "run1", "likelihood", subject, True, -3.2, -3.0, "among the lowest", "allergy", Distribution.LONG_TAIL
            )
        ]
    )
    return found


def kinds(story: Story) -> list[str]:
    return [part.kind for _, part in story.lines()]


def test_a_statement_is_told_down_to_its_calls(library: Library, kb: KnowledgeBase, statement: StatementRecord) -> None:
    """Statement, gates, rule, facts, prompt, answer, P(yes) and threshold are all in the story."""
    explanation = story_text(why(Theory(library, kb), statement.id))

    for part in (
        statement.text,
        "likelihood gate for allergy (long_tail): accepted, score -3.200, threshold -3.000: among the lowest",
        "[by rule allergy]",
        "[assumed]",
        "[given]",
        'is_recalled("shrimp") was not provable',
        "call call-1 to the knowledge model tiny: 'Give me 50 values of A'",
        "proposed as '1. shrimp', line 1 of the answer",
        "critic gate: accepted, score 0.970, threshold 0.850: P(yes) reaches 0.85",
        "P(yes) 0.970 for 'Shrimp is an ingredient in paella.' by the critic tiny",
    ):
        assert part in explanation


def test_statements_are_found_by_their_text(library: Library, kb: KnowledgeBase, statement: StatementRecord) -> None:
    """Case, blanks and the full stop do not matter."""
    found = why(Theory(library, kb), "  " + statement.text.upper().rstrip("."))

    assert kinds(found)[0] == "statement"


def test_a_fact_is_told(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A ground atom that is a fact tells its candidate's story."""
    story = why(Theory(library, kb), "is_ingredient_in(shrimp, paella)", prolog)

    assert kinds(story) == ["goal", "fact", "candidate", "call", "gate", "assessment"]


def test_a_derived_atom_is_proved(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A derived atom tells its rules down to the facts, on cyclic data too."""
    explanation = story_text(why(Theory(library, kb), "reaches(a, a)", prolog))

    assert explanation.count("[by rule onward]") == 2
    assert explanation.count("[fact]") == 3


def test_an_assumption_takes_part(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Assumptions are named as such."""
    story = why(Theory(library, kb, ("is_allergic_to(tom, shellfish)",)), "is_not_able_to_eat(tom, paella)", prolog)

    assert 'is_allergic_to("tom", "shellfish")  [assumed]' in story_text(story)


def test_why_of_what_does_not_hold_names_why_not(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """The error says which command explains it."""
    with pytest.raises(HapaxError, match="why-not"):
        why(Theory(library, kb), "is_ingredient_in(chalk, paella)", prolog)


def test_why_of_nonsense_says_what_it_reads(library: Library, kb: KnowledgeBase) -> None:
    """A text that is neither a statement nor an atom is told as such."""
    with pytest.raises(HapaxError, match="No statement"):
        why(Theory(library, kb), "The moon is made of cheese")


def test_the_gate_that_stopped_a_value(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A rejected candidate tells gate, score, threshold and reason."""
    explanation = story_text(why_not(Theory(library, kb), "is_ingredient_in(chalk, paella)", prolog))

    assert "critic gate: rejected, score 0.120, threshold 0.850: P(yes) is below 0.85" in explanation
    assert "proposed as '2. chalk'" in explanation


def test_asked_and_never_proposed(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A value that no model proposed tells which question was asked, and how often."""
    explanation = story_text(why_not(Theory(library, kb), "is_ingredient_in(saffron, paella)", prolog))

    assert "no model proposed it" in explanation
    assert 'is_ingredient_in(?, "paella") as Ingredient: 1 call, exhausted' in explanation


def test_nobody_asked(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """An atom that no question touched says so and how to ask."""
    assert "no model was asked; `hapax query --ask` asks" in story_text(
        why_not(Theory(library, kb), "borders(x, y)", prolog)
    )


@pytest.mark.parametrize(
    ("atom", "reason"),
    [
        ("is_recalled(shrimp)", "it is not among the given facts"),
        ("is_before(1989, 1796)", "1989 < 1796 is false"),
        ("is_older(1989, 1796)", "1989 + 10 < 1796 * 1, which is 1999 < 1796, is false"),
        ("is_before(wheel, 1796)", '"wheel" < 1796 is false: only numbers can be ordered'),
        ("is_allergic_to(tom, shellfish)", "--assume adds it"),
    ],
)
def test_what_is_never_asked_says_why(
    prolog: PrologSession, library: Library, kb: KnowledgeBase, atom: str, reason: str
) -> None:
    """Given and computed predicates and hypotheses have reasons of their own."""
    assert reason in story_text(why_not(Theory(library, kb), atom, prolog))


def test_the_known_value_of_a_functional_predicate_is_the_reason(
    fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """Of two values only one can hold, so that the known one is named; a question about the other stays in view."""
    rules = 'functional has_height(Mountain, Height)\nfact has_height("Ararat", 5137)\n'
    theory = Theory(parse_library([("t", rules)]), fresh_kb)
    fresh_kb.add_facts([FactRecord("has_height", ("Elbrus", 5642), ("Mountain", "Height"), Source.MODEL)])

    def reasons(atom: str) -> list[str]:
        return [child.text for child in why_not(theory, atom, prolog).children]

    known = 'another value is known: has_height("Elbrus", 5642)'
    assert reasons("has_height('Elbrus', 5000)") == [known]
    assert reasons("has_height('Ararat', 5000)") == ['another value is known: has_height("Ararat", 5137)']
    assert reasons("has_height('Kazbek', 5642)") == ["no model was asked; `hapax query --ask` asks"]

    question = Question((AtomPattern("has_height", ("Elbrus", None)),), "Height", functional=True)
    fresh_kb.set_question_states([(question, QuestionState(2, 0, exhausted=True))])
    assert reasons("has_height('Elbrus', 5000)") == ["it was asked for, and no model proposed it", known]


def test_a_third_is_told_from_its_first_digits(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Where two numbers read the same, the reason names the exact one."""
    rules = "given weighs(Thing, Number)\nweighs(Thing T, Number X) & Y = X / 3 -> share(Thing T, Number Y)\n"
    fresh_kb.add_facts([FactRecord("weighs", ("stone", 1), ("Thing", "Number"), Source.GIVEN)])
    digits = f"0.{'3' * 28}"

    theory = Theory(parse_library([("t", rules)]), fresh_kb)
    told = story_text(why_not(theory, f"share(stone, {digits})", prolog))

    assert f"is false: {digits} are the first digits of 1/3" in told


def test_the_premise_that_had_no_fact(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """A rule that failed tells its first premise without a fact, with the values so far and what stands behind it."""
    theory = Theory(library, kb, ("is_allergic_to(tom, shellfish)",))

    explanation = story_text(why_not(theory, "is_not_able_to_eat(tom, bisque)", prolog))

    assert "rule allergy: its premise is_ingredient_in(Ingredient Z, Dish B) has no fact" in explanation
    assert 'nothing makes is_ingredient_in("shrimp", "bisque") hold' in explanation
    assert "no model was asked" in explanation
    assert "--assume" not in explanation


def test_a_hypothesis_that_nobody_made(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Without an assumption the rule fails at its hypothesis, and the story names the option."""
    explanation = story_text(why_not(Theory(library, kb), "is_not_able_to_eat(tom, paella)", prolog))

    assert "its premise is_allergic_to(Person X, Food Allergen A) has no fact" in explanation
    assert "hold; --assume adds it to a query" in explanation


def test_a_negation_or_comparison_that_failed(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Tests that failed are told with their values."""
    kb.add_facts([FactRecord("is_recalled", ("shrimp",), ("Ingredient",), Source.GIVEN)])
    theory = Theory(library, kb, ("is_allergic_to(tom, shellfish)",))

    recalled = story_text(why_not(theory, "is_not_able_to_eat(tom, paella)", prolog))
    same = story_text(why_not(Theory(library, kb), "resembles(paella, paella)", prolog))

    assert 'is_recalled("shrimp") holds, but the rule requires that it does not' in recalled
    assert '"paella" \\= "paella" is false' in same


@pytest.mark.parametrize(
    ("atom", "lines"),
    [
        (
            "could_have_seen('Burns', pager)",
            [
                "rule century: its premise is_before(Year D, Year Y) is false",
                "is_before(1989, 1796) is false",
                "1989 < 1796 is false",
            ],
        ),
        (
            "may_have_seen('Burns', pager)",
            ["rule decade: its premise D + 10 < Y is false", "1989 + 10 < 1796, which is 1999 < 1796, is false"],
        ),
    ],
)
def test_a_false_comparison_is_told_with_its_values(
    prolog: PrologSession, library: Library, kb: KnowledgeBase, atom: str, lines: list[str]
) -> None:
    """A premise that is arithmetic, by itself or by definition, is called false and shows what was compared."""
    years = (("was_made_in", "pager", 1989), ("was_born_in", "Burns", 1796))
    kb.add_facts(
        FactRecord(name, (invention, year), ("Thing", "Year"), Source.MODEL) for name, invention, year in years
    )

    _, *explanation = story_text(why_not(Theory(library, kb), atom, prolog)).splitlines()

    assert [line.strip() for line in explanation] == lines


def test_equation_without_a_value_is_told_with_the_values_that_it_has(
    prolog: PrologSession, fresh_kb: KnowledgeBase
) -> None:
    """A division by zero gives its variable no value: the equation stands there with the other values."""
    rules = "given p(Thing, Number)\n@generic none\np(Thing A, Number M) & Number N = M / 0 & Number K = N + 1 -> q(Thing A, Number K)"
    fresh_kb.add_facts([FactRecord("p", ("a", 3), (), Source.GIVEN)])

    told = story_text(why_not(Theory(parse_library([("t", rules)]), fresh_kb), "q(a, 5)", prolog))

    assert told.splitlines()[1:] == ["  rule rule1: its premise Number N = M / 0 is false", "    N = 3 / 0 is false"]


def test_why_not_of_what_holds_names_why(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """The error says which command explains what does hold."""
    with pytest.raises(HapaxError, match="hapax why '"):
        why_not(Theory(library, kb), "borders(a, b)", prolog)


def test_stories_as_json_are_flat(prolog: PrologSession, library: Library, kb: KnowledgeBase) -> None:
    """Each line has its depth, kind and text."""
    lines = why(Theory(library, kb), "borders(a, b)", prolog).to_json()

    assert [line["depth"] for line in lines] == [0, 1]
    assert lines[0]["kind"] == "goal"


LONG_NAME = "simulated@seed 0, SimulationSettings(entities_per_type=120, facts_per_argument=8.0, recall=0.9)"
RUN = RunRecord(
    "run1",
    "search",
    {
        "plan": "cheapest",
        "likelihood": "model",
        "compat": None,
        "models": ["asks", "judges", LONG_NAME, "frequency@en"],
    },
    "run1",
    "2026-01-01",
)


@pytest.fixture
def remembered(library: Library, kb: KnowledgeBase, statement: StatementRecord) -> KnowledgeBase:
    """The knowledge base with what a search stores of its rules, its predicates and itself."""
    kb.add_rules([RuleRecord("allergy", str(library.rule("allergy")))])
    kb.add_predicates(
        PredicateRecord.of(signature) for signature in library.signatures if signature.indicator == "is_ingredient_in/2"
    )
    kb.add_predicates(
        [PredicateRecord("is_allergic_to", ("Person", "Food Allergen"), "given", "[1] must not touch [2]", None, None)]
    )
    kb.start_run(RUN)
    ranked = "Shrimp falls under shellfish and shrimp is an ingredient in paella."
    kb.add_assessments([Assessment(ranked, "log_likelihood", LONG_NAME, -32.0, 10)])
    kb.add_statements([replace(statement, log_likelihood=-9.9)])
    return kb


def test_a_story_needs_no_rule_files(remembered: KnowledgeBase, statement: StatementRecord) -> None:
    """Without the rules, statements and facts are told in the words that the knowledge base stores."""
    theory = Theory(Library(), remembered)

    explanation = story_text(why(theory, statement.id))
    fact = story_text(why(theory, "is_ingredient_in(shrimp, paella)"))

    assert "PersonX must not touch shellfish  is_allergic_to(Person X" in explanation
    assert fact.startswith("shrimp is an ingredient in paella  is_ingredient_in(")
    assert "P(yes) 0.970 for 'Shrimp is an ingredient in paella.' by the critic tiny" in fact


def test_predicates_of_facts_are_added_once(fresh_kb: KnowledgeBase) -> None:
    """Of the predicates that facts have, those that neither rules nor the file declare are added, as given ones."""
    library = parse_library([("t", "oracle borders(Place, Place)\n")])
    fresh_kb.add_facts(
        FactRecord(name, values, (), Source.GIVEN)
        for name, values in (("borders", ("a", "b")), ("borders", ("a",)), ("is_old", ("a",)))
    )
    added = {}
    for thorough in (False, True):
        found = with_stored_predicates(Theory(library, fresh_kb), thorough=thorough).library.signatures
        added[thorough] = [(item.indicator, str(item.kind)) for item in found]

    known, old, other = ("borders/2", "oracle"), ("is_old/1", "given"), ("borders/1", "given")
    assert added[False] == [known, old]
    assert sorted(added[True]) == sorted([known, old, other])


def test_stored_words_go_before_those_of_the_files(
    library: Library, remembered: KnowledgeBase, statement: StatementRecord
) -> None:
    """A story is told as it was asked, whatever the rule files say by now."""
    assert "PersonX must not touch shellfish" in story_text(why(Theory(library, remembered), statement.id))


def test_a_statement_names_who_ranked_it(
    library: Library, remembered: KnowledgeBase, statement: StatementRecord
) -> None:
    """The likelihood gate tells text, likelihood and model; the statement's own likelihood names the evaluator."""
    explanation = story_text(why(Theory(library, remembered), statement.id))

    assert "log-likelihood of the statement -9.900 nats a token by the evaluator frequency@en" in explanation
    assert (
        "log-likelihood -32.000 nats over 10 tokens (-3.200 a token) for 'Shrimp falls under shellfish and shrimp is "
        "an ingredient in paella.' by the likelihood model simulated@seed 0" in explanation
    )


def test_models_have_short_names(library: Library, remembered: KnowledgeBase, statement: StatementRecord) -> None:
    """A model's settings are not repeated in stories; the knowledge base keeps its full name."""
    assert "SimulationSettings" not in story_text(why(Theory(library, remembered), statement.id))
    assert short_model_name(LONG_NAME) == "simulated@seed 0"
    assert short_model_name("embedded@132e82e85509e210") == "embedded@132e82e85509e210"
    assert short_model_name("hf/google/flan-t5-small@" + "0f" * 20) == "hf/google/flan-t5-small@" + "0f" * 10
    assert short_model_name("scripted") == "scripted"


def test_what_no_loaded_file_speaks_of_names_the_option(prolog: PrologSession, remembered: KnowledgeBase) -> None:
    """An atom that rules which are not loaded may derive is not simply denied."""
    theory = Theory(Library(), remembered)

    with pytest.raises(HapaxError, match=r"No loaded rule file declares is_allergic_to/2\. Name the files"):
        why(theory, "is_allergic_to(tom, shellfish)", prolog)
    assert "with --rules" in story_text(why_not(theory, "is_allergic_to(tom, shellfish)", prolog))
    assert "critic gate: rejected" in story_text(why_not(theory, "is_ingredient_in(chalk, paella)", prolog))


def test_imported_facts_have_stories(fresh_kb: KnowledgeBase) -> None:
    """A given fact of a predicate that nobody declared is told by the predicate's name."""
    fresh_kb.add_facts([FactRecord("likes_to_eat", ("tom", "soup"), (), Source.GIVEN)])

    assert "tom likes to eat soup" in story_text(why(Theory(Library(), fresh_kb), "likes_to_eat(tom, soup)"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("embedded@d081439b589b479e", "embedded@d081439b589b479e"),
        (
            "openai/m@gpt-4.1-2025-04-14-a-long-name; chat; vote of 10",
            "openai/m@gpt-4.1-2025-04-14-a; chat; vote of 10",
        ),
        ("hf/x@0123456789abcdef0123456789abcdef", "hf/x@0123456789abcdef0123"),
        ("frequency", "frequency"),
    ],
)
def test_short_names_keep_that_a_score_is_a_vote(name: str, shown: str) -> None:
    """Hashes and dates are shortened; how P(yes) came about never is."""
    assert short_model_name(name) == shown


def test_a_probability_needs_the_rule_and_its_facts(
    library: Library, kb: KnowledgeBase, statement: StatementRecord, prolog: PrologSession
) -> None:
    """Without the rule, or without a proof by the loaded ones, the story says what to load in place of a figure."""
    options = ProbabilityOptions()
    unknown = story_text(why(Theory(Library(), kb), statement.id, prolog, probability=options))
    known = story_text(why(Theory(library, kb), statement.id, prolog, probability=options))
    with KnowledgeBase() as bare:
        bare.add_statements([statement])
        alone = story_text(why(Theory(library, bare), statement.id, prolog, probability=options))

    assert "no probability: no loaded rule file has rule allergy. Name it with --rules." in unknown
    assert "proof 1, P 0.9700: " in known
    assert "no proof by the loaded rules; name other rule files with --rules" in alone


def test_a_proof_that_stands_twice_is_told_once(library: Library, kb: KnowledgeBase) -> None:
    """The second time its goal points to the first; goals without premises are told again."""
    goals = [item.literals[0] for item in library.rules]
    leaf = Proof(goals[0], By.GIVEN)
    inner = Proof(goals[1], By.RULE, "decade", (leaf,))
    halves = [Proof(goals[place], By.RULE, name, (inner, leaf)) for place, name in ((3, "shared"), (4, "direct"))]
    whole = Proof(goals[2], By.RULE, "allergy", tuple(halves))
    lines = [story.text for _, story in _Explainer(Theory(library, kb)).proof(whole).lines()]

    assert sum(line.endswith("  [see above]") for line in lines) == 1
    assert sum("[by rule decade]" in line for line in lines) == 1
    assert sum("[given]" in line for line in lines) == 3


def test_a_computed_predicate_without_its_definition_names_the_option(
    fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """A knowledge base stores that a predicate is computed, and not how."""
    fresh_kb.add_predicates([PredicateRecord("is_odd", ("Number",), "computed", "[1] is odd", None, None)])

    told = story_text(why_not(Theory(Library(), fresh_kb), "is_odd(3)", prolog))
    assert "is_odd/1 is computed, and no loaded rule file defines it; name the one that does with --rules" in told


def test_a_rule_in_which_nothing_is_searched_has_no_cuts(fresh_kb: KnowledgeBase, prolog: PrologSession) -> None:
    """Its only variable is the generic person, for whom no value was ranked."""
    library = parse_library([("f.rules", 'knows(Person X, "Capri") -> likes(Person X, "Capri")\n')])
    (rule,) = library.rules
    run = RunRecord("run1", "search", {}, "f", "2026-01-01")

    assert rule.searched == ()
    assert list(_Replay(Theory(library, fresh_kb), rule, run, ()).stories(Substitution(), prolog)) == []
