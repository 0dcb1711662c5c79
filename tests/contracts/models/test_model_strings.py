"""Model strings open models; what cannot be opened says what could be."""

from __future__ import annotations

import ast
import gzip
import json
import shutil
import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_fixture import invoke
from served import evaluator
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

import hapax

LIBRARY = hapax.parse_rules('oracle is_in(Food, Dish): "[1] is in [2]".')
SCRIPT: dict[str, Any] = {
    "generate": {"is in [B]": ["naan", "saag"], "ghee is in [B]": "1. paella.\nno item"},
    "critic": {"Butter is in naan.": 0.9},
    "likelihood": {"Butter is in naan.": -8, "Two.": [-3.5, 7]},
}


def scripted(folder: Path, script: dict[str, Any]) -> str:
    (folder / "script.json").write_text(json.dumps(script), "utf-8")
    return f"scripted:{folder / 'script.json'}"


def test_roles_are_chosen_one_by_one(tmp_path: Path) -> None:
    """Critic and likelihood are the knowledge model unless named; a simulated one takes its seed from string or option."""
    script = scripted(tmp_path, SCRIPT)
    one = hapax.open_models(script)
    mixed = hapax.open_models("simulated:7", script, "frequency", "simulated", library=LIBRARY, seed=3)

    assert one.knowledge is one.critic is one.likelihood
    names = [model.identity.name for model in (mixed.knowledge, mixed.critic, mixed.likelihood, mixed.evaluator)]
    assert names == ["simulated", "scripted/script.json", "frequency", "simulated"]
    assert "seed 7" in mixed.knowledge.identity.revision
    assert "seed 3" in mixed.evaluator.identity.revision


@pytest.mark.parametrize(
    "model", ["", "gpt", "openai", "openai:", "scripted", "hf:", "frequency:de", "Embedded", "\x00"]
)
def test_an_unknown_string_names_what_exists(model: str) -> None:
    """A string that names no model lists the forms that do."""
    with pytest.raises(hapax.HapaxError, match=r"embedded.*hf:NAME_OR_PATH.*openai:MODEL.*scripted:PATH"):
        hapax.open_models(model)


@pytest.mark.parametrize(
    ("model", "says"),
    [("frequency", "embedded"), ("simulated", "rules"), ("simulated:x", "simulated:7"), ("smollm2-critic", "embedded"),
     ("reference:nowhere", "geo"), ("scripted:none.json", "none.json"), ("gguf:none.gguf", "none.gguf")],
)  # fmt: skip
def test_a_model_that_cannot_play_its_role_says_what_would_help(model: str, says: str) -> None:
    """The error names another model, or what is missing."""
    with pytest.raises(hapax.HapaxError) as caught:
        hapax.open_models(model, library=None if model == "simulated" else LIBRARY)

    assert says in str(caught.value)


def test_the_list_says_roles_and_what_is_missing() -> None:
    """Every backend has roles and abilities, and a remedy exactly if it cannot be used."""
    listings = json.loads(invoke("model", "list", "--json").stdout)

    assert {"embedded", "frequency", "openai:MODEL"} <= {listing["name"] for listing in listings}
    assert all(listing["roles"] and listing["abilities"] for listing in listings)
    assert all(listing["available"] == (listing["remedy"] == "") for listing in listings)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"critic": []}', "[" * 100_000, '{"oracle": {}}', '{"generate": {"a": 7}}', '{"critic": {"a": true}}',
     '{"likelihood": {"a": [1]}}', '{"defaults": {"critic": null}}'],
)  # fmt: skip
def test_a_faulty_script_is_refused_when_it_is_opened(text: str, tmp_path: Path) -> None:
    """A script of another shape is an error that names the file."""
    (tmp_path / "script.json").write_text(text, "utf-8")

    with pytest.raises(hapax.HapaxError, match="script"):
        hapax.open_models(f"scripted:{tmp_path / 'script.json'}")


