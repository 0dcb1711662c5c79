"""Fixtures of the papers' tests: planted sets, votes, LINT, programs of other people, and commands run with a scripted model."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from cli_fixture import EVERY_END, invoke, run
from click.testing import Result
from money_fixture import FOUR_CITIES
from money_fixture import RULES as MONEY_RULES
from money_fixture import SCRIPT as MONEY_SCRIPT

import hapax

# --- papers -----------------------------------------------------------------------------------------------------------


# --- votes ------------------------------------------------------------------------------------------------------------


Answer = Callable[[dict[str, str]], str]
"""From a row's cells to what a person answers; the qualification answers itself."""

WRONG: dict[tuple[str, str], dict[str, str]] = {
    ("statements", "qualification:2"): {"data type B": "no"},
    ("statements", "qualification:3"): {"entailment": "no"},
    ("predicates", "qualification:2"): {"audit Q3": "no", "audit Q4": "no"},
    ("predicates", "qualification:3"): {"audit Q1": "no", "audit Q3": "no", "audit Q4": "no"},
    ("baseline", "qualification:2"): {"baseline 5": "no"},
    ("schemas", "qualification:1"): {"schema label 1": "first", "schema label 2": "second"},
    ("soundness", "qualification:2"): {"soundness": "rule"},
}
"""Right answers of the qualification other than yes, by sheet and item."""


def answered(row: dict[str, str], answer: Answer) -> str:
    if row["section"] == "qualification":
        return WRONG.get((row["kind"], row["item"]), {}).get(row["question"], "yes")
    return answer(row)


def fill_csv(path: Path, answer: Answer, **cells: str) -> Path:
    """Answer every question of a CSV sheet; `cells` overwrites others in every row."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, names = list(reader), list(reader.fieldnames or ())
    for row in rows:
        if row["section"] != "instructions":
            row.update(cells, answer=answered(row, answer))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def fill_tasks(path: Path, answer: Answer, comment: str = "") -> Path:
    """Answer every question of a sheet in JSON, and save it as Label Studio exports a project."""
    tasks = json.loads(path.read_text("utf-8"))
    for number, task in enumerate(tasks, start=1):
        chosen = answered(task["data"], answer)
        results = []
        if chosen:
            results.append({"from_name": "answer", "type": "choices", "value": {"choices": [chosen]}})
        if comment:
            results.append({"from_name": "comment", "type": "textarea", "value": {"text": [comment]}})
        annotation = {"completed_by": 1, "was_cancelled": False, "result": results}
        task.update(id=number, annotations=[annotation] if results else [])
    saved = path.with_suffix(".exported.json")
    saved.write_text(json.dumps(tasks), "utf-8")
    return saved


# --- lint -------------------------------------------------------------------------------------------------------------


RULES = {
    "rule2": {
        "premise_map": {
            "is_allergic_to(P, A)": "[P] is allergic to [A]",
            "is_ingredient_in(Z, B)": "[Z] is an ingredient in [B]",
            "is_one_type_of(Z, A)": "[Z] is one type of [A]",
        },
        "conclusion_map": {"is_not_able_to_eat(P, B)": "[P] is not able to eat [B]"},
        "variables": {
            "P": ["P", "Person", True, None],
            "A": ["A", "Food Allergen", False, None],
            "B": ["B", "Dish", False, None],
            "Z": ["Z", "Ingredient", False, None],
        },
        "domain": "outcomes and effects",
    },
    "rule7": {
        "premise_map": {
            "was_born_in(P, B)": "[P] was born in [B]",
            "was_invented_in(A, Y)": "[A] was invented in [Y]",
            "is_earlier_than(B, Y)": "[B] is earlier than [Y]",
        },
        "conclusion_map": {"could_not_use(P, A)": "[P] could not use [A]"},
        "variables": {
            "P": ["P", "Person", True, None],
            "A": ["A", "Product", False, None],
            "B": ["B", "Historical Time Period", False, None],
            "Y": ["Y", "Year", False, "factual"],
        },
        "domain": "temporal",
    },
}

FILES = {
    "rule2_value_cache.csv_head": "P,A,Z,B\nPersonX,dairy,butter,mashed_potatoes\nPersonX,dairy,butter,mashed_potatoes\nPersonX,gluten,flour,bread\nPersonX,,x,y\n",
    "rule2_value_cache.csv_longtail": 'P,A,Z,B\nPersonX,dairy,ghee,mysore pak\nPersonX,gluten,seitan,"tofu, fried"\n',
    "rule7_value_cache.csv_head": "P,A,Y,B\nPersonX,tractor,1892,Roman Empire\n",
    "rule7_value_cache.csv_longtail": "P,A,Y,B\nPersonX,theremin,1920,Hittite Empire\n",
    "flip_label_data.json": json.dumps({"LINK": {"rule2": {"head": [1], "longtail": []}}}),
    "rule2_gpt-4_probe_results.json": "{}",
}


# --- entailment -------------------------------------------------------------------------------------------------------


VERBS = ("bought", "owned", "wrote", "read", "killed", "harmed", "composed", "heard")
WORDS = (
    "is not the case that let alone because which means It sure just does mean This The fact necessarily Even if maybe "
    "Just might still be true . , ann bob"
)
"""Of the prompts, beside the verbs."""
SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}

Pair = tuple[str, str, bool]
"""Premise and hypothesis, `subject,predicate,object` each, and whether it entails it."""


def levy_holt(path: Path, pairs: Iterable[Pair]) -> Path:
    """Pairs in LevyHolt's form, the hypothesis first."""
    path.write_text("".join(f"{hypothesis}\t{premise}\t{label}\tEN\n" for premise, hypothesis, label in pairs), "utf-8")
    return path


