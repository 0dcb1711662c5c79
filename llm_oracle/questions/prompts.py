"""All words put to a model, in one place, so that the embedded model is trained on exactly what the search asks.

Wordings are LINK's (section 2.3 of the paper, and its released code); `docs/papers/link.md` says which is which.
Further wordings of questions for values are in `profiles.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom
from hapax.grammar.writing.verbalize import atom_text
from hapax.grammar.writing.words import with_article
from hapax.llm_oracle.protocols import ClaimText, GenerationRequest, ReplyForm

_CRITIC_QUESTION = (
    "For the following question, please answer in a normal life scenario with no special consideration:\n"
    "Question: Is the following statement correct? Please answer yes or no\n"
)
_ANSWER = "\nAnswer:"
_CRITIC_QUESTIONS = (
    "For the following questions, please answer in a normal life scenario with no special consideration:\n"
    "Question: Is each of the following statements correct? Please answer yes or no for each, in a line that begins "
    "with its number\n"
)
CRITIC_PROMPT = f"{_CRITIC_QUESTION}Statement: {{claim}}{_ANSWER}"

NEGATION_PROMPT = (
    "Rewrite the sentence so that it says the opposite. Change as few words as possible and keep {slots} as they are.\n"
    "Sentence: {sentence}\n"
    "Opposite:"
)
TRANSLATION_PROMPT = """Translate a question into a goal over a knowledge base. Reply with a JSON object alone.

Predicates, with the types of their arguments and what they say:
{predicates}

Stored values, which must be spelt exactly so: {values}

The object has these fields:
"goal": literals that must all hold, each {{"predicate": ..., "arguments": [...], "negated": false}}. An argument is a
stored value, a number, or a variable that begins with ?, such as ?Dish. "negated" is true for what must not hold.
"compare": comparisons, each {{"left": "?Year", "sign": ">", "right": "1990"}}, with <, >, <=, >=, = or !=.
"assume": what the question supposes, as literals without variables. Names of new persons may stand there.
"asked": the variables that the question asks for; [] if it is answered by yes or no.
"count": true if the question asks how many.
"order": the variable by which answers are sorted, "-?Year" from the greatest; "" for none.
"limit": the number of answers that are wanted; 0 for all.
Prefer a predicate that says the question as a whole. If the predicates cannot say it, "goal" is [].

Question: {question}
"""
QUESTION_PROMPT = (
    "Rewrite the sentence as a question that can be answered with yes or no. Change as few words as possible and keep "
    "{slots} as they are.\n"
    "Sentence: {sentence}\n"
    "Question:"
)
CORRECTION_PROMPT = "Correct the sentence with minimal edits if it is wrong, otherwise repeat it: {sentence}"
"""The released code's words for turning a predicate's name into a template."""

VALUES_PER_CALL = 50

LONG_TAIL_WORDINGS = (
    "Use less frequent terms of {terms}.",
    "Use terms of {terms} that are less common.",
    "Use terms with lower frequency for {terms}.",
    "Use terms of {terms} that have lower probability in language model distribution.",
    "Use less frequent words of {terms}.",
    "Use words of {terms} that are less common.",
    "Use words with lower frequency for {terms}.",
    "Use less frequent entities of {terms}.",
    "Use entities of {terms} that are less common.",
    "Use entities with lower frequency for {terms}.",
)
"""Wordings 1 to 10 of the paper's table 11; its section 3.1 uses the first."""

# The spellings of Hapax, of the paper and of the released code.
_KNOWLEDGE_FRAME = re.compile(
    r"Give me (?:(?P<count>\d{1,4}) (?:diverse )?values|the correct value) of (?P<variable>\S{1,64}) "
    r"to (?:fill in the sentence|instantiate the rule) ['“](?P<sentence>.*)['”] in the format ['“]1\. value\.['”], "
    r"where (?P=variable) (?:is|can be) an? (?P<data_type>[^.]+)\.",
    re.DOTALL,
)

# Both spellings of the quotation marks, since an instruction may be the paper's or the released code's.
_INSTRUCTION_FRAME = re.compile(
    r"In the following sentence, (?P<types>.+?)\. Find values of .+? to fill in the blank in the sentence "
    r"(?:‘|')(?P<sentence>.*)(?:’|') and make it a grammatical and correct sentence\.(?: (?P<wording>Use [^.]*\.))? "
    r"Give me (?P<count>\d{1,4}) values in the format (?:‘|')1\. [^’']*(?:’|')\.",
    re.DOTALL,
)
_TYPED = re.compile(r"(?P<name>\w{1,64}) is a (?P<data_type>[^,]+)")