FAULTS = {
    "model_id: x": "mappings",
    "- {model_id: x}": "model_name",
    "- {model_id: x, model_name: y, api_key: sk-planted-secret}": "api_key",
    "- {model_id: x, model_name: y, rpm: 0}": "rpm",
    "- {model_id: x, model_name: y, rpm: .nan}": "rpm",
    "- {model_id: x, model_name: y, votes: true}": "votes",
    "- {model_id: x, model_name: ' '}": "model_name",
    "- {model_id: x, model_name: y, logprobs: yes}": "logprobs",
    "- {model_id: x, model_name: y, price_in: 1}": "price_out",
    "- {model_id: x, model_name: y}\n- {model_id: x, model_name: z}": "alias 2",
    "- {model_id: x, api_key: sk-planted-secret": "line 1",
    "- !!python/object/apply:os.getcwd []": "models.yaml",
    "- {model_id: x, model_name: y, api_base: 'ftp://h'}": "URL",
    "- {model_id: x, model_name: y, api_base: 'http://u:sk-planted-secret@h/v1'}": "api_key_name",
    "- {model_id: x, model_name: y, api_base: 'http://h/v1?key=sk-planted-secret'}": "api_key_name",
    "- {model_id: x, model_name: y, api_base: 'http://h', proxy: 'http://u:sk-planted@h'}": "environment variable",
    "- {model_id: x, model_name: y, api_base: 'http://127.0.0.1', proxy: 'http://h'}": "proxy",
    "- {model_id: x, model_name: y, sytem_prompt: z}": "sytem_prompt",
    "- {model_id: x, model_name: y, chat_template_kwargs: off}": "chat_template_kwargs",
    "- {model_id: x, model_name: y, system_prompt: z, completion: true}": "completion",
    "- {model_id: x, model_name: y, chat_template: none.jinja}": "none.jinja",
}


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-own")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize(("text", "place"), FAULTS.items(), ids=FAULTS.values())
def test_a_faulty_alias_says_where_and_shows_no_secret(text: str, place: str, tmp_path: Path) -> None:
    """Every fault of the file is one message with its place, and quotes nothing that may be a key."""
    (tmp_path / "models.yaml").write_text(text, encoding="utf-8")

    with pytest.raises(hapax.HapaxError) as caught:
        hapax.open_models("openai:x", likelihood="frequency", aliases=tmp_path / "models.yaml")

    assert "models.yaml" in str(caught.value) or "alias x" in str(caught.value)
    assert place in str(caught.value)
    assert "planted" not in str(caught.value)


@pytest.mark.usefixtures("_key")
def test_an_unknown_alias_is_named_with_those_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server to ask for it, a name that is no alias is answered with the names of the file."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    (tmp_path / "models.yaml").write_text("- {model_id: big, model_name: y, api_base: 'http://h/v1'}", "utf-8")

    with pytest.raises(hapax.HapaxError, match=r"bgi.*big.*OPENAI_API_KEY"):
        hapax.open_models("openai:bgi", aliases=tmp_path / "models.yaml")


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("key", ["", "sk-planted\nsecond"])
def test_openai_without_a_usable_key_gets_nothing(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing key, or one with a line end in it, ends the command with the variable's name, and is not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.delenv("OPENAI_BASE_URL")

    with pytest.raises(hapax.HapaxError, match="OPENAI_API_KEY") as caught:
        hapax.open_models("openai:gpt-x")

    assert "planted" not in str(caught.value)


@pytest.mark.usefixtures("_key")
def test_a_limit_of_requests_in_this_process_is_refused(tmp_path: Path) -> None:
    """`hf:ALIAS` opens the alias's checkpoint; settings of servers are refused there."""
    (tmp_path / "models.yaml").write_text("- {model_id: mine, model_name: tiny, rpm: 10}", "utf-8")

    with pytest.raises(hapax.HapaxError, match="rpm"):
        hapax.open_models("hf:mine", aliases=tmp_path / "models.yaml")


ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("api", "benchmarks", "commands", "engine", "evaluation", "grammar", "kb", "llm_oracle", "scripts", "tools")
EMBEDDED = ROOT / "llm_oracle" / "embedded" / "model"


def _calls() -> list[tuple[str, ast.Call]]:
    calls = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "torch.load" in text else ():
                if isinstance(node, ast.Call):
                    calls.append((f"{path.relative_to(ROOT)}:{node.lineno}", node))
    return calls


def test_no_code_of_a_model_is_ever_trusted() -> None:
    """No source names `trust_remote_code`, so transformers keeps its default, which runs no code of a model."""
    named = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "trust_remote_code" in path.read_text()]
    assert named == []


def test_torch_reads_tensors_alone() -> None:
    """Any `torch.load` is given `weights_only=True`, which refuses every other object of a pickle."""
    for place, call in ((place, call) for place, call in _calls() if ast.unparse(call.func) == "torch.load"):
        settings = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert settings.get("weights_only") == "True", place


@pytest.mark.embedded
def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    """A folder whose weights are a pickle is refused with the remedy, and the same weights as safetensors load."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from safetensors.torch import load_file

    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    assert hapax.open_models(f"hf:{folder}")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(hapax.HapaxError, match="with weights as safetensors"):
        hapax.open_models(f"hf:{folder}")


@pytest.mark.embedded
def test_weights_with_another_hash_are_refused(tmp_path: Path) -> None:
    """A folder whose weights do not have the hash of its SHA256SUMS is refused, with both hashes."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

    folder = tmp_path / "model"
    shutil.copytree(EMBEDDED, folder)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(hapax.HapaxError, match=r"\w{16}.*\w{16}"):
        hapax.open_models(f"hf:{folder}")
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  ../other.safetensors\n", encoding="utf-8")
    with pytest.raises(hapax.HapaxError, match="SHA256SUMS:1 is malformed"):
        hapax.open_models(f"hf:{folder}")