def pair(premise: str, hypothesis: str, entailed: bool, who: str = "a", whom: str = "b") -> Pair:
    """Two predicates about the same two."""
    return f"{who},{premise},{whom}", f"{who},{hypothesis},{whom}", entailed


def couple(special: str, general: str, who: str = "a", whom: str = "b") -> list[Pair]:
    """A directional entailment and its false converse."""
    return [pair(special, general, True, who, whom), pair(general, special, False, who, whom)]


def score_file(path: Path, pairs: Iterable[Pair], scores: Iterable[float]) -> Path:
    """Scores as training runs write them: truth and score, a line each."""
    path.write_text("".join(f"{int(row[2])} {score}\n" for row, score in zip(pairs, scores, strict=True)), "utf-8")
    return path


def checkpoint(folder: Path, kind: str) -> Path:
    """A random tiny encoder or decoder over the words above."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *VERBS, *WORDS.split()]
    core = Tokenizer(models.WordLevel({word: number for number, word in enumerate(dict.fromkeys(words))}, "[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind == "encoder":
        core.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    special = (
        {"pad_token": "[PAD]", "unk_token": "[UNK]"}
        if kind == "encoder"
        else {"eos_token": "[SEP]", "unk_token": "[UNK]"}
    )
    PreTrainedTokenizerFast(tokenizer_object=core, **special).save_pretrained(folder)
    torch.manual_seed(0)
    count = core.get_vocab_size()
    if kind == "encoder":
        BertForMaskedLM(
            BertConfig(
                vocab_size=count,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                initializer_range=0.1,
                **SIZE,
            )
        ).save_pretrained(folder)
    else:
        LlamaForCausalLM(LlamaConfig(vocab_size=count, **SIZE)).save_pretrained(folder)
    return folder


# --- booqa ------------------------------------------------------------------------------------------------------------


Synsets = Mapping[str, tuple[Sequence[str], Mapping[str, Sequence[str]]]]
"""By id, which ends in the part of speech: lemmas, and related synsets by relation."""

ENGLISH: Synsets = {
    "go-v": (["go", "travel"], {"hyponym": ["visit-v"]}),
    "call-n": (["visit", "call"], {"hyponym": ["courtesy-n"]}),
    "courtesy-n": (["courtesy call"], {"hypernym": ["call-n"]}),
    "visit-v": (["visit", "see"], {"hypernym": ["go-v"], "hyponym": ["tour-v", "inspect-v", "stop-v", "revisit-v"]}),
    "tour-v": (["tour", "do the sights of"], {"hypernym": ["visit-v"]}),
    "inspect-v": (["inspect"], {"hypernym": ["visit-v"]}),
    "stop-v": (["stop by"], {"hypernym": ["visit-v"]}),
    "revisit-v": (["revisit", "visit"], {"hypernym": ["visit-v"]}),
    "afflict-v": (["visit"], {"hyponym": ["plague-v"]}),
    "plague-v": (["plague"], {"hypernym": ["afflict-v"]}),
    "help-v": (["help"], {"hyponym": ["aid-v"]}),
    "aid-v": (["aid", "assist"], {"hypernym": ["help-v"]}),
    "buy-v": (["buy", "purchase"], {"hypernym": ["get-v"], "entails": ["pay-v"]}),
    "get-v": (["get", "acquire"], {"hyponym": ["buy-v"]}),
    "pay-v": (["pay"], {}),
    "own-v": (["own"], {}),
    "shop-v": (["shop"], {}),
}

CHINESE: Synsets = {
    "visit-v": (["访问", "拜访"], {"hyponym": ["tour-v"]}),
    "tour-v": (["参观"], {"hypernym": ["visit-v"]}),
    "work-v": (["工作"], {"hyponym": ["teach-v"]}),
    "teach-v": (["任教"], {"hypernym": ["work-v"]}),
}


FORMS = {"go": "went", "shop": "shopped"}
"""Irregular forms, which WordNets list with their lemmas."""


def lexicon_xml(name: str, language: str, synsets: Synsets) -> str:
    """A WordNet in WN-LMF; a lemma's senses stand in the order of the synsets."""
    entries: dict[tuple[str, str], list[str]] = {}
    for key, (lemmas, _) in synsets.items():
        for lemma in lemmas:
            entries.setdefault((lemma, key[-1]), []).append(key)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.1.dtd">',
        f'<LexicalResource><Lexicon id="{name}" label="{name}" language="{language}" email="a@b" license="x" version="1">',
    ]
    for number, ((lemma, part), keys) in enumerate(entries.items()):
        senses = "".join(f'<Sense id="{name}-{number}-{key}" synset="{name}-{key}"/>' for key in keys)
        forms = f"<Form writtenForm={quoteattr(FORMS[lemma])}/>" if lemma in FORMS else ""
        lemma_xml = f'<Lemma writtenForm={quoteattr(lemma)} partOfSpeech="{part}"/>'
        lines.append(f'<LexicalEntry id="{name}-{number}">{lemma_xml}{forms}{senses}</LexicalEntry>')
    for key, (lemmas, relations) in synsets.items():
        written = "".join(
            f'<SynsetRelation relType="{relation}" target="{name}-{target}"/>'
            for relation, targets in relations.items()
            for target in targets
        )
        definition = f"<Definition>as {lemmas[-1]} in {key}</Definition>"
        lines.append(f'<Synset id="{name}-{key}" ili="" partOfSpeech="{key[-1]}">{definition}{written}</Synset>')
    return "\n".join([*lines, "</Lexicon></LexicalResource>"])


