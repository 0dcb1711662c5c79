"""Training documents: they say what the search says, and never teach a falsehood as true or a truth as false."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library, parse_library
from hapax.grammar.terms import Atom, Constant, Substitution, Variable
from hapax.grammar.verbalize import atom_text
from hapax.llm_oracle.embedded.atlas import AtlasFact, load_atlas, parse_atlas, popularity
from hapax.llm_oracle.prompts import CRITIC_PROMPT, critic_prompt, functional_prompt, knowledge_prompt
from tools.embedded.corpus import LONGEST_LIST, NO, YES, Corpus, Document, DocumentKind, ListQuestion
from tools.embedded.falsehoods import Falsehood, Falsehoods, is_held_out
from tools.embedded.groundings import rule_statements
from tools.embedded.statements import StatementSampler, sampling_shares
from tools.embedded.wording import RULES_FOLDER, AtlasWording, load_wording

ATLAS = """\
predicate is_ingredient_in(Ingredient, Dish) key 2
paella: rice; saffron; chicken
risotto: rice; butter
predicate was_invented_in(Invention, Year) key 1 functional
telephone: 1876
laser: 1960
predicate is_made_from_milk_of(Cheese, Animal) key 1
feta: sheep; goat
"""
RULES = """\
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]".
functional was_invented_in(Invention, Year): "the [1] was invented in [2]".
oracle is_made_from_milk_of(Cheese, Animal): "[1] is made from the milk of the [2]".
"""
# A rule with a computed literal, one with a negation, and one that the atlas cannot answer.
STATED = """\
computed is_before(Year A, Year B) := A < B.
given died_in(Person, Year): "[1] died in [2]".
given never_saw(Person, Invention): "[1] never saw the [2]".
@name late
@generic X
was_invented_in(Invention A, 1876) & was_invented_in(Invention B, Year Y) & is_before(1900, Year Y) & died_in(Person X, 1900)
  -> never_saw(Person X, Invention B).
given buys(Person, Cheese): "[1] buys [2]".
given buys_no_cow_cheese(Person, Animal): "[1] buys no cow cheese".
@name other_milk
@generic X
buys(Person X, Cheese C) & is_made_from_milk_of(Cheese C, Animal A) & not is_made_from_milk_of(Cheese C, "cow") & A = "goat"
  -> buys_no_cow_cheese(Person X, Animal A).
oracle is_sold_in(Cheese, City).
@name unanswered
@generic X
buys(Person X, Cheese C) & is_sold_in(Cheese C, City A) -> never_saw(Person X, City A).
"""


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # reproducible, not secret


def small_corpus() -> Corpus:
    atlas = parse_atlas([("some.atlas", ATLAS)])
    return Corpus(atlas, AtlasWording(atlas, parse_library([("some.rules", RULES)])))


@pytest.fixture(scope="module")
def shipped() -> Corpus:
    atlas = load_atlas()
    return Corpus(atlas, load_wording(atlas))


@pytest.fixture(scope="module")
def sampler(shipped: Corpus) -> StatementSampler:
    return StatementSampler(shipped, len)


def drawn(corpus: Corpus | StatementSampler, kind: DocumentKind, count: int) -> list[Document]:
    rng = seeded(7)
    return [corpus.document(kind, rng) for _ in range(count)]


def claim_of(document: Document) -> str:
    before, _, after = CRITIC_PROMPT.partition("{claim}")
    return document.prompt.removeprefix(before).removesuffix(after)


def true_claims(corpus: Corpus) -> set[str]:
    return {corpus.claim(fact) for fact in corpus.atlas.facts}


def test_no_question_answered_no_is_true_by_the_atlas(shipped: Corpus) -> None:
    """A fact of the atlas is never taught as false, whichever predicate or spelling says it."""
    denied = {claim_of(document) for document in drawn(shipped, DocumentKind.QUESTION, 4000) if document.answer == NO}

    assert denied
    assert not denied & true_claims(shipped)


def test_every_question_answered_yes_is_true_by_the_atlas(shipped: Corpus) -> None:
    """Only facts of the atlas are taught as true."""
    affirmed = {
        claim_of(document) for document in drawn(shipped, DocumentKind.QUESTION, 2000) if document.answer == YES
    }

    assert affirmed <= true_claims(shipped)


def test_every_true_fact_is_asked() -> None:
    """No fact is kept from the critic's questions: what it never met it does not know."""
    corpus = small_corpus()

    affirmed = {claim_of(document) for document in drawn(corpus, DocumentKind.QUESTION, 1000) if document.answer == YES}

    assert affirmed == true_claims(corpus)