@dataclass(frozen=True, slots=True)
class PromptParts:
    """Parts of a knowledge prompt in LINK's words, whose sentence may be an atom. `count` is 1 for a functional one.

    The data type is in lower case, except where the words name it as rules do.
    """

    variable: str
    sentence: str
    data_type: str
    count: int


def read_prompt(prompt: str) -> PromptParts | None:
    """The parts of a prompt for values in any of LINK's wordings; None for any other text."""
    # Not the whole prompt: a sentence with excluded values may follow.
    match = _KNOWLEDGE_FRAME.match(prompt)
    if match is None:
        return None
    return PromptParts(match["variable"], match["sentence"], match["data_type"], int(match["count"] or 1))


def reply_form(request: GenerationRequest) -> ReplyForm | None:
    """The form of the reply that a request asks for; None if its words are unknown and no form is given."""
    if request.form is not None:
        return request.form
    parts = read_prompt(request.prompt)
    return ReplyForm(parts.count, parts.data_type) if parts else None


def knowledge_prompt(variable: str, sentence: str, data_type: str, count: int = VALUES_PER_CALL) -> str:
    """The paper's knowledge prompt (section 2.3), in the spelling of the released code.

    `sentence` contains the slot of the requested variable, such as `[B]`.
    """
    return (
        f"Give me {count} values of {variable} to fill in the sentence '{sentence}' "
        f"in the format '1. value.', where {variable} is {with_article(data_type.lower())}."
    )


def functional_prompt(variable: str, sentence: str, data_type: str) -> str:
    """The released code's prompt for a variable with one right value (its factual node)."""
    return (
        f"Give me the correct value of {variable} to fill in the sentence '{sentence}' "
        f"in the format '1. value.', where {variable} is {with_article(data_type.lower())}."
    )


@dataclass(frozen=True, slots=True)
class InstructionParts:
    """Parts of an instruction: variables with data types, a sentence with slots such as `[B]`, and a request.

    `wording`: number of the long-tail wording in table 11; None: the default instruction, for the head.
    `released`: in the spelling of the released code, not of the paper's table 2; they differ in `A and B` against
    `A, B`, and in quotation marks.
    """

    variables: tuple[tuple[str, str], ...]
    sentence: str
    count: int = VALUES_PER_CALL
    wording: int | None = None
    released: bool = False


def instruction_prompt(parts: InstructionParts) -> str:
    """The instruction to fill in all variables of a rule at once (paper, table 2 and appendix F)."""
    names = [name for name, _ in parts.variables]
    types = ", ".join(f"{name} is a {data_type}" for name, data_type in parts.variables)
    opened, closed = ("'", "'") if parts.released else ("‘", "’")
    listed = (" and " if parts.released else ", ").join(names)
    # The paper appends its wordings to "the original instruction"; the released code puts them after two sentences.
    wording = "" if parts.wording is None else f" {long_tail_wording(parts.wording, names)}"
    return (
        f"In the following sentence, {types}. Find values of {listed} to fill in the blank in the sentence "
        f"{opened}{parts.sentence}{closed} and make it a grammatical and correct sentence.{wording} "
        f"Give me {parts.count} values in the format {opened}1. {', '.join(f'{name}=' for name in names)}{closed}."
    )


def long_tail_wording(number: int, names: Sequence[str]) -> str:
    """A wording of table 11 by its number, from 1: `Use less frequent terms of A and B and Z.`"""
    return LONG_TAIL_WORDINGS[number - 1].format(terms=" and ".join(names))


def read_instruction(prompt: str) -> InstructionParts | None:
    """The parts of an `instruction_prompt`; None for any other text."""
    match = _INSTRUCTION_FRAME.match(prompt)
    if match is None:
        return None
    variables = tuple((typed["name"], typed["data_type"]) for typed in _TYPED.finditer(match["types"]))
    names = [name for name, _ in variables]
    numbers = range(1, len(LONG_TAIL_WORDINGS) + 1)
    wording = next((number for number in numbers if long_tail_wording(number, names) == match["wording"]), None)
    released = prompt[match.start("sentence") - 1] == "'"  # the paper prints a typographic quotation mark
    return InstructionParts(variables, match["sentence"], int(match["count"]), wording, released)