def install(folder: Path) -> None:
    """Both WordNets as `toy-en:1` and `toy-zh:1`, in a database of their own."""
    import wn

    wn.config.data_directory = folder
    for name, language, synsets in (("toy-en", "en", ENGLISH), ("toy-zh", "cmn", CHINESE)):
        path = folder / f"{name}.xml"
        path.write_text(lexicon_xml(name, language, synsets), "utf-8")
        wn.add(path, progress_handler=None)


def parsed(word: str) -> str:
    """`shop.in` as a CCG parser's predicate."""
    return f"({word}.1,{word}.2)"


FILLERS = tuple(parsed(f"filler{number}") for number in range(14))
CORE = (parsed("visit"), parsed("help"), *FILLERS)
"""The sixteen predicates that the corpus states of every pair that is asked about."""


@dataclass
class Planted:
    """The lines of a corpus, and how many triples each filter should drop."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    asked: set[tuple[str, str]] = field(default_factory=set)

    def say(self, who: str, verb: str, where: str, date: str, fate: str = "", **more: str) -> None:
        """One triple in a document of its own, unless `more` names it."""
        number = len(self.lines)
        line = {"subject": who, "predicate": verb, "object": where, "types": ["person", "location"], "date": date}
        self.lines.append({**line, "document": f"d{number}", "sentence": f"{who} {verb} {where} {number}.", **more})
        if fate:
            self.dropped[fate] += 1

    def say_all(self, who: str, verbs: Iterable[str], where: str, date: str, fate: str = "") -> None:
        for verb in verbs:
            self.say(who, verb, where, date, fate)

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), "utf-8")
        return path


def planted(seed: int = 0) -> Planted:
    """Ninety pairs that are asked about, in nine slices, and rows for each filter; in an order drawn."""
    corpus = Planted()
    for number in range(90):
        who, where, date = f"Person {number}", f"Town {number}", f"2008-04-{1 + 3 * (number % 9):02d}"
        corpus.asked.add((who, where))
        corpus.say_all(who, CORE, where, date)
        corpus.say(who, parsed("be"), where, date, "vague predicate")
        corpus.say(who, parsed(f"rare{number}"), where, date, "too few occurrences of the predicate")
    for number in range(70):  # what is often said, though never of a pair that is asked about
        for verb in ("tour", "inspect", "assist"):
            corpus.say(f"{verb}er {number}", parsed(verb), f"Place {number}", "2008-06-01", "too few mentions")
    for number in range(5):  # ... but for these, in another slice
        corpus.say(f"Person {number}", parsed("tour"), f"Town {number}", "2008-07-01", "too few mentions")
        corpus.say(f"Person {number}", parsed("aid"), f"Town {number}", "2008-07-01", "too few mentions")
    corpus.say_all("Few", CORE[:14], "Village", "2008-05-01", "too few mentions")
    corpus.say_all("Many", CORE * 2, "City", "2008-05-01", "too many mentions")
    corpus.say_all("Dull", CORE[:10] + CORE[:10], "Village", "2008-05-04", "too few different predicates")
    for number in range(30):  # thirty predicates in fifteen documents
        verb = (*CORE, *(parsed(f"once{index}") for index in range(14)))[number]
        corpus.say("Busy", verb, "City", "2008-05-07", "too many different predicates", document=f"b{number % 15}")
    corpus.say_all("He", CORE, "Village", "2008-05-10", "pronoun")
    corpus.say_all("Somebody", CORE, "City", "2008-05-10", "pronoun")
    corpus.say_all("Nobody knows", CORE, "when", "some day", "undated")
    for number in range(25):
        corpus.lines.append({**corpus.lines[number], "document": f"copy{number}"})
        corpus.dropped["sentence repeated"] += 1
    random.Random(seed).shuffle(corpus.lines)
    return corpus


# --- papers -----------------------------------------------------------------------------------------------------------


PAPERS_RULES = f"""{MONEY_RULES}@name neighbour
@domain temporal
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & is_a_city_in(City B, Country C) & A \\= B -> could_move_to(Person X, City B)
"""
SCRIPT = {
    **MONEY_SCRIPT,
    "generate": {
        **FOUR_CITIES,
        "'[A] is a city in Norway'": ["Bergen", "Oslo"],
        "'Bergen is a city in [B]'": ["Norway"],
    },
    "likelihood": {"Norway uses the Norwegian krone.": -12.0, "The Gambia uses the dalasi.": -20.0},
}
"""Two rules, and a script whose search finds statements of both and rejects one value."""

KITCHEN = """
type Dish < Food
given is_allergic_to(Person, Allergen): "[1] is allergic to [2]" / "[1] is not allergic to [2]" / "is [1] allergic to [2]?"
given is_not_able_to_eat(Person, Food): "[1] is not able to eat [2]" / "[1] is able to eat [2]" / "is [1] unable to eat [2]?"
given can_cook(Person, Dish): "[1] can cook [2]" / "[1] cannot cook [2]" / "can [1] cook [2]?"
given was_in(Person, Year): "[1] was in [2]" / "[1] was not in [2]" / "was [1] in [2]?"
oracle is_made_from(Dish, Allergen): "[1] is made from [2]" / "[1] is not made from [2]" / "is [1] made from [2]?"
functional was_invented_in(Dish, Year): "[1] was invented in [2]" / "[1] was not invented in [2]" / "was [1] invented in [2]?"
computed is_earlier_than(Year A, Year B) := A < B: "[1] is earlier than [2]" / "[1] is not earlier than [2]" / "is [1] earlier than [2]?"

