"""The reasoner: parse to events, types and agreement, weighed proofs."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke, run
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases as random_cases

from hapax.api.evaluations import part_of
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.reasoner.acquiring import AcquiredRule, induced, judged, proposed, rules_text
from hapax.evaluation.winograd.reasoner.events import ClauseRelation, EventReader, relation_between
from hapax.evaluation.winograd.reasoner.kinds import Abstraction
from hapax.evaluation.winograd.reasoner.learning import HeldOutAnswer, calibrated, observed
from hapax.evaluation.winograd.reasoner.lexicon import FILE as LEXICON
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses
from hapax.evaluation.winograd.reasoner.parsing import ConlluParser
from hapax.evaluation.winograd.reasoner.reasoning import RULES, AgreementCheck, Reasoner, located, shipped_theory
from hapax.evaluation.winograd.reasoner.reviewing import COLUMNS, read_review
from hapax.evaluation.winograd.reasoner.stand_ins import with_stand_ins
from hapax.evaluation.winograd.reasoner.weighing import FILE, RuleWeights, evidence_priors, shipped_weights
from hapax.evaluation.winograd.reasoner.wordnet import WordNet
from hapax.evaluation.winograd.theories.measure import RuleAnswer, rule_use
from hapax.evaluation.winograd.theories.proving import Lack, Referee
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest, ModelIdentity

PARSES = """
# text = Tom thanked Paul because he saved the cat.
1 Tom Tom _ NNP _ 2 nsubj _ _
2 thanked thank _ VBD _ 0 ROOT _ _
3 Paul Paul _ NNP _ 2 dobj _ _
4 because because _ IN _ 6 mark _ _
5 he he _ PRP _ 6 nsubj _ _
6 saved save _ VBD _ 2 advcl _ _
7 the the _ DT _ 8 det _ _
8 cat cat _ NN _ 6 dobj _ _
9 . . _ . _ 2 punct _ _

# text = Paul was thanked by Tom because he saved the cat.
1 Paul Paul _ NNP _ 3 nsubjpass _ _
2 was be _ VBD _ 3 auxpass _ _
3 thanked thank _ VBN _ 0 ROOT _ _
4 by by _ IN _ 3 agent _ _
5 Tom Tom _ NNP _ 4 pobj _ _
6 because because _ IN _ 8 mark _ _
7 he he _ PRP _ 8 nsubj _ _
8 saved save _ VBD _ 3 advcl _ _
9 the the _ DT _ 10 det _ _
10 cat cat _ NN _ 8 dobj _ _
11 . . _ . _ 3 punct _ _

# text = John beat Mary because she was strong.
1 John John _ NNP _ 2 nsubj _ _
2 beat beat _ VBD _ 0 ROOT _ _
3 Mary Mary _ NNP _ 2 dobj _ _
4 because because _ IN _ 6 mark _ _
5 she she _ PRP _ 6 nsubj _ _
6 was be _ VBD _ 2 advcl _ _
7 strong strong _ JJ _ 6 acomp _ _
8 . . _ . _ 2 punct _ _

# text = Tom punished Paul because he wanted to win.
1 Tom Tom _ NNP _ 2 nsubj _ _
2 punished punish _ VBD _ 0 ROOT _ _
3 Paul Paul _ NNP _ 2 dobj _ _
4 because because _ IN _ 6 mark _ _
5 he he _ PRP _ 6 nsubj _ _
6 wanted want _ VBD _ 2 advcl _ _
7 to to _ TO _ 8 aux _ _
8 win win _ VB _ 6 xcomp _ _
9 . . _ . _ 2 punct _ _

# text = Tom defeated Paul because he was strong.
1 Tom Tom _ NNP _ 2 nsubj _ _
2 defeated defeat _ VBD _ 0 ROOT _ _
3 Paul Paul _ NNP _ 2 dobj _ _
4 because because _ IN _ 6 mark _ _
5 he he _ PRP _ 6 nsubj _ _
6 was be _ VBD _ 2 advcl _ _
7 strong strong _ JJ _ 6 acomp _ _
8 . . _ . _ 2 punct _ _