def test_half_of_the_questions_are_true(shipped: Corpus) -> None:
    """Yes and no are taught about equally often, so that the critic's probability means something."""
    answers = [document.answer for document in drawn(shipped, DocumentKind.QUESTION, 2000)]

    assert 0.45 < answers.count(YES) / len(answers) < 0.55


def test_held_out_falsehoods_are_never_taught(shipped: Corpus) -> None:
    """Falsehoods for the release gate are not in the training documents."""
    for kind in (DocumentKind.QUESTION, DocumentKind.TYPE_QUESTION):
        assert not any(is_held_out(claim_of(doc)) for doc in drawn(shipped, kind, 2000) if doc.answer == NO)


def test_held_out_falsehoods_are_drawn_on_request(shipped: Corpus) -> None:
    """The gate gets falsehoods of every kind, all held out and none true."""
    rng = seeded(3)
    facts = rng.choices(shipped.atlas.facts, k=1500)

    wrong = [item for fact in facts if (item := shipped.falsehoods.wrong_fact(fact, rng, held_out=True))]

    assert all(is_held_out(shipped.claim(item.fact)) for item in wrong)
    assert not any(shipped.atlas.holds(item.fact.predicate, item.fact.arguments) for item in wrong)
    assert {item.kind for item in wrong} == set(Falsehood)


def test_falsehoods_keep_to_keys_whose_lists_are_complete(shipped: Corpus) -> None:
    """A pair is called false only where the atlas has the whole list of its key, or where a name is invented."""
    rng = seeded(4)
    wrong = [item for fact in shipped.atlas.facts[:1500] if (item := shipped.falsehoods.wrong_fact(fact, rng))]
    entities = {name for data_type in shipped.atlas.types for name in shipped.atlas.entities(data_type)}
    invented = [item for item in wrong if item.kind in (Falsehood.GARBLED, Falsehood.BLENDED)]
    others = [item for item in wrong if item not in invented]

    assert all(shipped.atlas.knows_key(item.fact.predicate, item.fact.arguments) for item in others)
    assert all(set(item.fact.arguments) - entities for item in invented)


def test_years_are_denied_near_the_right_one(shipped: Corpus) -> None:
    """Near misses of years are among the falsehoods, at most 30 years off and never right."""
    rng = seeded(5)
    fact = next(fact for fact in shipped.atlas.facts if fact.predicate == "was_born_in")
    wrong = [item for _ in range(300) if (item := shipped.falsehoods.wrong_fact(fact, rng))]
    distances = [
        abs(int(item.fact.arguments[1]) - int(fact.arguments[1])) for item in wrong if item.kind is Falsehood.NEAR_VALUE
    ]

    assert distances
    assert all(1 <= distance <= 30 for distance in distances)


def test_no_entity_is_denied_its_own_type(shipped: Corpus) -> None:
    """Type questions answered no are not type claims that the atlas makes, letter case aside."""
    own = {claim.casefold() for claim in shipped.true_type_claims()}
    denied = {claim_of(doc).casefold() for doc in drawn(shipped, DocumentKind.TYPE_QUESTION, 3000) if doc.answer == NO}

    assert denied
    assert not denied & own