@name allergy
@domain "outcomes and effects"
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> is_not_able_to_eat(Person X, Dish B).

@name cook
@domain "natural properties"
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> can_cook(Person X, Dish B).

@name before
@domain temporal
was_in(Person X, Year A) & was_invented_in(Dish B, Year Y) & is_earlier_than(Year A, Year Y)
  -> is_not_able_to_eat(Person X, Dish B).
"""

Values = Mapping[tuple[str, str], Iterable[tuple[str, ...]]]
"""Values of statements by rule and end (`head` or `longtail`)."""

COLUMNS = {"allergy": "X,A,B", "cook": "X,A,B", "before": "X,A,B,Y"}
DISHES: Values = {
    ("allergy", "head"): [("milk", "mashed potatoes"), ("milk", "guacamole"), ("milk", "fondue")],
    ("allergy", "longtail"): [("milk", "fondue"), ("nuts", "gianduja"), ("nuts", "marzipan")],
    ("before", "longtail"): [("1876", "sushi burrito", "2005.5")],
}
"""Seven statements of two rules; fondue is in both distributions."""


def eats(dish: str, allergen: str = "milk") -> str:
    """The text of a statement of the rule allergy."""
    return f"If PersonX is allergic to {allergen}, then PersonX is not able to eat {dish}."


def bring(
    database: Path,
    values: Values = DISHES,
    *,
    scores: Mapping[str, float] | None = None,
    rules: str = KITCHEN,
    columns: Mapping[str, str] = COLUMNS,
    lint: str = "lint",
) -> Path:
    """Import statements into a knowledge base, as LINT's files; an evaluator gives their texts these `scores`."""
    folder = database.parent / lint
    folder.mkdir(exist_ok=True)
    (database.parent / "kitchen.rules").write_text(rules, "utf-8")
    for (rule, end), rows in values.items():
        quoted = ["PersonX," + ",".join(f'"{cell}"' for cell in row) for row in rows]
        lines = [columns[rule], *quoted]
        (folder / f"{rule}_value_cache.csv_{end}").write_text("\n".join(lines) + "\n", "utf-8")
    model = script(database.parent / "evaluator.json", likelihood=dict(scores or {}))
    run(
        "evaluate", "lint", folder, "--rules", database.parent / "kitchen.rules", "--evaluator", model, "--db", database
    )
    return database