# text = Paul was defeated by Tom because he was strong.
1 Paul Paul _ NNP _ 3 nsubjpass _ _
2 was be _ VBD _ 3 auxpass _ _
3 defeated defeat _ VBN _ 0 ROOT _ _
4 by by _ IN _ 3 agent _ _
5 Tom Tom _ NNP _ 4 pobj _ _
6 because because _ IN _ 8 mark _ _
7 he he _ PRP _ 8 nsubj _ _
8 was be _ VBD _ 3 advcl _ _
9 strong strong _ JJ _ 8 acomp _ _
10 . . _ . _ 3 punct _ _
"""
ACTIVE, PASSIVE, GENDER, OPEN, VICTORY, DEFEAT = ConlluParser(PARSES).sentences


needs_wordnet = pytest.mark.skipif(not WordNet().available, reason="WordNet is not installed (wordnet-base of Debian)")


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> WordClasses:
    """The shipped lexicon without WordNet, so that every machine reads the same."""
    return WordClasses(wordnet=WordNet(tmp_path_factory.mktemp("empty")))


@pytest.fixture(scope="module")
def reasoner(lexicon: WordClasses) -> Iterator[Reasoner]:
    with Reasoner(ConlluParser(PARSES), lexicon=lexicon) as reasoner:
        yield reasoner


def test_the_theory_passes_check() -> None:
    """`hapax check` finds nothing in the theory, no rule that others imply either."""
    assert [diagnostic.code for diagnostic in check_library(shipped_theory())] == []


def test_the_lexicon_states_what_the_theory_declares(lexicon: WordClasses) -> None:
    """Every class of the lexicon is a predicate of the theory, so that no misspelt class stays unproved in silence."""
    declared = {signature.name for signature in shipped_theory().signatures}
    stated = {*lexicon.denied.values(), *lexicon.first.values(), *lexicon.second.values(), *ClauseRelation}

    assert stated - declared == set()
    assert lexicon.classes - declared == set()


def test_a_word_is_listed_as_one_part_of_speech(lexicon: WordClasses) -> None:
    """An entry with `(verb)` says nothing of the adjective that is spelled alike: who is long wants nothing."""
    assert "wants_something" in lexicon.qualities("long", "verb", negative=False)
    assert "wants_something" not in lexicon.qualities("long", "adj", negative=False)
    assert "is_bad" in lexicon.qualities("mean", "adj", negative=False)
    assert "is_bad" not in lexicon.qualities("mean", "verb", negative=False)


@needs_wordnet
def test_a_common_word_without_a_class_gets_none_from_its_neighbours() -> None:
    """Words that the lexicon lists without a class stay without one, whatever WordNet puts beside them."""
    assert WordClasses().event_classes("go", "go", negative=False) == []


@needs_wordnet
def test_spirits_and_robots_are_beings() -> None:
    """A vampire may be meant by `she`, and a robot by `he` and `it`; a lamppost only by `it`."""
    agreements = {}
    for noun in ("vampire", "robot", "lamppost"):
        words = f"1 The the _ DT _ 2 det _ _\n2 {noun} {noun} _ NN _ 3 nsubj _ _\n3 fell fall _ VBD _ 0 ROOT _ _\n"
        parse = ConlluParser(f"# text = The {noun} fell\n{words}").parse(f"The {noun} fell")
        kind = Abstraction(WordNet(), {}).of(parse, parse[1], range(2))
        agreements[noun] = [kind.clash(pronoun) is None for pronoun in ("she", "he", "it")]

    assert agreements == {"vampire": [True, True, False], "robot": [True, True, True], "lamppost": [False, False, True]}


def test_voice_vanishes() -> None:
    """A passive with its agent has the roles of the active sentence."""
    roles = []
    for sentence in (ACTIVE, PASSIVE):
        parse = ConlluParser(PARSES).parse(sentence)
        event = EventReader(parse).events()[0]
        roles.append({role: parse[index].text for role, index in event.roles.items()})

    assert roles == [{"subject": "Tom", "object": "Paul"}] * 2


def test_the_connective_gives_the_relation() -> None:
    """`because` after the event makes the pronoun's clause its cause."""
    parse = ConlluParser(PARSES).parse(ACTIVE)

    assert relation_between(parse, 1, 4) is ClauseRelation.CAUSE


@pytest.mark.parametrize("sentence", [VICTORY, DEFEAT])
def test_a_referent_is_proved_in_either_voice(reasoner: Reasoner, sentence: str) -> None:
    """Whoever wins by strength is strong; parse, abstraction and proof are told."""
    resolution = reasoner.resolve(sentence, ("Tom", "Paul"))
    lines = "\n".join(resolution.lines(("Tom", "Paul")))

    assert resolution.answer == 0
    assert "parse: defeat (" in lines
    assert "abstraction: Tom is a name of unknown type" in lines
    assert "[by rule victory_shows_strength]" in lines