@pytest.mark.parametrize("folder", ["embedded/model", "trained_critic"])
def test_shipped_weights_have_their_hashes(folder: str) -> None:
    """The SHA256SUMS of each shipped folder names all its weights, and the files have these hashes."""

    shipped = ROOT / "llm_oracle" / folder
    listed = {line.split("  ")[1] for line in (shipped / "SHA256SUMS").read_text(encoding="utf-8").splitlines()}
    assert listed == {path.name for path in shipped.glob("*.safetensors")}
    for line in (shipped / "SHA256SUMS").read_text("utf-8").splitlines():
        told, name = line.split("  ")
        assert sha256((shipped / name).read_bytes()).hexdigest() == told


RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?".
lives_in(Person X, Country A) & flows_through(River B, Country A) -> can_swim_in(Person X, River B).
"""


@pytest.fixture
def combined(tmp_path: Path) -> Path:
    """Two scripted critics, each of which knows half of sixty rivers; labels of all."""
    (tmp_path / "world.rules").write_text(RULES, "utf-8")
    lines, first, second = [], {}, {}
    rng = np.random.default_rng(3)
    rivers = []
    for number in range(80):
        is_true, claim = bool(rng.random() < 0.5), f"River {number} flows through country {number // 2}."
        lines.append(f"{'true' if is_true else 'false'}\tflows_through\tRiver {number}\tcountry {number // 2}")
        known, other = (first, second) if number % 2 else (second, first)
        known[claim] = 0.95 if is_true else 0.05
        other[claim] = 0.5 + 0.1 * float(rng.random() - 0.5)
        rivers.append(f"River {number}")
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    defaults = {"generate": [], "critic": 0.5, "likelihood": -10}
    generate = {"flows through [B]": ["country 1", "country 2"], "flows through country": rivers[:6]}
    for name, script in (("a", first), ("b", second)):
        content = {"generate": generate, "critic": script, "defaults": defaults}
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    hapax.KnowledgeBase(tmp_path / "kb.db").close()
    return tmp_path


def test_commands_calibrate_and_search_with_a_combination(combined: Path) -> None:
    """`calibrate` prints each member beside the combination; the search compares stacked scores and keeps raw ones."""
    critic = f"scripted:{combined / 'a.json'}+scripted:{combined / 'b.json'}"
    place = ["--db", str(combined / "kb.db")]
    rules = str(combined / "world.rules")
    labels = ["--labels", str(combined / "labels.tsv")]

    learned = invoke("model", "calibrate", "--rules", rules, *place, "--critic", critic, *labels, "--json")
    models = ["-m", f"scripted:{combined / 'a.json'}", "--critic", critic]
    searched = invoke("search", rules, *place, *models, "--calibrated", "--no-progress")

    assert learned.exit_code == 0, learned.output
    figures = json.loads(learned.stdout)
    measured = figures["measures"]
    assert figures["method"].startswith("stacked")
    auc = {part: found["calibrated"]["auc"]["value"] for part, found in measured.items()}
    members = [part for part in auc if part.startswith("scripted")]
    assert len(members) == 2
    assert all(auc["all labels"] > auc[member] + 0.1 for member in members)
    assert searched.exit_code == 0, searched.output
    with hapax.KnowledgeBase(combined / "kb.db", read_only=True) as kb:
        (record,) = kb.calibrations()
        raw = kb.assessments(["River 1 flows through country 0."], "probability", record.critic)
        members_raw = [
            kb.assessments(["River 1 flows through country 0."], "probability", name)
            for name in record.parameters["weights"]
        ]
    assert raw
    assert all(members_raw)


_TEXT = "[PAD] [CLS] [SEP] [UNK] ann bob paris rome visits tours a long story"
WORDS = _TEXT.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of twelve words."""
    path = tmp_path_factory.mktemp("bert")
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token=WORDS[3]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(path)
    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=24, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config).save_pretrained(path)
    return path


def test_encoder_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    """`encoder` with `-m hf:` scores pairs through the journal; another kind of model is refused."""
    pairs = tmp_path / "dev.txt"
    pairs.write_text("ann,visits,paris\tann,tours,paris\tTrue\nann,tours,paris\tann,visits,paris\tFalse\n", "utf-8")
    words = (
        "evaluate",
        "entailment",
        "score",
        str(pairs),
        "--scorer",
        "encoder",
        "--db",
        str(tmp_path / "x.db"),
        "--json",
    )

    def run(*more: str) -> object:
        result = invoke(*words, *more)
        assert result.exit_code == 0, result.output
        return [(row["subset"], round(row["auc_norm"]["value"], 6)) for row in json.loads(result.stdout)]

    first = run("-m", f"hf:{folder}", "--device", "cpu")
    again = run("-m", f"hf:{folder}", "--device", "cpu", "--max-calls", "0", "--max-cost", "0")

    assert first == again == [("full", 0.0), ("DirTrue-DirFalse", 0.0)]  # symmetric: no idea of the direction
    assert invoke(*words, "-m", "frequency").exit_code == 2