def script(path: Path, yes: float = 0.9, says: object = "Yes.", **more: object) -> str:
    """Write a scripted model and return its name: its P(yes), what it says, and the parts that differ."""
    defaults = {"critic": yes, "likelihood": -10.0, "generate": says}
    path.write_text(json.dumps({"defaults": defaults, **more}), "utf-8")
    return f"scripted:{path}"


def search(database: Path, content: object = SCRIPT, *options: object, rules: str = PAPERS_RULES) -> dict[str, Any]:
    """Search by a script, which also evaluates; what `search --json` said."""
    folder = database.parent
    (folder / "money.rules").write_text(rules, "utf-8")
    (folder / "script.json").write_text(json.dumps(content), "utf-8")
    model = f"scripted:{folder / 'script.json'}"
    models = ("-m", model, "--evaluator", model)
    where = ("--no-progress", "--json", "--db", database)
    found: dict[str, Any] = json.loads(
        run("search", folder / "money.rules", *models, *where, *EVERY_END, *options).stdout
    )
    return found


def told(*command: object) -> Any:
    """The JSON that a command prints."""
    return json.loads(run(*command, "--json").stdout)


def fault(*command: object, code: int = 1) -> str:
    """The message of a command that fails, in one line."""
    result = invoke(*command)
    assert result.exit_code == code, result.output
    return flat(result.stderr)