@pytest.mark.parametrize("sentence", [ACTIVE, PASSIVE])
def test_a_reading_with_little_support_is_no_answer(lexicon: WordClasses, sentence: str) -> None:
    """Below the least probability the proof of the better reading is told, and the reasoner abstains."""
    with Reasoner(ConlluParser(PARSES), lexicon=lexicon, least=0.99) as reasoner:
        resolution = reasoner.resolve(sentence, ("Tom", "Paul"))
    lines = "\n".join(resolution.lines(("Tom", "Paul")))

    assert (resolution.answer, resolution.lack) == (None, Lack.NO_MARGIN)
    assert "if the pronoun is Tom:\n  no proof" in lines
    assert "[by rule good_deed]" in lines
    assert "no answer: neither reading is supported enough" in lines


def test_the_answer_follows_its_role(reasoner: Reasoner) -> None:
    """With the options in the other order the same person is meant."""
    assert reasoner.resolve(VICTORY, ("Paul", "Tom")).answer == 1


def test_agreement_is_a_hard_constraint(reasoner: Reasoner) -> None:
    """Strength explains a victory, but a pronoun that does not agree with the winner cannot mean him."""
    resolution = reasoner.resolve(GENDER, ("John", "Mary"))

    assert resolution.answer == 1
    assert "John is a name of unknown type; does not agree with 'she' in gender" in "\n".join(resolution.steps)


def test_readings_of_near_support_are_no_answer(lexicon: WordClasses) -> None:
    """Either may have wanted to win: both readings are proved, and rules of equal weight decide for neither."""
    theory = load_library([RULES])
    equal = RuleWeights(dict.fromkeys(evidence_priors(theory), 0.5), least=0.75)
    with Reasoner(ConlluParser(PARSES), library=theory, lexicon=lexicon, weights=equal) as reasoner:
        resolution = reasoner.resolve(OPEN, ("Tom", "Paul"))

    assert (resolution.answer, resolution.lack) == (None, Lack.NO_MARGIN)
    assert (resolution.probability or 1) < reasoner.least


def test_an_option_that_is_not_there(reasoner: Reasoner) -> None:
    """An option that the sentence does not name is no answer."""
    assert reasoner.resolve(ACTIVE, ("Tom", "Peter")).lack is Lack.NOT_NAMED


def test_agreement_stops_the_patterns(lexicon: WordClasses) -> None:
    """The patterns' answer is withdrawn where the pronoun does not agree with it."""
    check = AgreementCheck(ConlluParser(PARSES), lexicon)
    with Referee() as blind, Referee(agreement=check) as seeing:
        before = blind.resolve(GENDER, ("John", "Mary"), "she")
        after = seeing.resolve(GENDER, ("John", "Mary"), "she")

    assert before.answer == 0
    assert (after.answer, after.lack, after.detail) == (None, Lack.NO_AGREEMENT, "gender")


def test_faulty_parses_are_refused() -> None:
    """A line without ten columns, and a sentence without a parse, are told with the remedy."""
    with pytest.raises(HapaxError, match="ten columns"):
        ConlluParser("# text = Tom ran.\n1 Tom Tom")
    with pytest.raises(HapaxError, match="no parse of 'Hello'"):
        ConlluParser(PARSES).parse("Hello")


def test_the_reasoner_takes_no_patterns(tmp_path: Path) -> None:
    """Options of the other method are a usage error."""
    result = invoke(
        "evaluate", "winograd", "prove", "x", "-o", "a", "-o", "b", "--method", "reasoner", "--theories", tmp_path
    )

    assert result.exit_code == 2
    assert "does not take --theories" in result.output


def test_the_use_of_rules_is_counted(reasoner: Reasoner) -> None:
    """A rule that proves answers of one family alone is listed with its source and how many of them are right."""
    item = WinogradItem("set:0", "p0", "set", VICTORY, "he", ("Tom", "Paul"), 0, "row 0", "f0")
    answers = [RuleAnswer(item, reasoner.resolve(item.text, item.options, item.pronoun))]

    use = {use.rule: use for use in rule_use(answers)}["victory_shows_strength"]

    assert (use.sources, use.families, use.answers, use.right) == (("set",), 1, 1, 1)


