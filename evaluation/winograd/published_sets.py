"""Formats in which other sets of pronoun problems are published: DPR, PDP, WinoGrande, XWinograd, KnowRef, WinoGender,
WinoBias and the perturbed Winograd schemas. Each is turned into rows of the plain format.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from xml.etree import ElementTree as ET

from hapax.evaluation.winograd.data import BLANK, PRONOUN_FORMS, UnreadableItemsError

PlainRow = Mapping[str, Any]
"""Fields of the plain format: text, pronoun, options, label, and where known pronoun_loc, pair, family, base,
rewording, `part` of the file (a language), and `variant`, which tells rows of one record apart."""

_BRACKETED = re.compile(r"\[([^\[\]]+)\]")
_ORDINARY = ("the", "a", "an")


@dataclass(frozen=True, slots=True)
class SetFormat:
    """A format. `fits`: if a text may be of it; `records`: its records, in the order of the file; `rows`: the plain
    rows of a record, which raises UnreadableItemsError for a faulty one.
    """

    name: str
    fits: Callable[[str], bool]
    records: Callable[[str], Sequence[Any]]
    rows: Callable[[Any], list[PlainRow]]


def format_of(text: str) -> SetFormat | None:
    """The published format that a file's text has; None if it is a table or JSON in the plain format."""
    return next((published for published in FORMATS if published.fits(text)), None)


def _stated(sentence: tuple[str, int], pronoun: str, options: Sequence[str], label: int, **more: Any) -> dict[str, Any]:
    """A plain row. `sentence`: the text and where its pronoun begins."""
    text, start = sentence
    before = text[:start]
    # The reader joins words by single blanks, which moves what is behind them.
    place = len(" ".join(before.split())) + (before[-1:].isspace() and bool(before.strip()))
    row = {"text": " ".join(text.split()), "pronoun": pronoun, "pronoun_loc": place}
    return {**row, "options": list(options), "label": label, **more}


# Rahman and Ng's DPR: a sentence, its pronoun, two candidates and the answer on four lines, and an empty line.


def _fits_dpr(text: str) -> bool:
    first = [line.strip() for line in text.lstrip("\ufeff").strip().split("\n")[:4]]
    return len(first) == 4 and "," in first[2] and first[1].casefold() in _PRONOUNS and "\t" not in first[0]


def _dpr_records(text: str) -> list[list[str]]:
    blocks = re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").strip())
    records = []
    for block in blocks:
        records.append([line.strip() for line in block.strip().split("\n")])
    return records


def _dpr_rows(block: list[str]) -> list[PlainRow]:
    if len(block) != 4:
        raise UnreadableItemsError(
            f"the block has {len(block)} lines. Give four: sentence, pronoun, candidates and answer."
        )
    text, pronoun, candidates, answer = block
    options = [candidate.strip() for candidate in candidates.split(",")]
    labels = [number for number, option in enumerate(options) if option.casefold() == answer.casefold()]
    if len(options) != 2 or len(labels) != 1:
        raise UnreadableItemsError(
            f"the answer {answer!r} is not one of the two candidates {candidates!r}. Repeat a candidate."
        )
    # "If the target pronoun appears more than once in the sentence, its first occurrence is the one to be resolved."
    return [_located(text, pronoun, options, labels[0])]


def _located(text: str, pronoun: str, options: Sequence[str], label: int) -> PlainRow:
    """A row whose pronoun is the first occurrence of the word."""
    place = re.search(rf"(?<!\w){re.escape(pronoun)}(?!\w)", text, re.IGNORECASE)
    if place is None:
        raise UnreadableItemsError(f"the pronoun {pronoun!r} is not in the sentence. Write a word of the sentence.")
    return _stated((text, place.start()), pronoun, options, label)


# The Commonsense Reasoning pages' XML of PDP and the Winograd Schema Challenge.