def test_claims_are_worded_as_the_search_words_them(shipped: Corpus) -> None:
    """The critic's claims and the list prompts' sentences are what the rule library makes of the atom."""
    library = load_library([RULES_FOLDER])
    for fact in shipped.atlas.facts[::10]:
        atom = Atom(fact.predicate, tuple(map(Constant, fact.arguments)))
        assert shipped.wording.claim(fact.predicate, fact.arguments) == atom_text(atom, library, Substitution())
    opened = Atom("is_ingredient_in", (Constant("rice"), Variable("B", "Dish")))

    assert shipped.wording.claim("is_ingredient_in", ("rice", "[B]")) == atom_text(opened, library, Substitution())


def test_critic_documents_are_the_critic_prompt() -> None:
    """Question and answer stand as the search puts them."""
    corpus = small_corpus()

    documents = drawn(corpus, DocumentKind.QUESTION, 200)

    assert all(document.prompt == critic_prompt(claim_of(document)) for document in documents)
    assert critic_prompt("The telephone was invented in 1876.") in {document.prompt for document in documents}


def test_lists_are_asked_in_the_searchs_words() -> None:
    """A list prompt is the knowledge prompt with the open slot as the search prints it."""
    corpus = small_corpus()
    prompt = corpus.prompt(ListQuestion("is_ingredient_in", 1, "rice"), seeded(1))
    name = re.findall(r"\[([A-Z])\]", prompt)[0]

    assert prompt == knowledge_prompt(name, f"rice is an ingredient in [{name}]", "Dish")


def test_functional_predicates_are_asked_for_the_correct_value() -> None:
    """A functional predicate's last argument is asked with the functional prompt, its first with the list prompt."""
    corpus = small_corpus()
    by_slot = {(q.position, q.given): q for q in corpus.list_questions if q.predicate == "was_invented_in"}

    prompt = corpus.prompt(by_slot[1, "laser"], seeded(1))
    name = re.findall(r"\[([A-Z])\]", prompt)[0]

    assert prompt == functional_prompt(name, f"the laser was invented in [{name}]", "Year")
    assert not by_slot[0, "1960"].functional
    assert not by_slot[1, None].functional


def test_open_questions_show_both_slots() -> None:
    """The search's first question of a rule has two open slots; both positions are trained."""
    corpus = small_corpus()
    opened = [question for question in corpus.list_questions if question.given is None]

    assert {(q.predicate, q.position) for q in opened} == {(p, i) for p in corpus.atlas.relations for i in (0, 1)}
    assert len(re.findall(r"\[[A-Z]\]", corpus.prompt(opened[0], seeded(1)))) == 2


def test_lists_name_only_true_values(shipped: Corpus) -> None:
    """Every line of an answer is numbered, true of its question and given once."""
    entities = {name for data_type in shipped.atlas.types for name in shipped.atlas.entities(data_type)}
    for document in drawn(shipped, DocumentKind.LIST, 500):
        lines = document.answer.strip("\n").split("\n")
        values = [line.partition(". ")[2].removesuffix(".") for line in lines]

        assert [line.partition(". ")[0] for line in lines] == [str(place + 1) for place in range(len(lines))]
        assert len(set(values)) == len(values) <= LONGEST_LIST
        assert entities.issuperset(values)
        assert document.ends


def test_statements_are_true_and_lean_to_the_well_known(shipped: Corpus, sampler: StatementSampler) -> None:
    """Statements are facts of the atlas, and better known ones on average than the atlas holds."""
    claims = [document.answer for document in drawn(sampler, DocumentKind.STATEMENT, 1000)]
    known = {shipped.claim(fact): fact for fact in shipped.atlas.facts}

    def mean_popularity(facts: list[AtlasFact]) -> float:
        return sum(popularity(argument) for fact in facts for argument in fact.arguments) / len(facts)

    assert set(claims) <= set(known)
    assert mean_popularity([known[claim] for claim in claims]) > mean_popularity(list(shipped.atlas.facts)) + 0.5