def test_a_name_has_one_gender() -> None:
    """No first name, title or noun of the lexicon is listed for both genders."""
    names = tomllib.loads(LEXICON.read_text(encoding="utf-8"))["names"]
    male, female = (
        {word.strip() for word in names[gender].replace("\n", " ").split(",")} for gender in ("male", "female")
    )

    assert male & female == set()


def test_a_family_is_in_one_part() -> None:
    """Sentences of one family are in the same half, whatever file they come from."""
    items = [WinogradItem(f"{name}:0", name, name, ACTIVE, "he", ("Tom", "Paul"), 1, "row 0", "f0") for name in "ab"]

    assert len({part_of(item) for item in items}) == 1


def test_a_lower_least_probability_answers_more(lexicon: WordClasses, reasoner: Reasoner) -> None:
    """The user chooses coverage against precision: at a least probability of 0.5 the reasoner answers what it leaves
    open at 0.95, and at 0.999 it leaves open what it answers at the default."""
    assert reasoner.least == shipped_weights().least
    assert reasoner.resolve(VICTORY, ("Tom", "Paul")).answer == 0
    with Reasoner(ConlluParser(PARSES), lexicon=lexicon, least=0.95) as shy:
        assert shy.resolve(ACTIVE, ("Tom", "Paul")).answer is None
    with Reasoner(ConlluParser(PARSES), lexicon=lexicon, least=0.5) as bold:
        assert bold.resolve(ACTIVE, ("Tom", "Paul")).answer == 1
    with Reasoner(ConlluParser(PARSES), lexicon=lexicon, least=0.999) as shy:
        assert shy.resolve(VICTORY, ("Tom", "Paul")).answer is None


def test_weights_are_of_rules_that_exist() -> None:
    """Every weight that is shipped is that of a rule of the theory that speaks for a reading."""
    assert set(shipped_weights().weights) <= set(evidence_priors(shipped_theory()))


class RuleModel:
    """Proposes the same lines for every sentence."""

    identity = ModelIdentity("rules", "1")

    def __init__(self, reply: str) -> None:
        self._reply = reply

    def generate(self, requests: Sequence[GenerationRequest], _: GenerationParameters) -> list[Generation]:
        return [Generation(self._reply)] * len(requests)


def _labelled(count: int, answer: int = 1, source: str = "set") -> list[WinogradItem]:
    pairs = range(count)
    return [
        WinogradItem(
            f"{source}:{n}", f"p{n}", source, ACTIVE, "he", ("Tom", "Paul"), answer, f"row {n}", f"f{source}{n}"
        )
        for n in pairs
    ]


@pytest.fixture
def unlearned(lexicon: WordClasses) -> Iterator[Reasoner]:
    """A reasoner with a theory that proves nothing, so that all has to be acquired."""
    bare = replace(shipped_theory(), rules=())
    with Reasoner(ConlluParser(PARSES), library=bare, lexicon=lexicon, weights=RuleWeights({}, 0.5)) as reasoner:
        yield reasoner


RULE_NAMES = tuple("abcdef")
SOME_RULES = st.lists(st.sampled_from(RULE_NAMES), unique=True)


@given(
    st.dictionaries(st.sampled_from(RULE_NAMES), st.floats(-3, 3), min_size=6),
    SOME_RULES,
    SOME_RULES,
    st.booleans(),
)
@settings(max_examples=random_cases(100))
def test_signs_of_sureness_do_not_depend_on_the_order_of_the_readings(
    weights: dict[str, float], first: list[str], second: list[str], is_earlier: bool
) -> None:
    """Exchanged readings are as sure, a rule for both changes nothing, and the margin is that of the supports."""
    known = RuleWeights(weights, 0.5, {"margin": 1.0, "opposition": -0.5, "is_earlier": -1.0})
    signs = known.signs((first, second), is_earlier)

    assert known.signs((second, first), is_earlier) == signs
    assert known.signs(([*first, "both"], [*second, "both"]), is_earlier) == signs
    assert signs["margin"] == pytest.approx(abs(known.support(first) - known.support(second)), abs=1e-9)