def _fits_collection(text: str) -> bool:
    return text.lstrip("\ufeff \n\r\t").startswith("<") and "<schema" in text and "<correctAnswer" in text


def _collection_records(text: str) -> list[ET.Element]:
    # Entities are refused: they could be made to fill the memory or to name files.
    if "<!ENTITY" in text:
        raise UnreadableItemsError("the XML declares entities. Remove the declarations.")
    try:
        return ET.fromstring(text.lstrip("\ufeff \n\r\t")).findall(".//schema")  # noqa: S314  # entities are refused
    except ET.ParseError as error:
        raise UnreadableItemsError(f"the XML is not well-formed: {error}.") from error


def _collection_rows(schema: ET.Element) -> list[PlainRow]:
    before, pronoun, behind = (_words_of(schema, f"text/{part}") for part in ("txt1", "pron", "txt2"))
    answers = [" ".join((answer.text or "").split()) for answer in schema.findall("answers/answer")]
    correct = _words_of(schema, "correctAnswer").strip(" .").upper()
    if len(answers) != 2:
        raise UnreadableItemsError(f"the problem has {len(answers)} answers. Only those with two can be used.")
    if correct not in ("A", "B"):
        raise UnreadableItemsError(f"the correct answer is {correct!r}. Write A or B.")
    # No blank before punctuation.
    joint = "" if behind[:1] in (",", ".", ";", ":", "'", "!", "?") else " "
    # Behind the blank that joins the two parts.
    start = len(before) + 1 if before else 0
    text = f"{before} {pronoun}{joint}{behind}".strip()
    return [_stated((text, start), pronoun, answers, "AB".index(correct))]


def _words_of(schema: ET.Element, path: str) -> str:
    return " ".join((schema.findtext(path) or "").split())


# WinoGrande and XWinograd: a blank in the sentence, two options and the number of the right one.


def _fits_blanks(text: str) -> bool:
    first = _first_object(text)
    return first is not None and {"sentence", "option1", "option2"} <= set(first)


