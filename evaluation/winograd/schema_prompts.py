"""The prompts of the CR-WSC paper and its notebooks: of the six methods, and of analogies for new schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hapax.evaluation.winograd.schema_files import MACHINE, Pair
from hapax.grammar.errors import HapaxError
from hapax.grammar.yaml_files import read_yaml


class PromptMethod(StrEnum):
    """Method of asking. `aot-staged` abstracts, answers and maps back in separate steps; `own` is a user's prompt.

    The methods that begin with `likelihood` score texts instead of reading a reply.
    """

    ZERO_SHOT = "zero-shot"
    ONE_SHOT = "one-shot"
    WINOWHY = "winowhy"
    ZS_COT = "zs-cot"
    COT = "cot"
    AOT = "aot"
    AOT_STAGED = "aot-staged"
    OWN = "own"
    LIKELIHOOD = "likelihood"
    LIKELIHOOD_PARTIAL = "likelihood-partial"
    LIKELIHOOD_PMI = "likelihood-pmi"
    LIKELIHOOD_CHOICE = "likelihood-choice"


class PromptWording(StrEnum):
    """Wording of the prompts: as the paper prints them, or as its released notebooks send them."""

    PAPER = "paper"
    NOTEBOOK = "notebook"


PAPER = read_yaml(Path(__file__).with_name("paper.yaml").read_text("utf-8"))
"""The prompts of paper and release, and the paper's tables."""

ANALOGIES: Sequence[str] = PAPER["analogies"]
"""The worked examples of the paper's prompts 1 to 5."""

SCORED = (
    PromptMethod.LIKELIHOOD,
    PromptMethod.LIKELIHOOD_PARTIAL,
    PromptMethod.LIKELIHOOD_PMI,
    PromptMethod.LIKELIHOOD_CHOICE,
)
"""Methods that score texts instead of prompting."""

PROMPTED = tuple(
    method for method in PromptMethod if method not in (PromptMethod.AOT_STAGED, PromptMethod.OWN, *SCORED)
)
"""The six single-prompt methods of the paper's table 2."""


def question_block(pair: Pair) -> str:
    """The end of every prompt: the two sentences with their questions, and the options of the first."""
    lines = ""
    for number, item in enumerate(pair, start=1):
        word = item.pronoun.lower()
        verb = "do" if word in ("they", "them") else "does"
        lines += f'{number}. {item.text} What {verb} "{word}" refer to?\n'
    # The second sentence may have options of its own; the prompt has one list for both.
    options = pair[0].options
    return f'{PAPER["header"]}\n{lines}Select from ["{options[0]}", "{options[1]}"]\n'


def prompt(pair: Pair, method: PromptMethod, variant: PromptWording, own: str = "") -> str:
    """The prompt of a single-prompt method. `own`: a user's text to put before the question."""
    block = question_block(pair)
    notebook = variant is PromptWording.NOTEBOOK
    form = PAPER["format_line"] if notebook else ""
    # The notebook for CR-WSC-M differs from that for CR-WSC-H in the WinoWhy and in the AoT prompt.
    machine = pair[0].source == MACHINE
    if method is PromptMethod.ZERO_SHOT:
        return f"{block}{form}A:"
    # Only zero-shot has no blank after "A:"; the notebooks' prompts are kept to the byte.
    if method is PromptMethod.ZS_COT:
        return f"{block}{form}{PAPER['step_by_step'][variant]}A: "
    # A user's text takes the place of the worked example; the question stays the paper's.
    exemplar = own if method is PromptMethod.OWN else PAPER["examples"][method][variant]
    if method is PromptMethod.WINOWHY and notebook:
        return f"{exemplar}\n\n{block}{'A:' if machine else ''}"
    follow = PAPER["follow"] if method is PromptMethod.AOT and notebook and machine else ""
    return f"{exemplar}\n\n{follow}{block}A: "


def abstraction_prompt(pair: Pair) -> str:
    """Stage 1: ask for concepts of the two entities."""
    return f"{PAPER['first_stage']}\n\n{question_block(pair)}Conceptualization: "


def abstract_prompt(pair: Pair) -> str:
    """Stage 2: ask about a pair whose options are concepts."""
    return f"{PAPER['second_stage']}\n\n{question_block(pair)}"


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A user's prompt, for example for AoT2 of table 5, which neither the paper nor the release contains."""

    name: str
    text: str


def read_own(name: str, path: Path) -> OwnPrompt:
    """Read a prompt from a file, to be put before each question. Raises HapaxError."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HapaxError(f"{path} cannot be read: {error}. Give a text file in UTF-8.") from error
    if not text:
        raise HapaxError(f"{path} is empty. Write the text that comes before each question.")
    # Otherwise its answers would be stored, and counted, as those of the built-in method.
    if name in set(PromptMethod):
        raise HapaxError(f"{name!r} is the name of a built-in method. Give the prompt another name.")
    return OwnPrompt(name, text)


def paper_prompt(pair: Pair, number: int) -> str:
    """The paper's prompt 1 to 5 for a source pair."""
    first, second = pair
    # Options are in capitals where they begin a sentence; the prompt names them in the middle of one.
    a, b = (option[0].lower() + option[1:] if option.startswith("The ") else option for option in first.options)
    task: str = PAPER["analogy_task"].format(one=first.text, two=second.text, a=a, b=b)
    return f"{ANALOGIES[number - 1]}\n\n{task}"


def released_prompt(pair: Pair) -> str:
    """The prompt of the released transcripts, byte for byte."""
    first, second = pair
    a, b = first.options
    task: str = PAPER["released_task"].format(one=first.text, two=second.text, a=a, b=b)
    return f"{PAPER['released_example']}\n\n\n{task}"