def test_opposition_costs_what_it_cost_in_held_out_answers() -> None:
    """Where contradicted answers are wrong more often, as great a margin makes them less sure than others."""
    answers = []
    for number, item in enumerate(_labelled(40)):
        is_opposed = number % 2 == 0
        signs = {"constant": 1.0, "margin": 1.5, "opposition": 1.0 * is_opposed, "is_earlier": 0.0}
        # One in ten of the unopposed and half of the opposed are wrong.
        is_right = number % 4 == 0 if is_opposed else number % 20 != 1
        answers.append(HeldOutAnswer(item, 0.8, is_right, signs))

    sureness = {answer.signs["opposition"]: answer.sureness for answer in calibrated(answers)}

    assert sureness[1.0] < 0.65 < sureness[0.0]


SINGLE_FAMILY: dict[str, str] = {}
"""Rules that speak in fewer than two families of the development sentences, each with the reason why it is kept."""


def test_no_shipped_rule_serves_one_family_only() -> None:
    """`learn` counts the families of the development sentences in which a rule speaks: two at least, or a reason."""
    families = tomllib.loads(FILE.read_text(encoding="utf-8"))["families"]
    few = {name for name in evidence_priors(shipped_theory()) if families.get(name, 0) < 2}

    assert few == set(SINGLE_FAMILY)


def test_a_rule_of_one_family_is_not_taken(unlearned: Reasoner) -> None:
    """A rule that is right in many sentences of one schema only is dropped with the reason."""
    items = [replace(item, family="one schema") for item in _labelled(6)]
    rule = AcquiredRule("rewards", False, "is_given_as_reason", "acts_well")

    (record,) = judged([(rule, "model")], observed(items, unlearned))

    assert (record.support, record.verdict) == (6, "right in one family of schemas only")


def test_rules_are_induced_with_their_support(unlearned: Reasoner) -> None:
    """Who is thanked for a good deed did it: the rule holds in all sentences, and is taken with support and example."""
    observations = observed(_labelled(6), unlearned)
    records = judged([(rule, "induction") for rule in induced(observations)], observations)

    text = rules_text(records)
    assert "rewards(Object A, Object P) & is_given_as_reason(Object P) & acts_well(Object P)" in text
    assert "# 6 right, 0 wrong, proposed by induction: Tom thanked Paul because he saved the cat." in text


def test_a_rule_that_fails_in_one_source_is_dropped(unlearned: Reasoner) -> None:
    """A rule that is right in one set and wrong in another is not taken, whatever its share over all."""
    observations = observed([*_labelled(30), *_labelled(3, answer=0, source="other")], unlearned)
    rule = AcquiredRule("rewards", False, "is_given_as_reason", "acts_well")

    (record,) = judged([(rule, "model")], observations)

    assert (record.support, record.exceptions, record.verdict) == (30, 3, "fails in other")


def test_a_model_proposes_rules(unlearned: Reasoner) -> None:
    """Lines of a reply that are no rule about the pronoun are refused; the others are judged like induced ones."""
    reply = "rewards(Object A, Object P) & is_given_as_reason(Object P) & acts_well(Object P)\nPaul is good."
    observations = observed(_labelled(6), unlearned)
    rules, refused = proposed(RuleModel(reply), observations, shipped_theory(), GenerationParameters())

    assert rules == [AcquiredRule("rewards", False, "is_given_as_reason", "acts_well")]
    assert refused[0] == "Paul is good."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule,verdict\nacquired_a,no\n", "the columns are not rule"),
        (",".join(COLUMNS) + "\nacquired_a,words,6,0,Tom ran.,perhaps\n", "row 2 has no verdict yes or no"),
        (",".join(COLUMNS) + "\nacquired_a,no\n", "row 2 has no verdict yes or no"),
    ],
)
def test_a_faulty_review_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """A sheet without its columns, and a verdict that is neither yes nor no, are told with their place."""
    sheet = tmp_path / "review.csv"
    sheet.write_text(text, encoding="utf-8")

    with pytest.raises(HapaxError, match=message):
        read_review(sheet)


def test_a_review_is_read_as_spreadsheets_write_it(tmp_path: Path) -> None:
    """A byte order mark, semicolons, capitals and empty verdicts do not matter."""
    sheet = tmp_path / "review.csv"
    rows = [";".join(COLUMNS), "acquired_a;words;6;0;Tom ran.;No", "acquired_b;words;6;0;Tom ran.;"]
    sheet.write_text("\n".join(rows), encoding="utf-8-sig")

    review = read_review(sheet)

    assert review.refused == {"acquired_a"}
    assert set(review.rows) == {"acquired_a"}