VECTORS = """5 2
butter 1 0
naan 0.8 0.6
truck -1 0
odd 0 2
void 0 0
"""


@pytest.fixture
def ranker(tmp_path: Path) -> Any:
    path = tmp_path / "small.vec"
    path.write_text(VECTORS, "utf-8")
    return evaluator(f"vectors:{path}")


def test_mean_cosine_of_all_pairs(ranker: Any) -> None:
    """Three words have three pairs; length, case, order, repetition and words without a vector do not matter."""
    pair, three, same = ranker.log_likelihoods(["Butter, naan", "butter naan odd", "The naan: odd? Butter naan!"])

    assert pair.per_token == pytest.approx(0.8)
    assert three.per_token == pytest.approx((0.8 + 0.6 + 0) / 3)
    assert same.per_token == pytest.approx(three.per_token)
    assert three.token_count == 3


def test_word_frequencies_are_those_of_wordfreq() -> None:
    """Contractions, names, hyphens, accents, numbers, signs and unknown words score as by wordfreq 3.1.1, in nats."""
    scores = evaluator("frequency").log_likelihoods(
        [
            "Butter is an ingredient in hummus.",
            "Don't ask O'Hara's mother-in-law; it’s 3:30.",
            "CAFÉ naïve café STRASSE straße",
            "In 1985, 007 sold 1,234.56 of 00 at 20 °C.",
            "zxqvbn",
            "...",
        ]
    )

    assert [score.token_count for score in scores] == [6, 10, 5, 11, 1, 0]
    totals = [-50.638601, -83.438508, -67.816714, -101.432244, -20.723266, 0]
    assert [score.total for score in scores] == pytest.approx(totals, abs=1e-6)


@pytest.mark.parametrize(
    "form", ["headless.txt", "spaced.vec", "binary.bin", "lines.bin", "small.vec.gz", "small.bin.gz"]
)
def test_every_form_of_word_vectors_is_read(form: str, tmp_path: Path) -> None:
    """GloVe's text without a first line, fastText's with blanks at the end, word2vec's bytes, and compressed ones."""
    words = {"butter": (1.0, 0.0), "naan": (0.8, 0.6), "Zürich": (0.0, 1.0)}
    end = b"\n" if form == "lines.bin" else b""
    binary = b"3 2\n" + b"".join(f"{word} ".encode() + struct.pack("<2f", *row) + end for word, row in words.items())
    headless = "".join(f"{word} {first} {second}\n" for word, (first, second) in words.items())
    spaced = "3 2\n" + headless.replace("\n", " \n")
    content = binary if ".bin" in form else (headless if form == "headless.txt" else spaced).encode()
    (tmp_path / form).write_bytes(gzip.compress(content) if form.endswith(".gz") else content)

    near, far = evaluator(f"vectors:{tmp_path / form}").log_likelihoods(["butter naan", "zürich Zürich butter"])

    assert near.per_token == pytest.approx(0.8)
    assert (far.per_token, far.token_count) == (0.0, 2)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "butter\n",
        "butter 1 nan\n",
        "butter 1 0\nnaan 1\n",
        "2 2\nbutter 1\n",
        "1 2\nbutter x y\n",
        "9 2\nbutter 1 0\n",
    ],
)
def test_what_holds_no_vectors_is_told(tmp_path: Path, content: str | None) -> None:
    """A missing, empty, headless or broken file is an error with its name and the form that is read."""
    path = tmp_path / "faulty.vec"
    if content is not None:
        path.write_text(content, "utf-8")

    with pytest.raises(hapax.HapaxError, match=r"faulty\.vec: not word vectors in word2vec's format"):
        evaluator(f"vectors:{path}")


def test_the_embedded_critic_judges_names_of_its_atlas_alone(tmp_path: Path) -> None:
    """Of a name that its atlas does not have it has no opinion, so that there is no score to calibrate."""
    with hapax.KnowledgeBase(tmp_path / "kb.db"):
        pass
    place = ("--db", tmp_path / "kb.db", "--labels", tmp_path / "labels.tsv")
    codes = []
    for city in ("Hamburg", "Hapaxville"):
        (tmp_path / "labels.tsv").write_text(f"true\tis_a_city_in\t{city}\tGermany\n", "utf-8")
        codes.append(invoke("model", "calibrate", "--critic", "embedded", *place).exit_code)

    assert codes == [0, 1]