def test_chains_hold_true_facts_that_share_a_name(shipped: Corpus, sampler: StatementSampler) -> None:
    """Every link of a chain is a fact of the atlas, and each but the first shares a name with the one before."""
    facts = {shipped.wording.claim(fact.predicate, fact.arguments): fact for fact in shipped.atlas.facts}
    for document in drawn(sampler, DocumentKind.CHAIN, 200):
        linked = _split(document.answer, facts)

        assert linked
        assert all(set(facts[first].arguments) & set(facts[next_one].arguments) for first, next_one in pairwise(linked))


def _split(chain: str, facts: Mapping[str, AtlasFact]) -> list[str]:
    """The claims that were joined with "and"; names may hold an "and" of their own."""
    words = chain.removesuffix(".").split(" and ")
    found: list[str] = []
    while words:
        spellings = ((size, " and ".join(words[:size])) for size in range(1, len(words) + 1))
        size, claim = next(
            (size, claim)
            for size, words_so_far in spellings
            for claim in (words_so_far, words_so_far[:1].lower() + words_so_far[1:])
            if claim in facts
        )
        found.append(claim)
        del words[:size]
    return found


def test_rule_statements_are_what_the_rules_derive() -> None:
    """A rule's statements are those whose whole premise the atlas makes true: negation and comparisons included."""
    atlas = parse_atlas([("some.atlas", ATLAS)])
    library = parse_library([("some.rules", RULES + STATED)])

    found = {
        name: {statement.sentence for statement in statements}
        for name, statements in rule_statements(library, atlas).items()
    }

    assert found == {
        "late": {
            "If the telephone was invented in 1876 and the laser was invented in 1960 and PersonX died in 1900, "
            "then PersonX never saw the laser."
        },
        "other_milk": {"If PersonX buys feta, then PersonX buys no cow cheese."},
    }


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(2, 14, allow_nan=False)), min_size=2, max_size=60))
def test_telling_shares_rank_by_popularity_whatever_the_length(sentences: list[tuple[int, float]]) -> None:
    """The logarithm of the shares, divided by the lengths, grows with popularity; the shares add up to 1."""
    shares = sampling_shares(*(list(column) for column in zip(*sentences, strict=True)))
    per_token = {
        known: math.log(share) / length for (length, known), share in zip(sentences, shares, strict=True) if share
    }

    assert math.fsum(shares) == pytest.approx(1.0)
    ordered = [per_token[known] for known in sorted(per_token)]
    assert all(low <= high + 1e-6 for low, high in pairwise(ordered))


def test_the_same_random_state_draws_the_same_documents(shipped: Corpus, sampler: StatementSampler) -> None:
    """Training is repeatable from its seed, and every kind of document is drawn somewhere."""
    assert {*shipped.kinds, *sampler.kinds} == set(DocumentKind)
    for source in (shipped, sampler):
        assert all(drawn(source, kind, 50) == drawn(source, kind, 50) for kind in source.kinds)


def test_an_atlas_predicate_without_words_is_named() -> None:
    """An atlas that the rule library does not cover is an error naming the predicate."""
    atlas = parse_atlas([("some.atlas", ATLAS)])

    with pytest.raises(HapaxError, match="is_made_from_milk_of"):
        AtlasWording(atlas, parse_library([("some.rules", "\n".join(RULES.splitlines()[:2]) + "\n")]))


def test_a_tiny_atlas_still_draws_falsehoods() -> None:
    """With hardly any other value to draw, falsehoods are still false or none at all."""
    atlas = parse_atlas([("one.atlas", "predicate is_ingredient_in(Ingredient, Dish) key 2\npaella: rice\n")])
    falsehoods = Falsehoods(atlas, AtlasWording(atlas, parse_library([("some.rules", RULES)])))
    rng = seeded(0)

    drawn = [falsehoods.wrong_fact(atlas.facts[0], rng) for _ in range(100)]

    assert atlas.facts[0] not in [example.fact for example in drawn if example is not None]