# --- with spaCy -------------------------------------------------------------------------------------------------------


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    ("sentence", "options", "refuted"),
    [
        ("I used the mop to wash the floor, and then I put it in the closet.", ("the mop", "the floor"), 1),
        ("The police arrested the protesters because they were trying to stop the pipeline.", ("The police", "the protesters"), 0),
        ("The cyclist hit the lamppost. He was taken to the hospital.", ("The cyclist", "the lamppost"), 1),
        ("John beat Mary at chess because she was strong", ("John", "Mary"), 0),
        # Collisions: what is hit is no likelier to break, and a thing bears no injuries.
        ("The ship hit the iceberg, and it sank within two hours.", ("The ship", "the iceberg"), 1),
        ("The skier crashed into the fence. She broke her leg.", ("The skier", "the fence"), 1),
        # No kind of person in WordNet, and the title of a book: people all the same.
        ("The cyclist blamed the motorist because he had opened the door.", ("The cyclist", "the motorist"), 0),
        ("The judges disqualified the runners because they had cheated.", ("The judges", "the runners"), 0),
        ("The police released the demonstrators because they had no evidence.", ("The police", "the demonstrators"), 1),
    ],
)  # fmt: skip
def test_falsehoods_are_not_proved(sentence: str, options: tuple[str, str], refuted: int) -> None:
    """Sentences that patterns get wrong are answered rightly or not at all."""
    with Reasoner() as reasoner:
        assert reasoner.resolve(sentence, options).answer != refuted


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        (
            ("the wolf", "the rabbit"),
            (
                "The wolf ate the rabbit because it was hungry.",
                "The rabbit was eaten by the wolf because it was hungry.",
                "The wolf greedily eats the rabbit, because it is hungry.",
                "Because it was hungry, the wolf ate the rabbit.",
            ),
        ),
        (
            ("the firefighter", "the mayor"),
            (
                "The mayor thanked the firefighter because she had rescued the children.",
                "The firefighter was thanked by the mayor because she had rescued the children.",
                "The mayor gladly thanks the firefighter, because she has rescued the children.",
                "Because she had rescued the children, the mayor thanked the firefighter.",
            ),
        ),
    ],
)
def test_rewordings_keep_the_answer(options: tuple[str, str], sentences: tuple[str, ...]) -> None:
    """Voice, tense, adverbs and the order of clauses do not change what is proved."""
    with Reasoner() as reasoner:
        assert [reasoner.resolve(sentence, options).answer for sentence in sentences] == [0] * len(sentences)


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    ("sentence", "options", "refuted"),
    [
        # Who tries to do it is stopped for it; who catches nobody has not got away; who had none has it not.
        ("The guard stopped the visitor because he tried to sneak in.", ("the guard", "the visitor"), 0),
        ("The police chased the burglars, but they did not catch them.", ("the police", "the burglars"), 1),
        ("Nina gave Olga a coat because she had none.", ("Nina", "Olga"), 0),
        ("The sheep followed the goat because it was lost.", ("the sheep", "the goat"), 1),
        # The preposition of a passive stays with the verb.
        ("Tom was laughed at by Sam because he was clumsy.", ("Tom", "Sam"), 1),
        ("Nina was looked after by Olga because she was ill.", ("Nina", "Olga"), 1),
        # Orders are not owned.
        ("The soldiers stopped the refugees because they had orders.", ("The soldiers", "the refugees"), 1),
    ],
)
def test_what_is_said_is_read_by_its_form(sentence: str, options: tuple[str, str], refuted: int) -> None:
    """Attempts, the active voice of a participle, denial by `none` and nouns of one form mislead no proof."""
    with Reasoner() as reasoner:
        assert reasoner.resolve(sentence, options).answer != refuted


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    ("sentence", "options", "stated"),
    [
        ("Walmart offers discounts to customers because they want them to return.", ("Walmart", "customers"),
         "the pronoun wants something of the other one"),
        ("Tom hates Paul because he had photocopied the file.", ("Tom", "Paul"), "the pronoun has acted"),
        ("Tom fired Paul because he never photocopied the file.", ("Tom", "Paul"), "the pronoun leaves it undone"),
        ("Lions fear hyenas because they trouble them.", ("Lions", "hyenas"), "the pronoun does something to the other one"),
        ("KFC sells better than Popeyes since they use bad oil.", ("KFC", "Popeyes"), "KFC surpasses Popeyes"),
        ("I used the axe to cut the tree because it was sharp.", ("the axe", "the tree"), "axe damages tree"),
        ("Tom forgave Paul because he was sorry.", ("Tom", "Paul"), "Tom helps Paul"),
    ],
)  # fmt: skip
def test_clauses_state_something_by_their_form(sentence: str, options: tuple[str, str], stated: str) -> None:
    """Wishes about the other one, deeds, omissions, comparisons and tools are read, whatever the words."""
    with Reasoner() as reasoner:
        judgement = reasoner.resolve(sentence, options).judgement

    assert judgement is not None
    assert stated in judgement.assumed


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    ("sentence", "options", "stated"),
    [
        ("Tom ran away from Paul because he was loud.", ("Tom", "Paul"), "Tom fears Paul"),
        ("Tom was attracted to Paul because he was kind.", ("Tom", "Paul"), "Tom likes Paul"),
        ("The sheriff put Paul in jail because he was cruel.", ("The sheriff", "Paul"), "sheriff sanctions Paul"),
        ("Tom fired Paul because he was accused of theft.", ("Tom", "Paul"), "the pronoun is caught"),
        ("Tom pitied Paul because he had no home.", ("Tom", "Paul"), "the pronoun is in need"),
        ("Tom praised Paul because he never complained.", ("Tom", "Paul"), "the pronoun is good"),
        ("Tom likes Paul because he is good-natured.", ("Tom", "Paul"), "the pronoun is good"),
        ("Tom could not lift Paul because he was too weak.", ("Tom", "Paul"), "the pronoun is unable"),
        ("Tom asked Paul if he could borrow the car.", ("Tom", "Paul"), "what is said of the pronoun is told or asked"),
    ],
)  # fmt: skip
def test_phrases_state_what_they_say_as_a_whole(sentence: str, options: tuple[str, str], stated: str) -> None:
    """Adverbs of direction, participles, results, denials, words with hyphens and questions are read with their verbs."""
    with Reasoner() as reasoner:
        judgement = reasoner.resolve(sentence, options).judgement

    assert judgement is not None
    assert stated in judgement.assumed