def exclusion_clause(values: tuple[str, ...]) -> str:
    """The released code's sentence for later calls, which names the values accepted so far."""
    return f" Do not generate these values: {', '.join(values)}." if values else ""


def critic_batch_prompt(claims: Sequence[str]) -> str:
    """The question whether each of several claims is correct. What all such questions share comes first."""
    # On one line each, so that a value cannot end the list.
    listed = "\n".join(f"{number}. {' '.join(claim.split())}" for number, claim in enumerate(claims, 1))
    return f"{_CRITIC_QUESTIONS}Statements:\n{listed}{_ANSWER}"


def lists_prompt(count: int, sentences: Sequence[str]) -> str:
    """The request for a list for each of several sentences with a blank. What all such requests share comes first."""
    # On one line each, so that a value cannot end the list.
    listed = "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(sentences, 1))
    wanted = "the one right value" if count == 1 else f"up to {count} values"
    return (
        f"For each of the numbered sentences, give {wanted} of the blank ___ that make it true. Answer with one JSON "
        'object and nothing else, in the form {"lists": [{"number": 1, "values": ["first", "second"]}]}.\n'
        f"Sentences:\n{listed}"
    )


def is_whole_question(claim: str) -> bool:
    """True for a text that is a question to a critic already, as `released_type_question` makes one."""
    return claim.startswith(_CRITIC_QUESTION)


def critic_prompt(claim: str) -> str:
    """The released code's question about a claim. The paper (section 2.3) only says that the answer is yes or no.

    A text that is a whole question already, such as a `released_type_question`, stays as it is.
    """
    return claim if is_whole_question(claim) else CRITIC_PROMPT.format(claim=claim)


def released_type_question(value: str, data_type: str) -> ClaimText:
    """The released code's whole question about a data type: without `Statement:`, capital letter and full stop."""
    return ClaimText(f"{_CRITIC_QUESTION}{value} is a {data_type.lower()}{_ANSWER}", typed=(value, data_type))


def stated_claim(question: str) -> str:
    """The claim in a text for the critic: that of a whole question, and any other text itself."""
    if not question.startswith(_CRITIC_QUESTION):
        return question
    return question.removeprefix(_CRITIC_QUESTION).removeprefix("Statement: ").removesuffix(_ANSWER)


def fact_claim(atom: Atom, library: Library) -> ClaimText:
    """The claim of a fact that the critic judges: `Saffron is an ingredient in paella.`"""
    return ClaimText(sentence(atom_text(atom, library)), atom)


def type_claim(value: str, data_type: str) -> ClaimText:
    """The claim of a data type that the critic judges: `Saffron is an ingredient.`"""
    return ClaimText(sentence(f"{value} is {with_article(data_type.lower())}"), typed=(value, data_type))


def types_prompt(rule: str, variable: str, data_type: str, count: int) -> str:
    """The released code's prompt for expanding a data type; `rule` is the variable's atoms, joined with &.

    The paper's table 5 prints the data type in lower case.
    """
    article = with_article(data_type.lower()).split()[0]  # the article alone: the data type keeps its capital
    return (
        f'In rule "{rule}", {variable} is a variable representing {article} {data_type}. List {count} subcategories '
        f"of {data_type} that {variable} could be that also make the rule true."
    )


def verb_prompt(atom: str, masked: str) -> str:
    """The paper's prompt for the verb that fits an expanded data type (table 5)."""
    return f"{atom} is equal to {masked}. Write the best predicate that could fit in [mask] token."


def conclusion_prompt(statement: str, count: int = 5) -> str:
    """The released code's prompt for the verb of a conclusion. A person picks one of the answers."""
    return (
        f"Fill in the [mask] in '{statement}' so that the statement is factually plausible and grammatically correct. "
        f"Give {count} statements."
    )


def scope_claim(sentence: str) -> str:
    """Our own wording of the paper's property that a model can know every predicate (section 2.2)."""
    return (
        f"Once names or numbers stand for the words in brackets, an encyclopedia or another common text can tell "
        f"whether '{sentence}' is true."
    )


def sense_claim(sentence: str) -> str:
    """Our own wording of the claim that a predicate's verb fits its types."""
    return f"'{sentence}' makes sense as a statement about things of these kinds."


def sentence(words: str) -> str:
    """Write a clause as a sentence: with a capital letter and one full stop."""
    # Not `capitalize`, which would put all other letters in lower case.
    return words[:1].upper() + words[1:].rstrip(".") + "."