def _first_object(text: str) -> Mapping[str, Any] | None:
    line = next((line for line in text.split("\n") if line.strip(" \ufeff\r\t")), "")
    try:
        first = json.loads(line.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return first if isinstance(first, dict) else None


def _json_lines(text: str) -> list[str]:
    return [line for line in text.lstrip("\ufeff").split("\n") if line.strip()]


def _blank_rows(line: str) -> list[PlainRow]:
    row = _json_object(line)
    sentence, answer = str(row.get("sentence") or ""), str(row.get("answer") or "").strip()
    if sentence.count(BLANK) != 1:
        raise UnreadableItemsError(f"the sentence has {sentence.count(BLANK)} blanks. Write one {BLANK}.")
    if answer not in ("1", "2"):
        raise UnreadableItemsError(
            f"the answer is {answer!r}. Only problems whose answer, 1 or 2, is given can be used."
        )
    options = [str(row.get(name) or "") for name in ("option1", "option2")]
    more = {}
    if identity := str(row.get("qID") or ""):
        # The two sentences of a pair have the same name, with -1 and -2.
        more["pair"] = re.sub(r"-[12]$", "", identity)
    return [_stated((sentence, sentence.index(BLANK)), BLANK, options, int(answer) - 1, **more)]


def _json_object(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableItemsError(f"the line is not valid JSON: {error}. Put one object on each line.") from error
    if not isinstance(row, dict):
        raise UnreadableItemsError("the line is not a JSON object. Put one object on each line.")
    return row


# XWinograd's own table: language, source, original, sentence, words, pronoun with its words' places, solutions.


def _fits_languages(text: str) -> bool:
    cells = text.lstrip("\ufeff").split("\n", 1)[0].split("\t")
    return len(cells) == 7 and len(cells[0]) == 2 and cells[4].startswith("[") and cells[6].strip().startswith("[")


def _languages_rows(line: str) -> list[PlainRow]:
    cells = line.rstrip("\r").split("\t")
    try:
        language, _, _, sentence, words, pronoun, solutions = cells
        listed, (form, (first, _), _), answers = (json.loads(cell) for cell in (words, pronoun, solutions))
        options, right = [answer[0] for answer in answers], [bool(answer[-1]) for answer in answers]
        start = _place_of_word(sentence, listed, first)
    except (ValueError, TypeError, IndexError, KeyError, RecursionError) as error:
        raise UnreadableItemsError(
            f"the line is not one of XWinograd's: {error}. Give the file as published."
        ) from error
    if len(options) != 2 or right.count(True) != 1:
        raise UnreadableItemsError("the line does not have two solutions, one of them right.")
    return [_stated((sentence, start), form, options, right.index(True), part=language)]


def _place_of_word(sentence: str, words: Sequence[str], number: int) -> int:
    """Where a word of the sentence begins. Raises ValueError if the words are not those of the sentence."""
    place = 0
    for word in words[:number]:
        # Word by word, so that an earlier equal word is not taken for this one.
        place = sentence.index(word, place) + len(word)
    return sentence.index(words[number], place)


# KnowRef: the pronoun in brackets, two candidates and the name of the right one.


def _fits_knowref(text: str) -> bool:
    # The first entries tell; a file may be large.
    return '"sentence_with_pronoun"' in text[:20_000] and '"correct_candidate"' in text[:20_000]


def _knowref_records(text: str) -> list[Any]:
    text = text.lstrip("\ufeff")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return _json_lines(text)
    if isinstance(whole, dict) and "sentence_with_pronoun" not in whole:
        return list(whole.values())
    return whole if isinstance(whole, list) else [whole]


def _knowref_rows(record: Any) -> list[PlainRow]:
    row = _json_object(record) if isinstance(record, str) else record
    if not isinstance(row, dict):
        raise UnreadableItemsError("the entry is not a JSON object. Give the file as published.")
    text, places = _unbracketed(str(row.get("sentence_with_pronoun") or ""))
    options = [str(row.get(name) or "") for name in ("candidate0", "candidate1")]
    correct = str(row.get("correct_candidate"))
    # The right candidate is given by its field or by its name.
    named = [number for number, option in enumerate(options) if correct in (f"candidate{number}", str(number), option)]
    if len(places) != 1 or len(named) != 1:
        raise UnreadableItemsError("the entry does not have exactly one pronoun in brackets and one right candidate.")
    start, pronoun = places[0]
    return [_stated((text, start), pronoun, options, named[0])]


def _unbracketed(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The text without its brackets, and what stood in them with the places in that text."""
    places: list[tuple[int, str]] = []
    plain, end = "", 0
    for match in _BRACKETED.finditer(text):
        plain += text[end : match.start()]
        places.append((len(plain), match.group(1)))
        plain += match.group(1)
        end = match.end()
    return plain + text[end:], places


# WinoGender: all sentences, with what they hold in their names, or the templates that they were made from.

_GENDERS = {"male": PRONOUN_FORMS[0], "female": PRONOUN_FORMS[1], "neutral": PRONOUN_FORMS[3]}
_SLOTS = {"$NOM_PRONOUN": 0, "$ACC_PRONOUN": 1, "$POSS_PRONOUN": 2}
_SLOT = re.compile(r"\$(?:NOM|ACC|POSS)_PRONOUN")


def _fits_winogender(text: str) -> bool:
    head = text.lstrip("\ufeff").split("\n", 1)[0].strip().split("\t")
    return head == ["sentid", "sentence"] or (len(head) == 4 and head[0].startswith("occupation(0)"))


def _tab_records(text: str) -> list[list[str]]:
    return [line.rstrip("\r").split("\t") for line in text.lstrip("\ufeff").split("\n")[1:] if line.strip()]


def _winogender_rows(cells: list[str]) -> list[PlainRow]:
    return _winogender_sentence(cells) if len(cells) == 2 else _winogender_template(cells)


def _winogender_sentence(cells: list[str]) -> list[PlainRow]:
    identity, text = (cell.strip() for cell in cells)
    parts = identity.removesuffix(".txt").split(".")
    if len(parts) != 4 or parts[2] not in ("0", "1") or parts[3] not in _GENDERS:
        raise UnreadableItemsError(f"{identity!r} is not a name such as nurse.patient.1.female.txt.")
    occupation, participant, answer, gender = parts
    forms = _GENDERS[gender]
    place = re.search(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", text, re.IGNORECASE)
    if place is None:
        raise UnreadableItemsError(f"no {gender} pronoun is in the sentence.")
    return [_gendered((text, place.start()), place.group(), (occupation, participant), int(answer), gender)]


def _gendered(sentence: tuple[str, int], pronoun: str, names: tuple[str, str], answer: int, gender: str) -> PlainRow:
    family = ".".join(names)
    options = [name if name == "someone" else f"the {name}" for name in names]
    pair, variant = f"{family}.{gender}", f"{names[1]}.{gender}"
    return _stated(sentence, pronoun, options, answer, pair=pair, family=family, variant=variant)


def _winogender_template(cells: list[str]) -> list[PlainRow]:
    if len(cells) != 4 or cells[2].strip() not in ("0", "1"):
        raise UnreadableItemsError(
            f"the row has {len(cells)} cells. Give occupation, participant, answer and sentence."
        )
    occupation, participant, answer, sentence = (cell.strip() for cell in cells)
    slots = _SLOT.findall(sentence)
    if len(slots) != 1:
        raise UnreadableItemsError(f"the template has {len(slots)} pronouns. Give one.")
    rows = []
    # Once, if the participant is `someone` already.
    for filling in dict.fromkeys((participant, "someone")):
        template = sentence.replace("$OCCUPATION", occupation)
        # "The $PARTICIPANT" without its article is the "someone" version of the set.
        if filling == "someone":
            template = re.sub(r"(?i)\bthe \$PARTICIPANT", "$PARTICIPANT", template)
            template = re.sub(r"^\$PARTICIPANT", "Someone", template)
        template = template.replace("$PARTICIPANT", filling)
        for gender, forms in _GENDERS.items():
            start, form = template.index(slots[0]), forms[_SLOTS[slots[0]]]
            # At the start of the sentence the pronoun has a capital.
            form = form.capitalize() if start == 0 else form
            text = template.replace(slots[0], form)
            rows.append(_gendered((text, start), form, (occupation, filling), int(answer), gender))
    return rows


# WinoBias: numbered lines with the pronoun and its antecedent in brackets.


def _fits_winobias(text: str) -> bool:
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    return re.match(r"\d+ ", first) is not None and len(_BRACKETED.findall(first)) == 2


def _winobias_records(text: str) -> list[tuple[str, frozenset[str]]]:
    lines = _json_lines(text)
    persons = set()
    for line in lines:
        for marked in _BRACKETED.findall(line):
            if marked.casefold() not in _PRONOUNS:
                persons.add(_bare(marked))
    # A sentence names two persons, and brackets only the right one: the file as a whole says who persons are.
    return [(line, frozenset(persons)) for line in lines]


def _bare(entity: str) -> str:
    article, _, noun = entity.partition(" ")
    return noun.casefold() if noun and article.casefold() in _ORDINARY else entity.casefold()


def _winobias_rows(record: tuple[str, frozenset[str]]) -> list[PlainRow]:
    line, persons = record
    text, places = _unbracketed(re.sub(r"^\d+ ", "", line.strip()))
    pronouns = [place for place in places if place[1].casefold() in _PRONOUNS]
    marked = [place for place in places if place[1].casefold() not in _PRONOUNS]
    if len(pronouns) != 1 or len(marked) != 1:
        raise UnreadableItemsError("the line does not have exactly one person and one pronoun in brackets.")
    right = marked[0]
    # The longest first, because an alternation takes the first name that fits.
    names = "|".join(re.escape(name) for name in sorted(persons - {_bare(right[1])}, key=len, reverse=True))
    named = re.finditer(rf"(?<!\w)(?:(?:the|a|an) )?(?:{names})(?!\w)", text, re.IGNORECASE)
    others = [(match.start(), match.group()) for match in named if match.group()]
    # The longest name at a place counts, and one inside the marked person is not another person.
    end = right[0] + len(right[1])
    others = [place for place in others if not right[0] <= place[0] < end]
    if len({_bare(entity) for _, entity in others}) != 1:
        raise UnreadableItemsError("the line does not name exactly one other person of the file.")
    # Pairs of place and name: options stand in the order of the sentence.
    options = sorted([right, others[0]])
    start, pronoun = pronouns[0]
    return [_stated((text, start), pronoun, [entity for _, entity in options], options.index(right))]


# The perturbed Winograd schemas of Abdou et al. (2020): a column for each rewording of the original.


def _fits_perturbed(text: str) -> bool:
    head = text.lstrip("\ufeff").split("\n", 1)[0].split("\t")
    return "text_original" in head and {"answer_a", "answer_b", "correct_answer"} <= {cell.strip() for cell in head}


def _perturbed_records(text: str) -> list[Mapping[str, str]]:
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    records: list[Mapping[str, str]] = []
    try:
        for row in reader:
            # Cells beyond the header are under the name None.
            records.append({name.strip(): (cell or "").strip() for name, cell in row.items() if name is not None})
    except csv.Error as error:
        raise UnreadableItemsError(f"the table cannot be read: {error}. Give the file as published.") from error
    return records


def _perturbed_rows(row: Mapping[str, str]) -> list[PlainRow]:
    correct = row["correct_answer"].strip(" .").upper()
    if correct not in ("A", "B"):
        raise UnreadableItemsError(f"the correct answer is {row['correct_answer']!r}. Write A or B.")
    rows: list[PlainRow] = []
    for column in row:
        if not column.startswith("text_") or row[column] in ("", "-"):
            continue
        kind = column.removeprefix("text_")
        # A rewording has its own pronoun and answers where these change with it.
        cells = [_own_cell(row, name, kind) for name in ("pron", "answer_a", "answer_b")]
        rewording = "" if kind == "original" else kind
        fields = {"text": row[column], "pronoun": cells[0], "options": cells[1:], "label": "AB".index(correct)}
        rows.append({**fields, "rewording": rewording, "variant": rewording})
    if not rows or rows[0]["rewording"]:
        raise UnreadableItemsError("the row has no original sentence. Fill in text_original.")
    return rows


def _own_cell(row: Mapping[str, str], name: str, kind: str) -> str:
    own = row.get(f"{name}_{kind}", "")
    return own if own not in ("", "-") else row.get(name, "")


_PRONOUNS = frozenset(chain.from_iterable(PRONOUN_FORMS))

FORMATS = (
    SetFormat("PDP or WSC collection", _fits_collection, _collection_records, _collection_rows),
    SetFormat("WinoGrande", _fits_blanks, _json_lines, _blank_rows),
    SetFormat("KnowRef", _fits_knowref, _knowref_records, _knowref_rows),
    SetFormat("perturbed WSC", _fits_perturbed, _perturbed_records, _perturbed_rows),
    SetFormat("WinoGender", _fits_winogender, _tab_records, _winogender_rows),
    SetFormat("XWinograd", _fits_languages, _json_lines, _languages_rows),
    SetFormat("WinoBias", _fits_winobias, _winobias_records, _winobias_rows),
    SetFormat("DPR", _fits_dpr, _dpr_records, _dpr_rows),
)
"""Formats, each recognized by the text of a file; the first that fits is taken."""