@pytest.mark.english
@needs_wordnet
def test_the_size_of_an_abstraction_is_not_that_of_its_owner() -> None:
    """Who is a big help is not big, but a big man is."""
    with Reasoner() as reasoner:
        said = [
            reasoner.resolve(f"Tom thanked Paul because he was {what}.", ("Tom", "Paul")).judgement
            for what in ("a big help", "a big man")
        ]

    assert [judgement is not None and "the pronoun is big" in judgement.assumed for judgement in said] == [False, True]


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    ("sentence", "is_fault"),
    [
        ("The red car beat the blue car because it makes less noise.", False),
        ("The red car beat the blue car because it makes more noise.", True),
    ],
)
def test_little_of_a_bad_thing_is_no_fault(sentence: str, is_fault: bool) -> None:
    """`less` before an object denies what the object says of its subject."""
    with Reasoner() as reasoner:
        judgement = reasoner.resolve(sentence, ("The red car", "the blue car")).judgement

    assert judgement is not None
    assert ("the pronoun acts badly" in judgement.assumed) is is_fault


@needs_wordnet
def test_an_unlisted_word_has_the_classes_of_its_neighbours_in_wordnet(tmp_path: Path) -> None:
    """A word takes a class that most of the listed words near it have; words that disagree give it none."""
    sections = LEXICON.read_text(encoding="utf-8")
    start, end = sections.index("[events]"), sections.index("[reversed]")
    few = tmp_path / "lexicon.toml"
    events = '[events]\nhelps = "aid, assist, save"\nharms = "hurt, injure"\ngives = "deliver"\n\n'
    few.write_text(sections[:start] + events + sections[end:], encoding="utf-8")
    classes = WordClasses(few)

    # "help" shares its first sense with both listed words, "wound" with "injure"; "rescue" is near two classes.
    assert classes.event_classes("help", "help", False) == [("helps", False)]
    assert classes.event_classes("wound", "wound", False) == [("harms", False)]
    assert classes.event_classes("rescue", "rescue", False) == []
    assert classes.event_classes("sing", "sing", False) == []