def flat(text: str) -> str:
    return " ".join(text.split())


def notes(result: Result) -> str:
    """The stderr of a command, in one line."""
    return flat(result.stderr)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def statements(database: Path) -> dict[str, str]:
    """Ids of the statements by their texts."""
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return {record.text: record.id for record in kb.statements()}


def sent(database: Path, role: str) -> list[dict[str, Any]]:
    """Requests to models in a role, in the order in which the journal has them."""
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return [dict(call.request) for call in kb.calls().values() if call.role == role]


def judge(
    database: Path, voter: str, answers: Mapping[tuple[str, str], str], kind: str = "statements", *options: object
) -> list[dict[str, str]]:
    """Fill in and import a sheet: answers by a part of an item's text and the question; else yes, and no harm.

    Returns the rows of the sheet that are about items. An empty answer of a row leaves the question out.
    """
    folder = database.parent / f"sheets-{voter}"
    command = ("votes", "export", kind, "--voter", voter, "--sample", 0, "--format", "csv", "--out", folder)
    run(*command, "--db", database, *options)
    asked: list[dict[str, str]] = []

    def answer(row: dict[str, str]) -> str:
        asked.append(row)
        chosen = (
            word
            for (part, question), word in answers.items()
            if question == row["question"] and part in row["text"] + row["asked"]
        )
        usual = "" if row["question"] == "harmful" else row["choices"].split(" / ")[0] if "baseline" in kind else "yes"
        return next(chosen, usual)

    run("votes", "import", fill_csv(folder / f"{kind}-{voter}.csv", answer), "--db", database)
    return asked


# --- others -----------------------------------------------------------------------------------------------------------


INSPECT = """
import sys
sys.path.insert(0, sys.argv[1])
import task
from inspect_ai import eval as run
from inspect_ai.model import ModelOutput, ModelUsage, get_model
reply = ModelOutput.from_content("mockllm/model", sys.argv[3])
reply.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
model = get_model("mockllm/model", custom_outputs=[reply] * 100)
(log,) = run(getattr(task, sys.argv[2])(), model=model, log_dir="logs", display="none")
scores = [(score.name, name, one.value) for score in log.results.scores for name, one in score.metrics.items()]
print(log.status, {f"{score}/{name}": value for score, name, value in scores})
"""
"""Tokens are told, for Inspect would download a tokenizer to count them."""


def python(place: Path, *words: object) -> str:
    """The output of another Python process, without network and with its caches in the test's folder."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    command, environment = [sys.executable, *map(str, words)], {**os.environ, **offline}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def inspected(folder: Path, task: str, reply: str) -> str:
    """The measurements of Inspect on a model that always gives one reply, by score and metric."""
    return python(folder.parent, "-c", INSPECT, folder, task, reply)


def loaded(path: Path) -> Any:
    """A module that lies beside tasks."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