@pytest.mark.english
@needs_wordnet
@pytest.mark.parametrize(
    "phrases",
    [("satisfied person", "hungry person"), ("Recipient of a prize", "Philanthropist"), ("child", "parent")],
)
def test_phrases_that_mislead_the_parser_are_parsed_again_as_plain_nouns(phrases: tuple[str, str]) -> None:
    """A sentence is read alike whichever of its entities stands first, where the parser takes one for a verb."""
    with Reasoner() as reasoner:
        for first, second in (phrases, phrases[::-1]):
            given = f"{first} passed the plate to {second} because he was hungry."
            paid = f"{first} paid for {second}'s education. He is very grateful."
            assert [reasoner.resolve(text, (first, second)).answer for text in (given, paid)] == [1, 1]


GIFTS = (
    ("Jacob gave William money because he needed some.", "he", ("Jacob", "William")),
    ("Carl lent Peter a coat because he needed it.", "he", ("Carl", "Peter")),
    ("Tom handed Fred a rope because he needed it.", "he", ("Tom", "Fred")),
    ("Anna gave Mary water because she was thirsty.", "she", ("Anna", "Mary")),
    ("Nick gave Sam a map because he needed it.", "he", ("Nick", "Sam")),
    ("Ruth gave Clara a blanket because she needed one.", "she", ("Ruth", "Clara")),
)
IN_NEED = "acquired_gives_second_is_given_as_reason_is_in_need"
HAS_A_VIEW = "acquired_gives_second_is_given_as_reason_has_a_view"


def test_stand_ins_have_the_entities_form_and_order_of_mention() -> None:
    """A name stands for a bare entity and a noun behind a determiner, by order of mention; the pronoun's place moves."""
    text = "John beat Mary because she was strong."
    schema = located(ConlluParser(PARSES).parse(text), ("Mary", "John"), "she", None)
    assert schema is not None
    simple = with_stand_ins(text, schema)
    assert simple is not None
    assert simple.options == ("John", "Mary")
    assert simple.text == "Mary beat John because she was strong."
    assert simple.text[simple.pronoun_start :].startswith("she")


def _rows(sheet: Path) -> dict[str, list[str]]:
    with sheet.open(encoding="utf-8", newline="") as stream:
        return {row[0]: row for row in csv.reader(stream)}


@pytest.mark.english
@needs_wordnet
def test_a_lesson_is_learned_reviewed_and_learned_again(tmp_path: Path) -> None:
    """`learn` writes weights, rules and a sheet; a rule to which a person answers no on the sheet is not taken again."""
    labelled, lesson = tmp_path / "labelled.jsonl", tmp_path / "lesson"
    lines = [
        json.dumps({"text": text, "pronoun": pronoun, "options": options, "label": 1, "pair": f"p{number}"})
        for number, (text, pronoun, options) in enumerate(GIFTS)
    ]
    labelled.write_text("\n".join(lines), encoding="utf-8")

    printed = run("evaluate", "winograd", "learn", labelled, "--out", lesson).output

    assert "6 sentences" in printed
    rows = _rows(lesson / "review.csv")
    assert next(iter(rows)) == "rule"
    assert rows[IN_NEED] == [
        IN_NEED,
        "the other one gives something to it; what is said of it is given as the reason; it is in need",
        "6",
        "0",
        GIFTS[0][0],
        "",
    ]
    weights = tomllib.loads((lesson / "weights.toml").read_text(encoding="utf-8"))
    assert weights["least"] == shipped_weights().least
    assert weights["weights"]["need_is_met"] > 0
    names = {rule.name for rule in load_library([RULES, lesson / "acquired.rules"]).rules}
    assert {IN_NEED, HAS_A_VIEW} <= names

    rows[HAS_A_VIEW][-1], rows[IN_NEED][-1] = "no", "yes"
    with (lesson / "review.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows.values())
    printed = run("evaluate", "winograd", "learn", labelled, "--out", lesson).output

    assert "1 rule left out by a person's verdict no." in printed
    text = (lesson / "acquired.rules").read_text(encoding="utf-8")
    assert (IN_NEED in text, HAS_A_VIEW in text) == (True, False)
    assert HAS_A_VIEW not in (lesson / "weights.toml").read_text(encoding="utf-8")
    again = _rows(lesson / "review.csv")
    assert (again[HAS_A_VIEW][-1], again[IN_NEED][-1]) == ("no", "yes")
